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

#[cfg(doc)]
use crate::{Batched, LmdbError, ServerError, StorageError};
use std::ops::Deref;
use std::time::{Duration, Instant};

use crate::atomic::{AtomicOp, apply_by_reading, decode_counter, stamp_by_counting};
use crate::backend::ChangeListener;
use crate::retry::Retries;
use crate::{
    Error, KeyBuf, KeyRange, Limits, Order, Result, RetryPolicy, TransactionState,
    VersionstampedKey,
};

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
    type Snapshot<'s>: Reader + Send
    where
        Self: 's;
    /// A transaction of the store.
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
    /// The stores in memory, on redb, on fjall and in etcd are notified of changes. On LMDB this
    /// holds for commits of the same process, and on Linux also for those of other processes;
    /// elsewhere they are found by polling every 10 ms. PostgreSQL notifies of the commits of
    /// keyloom. By default, the listener polls, after pauses that grow from 1 to 50 ms.
    fn listen(&self, _key: &[u8]) -> ChangeListener {
        ChangeListener::of_polls(POLL)
    }

    /// Runs `body` in a transaction and commits it.
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
    /// The transaction decides whether to retry ([`Transaction::must_restart`]), not the error. So
    /// it does not matter how the error was wrapped.
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

/// Read access: a snapshot or a transaction.
///
/// If the engine has the bytes in memory (`Memory` and LMDB), reads return references to them
/// (`&[u8]`): nothing is copied or allocated.
pub trait Reader {
    /// Bytes of a key or a value, valid as long as the reader is not changed.
    type Bytes<'r>: Deref<Target = [u8]>
    where
        Self: 'r;
    /// The entries of a range, in order.
    type Entries<'r>: Iterator<Item = Result<(Self::Bytes<'r>, Self::Bytes<'r>)>>
    where
        Self: 'r;

    /// The value of `key`.
    ///
    /// # Errors
    /// [`Error::EmptyKey`], [`Error::KeyTooLong`].
    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>>;

    /// The entries with keys in `range`, read as the iterator advances.
    ///
    /// # Errors
    /// [`Error::TooOld`], [`ServerError::Compacted`] or [`ServerError::ConnectionLost`], depending
    /// on the store; returned here or by the iterator.
    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>>;

