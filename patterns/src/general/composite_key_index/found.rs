//! What queries find.

use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::key::Unpacker;
use keyloom::{Entry, Error, Result, Subspace, Unpack, unpack};

use super::maintain::Header;
use crate::table::RecordKey;

/// An entry of an [`Index`](super::Index) that a query found.
///
/// `B` are the bytes that the reader hands out, and `Q` those of the key, which are the same unless the
/// entry was got by its parts.
#[derive(Clone, Debug)]
pub struct Found<B, K, Q = B> {
    key: Q,
    value: B,
    parts_at: usize,
    header: Header,
    types: PhantomData<fn() -> K>,
}

impl<B: Deref<Target = [u8]>, K, Q: Deref<Target = [u8]>> Found<B, K, Q> {
    #[inline]
    pub(crate) fn new(space: &Subspace, entry: (Q, B)) -> Result<Self> {
        Self::try_new(space, entry).map_err(|key| no_entry(&key))
    }

    /// The entry, or its key if it is not one of an index.
    pub(super) fn try_new(space: &Subspace, (key, value): (Q, B)) -> std::result::Result<Self, Q> {
        let parts_at = space.prefix().len();
        match Header::read(space, &key, &value) {
            Some(header) => Ok(Self { key, value, parts_at, header, types: PhantomData }),
            None => Err(key),
        }
    }

    /// The parts of the entry, as the function of the index gave them. Strings and bytes can be
    /// borrowed from the entry, which must be kept in a variable then; what is here need not be read
    /// from the record.
    ///
    /// # Errors
    /// When the parts are not a `P`; for a `&str` or `&[u8]` also when it holds a NUL, which is stored
    /// in two bytes and cannot be borrowed (take a `String`, or a `Cow`).
    #[inline]
    pub fn parts<'k, P: Unpack<'k>>(&'k self) -> Result<P> {
        let end = self.header.parts_end(&self.key);
        Ok(unpack(self.key.get(self.parts_at..end).unwrap_or_default())?)
    }

    /// The fields that the entry [covers](super::IndexEntries::covering), borrowed like the
    /// [`parts`](Found::parts).
    ///
    /// # Errors
    /// When they are not an `F`, and as [`parts`](Found::parts).
    pub fn covered<'k, F: Unpack<'k>>(&'k self) -> Result<F> {
        unpack(self.value.get(self.header.covered_at()..).unwrap_or_default())
            .map_err(|error| Error::from(error).at(&self.key))
    }

    /// The whole key of the entry.
    pub fn entry_key(&self) -> &[u8] {
        &self.key
    }

    fn packed_record_key(&self) -> &[u8] {
        self.header.record_key(&self.key, &self.value)
    }
}

impl<B: Deref<Target = [u8]>, K: RecordKey, Q: Deref<Target = [u8]>> Found<B, K, Q> {
    /// The key of the record.
    ///
    /// # Errors
    /// When the bytes there are not a `K`.
    pub fn record_key(&self) -> Result<K> {
        let mut input = Unpacker::new(self.packed_record_key());
        let key = K::unpack_element(&mut input)?;
        if input.is_at_end() { Ok(key) } else { Err(no_entry(&self.key)) }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the entry dangles: its record is not there; repair the index")]
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
pub struct FoundEntries<I, K> {
    entries: I,
    space: Subspace,
    key: PhantomData<fn() -> K>,
}

impl<I, K> FoundEntries<I, K> {
    pub(super) fn new(entries: I, space: &Subspace) -> Self {
        Self { entries, space: space.clone(), key: PhantomData }
    }
}

impl<I, B, K> Iterator for FoundEntries<I, K>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
{
    type Item = Result<Found<B, K>>;

    // Laid into the caller's loop: what is found would else travel through memory, entry by entry.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        match self.entries.next()? {
            Ok(entry) => Some(Found::new(&self.space, entry)),
            Err(error) => Some(Err(error)),
        }
    }
}
