//! Injects faults into every operation.

use std::time::Duration;

use keyloom::{AnyStore, Fault, Faulty, KeyRange, Store, Writer};
use keyloom_locking::queue::{Backoff, NewJob, QueueOptions};
use keyloom_locking::{ManualClock, WorkQueue};
use keyloom_testing::laws::{Dump, conflicts_are_retried_to_the_same_end, dump_all};

use super::{START, fill, open_with, options, payloads};

/// A queue whose answers write the same bytes each time.
fn deterministic(store: &AnyStore) -> WorkQueue<u32> {
    let backoff = Backoff { first: Duration::ZERO, longest: Duration::ZERO };
    open_with(store, QueueOptions { backoff, ..options(&ManualClock::at(START)) })
}

fn restore<S: Store>(store: &S, dump: &Dump) {
    let restore = |txn: &mut S::Transaction<'_>| {
        txn.delete_range(KeyRange::all())?;
        dump.iter().try_for_each(|(key, value)| txn.put(key, value))
    };
    store.transact(restore).unwrap();
}

fn check(store: &AnyStore, queue: &WorkQueue<u32>) -> Vec<String> {
    let faults = queue.check(&store.snapshot().unwrap()).unwrap();
    faults.iter().map(ToString::to_string).collect()
}

/// Calls `law` with a prepared queue for each kind of answer.
fn each_answer(store: &AnyStore, law: impl Fn(&Dump, &WorkQueue<u32>, u8)) {
    let queue = deterministic(store);
    let job = NewJob::new("acme", 7).key("order 17");
    store.transact(|txn| queue.enqueue(txn, job.clone())).unwrap();
    let prepared = dump_all(store);
    for answer in 0..5 {
        restore(store, &prepared);
        law(&prepared, &queue, answer);
    }
}

fn answer(
    queue: &WorkQueue<u32>,
    delivery: &keyloom_locking::queue::Delivery<u32>,
    n: u8,
    txn: &mut keyloom::DynWriter<'_>,
) -> keyloom::Result<()> {
    match n {
        0 => queue.complete(txn, delivery),
        1 => queue.fail(txn, delivery, "no").map(drop),
        2 => queue.extend(txn, delivery, Duration::from_secs(1)).map(drop),
        3 => queue.release(txn, delivery),
        _ => queue.bury(txn, delivery, "no"),
    }
}

pub fn faults_leave_nothing_half_done(store: &AnyStore) {
    each_answer(store, |_, queue, n| {
        let delivery = queue.dequeue(store, 1).unwrap().remove(0);
        let leased = dump_all(store);
        faults_leave(store, &leased, queue, |txn| answer(queue, &delivery, n, txn));
    });
}

fn faults_leave(
    store: &AnyStore,
    prepared: &Dump,
    queue: &WorkQueue<u32>,
    change: impl Fn(&mut keyloom::DynWriter<'_>) -> keyloom::Result<()>,
) {
    keyloom_testing::laws::faults_leave_nothing_half_done(
        store,
        |store| restore(store, prepared),
        change,
        |store| check(store, queue),
    );
}

pub fn conflicts_are_retried(store: &AnyStore) {
    each_answer(store, |_, queue, n| {
        let delivery = queue.dequeue(store, 1).unwrap().remove(0);
        let leased = dump_all(store);
        conflicts_are_retried_to_the_same_end(
            store,
            |store| restore(store, &leased),
            |txn| answer(queue, &delivery, n, txn),
        );
    });
}

/// A delivery or an enqueue that fails at any operation loses no job and adds none.
pub fn faulty_deliveries_lose_nothing(store: &AnyStore) {
    let clock = ManualClock::at(START);
    let linger = Duration::ZERO;
    let queue = open_with(store, QueueOptions { linger, max_attempts: 1_000, ..options(&clock) });
    ["a", "b", "c"].iter().for_each(|tenant| fill(store, &queue, tenant, 3));
    let faulty = Faulty::new(store.clone());
    let kinds = [Fault::Error, Fault::Conflict, Fault::UnknownAndLost, Fault::UnknownButCommitted];
    let mut failed = 0;
    for (n, kind) in (0..60).flat_map(|n| kinds.map(|kind| (n, kind))) {
        faulty.fail_at(n, kind);
        failed += usize::from(queue.dequeue(&faulty, 4).is_err());
        // All leases end, and some tenants fall asleep.
        faulty.clear_fault();
        drop(queue.dequeue(&faulty, 9).unwrap());
        drop(queue.dequeue(&faulty, 9).unwrap());
        assert_eq!(check(store, &queue), [""; 0], "{n} {kind:?}");
        clock.advance(super::VISIBILITY);
    }
    assert!(failed > 60, "{failed}");
    assert_eq!(payloads(&queue.dequeue(store, 99).unwrap()), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    for (n, kind) in (0..12).flat_map(|n| kinds.map(|kind| (n, kind))) {
        let total = || {
            let counts = queue.counts(&store.snapshot().unwrap(), None).unwrap();
            counts.ready + counts.delayed + counts.leased
        };
        let before = total();
        faulty.fail_at(n, kind);
        let added = faulty.transact(|txn| queue.enqueue(txn, ("new", 1)));
        faulty.clear_fault();
        let is_added = total() - before == 1;
        assert_eq!(check(store, &queue), [""; 0]);
        match added {
            Ok(_) => assert!(is_added),
            Err(error) if error.maybe_committed() => {
                assert_eq!(is_added, kind == Fault::UnknownButCommitted);
            }
            Err(_) => assert!(!is_added),
        }
    }
}
