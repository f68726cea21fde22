//! 16 producers and 16 consumers: no job is lost, and no job is done twice.
//!
//! A consumer writes the result of a job, a counter, in the transaction that completes the job. A
//! consumer may pause for longer than its lease: the clock advances, and other consumers get its
//! jobs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use keyloom::{AnyStore, DynWriter, Fault, Faulty, Reader, Result, Store, Subspace, Writer};
use keyloom_locking::queue::{Delivery, NewJob, QueueOptions};
use keyloom_locking::{ManualClock, WorkQueue};
use keyloom_testing::ids::text;
use keyloom_testing::{TemporaryLmdb, memory};

use super::{START, VISIBILITY, open_with, options};

const THREADS: u32 = 16;
const JOBS: u32 = 20;

/// How a consumer leases and completes jobs.
#[derive(Clone, Copy)]
struct Consumer {
    complete: fn(&WorkQueue<u32>, &mut DynWriter<'_>, &Delivery<u32>) -> Result<()>,
    /// Removes the jobs on delivery, like a queue without leases.
    forgets: bool,
}

const CORRECT: Consumer =
    Consumer { complete: |queue, txn, one| queue.complete(txn, one), forgets: false };

/// A mutant whose answers do not check the token.
const UNCHECKED: Consumer =
    Consumer { complete: |queue, txn, one| queue.delete(txn, one.id).map(drop), forgets: false };

/// A mutant that delivers at most once.
const FORGETFUL: Consumer = Consumer { complete: |_, _, _| Ok(()), forgets: true };

struct Campaign {
    store: Faulty<AnyStore>,
    queue: WorkQueue<u32>,
    clock: ManualClock,
    has_faults: bool,
    consumer: Consumer,
    produced: AtomicU32,
    /// Counts the rounds of all consumers, so that a control that loses jobs ends.
    rounds: AtomicU32,
}

/// Whether the error is a conflict or an injected fault.
fn is_expected(error: &keyloom::Error) -> bool {
    let text = error.to_string();
    text.contains("made to fail") || text.contains("is stale") || text.contains("conflict")
}

impl Campaign {
    fn results() -> Subspace {
        Subspace::new("results")
    }

    /// Makes a later operation fail, with a random kind of fault.
    fn disturb(&self) {
        if self.has_faults && fastrand::u8(..3) == 0 {
            let kinds =
                [Fault::Error, Fault::Conflict, Fault::UnknownAndLost, Fault::UnknownButCommitted];
            self.store.fail_at(fastrand::u64(..40), kinds[fastrand::usize(..4)]);
        }
    }

    fn produce(&self, thread: u32) {
        for n in thread * JOBS..(thread + 1) * JOBS {
            // The key makes the retry of an enqueue idempotent.
            let job = NewJob::new(text(n as usize % 5), n).key(text(n as usize));
            loop {
                self.disturb();
                match self.store.transact(|txn| self.queue.enqueue(txn, job.clone())) {
                    Ok(_) => break,
                    Err(error) => assert!(is_expected(&error), "{error}"),
                }
            }
        }
        self.produced.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether all jobs are done, or the maximum number of rounds is reached.
    fn is_over(&self) -> bool {
        let is_produced = self.produced.load(Ordering::SeqCst) == THREADS;
        let snapshot = self.store.inner().snapshot().unwrap();
        let counts = self.queue.counts(&snapshot, None).unwrap();
        let is_empty = counts == Default::default();
        (is_produced && is_empty) || self.rounds.fetch_add(1, Ordering::SeqCst) > 20_000
    }

    fn consume(&self) {
        loop {
            self.disturb();
            let delivered = match self.queue.dequeue(&self.store, fastrand::usize(1..5)) {
                Ok(delivered) => delivered,
                Err(error) => {
                    assert!(is_expected(&error), "{error}");
                    continue;
                }
            };
            if delivered.is_empty() {
                // Leases and pauses end.
                self.clock.advance(Duration::from_secs(1));
                if self.is_over() {
                    return;
                }
                std::thread::yield_now();
            }
            for delivery in delivered {
                self.work(&delivery);
            }
        }
    }

    fn work(&self, delivery: &Delivery<u32>) {
        // Only the consumer that removed the job works on it.
        if self.consumer.forgets
            && !self.store.transact(|txn| self.queue.delete(txn, delivery.id)).unwrap()
        {
            return;
        }
        match fastrand::u8(..12) {
            // Simulates a killed process.
            0 | 1 => return,
            // Simulates a paused process, whose lease ends.
            2 => {
                self.clock.advance(VISIBILITY);
                std::thread::yield_now();
            }
            3 => {
                let failed = self.store.transact(|txn| self.queue.fail(txn, delivery, "no"));
                failed.map_or_else(|error| assert!(is_expected(&error), "{error}"), drop);
                return;
            }
            _ => {}
        }
        self.disturb();
        let done = self.store.transact(|txn| {
            txn.add(&Self::results().pack(&delivery.job.payload), 1)?;
            (self.consumer.complete)(&self.queue, &mut DynWriter::new(txn), delivery)
        });
        done.unwrap_or_else(|error| assert!(is_expected(&error), "{error}"));
    }

    /// The numbers of jobs that were lost, and of jobs that were done more than once.
    fn faults(&self) -> (usize, usize) {
        let snapshot = self.store.inner().snapshot().unwrap();
        let times = |n: u32| snapshot.counter(&Self::results().pack(&n)).unwrap();
        let all = (0..THREADS * JOBS).map(times);
        let (lost, twice): (Vec<_>, Vec<_>) = all.filter(|n| *n != 1).partition(|n| *n == 0);
        (lost.len(), twice.len())
    }
}

fn run(store: &AnyStore, has_faults: bool, consumer: Consumer) -> (usize, usize) {
    let clock = ManualClock::at(START);
    let max_attempts = u32::MAX;
    let queue = open_with(store, QueueOptions { max_attempts, ..options(&clock) });
    let campaign = Campaign {
        store: Faulty::new(store.clone()),
        queue,
        clock,
        has_faults,
        consumer,
        produced: AtomicU32::new(0),
        rounds: AtomicU32::new(0),
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let campaign = &campaign;
            scope.spawn(move || campaign.produce(thread));
            scope.spawn(move || campaign.consume());
        }
    });
    super::assert_sound(store, &campaign.queue);
    campaign.faults()
}

pub fn nothing_is_lost_or_done_twice(store: &AnyStore) {
    assert_eq!(run(store, false, CORRECT), (0, 0));
}

pub fn nothing_is_lost_through_faults(store: &AnyStore) {
    assert_eq!(run(store, true, CORRECT), (0, 0));
}

#[test]
fn answers_without_tokens_do_jobs_twice() {
    for store in [&memory(), &*TemporaryLmdb::new()] {
        let (lost, twice) = run(store, false, UNCHECKED);
        assert!(lost == 0 && twice > 0, "{lost} {twice}");
    }
}

#[test]
fn deliveries_without_leases_lose_jobs() {
    let (lost, twice) = run(&memory(), false, FORGETFUL);
    assert!(lost > 0 && twice == 0, "{lost} {twice}");
}
