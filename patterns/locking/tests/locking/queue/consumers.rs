//! The loop of a consumer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use keyloom::{AnyStore, Store};
use keyloom_locking::ManualClock;
use keyloom_locking::queue::{
    Answer, Backoff, JobState, QueueOptions, Stop, WorkOptions, WorkReport,
};

use super::{START, assert_sound, fill, open, open_with, options};

fn eager() -> WorkOptions {
    let [first_pause, longest_pause] = [1, 2].map(Duration::from_millis);
    WorkOptions { first_pause, longest_pause, ..WorkOptions::default() }
}

pub fn consumers_answer_until_they_are_stopped(store: &AnyStore) {
    let clock = ManualClock::at(START);
    // A retry is due at once: nothing moves the clock of an idle consumer.
    let backoff = Backoff { first: Duration::ZERO, longest: Duration::ZERO };
    let queue = open_with(store, QueueOptions { backoff, ..options(&clock) });
    fill(store, &queue, "acme", 10);
    let (stop, seen) = (Stop::new(), AtomicU32::new(0));
    let options = WorkOptions { batch: 4, ..eager() };
    let report = queue.work(store, &stop, &options, |delivery| {
        clock.advance(Duration::from_secs(1));
        // One of the ten jobs is seen twice.
        if seen.fetch_add(1, Ordering::Relaxed) == 10 {
            stop.request();
        }
        match delivery.job.payload {
            9 if delivery.job.attempts == 1 => Answer::Retry("not yet".into()),
            1 => Answer::Bury("never".into()),
            2 => {
                store.transact(|txn| queue.complete(txn, delivery)).unwrap();
                Answer::Answered
            }
            3 => {
                store.transact(|txn| queue.delete(txn, delivery.id)).unwrap();
                Answer::Complete
            }
            _ => Answer::from(Ok::<(), std::fmt::Error>(())),
        }
    });
    let wanted = WorkReport { completed: 7, answered: 1, retried: 1, dead: 1, stale: 1 };
    assert_eq!(report.unwrap(), wanted);
    let counts = queue.counts(&store.snapshot().unwrap(), None).unwrap();
    assert_eq!((counts.ready, counts.delayed, counts.leased, counts.dead), (0, 0, 0, 1));
    assert_sound(store, &queue);
}

/// The lease of a later job of a batch ends while the consumer works on the first one.
pub fn jobs_whose_lease_has_ended_are_not_begun(store: &AnyStore) {
    let clock = ManualClock::at(START);
    let queue = open_with(store, options(&clock));
    fill(store, &queue, "acme", 3);
    let (stop, begun) = (Stop::new(), AtomicU32::new(0));
    let options = WorkOptions { batch: 3, ..eager() };
    let report = queue.work(store, &stop, &options, |_| {
        if begun.fetch_add(1, Ordering::Relaxed) == 0 {
            clock.advance(Duration::from_secs(3_600));
        } else {
            stop.request();
        }
        Answer::Complete
    });
    // No other consumer took the first one, so its answer is accepted. The others of its batch are
    // left to the next delivery.
    assert_eq!(report.unwrap().stale, 2);
    assert_sound(store, &queue);
}

pub fn idle_consumers_stop_at_once(store: &AnyStore) {
    let (queue, _) = open(store);
    fill(store, &queue, "acme", 3);
    let (stop, patient) = (Stop::new(), Duration::from_secs(3_600));
    let options = WorkOptions { batch: 2, first_pause: patient, longest_pause: patient };
    // The second job of the delivery is released, with its attempt.
    let report = queue.work(store, &stop, &options, |_| {
        stop.request();
        Answer::Complete
    });
    assert_eq!(report.unwrap().completed, 1);
    let left = queue.peek(&store.snapshot().unwrap(), "acme", 9).unwrap();
    assert_eq!(left.len(), 2);
    for (_, job) in left {
        assert!(job.attempts == 0 && matches!(job.state, JobState::Waiting { .. }));
    }
    // A consumer that pauses for an hour ends as soon as it is requested to.
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            let mut done = 0;
            queue.work(store, &stop, &options, |_| {
                done += 1;
                Answer::Complete
            })
        });
        while queue.counts(&store.snapshot().unwrap(), None).unwrap() != Default::default() {
            std::thread::yield_now();
        }
        stop.request();
        assert_eq!(consumer.join().unwrap().unwrap().completed, 2);
    });
}
