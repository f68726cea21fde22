//! The store traits: the whole interface between a pattern and an engine.
//!
//! A [`Store`] creates [`Snapshot`](Store::Snapshot)s, which only read and never change, and
//! [`Transaction`](Store::Transaction)s, which also write and commit all or nothing. Both read
//! through [`Reader`]. A transaction writes through [`Writer`], and only its owner can commit it. A
//! store must satisfy the laws below. The crate `keyloom-conformance` checks each of
//! them on every backend:
//!
//! 1. Keys are 1 to 511 bytes, ordered as unsigned bytes; anything else is an error, in reads too.
//! 2. A snapshot never changes. A transaction sees its own writes. A commit is all or nothing, and
//!    committed transactions are serializable. A transaction that is dropped changes nothing.
//! 3. [`Store::transact`] is the entry point: it runs a body, commits, and runs it again on a
//!    conflict.
//! 4. An iterator that failed or ended stays ended. It never leaves its range, and yields the same
//!    entries in both directions.
//! 5. What was committed before an error is kept.
//! 6. After a failed write of a pattern the transaction [does not commit](Writer#a-failed-write).

mod reader;
mod writer;

#[cfg(doc)]
use crate::{Batched, LmdbError, ServerError};
use std::time::{Duration, Instant};

pub use reader::{Entry, EntryPage, Reader};
pub use writer::{Transaction, Writer};

use crate::backend::ChangeListener;
use crate::retry::Retries;
use crate::{Error, Limits, Result, RetryPolicy};

/// The longest pause between two polls of a store that cannot notify of a change.
// A poll is a snapshot and a get, which may be a round trip. Longer pauses cost fewer polls, and
// add to the latency of a change.
const POLL: Duration = Duration::from_millis(50);

