//! Random posts, and groups of their hits by loops.

use keyloom::{Order, Reader, Store, Subspace};
use keyloom_bitmaps::single;
use keyloom_tables::Table;
use keyloom_testing::{ids, laws};
use keyloom_text::{Analyzer, Hit, Query, Search, TextIndex};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Post {
    pub author: Option<String>,
    pub country: u8,
    pub body: String,
    pub date: Option<i64>,
}

pub type Index = TextIndex<u32, Post>;
pub type Posts = Table<u32, Post>;

pub fn index() -> Index {
    TextIndex::with_keys_as_ids(&Subspace::new("text"))
        .field("body", Analyzer::simple(), |_: &u32, post: &Post, add| add(&post.body))
        .single_value("author", |_, post| single(post.author.as_ref()))
        .single_value("country", |_, post| single(post.country))
        .values("words", |_, post| post.body.split(' ').collect())
        .integers("date", |_, post| post.date)
}

pub fn posts(index: &Index) -> Posts {
    Table::new(&Subspace::new("posts")).with(index)
}

/// Either few authors, so that groups have many hits, or many authors.
pub fn some_posts() -> impl Strategy<Value = Vec<Post>> {
    let post = |authors: usize| {
        let author = prop::option::weighted(0.9, (0_usize..authors).prop_map(ids::text));
        let words = prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d"]), 0..7);
        let date = prop::option::weighted(0.8, -3_i64..4);
        (author, 0_u8..3, words, date).prop_map(|(author, country, words, date)| Post {
            author,
            country,
            body: words.join(" "),
            date,
        })
    };
    prop_oneof![2_usize..5, 20_usize..40]
        .prop_flat_map(move |authors| prop::collection::vec(post(authors), 0..90))
}

pub fn stored(store: &impl Store, all: &[Post]) -> Index {
    laws::clear(store);
    let index = index();
    let table = posts(&index);
    store.transact(|txn| table.put_many(txn, (0..).zip(all.iter().cloned()))).unwrap();
    index
}

/// The order of a search: by score, or by a field.
#[derive(Clone, Copy, Debug)]
pub enum By {
    Score,
    Date(Order),
    Key,
}

pub fn an_order() -> impl Strategy<Value = By> {
    let all = vec![By::Score, By::Date(Order::Ascending), By::Date(Order::Descending), By::Key];
    prop::sample::select(all)
}

pub fn search(index: &Index, by: By) -> Search<'_, u32, Post> {
    let term = |word| Query::term("body", word);
    let search = index.search(Query::any_of([term("a"), term("b")]));
    match by {
        By::Score => search,
        By::Date(order) => search.sort_by("date", order),
        By::Key => search.rescore(|key, _| f64::from(key % 7)),
    }
}

/// All hits of a search in its order.
pub fn hits(search: &Search<'_, u32, Post>, reader: &impl Reader) -> Vec<Hit<u32>> {
    search.clone().limit(100_000).hits(reader).unwrap().items
}

/// The hits in groups, by loops.
pub fn grouped<T: PartialEq>(
    hits: &[Hit<u32>],
    value: impl Fn(u32) -> T,
) -> Vec<(T, Vec<Hit<u32>>)> {
    let mut groups: Vec<(T, Vec<Hit<u32>>)> = Vec::new();
    for hit in hits {
        let value = value(hit.key);
        match groups.iter_mut().find(|(other, _)| *other == value) {
            Some((_, hits)) => hits.push(*hit),
            None => groups.push((value, vec![*hit])),
        }
    }
    groups
}

/// The hits of a group in the order of dates.
pub fn by_date(all: &[Post], hits: &[Hit<u32>], order: Order) -> Vec<Hit<u32>> {
    let mut hits = hits.to_vec();
    hits.sort_by_key(|hit| {
        let date = all[hit.key as usize].date;
        let rank = date.map(|date| if order == Order::Descending { -date } else { date });
        (date.is_none(), rank, hit.key)
    });
    hits
}

pub fn keys(hits: &[Hit<u32>]) -> Vec<u32> {
    hits.iter().map(|hit| hit.key).collect()
}
