//! Integers as bit slices: a million values from 0 to 999,999, uniformly distributed.

use criterion::{Criterion, Throughput};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store, Subspace};
use keyloom_patterns::bitmaps::{BitSliced, BitmapExpr};

const IDS: u64 = 1_000_000;

pub fn integers(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(1 << 30);
    operations(c, "LMDB", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let mut group = c.benchmark_group(format!("integers/{name}"));
    let values = BitSliced::new(&Subspace::new("integers"));
    let few = BitSliced::new(&Subspace::new("few"));
    let mut random = fastrand::Rng::with_seed(1);
    let all: Vec<(u64, i64)> = (0..IDS).map(|id| (id, random.i64(..1_000_000))).collect();
    for some in all.chunks(100_000) {
        store
            .transact(|txn| {
                few.set_many(txn, some.iter().map(|(id, value)| (*id, value % 100)))?;
                values.set_many(txn, some.iter().copied())
            })
            .unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let filter = BitmapExpr::from(roaring::RoaringBitmap::from_iter((0..IDS as u32).step_by(10)));
    group.throughput(Throughput::Elements(IDS));
    for (what, expr) in [
        ("=", values.eq(123_456)),
        ("<", values.lt(123_456)),
        ("between", values.between(123_456..654_321)),
        ("between, of few values", few.between(20..60)),
    ] {
        group.bench_function(what, |b| b.iter(|| expr.count(&snapshot).unwrap()));
    }
    let some = Some(&filter);
    for (of, filter) in [("all", None), ("a tenth", some)] {
        group.bench_function(format!("sum of {of}"), |b| {
            b.iter(|| values.sum(&snapshot, filter).unwrap());
        });
        group.bench_function(format!("largest of {of}"), |b| {
            b.iter(|| values.max(&snapshot, filter).unwrap());
        });
        group.bench_function(format!("top 100 of {of}"), |b| {
            b.iter(|| values.top(&snapshot, filter, 100).unwrap());
        });
        group.bench_function(format!("median of {of}"), |b| {
            b.iter(|| values.percentiles(&snapshot, filter, &[50.0]).unwrap());
        });
        group.bench_function(format!("count by each of 100 values of {of}"), |b| {
            b.iter(|| few.counts_by_value(&snapshot, filter).unwrap());
        });
    }
    group.throughput(Throughput::Elements(1));
    let mut id = 0;
    let mut next = move || {
        id = (id + 7_919) % IDS;
        id
    };
    group.bench_function("get", |b| b.iter(|| values.get(&snapshot, next()).unwrap()));
    drop(snapshot);
    group.bench_function("set", |b| {
        b.iter(|| {
            let id = next();
            store.transact(|txn| values.set(txn, id, id as i64)).unwrap()
        });
    });
    group.finish();
}