/// An ordered key-value store.
///
/// A store is a handle: clones are cheap and share the same store, and all threads may use it.
///
/// ```
/// use keyloom::{Memory, Reader, Store, Writer};
/// let store = Memory::new();
/// store.transact(|txn| txn.put(b"greeting", b"hello"))?;
/// assert_eq!(store.snapshot()?.get(b"greeting")?, Some(&b"hello"[..]));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub trait Store: Send + Sync + 'static {
    /// A snapshot of the store. It can be sent to another thread.
    ///
    /// Many of these types have no path of their own. A struct field or a function names the type
    /// as `<Redb as Store>::Snapshot<'s>`.
    type Snapshot<'s>: Reader + Send
    where
        Self: 's;
    /// A transaction of the store. A program names the type as `<Redb as Store>::Transaction<'s>`.
    type Transaction<'s>: Transaction
    where
        Self: 's;

    /// Opens a snapshot of everything committed so far.
    ///
    /// # Errors
    /// [`LmdbError::ReadersFull`], [`LmdbError::MapHeld`], [`ServerError::ConnectionLost`],
    /// [`ServerError::ConnectionsBusy`], [`Error::Forked`], or another error of the backend.
    fn snapshot(&self) -> Result<Self::Snapshot<'_>>;

    /// Opens up to `count` snapshots of the same state, and at least one, so that as many threads
    /// can read this state in parallel.
    ///
    /// The stores in memory, on LMDB, redb and fjall and in etcd return `count` snapshots; the
    /// default implementation returns one. LMDB returns fewer if reader slots are missing, if
    /// other processes commit all the time, or while the map is about to grow.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Writer};
    /// let store = Memory::new();
    /// store.transact(|txn| txn.put(b"greeting", b"hello"))?;
    /// let snapshots = store.parallel_snapshots(2)?;
    /// store.transact(|txn| txn.delete(b"greeting"))?;
    /// std::thread::scope(|scope| {
    ///     for snapshot in snapshots {
    ///         scope.spawn(move || {
    ///             assert_eq!(snapshot.get(b"greeting").unwrap(), Some(&b"hello"[..]));
    ///         });
    ///     }
    /// });
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`snapshot`](Store::snapshot).
    fn parallel_snapshots(&self, _count: usize) -> Result<Vec<Self::Snapshot<'_>>> {
        Ok(vec![self.snapshot()?])
    }

    /// Starts a transaction that the caller must commit. Prefer [`Store::transact`], which also
    /// commits and retries.
    ///
    /// On a store with one writer at a time this waits for the current writer.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NestedTransaction`], [`Error::WriterBusy`],
    /// [`LmdbError::MapHeld`], [`Error::Forked`], or another error of the backend.
    fn begin(&self) -> Result<Self::Transaction<'_>>;

    /// The limits of the store.
    fn limits(&self) -> Limits;

    /// How often and after which pauses [`Store::transact`] retries a transaction.
    fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy::default()
    }

    /// The number of round trips of all handles to the server since the store was opened; `None` if
    /// the store has no server. Concurrent messages count as one round trip.
    /// [`Metered`](crate::Metered) measures the difference between two calls.
    fn round_trips(&self) -> Option<u64> {
        None
    }

    /// Waits until the value of `key` differs from `seen`, at most for `timeout`. Returns whether
    /// it differs. In `seen`, `None` means that the key has no value.
    ///
    /// The thread sleeps until the [listener](Store::listen) of the key is notified, or until the
    /// next poll of a store that cannot notify. A change that is undone before the store reads the
    /// key is not noticed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use keyloom::{Memory, Store, Writer};
    /// let store = Memory::new();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| store.transact(|txn| txn.put(b"door", b"open")));
    ///     let is_open = store.wait_for_change(b"door", None, Duration::from_secs(5))?;
    ///     assert!(is_open);
    ///     Ok::<(), keyloom::Error>(())
    /// })?;
    /// assert!(!store.wait_for_change(b"door", Some(b"open"), Duration::from_millis(5))?);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`snapshot`](Store::snapshot) and [`Reader::get`].
    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool> {
        let began = Instant::now();
        let mut listener = None;
        loop {
            if self.snapshot()?.get(key)?.as_deref() != seen {
                return Ok(true);
            }
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            // Read before listening: to listen may cost a message to a server, and most waits for
            // a change that is already there need none.
            listener.get_or_insert_with(|| self.listen(key)).wait(left);
        }
    }

    /// Listens for commits that may change `key`, for [`wait_for_change`](Store::wait_for_change)
    /// and for tasks that wait. After each wait, the caller reads the key.
    ///
    /// The stores in memory, on redb, on fjall and in etcd are notified of changes. LMDB is
    /// notified of commits of the same process, and on Linux also of commits of other processes. On
    /// other systems, commits of other processes are found by polls, with pauses of up to 10 ms. On
    /// PostgreSQL, commits made through keyloom notify. By default, the listener polls, after
    /// pauses that grow from 1 to 50 ms.
    fn listen(&self, _key: &[u8]) -> ChangeListener {
        ChangeListener::of_polls(POLL)
    }

    /// Runs `body` in a transaction and commits it. For a body with an error type of your own, use
    /// [`try_transact`](Store::try_transact).
    ///
    /// If the store reports a conflict, at the beginning, in the body or at commit, everything is
    /// rolled back, and `body` runs again after a jittered pause. [`Store::retry_policy`] limits
    /// the attempts. The body may run more than once, so it must have no effects outside the
    /// transaction. If the body fails otherwise, the transaction is rolled back and the error is
    /// returned.
    ///
    /// A commit whose outcome is unknown ([`Error::maybe_committed`]) is *not* retried: only the
    /// caller can decide whether a second commit is harmless.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Writer};
    /// let store = Memory::new();
    /// let taken = store.transact(|txn| {
    ///     let free = txn.get(b"seat 7")?.is_none();
    ///     if free {
    ///         txn.put(b"seat 7", b"Ada")?;
    ///     }
    ///     Ok(free)
    /// })?;
    /// assert!(taken);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The body's own error, [`Error::RetriesExhausted`], or an error of `begin` or `commit`.
    fn transact<T>(&self, body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T>) -> Result<T> {
        Retries::TRANSACT.run(self, body)
    }

    /// [`transact`](Store::transact) for a body with an error type of its own: a `thiserror` enum
    /// with a `#[from] keyloom::Error`, or `anyhow::Error`.
    ///
    /// If the last attempt ends with an error of the body, that error is returned unchanged.
    ///
    /// After an error of the body, the transaction decides whether to retry
    /// ([`Transaction::must_restart`]), not the error. So it does not matter how the error was
    /// wrapped.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Writer};
    /// #[derive(Debug, thiserror::Error)]
    /// enum Booking {
    ///     #[error("the seat is taken")]
    ///     Taken,
    ///     #[error(transparent)]
    ///     Store(#[from] keyloom::Error),
    /// }
    /// let book = |store: &Memory, name: &str| {
    ///     store.try_transact(|txn| {
    ///         if txn.get(b"seat 7")?.is_some() {
    ///             return Err(Booking::Taken);
    ///         }
    ///         Ok(txn.put(b"seat 7", name.as_bytes())?)
    ///     })
    /// };
    /// let store = Memory::new();
    /// assert!(book(&store, "Ada").is_ok());
    /// assert!(matches!(book(&store, "Bob"), Err(Booking::Taken)));
    /// ```
    ///
    /// # Errors
    /// The errors of [`transact`](Store::transact).
    fn try_transact<T, E: From<Error>>(
        &self,
        body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        Retries::TRY.run(self, body)
    }

    /// [`transact`](Store::transact) for a body that may run on another thread: [`Batched`] runs
    /// the bodies of all waiting threads in one transaction, and commits once. Every other store
    /// runs the body as `transact` does.
    ///
    /// A batch may run a body more often than `transact` does. A thread that has a transaction of
    /// the store must not call this.
    ///
    /// ```
    /// use keyloom::{Batched, Memory, Reader, Result, Store, Writer};
    /// fn record_visit(store: &impl Store, page: &str) -> Result<()> {
    ///     store.transact_batched(|txn| txn.add(page.as_bytes(), 1))
    /// }
    /// let store = Batched::new(Memory::new());
    /// record_visit(&store, "/index")?;
    /// record_visit(store.inner(), "/index")?;
    /// assert_eq!(store.snapshot()?.counter(b"/index")?, 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`transact`](Store::transact), and [`Error::NestedTransaction`].
    fn transact_batched<T: Send>(
        &self,
        body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        self.transact(body)
    }

    /// [`transact_batched`](Store::transact_batched) for a body with an error type of its own, as
    /// [`try_transact`](Store::try_transact) is for `transact`.
    ///
    /// # Errors
    /// The errors of [`transact_batched`](Store::transact_batched).
    fn try_transact_batched<T: Send, E: From<Error> + Send>(
        &self,
        body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        self.try_transact(body)
    }
}
