//! Reports of audiences of a hundred thousand users, and many audiences in one pass.

use std::hint::black_box;
use std::ops::ControlFlow;

use criterion::{Criterion, Throughput};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Order, Store, Subspace};
use keyloom_patterns::Table;
use keyloom_patterns::bitmaps::{BitmapExpr, InvertedIndex, one};

const USERS: u32 = 100_000;

/// City, categories, cents.
type User = (u16, Vec<u16>, i64);

fn user(id: u32) -> User {
    let spread = id.wrapping_mul(0x9E37_79B9);
    let categories = (0..1 + spread % 6).map(|n| (spread >> (3 * n)) as u16 % 100).collect();
    ((spread >> 22) as u16 % 500, categories, i64::from(spread % 10_000))
}

fn index() -> InvertedIndex<u32, User> {
    InvertedIndex::with_keys_as_ids(&Subspace::new("report index"))
        .field("category", |_id: &u32, user: &User| user.1.iter().collect())
        .field("city", |_, user| one(user.0))
        .integers("cents", |_, user| Some(user.2))
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let index = index();
    let table = Table::<u32, User>::new(&Subspace::new("report users"));
    store.transact(|txn| table.put_many(txn, (0..USERS).map(|id| (id, user(id))))).unwrap();
    index.build(store, &table.with(&index), |_| ControlFlow::Continue(())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut group = c.benchmark_group(format!("report/{name}"));
    let term = |field: &str, value: u16| index.term(field, value).unwrap();
    let audiences = [
        ("200 users", term("city", 7) - term("category", 3)),
        ("20,000 users", BitmapExpr::range(..25_000) - term("category", 3)),
    ];
    for (of, audience) in &audiences {
        group.throughput(Throughput::Elements(audience.count(&snapshot).unwrap()));
        let report = || index.report(audience);
        for (way, report) in [("walked", report().walk()), ("intersected", report().intersect())] {
            group.bench_function(format!("breakdown of {of}, {way}"), |b| {
                b.iter(|| report.breakdown::<u16>(&snapshot, "category").unwrap().rows.len());
            });
            group.bench_function(format!("breakdown of {of} by two fields, {way}"), |b| {
                let by_two = || report.breakdown_by::<(u16, u16)>(&snapshot, &["category", "city"]);
                b.iter(|| by_two().unwrap().rows.len());
            });
            group.bench_function(format!("sums of {of}, {way}"), |b| {
                b.iter(|| report.sums::<u16>(&snapshot, "category", "cents").unwrap().rows.len());
            });
            group.bench_function(format!("sum of {of}, {way}"), |b| {
                b.iter(|| report.sum(&snapshot, "cents").unwrap().sum);
            });
            group.bench_function(format!("percentiles of {of}, {way}"), |b| {
                b.iter(|| report.percentiles(&snapshot, "cents", &[50.0, 95.0]).unwrap());
            });
            group.bench_function(format!("ten largest of {of}, {way}"), |b| {
                let top = || report.ranked(&snapshot, "cents", Order::Descending, 10, None);
                b.iter(|| top().unwrap().items.len());
            });
        }
    }
    group.sample_size(10);
    for count in [1, 1_000] {
        let audience = |n: u16| term("city", n % 500) - term("category", n % 97);
        let audiences: Vec<BitmapExpr> = (0..count).map(audience).collect();
        group.throughput(Throughput::Elements(count.into()));
        group.bench_function(format!("{count} audiences, each by itself"), |b| {
            b.iter(|| audiences.iter().map(|a| a.count(&snapshot).unwrap()).sum::<u64>());
        });
        let batch = index.batch(&audiences).unwrap();
        group.bench_function(format!("{count} audiences, in one pass"), |b| {
            b.iter(|| black_box(batch.counts(&snapshot, |_| ControlFlow::Continue(())).unwrap()));
        });
    }
    group.finish();
}

pub fn reports(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(4 << 30);
    operations(c, "lmdb", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}
