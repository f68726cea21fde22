//! Sessions that wait, renew their lease and release their locks.

use std::time::{Duration, Instant};

use keyloom::{Memory, Reader, Store, Writer};
use keyloom_locking::recipes::Recipes;
use keyloom_locking::{LeaseOptions, LockError, Locks, Mode, Patience, Session, Stop};
use keyloom_tables::Schema;
use keyloom_testing::{TemporaryLmdb, on_every_store_and_server};

use super::support::{exclusive, path, refused, shared};

fn locks<S: Store>(store: &S) -> Locks {
    Locks::open(&Schema::open(store, "shop").unwrap(), "locks").unwrap()
}

fn a_waiter_gets_the_lock_after_its_release<S: Store + Clone>(store: &S) {
    let locks = locks(store);
    let [ada, bob] = ["ada", "bob"].map(|name| Session::begin(store, &locks, name).unwrap());
    let held = ada.lock(&[exclusive("a/b")]).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let guard = bob.lock(&[exclusive("a")]).unwrap();
            guard.transact(|txn| txn.put(b"seen", b"by bob")).unwrap();
            guard.token()
        });
        while locks.requests(&store.snapshot().unwrap()).unwrap().len() < 2 {
            std::thread::yield_now();
        }
        held.transact(|txn| {
            assert!(txn.get(b"seen")?.is_none());
            txn.put(b"before", b"by ada")
        })
        .unwrap();
        let token = held.token();
        held.release().unwrap();
        assert!(waiter.join().unwrap() > token);
    });
    assert!(locks.requests(&store.snapshot().unwrap()).unwrap().is_empty());
    ada.end().unwrap();
    bob.end().unwrap();
    assert!(locks.sessions(&store.snapshot().unwrap()).unwrap().is_empty());
}

fn a_wait_ends_with_its_deadline<S: Store + Clone>(store: &S) {
    let locks = locks(store);
    let [ada, bob] = ["ada", "bob"].map(|name| Session::begin(store, &locks, name).unwrap());
    let _held = ada.lock(&[shared("a")]).unwrap();
    let began = Instant::now();
    let error = refused(bob.lock_within(&[exclusive("a")], Duration::from_millis(30)));
    assert!(began.elapsed() >= Duration::from_millis(30));
    let text = error.to_string();
    assert!(text.contains(r#"session "ada" holds S on /"a""#), "{text}");
    // Its request is withdrawn, so readers can enter.
    drop(bob.try_lock(&[shared("a")]).unwrap());
}

/// Waits for locks, an upgrade, a permit and a leadership, all without a deadline.
fn stopped_waits_leave_no_request<S: Store + Clone>(store: &S) {
    let locks = locks(store);
    let schema = Schema::open(store, "shop").unwrap();
    let recipes = Recipes::open(&schema, &locks, "recipes").unwrap();
    let semaphore = recipes.semaphore(&path("ovens"), 1).unwrap();
    let election = recipes.election(&path("mailer")).unwrap();
    let [ada, bob] = ["ada", "bob"].map(|name| Session::begin(store, &locks, name).unwrap());
    let _held = ada.lock(&[exclusive("a"), shared("b")]).unwrap();
    let _permit = semaphore.acquire(&ada).unwrap();
    let _leads = election.campaign(&ada, b"", Duration::from_secs(10)).unwrap();
    let mut weak = bob.lock(&[shared("b")]).unwrap();
    let before = locks.requests(&store.snapshot().unwrap()).unwrap().len();
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let waits = [
            scope.spawn(|| bob.lock_within(&[exclusive("a")], &stop).map(drop)),
            scope.spawn(|| semaphore.acquire_within(&bob, &stop).map(drop)),
            scope.spawn(|| election.campaign(&bob, b"", &stop).map(drop)),
            scope.spawn(|| weak.upgrade(Mode::Exclusive, &stop)),
        ];
        let observes = scope.spawn(|| {
            let leader = election.leader(&store.snapshot().unwrap()).unwrap();
            election.observe(store, leader.as_ref(), &stop)
        });
        // The permits have requests of their own.
        while locks.requests(&store.snapshot().unwrap()).unwrap().len() < before + 3 {
            assert!(waits.iter().all(|wait| !wait.is_finished()));
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(20));
        assert!(waits.iter().all(|wait| !wait.is_finished()) && !observes.is_finished());
        stop.request();
        for wait in waits {
            let error = refused(wait.join().unwrap());
            assert!(matches!(error, LockError::Stopped { .. }), "{error}");
            assert!(error.to_string().contains("was stopped"), "{error}");
        }
        assert_eq!(observes.join().unwrap().unwrap(), None);
    });
    assert_eq!(locks.requests(&store.snapshot().unwrap()).unwrap().len(), before);
    // A free lock is granted, though the stop was requested before; a held one is not.
    bob.lock_within(&[exclusive("c")], &stop).unwrap().release().unwrap();
    let soon = Patience::from(&stop).at_most(Duration::from_secs(60));
    assert!(matches!(refused(bob.lock_within(&[exclusive("a")], soon)), LockError::Stopped { .. }));
    let first = Patience::from(&Stop::new()).at_most(Duration::from_millis(5));
    let error = refused(bob.lock_within(&[exclusive("a")], first));
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
}

