//! The blog posts of the guide, with comments and replies to comments.

use keyloom::{Result, Store};
use keyloom_bitmaps::one;
use keyloom_documents::{Documents, Nested};
use keyloom_tables::Schema;
use keyloom_tables::table::RecordKey;
use keyloom_text::Analyzer;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    pub by: String,
    pub votes: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comment {
    pub name: String,
    pub comment: String,
    pub age: i64,
    pub stars: Option<i64>,
    /// A date as a number: 20140901.
    pub date: i64,
    pub replies: Vec<Reply>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Post {
    pub title: String,
    pub tags: Vec<String>,
    pub comments: Vec<Comment>,
}

pub type Comments<P> = Nested<P, Post, Comment>;
pub type Replies<P> = Nested<(P, u32), Comment, Reply>;

/// A blog whose posts have keys of type `P`.
pub struct BlogOf<P: RecordKey> {
    pub posts: Documents<P, Post>,
    pub comments: Comments<P>,
    pub replies: Replies<P>,
}

pub type Blog = BlogOf<u32>;

impl<P: RecordKey + Clone + Send + Sync> BlogOf<P> {
    pub fn declare(store: &impl Store) -> Result<Self> {
        let schema = Schema::open(store, "blog")?;
        let posts = Documents::declare(&schema, "posts", 1, |index| {
            index
                .field("title", Analyzer::english(), |_, post: &Post, add| add(&post.title))
                .values("tags", |_, post| post.tags.iter().collect())
        })?;
        let comments = Comments::declare(
            &schema,
            &posts,
            "comments",
            1,
            |post| &post.comments,
            |post| &mut post.comments,
            |index| {
                index
                    .field("name", Analyzer::names(), |_, c: &Comment, add| add(&c.name))
                    .field("comment", Analyzer::english(), |_, c: &Comment, add| add(&c.comment))
                    .integers("age", |_, c| Some(c.age))
                    .integers("stars", |_, c| c.stars)
                    .integers("date", |_, c| Some(c.date))
                    .values("month", |_, c| one(c.date / 100))
                    .values("decade", |_, c| one(c.age / 10 * 10))
            },
        )?;
        let replies = Replies::declare(
            &schema,
            comments.documents(),
            "replies",
            1,
            |comment| &comment.replies,
            |comment| &mut comment.replies,
            |index| {
                index
                    .field("by", Analyzer::names(), |_, reply: &Reply, add| add(&reply.by))
                    .integers("votes", |_, reply| Some(reply.votes))
            },
        )?;
        Ok(Self { posts, comments, replies })
    }

    /// All inconsistencies of all parts.
    pub fn faults(&self, store: &impl Store) -> Vec<String> {
        let snapshot = store.snapshot().unwrap();
        let mut found = self.posts.text().check(&snapshot).unwrap();
        found.extend(self.comments.check(&snapshot).unwrap());
        found.extend(self.replies.check(&snapshot).unwrap());
        found.iter().map(ToString::to_string).collect()
    }
}

pub fn comment(name: &str, comment: &str, age: i64, stars: i64, date: i64) -> Comment {
    let (name, comment) = (name.to_owned(), comment.to_owned());
    Comment { name, comment, age, stars: Some(stars), date, replies: Vec::new() }
}

pub fn post(title: &str, tags: &[&str], comments: Vec<Comment>) -> Post {
    let tags = tags.iter().map(ToString::to_string).collect();
    Post { title: title.to_owned(), tags, comments }
}

/// The two posts of the chapter "Nested Objects".
pub fn guide_posts() -> [(u32, Post); 2] {
    let eggs = vec![
        comment("John Smith", "Great article", 28, 4, 20140901),
        comment("Alice White", "More like this please", 31, 5, 20141022),
    ];
    let secrets = vec![
        comment("Mary Brown", "Lies, lies, lies", 42, 1, 20141018),
        comment("John Smith", "You're making it up!", 28, 2, 20141016),
    ];
    [
        (1, post("Nest eggs", &["cash", "shares"], eggs)),
        (2, post("Investment secrets", &["shares", "equities"], secrets)),
    ]
}
