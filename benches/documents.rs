//! Documents: steps between parents and children, nested elements, groups of results, and a JSON
//! collection, in memory, on LMDB and on redb.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "documents/blog.rs"]
mod blog;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use keyloom::{AnyStore, Lmdb, Memory, Store};
use keyloom_patterns::documents::collapse::{Collapse, InnerHits};
use keyloom_patterns::documents::json::Collection;
use keyloom_patterns::documents::{Matches, PARENT, ScoreMode, TermsLookup};
use keyloom_patterns::text::Query;
use keyloom_patterns::{Schema, bitmaps::BitmapExpr};
use serde_json::{Value, json};

use blog::Blog;

/// The number of JSON documents.
const ORDERS: u32 = 10_000;

fn searches(c: &mut Criterion, name: &str, store: &impl Store) {
    let blog = Blog::loaded(store);
    let snapshot = store.snapshot().unwrap();
    let mut group = c.benchmark_group(format!("documents/{name}"));
    let comments = blog.comments.at(&snapshot).unwrap();
    let stars = comments.records().integers_of("stars").unwrap().ge(4);
    let nested = || {
        let search = comments.search(Query::term("text", "w40")).filter(stars.clone());
        let found = Matches::of(comments, &search, &snapshot).unwrap();
        blog.comments.to_parents(&snapshot, &found, ScoreMode::Average).unwrap()
    };
    assert!(!nested().is_empty());
    group.bench_function("posts with a comment of a word and 4 stars", |b| {
        b.iter(|| black_box(nested().len()));
    });
    let has_child = || {
        let posts = blog.posts.matches(&snapshot, Query::term("text", "w40")).unwrap();
        blog.posts.to_parents_with(&snapshot, &posts, ScoreMode::Sum, 2..).unwrap()
    };
    assert!(!has_child().is_empty());
    group.bench_function("users with two posts of a word", |b| {
        b.iter(|| black_box(has_child().len()));
    });
    let users = blog.users.text().at(&snapshot).unwrap();
    let posts = blog.posts.at(&snapshot).unwrap();
    let look_up = || -> BitmapExpr {
        let search = users.search(Query::term("name", "w40"));
        let found = Matches::of(users, &search, &snapshot).unwrap();
        TermsLookup::new(users, posts, PARENT).records_of(&snapshot, &found).unwrap().filter()
    };
    let search = posts.search(Query::term("text", "w3"));
    let filtered = || search.clone().filter(look_up()).hits(&snapshot).unwrap().items;
    assert!(!filtered().is_empty());
    group.bench_function("top 10 posts of the users of a query", |b| {
        b.iter(|| black_box(filtered().len()));
    });
    for word in ["w3", "w400"] {
        let search = posts.search(Query::term("text", word));
        let collapse = Collapse::new(search.clone(), PARENT).inner(InnerHits::first(3));
        group.bench_function(format!("top 10 posts of {word}"), |b| {
            b.iter(|| black_box(search.hits(&snapshot).unwrap().items.len()));
        });
        group.bench_function(format!("top 10 users of {word} with 3 posts each"), |b| {
            b.iter(|| black_box(collapse.page(&snapshot).unwrap().items.len()));
        });
    }
}

fn order(n: u32) -> Value {
    json!({ "address": { "city": format!("city {}", n % 1_000) }, "items": [{ "sku": n % 500 }] })
}

fn json_documents(c: &mut Criterion, name: &str, store: &impl Store) {
    let schema = Schema::open(store, "shop").unwrap();
    let orders = Collection::<u32>::open(&schema, "orders").unwrap();
    let orders = orders.with_index(&schema, ["address.city"]).unwrap();
    let orders = orders.with_index(&schema, ["items[].sku"]).unwrap();
    let all = (0..ORDERS).map(|n| (n, order(n)));
    store.transact(|txn| orders.put_many(txn, all.clone())).unwrap();
    let mut group = c.benchmark_group(format!("documents/{name}"));
    let mut n = 0;
    let mut key = || {
        n = (n + 7_919) % ORDERS;
        n
    };
    let snapshot = store.snapshot().unwrap();
    group.bench_function("JSON documents of a path", |b| {
        b.iter(|| {
            let query = orders.find(["address.city"]).unwrap();
            let query = query.equal(format!("city {}", key() % 1_000));
            black_box(query.page(&snapshot).unwrap().items.len())
        });
    });
    drop(snapshot);
    let mut round = 0;
    group.bench_function("a path of a JSON document updated", |b| {
        b.iter(|| {
            round += 1;
            let patch = json!({ "address": { "city": format!("city {}", round % 1_000) } });
            store.transact(|txn| orders.merge(txn, &key(), &patch)).unwrap()
        });
    });
}

fn documents(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(keyloom::lmdb::Durability::MayLoseStore);
    let stores: [(&str, AnyStore); 3] = [
        ("memory", Memory::new().into()),
        ("LMDB MayLoseStore", options.open(directory.path().join("lmdb")).unwrap().into()),
        (keyloom_benches::REDB, AnyStore::other("redb:", keyloom_benches::redb(&directory))),
    ];
    for (name, store) in stores {
        searches(c, name, &store);
        json_documents(c, name, &store);
    }
}

criterion_group!(benches, documents);
criterion_main!(benches);
