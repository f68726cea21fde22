//! One property of a queue per test.

use std::time::Duration;

use keyloom::{AnyStore, Error, Reader, Store, Writer};
use keyloom_locking::queue::{
    Enqueued, Failed, JobState, NewJob, Priority, QueueError, QueueOptions, Stale,
};
use keyloom_testing::laws::refused;

use super::{START, VISIBILITY, assert_sound, enqueue, fill, open, open_with, options, payloads};

const MS: Duration = Duration::from_millis(1);

#[track_caller]
fn assert_stale(error: &Error, wanted: Stale) {
    match error.downcast_ref() {
        Some(QueueError::Stale { reason, .. }) => assert_eq!(*reason, wanted),
        other => panic!("{error}: {other:?}"),
    }
}

pub fn a_job_has_one_holder_until_its_time_out(store: &AnyStore) {
    let (queue, clock) = open(store);
    fill(store, &queue, "acme", 1);
    let first = queue.dequeue(store, 5).unwrap();
    assert_eq!(payloads(&first), [0]);
    assert_eq!(first[0].until, START + 30_000);
    clock.advance(VISIBILITY - MS);
    assert_eq!(queue.dequeue(store, 5).unwrap(), []);
    clock.advance(MS);
    let second = queue.dequeue(store, 5).unwrap();
    assert_eq!(second[0].id, first[0].id);
    assert_eq!((second[0].token, second[0].job.attempts), (2, 2));
    assert_sound(store, &queue);
}

pub fn candidates_that_others_took_are_skipped(store: &AnyStore) {
    let (queue, _) = open(store);
    fill(store, &queue, "acme", 4);
    let snapshot = store.snapshot().unwrap();
    let [all, same] = [4, 4].map(|n| queue.candidates(&snapshot, n).unwrap());
    assert_eq!(same.ids().count(), 4);
    drop(snapshot);
    let lease = |candidates, n| store.transact(|txn| queue.lease(txn, candidates, n)).unwrap();
    let first = lease(&all, 2);
    store.transact(|txn| queue.complete(txn, &first[0])).unwrap();
    let delivered = [first, lease(&same, 4)].concat();
    assert_eq!(payloads(&delivered), [0, 1, 2, 3]);
    assert!(delivered.iter().all(|delivery| delivery.token == 1));
    assert_eq!(lease(&all, 4), []);
    assert_eq!(queue.counts(&store.snapshot().unwrap(), None).unwrap().leased, 3);
}

pub fn a_stale_holder_cannot_answer(store: &AnyStore) {
    let (queue, clock) = open(store);
    fill(store, &queue, "acme", 1);
    let stale = queue.dequeue(store, 1).unwrap().remove(0);
    clock.advance(VISIBILITY);
    let holder = queue.dequeue(store, 1).unwrap().remove(0);
    let wanted = Stale::DeliveredAgain { token: 2 };
    assert_stale(&refused(store, |txn| queue.complete(txn, &stale)), wanted);
    assert_stale(&refused(store, |txn| queue.extend(txn, &stale, VISIBILITY).map(drop)), wanted);
    assert_stale(&refused(store, |txn| queue.fail(txn, &stale, "late").map(drop)), wanted);
    assert_stale(&refused(store, |txn| queue.release(txn, &stale)), wanted);
    assert_stale(&refused(store, |txn| queue.bury(txn, &stale, "late")), wanted);
    store.transact(|txn| queue.fail(txn, &holder, "no")).unwrap();
    assert_stale(&refused(store, |txn| queue.complete(txn, &holder)), Stale::GivenBack);
    clock.advance(VISIBILITY);
    let last = queue.dequeue(store, 1).unwrap().remove(0);
    store.transact(|txn| queue.complete(txn, &last)).unwrap();
    let error = refused(store, |txn| queue.complete(txn, &last));
    assert_stale(&error, Stale::Gone);
    let message = error.to_string();
    assert!(message.contains(&last.id.to_string()) && message.contains("discard"), "{message}");
}

