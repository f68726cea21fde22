//! Writers and stores whose types are not known at compile time.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::backend::ChangeListener;
use crate::{
    AtomicOp, Entry, EntryPage, KeyRange, Limits, Order, Reader, Result, RetryPolicy, Store,
    Transaction, TransactionState, VersionstampedKey, Writer,
};

/// A [`Writer`] of any type, behind a pointer.
///
/// Patterns are generic over the store, and a generic trait cannot be a trait object. A pattern
/// that holds *other* patterns of different types, as a table holds its indexes, passes them a
/// `DynWriter` instead: a concrete type that is a [`Reader`] and a [`Writer`].
///
/// Writes cost one more indirect call. Reads copy what they return to the heap, so keep them few:
/// this type is for the maintenance of derived data, not for queries.
///
/// ```
/// use keyloom::{DynWriter, Memory, Reader, Store, Writer};
/// fn greet(txn: &mut DynWriter<'_>) -> keyloom::Result<()> {
///     txn.put(b"greeting", b"hello")
/// }
/// let store = Memory::new();
/// store.transact(|txn| greet(&mut DynWriter::new(txn)))?;
/// assert_eq!(store.snapshot()?.get(b"greeting")?, Some(&b"hello"[..]));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct DynWriter<'w>(&'w mut dyn ErasedWriter);

pub(crate) type BoxedEntries<'r> = Box<dyn Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + 'r>;

/// [`Reader`] without the methods that a trait object does not allow.
pub(crate) trait ErasedReader {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    fn range<'r>(&'r self, range: KeyRange<'_>, order: Order) -> Result<BoxedEntries<'r>>;
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>>;
    fn count(&self, range: KeyRange<'_>) -> Result<u64>;
    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>>;
    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>>;
    fn page(&self, range: KeyRange<'_>, order: Order, limit: usize) -> Result<EntryPage<Vec<u8>>>;
    fn range_many(&self, ranges: &[KeyRange<'_>], limit: usize) -> Result<Vec<EntryPage<Vec<u8>>>>;
    fn prefetched(&self) -> usize;
    fn prefetch(&self, keys: &[&[u8]]) -> Result<()>;
}

/// [`Writer`] without the methods that a trait object does not allow.
pub(crate) trait ErasedWriter: ErasedReader {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()>;
    fn delete(&mut self, key: &[u8]) -> Result<()>;
    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()>;
    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()>;
    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()>;
    fn limits(&self) -> Limits;
    fn state(&mut self) -> &mut TransactionState;
    fn check_reads(&self, is_checked: bool) -> bool;
}

/// [`Transaction`] as a trait object.
pub(crate) trait ErasedTransaction: ErasedWriter {
    fn commit(self: Box<Self>) -> Result<()>;
    fn must_restart(&self) -> bool;
}

/// [`Store`] as a trait object.
trait ErasedStore: Send + Sync {
    fn snapshot(&self) -> Result<Box<dyn ErasedReader + Send + '_>>;
    fn parallel_snapshots(&self, count: usize) -> Result<Vec<Box<dyn ErasedReader + Send + '_>>>;
    fn begin(&self) -> Result<Box<dyn ErasedTransaction + '_>>;
    fn limits(&self) -> Limits;
    fn retry_policy(&self) -> RetryPolicy;
    fn round_trips(&self) -> Option<u64>;
    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool>;
    fn listen(&self, key: &[u8]) -> ChangeListener;
}

fn copied<B: Deref<Target = [u8]>>((key, value): Entry<B>) -> Entry<Vec<u8>> {
    (key.to_vec(), value.to_vec())
}

fn copied_page<B: Deref<Target = [u8]>>(page: EntryPage<B>) -> EntryPage<Vec<u8>> {
    EntryPage { entries: page.entries.into_iter().map(copied).collect(), last: page.last }
}

impl<R: Reader> ErasedReader for R {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(Reader::get(self, key)?.map(|value| value.to_vec()))
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let values = Reader::get_many(self, keys)?;
        Ok(values.into_iter().map(|value| value.map(|value| value.to_vec())).collect())
    }

    fn range<'r>(&'r self, range: KeyRange<'_>, order: Order) -> Result<BoxedEntries<'r>> {
        let entries = Reader::range(self, range, order)?;
        Ok(Box::new(entries.map(|entry| entry.map(copied))))
    }

    fn count(&self, range: KeyRange<'_>) -> Result<u64> {
        Reader::count(self, range)
    }

    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>> {
        Ok(Reader::first(self, range)?.map(copied))
    }

    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>> {
        Ok(Reader::last(self, range)?.map(copied))
    }

    fn page(&self, range: KeyRange<'_>, order: Order, limit: usize) -> Result<EntryPage<Vec<u8>>> {
        Reader::page(self, range, order, limit).map(copied_page)
    }

    fn range_many(&self, ranges: &[KeyRange<'_>], limit: usize) -> Result<Vec<EntryPage<Vec<u8>>>> {
        let pages = Reader::range_many(self, ranges, limit)?;
        Ok(pages.into_iter().map(copied_page).collect())
    }

    fn prefetched(&self) -> usize {
        Reader::prefetched(self)
    }

    fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
        Reader::prefetch(self, keys)
    }
}

impl<W: Writer> ErasedWriter for W {
    fn check_reads(&self, is_checked: bool) -> bool {
        Writer::check_reads(self, is_checked)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Writer::put(self, key, value)
    }

    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        Writer::put_sorted(self, entries)
    }

    fn limits(&self) -> Limits {
        Writer::limits(self)
    }

    fn state(&mut self) -> &mut TransactionState {
        Writer::state(self)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        Writer::delete(self, key)
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        Writer::delete_range(self, range)
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        Writer::apply(self, key, operation)
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        Writer::put_versionstamped(self, key, value)
    }
}

impl<T: Transaction> ErasedTransaction for T {
    fn commit(self: Box<Self>) -> Result<()> {
        Transaction::commit(*self)
    }

    fn must_restart(&self) -> bool {
        Transaction::must_restart(self)
    }
}

impl<S: Store> ErasedStore for S {
    fn snapshot(&self) -> Result<Box<dyn ErasedReader + Send + '_>> {
        Ok(Box::new(Store::snapshot(self)?))
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<Box<dyn ErasedReader + Send + '_>>> {
        let found = Store::parallel_snapshots(self, count)?;
        Ok(found.into_iter().map(|one| Box::new(one) as Box<_>).collect())
    }

    fn begin(&self) -> Result<Box<dyn ErasedTransaction + '_>> {
        Ok(Box::new(Store::begin(self)?))
    }

