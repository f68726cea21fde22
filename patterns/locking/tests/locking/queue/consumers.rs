//! The loop of a consumer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use keyloom::{AnyStore, Store};
use keyloom_locking::ManualClock;
use keyloom_locking::queue::{
    Answer, Backoff, JobState, NewJob, QueueOptions, Stop, WorkOptions, WorkReport,
};

use super::{START, assert_sound, fill, open, open_with, options};

fn eager() -> WorkOptions {
    let [first_pause, longest_pause] = [1, 2].map(Duration::from_millis);
    WorkOptions { first_pause, longest_pause, ..WorkOptions::default() }
}

pub fn consumers_answer_until_they_are_stopped(store: &AnyStore) {
    let clock = ManualClock::at(START);
    // A retry is due at once, because the clock does not move while a consumer is idle.
    let backoff = Backoff { first: Duration::ZERO, longest: Duration::ZERO };
    let queue = open_with(store, QueueOptions { backoff, ..options(&clock) });
    fill(store, &queue, "acme", 10);
    let (stop, seen) = (Stop::new(), AtomicU32::new(0));
    let options = WorkOptions { batch: 4, ..eager() };
    let report = queue.work(store, &stop, &options, |delivery| {
        clock.advance(Duration::from_secs(1));
        // One of the ten jobs is delivered twice.
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

/// The leases of a batch end while the consumer works on its first job, and another consumer gets
/// all of them. This consumer does not start the other jobs, and its answer to the first job is
/// late.
pub fn jobs_that_another_consumer_has_are_not_begun(store: &AnyStore) {
    let clock = ManualClock::at(START);
    let queue = open_with(store, options(&clock));
    fill(store, &queue, "acme", 3);
    let (stop, mut begun, mut taken) = (Stop::new(), 0, Vec::new());
    let options = WorkOptions { batch: 3, ..eager() };
    let report = queue.work(store, &stop, &options, |_| {
        begun += 1;
        if begun == 1 {
            clock.advance(Duration::from_secs(3_600));
            taken = queue.dequeue(store, 3).unwrap();
            // The next delivery ends the test.
            fill(store, &queue, "globex", 1);
        } else {
            stop.request();
        }
        Answer::Complete
    });
    let report = report.unwrap();
    assert_eq!((report.stale, report.completed, begun, taken.len()), (3, 1, 2, 3));
    for delivery in &taken {
        store.transact(|txn| queue.complete(txn, delivery)).unwrap();
    }
    assert_sound(store, &queue);
}

/// A job that takes six times the visibility time-out is not delivered to another consumer.
pub fn the_leases_of_a_consumer_are_extended_while_it_works(store: &AnyStore) {
    let clock = ManualClock::at(START);
    let visibility = Duration::from_millis(30);
    let queue = open_with(store, QueueOptions { visibility, ..options(&clock) });
    fill(store, &queue, "acme", 2);
    let until = |id| match queue.get(&store.snapshot().unwrap(), id).unwrap().unwrap().state {
        JobState::Leased { until } => until,
        other => panic!("{other:?}"),
    };
    let stop = Stop::new();
    let options = WorkOptions { batch: 2, ..eager() };
    let mut runs = 0;
    let report = queue.work(store, &stop, &options, |delivery| {
        runs += 1;
        for _ in 0..12 {
            let before = until(delivery.id);
            clock.advance(visibility / 2);
            while until(delivery.id) == before {
                std::thread::sleep(Duration::from_millis(1));
            }
            // Neither this job nor the job that waits for it is delivered.
            assert_eq!(queue.dequeue(store, 2).unwrap(), []);
        }
        if runs == 2 {
            stop.request();
        }
        Answer::Complete
    });
    let report = report.unwrap();
    assert_eq!((runs, report.completed, report.stale), (2, 2, 0));
    assert_sound(store, &queue);
}

/// The process of a consumer repeatedly dies at one of the jobs of a batch: only this job loses
/// attempts.
pub fn jobs_beside_one_that_kills_its_consumer_keep_their_attempts(store: &AnyStore) {
    for poison in 0..4 {
        keyloom_testing::laws::clear(store);
        let clock = ManualClock::at(START);
        let queue = open_with(store, QueueOptions { spread: 1, ..options(&clock) });
        fill(store, &queue, "acme", 4);
        let options = WorkOptions { batch: 4, ..eager() };
        let mut completed = 0;
        // Ends with the third completed job; the poison job is never completed.
        while completed < 3 {
            let stop = Stop::new();
            let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                queue.work(store, &stop, &options, |delivery| {
                    assert!(delivery.job.payload != poison, "the process dies");
                    completed += 1;
                    if completed == 3 {
                        stop.request();
                    }
                    Answer::Complete
                })
            }));
            assert_eq!(died.is_ok(), completed == 3);
            clock.advance(Duration::from_secs(60));
        }
        // The job becomes a dead letter as soon as a delivery finds that its attempts are used up.
        for _ in 0..4 {
            clock.advance(Duration::from_secs(60));
            for delivery in queue.dequeue(store, 4).unwrap() {
                assert_eq!(delivery.job.payload, poison);
            }
        }
        assert_eq!(completed, 3, "{poison}");
        let dead = queue.dead_letters(&store.snapshot().unwrap(), None, 9, None).unwrap().items;
        assert_eq!(dead.iter().map(|(_, job)| job.payload).collect::<Vec<_>>(), [poison]);
        assert_sound(store, &queue);
    }
}

