//! Recurring jobs, and attempts of single jobs.

use std::time::Duration;

use keyloom::{Fault, Faulty, Memory, Store};
use keyloom_locking::queue::{Delivery, Enqueued, Failed, JobState, NewJob, QueueOptions};
use keyloom_locking::{Clock, ManualClock, WorkQueue};

use super::{START, assert_sound, enqueue, open, open_with, options};

/// Shorter than the visibility time-out.
const EVERY: u64 = 20_000;

fn repeating(payload: u32) -> NewJob<u32> {
    NewJob::new("acme", payload).repeat_every(Duration::from_millis(EVERY))
}

fn take(store: &impl Store, queue: &WorkQueue<u32>) -> Option<Delivery<u32>> {
    let mut taken = queue.dequeue(store, 5).unwrap();
    assert!(taken.len() <= 1);
    taken.pop()
}

fn complete(store: &impl Store, queue: &WorkQueue<u32>, delivery: &Delivery<u32>) {
    store.transact(|txn| queue.complete(txn, delivery)).unwrap();
}

fn go_to(clock: &ManualClock, time: u64) {
    clock.advance(Duration::from_millis(time - clock.now().unwrap()));
}

/// Returns the next delivery of the only job, which must happen at exactly this millisecond.
fn next_run(
    store: &impl Store,
    queue: &WorkQueue<u32>,
    clock: &ManualClock,
    at: u64,
) -> Delivery<u32> {
    go_to(clock, START + at - 1);
    assert!(take(store, queue).is_none(), "before {at}");
    go_to(clock, START + at);
    take(store, queue).unwrap_or_else(|| panic!("nothing at {at}"))
}

pub fn a_job_repeats_at_its_times(store: &impl Store) {
    let (queue, clock) = open(store);
    enqueue(store, &queue, repeating(7).delay(Duration::from_millis(500)));
    let first = next_run(store, &queue, &clock, 500);
    assert_eq!(first.job.payload, 7);
    // One of its scheduled times passes while it runs.
    go_to(&clock, START + 500 + EVERY);
    assert!(take(store, &queue).is_none(), "it runs once at a time");
    complete(store, &queue, &first);
    let second = next_run(store, &queue, &clock, 500 + 2 * EVERY);
    assert_eq!((second.id, second.job.payload, second.job.attempts), (first.id, 7, 1));
    assert!(second.token > first.token);
    // The first answer is late: it is refused, and no run is lost.
    assert!(store.transact(|txn| queue.complete(txn, &first)).is_err());
    complete(store, &queue, &second);
    // No consumer runs for ten scheduled times.
    let third = next_run(store, &queue, &clock, 500 + 3 * EVERY);
    go_to(&clock, START + 500 + 13 * EVERY + 17);
    let third = take(store, &queue).unwrap_or(third);
    complete(store, &queue, &third);
    let fourth = next_run(store, &queue, &clock, 500 + 14 * EVERY);
    assert_sound(store, &queue);
    // Deleted while it runs, the job does not come back.
    assert!(store.transact(|txn| queue.delete(txn, fourth.id)).unwrap());
    assert!(store.transact(|txn| queue.complete(txn, &fourth)).is_err());
    go_to(&clock, START + 99 * EVERY);
    assert!(take(store, &queue).is_none());
    assert_sound(store, &queue);
}

pub fn retries_do_not_move_its_times(store: &impl Store) {
    let (queue, clock) = open(store);
    enqueue(store, &queue, repeating(1).max_attempts(2).delay(Duration::from_millis(1)));
    for run in 0..3 {
        let delivery = next_run(store, &queue, &clock, 1 + run * EVERY);
        let failed = store.transact(|txn| queue.fail(txn, &delivery, "no network")).unwrap();
        let Failed::RetryAt(at) = failed else { panic!("{failed:?}") };
        go_to(&clock, at);
        let again = take(store, &queue).unwrap();
        assert_eq!((again.job.attempts, again.job.last_error.as_deref()), (2, Some("no network")));
        complete(store, &queue, &again);
    }
    // After its last attempt the job is a dead letter, until it is requeued.
    let delivery = next_run(store, &queue, &clock, 1 + 3 * EVERY);
    let Failed::RetryAt(at) = store.transact(|txn| queue.fail(txn, &delivery, "no")).unwrap()
    else {
        panic!("it has a second attempt")
    };
    go_to(&clock, at);
    let last = take(store, &queue).unwrap();
    assert_eq!(store.transact(|txn| queue.fail(txn, &last, "no")).unwrap(), Failed::Dead);
    go_to(&clock, START + 9 * EVERY + 2);
    assert!(take(store, &queue).is_none());
    store.transact(|txn| queue.requeue(txn, last.id)).unwrap();
    let back = take(store, &queue).unwrap();
    complete(store, &queue, &back);
    next_run(store, &queue, &clock, 1 + 10 * EVERY);
    assert_sound(store, &queue);
}

