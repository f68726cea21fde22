//! An uncontended lock costs a constant number of keys, however many others are held.

use keyloom::{Memory, Metered, Store};
use keyloom_locking::Lock;
use keyloom_testing::{laws, on_every_store_and_server};

use super::support::{Bench, exclusive, path};

/// Keys written to lock and to release.
fn written<S: Store>(bench: &Bench<'_, Metered<S>>, session: u64, lock: &Lock) -> [u64; 4] {
    let store = bench.store;
    let locks = std::slice::from_ref(lock);
    let (grant, locking) =
        store.measure(|store| store.transact(|txn| bench.locks.try_lock(txn, session, locks)));
    let grant = grant.unwrap();
    let (released, releasing) =
        store.measure(|store| store.transact(|txn| bench.locks.release(txn, grant)));
    released.unwrap();
    assert_eq!((locking.commits, releasing.commits), (1, 1));
    [locking.keys_written, releasing.keys_written, locking.keys_read, locking.ranges]
}

#[test]
fn a_lock_of_depth_d_writes_d_plus_1_claims() {
    let store = Metered::new(Memory::new());
    let bench = Bench::new(&store);
    let ada = bench.session("ada");
    let cases = [("", 1), ("a", 2), ("a/b", 3), ("a/b/c", 4), ("a/b/c/d/e/f/g", 8)];
    for (text, claims) in cases {
        let [locked, released, ..] = written(&bench, ada, &exclusive(text));
        // The claims, the request and the counter of tokens; then the claims and the request.
        assert_eq!((locked, released), (claims + 2, claims + 1), "{text}");
    }
}

/// The session with the counters of tokens, the claims, the key of the new request, the commit;
/// then the request with its work, and the commit.
fn a_lock_and_its_release_cost_few_round_trips<S: Store + Clone>(store: &S) {
    let store = Metered::new(store.clone());
    let bench = Bench::new(&store);
    let ada = bench.session("ada");
    // A lock of the root reads all counters, and the entries of the tables later.
    for (text, gets, trips) in [("a/b", 10, 6), ("a/b/c/d", 10, 6), ("", 8, 8)] {
        written(&bench, ada, &exclusive(text));
        let (_, cost) = store.measure(|_| written(&bench, ada, &exclusive(text)));
        assert_eq!(cost.gets, gets, "{text}");
        if store.inner().round_trips().is_some() {
            assert_eq!(cost.round_trips, trips, "{text}");
        }
    }
}

on_every_store_and_server! { a_lock_and_its_release_cost_few_round_trips }

#[test]
fn other_locks_do_not_raise_the_cost() {
    let store = Metered::new(Memory::new());
    let bench = Bench::new(&store);
    let ada = bench.session("ada");
    let lock = exclusive("a/b/c");
    // The first lock creates the counter of the tokens.
    written(&bench, ada, &lock);
    let alone = written(&bench, ada, &lock);
    for count in [100, 1_000] {
        let bob = bench.session("bob");
        for n in 0..count {
            bench.try_lock(bob, &Lock::exclusive(path("a/b").child(10 * count + n))).unwrap();
        }
        assert_eq!(written(&bench, ada, &lock), alone, "beside {count}");
    }
    // The session, its own tokens, and the states of the tables.
    assert!(alone[2] <= 12, "{alone:?}");
}

#[test]
fn a_verified_write_costs_one_get_more() {
    let store = Metered::new(Memory::new());
    let bench = Bench::new(&store);
    let grant = bench.try_lock(bench.session("ada"), &exclusive("a")).unwrap();
    let [gets, ranges, read, written] = laws::writing(&store, |txn| bench.locks.verify(txn, grant));
    assert_eq!([gets, ranges, read, written], [1, 0, 1, 0]);
}
