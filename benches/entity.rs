//! Entities of many parts and wide columns, in memory, on LMDB and on redb, compared with a table
//! of whole values.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::value::Json;
use keyloom::{Lmdb, Memory, Store, Subspace};
use keyloom_patterns::entity::wide_column::{NOW, WideColumns};
use keyloom_patterns::{Aggregates, Table};
use serde::{Deserialize, Serialize};

const ENTITIES: u32 = 1_000;

#[derive(Clone, Serialize, Deserialize)]
struct Record {
    title: String,
    year: u16,
    label: Option<String>,
    tracks: Vec<Track>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Track {
    title: String,
    seconds: u32,
}

/// An entity of 35 parts.
fn record() -> Record {
    let track = |n: u32| Track { title: format!("track number {n}"), seconds: 200 + n };
    let tracks = (0..10).map(track).collect();
    Record { title: "a record of ten tracks".into(), year: 1959, label: None, tracks }
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let space = Subspace::new("bench");
    let whole = Table::<u32, Record, Json>::with_codec(&space.child("whole"));
    let parts = Aggregates::<u32>::new(&space.child("parts"));
    let web = WideColumns::<u32>::new(&space.child("web"));
    let record = record();
    store
        .transact(|txn| {
            (0..ENTITIES).try_for_each(|id| {
                whole.put(txn, &id, &record)?;
                parts.put(txn, &id, &record)?;
                (0..10).try_for_each(|time| web.put(txn, &id, "f", "column", time, b"value"))
            })
        })
        .unwrap();
    let mut group = c.benchmark_group(format!("aggregates/{name}"));
    let mut n = 0;
    let mut next = move || {
        n = (n + 379) % ENTITIES;
        n
    };
    let snapshot = store.snapshot().unwrap();
    group.bench_function("read an entity of 35 parts", |b| {
        b.iter(|| parts.get::<Record>(&snapshot, &next()).unwrap().unwrap().tracks.len());
    });
    group.bench_function("the same from a table of JSON", |b| {
        b.iter(|| whole.get(&snapshot, &next()).unwrap().unwrap().tracks.len());
    });
    group.bench_function("read a field", |b| {
        b.iter(|| parts.field::<u16>(&snapshot, &next(), "year").unwrap().unwrap());
    });
    group.bench_function("newest version of ten", |b| {
        b.iter(|| web.get(&snapshot, &next(), "f", "column", NOW).unwrap().unwrap().timestamp);
    });
    group.bench_function("version as of a time", |b| {
        b.iter(|| web.get(&snapshot, &next(), "f", "column", 5).unwrap().unwrap().timestamp);
    });
    drop(snapshot);
    let mut year = 0;
    group.bench_function("set a field", |b| {
        b.iter(|| {
            year += 1;
            store.transact(|txn| parts.set(txn, &next(), "year", &(year % 3_000))).unwrap();
        });
    });
    group.bench_function("update an entity: a field changes", |b| {
        b.iter(|| {
            let change = |record: &mut Record| {
                record.year = record.year % 3_000 + 1;
                Ok(())
            };
            store.transact(|txn| parts.update(txn, &next(), change)).unwrap();
        });
    });
    group.bench_function("the same in a table of JSON", |b| {
        b.iter(|| {
            let id = next();
            store
                .transact(|txn| {
                    let mut record = whole.get(txn, &id)?.unwrap_or_else(|| record.clone());
                    record.year = record.year % 3_000 + 1;
                    whole.put(txn, &id, &record)
                })
                .unwrap();
        });
    });
    group.bench_function("push an item and remove it", |b| {
        b.iter(|| {
            let id = next();
            store
                .transact(|txn| {
                    let position = parts.push(txn, &id, "tracks", &record.tracks.first())?;
                    parts.remove(txn, &id, ("tracks", position))
                })
                .unwrap();
        });
    });
    group.finish();
}

fn aggregates(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, aggregates);
criterion_main!(benches);