pub fn results_of_a_stale_holder_are_not_committed(store: &AnyStore) {
    let (queue, clock) = open(store);
    fill(store, &queue, "acme", 1);
    let stale = queue.dequeue(store, 1).unwrap().remove(0);
    clock.advance(VISIBILITY);
    let holder = queue.dequeue(store, 1).unwrap().remove(0);
    for (delivery, is_committed) in [(&stale, false), (&holder, true), (&stale, false)] {
        let committed = store.transact(|txn| {
            txn.put(b"result", &delivery.token.to_le_bytes())?;
            queue.complete(txn, delivery)
        });
        assert_eq!(committed.is_ok(), is_committed, "{committed:?}");
    }
    let result = store.snapshot().unwrap().get(b"result").unwrap().unwrap().to_vec();
    assert_eq!(result, holder.token.to_le_bytes());
}

pub fn failed_jobs_come_back_later_each_time(store: &AnyStore) {
    let clock = keyloom_locking::ManualClock::at(START);
    let queue = open_with(store, QueueOptions { max_attempts: 6, ..options(&clock) });
    fill(store, &queue, "acme", 1);
    for (attempt, longest) in (1_u32..).zip([2_000, 4_000, 8_000, 10_000, 10_000]) {
        let now = keyloom_locking::Clock::now(&clock).unwrap();
        let delivery = queue.dequeue(store, 1).unwrap().remove(0);
        assert_eq!(delivery.job.attempts, attempt);
        let failed = store.transact(|txn| queue.fail(txn, &delivery, "busy")).unwrap();
        let Failed::RetryAt(at) = failed else { panic!("{failed:?}") };
        assert!((longest / 2..=longest).contains(&(at - now)), "{} of {longest}", at - now);
        clock.advance(Duration::from_millis(at - now) - MS);
        assert_eq!(queue.dequeue(store, 1).unwrap(), []);
        clock.advance(MS);
    }
    let delivery = queue.dequeue(store, 1).unwrap().remove(0);
    assert_eq!(delivery.job.last_error.as_deref(), Some("busy"));
    let failed = store.transact(|txn| queue.fail(txn, &delivery, "gave up")).unwrap();
    assert_eq!(failed, Failed::Dead);
}

pub fn dead_letters_are_listed_requeued_and_deleted(store: &AnyStore) {
    let (queue, clock) = open(store);
    for tenant in ["b", "a", "c"] {
        fill(store, &queue, tenant, 2);
    }
    for delivery in queue.dequeue(store, 6).unwrap() {
        let error = "é".repeat(600);
        store.transact(|txn| queue.bury(txn, &delivery, &error)).unwrap();
        clock.advance(MS);
    }
    let snapshot = store.snapshot().unwrap();
    let first = queue.dead_letters(&snapshot, None, 4, None).unwrap();
    let tenants: Vec<_> = first.items.iter().map(|(_, job)| &job.tenant[..]).collect();
    assert_eq!(tenants, ["a", "a", "b", "b"]);
    assert!(matches!(first.items[0].1.state, JobState::Dead { since, .. } if since >= START));
    assert_eq!(first.items[0].1.last_error.as_ref().unwrap(), &"é".repeat(500));
    let rest = queue.dead_letters(&snapshot, None, 4, first.next.as_ref()).unwrap();
    assert_eq!((rest.items.len(), rest.next), (2, None));
    let of_b = queue.dead_letters(&snapshot, Some("b"), 9, None).unwrap().items;
    assert_eq!(of_b[..], first.items[2..]);
    drop(snapshot);

    assert_eq!(queue.dequeue(store, 6).unwrap(), []);
    let [(requeued, _), (deleted, _)] = [&of_b[0], &of_b[1]];
    store.transact(|txn| queue.requeue(txn, *requeued)).unwrap();
    assert!(store.transact(|txn| queue.delete(txn, *deleted)).unwrap());
    assert!(!store.transact(|txn| queue.delete(txn, *deleted)).unwrap());
    let again = queue.dequeue(store, 6).unwrap();
    assert_eq!((again[0].id, again[0].job.attempts, again[0].token), (*requeued, 1, 2));
    let id = store.transact(|txn| queue.enqueue(txn, ("c", 7))).unwrap().id();
    for (id, state) in [(*requeued, "is leased"), (*deleted, "does not exist"), (id, "waits")] {
        let error = refused(store, |txn| queue.requeue(txn, id));
        let Some(QueueError::NotDead { state: found, .. }) = error.downcast_ref() else {
            panic!("{error}");
        };
        assert_eq!(*found, state);
    }
    assert_sound(store, &queue);
}

