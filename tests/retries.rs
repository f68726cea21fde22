//! What a transaction that runs again keeps of its earlier runs: nothing.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::sync::Mutex;
use std::time::Duration;

use keyloom::{Memory, Reader, RetryPolicy, Store, Writer};

fn optimistic() -> Memory {
    let first_pause = Duration::from_micros(1);
    let policy = RetryPolicy { first_pause, ..RetryPolicy::default() };
    Memory::builder().optimistic(true).retry_policy(policy).build()
}

/// A body may return the guard of a lock, to change a cache together with the store. The next run
/// would wait for a guard of a run that was not committed.
#[test]
fn a_value_of_a_failed_commit_is_dropped_before_the_next_run() {
    let (store, cache) = (optimistic(), Mutex::new(0));
    let mut runs = 0;
    let guard = store.transact(|txn| {
        runs += 1;
        let mut guard = cache.try_lock().expect("the guard of the run before is dropped");
        let seen = txn.counter(b"n")?;
        if runs <= 2 {
            store.transact(|other| other.add(b"n", 1))?;
        }
        txn.put(b"n", &(seen + 10).to_le_bytes())?;
        *guard = runs;
        Ok(guard)
    });
    assert_eq!(*guard.unwrap(), 3);
    assert_eq!(store.snapshot().unwrap().counter(b"n").unwrap(), 12);
}
