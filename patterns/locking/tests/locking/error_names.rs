//! Errors name the tables of locks and queues by the names in the program.

use std::time::Duration;

use keyloom::Store;
use keyloom_locking::{LeaseOptions, Lock, LockPath, Locks, Session, WorkQueue};
use keyloom_tables::Schema;
use keyloom_testing::errors::{alone, assert_names, reported, texts};

#[test]
fn errors_of_damaged_locks_and_queues_show_names() {
    alone("error_names::errors_of_damaged_locks_and_queues_show_names", || {
        let store = keyloom_testing::memory();
        let schema = Schema::open(&store, "shop").unwrap();
        let locks = Locks::open(&schema, "locks").unwrap();
        let queue = WorkQueue::<String>::open(&schema, "mail").unwrap();
        let session = store
            .transact(|txn| locks.begin_session(txn, "program 1", &LeaseOptions::default()))
            .unwrap();
        store
            .transact(|txn| {
                queue.enqueue(txn, ("acme", "to Ada".to_owned()))?;
                queue.enqueue(txn, ("acme", "to Finn".to_owned()))
            })
            .unwrap();
        let delivery = queue.dequeue(&store, 1).unwrap().remove(0);
        let texts_of = |store: &keyloom_testing::AnyStore| {
            let snapshot = store.snapshot().unwrap();
            let mut all = reported(locks.check(&snapshot));
            all.extend(reported(queue.check(&snapshot)));
            all.extend(texts([queue.counts(&snapshot, Some("acme")).map(drop)]));
            all.extend(texts([queue.get(&snapshot, delivery.id).map(drop)]));
            drop(snapshot);
            let lease = Duration::from_secs(7);
            all.extend(texts([store.transact(|txn| locks.renew(txn, session, lease))]));
            all.extend(texts([queue.dequeue(store, 5).map(drop)]));
            all.extend(texts([store.transact(|txn| queue.complete(txn, &delivery))]));
            all.extend(texts([queue.sweep(store).map(drop), queue.repair(store).map(drop)]));
            match Session::without_heartbeat(store, &locks, "program 2", Default::default()) {
                Err(error) => all.push(error.to_string()),
                Ok(second) => {
                    let guard = second.try_lock(&[Lock::exclusive(LockPath::of(["a", "b"]))]);
                    all.extend(texts([guard.map(drop)]));
                }
            }
            all.extend(texts([store.transact(|txn| locks.end_session(txn, session)).map(drop)]));
            all
        };
        assert!(assert_names(&store, texts_of).len() > 20);
    });
}