pub fn jobs_of_crashing_consumers_become_dead_letters(store: &AnyStore) {
    let (queue, clock) = open(store);
    fill(store, &queue, "acme", 1);
    for _ in 0..3 {
        assert_eq!(queue.dequeue(store, 1).unwrap().len(), 1);
        clock.advance(VISIBILITY);
    }
    assert_eq!(queue.dequeue(store, 1).unwrap(), []);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(queue.counts(&snapshot, Some("acme")).unwrap().dead, 1);
    let dead = queue.dead_letters(&snapshot, None, 9, None).unwrap().items;
    assert!(dead[0].1.last_error.as_ref().unwrap().contains("lease"));
}

/// The consumer of the last attempt is slow, and another consumer makes the job a dead letter.
pub fn late_answers_to_the_last_attempt_count(store: &AnyStore) {
    let clock = keyloom_locking::ManualClock::at(START);
    let queue = open_with(store, QueueOptions { max_attempts: 1, ..options(&clock) });
    fill(store, &queue, "acme", 6);
    let slow = queue.dequeue(store, 6).unwrap();
    clock.advance(VISIBILITY);
    assert_eq!(queue.dequeue(store, 6).unwrap(), []);
    let counts = || queue.counts(&store.snapshot().unwrap(), None).unwrap();
    assert_eq!(counts().dead, 6);

    store.transact(|txn| queue.complete(txn, &slow[0])).unwrap();
    store.transact(|txn| queue.fail(txn, &slow[1], "no")).unwrap();
    store.transact(|txn| queue.bury(txn, &slow[2], "no")).unwrap();
    store.transact(|txn| queue.release(txn, &slow[3])).unwrap();
    store.transact(|txn| queue.extend(txn, &slow[4], VISIBILITY).map(drop)).unwrap();
    let (is, gone) = (counts(), queue.get(&store.snapshot().unwrap(), slow[0].id).unwrap());
    assert_eq!((gone, is.dead, is.ready, is.leased), (None, 3, 1, 1));
    // An answered job cannot be answered again, and a requeued job no longer belongs to this
    // consumer.
    for answered in &slow[1..4] {
        assert_stale(&refused(store, |txn| queue.complete(txn, answered)), Stale::GivenBack);
    }
    store.transact(|txn| queue.requeue(txn, slow[5].id)).unwrap();
    assert_stale(&refused(store, |txn| queue.complete(txn, &slow[5])), Stale::GivenBack);
    assert_sound(store, &queue);
}

pub fn keys_prevent_duplicates_for_a_window(store: &AnyStore) {
    let (queue, clock) = open(store);
    let add = |tenant: &str| {
        let job = NewJob::new(tenant, 7).key("order 17");
        store.transact(|txn| queue.enqueue(txn, job.clone())).unwrap()
    };
    let Enqueued::New(id) = add("acme") else { panic!() };
    assert_eq!(add("acme"), Enqueued::Existing(id));
    assert!(matches!(add("globex"), Enqueued::New(other) if other != id));
    // The key is remembered for as long as the job exists.
    clock.advance(Duration::from_secs(86_400));
    let delivered = queue.dequeue(store, 2).unwrap();
    let delivery = delivered.iter().find(|delivery| delivery.id == id).unwrap();
    assert_eq!(add("acme"), Enqueued::Existing(id));
    store.transact(|txn| queue.complete(txn, delivery)).unwrap();
    clock.advance(Duration::from_secs(300) - MS);
    assert_eq!(queue.sweep(store).unwrap().removed, 0);
    assert_eq!(add("acme"), Enqueued::Existing(id));
    clock.advance(MS);
    let Enqueued::New(next) = add("acme") else { panic!() };
    assert_ne!(next, id);
    assert_eq!(queue.sweep(store).unwrap().removed, 1);
    assert_eq!(add("acme"), Enqueued::Existing(next));
    // A deleted job frees its key at once.
    store.transact(|txn| queue.delete(txn, next)).unwrap();
    assert!(matches!(add("acme"), Enqueued::New(_)));
    assert_sound(store, &queue);
}

