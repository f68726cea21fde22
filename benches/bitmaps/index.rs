//! An index of a hundred thousand visitors, by their properties and by the sites they visited.

use std::hint::black_box;
use std::ops::ControlFlow;

use criterion::{BatchSize as Batches, Criterion, Throughput};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store, Subspace, Writer};
use keyloom_patterns::bitmaps::{InvertedIndex, one};
use keyloom_patterns::{BatchSize, Table};
use serde::{Deserialize, Serialize};

const VISITORS: u32 = 100_000;

#[derive(Clone, Serialize, Deserialize)]
struct Visitor {
    city: u16,
    sites: Vec<u16>,
    is_member: bool,
    cents: i64,
}

fn visitor(id: u32) -> Visitor {
    let spread = id.wrapping_mul(0x9E37_79B9) >> 4;
    Visitor {
        city: (spread % 300) as u16,
        sites: (0..1 + spread % 4)
            .map(|n| (spread.wrapping_mul(n + 1) >> 9) as u16 % 1_000)
            .collect(),
        is_member: spread.is_multiple_of(3),
        cents: i64::from(spread % 50_000),
    }
}

struct Visitors {
    bare: Table<u32, Visitor>,
    index: InvertedIndex<u32, Visitor>,
}

impl Visitors {
    /// With allocated ids, or with keys that are ids.
    fn new(index: InvertedIndex<u32, Visitor>) -> Self {
        let index = index
            .field("city", |_, visitor| one(visitor.city))
            .field("site", |_, visitor| visitor.sites.iter().collect())
            .field("member", |_, visitor| one(visitor.is_member))
            .integers("cents", |_, visitor| Some(visitor.cents));
        Self { bare: Table::new(&Subspace::new("visitors")), index }
    }

    fn table(&self) -> Table<u32, Visitor> {
        self.bare.clone().with(&self.index)
    }

    fn clear(&self, store: &impl Store) {
        store.transact(|txn| txn.delete_range(self.index.space().range())).unwrap();
    }
}

pub fn indexes(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(4 << 30);
    operations(c, "LMDB", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let visitors = Visitors::new(InvertedIndex::new(&Subspace::new("index")));
    let all: Vec<(u32, Visitor)> = (0..VISITORS).map(|id| (id, visitor(id))).collect();
    let load = |table: &Table<u32, Visitor>, some: usize| {
        BatchSize::new(some)
            .transact_all(store, &all, |txn, some| table.put_many(txn, some))
            .unwrap();
    };
    load(&visitors.bare, 100_000);
    let mut group = c.benchmark_group(format!("bitmaps/{name}/load of 100,000"));
    group.sample_size(10).throughput(Throughput::Elements(VISITORS.into()));
    let setup = || visitors.clear(store);
    group.bench_function("build", |b| {
        let table = visitors.table();
        let build = |()| visitors.index.build(store, &table, |_| ControlFlow::Continue(()));
        b.iter_batched(setup, |cleared| build(cleared).unwrap(), Batches::PerIteration);
    });
    for some in [100_000, 1_000] {
        group.bench_function(format!("put_many of {some}"), |b| {
            let table = visitors.table();
            let setup = || {
                visitors.clear(store);
                store.transact(|txn| txn.delete_range(visitors.bare.space().range())).unwrap();
            };
            b.iter_batched(setup, |()| load(&table, some), Batches::PerIteration);
        });
    }
    group.finish();
    changes(c, name, store, &visitors);
    reads(c, name, store, &visitors.index);
}

fn changes(c: &mut Criterion, name: &str, store: &impl Store, visitors: &Visitors) {
    let table = visitors.table();
    let mut group = c.benchmark_group(format!("bitmaps/{name}"));
    let mut id = 0_u32;
    group.bench_function("put one that changes", |b| {
        b.iter(|| {
            id = id.wrapping_add(0x9E37_79B9);
            store.transact(|txn| table.put(txn, &(id % VISITORS), &visitor(id))).unwrap();
        });
    });
    group.bench_function("delete one and put another", |b| {
        b.iter(|| {
            id = id.wrapping_add(0x9E37_79B9);
            let (gone, new) = (id % VISITORS, VISITORS + id % VISITORS);
            store
                .transact(|txn| {
                    table.delete(txn, &gone)?;
                    table.put(txn, &new, &visitor(id))?;
                    table.delete(txn, &new)?;
                    table.put(txn, &gone, &visitor(gone))
                })
                .unwrap();
        });
    });
    group.finish();
}

fn reads(c: &mut Criterion, name: &str, store: &impl Store, index: &InvertedIndex<u32, Visitor>) {
    let snapshot = store.snapshot().unwrap();
    let mut group = c.benchmark_group(format!("bitmaps/{name}"));
    group.bench_function("count of site AND member AND NOT city", |b| {
        let audience = index.term("site", 7_u16).unwrap()
            & (index.term("member", true).unwrap() - index.term("city", 7_u16).unwrap());
        b.iter(|| black_box(audience.count(&snapshot).unwrap()));
    });
    group.bench_function("value_counts of 300 cities", |b| {
        b.iter(|| {
            let counts = index.value_counts::<_, u16, _>(&snapshot, "city", ..);
            black_box(counts.unwrap().map(|count| count.unwrap().1).sum::<u64>())
        });
    });
    group.bench_function("distinct cities", |b| {
        b.iter(|| black_box(index.distinct(&snapshot, "city", ()).unwrap()));
    });
    group.throughput(Throughput::Elements(VISITORS.into()));
    group.bench_function("walk of the forward index", |b| {
        b.iter(|| {
            let all = index.forward_range(&snapshot, ..).unwrap();
            let cities = all.map(|entry| entry.unwrap().1.packed("city").count());
            black_box(cities.sum::<usize>())
        });
    });
    group.finish();
}
