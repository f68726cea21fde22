//! Wakes the threads that wait for a change when a thread of the same process commits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::{Reader, Result, Store};

/// The first pause of a waiter on a store that other processes write.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Notifies the waiters of one process of the commits of that process.
///
/// A store holds one, shared by its clones. A commit calls [`notify`](CommitSignal::notify) after
/// the engine's commit; [`Store::wait_for_change`] calls
/// [`wait_for_change`](CommitSignal::wait_for_change). Commits of other processes are found by
/// polling.
///
/// ```
/// use std::time::Duration;
/// use keyloom::backend::CommitSignal;
/// use keyloom::{Memory, Store, Writer};
/// let (store, signal) = (Memory::new(), CommitSignal::default());
/// store.transact(|txn| txn.put(b"door", b"open"))?;
/// signal.notify();
/// let second = Duration::from_secs(1);
/// assert!(signal.wait_for_change(&store, b"door", None, second, second)?);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct CommitSignal {
    /// A commit takes the lock only if a thread waits.
    waiting: AtomicUsize,
    commits: Mutex<u64>,
    committed: Condvar,
}

/// Counts a thread as waiting until it is dropped.
struct Waiting<'s>(&'s AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CommitSignal {
    /// Wakes all waiters. Costs one atomic load if there are none.
    pub fn notify(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            *self.commits.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            self.committed.notify_all();
        }
    }

    /// Waits until the value of `key` differs from `seen`, at most for `timeout`. Reads the key
    /// after each commit of this process, and at least after each `poll`: pauses begin with 1 ms
    /// and grow to it. If no other process writes to the store, `poll` may be as long as `timeout`.
    ///
    /// # Errors
    /// The errors of [`Store::snapshot`] and [`Reader::get`].
    pub fn wait_for_change(
        &self,
        store: &(impl Store + ?Sized),
        key: &[u8],
        seen: Option<&[u8]>,
        timeout: Duration,
        poll: Duration,
    ) -> Result<bool> {
        let began = Instant::now();
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(&self.waiting);
        let mut pause = if poll < timeout { FIRST_PAUSE } else { timeout };
        loop {
            let before = *self.commits.lock().unwrap_or_else(PoisonError::into_inner);
            if store.snapshot()?.get(key)?.as_deref() != seen {
                return Ok(true);
            }
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
            let is_waiting = |commits: &mut u64| *commits == before;
            drop(self.committed.wait_timeout_while(commits, pause.min(left), is_waiting));
            pause = pause.saturating_mul(2).min(poll.max(FIRST_PAUSE));
        }
    }
}
