//! A set of a million ids below ten million.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Order, Store, Subspace};
use keyloom_patterns::bitmaps::Bitmap;
use keyloom_patterns::in_order;
use roaring::RoaringBitmap;

const UNIVERSE: u64 = 10_000_000;
const IDS: u64 = 1_000_000;

pub fn bitmaps(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(1 << 30);
    operations(c, "LMDB", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

/// Pseudo-random numbers, the same in each run.
fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0x9E37_79B9_7F4A_7C15_u64), |number| {
        Some(number.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(0x2545_F491_4F6C_DD1D))
    })
    .map(|number| (number >> 33) % UNIVERSE)
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let bitmap = Bitmap::new(&Subspace::new("bitmap")).within_universe(UNIVERSE);
    let ids: RoaringBitmap = numbers().take(IDS as usize).map(|id| id as u32).collect();
    store.transact(|txn| bitmap.replace_with_roaring(txn, &ids)).unwrap();
    reads(c, name, store, &bitmap);
    let mut numbers = numbers().skip(IDS as usize);
    let mut group = c.benchmark_group(format!("bitmaps/{name}"));
    group.bench_function("insert or remove one", |b| {
        b.iter(|| {
            let id = numbers.next().unwrap();
            store.transact(|txn| Ok(bitmap.insert(txn, id)? || bitmap.remove(txn, id)?)).unwrap();
        });
    });
    group.throughput(Throughput::Elements(1_000));
    group.bench_function("insert_many of 1,000 and remove_many", |b| {
        b.iter(|| {
            let some: Vec<u64> = numbers.by_ref().take(1_000).collect();
            store.transact(|txn| bitmap.insert_many(txn, some.iter().copied())).unwrap();
            store.transact(|txn| bitmap.remove_many(txn, some.iter().copied())).unwrap();
        });
    });
    group.throughput(Throughput::Elements(ids.len()));
    group.bench_function("replace", |b| {
        b.iter(|| store.transact(|txn| bitmap.replace_with_roaring(txn, &ids)).unwrap());
    });
    group.finish();
}

fn reads(c: &mut Criterion, name: &str, store: &impl Store, bitmap: &Bitmap) {
    let snapshot = store.snapshot().unwrap();
    let mut numbers = numbers();
    let mut group = c.benchmark_group(format!("bitmaps/{name}"));
    group.bench_function("contains", |b| {
        b.iter(|| bitmap.contains(&snapshot, numbers.next().unwrap()).unwrap());
    });
    group.bench_function("rank", |b| {
        b.iter(|| bitmap.rank(&snapshot, numbers.next().unwrap()).unwrap());
    });
    group.bench_function("select", |b| {
        b.iter(|| bitmap.select(&snapshot, numbers.next().unwrap() / 11).unwrap());
    });
    group.bench_function("page of 100", |b| {
        b.iter(|| {
            let from = numbers.next().unwrap();
            black_box(bitmap.page(&snapshot, from.., 100, None).unwrap())
        });
    });
    group.throughput(Throughput::Elements(bitmap.len(&snapshot).unwrap()));
    group.bench_function("len", |b| b.iter(|| bitmap.len(&snapshot).unwrap()));
    for (order, name) in [(Order::Ascending, "ids"), (Order::Descending, "ids, descending")] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let ids = bitmap.ids(&snapshot, in_order(.., order)).unwrap();
                ids.fold(0, |sum: u64, id| sum.wrapping_add(id.unwrap()))
            });
        });
    }
    group.bench_function("to_roaring", |b| {
        b.iter(|| black_box(bitmap.to_roaring(&snapshot).unwrap()));
    });
    group.finish();
}