pub fn a_key_declares_it_once(store: &impl Store) {
    let (queue, clock) = open(store);
    let declare = || store.transact(|txn| queue.enqueue(txn, repeating(1).key("report"))).unwrap();
    let Enqueued::New(id) = declare() else { panic!("it is new") };
    for run in 1..4 {
        assert_eq!(declare(), Enqueued::Existing(id), "while it waits");
        let delivery = take(store, &queue).unwrap();
        assert_eq!(declare(), Enqueued::Existing(id), "while it runs");
        complete(store, &queue, &delivery);
        go_to(&clock, START + run * EVERY);
    }
    store.transact(|txn| queue.delete(txn, id)).unwrap();
    assert!(matches!(declare(), Enqueued::New(_)));
    assert_sound(store, &queue);
}

pub fn a_job_has_its_own_attempts(store: &impl Store) {
    let (queue, clock) = open(store);
    // The default of the queue is three attempts.
    for (attempts, wanted) in [(Some(0), 1), (Some(1), 1), (Some(6), 6), (None, 3)] {
        let job = NewJob::new("acme", 1);
        let job = attempts.map_or(job.clone(), |attempts| job.max_attempts(attempts));
        enqueue(store, &queue, job);
        let mut deliveries = 0;
        loop {
            let delivery = take(store, &queue).unwrap();
            deliveries += 1;
            match store.transact(|txn| queue.fail(txn, &delivery, "no")).unwrap() {
                Failed::RetryAt(at) => go_to(&clock, at),
                Failed::Dead => break,
            }
        }
        assert_eq!(deliveries, wanted, "{attempts:?}");
    }
    // Attempts of dead consumers count, too.
    enqueue(store, &queue, NewJob::new("acme", 2).max_attempts(1));
    let id = take(store, &queue).unwrap().id;
    clock.advance(Duration::from_secs(31));
    assert!(take(store, &queue).is_none());
    let job = queue.jobs().get(&store.snapshot().unwrap(), &id).unwrap().unwrap();
    assert!(matches!(job.state, JobState::Dead { timed_out: true, .. }));
    assert_sound(store, &queue);
}

#[test]
fn a_time_of_nothing_is_refused() {
    let store = Memory::new();
    let (queue, _) = open(&store);
    let never = NewJob::new("acme", 1).repeat_every(Duration::from_micros(999));
    let error = store.transact(|txn| queue.enqueue(txn, never.clone())).unwrap_err().to_string();
    assert!(error.contains("999µs") && error.contains("at least 1 ms"), "{error}");
    // The maximum durations do not overflow.
    let far = NewJob::new("acme", 1).repeat_every(Duration::MAX);
    enqueue(&store, &queue, far);
    let delivery = take(&store, &queue).unwrap();
    complete(&store, &queue, &delivery);
    assert!(take(&store, &queue).is_none());
    assert_sound(&store, &queue);
}

/// After a fault at any operation, the job is either still held, or waits for its next time.
#[test]
fn a_failed_completion_neither_loses_nor_repeats_a_run() {
    for fault in [Fault::Error, Fault::Conflict, Fault::UnknownAndLost, Fault::UnknownButCommitted]
    {
        for n in 0.. {
            let store = Memory::new();
            let faulty = Faulty::new(store.clone());
            let clock = ManualClock::at(START);
            let queue = open_with(&faulty, QueueOptions { ..options(&clock) });
            enqueue(&faulty, &queue, repeating(1));
            let delivery = take(&faulty, &queue).unwrap();
            faulty.fail_at(n, fault);
            let outcome = faulty.transact(|txn| queue.complete(txn, &delivery));
            let was_met = faulty.operations() > n;
            faulty.clear_fault();
            assert_sound(&store, &queue);
            let job = queue.jobs().get(&store.snapshot().unwrap(), &delivery.id).unwrap().unwrap();
            match job.state {
                JobState::Waiting { from } => assert_eq!(from, START + EVERY),
                JobState::Leased { .. } => {
                    assert!(outcome.is_err());
                    complete(&faulty, &queue, &delivery);
                }
                dead @ JobState::Dead { .. } => panic!("{dead:?}"),
            }
            go_to(&clock, START + EVERY);
            assert!(take(&faulty, &queue).is_some());
            if !was_met {
                assert!(n > 5);
                break;
            }
        }
    }
}
