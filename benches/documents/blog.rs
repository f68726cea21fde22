//! Users, their posts, and the comments on the posts.

use fastrand::Rng;
use keyloom::Store;
use keyloom_patterns::Schema;
use keyloom_patterns::documents::parent_child::{Children, Link, OnParentDelete};
use keyloom_patterns::documents::{Documents, Nested};
use keyloom_patterns::text::Analyzer;
use serde::{Deserialize, Serialize};

const USERS: u32 = 1_000;
const POSTS: u32 = 10_000;
/// Number of posts loaded per transaction.
const BATCH: u32 = 1_000;

#[derive(Clone, Serialize, Deserialize)]
pub struct Comment {
    text: String,
    stars: i64,
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Post {
    text: String,
    comments: Vec<Comment>,
}

/// The id of the user and the number of the post, which is unique across all users.
type PostKey = (u32, u32);

pub struct Blog {
    pub users: Documents<u32, String>,
    pub posts: Children<u32, String, PostKey, Post>,
    pub comments: Nested<PostKey, Post, Comment>,
}

/// Zipf-distributed words: the frequency of the n-th word is proportional to 1/n.
fn text(random: &mut Rng, words: usize) -> String {
    let word = |random: &mut Rng| (2_000_f64.ln() * random.f64()).exp() as u32;
    let words: Vec<String> = (0..words).map(|_| format!("w{}", word(random))).collect();
    words.join(" ")
}

fn post(random: &mut Rng, number: u32) -> (PostKey, Post) {
    let comment = |_| Comment { text: text(random, 8), stars: random.i64(1..=5) };
    let comments = (0..2).map(comment).collect();
    ((random.u32(..USERS), number), Post { text: text(random, 16), comments })
}

impl Blog {
    fn declare(store: &impl Store) -> Self {
        let schema = Schema::open(store, "blog").unwrap();
        let users = Documents::declare(&schema, "users", 1, |index| {
            index.field("name", Analyzer::simple(), |_, name: &String, add| add(name))
        });
        let users = users.unwrap();
        let (link, rule) = (Link::by_key(), OnParentDelete::Delete);
        let posts = Children::declare(&schema, &users, "posts", 1, link, rule, |index| {
            index.field("text", Analyzer::simple(), |_, post: &Post, add| add(&post.text))
        });
        let posts = posts.unwrap();
        let comments = Nested::declare(
            &schema,
            posts.documents(),
            "comments",
            1,
            |post: &Post| &post.comments,
            |post| &mut post.comments,
            |index| {
                index
                    .field("text", Analyzer::simple(), |_, one: &Comment, add| add(&one.text))
                    .integers("stars", |_, one| Some(one.stars))
            },
        );
        Self { users, posts, comments: comments.unwrap() }
    }

    pub fn loaded(store: &impl Store) -> Self {
        let blog = Self::declare(store);
        let mut random = Rng::with_seed(22);
        let users: Vec<(u32, String)> =
            (0..USERS).map(|user| (user, text(&mut random, 3))).collect();
        store.transact(|txn| blog.users.table().put_many(txn, &users)).unwrap();
        for first in (0..POSTS).step_by(BATCH as usize) {
            let some = (first..first + BATCH).map(|number| post(&mut random, number));
            let some: Vec<(PostKey, Post)> = some.collect();
            store
                .transact(|txn| {
                    some.iter()
                        .try_for_each(|(key, post)| blog.posts.documents().put(txn, key, post))
                })
                .unwrap();
        }
        blog
    }
}