pub fn tenants_take_turns(store: &AnyStore) {
    let (queue, _) = open(store);
    fill(store, &queue, "large", 300);
    let small = ["a", "b", "c", "d"];
    small.iter().for_each(|tenant| fill(store, &queue, tenant, 10));
    for turn in 0..50 {
        let delivery = queue.dequeue(store, 1).unwrap().remove(0);
        store.transact(|txn| queue.complete(txn, &delivery)).unwrap();
        // Each of the five tenants has one of five deliveries.
        if turn % 5 == 4 {
            let snapshot = store.snapshot().unwrap();
            for tenant in small {
                let left = queue.counts(&snapshot, Some(tenant)).unwrap().ready;
                assert_eq!(left, 9 - turn / 5, "{tenant} after {turn}");
            }
        }
    }
    // A delivery of many jobs also takes equal shares, and then fills up from the other tenants.
    small.iter().for_each(|tenant| fill(store, &queue, tenant, 2));
    let delivered = queue.dequeue(store, 20).unwrap();
    let of = |tenant: &str| delivered.iter().filter(|one| one.job.tenant == tenant).count();
    assert_eq!(small.map(of), [2; 4]);
    assert_eq!(of("large"), 12);
}

pub fn priorities_and_delays_are_kept(store: &AnyStore) {
    let (queue, clock) = open(store);
    let add = |n, priority, seconds| {
        let job = NewJob::new("acme", n).priority(priority);
        enqueue(store, &queue, job.delay(Duration::from_secs(seconds)));
    };
    add(5, Priority::Low, 0);
    add(3, Priority::Normal, 0);
    add(4, Priority::Normal, 0);
    add(2, Priority::High, 0);
    add(1, Priority::Urgent, 10);
    let next = |n| payloads(&queue.dequeue(store, n).unwrap());
    assert_eq!(queue.counts(&store.snapshot().unwrap(), None).unwrap().delayed, 1);
    assert_eq!(next(1), [2]);
    assert_eq!(next(2), [3, 4]);
    clock.advance(Duration::from_secs(10));
    let peeked = queue.peek(&store.snapshot().unwrap(), "acme", 9).unwrap();
    assert_eq!(peeked.iter().map(|(_, job)| job.payload).collect::<Vec<_>>(), [1, 5]);
    assert_eq!(next(1), [1]);
    assert_eq!(next(9), [5]);
    assert_eq!(next(9), [0; 0]);
}

pub fn extended_and_released_leases_are_kept(store: &AnyStore) {
    let (queue, clock) = open(store);
    fill(store, &queue, "acme", 1);
    let delivery = queue.dequeue(store, 1).unwrap().remove(0);
    clock.advance(VISIBILITY - MS);
    let until = store.transact(|txn| queue.extend(txn, &delivery, VISIBILITY)).unwrap();
    assert_eq!(until, START + 59_999);
    clock.advance(VISIBILITY - MS);
    assert_eq!(queue.dequeue(store, 1).unwrap(), []);
    store.transact(|txn| queue.release(txn, &delivery)).unwrap();
    let again = queue.dequeue(store, 1).unwrap().remove(0);
    assert_eq!((again.job.attempts, again.token), (1, 2));
    // A shortened lease is also noticed in time.
    store.transact(|txn| queue.extend(txn, &again, MS)).unwrap();
    clock.advance(MS);
    assert_eq!(queue.dequeue(store, 1).unwrap().len(), 1);
    assert_sound(store, &queue);
}

