//! A writer whose type is not known at compile time.

use std::fmt;
use std::ops::Deref;

use crate::{
    AtomicOp, Entry, KeyRange, Limits, Order, Page, Reader, Result, TransactionState,
    VersionstampedKey, Writer,
};

/// A [`Writer`] behind a pointer.
///
/// Patterns are generic over the store, which no trait object can be. Where a pattern must keep
/// *other* patterns of different types, such as a table its indexes, it hands them this instead: a
/// plain type that is a [`Reader`] and a [`Writer`].
///
/// Writes cost one indirect call more. Reads copy what they return to the heap, so keep them few:
/// this is for the maintenance of derived data, not for queries.
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
pub struct DynWriter<'w>(&'w mut dyn Erased);

type BoxedEntries<'r> = Box<dyn Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> + 'r>;

/// [`Writer`] without what a trait object cannot have.
trait Erased {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    fn range<'r>(&'r self, range: KeyRange<'_>, order: Order) -> Result<BoxedEntries<'r>>;
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()>;
    fn delete(&mut self, key: &[u8]) -> Result<()>;
    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()>;
    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()>;
    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()>;
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>>;
    fn count(&self, range: KeyRange<'_>) -> Result<u64>;
    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>>;
    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>>;
    fn page(&self, range: KeyRange<'_>, order: Order, limit: usize) -> Result<Page<Vec<u8>>>;
    fn entries_at_hand(&self) -> usize;
    fn limits(&self) -> Limits;
    fn state(&mut self) -> &mut TransactionState;
}

fn copied<B: Deref<Target = [u8]>>((key, value): Entry<B>) -> Entry<Vec<u8>> {
    (key.to_vec(), value.to_vec())
}

impl<W: Writer> Erased for W {
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

    fn page(&self, range: KeyRange<'_>, order: Order, limit: usize) -> Result<Page<Vec<u8>>> {
        let Page { entries, last } = Reader::page(self, range, order, limit)?;
        Ok(Page { entries: entries.into_iter().map(copied).collect(), last })
    }

    fn entries_at_hand(&self) -> usize {
        Reader::entries_at_hand(self)
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

impl<'w> DynWriter<'w> {
    /// Hides the type of `writer`.
    pub fn new<W: Writer>(writer: &'w mut W) -> Self {
        Self(writer)
    }
}

impl fmt::Debug for DynWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynWriter").finish_non_exhaustive()
    }
}

impl Reader for DynWriter<'_> {
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

    fn entries_at_hand(&self) -> usize {
        self.0.entries_at_hand()
    }

    // The store beneath may answer these with less than an open range, so they are passed on.

    fn count(&self, range: KeyRange<'_>) -> Result<u64> {
        self.0.count(range)
    }

    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>> {
        self.0.first(range)
    }

    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>> {
        self.0.last(range)
    }

    fn page(&self, range: KeyRange<'_>, order: Order, limit: usize) -> Result<Page<Vec<u8>>> {
        self.0.page(range, order, limit)
    }
}

impl Writer for DynWriter<'_> {
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

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.0.delete(key)
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.0.delete_range(range)
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        self.0.apply(key, operation)
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        self.0.put_versionstamped(key, value)
    }
}

/// The entries of a range read through a [`DynWriter`].
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
