//! Threads that change one record concurrently.

use std::cell::Cell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use keyloom::{Store, Subspace};
use keyloom_tables::{Counters, RecordConflict, VersionedTable};

use keyloom_testing::laws::clear;

const THREADS: usize = 4;
const ROUNDS: usize = 20;
const ALL: usize = THREADS * ROUNDS;

/// The data that the threads change: a number in a record, a counter of the store, and a list.
struct Changed {
    record: VersionedTable<u8, usize>,
    counters: Counters<u8>,
    list: VersionedTable<u8, Vec<u8>>,
}

impl Changed {
    fn new() -> Self {
        let space = Subspace::new("changed");
        Self {
            record: VersionedTable::new(&space.child("record")),
            counters: Counters::new(&space.child("counter")),
            list: VersionedTable::new(&space.child("list")),
        }
    }
}

/// A barrier after a read outside of a transaction, so that all threads read the same value, once
/// per increment.
struct Meeting<'b> {
    barrier: &'b Barrier,
    met: Cell<bool>,
}

impl Meeting<'_> {
    fn wait(&self) {
        if !self.met.replace(true) {
            self.barrier.wait();
        }
    }
}

/// Calls `increment` repeatedly in each thread.
fn race<S: Store>(store: &S, increment: impl Fn(&S, &Meeting<'_>) + Sync) {
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    increment(store, &Meeting { barrier: &barrier, met: Cell::new(false) });
                }
            });
        }
    });
}

/// The value of the record after all increments.
fn recorded<S: Store>(
    store: &S,
    increment: impl Fn(&S, &VersionedTable<u8, usize>, &Meeting<'_>) + Sync,
) -> usize {
    clear(store);
    let table = Changed::new().record;
    store.transact(|txn| table.create(txn, &1, 0)).unwrap();
    race(store, |store, meeting| increment(store, &table, meeting));
    *table.get(&store.snapshot().unwrap(), &1).unwrap().unwrap()
}

/// Retries the change until it succeeds.
fn insist<S: Store>(
    store: &S,
    table: &VersionedTable<u8, usize>,
    meeting: &Meeting<'_>,
    change: impl Fn(&mut S::Transaction<'_>, u64, usize) -> keyloom::Result<Option<u64>>,
) {
    loop {
        let seen = table.get(&store.snapshot().unwrap(), &1).unwrap().unwrap();
        meeting.wait();
        match store.transact(|txn| change(txn, seen.version, seen.value)) {
            Ok(_) => return,
            Err(error) => {
                let conflict = error.downcast_ref::<RecordConflict<usize>>().expect("refused");
                assert!(conflict.current.as_ref().unwrap().version > seen.version);
            }
        }
    }
}

pub fn no_atomic_change_loses_an_update(store: &(impl Store + Clone)) {
    let by_version = recorded(store, |store, table, meeting| {
        insist(store, table, meeting, |txn, version, value| {
            table.update(txn, &1, version, value + 1).map(Some)
        });
    });
    assert_eq!(by_version, ALL);
    let by_value = recorded(store, |store, table, meeting| {
        insist(store, table, meeting, |txn, _, value| {
            table.compare_and_swap(txn, &1, Some(&value), Some(value + 1))
        });
    });
    assert_eq!(by_value, ALL);
    let modified = recorded(store, |store, table, _| {
        store.transact(|txn| table.modify(txn, &1, |n| Ok(n.map(|n| n + 1)))).unwrap();
    });
    assert_eq!(modified, ALL);

    let Changed { counters, list, .. } = Changed::new();
    race(store, |store, _| {
        store
            .transact(|txn| {
                counters.add(txn, &1, 1)?;
                counters.add_within(txn, &2, 1, 0..=i64::MAX)?;
                list.append(txn, &1, 7, ALL)
            })
            .unwrap();
    });
    let numbers = AtomicUsize::new(0);
    race(store, |store, _| {
        let number = numbers.fetch_add(1, Ordering::Relaxed) as u64;
        store
            .transact(|txn| {
                counters.max(txn, &3, 1_000 + number)?;
                counters.min(txn, &4, 1_000 + number)
            })
            .unwrap();
    });
    let snapshot = store.snapshot().unwrap();
    let found = [1, 2, 3, 4].map(|n| counters.get(&snapshot, &n).unwrap());
    assert_eq!(found, [ALL as i64, ALL as i64, 999 + ALL as i64, 1_000]);
    assert_eq!(list.get(&snapshot, &1).unwrap().unwrap().len(), ALL);
}

/// The negative control: the same race with a write that does not check whether its read is still
/// current.
pub fn a_read_and_then_a_write_loses_updates_and_is_caught(store: &(impl Store + Clone)) {
    let found = recorded(store, |store, table, meeting| {
        let seen = table.get(&store.snapshot().unwrap(), &1).unwrap().unwrap();
        meeting.wait();
        store.transact(|txn| table.modify(txn, &1, |_| Ok(Some(seen.value + 1)))).unwrap();
    });
    assert!(found < ALL, "{found} of {ALL} increments are there");
}

pub fn of_many_creators_one_succeeds(store: &(impl Store + Clone)) {
    clear(store);
    let table = Changed::new().record;
    let (created, next) = (AtomicUsize::new(0), AtomicUsize::new(0));
    race(store, |store, _| {
        let me = next.fetch_add(1, Ordering::Relaxed);
        match store.transact(|txn| table.create(txn, &9, me)) {
            Ok(version) => {
                assert_eq!(version, 1);
                created.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => assert!(error.to_string().contains("already exists, at version 1")),
        }
    });
    assert_eq!(created.into_inner(), 1);
}
