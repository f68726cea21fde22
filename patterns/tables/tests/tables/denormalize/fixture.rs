//! Posts with the name of their author and the names of mentioned users.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use keyloom::{Reader, Result, Store, Subspace, Writer};
use keyloom_tables::Inconsistency;
use keyloom_tables::Progress;
use keyloom_tables::denormalize::DenormalizedFields;
use keyloom_tables::{Index, IndexEntries, Table, entry};
use serde::{Deserialize, Serialize};

use keyloom_testing::laws::clear;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub name: String,
    /// A field that is not denormalized.
    pub logins: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Post {
    pub author: Option<u16>,
    pub author_name: Option<String>,
    /// The ids of mentioned users, with copies of their names.
    pub mentions: BTreeMap<u16, Option<String>>,
    pub text: String,
}

pub type PostCopies = DenormalizedFields<u16, User, u32, Post>;

#[derive(Clone)]
pub struct Blog {
    /// The users, with both denormalized fields attached.
    pub users: Table<u16, User>,
    pub posts: Table<u32, Post>,
    pub authors: PostCopies,
    pub mentions: PostCopies,
}

impl Blog {
    /// `inline` is the number of posts of a user that are refreshed at once.
    pub fn new(inline: usize) -> Self {
        let space = Subspace::new("blog");
        let users = Table::new(&space.child("users"));
        let by_author = Index::new(&space.child("by_author"), |_, post: &Post| {
            post.author.map_or(IndexEntries::none(), entry)
        });
        let by_mention = Index::new(&space.child("by_mention"), |_, post: &Post| {
            post.mentions.keys().copied().collect()
        });
        // An index on the field is maintained with it.
        let by_name =
            Index::new(&space.child("by_name"), |_, post: &Post| entry(&post.author_name));
        let posts =
            Table::new(&space.child("posts")).with(&by_author).with(&by_mention).with(&by_name);
        let name = |user: &User| user.name.clone();
        let authors = DenormalizedFields::new(
            &space.child("author_names"),
            &users,
            &by_author,
            &posts,
            name,
            |post: &mut Post, _, name| post.author_name = name,
        )
        .inline(inline);
        let mentions = DenormalizedFields::new(
            &space.child("mentioned_names"),
            &users,
            &by_mention,
            &posts,
            name,
            |post: &mut Post, user: &u16, name| drop(post.mentions.insert(*user, name)),
        )
        .inline(inline);
        let users = users.with(&authors).with(&mentions);
        Self { users, posts, authors, mentions }
    }

    pub fn put_user(&self, txn: &mut impl Writer, id: u16, name: &str) -> Result<()> {
        self.users.put(txn, &id, &User { name: name.into(), logins: 0 })
    }

    /// Puts a post with both fields.
    pub fn put_post(&self, txn: &mut impl Writer, id: u32, post: Post) -> Result<()> {
        let mut posts = [(id, post)];
        self.authors.fill(txn, &mut posts)?;
        self.mentions.fill(txn, &mut posts)?;
        self.posts.put_many(txn, posts)
    }

    /// User 1 with `posts` posts.
    pub fn fill(&self, store: &impl Store, posts: u32) {
        clear(store);
        store
            .transact(|txn| {
                self.put_user(txn, 1, "Ada")?;
                self.put_user(txn, 2, "Bob")?;
                let posts = (0..posts).map(|id| (id, of(1)));
                self.authors.put_many(txn, posts)
            })
            .unwrap();
    }

    pub fn names(&self, reader: &impl Reader) -> Vec<Option<String>> {
        let posts = self.posts.range(reader, ..).unwrap();
        posts.map(|post| post.unwrap().1.author_name).collect()
    }

    pub fn stale(&self, reader: &impl Reader) -> Vec<Inconsistency> {
        let mut stale = self.authors.check(reader).unwrap();
        stale.extend(self.mentions.check(reader).unwrap());
        stale
    }
}

pub fn of(author: u16) -> Post {
    Post { author: Some(author), ..Post::default() }
}

pub fn on(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
