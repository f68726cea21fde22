//! Changes with and without a feed, and consumers, in memory, on LMDB and on redb.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store, Subspace};
use keyloom_patterns::{Feed, Table};

const CHANGES: u64 = 50_000;

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let space = Subspace::new("bench");
    let feed = Feed::<u64, String>::new(&space.child("feed"));
    let plain = Table::<u64, String>::new(&space.child("plain"));
    let table = Table::<u64, String>::new(&space.child("table")).with(&feed);
    let consumer = feed.consumer("bench");
    let text = "a record of some forty bytes, more or less".to_owned();
    let records: Vec<_> = (0..CHANGES).map(|n| (n, text.clone())).collect();
    store
        .transact(|txn| {
            consumer.start(txn, 0)?;
            table.put_many(txn, &records)
        })
        .unwrap();
    let mut group = c.benchmark_group(format!("feed/{name}"));
    for (what, table) in [("put", &plain), ("put with a feed", &table)] {
        let mut n = 0;
        group.bench_function(what, |b| {
            b.iter(|| {
                n += 1;
                store.transact(|txn| table.put(txn, &(n % 1_000), &text)).unwrap();
            });
        });
    }
    group.throughput(Throughput::Elements(100));
    group.bench_function("poll 100 changes", |b| {
        let snapshot = store.snapshot().unwrap();
        b.iter(|| consumer.poll(&snapshot, 100).unwrap());
    });
    group.bench_function("process 100 changes", |b| {
        b.iter(|| {
            store
                .transact(|txn| {
                    consumer.seek(txn, 0)?;
                    consumer.process(txn, 100, |_, _| Ok(()))
                })
                .unwrap()
        });
    });
    group.finish();
}

fn feed(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, feed);
criterion_main!(benches);
