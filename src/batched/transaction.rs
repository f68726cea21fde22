//! A transaction of a [`Batched`](super::Batched) store.

use std::fmt;

use super::group::Owner;
use crate::{
    AtomicOp, Entry, EntryPage, KeyRange, Limits, Order, Reader, Result, Store, Transaction,
    TransactionState, VersionstampedKey, Writer,
};

/// A transaction of a [`Batched`](super::Batched) store: that of the inner store, of one body or of
/// several.
pub struct BatchedTransaction<'s, S: Store> {
    inner: S::Transaction<'s>,
    /// Whether the body that runs has written.
    pub(super) has_written: bool,
    _owner: Option<Owner<'s, S>>,
}

impl<S: Store> fmt::Debug for BatchedTransaction<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { has_written, .. } = self;
        f.debug_struct("BatchedTransaction").field("has_written", has_written).finish()
    }
}

impl<'s, S: Store> BatchedTransaction<'s, S> {
    pub(super) fn new(inner: S::Transaction<'s>, owner: Option<Owner<'s, S>>) -> Self {
        Self { inner, has_written: false, _owner: owner }
    }

    fn written(&mut self) -> &mut S::Transaction<'s> {
        self.has_written = true;
        &mut self.inner
    }
}

impl<'s, S: Store> Reader for BatchedTransaction<'s, S> {
    type Bytes<'r>
        = <S::Transaction<'s> as Reader>::Bytes<'r>
    where
        Self: 'r;
    type Entries<'r>
        = <S::Transaction<'s> as Reader>::Entries<'r>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        self.inner.get(key)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        self.inner.range(range, order)
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        self.inner.get_many(keys)
    }

    fn count(&self, range: KeyRange<'_>) -> Result<u64> {
        self.inner.count(range)
    }

    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.inner.first(range)
    }

    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.inner.last(range)
    }

    fn page(
        &self,
        range: KeyRange<'_>,
        order: Order,
        limit: usize,
    ) -> Result<EntryPage<Self::Bytes<'_>>> {
        self.inner.page(range, order, limit)
    }

    fn range_many(
        &self,
        ranges: &[KeyRange<'_>],
        limit: usize,
    ) -> Result<Vec<EntryPage<Self::Bytes<'_>>>> {
        self.inner.range_many(ranges, limit)
    }

    fn prefetched(&self) -> usize {
        self.inner.prefetched()
    }

    fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
        self.inner.prefetch(keys)
    }
}

impl<S: Store> Writer for BatchedTransaction<'_, S> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.written().put(key, value)
    }

    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        self.written().put_sorted(entries)
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn state(&mut self) -> &mut TransactionState {
        self.inner.state()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.written().delete(key)
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.written().delete_range(range)
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        self.written().apply(key, operation)
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        self.written().put_versionstamped(key, value)
    }
}

impl<S: Store> Transaction for BatchedTransaction<'_, S> {
    fn commit(self) -> Result<()> {
        self.inner.commit()
    }

    fn must_restart(&self) -> bool {
        self.inner.must_restart()
    }
}
