//! Entries found by queries.

use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::key::Unpacker;
use keyloom::{Entry, Error, Result, Subspace, Unpack, unpack};
use keyloom_kit::RecordKey;
use keyloom_kit::parts::{AnyParts, Parts};

use super::maintain::Header;

/// An entry of an [`Index`](super::Index) that a query found.
///
/// `B` is the type of the bytes that the reader returns. `Q` is the type of the bytes of the key;
/// it differs from `B` only if the entry was read by its parts. `P` is the [type](crate::parts) of
/// the parts.
#[derive(Clone, Debug)]
pub struct Found<B, K, P = AnyParts, Q = B> {
    key: Q,
    value: B,
    parts_at: usize,
    header: Header,
    types: PhantomData<fn() -> (K, P)>,
}

impl<B: Deref<Target = [u8]>, K, P, Q: Deref<Target = [u8]>> Found<B, K, P, Q> {
    /// Parses an entry of an index in `space`, for patterns that read entries themselves.
    ///
    /// # Errors
    /// [`Error::At`] if the bytes are not an entry of an index.
    #[inline]
    pub fn new(space: &Subspace, entry: (Q, B)) -> Result<Self> {
        Self::try_new(space, entry).map_err(|key| no_entry(&key))
    }

    /// Parses an entry. If the bytes are not an entry of an index, returns the key as the error.
    pub(super) fn try_new(space: &Subspace, (key, value): (Q, B)) -> std::result::Result<Self, Q> {
        let parts_at = space.prefix().len();
        match Header::read(space, &key, &value) {
            Some(header) => Ok(Self { key, value, parts_at, header, types: PhantomData }),
            None => Err(key),
        }
    }

    #[inline]
    fn packed_parts(&self) -> &[u8] {
        let end = self.header.parts_end(&self.key);
        self.key.get(self.parts_at..end).unwrap_or_default()
    }

    /// The fields that the entry [covers](super::IndexEntries::covering), borrowed like the
    /// [`parts`](Found::parts).
    ///
    /// # Errors
    /// [`Error::At`] with an [`Error::Key`] if the fields are not an `F`; see also
    /// [`parts`](Found::parts).
    pub fn covered<'k, F: Unpack<'k>>(&'k self) -> Result<F> {
        unpack(self.value.get(self.header.covered_at()..).unwrap_or_default())
            .map_err(|error| Error::from(error).at(&self.key))
    }

    /// The whole key of the entry.
    pub fn entry_key(&self) -> &[u8] {
        &self.key
    }

    /// The packed key of the record, as one element, for tools that do not know its type.
    ///
    /// ```
    /// use keyloom::{KeyRange, Memory, Order, Reader, Store, Subspace, pack};
    /// use keyloom_tables::index::Found;
    /// use keyloom_tables::parts::AnyParts;
    /// use keyloom_tables::{Index, Table, entry};
    /// let space = Subspace::new("by_length");
    /// let by_length = Index::new(&space, |_id: &u32, name: &String| entry(name.len()));
    /// let names = Table::<u32, String>::new(&Subspace::new("names")).with(&by_length);
    /// let store = Memory::new();
    /// store.transact(|txn| names.put(txn, &7, &"Ada".into()))?;
    /// let snapshot = store.snapshot()?;
    /// let entry = snapshot.range(space.self_and_children(), Order::Ascending)?.next().unwrap()?;
    /// let found = Found::<_, (), AnyParts>::new(&space, entry)?;
    /// assert_eq!(found.packed_record_key(), &pack(&7)[..]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn packed_record_key(&self) -> &[u8] {
        self.header.record_key(&self.key, &self.value)
    }
}

impl<B: Deref<Target = [u8]>, K, P: Parts, Q: Deref<Target = [u8]>> Found<B, K, P, Q> {
    /// The parts of the entry, as the function of the index returned them. Strings and bytes are
    /// borrowed from the entry: keep the entry in a variable.
    ///
    /// # Errors
    /// [`Error::At`] with an [`Error::Key`] if the parts are not a `P`, or if a string or bytes
    /// contain a NUL, which is stored as two bytes and cannot be borrowed: use
    /// [`owned_parts`](Found::owned_parts).
    #[inline]
    pub fn parts(&self) -> Result<P::Borrowed<'_>> {
        unpack(self.packed_parts()).map_err(|error| Error::from(error).at(&self.key))
    }
}

impl<B: Deref<Target = [u8]>, K, P, Q: Deref<Target = [u8]>> Found<B, K, P, Q>
where
    P: Parts + for<'k> Unpack<'k>,
{
    /// The parts of the entry, without borrowing.
    ///
    /// # Errors
    /// [`Error::At`] with an [`Error::Key`] if the parts are not a `P`.
    pub fn owned_parts(&self) -> Result<P> {
        unpack(self.packed_parts()).map_err(|error| Error::from(error).at(&self.key))
    }
}

impl<B: Deref<Target = [u8]>, K, Q: Deref<Target = [u8]>> Found<B, K, AnyParts, Q> {
    /// The parts of the entry as a `T`. Strings and bytes can be borrowed from the entry: keep the
    /// entry in a variable.
    ///
    /// # Errors
    /// [`Error::At`] with an [`Error::Key`] if the parts are not a `T`, or if a `&str` or `&[u8]`
    /// contains a NUL, which is stored as two bytes and cannot be borrowed: use a `String` or a
    /// `Cow`.
    #[inline]
    pub fn parts_as<'k, T: Unpack<'k>>(&'k self) -> Result<T> {
        unpack(self.packed_parts()).map_err(|error| Error::from(error).at(&self.key))
    }
}

impl<B: Deref<Target = [u8]>, K: RecordKey, P, Q: Deref<Target = [u8]>> Found<B, K, P, Q> {
    /// The key of the record.
    ///
    /// # Errors
    /// [`Error::Key`] if the bytes are not a `K`; [`Error::At`] if more bytes follow the key.
    pub fn record_key(&self) -> Result<K> {
        let mut input = Unpacker::new(self.packed_record_key());
        let key = K::unpack_element(&mut input)?;
        if input.is_at_end() { Ok(key) } else { Err(no_entry(&self.key)) }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the entry dangles: its record does not exist; repair the index")]
pub(super) struct Dangling;

#[derive(Debug, thiserror::Error)]
#[error(
    "it is not an entry of this index: it is damaged, or another kind of data is in the subspace; repair the index"
)]
struct NoEntry;

#[cold]
pub(super) fn no_entry(key: &[u8]) -> Error {
    Error::other(NoEntry).at(key)
}

/// The entries that a query on an [`Index`](super::Index) finds.
#[derive(Debug)]
pub struct FoundEntries<I, K, P = AnyParts> {
    entries: I,
    space: Subspace,
    types: PhantomData<fn() -> (K, P)>,
}

impl<I, K, P> FoundEntries<I, K, P> {
    pub(super) fn new(entries: I, space: &Subspace) -> Self {
        Self { entries, space: space.clone(), types: PhantomData }
    }
}

impl<I, B, K, P> Iterator for FoundEntries<I, K, P>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
{
    type Item = Result<Found<B, K, P>>;

    // Inlined into the caller's loop: otherwise each entry would be copied through memory.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self.entries.next()? {
            Ok(entry) => Some(Found::new(&self.space, entry)),
            Err(error) => Some(Err(error)),
        }
    }
}
