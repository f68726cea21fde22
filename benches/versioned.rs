//! Accepted and rejected changes of one record, in memory, on LMDB and on redb.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store, Subspace};
use keyloom_patterns::{Counters, Table, VersionedTable};

const RECORDS: u32 = 10_000;

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let space = Subspace::new("bench");
    let plain = Table::<u32, String>::new(&space.child("plain"));
    let records = VersionedTable::<u32, String>::new(&space.child("records"));
    let lists = VersionedTable::<u32, Vec<u32>>::new(&space.child("lists"));
    let counters = Counters::<u32>::new(&space.child("counters"));
    let text = "a record of some forty bytes, more or less".to_owned();
    store
        .transact(|txn| {
            (0..RECORDS).try_for_each(|id| {
                plain.put(txn, &id, &text)?;
                records.create(txn, &id, text.clone()).map(drop)
            })
        })
        .unwrap();
    let mut group = c.benchmark_group(format!("versioned/{name}"));
    let mut n = 0;
    let mut next = move || {
        n = (n + 7_919) % RECORDS;
        n
    };
    group.bench_function("put without a version, as a measure", |b| {
        b.iter(|| store.transact(|txn| plain.put(txn, &next(), &text)).unwrap());
    });
    group.bench_function("read, and update that version", |b| {
        b.iter(|| {
            let id = next();
            let seen = records.get(&store.snapshot().unwrap(), &id).unwrap().unwrap();
            let version = seen.version;
            black_box(
                store.transact(|txn| records.update(txn, &id, version, text.clone())).unwrap(),
            )
        });
    });
    group.bench_function("update refused", |b| {
        b.iter(|| store.transact(|txn| records.update(txn, &next(), 0, text.clone())).unwrap_err());
    });
    group.bench_function("modify", |b| {
        b.iter(|| {
            store.transact(|txn| records.modify(txn, &next(), |old| Ok(old.cloned()))).unwrap()
        });
    });
    group.bench_function("append to a list of 100", |b| {
        b.iter(|| store.transact(|txn| lists.append_dropping_oldest(txn, &1, 7, 100)).unwrap());
    });
    group.bench_function("add to a counter", |b| {
        b.iter(|| store.transact(|txn| counters.add(txn, &1, 1)).unwrap());
    });
    group.finish();
}

fn versioned(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, versioned);
criterion_main!(benches);