fn a_dropped_guard_releases<S: Store + Clone>(store: &S) {
    let locks = locks(store);
    let ada = Session::begin(store, &locks, "ada").unwrap();
    drop(ada.lock(&[exclusive("a")]).unwrap());
    assert!(locks.requests(&store.snapshot().unwrap()).unwrap().is_empty());
    // An upgrade of a lost lock is refused with the reason.
    let guard = ada.lock(&[exclusive("a")]).unwrap();
    store.transact(|txn| locks.revoke(txn, *guard.grant())).unwrap();
    drop(guard);
    let failures = ada.take_failures();
    assert_eq!(failures.len(), 1);
    let lost = failures[0].downcast_ref::<LockError>();
    assert!(matches!(lost, Some(LockError::Lost { .. })), "{failures:?}");
}

fn an_upgrade_holds_the_lock_all_the_time<S: Store + Clone>(store: &S) {
    let locks = locks(store);
    let [ada, bob] = ["ada", "bob"].map(|name| Session::begin(store, &locks, name).unwrap());
    let mut guard = ada.lock(&[shared("a")]).unwrap();
    let reader = bob.lock(&[shared("a")]).unwrap();
    let error = refused(guard.upgrade(Mode::Exclusive, Duration::from_millis(5)));
    assert!(matches!(error, LockError::TimedOut { .. }), "{error}");
    // The old mode stays.
    assert!(bob.try_lock(&[exclusive("a")]).is_err());
    reader.release().unwrap();
    guard.upgrade(Mode::Exclusive, Duration::from_secs(10)).unwrap();
    assert!(bob.try_lock(&[shared("a")]).is_err());
    guard.downgrade(Mode::Shared).unwrap();
    drop(bob.try_lock(&[shared("a")]).unwrap());
    guard.release().unwrap();
}

/// The lock is revoked while its upgrade waits for another reader.
fn an_upgrade_whose_lock_is_lost_meanwhile_is_refused<S: Store + Clone>(store: &S) {
    let locks = locks(store);
    let [ada, bob] = ["ada", "bob"].map(|name| Session::begin(store, &locks, name).unwrap());
    let mut guard = ada.lock(&[shared("a")]).unwrap();
    let old = *guard.grant();
    let reader = bob.lock(&[shared("a")]).unwrap();
    std::thread::scope(|scope| {
        let upgrade = scope.spawn(|| guard.upgrade(Mode::Exclusive, Duration::from_secs(10)));
        while locks.requests(&store.snapshot().unwrap()).unwrap().len() < 3 {
            std::thread::yield_now();
        }
        store.transact(|txn| locks.revoke(txn, old)).unwrap();
        reader.release().unwrap();
        assert!(matches!(refused(upgrade.join().unwrap()), LockError::Lost { .. }));
    });
    // Nothing of the upgrade remains.
    assert!(locks.requests(&store.snapshot().unwrap()).unwrap().is_empty());
}

