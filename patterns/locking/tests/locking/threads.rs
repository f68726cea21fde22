//! Threads that lock at random: their critical sections never overlap.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use keyloom::Store;
use keyloom_locking::{Lock, LockError, LockPath, Locks, Session};
use keyloom_tables::Schema;
use keyloom_testing::on_every_store_and_server;

const THREADS: u64 = 4;
const ROUNDS: u64 = 25;
const DOCUMENTS: usize = 3;

/// Readers are counted up from 0; a writer is -1.
struct Inside([AtomicI64; DOCUMENTS]);

impl Inside {
    fn enter(&self, document: usize, is_writer: bool) -> bool {
        let count = &self.0[document];
        match is_writer {
            true => count.compare_exchange(0, -1, Ordering::SeqCst, Ordering::SeqCst).is_ok(),
            false => count.fetch_add(1, Ordering::SeqCst) >= 0,
        }
    }

    fn leave(&self, document: usize, is_writer: bool) {
        let change = if is_writer { 1 } else { -1 };
        self.0[document].fetch_add(change, Ordering::SeqCst);
    }
}

/// Runs the threads; returns how many sections overlapped, how many ran, and the deadlocks.
fn overlaps<S: Store + Clone>(store: &S, is_locking: bool) -> (u64, u64, u64) {
    let locks = Locks::open(&Schema::open(store, "shop").unwrap(), "locks").unwrap();
    let inside = Inside(std::array::from_fn(|_| AtomicI64::new(0)));
    let [overlaps, entered, deadlocks] = std::array::from_fn(|_| AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (inside, locks) = (&inside, &locks);
            let (overlaps, entered, deadlocks) = (&overlaps, &entered, &deadlocks);
            scope.spawn(move || {
                let session = Session::begin(store, locks, &thread.to_string()).unwrap();
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..ROUNDS {
                    let is_writer = random.bool();
                    let all = random.u8(0..4) == 0;
                    let first = random.usize(0..DOCUMENTS);
                    let documents = if all { 0..DOCUMENTS } else { first..first + 1 };
                    let path = LockPath::of(["documents"]);
                    let path = if all { path } else { path.child(first) };
                    let lock = match is_writer {
                        true => Lock::exclusive(path),
                        false => Lock::shared(path),
                    };
                    let guard = match is_locking.then(|| session.lock(&[lock])).transpose() {
                        Ok(guard) => guard,
                        Err(error) => {
                            let error = error.downcast_ref::<LockError>().unwrap();
                            assert!(matches!(error, LockError::Deadlock { .. }), "{error}");
                            deadlocks.fetch_add(1, Ordering::SeqCst);
                            continue;
                        }
                    };
                    let entries: Vec<_> =
                        documents.map(|d| (d, inside.enter(d, is_writer))).collect();
                    std::thread::yield_now();
                    for (document, is_alone) in entries {
                        overlaps.fetch_add(u64::from(!is_alone), Ordering::SeqCst);
                        if is_alone || !is_writer {
                            inside.leave(document, is_writer);
                        }
                    }
                    entered.fetch_add(1, Ordering::SeqCst);
                    guard.into_iter().for_each(|guard| guard.release().unwrap());
                }
                session.end().unwrap();
            });
        }
    });
    assert!(locks.check(&store.snapshot().unwrap()).unwrap().is_empty());
    assert!(locks.requests(&store.snapshot().unwrap()).unwrap().is_empty());
    (overlaps.into_inner(), entered.into_inner(), deadlocks.into_inner())
}

fn critical_sections_do_not_overlap<S: Store + Clone>(store: &S) {
    // Each thread holds one lock at a time, so there is no deadlock.
    assert_eq!(overlaps(store, true), (0, THREADS * ROUNDS, 0));
}

on_every_store_and_server! { critical_sections_do_not_overlap }

/// The negative control: without locks they do.
#[test]
fn without_locks_they_overlap() {
    let found = (0..100).any(|_| overlaps(&keyloom::Memory::new(), false).0 > 0);
    assert!(found);
}
