//! Random posts.

use std::collections::BTreeMap;

use keyloom_testing::ids;
use proptest::prelude::*;

use super::blog::{Comment, Post, Reply};

/// Posts by key; the keys share prefixes and suffixes.
pub type Model = BTreeMap<String, Post>;

const NAMES: [&str; 3] = ["ann", "bob", "cy"];
const WORDS: [&str; 4] = ["good", "bad", "long", "short"];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..4).prop_map(|all| all.join(" "))
}

fn reply() -> impl Strategy<Value = Reply> {
    (prop::sample::select(NAMES.to_vec()), 0..3i64)
        .prop_map(|(by, votes)| Reply { by: by.to_owned(), votes })
}

fn comment() -> impl Strategy<Value = Comment> {
    let name = prop::sample::select(NAMES.to_vec());
    let replies = prop::collection::vec(reply(), 0..3);
    (name, text(), 20..24i64, prop::option::of(1..6i64), replies).prop_map(
        |(name, comment, age, stars, replies)| {
            let name = name.to_owned();
            Comment { name, comment, age, stars, date: 20140901 + age, replies }
        },
    )
}

pub fn any_post() -> impl Strategy<Value = Post> {
    let comments = prop::collection::vec(comment(), 0..5);
    (text(), comments).prop_map(|(title, comments)| Post {
        tags: title.split(' ').map(str::to_owned).collect(),
        title,
        comments,
    })
}

/// The number of keys.
pub const KEYS: usize = 6;

/// One step of a history.
#[derive(Clone, Debug)]
pub enum Step {
    Put(String, Post),
    /// Keys may repeat, and may belong to existing documents.
    PutMany(Vec<(String, Post)>),
    Delete(String),
    Push(String, Comment),
    Replace(String, usize, Comment),
    Remove(String, usize),
    Rename(String, String),
}

pub fn history() -> impl Strategy<Value = Vec<Step>> {
    let key = || (0..KEYS).prop_map(ids::text);
    let step = prop_oneof![
        4 => (key(), any_post()).prop_map(|(key, post)| Step::Put(key, post)),
        2 => prop::collection::vec((key(), any_post()), 0..5).prop_map(Step::PutMany),
        1 => key().prop_map(Step::Delete),
        2 => (key(), comment()).prop_map(|(key, comment)| Step::Push(key, comment)),
        2 => (key(), 0..4usize, comment()).prop_map(|(key, n, comment)| Step::Replace(key, n, comment)),
        2 => (key(), 0..4usize).prop_map(|(key, n)| Step::Remove(key, n)),
        1 => (key(), key()).prop_map(|(from, to)| Step::Rename(from, to)),
    ];
    prop::collection::vec(step, 1..12)
}