pub fn bad_input_is_refused_before_it_is_written(store: &AnyStore) {
    let (queue, clock) = open(store);
    for (job, what) in [
        (NewJob::new("x".repeat(201), 1), "the tenant"),
        (NewJob::new("\0".repeat(101), 1), "the tenant"),
        (NewJob::new("x", 1).key("k".repeat(201)), "the key of the job"),
    ] {
        let error = refused(store, |txn| queue.enqueue(txn, job.clone()).map(drop)).to_string();
        assert!(error.contains(what) && error.contains("shorten"), "{error}");
    }
    // The longest names, and unusual ones.
    let longest = NewJob::new("\0".repeat(100), 1).key("\0".repeat(100)).delay(Duration::MAX);
    for job in [longest, NewJob::new("", 2).key(""), NewJob::new("\u{10FFFF}\0", 3)] {
        enqueue(store, &queue, job);
    }
    assert_eq!(queue.dequeue(store, 0).unwrap(), []);
    let delivered = queue.dequeue(store, usize::MAX).unwrap();
    assert_eq!(payloads(&delivered), [2, 3]);
    for delivery in &delivered {
        store.transact(|txn| queue.complete(txn, delivery)).unwrap();
    }
    assert_sound(store, &queue);
    let schema = keyloom_tables::Schema::open(store, "other").unwrap();
    let none = QueueOptions { visibility: Duration::from_micros(999), ..options(&clock) };
    let error = keyloom_locking::WorkQueue::<u32>::open_with(&schema, "jobs", none).unwrap_err();
    assert!(error.to_string().contains("at least 1 ms"), "{error}");
}

pub fn sleeping_tenants_wake_in_time(store: &AnyStore) {
    let clock = keyloom_locking::ManualClock::at(START);
    let queue = open_with(store, QueueOptions { linger: Duration::ZERO, ..options(&clock) });
    for n in 0..200 {
        let job = NewJob::new(format!("tenant {n}"), n).delay(Duration::from_secs(n.into()));
        enqueue(store, &queue, job);
    }
    assert_sound(store, &queue);
    let mut delivered = Vec::new();
    for second in 0..200 {
        let due = queue.dequeue(store, 10).unwrap();
        assert_eq!(payloads(&due), [second]);
        delivered.extend(due);
        assert_eq!(queue.dequeue(store, 10).unwrap(), []);
        clock.advance(Duration::from_millis(100));
        // The tenant of the job sleeps until the end of the lease; new work wakes it.
        fill(store, &queue, &format!("tenant {second}"), 1);
        let new = queue.dequeue(store, 1).unwrap().remove(0);
        store.transact(|txn| queue.complete(txn, &new)).unwrap();
        store.transact(|txn| queue.complete(txn, &delivered[second as usize])).unwrap();
        clock.advance(Duration::from_millis(900));
    }
    assert_sound(store, &queue);
}

pub fn waking_tenants_do_not_starve_active_ones(store: &AnyStore) {
    let (queue, clock) = open(store);
    fill(store, &queue, "large", 100);
    for n in 1..100 {
        let job = NewJob::new(format!("tenant {n}"), n).delay(Duration::from_secs(n.into()));
        enqueue(store, &queue, job);
    }
    let mut large = 0;
    for _ in 0..100 {
        let delivery = queue.dequeue(store, 1).unwrap().remove(0);
        store.transact(|txn| queue.complete(txn, &delivery)).unwrap();
        large += usize::from(delivery.job.tenant == "large");
        clock.advance(Duration::from_secs(1));
    }
    // One tenant wakes up in each step, so each round is about twice as long as the one before.
    assert!((5..60).contains(&large), "{large}");
}

/// One call passes more jobs without a further attempt than a transaction makes dead letters.
#[test]
fn jobs_without_attempts_do_not_block_a_small_store() {
    const JOBS: u32 = 1_500;
    let limits = keyloom::Limits::default().with_max_transaction(None, Some(1_000));
    let store = AnyStore::from(keyloom::Memory::builder().limits(limits).build());
    let clock = keyloom_locking::ManualClock::at(START);
    let queue = open_with(&store, QueueOptions { max_attempts: 1, ..options(&clock) });
    fill(&store, &queue, "acme", JOBS);
    while !queue.dequeue(&store, 50).unwrap().is_empty() {}
    clock.advance(VISIBILITY * 2);
    enqueue(&store, &queue, ("acme", JOBS).into());
    assert_eq!(payloads(&queue.dequeue(&store, 1).unwrap()), [JOBS]);
    let counts = queue.counts(&store.snapshot().unwrap(), None).unwrap();
    assert_eq!((counts.dead, counts.leased), (u64::from(JOBS), 1));
    assert_sound(&store, &queue);
}
