//! Write access, and the commit.

use super::Reader;
#[cfg(doc)]
use super::Store;
use crate::atomic::{AtomicOp, apply_by_reading, stamp_by_counting};
#[cfg(doc)]
use crate::{Error, LmdbError, StorageError};
use crate::{KeyRange, Limits, Result, TransactionState, VersionstampedKey};

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
    /// in memory; fewer than 64 entries gain nothing. Entries that do not ascend are put as well.
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
    /// the same old value, as if they were not serializable. A list of candidates is a hint too, if
    /// each one is read again with a checked read before it is changed.
    ///
    /// A snapshot read has this effect in memory with optimistic transactions, in etcd and on
    /// FoundationDB. On PostgreSQL and fjall, these reads are checked like all others. On stores
    /// with one writer at a time there are no conflicts.
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

    /// Wakes the [listeners](crate::Store::listen) of `key` when this transaction commits, without
    /// writing the key: transactions that wake the same listeners do not conflict.
    ///
    /// For programs that wait for work, such as the consumers of a queue. If every producer wrote
    /// one common key instead, all producers would conflict.
    ///
    /// A wake is a hint, and can be lost: etcd and FoundationDB ignore it, as some stores do if the
    /// transaction writes no key. Other processes do not notice it on redb, on fjall, and on LMDB
    /// outside of Linux. So a waiting program must also read from time to time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use keyloom::{Memory, Store, Writer};
    /// let store = Memory::new();
    /// let mut listener = store.listen(b"bell");
    /// listener.wait(Duration::ZERO); // The first wait returns at once.
    /// store.transact(|txn| {
    ///     txn.wake(b"bell");
    ///     txn.put(b"job 7", b"ship it")
    /// })?;
    /// assert!(listener.wait(Duration::from_secs(1)));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    fn wake(&mut self, key: &[u8]) {
        self.state().wake(key);
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
    /// [`compare_and_clear`](Writer::compare_and_clear). A store with atomic operations overrides
    /// only this method.
    ///
    /// A store with atomic operations performs them without a read, so that such transactions on
    /// one key do not conflict. Such a store does not validate the old value: it is truncated or
    /// zero-extended to eight bytes. The default implementation reads and writes.
    ///
    /// # Errors
    /// The errors of the method that `operation` stands for.
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
