//! Sessions that wait for each other get an error.

use keyloom::Store;
use keyloom_locking::{LockError, Outcome};
use keyloom_testing::on_every_store_and_server;

use super::support::{Bench, exclusive, refused, shared};

fn a_cycle_of_three_names_its_sessions<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let names = ["ada", "bob", "carol"];
    let sessions = names.map(|name| bench.session(name));
    let locks = ["a", "b/1", "c"].map(exclusive);
    let grants: Vec<_> =
        sessions.iter().zip(&locks).map(|(s, lock)| bench.try_lock(*s, lock).unwrap()).collect();
    let first = bench.wait(sessions[0], &locks[1]);
    bench.wait(sessions[1], &locks[2]);
    let error = refused(bench.request(sessions[2], &locks[0]));
    let LockError::Deadlock { cycle, .. } = &error else { panic!("{error}") };
    assert_eq!(*cycle, [r#"session "ada""#, r#"session "bob""#]);
    assert!(
        error.to_string().starts_with(r#"X on /"a" would never be granted: session "ada", which"#)
    );
    // The victim releases its locks, and the other sessions continue.
    bench.release(grants[2]).unwrap();
    bench.release(grants[1]).unwrap();
    assert!(bench.is_granted(sessions[0], first));
    assert!(bench.faults().is_empty());
}

fn two_upgrades_are_a_deadlock<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let (ada, bob) = (bench.session("ada"), bench.session("bob"));
    bench.try_lock(ada, &shared("a")).unwrap();
    let bobs = bench.try_lock(bob, &shared("a")).unwrap();
    let ticket = bench.wait(ada, &exclusive("a"));
    let error = refused(bench.request(bob, &exclusive("a")));
    assert!(matches!(error, LockError::Deadlock { .. }), "{error}");
    bench.release(bobs).unwrap();
    assert!(bench.is_granted(ada, ticket));
}

/// A chain without a cycle is not a deadlock, however the sessions are related.
fn a_chain_of_waits_is_no_deadlock<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let sessions: Vec<_> = (0..20).map(|n| bench.session(&n.to_string())).collect();
    for (n, session) in sessions.iter().enumerate() {
        bench.try_lock(*session, &exclusive(&n.to_string())).unwrap();
    }
    for (n, session) in sessions.iter().enumerate().skip(1) {
        bench.wait(*session, &exclusive(&(n - 1).to_string()));
    }
    let error = refused(bench.request(sessions[0], &exclusive("19")));
    let LockError::Deadlock { cycle, .. } = error else { panic!("{error}") };
    assert_eq!(cycle.len(), 19);
}

/// The locks of one request are acquired atomically, so two requests in opposite orders are safe.
fn requests_for_several_locks_do_not_deadlock<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let (ada, bob) = (bench.session("ada"), bench.session("bob"));
    let [one, two] = [exclusive("a"), exclusive("b")];
    let both = [one.clone(), two.clone()];
    let grant = store.transact(|txn| bench.locks.try_lock(txn, ada, &both)).unwrap();
    let opposite = [two, one];
    let outcome = store.transact(|txn| bench.locks.request(txn, bob, &opposite)).unwrap();
    let Outcome::Waiting { ticket, blockers } = outcome else { panic!() };
    assert_eq!(blockers.len(), 1);
    bench.release(grant).unwrap();
    assert!(bench.is_granted(bob, ticket));
}

/// Carol waits for both locks. Ada holds one and requests the other, which is free. Ada may pass
/// Carol, because Carol has to wait for Ada in any case.
fn a_waiter_for_a_lock_of_the_session_is_passed<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let (ada, carol) = (bench.session("ada"), bench.session("carol"));
    bench.try_lock(ada, &exclusive("a")).unwrap();
    let both = [exclusive("a"), exclusive("b")];
    let waits = store.transact(|txn| bench.locks.request(txn, carol, &both)).unwrap();
    assert!(matches!(waits, Outcome::Waiting { .. }));
    assert!(bench.try_lock(bench.session("bob"), &exclusive("b")).is_err());
    bench.try_lock(ada, &exclusive("b")).unwrap();
}

on_every_store_and_server! {
    a_waiter_for_a_lock_of_the_session_is_passed,
    a_cycle_of_three_names_its_sessions,
    two_upgrades_are_a_deadlock,
    a_chain_of_waits_is_no_deadlock,
    requests_for_several_locks_do_not_deadlock,
}
