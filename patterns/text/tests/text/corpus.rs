//! Random documents, and their terms computed without the crate.

use std::collections::BTreeMap;

use keyloom::{Store, Subspace};
use keyloom_bitmaps::one;
use keyloom_tables::Table;
use keyloom_testing::ids::number;
use keyloom_text::{Analyzer, Detail, TextIndex};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Post {
    pub title: String,
    pub body: Vec<String>,
    pub year: i64,
}

pub type Index = TextIndex<u32, Post>;
pub type Posts = Table<u32, Post>;
pub type Model = BTreeMap<u32, Post>;

pub const FIELDS: [&str; 3] = ["title", "body", "tags"];

/// Three fields: two with positions, and one with frequencies only.
pub fn with_fields(index: Index) -> Index {
    index
        .field("title", Analyzer::simple(), |_, post: &Post, add| add(&post.title))
        .field("body", Analyzer::simple(), |_, post: &Post, add| {
            post.body.iter().for_each(|text| add(text))
        })
        .field_with("tags", Detail::Frequencies, Analyzer::simple(), |_, post: &Post, add| {
            add(&post.title)
        })
        .values("title", |_, post: &Post| one(&post.title))
        .integers("year", |_, post: &Post| Some(post.year))
}

pub fn index(has_dense_ids: bool) -> Index {
    let space = Subspace::new("text");
    with_fields(if has_dense_ids {
        TextIndex::new(&space)
    } else {
        TextIndex::with_keys_as_ids(&space)
    })
}

pub fn posts(index: &Index) -> Posts {
    Table::new(&Subspace::new("posts")).with(index)
}

/// Words of a skewed distribution: `w0` is in most texts.
pub fn words(random: &mut fastrand::Rng, vocabulary: u32, most: usize) -> String {
    let word = |random: &mut fastrand::Rng| {
        let below = random.u32(1..=vocabulary);
        format!("w{}", random.u32(0..below).min(random.u32(0..below)))
    };
    let many = random.usize(0..=most);
    (0..many).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

pub fn post(random: &mut fastrand::Rng) -> Post {
    let (title, values) = (words(random, 6, 4), random.usize(0..3));
    let body = (0..values).map(|_| words(random, 60, 14)).collect();
    Post { title, body, year: random.i64(1990..2030) }
}

/// The tokens of a field: terms with positions, in text order.
pub fn tokens(post: &Post, field: &str) -> Vec<(String, u32)> {
    let (mut tokens, mut position) = (Vec::new(), 0);
    let texts = match field {
        "body" => post.body.clone(),
        _ => vec![post.title.clone()],
    };
    for text in texts {
        let mut next = position;
        for (n, word) in text.split(' ').filter(|word| !word.is_empty()).enumerate() {
            tokens.push((word.to_owned(), position + n as u32));
            next = position + n as u32 + 1;
        }
        position = next + 100;
    }
    tokens
}

/// The key of the `n`-th record. Ids are below `u32::MAX`, including keys that are ids.
pub fn key(n: u32) -> u32 {
    (number(n.into()) as u32).min(u32::MAX - 1)
}

/// Random puts and deletes, some in batches.
pub fn history(random: &mut fastrand::Rng, store: &impl Store, posts: &Posts, docs: u32) -> Model {
    let mut model = Model::new();
    for _ in 0..random.usize(3..12) {
        let many = if random.u8(0..4) == 0 { random.u32(0..docs) } else { random.u32(0..4) };
        let first = random.u32(0..docs);
        let is_delete = random.u8(0..3) == 0;
        let ids: Vec<u32> = (0..many).map(|n| key((first + n * 3) % docs)).collect();
        let batch: BTreeMap<u32, Post> = ids.iter().map(|id| (*id, post(random))).collect();
        store
            .transact(|txn| match is_delete {
                true => ids.iter().try_for_each(|id| posts.delete(txn, id).map(drop)),
                false => posts.put_many(txn, batch.clone()),
            })
            .unwrap();
        match is_delete {
            true => ids.iter().for_each(|id| drop(model.remove(id))),
            false => model.extend(batch),
        }
    }
    model
}
