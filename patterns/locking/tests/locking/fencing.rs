//! A holder that is paused for longer than its lease changes nothing.

use keyloom::{Reader, Store, Writer};
use keyloom_locking::{Grant, LeaseOptions, LockError, Locks, ManualClock, Mode, Session};
use keyloom_testing::{laws, on_every_store_and_server};
use std::time::Duration;

use super::support::{Bench, GRACE, LEASE, exclusive, refused, shared};

const FILE: &[u8] = b"the file";

/// The work of a holder: it reads the file, computes for a long time, and writes the result.
fn write(store: &impl Store, text: &[u8], verify: Option<(&Locks, Grant)>) -> keyloom::Result<()> {
    store.transact(|txn| {
        verify.map_or(Ok(()), |(locks, grant)| locks.verify(txn, grant))?;
        txn.put(FILE, text)
    })
}

fn content(store: &impl Store) -> Vec<u8> {
    store.snapshot().unwrap().get(FILE).unwrap().unwrap().to_vec()
}

/// Ada acquires the lock and is paused. Her lease ends, Bob locks and writes, and Ada resumes.
/// Returns the result of Ada's write.
fn paused_holder<S: Store>(store: &S, is_fenced: bool) -> keyloom::Result<()> {
    let bench = Bench::new(store);
    let (ada, file) = (bench.session("ada"), exclusive("file"));
    let grant = bench.try_lock(ada, &file).unwrap();
    bench.let_leases_end();
    let bob = bench.session("bob");
    let newer = bench.try_lock(bob, &file).unwrap();
    assert!(newer.token > grant.token);
    write(store, b"bob's", Some((&bench.locks, newer))).unwrap();
    let result = write(store, b"ada's", is_fenced.then_some((&bench.locks, grant)));
    assert_eq!(refused(bench.release(grant)).to_string().split(" is lost").count(), 2);
    assert!(bench.faults().is_empty(), "{:?}", bench.faults());
    result
}

fn a_stale_holder_cannot_commit<S: Store>(store: &S) {
    let error = refused(paused_holder(store, true));
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    assert_eq!(content(store), b"bob's");
}

/// The negative control: without the verification, the stale write commits.
fn without_fencing_a_stale_write_is_made<S: Store>(store: &S) {
    paused_holder(store, false).unwrap();
    assert_eq!(content(store), b"ada's");
}

/// The verification and the takeover conflict, in either order of the commits.
fn a_takeover_before_the_commit_stops_the_holder<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let grant = bench.try_lock(bench.session("ada"), &exclusive("file")).unwrap();
    let mut attempts = 0;
    let result = store.transact(|txn| {
        attempts += 1;
        bench.locks.verify(txn, grant)?;
        txn.put(FILE, b"ada's")
    });
    assert!(result.is_ok() && attempts == 1);
    bench.let_leases_end();
    // Her lease has ended, but no other session has acquired the lock, so the write is safe and
    // commits.
    write(store, b"ada's again", Some((&bench.locks, grant))).unwrap();
    bench.try_lock(bench.session("bob"), &exclusive("file")).unwrap();
    refused(write(store, b"too late", Some((&bench.locks, grant))));
    assert_eq!(content(store), b"ada's again");
}

fn a_swallowed_refusal_does_not_commit<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let grant = bench.try_lock(bench.session("ada"), &exclusive("file")).unwrap();
    store.transact(|txn| bench.locks.revoke(txn, grant)).unwrap();
    let swallowed = store.transact(|txn| {
        let _refused = bench.locks.verify(txn, grant);
        txn.put(FILE, b"ada's")
    });
    assert!(matches!(swallowed, Err(keyloom::Error::CommitRefused { .. })));
    assert!(store.snapshot().unwrap().get(FILE).unwrap().is_none());
}

/// Tokens of several counters may be equal, but an old grant is never accepted for a new lock.
fn an_old_grant_is_not_that_of_a_new_lock<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let ada = bench.session("ada");
    for n in 0..40 {
        let old = bench.try_lock(ada, &exclusive("c")).unwrap();
        store.transact(|txn| bench.locks.revoke(txn, old)).unwrap();
        let new = bench.try_lock(ada, &exclusive(&n.to_string())).unwrap();
        refused(store.transact(|txn| bench.locks.verify(txn, old)));
        refused(bench.release(old));
        store.transact(|txn| bench.locks.verify(txn, new)).unwrap();
    }
    assert!(bench.faults().is_empty());
}

/// Tokens of locks that exclude each other increase, also across levels and for the root.
fn tokens_grow_between_levels<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let ada = bench.session("ada");
    let mut last = 0;
    for text in ["a", "a/b", "", "c/d/e", "c", "", "a/b", "x", "", "a"] {
        let grant = bench.try_lock(ada, &exclusive(text)).unwrap();
        let is_disjoint = matches!(text, "c/d/e" | "x");
        assert!(grant.token > last || is_disjoint, "{text}: {} after {last}", grant.token);
        last = last.max(grant.token);
        bench.release(grant).unwrap();
    }
}

/// How a session loses its lock while its lease is still valid by its own clock.
#[derive(Clone, Copy)]
enum Loss {
    Revoked,
    /// A program whose clock is 1.5 s ahead, less than the grace period, removes the lock.
    FastClock,
}

/// Ada locks the file in shared mode and reads it. She loses the lock, and Bob writes. Then she
/// upgrades her lock and writes a result computed from the old content. Returns the result of her
/// upgrade and write.
fn upgrade_after<S: Store + Clone>(store: &S, loss: Loss) -> keyloom::Result<()> {
    laws::clear(store);
    let bench = Bench::new(store);
    store.transact(|txn| txn.put(FILE, b"old")).unwrap();
    let options = LeaseOptions { lease: LEASE, grace: GRACE };
    let ada = Session::without_heartbeat(store, &bench.locks, "ada", options).unwrap();
    let mut guard = ada.lock(&[shared("file")]).unwrap();
    assert_eq!(content(store), b"old");
    let ahead = ManualClock::at(1_000_000);
    match loss {
        Loss::Revoked => {
            let grant = *guard.grant();
            store.transact(|txn| bench.locks.revoke(txn, grant)).unwrap();
        }
        Loss::FastClock => {
            bench.clock.advance(Duration::from_secs(11));
            ahead.advance(Duration::from_millis(12_500));
        }
    }
    let other = Bench { store, locks: bench.locks.clone().with_clock(ahead.clone()), clock: ahead };
    let grant = other.try_lock(other.session("bob"), &exclusive("file")).unwrap();
    write(store, b"bob's", Some((&other.locks, grant))).unwrap();
    other.release(grant).unwrap();
    guard.upgrade(Mode::Exclusive, Duration::from_secs(1))?;
    guard.transact(|txn| txn.put(FILE, b"ada's"))
}

fn an_upgrade_of_a_lost_lock_is_refused<S: Store + Clone>(store: &S) {
    for loss in [Loss::Revoked, Loss::FastClock] {
        let error = upgrade_after(store, loss);
        assert_eq!(content(store), b"bob's", "what Ada never read is overwritten");
        assert!(matches!(refused(error), LockError::Lost { .. }));
    }
}

on_every_store_and_server! {
    an_upgrade_of_a_lost_lock_is_refused,
    a_stale_holder_cannot_commit,
    without_fencing_a_stale_write_is_made,
    a_takeover_before_the_commit_stops_the_holder,
    a_swallowed_refusal_does_not_commit,
    tokens_grow_between_levels,
    an_old_grant_is_not_that_of_a_new_lock,
}
