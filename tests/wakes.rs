//! Wakes: a commit notifies listeners of keys that it does not write.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use keyloom::backend::ChangeListener;
use keyloom::{
    AnyStore, Batched, Faulty, Lmdb, Memory, Metered, Result, Store, Transaction, Writer,
};

const LONG: Duration = Duration::from_secs(30);

/// A listener that has nothing left to notify of.
fn listening(store: &impl Store) -> ChangeListener {
    let mut listener = store.listen(b"bell");
    while listener.wait(Duration::from_millis(20)) {}
    listener
}

/// Waits for a notification, also beyond the pauses between polls.
fn is_notified(listener: &mut ChangeListener) -> bool {
    let began = std::time::Instant::now();
    while began.elapsed() < LONG {
        if listener.wait(LONG) {
            return true;
        }
    }
    false
}

fn rings<W: Writer>(txn: &mut W) -> Result<()> {
    txn.wake(b"bell");
    txn.put(b"other", b"")
}

fn a_wake_reaches_its_listener(store: impl Store) {
    let mut listener = listening(&store);
    store.transact(|txn| rings(txn)).unwrap();
    assert!(is_notified(&mut listener));
    // Without listeners, transactions do not note their keys.
    drop(listener);
    store.transact(|txn| rings(txn)).unwrap();
    let mut listener = listening(&store);
    let mut txn = store.begin().unwrap();
    rings(&mut txn).unwrap();
    txn.commit().unwrap();
    assert!(is_notified(&mut listener));
}

#[test]
fn wakes_reach_listeners() {
    let directory = tempfile::tempdir().unwrap();
    let lmdb = Lmdb::open(directory.path()).unwrap();
    a_wake_reaches_its_listener(Memory::new());
    a_wake_reaches_its_listener(Memory::builder().optimistic(true).build());
    a_wake_reaches_its_listener(lmdb.clone());
    a_wake_reaches_its_listener(Batched::new(lmdb.clone()));
    a_wake_reaches_its_listener(Metered::new(Memory::new()));
    a_wake_reaches_its_listener(Faulty::new(Memory::new()));
    a_wake_reaches_its_listener(AnyStore::other("any:", Memory::new()));
    a_wake_reaches_its_listener(AnyStore::from(lmdb));
}

#[test]
fn only_the_commit_wakes_and_only_the_listeners_of_the_key() {
    const SHORT: Duration = Duration::from_millis(20);
    let store = Memory::new();
    let mut listener = listening(&store);
    let mut txn = store.begin().unwrap();
    rings(&mut txn).unwrap();
    assert!(!listener.wait(SHORT), "before the commit");
    drop(txn);
    assert!(!listener.wait(SHORT), "after a rollback");
    let wake = |key: &[u8]| {
        store.transact(|txn| {
            txn.wake(key);
            txn.put(b"other", b"")
        })
    };
    for key in [&b"bel"[..], b"bells", b"", b"bell\0", b"\xFF"] {
        wake(key).unwrap();
    }
    assert!(!listener.wait(SHORT), "other keys");
    wake(b"bell").unwrap();
    assert!(listener.wait(LONG));
}

/// A group commit commits several bodies, each of which wakes the listeners of a key.
#[test]
fn each_body_of_a_batch_wakes() {
    const BODIES: usize = 8;
    let store = Batched::new(Memory::new());
    let keys: Vec<Vec<u8>> = (0..BODIES).map(|n| vec![n as u8 + 1]).collect();
    let mut listeners: Vec<_> = keys.iter().map(|key| store.listen(key)).collect();
    listeners.iter_mut().for_each(|one| assert!(one.wait(LONG), "the first wait"));
    let is_occupied = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, keys, is_occupied) = (&store, &keys, &is_occupied);
        let occupy = scope.spawn(move || {
            store.transact_batched(|_| {
                is_occupied.store(true, Relaxed);
                while store.waiting() < BODIES {
                    std::thread::yield_now();
                }
                Ok(())
            })
        });
        while !is_occupied.load(Relaxed) {
            std::thread::yield_now();
        }
        for key in keys {
            scope.spawn(move || {
                store.transact_batched(|txn| {
                    txn.wake(key);
                    txn.put(b"n", key)
                })
            });
        }
        occupy.join().unwrap().unwrap();
    });
    listeners.iter_mut().for_each(|one| assert!(one.wait(LONG)));
    assert!(store.counts().together > 1, "{:?}", store.counts());
}
