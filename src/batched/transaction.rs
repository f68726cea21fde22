//! A transaction of a [`Batched`](super::Batched) store.

use std::cell::Cell;
use std::fmt;
use std::time::Instant;

use super::group::Owner;
use crate::{
    AtomicOp, Entry, EntryPage, Error, KeyRange, Limits, Order, Reader, Result, Store, Transaction,
    TransactionState, VersionstampedKey, Writer,
};

/// A transaction of a [`Batched`](super::Batched) store. Wraps a transaction of the inner store,
/// for one body or for several.
pub struct BatchedTransaction<'s, S: Store> {
    inner: S::Transaction<'s>,
    owner: Owner<'s, S>,
    notes: Notes,
}

/// Notes on the body that runs in the transaction.
#[derive(Debug, Default)]
pub struct Notes {
    /// Whether the running body has written, or an operation of the store has failed. After such a
    /// failure, some stores have ended the transaction.
    is_changed: Cell<bool>,
    /// Whether an operation failed because the transaction is too large or too old.
    is_too_large: Cell<bool>,
}

impl Notes {
    #[cold]
    fn note(&self, error: &Error) {
        self.is_changed.set(true);
        if error.is_batch_too_large() {
            self.is_too_large.set(true);
        }
    }
}

impl<S: Store> fmt::Debug for BatchedTransaction<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchedTransaction").field("notes", &self.notes).finish()
    }
}

impl<'s, S: Store> BatchedTransaction<'s, S> {
    pub(super) fn new(inner: S::Transaction<'s>, owner: Owner<'s, S>) -> Self {
        Self { inner, owner, notes: Notes::default() }
    }

    /// Resets the notes for the next body.
    pub(super) fn begin_body(&mut self) {
        self.notes = Notes::default();
    }

    /// Records that the body has panicked, perhaps within the store.
    pub(super) fn note_panic(&mut self) {
        self.notes.is_changed.set(true);
    }

    pub(super) fn is_changed(&self) -> bool {
        self.notes.is_changed.get()
    }

    pub(super) fn is_too_large(&self) -> bool {
        self.notes.is_too_large.get()
    }

    fn noted<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.notes.note(error))
    }

    fn written(&mut self, write: impl FnOnce(&mut S::Transaction<'s>) -> Result<()>) -> Result<()> {
        self.notes.is_changed.set(true);
        let written = write(&mut self.inner);
        self.noted(written)
    }
}

/// The entries of a range of a [`BatchedTransaction`].
#[derive(Debug)]
pub struct BatchedEntries<'r, I> {
    entries: I,
    notes: &'r Notes,
}

impl<B, I: Iterator<Item = Result<Entry<B>>>> Iterator for BatchedEntries<'_, I> {
    type Item = Result<Entry<B>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.entries.next();
        if let Some(Err(error)) = &next {
            self.notes.note(error);
        }
        next
    }
}

impl<'s, S: Store> Reader for BatchedTransaction<'s, S> {
    type Bytes<'r>
        = <S::Transaction<'s> as Reader>::Bytes<'r>
    where
        Self: 'r;
    type Entries<'r>
        = BatchedEntries<'r, <S::Transaction<'s> as Reader>::Entries<'r>>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        self.noted(self.inner.get(key))
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        let entries = self.noted(self.inner.range(range, order))?;
        Ok(BatchedEntries { entries, notes: &self.notes })
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        self.noted(self.inner.get_many(keys))
    }

    fn count(&self, range: KeyRange<'_>) -> Result<u64> {
        self.noted(self.inner.count(range))
    }

    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.noted(self.inner.first(range))
    }

    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.noted(self.inner.last(range))
    }

    fn page(
        &self,
        range: KeyRange<'_>,
        order: Order,
        limit: usize,
    ) -> Result<EntryPage<Self::Bytes<'_>>> {
        self.noted(self.inner.page(range, order, limit))
    }

    fn range_many(
        &self,
        ranges: &[KeyRange<'_>],
        limit: usize,
    ) -> Result<Vec<EntryPage<Self::Bytes<'_>>>> {
        self.noted(self.inner.range_many(ranges, limit))
    }

    fn prefetched(&self) -> usize {
        self.inner.prefetched()
    }

    fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
        self.noted(self.inner.prefetch(keys))
    }
}

impl<S: Store> Writer for BatchedTransaction<'_, S> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.written(|txn| txn.put(key, value))
    }

    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        self.written(|txn| txn.put_sorted(entries))
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn check_reads(&self, is_checked: bool) -> bool {
        self.inner.check_reads(is_checked)
    }

    fn state(&mut self) -> &mut TransactionState {
        self.inner.state()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.written(|txn| txn.delete(key))
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.written(|txn| txn.delete_range(range))
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        self.written(|txn| txn.apply(key, operation))
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        self.written(|txn| txn.put_versionstamped(key, value))
    }
}

impl<S: Store> Transaction for BatchedTransaction<'_, S> {
    fn commit(self) -> Result<()> {
        let began = Instant::now();
        let committed = self.inner.commit();
        self.owner.note_commit(began.elapsed());
        committed
    }

    fn must_restart(&self) -> bool {
        self.inner.must_restart()
    }
}
