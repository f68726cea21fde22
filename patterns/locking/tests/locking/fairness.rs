//! Requests are granted in their arrival order.

use keyloom::Store;
use keyloom_locking::{Lock, LockError, Mode, Outcome};
use keyloom_testing::on_every_store_and_server;

use super::support::{Bench, exclusive, path, refused, shared};

fn waiting_requests_are_granted_in_order<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let lock = exclusive("a/b");
    let holder = bench.try_lock(bench.session("holder"), &lock).unwrap();
    let waiters: Vec<_> = (0..5)
        .map(|n| {
            let session = bench.session(&format!("waiter {n}"));
            (session, bench.wait(session, &lock))
        })
        .collect();
    let mut grant = holder;
    for n in 0..5 {
        bench.release(grant).unwrap();
        // The later requests are polled first, without success.
        for (session, ticket) in waiters[n + 1..].iter().rev() {
            assert!(!bench.is_granted(*session, *ticket));
        }
        let (session, ticket) = waiters[n];
        let Outcome::Granted(next) = bench.poll(session, ticket).unwrap() else { panic!("{n}") };
        assert!(next.token > grant.token);
        grant = next;
    }
    assert!(bench.faults().is_empty());
}

/// A stream of readers does not starve a writer: later readers wait for the writer.
fn a_waiting_writer_stops_later_readers<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let first = bench.try_lock(bench.session("first"), &shared("a")).unwrap();
    let writer = bench.session("writer");
    let ticket = bench.wait(writer, &exclusive("a"));
    let late = bench.session("late");
    assert!(bench.try_lock(late, &shared("a")).is_err());
    let late_ticket = bench.wait(late, &shared("a/b"));
    bench.release(first).unwrap();
    assert!(!bench.is_granted(late, late_ticket));
    let Outcome::Granted(written) = bench.poll(writer, ticket).unwrap() else { panic!() };
    bench.release(written).unwrap();
    assert!(bench.is_granted(late, late_ticket));
}

/// A session that holds a lock passes the requests that wait for this lock; otherwise they would
/// wait for each other.
fn a_holder_passes_the_queue_below_its_lock<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let (ada, bob) = (bench.session("ada"), bench.session("bob"));
    bench.try_lock(ada, &exclusive("a/1")).unwrap();
    bench.wait(bob, &exclusive("a"));
    // A third session waits behind Bob.
    assert!(bench.try_lock(bench.session("carol"), &exclusive("a/2")).is_err());
    bench.try_lock(ada, &exclusive("a/3")).unwrap();
    bench.try_lock(ada, &shared("a/1")).unwrap();
}

fn a_withdrawn_request_is_in_no_ones_way<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let (ada, bob) = (bench.session("ada"), bench.session("bob"));
    let held = bench.try_lock(ada, &shared("a")).unwrap();
    let ticket = bench.wait(bob, &exclusive("a"));
    let withdrawn = store.transact(|txn| bench.locks.withdraw(txn, bob, ticket)).unwrap();
    assert_eq!(withdrawn, None);
    bench.try_lock(bench.session("carol"), &shared("a")).unwrap();
    refused(bench.poll(bob, ticket));
    bench.release(held).unwrap();
}

fn a_dead_waiter_is_in_no_ones_way<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let (ada, bob) = (bench.session("ada"), bench.session("bob"));
    let held = bench.try_lock(ada, &exclusive("a")).unwrap();
    bench.wait(bob, &exclusive("a"));
    bench.clock.advance(super::support::LEASE);
    bench.renew(ada).unwrap();
    bench.clock.advance(super::support::GRACE);
    let carol = bench.session("carol");
    let ticket = bench.wait(carol, &exclusive("a"));
    bench.release(held).unwrap();
    assert!(bench.is_granted(carol, ticket));
    refused(bench.renew(bob));
}

fn a_downgrade_lets_readers_in<S: Store>(store: &S) {
    let bench = Bench::new(store);
    let ada = bench.session("ada");
    let grant = bench.try_lock(ada, &exclusive("a")).unwrap();
    let bob = bench.session("bob");
    let ticket = bench.wait(bob, &shared("a/b"));
    store.transact(|txn| bench.locks.downgrade(txn, grant, Mode::Shared)).unwrap();
    assert!(bench.is_granted(bob, ticket));
    let back = store.transact(|txn| bench.locks.downgrade(txn, grant, Mode::Exclusive));
    let back = refused(back);
    let LockError::NotIncluded { mode: Mode::Exclusive, .. } = back else { panic!("{back}") };
    assert!(bench.faults().is_empty());
}

/// Every pair of modes, compared with the table in the papers on lock granularity.
fn modes_exclude_as_in_the_table<S: Store>(store: &S) {
    use Mode::{
        Exclusive as X, IntentExclusive as IX, IntentShared as IS, Shared as S,
        SharedIntentExclusive as SIX,
    };
    let compatible = [(IS, IS), (IS, IX), (IS, S), (IS, SIX), (IX, IX), (S, S)];
    let bench = Bench::new(store);
    let (ada, bob) = (bench.session("ada"), bench.session("bob"));
    for held in [IS, IX, S, SIX, X] {
        for wanted in [IS, IX, S, SIX, X] {
            let grant = bench.try_lock(ada, &Lock::new(path("a"), held)).unwrap();
            let second = bench.try_lock(bob, &Lock::new(path("a"), wanted));
            let expected =
                compatible.contains(&(held, wanted)) || compatible.contains(&(wanted, held));
            assert_eq!(second.is_ok(), expected, "{held} {wanted}");
            assert_eq!(held.is_compatible(wanted), expected, "{held} {wanted}");
            second.into_iter().for_each(|second| bench.release(second).unwrap());
            bench.release(grant).unwrap();
        }
    }
}

on_every_store_and_server! {
    waiting_requests_are_granted_in_order,
    a_waiting_writer_stops_later_readers,
    a_holder_passes_the_queue_below_its_lock,
    a_withdrawn_request_is_in_no_ones_way,
    a_dead_waiter_is_in_no_ones_way,
    a_downgrade_lets_readers_in,
    modes_exclude_as_in_the_table,
}
