//! Conflicts between transactions on a store that runs transactions concurrently.

use keyloom::memory::Memory;
use keyloom::{Error, Reader, Store, Transaction, Writer};
use keyloom_locking::queue::{NewJob, QueueOptions};
use keyloom_locking::{ManualClock, WorkQueue};
use keyloom_testing::optimistic_memory;

use super::{START, assert_sound, fill, open, open_with, options};

type Txn<'s> = <Memory as Store>::Transaction<'s>;

/// Runs all bodies in concurrent transactions, and commits them one after the other. Returns the
/// number of conflicts.
fn conflicts(store: &Memory, bodies: &[&dyn Fn(&mut Txn<'_>)]) -> usize {
    let mut open: Vec<_> = bodies.iter().map(|_| store.begin().unwrap()).collect();
    bodies.iter().zip(&mut open).for_each(|(body, txn)| body(txn));
    let commits = open.into_iter().map(Transaction::commit);
    commits
        .filter(|committed| match committed {
            Ok(()) => false,
            Err(Error::Conflict { .. }) => true,
            Err(error) => panic!("{error}"),
        })
        .count()
}

fn assert_ok<T>(outcome: keyloom::Result<T>) {
    outcome.map(drop).unwrap();
}

fn repeated(n: usize, body: &dyn Fn(&mut Txn<'_>)) -> Vec<&dyn Fn(&mut Txn<'_>)> {
    vec![body; n]
}

#[test]
fn enqueues_in_an_active_tenant_do_not_conflict() {
    let store = optimistic_memory();
    let (queue, _) = open(&store);
    fill(&store, &queue, "acme", 1);
    let enqueue = |txn: &mut Txn<'_>| assert_ok(queue.enqueue(txn, ("acme", 1)));
    assert_eq!(conflicts(&store, &repeated(16, &enqueue)), 0);
    // The first jobs of a new tenant conflict, because each makes the tenant active.
    let enqueue = |txn: &mut Txn<'_>| assert_ok(queue.enqueue(txn, ("new", 1)));
    assert_eq!(conflicts(&store, &repeated(16, &enqueue)), 15);
    assert_eq!(conflicts(&store, &repeated(16, &enqueue)), 0);
    assert_sound(&store, &queue);
}

#[test]
fn ids_of_a_counter_would_conflict() {
    let store = optimistic_memory();
    let (queue, _) = open(&store);
    fill(&store, &queue, "acme", 1);
    let enqueue = |txn: &mut Txn<'_>| {
        let id = txn.counter(b"next id").unwrap();
        txn.put(b"next id", &(id + 1).to_le_bytes()).unwrap();
        assert_ok(queue.enqueue(txn, ("acme", 1)));
    };
    assert_eq!(conflicts(&store, &repeated(16, &enqueue)), 15);
}

#[test]
fn different_jobs_of_one_tenant_do_not_conflict() {
    let store = optimistic_memory();
    let (queue, _) = open(&store);
    fill(&store, &queue, "acme", 12);
    let held = queue.dequeue(&store, 6).unwrap();
    let snapshot = store.snapshot().unwrap();
    // The candidates of a consumer of all jobs, divided among consumers that each lease some of
    // them.
    let all = queue.candidates(&snapshot, 6).unwrap();
    drop(snapshot);
    let bodies: [&dyn Fn(&mut Txn<'_>); 7] = [
        &|txn| assert_eq!(queue.lease(txn, &all, 6).unwrap().len(), 6),
        &|txn| assert_ok(queue.enqueue(txn, ("acme", 100))),
        &|txn| queue.complete(txn, &held[0]).unwrap(),
        &|txn| assert_ok(queue.fail(txn, &held[1], "no")),
        &|txn| assert_ok(queue.extend(txn, &held[2], super::VISIBILITY)),
        &|txn| queue.release(txn, &held[3]).unwrap(),
        &|txn| assert_ok(queue.enqueue(txn, NewJob::new("acme", 101).key("k"))),
    ];
    assert_eq!(conflicts(&store, &bodies), 0);
    // A control: two answers to one delivery conflict.
    let twice: [&dyn Fn(&mut Txn<'_>); 2] =
        [&|txn| queue.complete(txn, &held[4]).unwrap(), &|txn| {
            queue.release(txn, &held[4]).unwrap()
        }];
    assert_eq!(conflicts(&store, &twice), 1);
    assert_sound(&store, &queue);
}

#[test]
fn enqueues_of_one_key_conflict_and_make_one_job() {
    let store = optimistic_memory();
    let (queue, _) = open(&store);
    fill(&store, &queue, "acme", 1);
    let enqueue = |txn: &mut Txn<'_>| {
        queue.enqueue(txn, NewJob::new("acme", 1).key("order 17")).unwrap();
    };
    assert_eq!(conflicts(&store, &repeated(4, &enqueue)), 3);
    let counts = queue.counts(&store.snapshot().unwrap(), None).unwrap();
    assert_eq!(counts.ready, 2);
}

/// The number of conflicts among 16 consumers that concurrently lease one job each.
fn of_16_consumers(spread: usize) -> usize {
    let store = optimistic_memory();
    let clock = ManualClock::at(START);
    let queue = open_with(&store, QueueOptions { spread, ..options(&clock) });
    fill(&store, &queue, "acme", 300);
    let snapshot = store.snapshot().unwrap();
    let candidates: Vec<_> = (0..16).map(|_| queue.candidates(&snapshot, 1).unwrap()).collect();
    let lease = |n: usize| {
        let (queue, candidates): (&WorkQueue<u32>, _) = (&queue, &candidates);
        move |txn: &mut Txn<'_>| assert_eq!(queue.lease(txn, &candidates[n], 1).unwrap().len(), 1)
    };
    let bodies: Vec<_> = (0..16).map(lease).collect();
    let bodies: Vec<&dyn Fn(&mut Txn<'_>)> = bodies.iter().map(|body| body as _).collect();
    conflicts(&store, &bodies)
}

#[test]
fn random_choice_keeps_consumers_apart() {
    fastrand::seed(23);
    let average = |spread| (0..8).map(|_| of_16_consumers(spread)).sum::<usize>() / 8;
    let [strict, default, wide] = [1, 16, 256].map(average);
    println!("conflicts of 16 deliveries: spread 1 {strict}, 16 {default}, 256 {wide}");
    assert_eq!(strict, 15);
    // 16 random choices from 16 give 10.3 distinct jobs on average; 16 choices from 256 give 15.5.
    assert!((4..=7).contains(&default), "{default}");
    assert!(wide <= 1, "{wide}");
}

#[test]
fn a_tenant_does_not_fall_asleep_over_a_new_job() {
    let store = optimistic_memory();
    let clock = ManualClock::at(START);
    let linger = std::time::Duration::ZERO;
    let queue = open_with(&store, QueueOptions { linger, ..options(&clock) });
    fill(&store, &queue, "acme", 1);
    let delivery = queue.dequeue(&store, 1).unwrap().remove(0);
    store.transact(|txn| queue.complete(txn, &delivery)).unwrap();
    // An enqueue has read that the tenant is active, and commits after the tenant was removed.
    let mut late = store.begin().unwrap();
    queue.enqueue(&mut late, ("acme", 1)).unwrap();
    assert_eq!(queue.dequeue(&store, 1).unwrap(), []);
    assert!(matches!(late.commit(), Err(Error::Conflict { .. })));
    fill(&store, &queue, "acme", 1);
    assert_eq!(queue.dequeue(&store, 1).unwrap().len(), 1);
}
