//! Ordered key generation, and scans over the keys, in memory, on LMDB and on redb.
#![allow(missing_docs, clippy::unwrap_used)]

use std::num::NonZeroU32;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store, Subspace};
use keyloom_patterns::sequence::{
    IdBlocks, Sequence, Sharded, VersionstampedLog, first_id_at, time_ordered_id,
};
use keyloom_patterns::{AppendLog, TimeBuckets, descending};

const RECORDS: u64 = 50_000;
const EACH_MS: u64 = 60_000;

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let space = Subspace::new("bench");
    let mail = AppendLog::<u32, String>::new(&space.child("mail"));
    let days = TimeBuckets::<u32, String>::daily(&space.child("days"));
    let shards = NonZeroU32::new(8).unwrap();
    let sharded = Sharded::<u32, String>::new(&space.child("sharded"), shards);
    let stamped = VersionstampedLog::<u32, String>::new(&space.child("stamped"));
    let sequence = Sequence::<u32>::new(&space.child("numbers"));
    let blocks = IdBlocks::new(&sequence, 1_000);
    let text = "a message of some forty bytes, more or less".to_owned();
    store
        .transact(|txn| {
            (0..RECORDS).try_for_each(|n| {
                mail.append(txn, &1, &text)?;
                sharded.append(txn, &1, n, &text)?;
                days.put(txn, &1, first_id_at(n * EACH_MS), &text)
            })
        })
        .unwrap();
    let mut group = c.benchmark_group(format!("sequence/{name}"));
    group.bench_function("append", |b| {
        b.iter(|| store.transact(|txn| mail.append(txn, &2, &text)).unwrap());
    });
    let bounded = mail.clone().bounded(100);
    group.bench_function("append, the last 100 kept", |b| {
        b.iter(|| store.transact(|txn| bounded.append(txn, &3, &text)).unwrap());
    });
    group.bench_function("append to a day", |b| {
        b.iter(|| store.transact(|txn| days.append(txn, &2, &text)).unwrap());
    });
    group.bench_function("append under a stamp", |b| {
        b.iter(|| store.transact(|txn| stamped.append(txn, &2, &text)).unwrap());
    });
    group.bench_function("number from a block of 1,000", |b| {
        b.iter(|| blocks.next(store, &1).unwrap());
    });
    group.bench_function("number from the sequence", |b| {
        b.iter(|| store.transact(|txn| sequence.next(txn, &2)).unwrap());
    });
    group.bench_function("time-ordered id", |b| b.iter(time_ordered_id));
    let snapshot = store.snapshot().unwrap();
    group.throughput(Throughput::Elements(50));
    group.bench_function("the newest 50 of 50,000", |b| {
        b.iter(|| {
            let newest = mail.range(&snapshot, &1, descending(..)).unwrap().take(50);
            newest.map(|record| record.unwrap().1.len()).sum::<usize>()
        });
    });
    group.bench_function("50 before a known number", |b| {
        b.iter(|| {
            let back = mail.range(&snapshot, &1, descending(..25_000)).unwrap().take(50);
            back.map(|record| record.unwrap().1.len()).sum::<usize>()
        });
    });
    group.bench_function("50 of each of 8 shards", |b| {
        b.iter(|| {
            let mut seen = Vec::new();
            sharded.read_new(&snapshot, &1, &mut seen, 50).unwrap().len()
        });
    });
    group.throughput(Throughput::Elements(35));
    group.bench_function("the days that there are", |b| {
        b.iter(|| days.buckets(&snapshot, &1).unwrap().len());
    });
    group.finish();
}

fn sequence(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, sequence);
criterion_main!(benches);
