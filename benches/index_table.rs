//! Indexes of a schema: kinds of index and their life-cycle steps, over 100,000 records, in memory,
//! on LMDB and on redb.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::ops::ControlFlow;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store, Subspace};
use keyloom_patterns::{Attached, BatchSize, Index, IndexEntries, Schema, Table, entry};
use serde::{Deserialize, Serialize};

const RECORDS: u32 = 100_000;

#[derive(Clone, Serialize, Deserialize)]
struct Person {
    state: u8,
    city: u16,
    name: String,
    email: String,
}

fn person(id: u32) -> Person {
    let spread = id.wrapping_mul(0x9E37_79B9);
    Person {
        state: (spread >> 24) as u8 % 50,
        city: (spread >> 8) as u16 % 20,
        name: format!("person {spread}"),
        email: format!("{spread}@example.org"),
    }
}

struct People {
    table: Table<u32, Person>,
    by_city: Attached<Index<u32, Person, (u8, u16)>>,
    by_email: Attached<Index<u32, Person, String>>,
}

fn by_city(_: &u32, person: &Person) -> IndexEntries<(u8, u16)> {
    entry((person.state, person.city)).covering(&person.name)
}

fn by_email(_: &u32, person: &Person) -> IndexEntries<String> {
    entry(&person.email)
}

impl People {
    fn open(store: &impl Store) -> Self {
        let schema = Schema::open(store, "bench").unwrap();
        let table = schema.table("people").unwrap();
        let by_city = schema.index(&table, "by_city", 1, by_city).unwrap();
        let by_email = schema.unique_index(&table, "by_email", 1, by_email).unwrap();
        Self { table, by_city, by_email }
    }
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let people = People::open(store);
    let records: Vec<_> = (0..RECORDS).map(|id| (id, person(id))).collect();
    BatchSize::new(10_000)
        .transact_all(store, &records, |txn, some| people.table.put_many(txn, some))
        .unwrap();
    let mut group = c.benchmark_group(format!("index_table/{name}"));
    group.sample_size(10).throughput(Throughput::Elements(RECORDS.into()));
    for (name, index) in
        [("by_city", people.by_city.untyped()), ("by_email", people.by_email.untyped())]
    {
        group.bench_function(format!("clear and build {name}"), |b| {
            b.iter(|| {
                store.transact(|txn| index.disable(txn)).unwrap();
                index.build_with(store, 10_000, |_| ControlFlow::Continue(())).unwrap()
            });
        });
    }
    group.sample_size(100);
    queries(&mut group, &people, store);
    puts(&mut group, &people, store);
    group.finish();
}

type Group<'c> = criterion::BenchmarkGroup<'c, criterion::measurement::WallTime>;

fn queries(group: &mut Group<'_>, people: &People, store: &impl Store) {
    let snapshot = store.snapshot().unwrap();
    let by_city = people.by_city.at(&snapshot).unwrap();
    let by_email = people.by_email.at(&snapshot).unwrap();
    group.throughput(Throughput::Elements(by_city.count(&snapshot, (7, 3)).unwrap()));
    group.bench_function("names in a city, covered", |b| {
        b.iter(|| {
            let found = by_city.range(&snapshot, (7, 3)).unwrap();
            found.map(|found| found.unwrap().covered::<&str>().unwrap().len()).sum::<usize>()
        });
    });
    group.bench_function("names in a city, from the records", |b| {
        b.iter(|| {
            let by_city = &people.by_city;
            let found = by_city.query().prefix((7, 3)).limit(1_000).records(&snapshot).unwrap();
            found.items.iter().map(|(_, person)| person.name.len()).sum::<usize>()
        });
    });
    group.throughput(Throughput::Elements(1));
    let mut n = 0;
    group.bench_function("record key by unique value", |b| {
        b.iter(|| {
            n = (n + 7_919) % RECORDS;
            let email = person(n).email;
            black_box(by_email.get(&snapshot, &email).unwrap().unwrap().record_key().unwrap())
        });
    });
}

fn puts(group: &mut Group<'_>, people: &People, store: &impl Store) {
    group.throughput(Throughput::Elements(100));
    // The same with explicit subspaces, outside those of the schema.
    let space = Subspace::new("bench");
    let given = Table::<u32, Person>::new(&space.child("people"))
        .with(&Index::new(&space.child("by_city"), by_city))
        .with(&Index::new(&space.child("by_email"), by_email).unique());
    let all: Vec<_> = (0..RECORDS).map(|id| (id, person(id))).collect();
    BatchSize::new(10_000)
        .transact_all(store, &all, |txn, some| given.put_many(txn, some))
        .unwrap();
    let mut round = 0u32;
    for (what, table) in [("attached", &given), ("of a schema", &people.table)] {
        group.bench_function(format!("100 puts that move nothing, indexes {what}"), |b| {
            b.iter(|| {
                round += 1;
                let ids = (round * 7_919) % (RECORDS - 100)..;
                let put = |id: u32| (id, person(id));
                let some: Vec<_> = ids.take(100).map(put).collect();
                store
                    .transact(|txn| some.iter().try_for_each(|(id, p)| table.put(txn, id, p)))
                    .unwrap();
            });
        });
        group.bench_function(format!("100 puts that move an entry, indexes {what}"), |b| {
            b.iter(|| {
                round += 1;
                let ids = (round * 7_919) % (RECORDS - 100)..;
                let put = |id: u32| (id, Person { city: round as u16 % 20, ..person(id) });
                let some: Vec<_> = ids.take(100).map(put).collect();
                store
                    .transact(|txn| some.iter().try_for_each(|(id, p)| table.put(txn, id, p)))
                    .unwrap();
            });
        });
    }
}

fn index_table(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, index_table);
criterion_main!(benches);
