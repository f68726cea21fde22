//! The composite-key index on a table of 100,000 records, in memory, on LMDB and on redb.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store};
use keyloom_patterns::{Schema, entry};
use serde::{Deserialize, Serialize};

const RECORDS: u32 = 100_000;

#[derive(Clone, Serialize, Deserialize)]
struct Person {
    state: u8,
    city: u16,
    name: String,
}

fn person(id: u32) -> Person {
    let spread = id.wrapping_mul(0x9E37_79B9);
    Person {
        state: (spread >> 24) as u8 % 50,
        city: (spread >> 8) as u16 % 20,
        name: format!("person {spread}"),
    }
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let schema = Schema::open(store, "bench").unwrap();
    let people = schema.table::<u32, Person>("people").unwrap();
    let by_city =
        schema.index(&people, "by_city", 1, |_, p| entry((p.state, p.city, &p.name))).unwrap();
    store
        .transact(|txn| (0..RECORDS).try_for_each(|id| people.put(txn, &id, &person(id))))
        .unwrap();
    let mut group = c.benchmark_group(format!("index/{name}"));
    let mut n = 0;
    let mut next = move || {
        n = (n + 7_919) % RECORDS;
        n
    };
    let snapshot = store.snapshot().unwrap();
    let in_city = by_city.query().prefix((7, 3)).count(&snapshot).unwrap();
    group.throughput(Throughput::Elements(in_city));
    group.bench_function("entries of a city", |b| {
        b.iter(|| {
            let by_city = by_city.at(&snapshot).unwrap();
            let found = by_city.range(&snapshot, (7, 3)).unwrap();
            found.map(|found| found.unwrap().record_key().unwrap()).fold(0, u32::wrapping_add)
        });
    });
    group.bench_function("records of a city", |b| {
        b.iter(|| {
            let page = by_city.query().prefix((7, 3)).limit(1_000).records(&snapshot).unwrap();
            black_box(page.items.len())
        });
    });
    drop(snapshot);
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 puts that move nothing", |b| {
        b.iter(|| {
            let from = next();
            store
                .transact(|txn| {
                    (from..from + 100)
                        .try_for_each(|id| people.put(txn, &(id % RECORDS), &person(id % RECORDS)))
                })
                .unwrap();
        });
    });
    let batches: Vec<Vec<(u32, Person)>> = (0..RECORDS)
        .step_by(100)
        .map(|from| (from..from + 100).map(|id| (id, person(id))).collect())
        .collect();
    group.bench_function("put_many of 100 that move nothing", |b| {
        b.iter(|| {
            let batch = &batches[next() as usize % batches.len()];
            store.transact(|txn| people.put_many(txn, batch)).unwrap();
        });
    });
    let mut round = 0u32;
    group.bench_function("100 puts that move an entry", |b| {
        b.iter(|| {
            round += 1;
            let from = next();
            store
                .transact(|txn| {
                    (from..from + 100).try_for_each(|id| {
                        let moved =
                            Person { name: format!("moved {round}"), ..person(id % RECORDS) };
                        people.put(txn, &(id % RECORDS), &moved)
                    })
                })
                .unwrap();
        });
    });
    group.finish();
}

fn index(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, index);
criterion_main!(benches);