    /// The values of many keys, in the order of `keys`. A remote store reads them in one round
    /// trip.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Writer};
    /// let store = Memory::new();
    /// store.transact(|txn| txn.put(b"b", b"2"))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.get_many(&[b"a", b"b"])?, [None, Some(&b"2"[..])]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`get`](Reader::get).
    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        // `collect` into a `Result` would not reserve the capacity in advance.
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            values.push(self.get(key.as_ref())?);
        }
        Ok(values)
    }

    /// The number of keys in `range`. The store visits all of them.
    ///
    /// # Errors
    /// The errors of [`range`](Reader::range).
    fn count(&self, range: KeyRange<'_>) -> Result<u64> {
        let mut count = 0;
        for entry in self.range(range, Order::Ascending)? {
            entry?;
            count += 1;
        }
        Ok(count)
    }

    /// The entry with the smallest key of `range`.
    ///
    /// # Errors
    /// The errors of [`range`](Reader::range).
    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.range(range, Order::Ascending)?.next().transpose()
    }

    /// The entry with the largest key of `range`.
    ///
    /// # Errors
    /// The errors of [`range`](Reader::range).
    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.range(range, Order::Descending)?.next().transpose()
    }

    /// At most `limit` entries of `range`, but at least one, and the position of the next page.
    ///
    /// Pass [`EntryPage::last`] to [`KeyRange::resume`] for the next page. No entry is skipped or
    /// repeated, whatever is written between the pages: a page begins after a key, not at an
    /// offset.
    ///
    /// ```
    /// use keyloom::{KeyRange, Memory, Order, Reader, Store, Writer};
    /// let store = Memory::new();
    /// store.transact(|txn| (1..=5u8).try_for_each(|n| txn.put(&[n], b"")))?;
    /// let snapshot = store.snapshot()?;
    /// let one = snapshot.page(KeyRange::all(), Order::Ascending, 3)?;
    /// assert_eq!(one.entries.len(), 3);
    /// let last = one.last.expect("there is more");
    /// let rest = KeyRange::all().resume(Order::Ascending, &last);
    /// let two = snapshot.page(rest, Order::Ascending, 3)?;
    /// assert_eq!(two.entries.len(), 2);
    /// assert_eq!(two.last, None);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`range`](Reader::range).
    fn page(
        &self,
        range: KeyRange<'_>,
        order: Order,
        limit: usize,
    ) -> Result<EntryPage<Self::Bytes<'_>>> {
        let mut walk = self.range(range, order)?;
        // An empty page would have no key at which the next one begins.
        let entries = walk.by_ref().take(limit.max(1)).collect::<Result<Vec<_>>>()?;
        let last = match (entries.last(), walk.next().transpose()?) {
            (Some((key, _)), Some(_)) => Some(KeyBuf::from_slice(key)),
            _ => None,
        };
        Ok(EntryPage { entries, last })
    }

    /// The first [`page`](Reader::page) of each range, in ascending order. The pages are in the
    /// order of `ranges`, which may overlap or repeat.
    ///
    /// A remote store reads all pages in one round trip; a loop over `page` costs one round trip
    /// per range. A graph traversal uses this to read the neighbours of many vertices, and a
    /// spatial query to read the many ranges of a curve. More than about a thousand ranges are
    /// split into several round trips; the documentation of the backend gives the number.
    ///
    /// Up to `ranges.len()` times `limit` entries are in memory at once, so limit both. To read the
    /// rest of a range, pass [`EntryPage::last`] to [`KeyRange::resume`].
    ///
    /// ```
    /// use keyloom::{KeyRange, Memory, Reader, Store, Writer};
    /// let store = Memory::new();
    /// let keys = [b"a1", b"a2", b"a3", b"c1"];
    /// store.transact(|txn| keys.iter().try_for_each(|key| txn.put(*key, b"")))?;
    /// let snapshot = store.snapshot()?;
    /// let ranges = [b"c", b"a", b"b"].map(|prefix| KeyRange::prefix(prefix));
    /// let pages = snapshot.range_many(&ranges, 2)?;
    /// assert_eq!(pages[0].entries, [(&b"c1"[..], &b""[..])]);
    /// assert_eq!(pages[1].entries.len(), 2);
    /// assert_eq!(pages[1].last.as_deref(), Some(&b"a2"[..]), "there is more");
    /// assert!(pages[2].entries.is_empty());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`range`](Reader::range).
    fn range_many(
        &self,
        ranges: &[KeyRange<'_>],
        limit: usize,
    ) -> Result<Vec<EntryPage<Self::Bytes<'_>>>> {
        let mut pages = Vec::with_capacity(ranges.len());
        for range in ranges {
            pages.push(self.page(range.clone(), Order::Ascending, limit)?);
        }
        Ok(pages)
    }

    /// The number of entries that are fetched when a range is opened. A walk steps over these
    /// entries at no cost. This is one page on a remote store, and 0 if each entry costs a step of
    /// the engine.
    ///
    /// Callers use this number to decide whether to step over unwanted entries or to open another
    /// range after them. Opening a range costs a round trip on a remote store, and as much as some
    /// dozen steps otherwise.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store};
    /// assert_eq!(Memory::new().snapshot()?.prefetched(), 0);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    fn prefetched(&self) -> usize {
        0
    }

    /// Announces keys that will be read: a remote store fetches all of them in one round trip, and
    /// later gets of these keys cost no round trip, as long as their values take less than 4 MiB.
    /// Does nothing on other stores.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store};
    /// let store = Memory::new();
    /// let snapshot = store.snapshot()?;
    /// snapshot.prefetch(&[b"customer", b"balance"])?;
    /// assert_eq!(snapshot.get(b"customer")?, None);
    /// assert_eq!(snapshot.get(b"balance")?, None);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`get_many`](Reader::get_many).
    fn prefetch(&self, _keys: &[&[u8]]) -> Result<()> {
        Ok(())
    }

    /// The counter at `key`, 0 if there is none. See [`Writer::add`].
    ///
    /// # Errors
    /// [`Error::NotACounter`], and the errors of [`get`](Reader::get).
    fn counter(&self, key: &[u8]) -> Result<i64> {
        Ok(self.get(key)?.map(|value| decode_counter(key, &value)).transpose()?.unwrap_or(0))
    }
}

