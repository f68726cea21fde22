//! The stores alone. For the comparison with raw heed and `BTreeMap`, in turns: `cargo bench -p
//! keyloom-compare --bench store`.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{KeyRange, Lmdb, Memory, Order, Reader, Store, Writer};

const RECORDS: u64 = 100_000;
const VALUE: [u8; 100] = [0x2A; 100];

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let put = |from: u64, count: u64| {
        store.transact(|txn| (from..from + count).try_for_each(|n| txn.put(&key(n), &VALUE)))
    };
    put(0, RECORDS).unwrap();
    let mut group = c.benchmark_group(format!("store/{name}"));
    let mut n = 0;
    let mut next = move || {
        n = (n + 7_919) % RECORDS;
        n
    };
    group.throughput(Throughput::Elements(1));
    group.bench_function("snapshot", |b| b.iter(|| drop(black_box(store.snapshot().unwrap()))));
    let snapshot = store.snapshot().unwrap();
    group.bench_function("get", |b| {
        b.iter(|| black_box(snapshot.get(&key(next())).unwrap().unwrap()[0]));
    });
    group.bench_function("seek", |b| {
        b.iter(|| {
            let start = key(next());
            black_box(snapshot.first(KeyRange::starting_at(&start)).unwrap().unwrap().1[0])
        });
    });
    group.throughput(Throughput::Elements(RECORDS));
    for order in [Order::Ascending, Order::Descending] {
        group.bench_function(format!("scan {order:?}"), |b| {
            b.iter(|| {
                let entries = snapshot.range(KeyRange::all(), order).unwrap();
                entries.map(|entry| u64::from(entry.unwrap().1[0])).sum::<u64>()
            });
        });
    }
    drop(snapshot);
    for batch in [1, 100] {
        group.throughput(Throughput::Elements(batch));
        let id = format!("transaction of {batch} puts");
        group.bench_function(id, |b| b.iter(|| put(next(), batch).unwrap()));
    }
    group.finish();
}

fn store(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    operations(c, "memory optimistic", &Memory::builder().optimistic(true).build());
    for durability in [Durability::MayLoseStore, Durability::Full] {
        let directory = tempfile::tempdir().unwrap();
        let lmdb = Lmdb::options().durability(durability).open(directory.path()).unwrap();
        operations(c, &format!("LMDB {durability:?}"), &lmdb);
    }
    use keyloom_redb::{Durability as OfRedb, Redb};
    for durability in [OfRedb::MayLoseCommits, OfRedb::Full] {
        let directory = tempfile::tempdir().unwrap();
        let options = Redb::options().durability(durability);
        let redb = options.open(directory.path().join("redb")).unwrap();
        operations(c, &format!("redb {durability:?}"), &redb);
    }
}

criterion_group!(benches, store);
criterion_main!(benches);