    fn limits(&self) -> Limits {
        Store::limits(self)
    }

    fn retry_policy(&self) -> RetryPolicy {
        Store::retry_policy(self)
    }

    fn round_trips(&self) -> Option<u64> {
        Store::round_trips(self)
    }

    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool> {
        Store::wait_for_change(self, key, seen, timeout)
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        Store::listen(self, key)
    }
}

impl<'w> DynWriter<'w> {
    /// Erases the type of `writer`.
    pub fn new<W: Writer>(writer: &'w mut W) -> Self {
        Self(writer)
    }
}

impl fmt::Debug for DynWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynWriter").finish_non_exhaustive()
    }
}

macro_rules! reads {
    ($reader:ident) => {
        impl Reader for $reader<'_> {
            type Bytes<'r>
                = Vec<u8>
            where
                Self: 'r;
            type Entries<'r>
                = DynEntries<'r>
            where
                Self: 'r;

            fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
                self.0.get(key)
            }

            fn range(&self, range: KeyRange<'_>, order: Order) -> Result<DynEntries<'_>> {
                self.0.range(range, order).map(DynEntries)
            }

            fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
                let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
                self.0.get_many(&keys)
            }

            fn prefetched(&self) -> usize {
                self.0.prefetched()
            }

            fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
                self.0.prefetch(keys)
            }

            // Forwarded, because the inner store may answer these calls without opening a range.

            fn count(&self, range: KeyRange<'_>) -> Result<u64> {
                self.0.count(range)
            }

            fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>> {
                self.0.first(range)
            }

            fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>> {
                self.0.last(range)
            }

            fn page(
                &self,
                range: KeyRange<'_>,
                order: Order,
                limit: usize,
            ) -> Result<EntryPage<Vec<u8>>> {
                self.0.page(range, order, limit)
            }

            fn range_many(
                &self,
                ranges: &[KeyRange<'_>],
                limit: usize,
            ) -> Result<Vec<EntryPage<Vec<u8>>>> {
                self.0.range_many(ranges, limit)
            }
        }
    };
}