/// A consumer whose clock is ahead by less than the grace period takes no jobs of another consumer.
pub fn a_clock_that_is_ahead_by_less_than_the_grace_period_takes_nothing(store: &AnyStore) {
    // The control: without a grace period, all jobs are taken.
    for (grace, taken) in [(2_000, 0), (0, 20)] {
        keyloom_testing::laws::clear(store);
        let (clock, fast) = (ManualClock::at(START), ManualClock::at(START + 1_999));
        let grace = Duration::from_millis(grace);
        let queue = open_with(store, QueueOptions { grace, ..options(&clock) });
        let of_fast = open_with(store, QueueOptions { grace, ..options(&fast) });
        fill(store, &queue, "acme", 20);
        let held = queue.dequeue(store, 20).unwrap();
        assert_eq!(held.len(), 20);
        for clock in [&clock, &fast] {
            clock.advance(super::VISIBILITY - Duration::from_millis(1));
        }
        let counts = of_fast.counts(&store.snapshot().unwrap(), None).unwrap();
        assert_eq!((counts.ready, counts.leased), (taken, 20 - taken));
        assert_eq!(
            of_fast.peek(&store.snapshot().unwrap(), "acme", 99).unwrap().len(),
            taken as usize
        );
        assert_eq!(of_fast.dequeue(store, 20).unwrap().len(), taken as usize);
        assert_sound(store, &of_fast);
        if taken == 0 {
            for delivery in &held {
                store.transact(|txn| queue.complete(txn, delivery)).unwrap();
            }
        }
        // A dead consumer loses its jobs after the grace period.
        fill(store, &queue, "other", 5);
        assert_eq!(queue.dequeue(store, 5).unwrap().len(), 5);
        clock.advance(super::VISIBILITY + grace);
        let again = queue.dequeue(store, 99).unwrap();
        assert!(again.len() >= 5 && again.iter().any(|one| one.job.tenant == "other"));
        assert_sound(store, &queue);
    }
}

pub fn idle_consumers_stop_at_once(store: &AnyStore) {
    let (queue, _) = open(store);
    fill(store, &queue, "acme", 3);
    let (stop, patient) = (Stop::new(), Duration::from_secs(3_600));
    let options = WorkOptions { batch: 2, first_pause: patient, longest_pause: patient };
    // The second job of the delivery is released, and its attempt does not count.
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
    // A consumer that pauses for an hour stops as soon as it is requested to.
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

/// A delayed job becomes due without a commit that could wake the consumer, which finds the job
/// when its pause ends. The pauses double up to the longest one.
pub fn an_idle_consumer_looks_again_after_its_pause(store: &AnyStore) {
    let clock = ManualClock::at(START);
    let queue = open_with(store, options(&clock));
    let job = || NewJob::new("acme", 7_u32).delay(Duration::from_secs(60));
    store.transact(|txn| queue.enqueue(txn, job())).unwrap();
    let (stop, options) = (Stop::new(), eager());
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            queue.work(store, &stop, &options, |_| {
                stop.request();
                Answer::Complete
            })
        });
        // The consumer has nothing to do in these pauses.
        std::thread::sleep(options.longest_pause * 10);
        assert!(!consumer.is_finished());
        clock.advance(Duration::from_secs(61));
        assert_eq!(consumer.join().unwrap().unwrap().completed, 1);
    });
}

/// The consumers would look for jobs by themselves after half an hour at the earliest.
pub fn idle_consumers_are_woken_by_new_jobs(store: &AnyStore) {
    const JOBS: u32 = 30;
    let clock = ManualClock::at(START);
    let backoff = Backoff { first: Duration::ZERO, longest: Duration::ZERO };
    let queue = open_with(store, QueueOptions { backoff, ..options(&clock) });
    let (stop, patient) = (Stop::new(), Duration::from_secs(3_600));
    let options = WorkOptions { batch: 1, first_pause: patient, longest_pause: patient };
    let done = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let consumer = || {
            queue.work(store, &stop, &options, |delivery| {
                // A retry that is due at once is a new job for the idle consumers, too.
                if delivery.job.attempts == 1 {
                    return Answer::Retry("again".into());
                }
                done.fetch_add(1, Ordering::Relaxed);
                Answer::Complete
            })
        };
        let consumers = [(); 3].map(|()| scope.spawn(consumer));
        for n in 0..JOBS {
            // The tenants are new, active or idle. The time of a job may be over.
            let tenant = ["acme", "acm", "acmea"][n as usize % 3];
            store.transact(|txn| queue.enqueue(txn, (tenant, n))).unwrap();
            clock.advance(Duration::from_millis(u64::from(n % 5) * 400));
            while done.load(Ordering::Relaxed) <= n {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        stop.request();
        let completed = consumers.map(|one| one.join().unwrap().unwrap().completed);
        assert_eq!(completed.iter().sum::<u64>(), u64::from(JOBS));
    });
    assert_sound(store, &queue);
}
