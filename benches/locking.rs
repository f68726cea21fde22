//! Acquires and releases free locks, in memory, on LMDB and on redb, compared with a key that is
//! written and deleted by hand.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Store, Writer};
use keyloom_patterns::Schema;
use keyloom_patterns::locking::{LeaseOptions, Lock, LockPath, Locks, RateLimit, Session};

/// Number of locks that another owner holds meanwhile.
const OTHERS: u32 = 10_000;
const HOUR: Duration = Duration::from_secs(3_600);

fn operations<S: Store + Clone>(c: &mut Criterion, name: &str, store: &S) {
    let locks = Locks::open(&Schema::open(store, "bench").unwrap(), "locks").unwrap();
    let documents = LockPath::of(["documents"]);
    let other = LeaseOptions { lease: HOUR * 24, ..LeaseOptions::default() };
    let other = store.transact(|txn| locks.begin_session(txn, "other", &other)).unwrap();
    for first in (0..OTHERS).step_by(1_000) {
        let all: Vec<_> =
            (first..first + 1_000).map(|n| Lock::shared(documents.clone().child(n))).collect();
        store.transact(|txn| locks.try_lock(txn, other, &all)).unwrap();
    }
    let session = Session::begin(store, &locks, "bench").unwrap();
    let mut group = c.benchmark_group(format!("locking/{name}"));
    group.bench_function("a key put and deleted by hand, as a measure", |b| {
        b.iter(|| {
            store.transact(|txn| txn.put(b"lock", b"held")).unwrap();
            store.transact(|txn| txn.delete(b"lock")).unwrap();
        });
    });
    let mut n = OTHERS;
    group.bench_function("a document locked and released", |b| {
        b.iter(|| {
            n += 1;
            let lock = [Lock::exclusive(documents.clone().child(n))];
            session.lock(&lock).unwrap().release().unwrap();
        });
    });
    let schema = Schema::open(store, "rates").unwrap();
    let permits = RateLimit::<u32>::open(&schema, "permits", u32::MAX, HOUR * 24).unwrap();
    group.bench_function("a permit of a rate limit taken", |b| {
        b.iter(|| store.transact(|txn| permits.take(txn, &7, 1)).unwrap());
    });
    let deep = [Lock::exclusive(LockPath::of(["a", "b", "c", "d"]))];
    group.bench_function("a path of four names locked and released", |b| {
        b.iter(|| session.lock(&deep).unwrap().release().unwrap());
    });
    let root = [Lock::exclusive(LockPath::root())];
    group.bench_function("everything, refused", |b| {
        b.iter(|| session.try_lock(&root).unwrap_err());
    });
    let guard = session.lock(&deep).unwrap();
    group.bench_function("a write without a lock", |b| {
        b.iter(|| store.transact(|txn| txn.put(b"data", b"written")).unwrap());
    });
    group.bench_function("a write under a lock", |b| {
        b.iter(|| guard.transact(|txn| txn.put(b"data", b"written")).unwrap());
    });
    group.finish();
}

fn locking(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, locking);
criterion_main!(benches);
