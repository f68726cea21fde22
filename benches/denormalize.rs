//! Denormalized fields against joins: reading a page, changing a source; in memory, on LMDB and on
//! redb.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::ops::ControlFlow;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Result, Store};
use keyloom_patterns::denormalize::DenormalizedFields;
use keyloom_patterns::join::Joins;
use keyloom_patterns::{Attached, Schema, Table, entry};

const AUTHORS: u32 = 100;
const POSTS: u64 = 100_000;
const PAGE: usize = 20;

/// The id of the author, the copy of the author's name, the text.
type Post = (u32, String, String);

struct Blog {
    users: Table<u32, String>,
    posts: Table<u64, Post>,
    names: Attached<DenormalizedFields<u32, String, u64, Post>>,
}

impl Blog {
    /// Each in its own schema, so that each has its own denormalized fields.
    fn filled(store: &impl Store, name: &str, inline: usize) -> Self {
        let schema = Schema::open(store, name).unwrap();
        let (users, posts) = (schema.table("users").unwrap(), schema.table("posts").unwrap());
        let by_author = |_: &u64, post: &Post| entry(post.0);
        let by_author = schema.index(&posts, "by_author", 1, by_author).unwrap();
        let names = schema.derive(&users, "names", 1, |space| {
            let name = |name: &String| name.clone();
            let set = |post: &mut Post, _: &u32, name: Option<String>| {
                post.1 = name.unwrap_or_default();
            };
            Ok(DenormalizedFields::in_schema(space, &users, &by_author, name, set)?.inline(inline))
        });
        let blog = Self { users, posts, names: names.unwrap() };
        let post =
            |id: u64| (id, (id as u32 % AUTHORS, String::new(), format!("post number {id}")));
        store
            .transact(|txn| {
                blog.users.put_many(txn, (0..AUTHORS).map(|id| (id, format!("user {id}"))))?;
                blog.names.at(txn)?.put_many(txn, (0..POSTS).map(post))
            })
            .unwrap();
        blog
    }
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let Blog { users, posts, names } = Blog::filled(store, "at once", 1_000);
    let deferred = Blog::filled(store, "deferred", 10);
    let bare = Schema::open(store, "bare").unwrap().table::<u32, String>("users").unwrap();

    let mut group = c.benchmark_group(format!("denormalization/{name}"));
    group.throughput(Throughput::Elements(PAGE as u64));
    let snapshot = store.snapshot().unwrap();
    let page = || posts.range(&snapshot, ..).unwrap().take(PAGE);
    group.bench_function("a page with the copies", |b| {
        b.iter(|| black_box(page().collect::<Result<Vec<_>>>().unwrap()));
    });
    group.bench_function("a page with the copies, freshened", |b| {
        b.iter(|| {
            let mut page = page().collect::<Result<Vec<_>>>().unwrap();
            names.at(&snapshot).unwrap().refresh(&snapshot, &mut page).unwrap();
            black_box(page)
        });
    });
    group.bench_function("a page joined", |b| {
        b.iter(|| {
            let joined = page().lookup_join(&snapshot, &users, |(_, post)| post.0);
            black_box(joined.collect::<Result<Vec<_>>>().unwrap())
        });
    });
    drop(snapshot);

    let mut round = 0u64;
    let mut next = move || {
        round += 1;
        ((round % u64::from(AUTHORS)) as u32, format!("name {round}"))
    };
    group.throughput(Throughput::Elements(1));
    group.bench_function("change a source of 1,000 targets, joined", |b| {
        b.iter(|| {
            let (id, name) = next();
            store.transact(|txn| bare.put(txn, &id, &name)).unwrap();
        });
    });
    group.bench_function("change a source of 1,000 targets, at once", |b| {
        b.iter(|| {
            let (id, name) = next();
            store.transact(|txn| users.put(txn, &id, &name)).unwrap();
        });
    });
    group.bench_function("change a source of 1,000 targets, propagated by 100", |b| {
        b.iter(|| {
            let (id, name) = next();
            store.transact(|txn| deferred.users.put(txn, &id, &name)).unwrap();
            let names = deferred.names.at(&store.snapshot().unwrap()).unwrap();
            names.propagate_with(store, 100, |_| ControlFlow::Continue(())).unwrap();
        });
    });
    group.finish();
}

fn denormalization(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, denormalization);
criterion_main!(benches);