/// A key and its value.
pub type Entry<B> = (B, B);

/// Some entries of a range, and the position of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPage<B> {
    /// The entries, in the requested order.
    pub entries: Vec<Entry<B>>,
    /// The key of the last entry if more entries follow, otherwise `None`.
    pub last: Option<KeyBuf>,
}

/// Write access: a transaction, or a part of one.
///
/// # A failed write
///
/// A write of the *store* that is refused, such as a [`put`](Writer::put) of a key that is too
/// long, changes nothing, and the transaction may continue and commit. A write of a *pattern* that
/// fails makes the transaction refuse to commit ([`guarded`](Writer::guarded)), whatever the cause,
/// since the write may be incomplete. To avoid this, first check in the same transaction whether
/// the write is possible. After a failure, drop the transaction and begin another one. A failed
/// read does not have this effect.
pub trait Writer: Reader {
    /// Sets the value of `key`.
    ///
    /// # Errors
    /// [`Error::EmptyKey`], [`Error::KeyTooLong`], [`Error::ValueTooLong`],
    /// [`Error::TransactionTooLarge`], [`LmdbError::MapFull`].
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Puts entries in ascending key order. This has the effect of one [`put`](Writer::put) per
    /// entry, but a store may pack the entries more densely.
    ///
    /// On LMDB this fills the pages of the tree, even in the middle of a store, where single puts
    /// leave each page up to half empty. So a bulk load should pass as many entries as it can hold
    /// in memory; fewer than some dozen gain nothing. Entries that do not ascend are put as well.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Writer};
    /// let store = Memory::new();
    /// store.transact(|txn| txn.put_sorted(&[(b"a", b"1"), (b"b", b"2")]))?;
    /// assert_eq!(store.snapshot()?.get(b"b")?, Some(&b"2"[..]));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](Writer::put). Some of the entries may have been put before the error.
    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        entries.iter().try_for_each(|(key, value)| self.put(key, value))
    }

    /// The limits of the store, as [`Store::limits`] returns them. Code that maintains derived data
    /// checks the limits before the first write, so that the error names the entry that is too
    /// large.
    ///
    /// ```
    /// use keyloom::{Limits, Memory, Store, Writer};
    /// let store = Memory::builder().limits(Limits::foundationdb()).build();
    /// assert_eq!(store.begin()?.limits(), Limits::foundationdb());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    fn limits(&self) -> Limits;

    /// The state that patterns keep in the transaction: the reason why it must not commit, and
    /// values that are read repeatedly. A backend returns a field of its transaction; a wrapper
    /// returns the state of the inner transaction.
    fn state(&mut self) -> &mut TransactionState;

    /// Runs `write`, one write operation of a pattern. If it fails, the transaction can no longer
    /// commit: [`commit`](Transaction::commit) returns [`Error::CommitRefused`] with the first such
    /// error as its source.
    ///
    /// A write of a pattern is several writes of the store, and an error may come after some of
    /// them. Therefore every public write operation of a pattern runs in `guarded`, so that a
    /// swallowed error cannot leave derived data inconsistent. A `write` that panics has the same
    /// effect, if the program catches the panic. If `write` succeeds, `guarded` writes no key and
    /// allocates nothing.
    ///
    /// ```
    /// use keyloom::{Error, Memory, Result, Store, Transaction, Writer};
    /// fn transfer(txn: &mut impl Writer, amount: i64) -> Result<()> {
    ///     txn.guarded(|txn| {
    ///         txn.add(b"from", -amount)?;
    ///         if amount > 100 {
    ///             return Err(Error::other("more than a transfer may hold"));
    ///         }
    ///         txn.add(b"to", amount)
    ///     })
    /// }
    /// let store = Memory::new();
    /// let mut txn = store.begin()?;
    /// let _swallowed = transfer(&mut txn, 500);
    /// assert!(matches!(txn.commit(), Err(Error::CommitRefused { .. })));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of `write`.
    fn guarded<T>(&mut self, write: impl FnOnce(&mut Self) -> Result<T>) -> Result<T>
    where
        Self: Sized,
    {
        self.state().begin();
        let written = write(self).inspect_err(|error| self.state().note(error));
        self.state().end();
        written
    }

    /// Runs `read` with *snapshot reads*: if another transaction changes what they have read, this
    /// transaction does not conflict. They see the same state as all reads of the transaction, and
    /// its own writes.
    ///
    /// Use this for hints: a rank to show, statistics, a place where a search may begin. Never use
    /// it for a value that decides what the transaction writes: two transactions may then decide on
    /// the same old value, as if they were not serializable.
    ///
    /// Has this effect in memory with optimistic transactions, in etcd and on FoundationDB. On
    /// PostgreSQL and fjall the reads are checked as all others. On stores with one writer there
    /// are no conflicts.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Transaction, Writer};
    /// let store = Memory::builder().optimistic(true).build();
    /// let mut txn = store.begin()?;
    /// let visits = txn.snapshot_read(|txn| txn.counter(b"visits"))?;
    /// store.transact(|other| other.add(b"visits", 1))?;
    /// txn.put(b"visits when Ada came", visits.to_string().as_bytes())?;
    /// txn.commit()?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of `read`.
    fn snapshot_read<T>(&self, read: impl FnOnce(&Self) -> Result<T>) -> Result<T>
    where
        Self: Sized,
    {
        let _restored = Restored { writer: self, was_checked: self.check_reads(false) };
        read(self)
    }

    /// Sets whether the commit checks the reads from now on, and returns the previous setting. A
    /// backend that can read without a check overrides this method for
    /// [`snapshot_read`](Writer::snapshot_read), which programs call. An iterator keeps the setting
    /// with which it was opened.
    fn check_reads(&self, _is_checked: bool) -> bool {
        true
    }

    /// Deletes `key`. An absent key is not an error.
    ///
    /// # Errors
    /// The errors of [`put`](Writer::put).
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Deletes every key of `range`.
    ///
    /// # Errors
    /// The errors of [`put`](Writer::put).
    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()>;

    /// Adds `delta` to the counter at `key`, wrapping around; an absent counter counts as 0.
    ///
    /// A counter is 8 bytes, little-endian, two's complement: the format of the atomic operations
    /// of FoundationDB. A store with atomic operations adds without reading, so hot counters do not
    /// conflict there.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Writer};
    /// let store = Memory::new();
    /// store.transact(|txn| txn.add(b"visits", 2))?;
    /// store.transact(|txn| txn.add(b"visits", -5))?;
    /// assert_eq!(store.snapshot()?.counter(b"visits")?, -3);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotACounter`], unless the store does not validate the old value
    /// ([`apply`](Writer::apply)); and the errors of [`put`](Writer::put).
    fn add(&mut self, key: &[u8], delta: i64) -> Result<()> {
        self.apply(key, AtomicOp::Add(delta))
    }

    /// Lowers the counter at `key` to `bound` if the counter is larger. Sets an absent counter to
    /// `bound`.
    ///
    /// Compares as unsigned numbers, as the native operation of FoundationDB does.
    ///
    /// # Errors
    /// The errors of [`add`](Writer::add).
    fn min(&mut self, key: &[u8], bound: u64) -> Result<()> {
        self.apply(key, AtomicOp::Min(bound))
    }

    /// Raises the counter at `key` to `bound` if the counter is smaller. Sets an absent counter to
    /// `bound`.
    ///
    /// Compares as unsigned numbers, as the native operation of FoundationDB does.
    ///
    /// # Errors
    /// The errors of [`add`](Writer::add).
    fn max(&mut self, key: &[u8], bound: u64) -> Result<()> {
        self.apply(key, AtomicOp::Max(bound))
    }

    /// Appends `tail` to the value of `key`. Sets an absent value to `tail`. If the value would
    /// become longer than the store allows, it stays unchanged **without an error**, as in
    /// FoundationDB: the tail is lost. If this loss matters, read the value first; the read can
    /// conflict.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Writer};
    /// let store = Memory::new();
    /// store.transact(|txn| txn.append_if_fits(b"log", b"one;"))?;
    /// store.transact(|txn| txn.append_if_fits(b"log", b"two;"))?;
    /// assert_eq!(store.snapshot()?.get(b"log")?, Some(&b"one;two;"[..]));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](Writer::put).
    fn append_if_fits(&mut self, key: &[u8], tail: &[u8]) -> Result<()> {
        self.apply(key, AtomicOp::AppendIfFits(tail.into()))
    }

    /// Deletes `key` if its value is `expected`. For example, this deletes a counter that has
    /// returned to 0, without losing a concurrent addition.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Writer};
    /// let store = Memory::new();
    /// store.transact(|txn| txn.add(b"open", 1))?;
    /// store.transact(|txn| {
    ///     txn.add(b"open", -1)?;
    ///     txn.compare_and_clear(b"open", &0_i64.to_le_bytes())
    /// })?;
    /// assert_eq!(store.snapshot()?.get(b"open")?, None);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](Writer::put).
    fn compare_and_clear(&mut self, key: &[u8], expected: &[u8]) -> Result<()> {
        self.apply(key, AtomicOp::CompareAndClear(expected.into()))
    }

    /// Performs [`add`](Writer::add), [`min`](Writer::min), [`max`](Writer::max),
    /// [`append_if_fits`](Writer::append_if_fits) or
    /// [`compare_and_clear`](Writer::compare_and_clear). A store overrides this method for all
    /// five.
    ///
    /// A store with atomic operations performs them without a read, so that such transactions on
    /// one key do not conflict. Such a store does not validate the old value: it is truncated or
    /// zero-extended to eight bytes. The default implementation reads and writes.
    ///
    /// # Errors
    /// The errors of these methods.
    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        apply_by_reading(self, key, &operation)
    }

    /// Puts `value` under a key that holds the [versionstamp](crate::key::Versionstamp) of the
    /// commit: the stamps of one prefix ascend in the order of the commits.
    ///
    /// On a store that assigns versions to commits, the stamp is assigned at commit: the
    /// transaction does not read it, and concurrent writers do not conflict. Until the commit,
    /// neither the new key nor the range that it may fall into can be read. Do such reads first. On
    /// other stores the stamp is the next number of the counter at the key's `clock`. All writers
    /// change this counter. An absent counter begins after the last stored stamp.
    ///
    /// The stamp is encoded as in a tuple: the type code of a versionstamp, then twelve bytes. So
    /// the prefix must end with that code: pack the elements before the stamp, and push
    /// [`Versionstamp::TYPE_CODE`](crate::key::Versionstamp::TYPE_CODE).
    ///
    /// ```
    /// use keyloom::key::Versionstamp;
    /// use keyloom::{Memory, Order, Reader, Store, Subspace, VersionstampedKey, Writer};
    /// let log = Subspace::new("log");
    /// let prefix = [log.prefix(), &[Versionstamp::TYPE_CODE]].concat();
    /// let key = VersionstampedKey { prefix: &prefix, suffix: b"", clock: b"clock" };
    /// let store = Memory::new();
    /// for line in ["one", "two"] {
    ///     store.transact(|txn| txn.put_versionstamped(&key, line.as_bytes()))?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let entries = snapshot.range(log.range(), Order::Ascending)?;
    /// let entries = entries.collect::<Result<Vec<_>, _>>()?;
    /// let one: Versionstamp = log.unpack(entries[0].0)?;
    /// let two: Versionstamp = log.unpack(entries[1].0)?;
    /// assert!(one < two && entries[1].1 == b"two");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotACounter`] for the clock, and the errors of [`put`](Writer::put).
    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        stamp_by_counting(self, key, value)
    }
}

/// Ends a snapshot read, also after a panic.
struct Restored<'w, W: Writer> {
    writer: &'w W,
    was_checked: bool,
}

impl<W: Writer> Drop for Restored<'_, W> {
    fn drop(&mut self) {
        self.writer.check_reads(self.was_checked);
    }
}

/// A writer whose writes are committed together. [`Store::begin`] returns one.
///
/// Patterns take `&mut impl Writer` and so cannot commit; only the owner of the transaction can.
/// Dropping a transaction rolls it back.
pub trait Transaction: Writer {
    /// Makes the writes permanent, all of them or none.
    ///
    /// # Errors
    /// [`Error::CommitRefused`] after a [failed write of a pattern](Writer#a-failed-write);
    /// [`Error::Conflict`], [`Error::CommitUnknown`], [`StorageError::DiskFull`].
    fn commit(self) -> Result<()>;

    /// Whether an operation of this transaction has failed in a way that requires the whole
    /// transaction to run again. [`Store::try_transact`] calls this.
    ///
    /// A store that reports conflicts only at commit keeps the default.
    fn must_restart(&self) -> bool {
        false
    }
}
