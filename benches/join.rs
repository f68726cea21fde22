//! Joins of a million users and two million posts, on LMDB and on redb.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Reader, Result, Store};
use keyloom_patterns::join::{BuildSide, Joins, KeySet, Lookup};
use keyloom_patterns::{Attached, BatchSize, Index, Schema, Table, entry};

const USERS: u32 = 1_000_000;
const POSTS: u32 = 2_000_000;

/// Two in five users are named John.
fn name(user: u32) -> &'static str {
    ["John", "Mary", "Ada", "John", "Bob"].get(user as usize % 5).copied().unwrap_or_default()
}

struct Blog {
    by_name: Attached<Index<u32, String, String>>,
    users: Table<u32, String>,
    by_author: Attached<Index<u32, (u32, String), u32>>,
    posts: Table<u32, (u32, String)>,
}

impl Blog {
    fn filled(store: &impl Store) -> Self {
        let schema = Schema::open(store, "blog").unwrap();
        let (users, posts) = (schema.table("users").unwrap(), schema.table("posts").unwrap());
        let by_name = schema.index(&users, "by_name", 1, |_, name: &String| entry(name)).unwrap();
        let of = |_: &u32, post: &(u32, String)| entry(post.0);
        let by_author = schema.index(&posts, "by_author", 1, of).unwrap();
        let mut size = BatchSize::new(50_000);
        let ids: Vec<u32> = (0..USERS).collect();
        let user = |id: &u32| (*id, name(*id).to_owned());
        size.transact_all(store, &ids, |txn, ids| users.put_many(txn, ids.iter().map(user)))
            .unwrap();
        let ids: Vec<u32> = (0..POSTS).collect();
        let post = |id: &u32| (*id, (id.wrapping_mul(2_654_435_761) % USERS, format!("post {id}")));
        size.transact_all(store, &ids, |txn, ids| posts.put_many(txn, ids.iter().map(post)))
            .unwrap();
        Self { by_name, users, by_author, posts }
    }

    fn johns<R: Reader>(&self, reader: &R) -> impl Iterator<Item = Result<u32>> {
        let by_name = self.by_name.at(reader).unwrap();
        let johns = by_name.range(reader, "John").unwrap();
        johns.map(|found| found?.record_key())
    }
}

fn count<T>(rows: impl Iterator<Item = Result<T>>) -> usize {
    rows.fold(0, |count, row| {
        black_box(row.unwrap());
        count + 1
    })
}

fn joins(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let blog = Blog::filled(store);
    let snapshot = store.snapshot().unwrap();
    let mut group = c.benchmark_group(format!("joins/{name}"));
    group.sample_size(10).measurement_time(Duration::from_secs(10));

    group.throughput(Throughput::Elements(POSTS.into()));
    group.bench_function("posts of 400,000 Johns, merge join", |b| {
        b.iter(|| {
            let by_author = blog.by_author.at(&snapshot).unwrap();
            let posts = by_author.range(&snapshot, ..).unwrap();
            let posts = posts.map(|found| {
                let found = found?;
                Ok((found.parts()?, found.record_key()?))
            });
            let johns = blog.johns(&snapshot);
            count(johns.merge_join(posts, |user| *user, |(author, _)| *author))
        });
    });
    group.bench_function("posts of 400,000 Johns, semi-join", |b| {
        b.iter(|| {
            let johns = KeySet::read(blog.johns(&snapshot), USERS as usize).unwrap();
            let posts = blog.posts.range(&snapshot, ..).unwrap();
            count(posts.semi_join(&johns, |(_, post)| post.0))
        });
    });
    group.bench_function("posts with their authors, hash join", |b| {
        b.iter(|| {
            let users = blog.users.range(&snapshot, ..).unwrap();
            let users = BuildSide::read(users, USERS as usize).unwrap();
            let posts = blog.posts.range(&snapshot, ..).unwrap();
            count(posts.hash_join(&users, |(_, post)| post.0))
        });
    });
    const SOME: usize = 200_000;
    group.throughput(Throughput::Elements(SOME as u64));
    let posts = || blog.posts.range(&snapshot, ..).unwrap().take(SOME);
    group.bench_function("200,000 posts with their authors, one get each", |b| {
        b.iter(|| {
            count(posts().map(|row| {
                let (id, post) = row?;
                Ok((id, blog.users.get(&snapshot, &post.0)?))
            }))
        });
    });
    for batch in [100, 1_000, 10_000] {
        let name = format!("200,000 posts with their authors, lookup join in batches of {batch}");
        group.bench_function(name, |b| {
            b.iter(|| {
                let lookup = Lookup::new(&blog.users).batch(batch);
                count(posts().lookup_join(&snapshot, lookup, |(_, post)| post.0))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, joins);
criterion_main!(benches);