/// An upgraded lock is one request: the old request is gone, and the guard releases the new one.
fn an_upgrade_replaces_the_old_request<S: Store + Clone>(store: &S) {
    let locks = locks(store);
    let ada = Session::begin(store, &locks, "ada").unwrap();
    let mut guard = ada.lock(&[shared("a")]).unwrap();
    let old = *guard.grant();
    guard.upgrade(Mode::Exclusive, Duration::ZERO).unwrap();
    assert!(guard.token() > old.token);
    let upgraded = *guard.grant();
    guard.upgrade(Mode::Shared, Duration::ZERO).unwrap();
    assert_eq!(*guard.grant(), upgraded, "it includes the mode");
    let found = locks.requests(&store.snapshot().unwrap()).unwrap();
    assert_eq!(found.iter().map(|info| info.grant()).collect::<Vec<_>>(), [Some(upgraded)]);
    guard.release().unwrap();
    assert!(locks.requests(&store.snapshot().unwrap()).unwrap().is_empty());
    assert!(ada.take_failures().is_empty());
}

/// Waits until no request is left, for less than a third of the lease of 10 seconds. This shows
/// that the session does not wait for its next renewal.
fn soon_is_free<S: Store>(store: &S, locks: &Locks) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(2_500) {
        if locks.requests(&store.snapshot().unwrap()).unwrap().is_empty() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

fn a_guard_dropped_within_a_transaction_releases<S: Store + Clone>(store: &S) {
    let locks = locks(store);
    let ada = Session::begin(store, &locks, "ada").unwrap();
    let mut guard = Some(ada.lock(&[exclusive("a")]).unwrap());
    store
        .transact(|txn| {
            drop(guard.take());
            txn.put(b"written", b"")
        })
        .unwrap();
    assert!(soon_is_free(store, &locks), "the heartbeat keeps the lock");
    assert!(ada.take_failures().is_empty());
}

/// A session without a thread releases dropped locks at its next request.
fn the_next_request_releases_what_was_dropped<S: Store + Clone>(store: &S) {
    let locks = locks(store);
    let options = LeaseOptions::default();
    let ada = Session::without_heartbeat(store, &locks, "ada", options).unwrap();
    let mut guard = Some(ada.lock(&[exclusive("a")]).unwrap());
    store
        .transact(|txn| {
            drop(guard.take());
            txn.put(b"written", b"")
        })
        .unwrap();
    let other = ada.try_lock(&[exclusive("b")]).unwrap();
    let found = locks.requests(&store.snapshot().unwrap()).unwrap();
    assert_eq!(found.iter().map(|info| info.ticket).collect::<Vec<_>>(), [other.grant().ticket]);
    assert!(ada.take_failures().is_empty());
}

fn a_permit_dropped_within_a_transaction_is_released<S: Store + Clone>(store: &S) {
    let schema = Schema::open(store, "shop").unwrap();
    let locks = locks(store);
    let recipes = Recipes::open(&schema, &locks, "recipes").unwrap();
    let semaphore = recipes.semaphore(&path("a"), 1).unwrap();
    let [ada, bob] = ["ada", "bob"].map(|name| Session::begin(store, &locks, name).unwrap());
    let mut permit = Some(semaphore.try_acquire(&ada).unwrap());
    store
        .transact(|txn| {
            drop(permit.take());
            txn.put(b"written", b"")
        })
        .unwrap();
    semaphore.acquire_within(&bob, Duration::from_millis(2_500)).unwrap().release().unwrap();
    assert!(ada.take_failures().is_empty());
}

/// The session's thread may have to wait for the transaction that this thread has open.
fn a_session_dropped_within_a_transaction_ends<S: Store + Clone>(store: &S) {
    let locks = locks(store);
    let mut ada = Some(Session::begin(store, &locks, "ada").unwrap());
    std::mem::forget(ada.as_ref().unwrap().lock(&[exclusive("a")]).unwrap());
    store
        .transact(|txn| {
            drop(ada.take());
            txn.put(b"written", b"")
        })
        .unwrap();
    assert!(soon_is_free(store, &locks));
    assert!(locks.sessions(&store.snapshot().unwrap()).unwrap().is_empty());
}

on_every_store_and_server! {
    a_guard_dropped_within_a_transaction_releases,
    the_next_request_releases_what_was_dropped,
    a_permit_dropped_within_a_transaction_is_released,
    a_session_dropped_within_a_transaction_ends,
    an_upgrade_whose_lock_is_lost_meanwhile_is_refused,
    an_upgrade_replaces_the_old_request,
    a_waiter_gets_the_lock_after_its_release,
    a_wait_ends_with_its_deadline,
    stopped_waits_leave_no_request,
    a_dropped_guard_releases,
    an_upgrade_holds_the_lock_all_the_time,
}

/// A commit must wake only the threads that wait for its keys. If each commit woke all 400 threads
/// to read without success, the test would take a hundred times as long.
fn four_hundred_threads_wait_for_one_lock<S: Store + Clone>(store: &S) {
    const THREADS: u64 = 400;
    let locks = locks(store);
    let first = Session::begin(store, &locks, "first").unwrap();
    let held = first.lock(&[exclusive("a")]).unwrap();
    let wait = |thread: u64| {
        let session = Session::begin(store, &locks, &format!("thread {thread}")).unwrap();
        let guard = session.lock(&[exclusive("a")]).unwrap();
        let seen = store.snapshot().unwrap().counter(b"served").unwrap();
        guard.transact(|txn| txn.put(b"served", &(seen + 1).to_le_bytes())).unwrap();
        let token = guard.token();
        guard.release().unwrap();
        session.end().unwrap();
        (seen, token)
    };
    let mut served: Vec<_> = std::thread::scope(|scope| {
        let wait = &wait;
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || wait(n))).collect();
        let waiting = || locks.requests(&store.snapshot().unwrap()).unwrap().len() as u64;
        while waiting() <= THREADS {
            std::thread::sleep(Duration::from_millis(10));
        }
        held.release().unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    served.sort_unstable();
    assert!(served.iter().map(|(seen, _)| *seen).eq(0..THREADS as i64), "one after the other");
    assert!(served.is_sorted_by_key(|(_, token)| *token));
}

#[test]
fn four_hundred_threads_wait_for_one_lock_on_memory() {
    four_hundred_threads_wait_for_one_lock(&Memory::new());
}

#[test]
fn four_hundred_threads_wait_for_one_lock_on_lmdb() {
    four_hundred_threads_wait_for_one_lock(&*TemporaryLmdb::new());
}

/// With the system clock, a lease of 60 ms survives many times its length while it is renewed.
#[test]
fn a_lease_is_renewed_by_its_thread() {
    let store = Memory::new();
    let locks = locks(&store);
    let lease = Duration::from_millis(300);
    let options = LeaseOptions { lease, grace: Duration::from_millis(300) };
    let ada = Session::begin_with(&store, &locks, "ada", options).unwrap();
    let id = ada.id();
    let guard = ada.lock(&[exclusive("a")]).unwrap();
    let first = locks.sessions(&store.snapshot().unwrap()).unwrap()[0].1.expires;
    let key_of_change = || locks.sessions(&store.snapshot().unwrap()).unwrap()[0].1.expires;
    let began = Instant::now();
    while key_of_change() < first + 600 {
        assert!(began.elapsed() < Duration::from_secs(20), "the lease is not renewed");
        std::thread::sleep(Duration::from_millis(5));
    }
    guard.transact(|txn| txn.put(b"written", b"")).unwrap();
    assert!(ada.failure().is_none());
    drop(guard);
    ada.end().unwrap();
    let gone = store.transact(|txn| locks.renew(txn, id, lease));
    assert!(matches!(refused(gone), LockError::SessionEnded { .. }));
}
