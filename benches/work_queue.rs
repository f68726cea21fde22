//! The steps of a job in a work queue of 10,000 jobs and 100 tenants, compared with a hand-written
//! queue: two key ranges, without tenants, retries and checks.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::Cell;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Reader, Store, Subspace, Writer};
use keyloom_locking::WorkQueue;
use keyloom_patterns::Schema;

const JOBS: u64 = 10_000;
const TENANTS: u64 = 100;
const PAYLOAD: [u8; 32] = [0x2A; 32];

type Job = Vec<u8>;

/// The three steps of a job, each in its own transaction.
trait Queue {
    type Delivery;
    fn enqueue(&self, n: u64);
    fn dequeue(&self) -> Self::Delivery;
    fn complete(&self, delivery: Self::Delivery);
}

struct Keyloom<'s, S> {
    store: &'s S,
    queue: WorkQueue<Job>,
}

impl<S: Store> Queue for Keyloom<'_, S> {
    type Delivery = keyloom_locking::queue::Delivery<Job>;

    fn enqueue(&self, n: u64) {
        let tenant = format!("tenant {}", n % TENANTS);
        let add = |txn: &mut S::Transaction<'_>| {
            self.queue.enqueue(txn, (tenant.as_str(), PAYLOAD.to_vec()))
        };
        self.store.transact(add).unwrap();
    }

    fn dequeue(&self) -> Self::Delivery {
        self.queue.dequeue(self.store, 1).unwrap().pop().unwrap()
    }

    fn complete(&self, delivery: Self::Delivery) {
        self.store.transact(|txn| self.queue.complete(txn, &delivery)).unwrap();
    }
}

struct ByHand<'s, S> {
    store: &'s S,
    waiting: Subspace,
    leased: Subspace,
    next: Cell<u64>,
}

impl<S: Store> Queue for ByHand<'_, S> {
    type Delivery = Vec<u8>;

    fn enqueue(&self, _: u64) {
        let n = self.next.replace(self.next.get() + 1);
        self.store.transact(|txn| txn.put(&self.waiting.pack(&n), &PAYLOAD)).unwrap();
    }

    fn dequeue(&self) -> Vec<u8> {
        let lease = |txn: &mut S::Transaction<'_>| {
            let first = txn.first(self.waiting.range())?;
            let (key, value) = first.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap();
            let n: u64 = self.waiting.unpack(&key)?;
            let leased = self.leased.pack(&n).to_vec();
            txn.delete(&key)?;
            txn.put(&leased, &value)?;
            Ok(leased)
        };
        self.store.transact(lease).unwrap()
    }

    fn complete(&self, leased: Vec<u8>) {
        let complete = |txn: &mut S::Transaction<'_>| {
            assert!(txn.get(&leased)?.is_some());
            txn.delete(&leased)
        };
        self.store.transact(complete).unwrap();
    }
}

/// Measures each step of a cycle that keeps the length of the queue constant.
fn steps(c: &mut Criterion, name: &str, queue: &impl Queue) {
    (0..JOBS).for_each(|n| queue.enqueue(n));
    let mut group = c.benchmark_group(format!("work queue/{name}"));
    let mut n = 0;
    for (step, timed) in ["enqueue", "dequeue", "complete"].into_iter().zip(0..) {
        group.bench_function(step, |b| {
            b.iter_custom(|cycles| {
                let mut time = [Duration::ZERO; 3];
                for _ in 0..cycles {
                    n += 1;
                    let begun = Instant::now();
                    queue.enqueue(n);
                    let enqueued = Instant::now();
                    let delivery = queue.dequeue();
                    let dequeued = Instant::now();
                    queue.complete(delivery);
                    time[0] += enqueued - begun;
                    time[1] += dequeued - enqueued;
                    time[2] += dequeued.elapsed();
                }
                time[timed]
            });
        });
    }
    group.finish();
}

fn both(c: &mut Criterion, name: &str, store: &impl Store) {
    let schema = Schema::open(store, "bench").unwrap();
    let queue = WorkQueue::<Job>::open(&schema, "jobs").unwrap();
    steps(c, name, &Keyloom { store, queue });
    let [waiting, leased] = ["waiting", "leased"].map(|part| Subspace::new(&("by hand", part)));
    steps(c, &format!("{name}, by hand"), &ByHand { store, waiting, leased, next: Cell::new(0) });
}

fn work_queue(c: &mut Criterion) {
    both(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    both(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    both(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, work_queue);
criterion_main!(benches);
