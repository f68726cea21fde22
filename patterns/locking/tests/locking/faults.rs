//! Injects a fault into every operation of a change.

use keyloom::{Fault, Faulty, Memory, Store};
use keyloom_locking::{Grant, LeaseOptions, Locks, Mode};
use keyloom_testing::laws;

use super::support::{Bench, exclusive, shared};

#[test]
fn locks_are_granted_as_a_whole_or_not_at_all() {
    let store = Memory::new();
    let ids = std::cell::Cell::new((0, 0));
    let locks = std::cell::RefCell::new(None::<Locks>);
    laws::faults_leave_nothing_half_done(
        &store,
        |store| {
            // Session ids are random, so the generator is seeded.
            fastrand::seed(7);
            let bench = Bench::new(store);
            ids.set((bench.session("ada"), bench.session("bob")));
            bench.try_lock(ids.get().1, &shared("x")).unwrap();
            *locks.borrow_mut() = Some(bench.locks);
        },
        |txn| {
            let locks = locks.borrow();
            let locks = locks.as_ref().unwrap();
            let (ada, bob) = ids.get();
            let grant = locks.try_lock(txn, ada, &[exclusive("a/b"), shared("c")])?;
            locks.verify(txn, grant)?;
            locks.begin_work(txn, grant, "work", b"")?;
            locks.abandon(txn, grant)?;
            locks.downgrade(txn, grant, Mode::Shared)?;
            locks.request(txn, bob, &[exclusive("a")])?;
            locks.release(txn, grant)?;
            locks.end_session(txn, bob).map(drop)
        },
        |store| {
            let faults = locks.borrow().as_ref().unwrap().check(&store.snapshot().unwrap());
            faults.unwrap().iter().map(ToString::to_string).collect()
        },
    );
}

/// A lock whose commit has an unknown outcome is not held.
#[test]
fn a_lock_of_unknown_outcome_is_withdrawn() {
    let faults = [Fault::UnknownButCommitted, Fault::UnknownAndLost];
    for (n, fault) in (0..40).flat_map(|n| faults.map(|fault| (n, fault))) {
        let store = Memory::new();
        let locks = Bench::new(&store).locks;
        let faulty = Faulty::new(store.clone());
        let options = LeaseOptions::default();
        let session = keyloom_locking::Session::without_heartbeat(&faulty, &locks, "s", options);
        let session = session.unwrap();
        faulty.fail_at(n, fault);
        let has_failed = session.try_lock(&[exclusive("a")]).map(std::mem::forget).is_err();
        let held = locks.requests(&store.snapshot().unwrap()).unwrap().len();
        assert_eq!(held, usize::from(!has_failed), "the operation {n} failed");
    }
}

/// After a failed upgrade, the guard holds one lock, or the lock is lost: no second request
/// remains.
#[test]
fn a_failed_upgrade_leaves_one_request_or_none() {
    let faults = [Fault::Error, Fault::UnknownButCommitted, Fault::UnknownAndLost];
    let (mut upgraded, mut failed) = (0, 0);
    for (n, fault) in (0..40).flat_map(|n| faults.map(|fault| (n, fault))) {
        let store = Memory::new();
        let locks = Bench::new(&store).locks;
        let faulty = Faulty::new(store.clone());
        let options = LeaseOptions::default();
        let session = keyloom_locking::Session::without_heartbeat(&faulty, &locks, "s", options);
        let session = session.unwrap();
        let mut guard = session.lock(&[shared("a")]).unwrap();
        faulty.fail_at(n, fault);
        let result = guard.upgrade(Mode::Exclusive, std::time::Duration::ZERO);
        let found = locks.requests(&store.snapshot().unwrap()).unwrap();
        let found: Vec<_> = found.iter().map(|info| info.grant()).collect();
        assert_eq!(found, [Some(*guard.grant())], "the operation {n} failed: {fault:?}");
        let mode = guard.locks()[0].mode();
        assert_eq!(mode == Mode::Exclusive, result.is_ok(), "the operation {n} failed: {fault:?}");
        *if result.is_ok() { &mut upgraded } else { &mut failed } += 1;
    }
    assert!(upgraded > 10 && failed > 10, "{upgraded} {failed}");
}

/// A waiting session withdraws its request, whichever operation fails.
#[test]
fn a_failed_wait_leaves_no_request() {
    let store = Memory::new();
    let locks = Bench::new(&store).locks;
    let options = LeaseOptions::default();
    let holder = store.transact(|txn| locks.begin_session(txn, "holder", &options)).unwrap();
    let held = [exclusive("a")];
    let grant: Grant = store.transact(|txn| locks.try_lock(txn, holder, &held)).unwrap();
    let mut failures = 0;
    let faults = [Fault::Error, Fault::UnknownButCommitted, Fault::UnknownAndLost];
    for (n, fault) in (0..).flat_map(|n| faults.map(|fault| (n, fault))) {
        let faulty = Faulty::new(store.clone());
        let session = keyloom_locking::Session::without_heartbeat(&faulty, &locks, "s", options);
        let session = session.unwrap();
        faulty.fail_at(n, fault);
        let result = session.lock_within(&held, std::time::Duration::from_millis(20)).map(drop);
        let is_injected =
            result.unwrap_err().downcast_ref::<keyloom_locking::LockError>().is_none();
        let requests = locks.requests(&store.snapshot().unwrap()).unwrap();
        let left = requests.iter().filter(|info| info.session == session.id()).count();
        assert_eq!(left, 0, "the operation {n} failed");
        drop(session);
        if !is_injected {
            break;
        }
        failures += 1;
    }
    assert!(failures > 10, "{failures}");
    store.transact(|txn| locks.release(txn, grant)).unwrap();
}
