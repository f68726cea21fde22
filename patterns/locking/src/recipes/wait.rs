//! Waiting for a change of a key, with a deadline.

use std::time::{Duration, Instant};

use keyloom::{KeyBuf, Reader, Result, Store};

use crate::{Blocker, Locks, Patience};

/// How long a waiter sleeps at most: the awaited state may change without a change of the watched
/// key, for example when a lease is renewed.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The result of an attempt.
pub(super) enum Attempt<T> {
    Done(T),
    Wait(Awaited),
}

/// The key whose change a waiter waits for.
pub(super) struct Awaited {
    key: KeyBuf,
    /// The value of the key in the transaction of the attempt.
    seen: Option<Vec<u8>>,
    blockers: Vec<Blocker>,
}

impl Awaited {
    pub(super) fn new(reader: &impl Reader, key: KeyBuf, blockers: Vec<Blocker>) -> Result<Self> {
        let seen = reader.get(&key)?.map(|bytes| bytes.to_vec());
        Ok(Self { key, seen, blockers })
    }
}

/// Repeats an attempt until it succeeds, at most for `patience`. Between two attempts, waits for a
/// change of the key, or until the lease and grace period of the first blocker end, at most 1
/// second.
pub(super) fn wait_until<T>(
    store: &impl Store,
    locks: &Locks,
    what: &str,
    patience: &Patience,
    mut attempt: impl FnMut() -> Result<Attempt<T>>,
) -> Result<T> {
    let began = Instant::now();
    loop {
        let Awaited { key, seen, blockers } = match attempt()? {
            Attempt::Done(value) => return Ok(value),
            Attempt::Wait(awaited) => awaited,
        };
        let waited = began.elapsed();
        let left = patience.left(began);
        if left.is_zero() {
            return Err(patience.error(what.to_owned(), waited, blockers).into());
        }
        let now = locks.clock.now()?;
        // A blocker with unfinished work remains after the end of its lease, so its lease is
        // ignored.
        let ends = blockers.iter().filter_map(|blocker| blocker.dead_at.checked_sub(now));
        let lives = ends.filter(|lives| *lives > 0).min().unwrap_or(u64::MAX);
        let pause = left.min(Duration::from_millis(lives)).min(LONGEST_SLEEP);
        patience.wait(store, &key, seen.as_deref(), pause)?;
    }
}
