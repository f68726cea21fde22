//! The non-transactional index, compared with the transactional one, in memory, on LMDB and on
//! redb.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store, Subspace};
use keyloom_patterns::property_index::{PropertyIndex, Stamps};
use keyloom_patterns::{Index, Table, entry};

const ITEMS: u32 = 20_000;
const VALUES: u32 = 200;

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let space = Subspace::new("bench");
    let by_value = Index::new(&space.child("by_value"), |_, value: &u32| entry(value));
    let table = Table::<u32, u32>::new(&space.child("items")).with(&by_value);
    let property = PropertyIndex::<u8, u32, u32>::new(&space.child("property"));
    let mut stamps = Stamps::new(1);
    store.transact(|txn| table.put_many(txn, (0..ITEMS).map(|id| (id, id % VALUES)))).unwrap();
    for item in 0..ITEMS {
        property.set(store, &mut stamps, &1, &item, &(item % VALUES)).unwrap();
    }
    let mut group = c.benchmark_group(format!("property_index/{name}"));
    let snapshot = store.snapshot().unwrap();
    group.throughput(Throughput::Elements(u64::from(ITEMS / VALUES)));
    group.bench_function("find 100 items, Index", |b| {
        b.iter(|| {
            let found = by_value.range(&snapshot, 7).unwrap();
            found.map(|found| found.unwrap().record_key().unwrap()).fold(0, u32::wrapping_add)
        });
    });
    group.bench_function("find 100 items, PropertyIndex", |b| {
        b.iter(|| {
            let found = property.items_with(&snapshot, &1, 7).unwrap();
            found.map(|found| found.unwrap().1).fold(0, u32::wrapping_add)
        });
    });
    drop(snapshot);
    // The values that the queries above use keep their number, but move to other records.
    let mut round = 0;
    let mut next = move || {
        round += 1;
        (round % ITEMS, (round + round / ITEMS) % VALUES)
    };
    group.throughput(Throughput::Elements(1));
    group.bench_function("change a value, Index", |b| {
        b.iter(|| {
            let (item, value) = next();
            store.transact(|txn| table.put(txn, &item, &value)).unwrap();
        });
    });
    group.bench_function("change a value, PropertyIndex", |b| {
        b.iter(|| {
            let (item, value) = next();
            property.set(store, &mut stamps, &1, &item, &value).unwrap();
        });
    });
    group.finish();
}

fn property_index(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, property_index);
criterion_main!(benches);
