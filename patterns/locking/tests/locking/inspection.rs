//! Inspection of holders and waiters, locks broken by hand, and planted damage.

use keyloom::{Memory, Store};
use keyloom_locking::LockError;
use keyloom_testing::on_every_store_and_server;

use super::support::{Bench, GRACE, LEASE, exclusive, refused, shared};

fn requests_say_who_waits_for_whom<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let (ada, bob) = (bench.session("ada"), bench.session("bob"));
    let grant = bench.try_lock(ada, &shared("a")).unwrap();
    let ticket = bench.wait(bob, &exclusive("a/b"));
    let all = bench.locks.requests(&store.snapshot().unwrap()).unwrap();
    let of = |session| all.iter().find(|info| info.session == session).unwrap();
    assert_eq!(of(ada).grant(), Some(grant));
    assert_eq!(of(ada).owner.as_ref().unwrap().name, "ada");
    assert!(of(ada).waits_for.is_empty());
    assert_eq!((of(bob).ticket, of(bob).grant()), (ticket, None));
    let blockers: Vec<_> = of(bob).waits_for.iter().map(ToString::to_string).collect();
    assert_eq!(blockers, [r#"session "ada" holds S on /"a""#]);
    assert_eq!(bench.locks.sessions(&store.snapshot().unwrap()).unwrap().len(), 2);
}

/// A live holder is found even if it follows more requests of ended sessions than one request
/// removes.
fn a_holder_behind_many_ended_ones_is_found<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let bob = bench.session("bob");
    for n in 0..112 {
        let ended = bench.session(&format!("ended {n}"));
        bench.try_lock(ended, &exclusive(&format!("a/{n}"))).unwrap();
    }
    let ada = bench.session("ada");
    bench.try_lock(ada, &exclusive("a/z")).unwrap();
    let ticket = bench.wait(bob, &exclusive("a"));
    bench.clock.advance(LEASE / 2);
    [ada, bob].iter().for_each(|alive| bench.renew(*alive).unwrap());
    bench.clock.advance(LEASE / 2 + GRACE);
    [ada, bob].iter().for_each(|alive| bench.renew(*alive).unwrap());
    let all = bench.locks.requests(&store.snapshot().unwrap()).unwrap();
    let waiting = all.iter().find(|info| (info.session, info.ticket) == (bob, ticket)).unwrap();
    let names: Vec<_> = waiting.waits_for.iter().map(|blocker| blocker.name.as_str()).collect();
    assert_eq!(names, ["ada"]);
}

fn a_broken_lock_is_lost_to_its_holder<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let (ada, bob) = (bench.session("ada"), bench.session("bob"));
    let grant = bench.try_lock(ada, &exclusive("a")).unwrap();
    let ticket = bench.wait(bob, &exclusive("a"));
    store.transact(|txn| bench.locks.revoke(txn, grant)).unwrap();
    assert!(bench.is_granted(bob, ticket));
    refused(store.transact(|txn| bench.locks.verify(txn, grant)));
    refused(store.transact(|txn| bench.locks.revoke(txn, grant)));
}

fn ended_sessions_are_cleaned_up<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let ada = bench.session("ada");
    for n in 0..250 {
        bench.try_lock(ada, &exclusive(&format!("a/{n}"))).unwrap();
    }
    let early = bench.locks.sweep(store).unwrap().removed;
    assert_eq!(early, 0);
    bench.let_leases_end();
    let bob = bench.session("bob");
    let error = refused(bench.try_lock(bob, &exclusive("a")));
    // A request removes only some of the ended requests.
    assert!(matches!(error, LockError::ManyEnded { .. }), "{error}");
    assert_eq!(bench.locks.sweep(store).unwrap().removed, 250);
    bench.try_lock(bob, &exclusive("a")).unwrap();
    let sessions = bench.locks.sessions(&store.snapshot().unwrap()).unwrap();
    assert_eq!(sessions.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [bob]);
}

on_every_store_and_server! {
    requests_say_who_waits_for_whom,
    a_holder_behind_many_ended_ones_is_found,
    a_broken_lock_is_lost_to_its_holder,
    ended_sessions_are_cleaned_up,
}

/// A check finds a missing claim, a foreign one, and two holders that exclude each other.
#[test]
fn planted_damage_is_found() {
    let store = Memory::new();
    let bench = Bench::new(&store);
    bench.try_lock(bench.session("ada"), &exclusive("a/b")).unwrap();
    assert!(bench.faults().is_empty());
    let clean = keyloom_testing::laws::dump_all(&store);
    let claims: Vec<_> =
        clean.keys().filter(|key| key.windows(3).any(|w| w == b"\x05\x02a")).collect();
    assert!(claims.len() >= 2, "{claims:?}");
    let mut found = 0;
    for key in claims {
        let mut txn = store.begin().unwrap();
        keyloom::Writer::delete(&mut txn, key).unwrap();
        keyloom::Transaction::commit(txn).unwrap();
        found += usize::from(!bench.faults().is_empty());
        // A lock without its claim no longer excludes a second lock.
        let is_held_twice = bench.try_lock(bench.session("bob"), &exclusive("a/b")).is_ok();
        if is_held_twice {
            let faults = bench.faults();
            assert!(faults.iter().any(|fault| fault.contains("missing")), "{faults:?}");
        }
        assert_eq!(bench.locks.repair(&store).unwrap().written, 1);
        let left = bench.faults();
        assert!(!left.iter().any(|fault| fault.contains("missing")), "{left:?}");
        assert_eq!(left.is_empty(), !is_held_twice, "of two holders none is right: {left:?}");
        keyloom_testing::laws::clear(&store);
        store
            .transact(|txn| clean.iter().try_for_each(|(k, v)| keyloom::Writer::put(txn, k, v)))
            .unwrap();
    }
    assert!(found >= 2, "{found}");
}
