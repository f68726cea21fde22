//! Transactions that run again: when they no longer do, and what they keep of earlier runs.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Mutex;
use std::time::Duration;

use keyloom::{Error, Memory, Reader, RetryPolicy, Store, Writer};

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

/// The number of runs of a body that always conflicts, and of the error.
fn runs(max_attempts: u32, max_elapsed: Option<Duration>, takes: Duration) -> [u32; 2] {
    let first_pause = Duration::from_micros(1);
    let policy = RetryPolicy { max_attempts, max_elapsed, first_pause, ..RetryPolicy::default() };
    let store = Memory::builder().optimistic(true).retry_policy(policy).build();
    let mut runs = 0;
    let refused = store.transact(|txn| {
        runs += 1;
        txn.get(b"n")?;
        store.transact(|other| other.put(b"n", &[]))?;
        std::thread::sleep(takes);
        txn.put(b"own", &[])
    });
    let Err(Error::RetriesExhausted { attempts, .. }) = refused else { panic!("{refused:?}") };
    [runs, attempts]
}

#[test]
fn attempts_end_at_their_number_or_time() {
    let short = Duration::from_millis(20);
    assert_eq!(runs(1, None, Duration::ZERO), [1, 1]);
    assert_eq!(runs(5, None, Duration::ZERO), [5, 5]);
    assert_eq!(runs(5, Some(Duration::from_secs(3_600)), Duration::ZERO), [5, 5]);
    // The first attempt takes longer than all may take.
    assert_eq!(runs(5, Some(short), 2 * short), [1, 1]);
    assert_eq!(runs(5, Some(Duration::ZERO), Duration::ZERO), [1, 1]);
}