macro_rules! writes {
    ($writer:ident) => {
        impl Writer for $writer<'_> {
            fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
                self.0.put(key, value)
            }

            fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
                self.0.put_sorted(entries)
            }

            fn state(&mut self) -> &mut TransactionState {
                self.0.state()
            }

            fn limits(&self) -> Limits {
                self.0.limits()
            }

            fn check_reads(&self, is_checked: bool) -> bool {
                self.0.check_reads(is_checked)
            }

            fn delete(&mut self, key: &[u8]) -> Result<()> {
                self.0.delete(key)
            }

            fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
                self.0.delete_range(range)
            }

            fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
                self.0.apply(key, operation)
            }

            fn put_versionstamped(
                &mut self,
                key: &VersionstampedKey<'_>,
                value: &[u8],
            ) -> Result<()> {
                self.0.put_versionstamped(key, value)
            }
        }
    };
}

reads!(DynWriter);
writes!(DynWriter);
reads!(DynSnapshot);
reads!(DynTransaction);
writes!(DynTransaction);

/// A store whose type is not known at compile time; a variant of [`AnyStore`](crate::AnyStore).
///
/// Reads copy keys and values to the heap, and ranges cost an indirect call for each entry.
#[derive(Clone)]
pub struct DynStore {
    store: Arc<dyn ErasedStore>,
    address: Arc<str>,
}

impl DynStore {
    pub(crate) fn new(address: &str, store: impl Store) -> Self {
        Self { store: Arc::new(store), address: address.into() }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl fmt::Debug for DynStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynStore").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Store for DynStore {
    type Snapshot<'s> = DynSnapshot<'s>;
    type Transaction<'s> = DynTransaction<'s>;

    fn snapshot(&self) -> Result<DynSnapshot<'_>> {
        self.store.snapshot().map(DynSnapshot)
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<DynSnapshot<'_>>> {
        let found = self.store.parallel_snapshots(count)?;
        Ok(found.into_iter().map(DynSnapshot).collect())
    }

    fn begin(&self) -> Result<DynTransaction<'_>> {
        self.store.begin().map(DynTransaction)
    }

    fn limits(&self) -> Limits {
        self.store.limits()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.store.retry_policy()
    }

    fn round_trips(&self) -> Option<u64> {
        self.store.round_trips()
    }

    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool> {
        self.store.wait_for_change(key, seen, timeout)
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        self.store.listen(key)
    }
}

/// A snapshot of a [`DynStore`].
pub struct DynSnapshot<'s>(Box<dyn ErasedReader + Send + 's>);

/// A transaction of a [`DynStore`].
pub struct DynTransaction<'s>(Box<dyn ErasedTransaction + 's>);

impl Transaction for DynTransaction<'_> {
    fn commit(self) -> Result<()> {
        self.0.commit()
    }

    fn must_restart(&self) -> bool {
        self.0.must_restart()
    }
}

impl fmt::Debug for DynSnapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynSnapshot").finish_non_exhaustive()
    }
}

impl fmt::Debug for DynTransaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynTransaction").finish_non_exhaustive()
    }
}

/// The entries of a range read through a [`DynWriter`] or from a [`DynStore`].
pub struct DynEntries<'r>(BoxedEntries<'r>);

impl Iterator for DynEntries<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl fmt::Debug for DynEntries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynEntries").finish_non_exhaustive()
    }
}
