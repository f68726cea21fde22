//! Composite-key index: how are records found by the leading parts of several fields?
//!
//! With entries ordered by `(country, region, name)` one index answers "all of a country", "all of a
//! country and a region" and "those whose name begins with San": each is one range. The order of
//! the parts is the design decision: a query names the parts from the left.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, parts of the entry, record key as one element | 2 bytes, big-endian: the format (1) in the upper 4 bits, the length of the packed record key in the lower 12 |
//!
//! ```text
//! ("geo", "by_place", "FR", "11", "Paris", 2988507)  ->  10 04
//!  subspace            parts                record key    format 1, record key of 4 bytes
//! ```
//!
//! The record key stands last, a composite one as a nested tuple, so entries with equal parts are different keys, in the order of the
//! record keys; the length in the value says where it begins, so an entry is taken apart without
//! knowing the types of its parts.
//!
//! # Invariants
//!
//! * An entry is there exactly if the function of the index gives its parts for a record that is
//!   there.
//! * A record may have no entry (a partial index), one, or several (one per tag).
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | put of a record | 1 key written per entry that appears or disappears, 0 when the parts stay |
//! | [`range`](Index::range), [`page`](Index::page) | 1 range; reads exactly the entries that it returns; a page also looks whether there is one behind it |
//! | [`first_of_each`](Index::first_of_each), [`last_of_each`](Index::last_of_each) | about 1 range per group, see [`aggregation`](crate::general::aggregation#cost) |
//! | [`count`](Index::count) | 1 range; reads all of it, or the store counts |
//! | [`records`](Index::records) | n entries and n gets, in 2 round trips; 1 where nothing is found |
//! | [`check`](Index::check), [`repair`](Index::repair) | see [`derived`] |
//!
//! # When not to use it
//!
//! When queries leave out the first part (another order of the parts is another index); when parts
//! are long texts (a key has 511 bytes in all); for distances on a map (one range cannot hold two
//! dimensions).
//!
//! # Source
//!
//! "Composite key index" in I. Katsov, *NoSQL Data Modeling Techniques* (2012).

use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

use keyloom::key::{Packer, Unpacker};
use keyloom::value::Codec;
use keyloom::{
    DynWriter, Entry, Error, KeyBuf, Order, Pack, Reader, Result, Store, Subspace, Unpack, pack,
    unpack,
};
use smallvec::SmallVec;

use crate::continuation::Continuation;
use crate::derived::{
    self, Derived, DerivedEntries, DerivedEntry, Inconsistency, RepairOptions, RepairProgress,
    SortedWrites,
};
use crate::general::aggregation::{Grouping, Groups};
use crate::select::Select;
use crate::table::{RecordKey, RecordPage, Table};

/// The format of entries that this code writes.
const FORMAT: u8 = 1;

/// The parts of a record's entries: what the function of an [`Index`] returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexEntries(SmallVec<[KeyBuf; 1]>);

/// One entry with these parts.
///
/// ```
/// use keyloom::Desc;
/// use keyloom_patterns::entry;
/// // By country, and within a country the largest first.
/// let parts = entry(("FR", Desc(2_138_551_u64)));
/// ```
pub fn entry<P: Pack>(parts: P) -> IndexEntries {
    IndexEntries(SmallVec::from_iter([pack(&parts)]))
}

impl IndexEntries {
    /// No entry: the index does not hold this record.
    pub fn none() -> Self {
        Self::default()
    }

    /// Entries whose parts are packed already.
    pub(crate) fn packed(parts: impl IntoIterator<Item = KeyBuf>) -> Self {
        Self(parts.into_iter().collect())
    }
}

impl<P: Pack> FromIterator<P> for IndexEntries {
    /// One entry for each of the parts, such as one per tag.
    fn from_iter<I: IntoIterator<Item = P>>(parts: I) -> Self {
        Self(parts.into_iter().map(|parts| pack(&parts)).collect())
    }
}

type Function<K, V> = dyn Fn(&K, &V) -> IndexEntries + Send + Sync;

/// An index of the records of a [`Table`]; see the [module](self).
///
/// ```
/// use keyloom::{Memory, Order, Store, Subspace};
/// use keyloom_patterns::{Index, IndexEntries, Table};
/// let by_tag = Index::new(&Subspace::new("by_tag"), |_id, tags: &Vec<String>| tags.iter().collect());
/// let posts = Table::<u32, Vec<String>>::new(&Subspace::new("posts")).with(&by_tag);
/// let store = Memory::new();
/// store.transact(|txn| posts.put(txn, &7, &vec!["rust".into(), "lmdb".into()]))?;
/// let found = by_tag.range(&store.snapshot()?, "rust", Order::Ascending)?
///     .map(|found| found?.record_key())
///     .collect::<Result<Vec<u32>, _>>()?;
/// assert_eq!(found, [7]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Index<K, V> {
    space: Subspace,
    function: Arc<Function<K, V>>,
}

impl<K, V> Clone for Index<K, V> {
    fn clone(&self) -> Self {
        Self { space: self.space.clone(), function: Arc::clone(&self.function) }
    }
}

impl<K, V> fmt::Debug for Index<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("space", &self.space).finish_non_exhaustive()
    }
}

impl<K: RecordKey, V> Index<K, V> {
    /// An index in `space`, whose entries for a record are what `function` returns for it.
    ///
    /// **Nothing else may be in `space`**, and the table must lie outside of it: what is no entry is
    /// a fault that [`repair`](Index::repair) removes.
    ///
    /// The function must be pure: the same record, the same entries. When it changes, the entries
    /// that are there are wrong until [`repair`](Index::repair) has run.
    pub fn new(
        space: &Subspace,
        function: impl Fn(&K, &V) -> IndexEntries + Send + Sync + 'static,
    ) -> Self {
        Self { space: space.clone(), function: Arc::new(function) }
    }

    /// Where the entries are.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// An entry of this index.
    pub(crate) fn found<B: Deref<Target = [u8]>>(&self, entry: Entry<B>) -> Result<Found<B, K>> {
        Found::new(&self.space, entry)
    }

    /// The entries whose parts are as `select` says, in `order`: those that begin with some parts, all
    /// of them with `()`, or what else [`Select`] offers.
    ///
    /// # Errors
    /// What the store says; the iterator, also when an entry is not one.
    pub fn range<'r, R: Reader>(
        &self,
        reader: &'r R,
        select: impl Select,
        order: Order,
    ) -> Result<FoundEntries<R::Entries<'r>, K>> {
        let entries = reader.range(select.key_range(&self.space), order)?;
        Ok(FoundEntries { entries, space: self.space.clone(), key: PhantomData })
    }

    /// At most `limit` of the entries of [`range`](Index::range), beginning behind `after`.
    ///
    /// Nothing is skipped or repeated, whatever was written between two pages: a page begins behind
    /// a key and not at a count.
    ///
    /// # Errors
    /// [`Error::BadOption`] for a continuation of another query; else as [`range`](Index::range).
    pub fn page<'r, R: Reader>(
        &self,
        reader: &'r R,
        select: impl Select,
        order: Order,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<IndexPage<R::Bytes<'r>, K>> {
        let query = select.key_range(&self.space);
        let rest = Continuation::resume(after, query.clone(), order)?;
        let page = reader.page(rest, order, limit)?;
        let mut found = Vec::with_capacity(page.entries.len());
        for entry in page.entries {
            found.push(Found::new(&self.space, entry)?);
        }
        Ok(IndexPage {
            found,
            next: page.last.map(|last| Continuation::behind(&last, &query, order)),
        })
    }

    /// The records of one [`page`](Index::page), in the order of the index. Costs two round trips.
    ///
    /// ```
    /// use keyloom::{Desc, Memory, Order, Store, Subspace};
    /// use keyloom_patterns::{Index, Table, entry};
    /// let by_score = Index::new(&Subspace::new("by_score"), |_name: &String, score: &u32| entry(Desc(*score)));
    /// let scores = Table::<String, u32>::new(&Subspace::new("scores")).with(&by_score);
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     scores.put(txn, &"Ada".into(), &80)?;
    ///     scores.put(txn, &"Bob".into(), &95)
    /// })?;
    /// let best = by_score.records(&store.snapshot()?, &scores, (), Order::Ascending, 1, None)?;
    /// assert_eq!(best.records, [("Bob".to_owned(), 95)]);
    /// assert!(best.next.is_some());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`page`](Index::page); [`Error::At`] for an entry whose record is not there, which
    /// [`check`](Index::check) would find too.
    pub fn records<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
        select: impl Select,
        order: Order,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<RecordPage<K, V>> {
        let IndexPage { found, next } = self.page(reader, select, order, limit, after)?;
        let mut keys = Vec::with_capacity(found.len());
        for found in &found {
            keys.push(found.record_key()?);
        }
        let values = table.get_many(reader, &keys)?;
        let mut records = Vec::with_capacity(found.len());
        for ((key, value), found) in keys.into_iter().zip(values).zip(&found) {
            let value = value.ok_or_else(|| Error::other(Dangling).at(found.entry_key()))?;
            records.push((key, value));
        }
        Ok(RecordPage { records, next })
    }

    /// The first selected entry of each group, in the order of the index: groups are those entries
    /// whose first `parts` parts are equal, and come in `order`.
    ///
    /// A skip scan, which costs about as many ranges as there are groups; see
    /// [`Grouping::first_of_each`].
    ///
    /// ```
    /// use keyloom::{Desc, Memory, Order, Store, Subspace};
    /// use keyloom_patterns::{Index, Table, entry};
    /// type City = (String, u64);
    /// let by_size = Index::new(&Subspace::new("by_size"), |_id, (country, people): &City| entry((country, Desc(*people))));
    /// let cities = Table::<u32, City>::new(&Subspace::new("cities")).with(&by_size);
    /// let store = Memory::new();
    /// let all = [(1, ("FR", 472_317)), (2, ("FR", 2_138_551)), (3, ("CH", 341_730))];
    /// store.transact(|txn| cities.put_many(txn, all.map(|(id, (country, n))| (id, (country.to_owned(), n)))))?;
    /// let largest = by_size.first_of_each(&store.snapshot()?, (), 1, Order::Ascending)?
    ///     .map(|found| found?.record_key())
    ///     .collect::<Result<Vec<u32>, _>>()?;
    /// assert_eq!(largest, [3, 2]); // the largest of each country
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`range`](Index::range); the iterator, also for an entry with fewer elements.
    pub fn first_of_each<'r, R: Reader>(
        &self,
        reader: &'r R,
        select: impl Select,
        parts: usize,
        order: Order,
    ) -> Result<FoundEntries<Groups<'r, R>, K>> {
        let entries = self.grouped_by(parts).first_of_each(reader, select, order)?;
        Ok(FoundEntries { entries, space: self.space.clone(), key: PhantomData })
    }

    /// The last selected entry of each group, as [`first_of_each`](Index::first_of_each).
    ///
    /// # Errors
    /// As [`first_of_each`](Index::first_of_each).
    pub fn last_of_each<'r, R: Reader>(
        &self,
        reader: &'r R,
        select: impl Select,
        parts: usize,
        order: Order,
    ) -> Result<FoundEntries<Groups<'r, R>, K>> {
        let entries = self.grouped_by(parts).last_of_each(reader, select, order)?;
        Ok(FoundEntries { entries, space: self.space.clone(), key: PhantomData })
    }

    /// The groups that the first `parts` parts make: for their distinct values, loose index ranges and
    /// group-by.
    pub fn grouped_by(&self, parts: usize) -> Grouping {
        Grouping::new(&self.space, parts)
    }

    /// How many entries are selected. Reads all of them.
    ///
    /// # Errors
    /// What the store says.
    pub fn count(&self, reader: &impl Reader, select: impl Select) -> Result<u64> {
        reader.count(select.key_range(&self.space))
    }

    /// Everything that is not as it should be between `table` and this index.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_patterns::{Index, Table, entry};
    /// let by_size = Index::new(&Subspace::new("by_size"), |_id, size: &u64| entry(size));
    /// let forgetful = Table::<u32, u64>::new(&Subspace::new("files"));
    /// let store = Memory::new();
    /// store.transact(|txn| forgetful.put(txn, &1, &4096))?;
    /// let found = by_size.check(&store.snapshot()?, &forgetful)?;
    /// assert_eq!(found[0].to_string(), r#"the entry ("by_size", 4096, 1) is missing: its record asks for it"#);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the store says, and records that do not decode.
    pub fn check<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        let mut found = Vec::new();
        derived::check(self, table, reader, |inconsistency| found.push(inconsistency))?;
        Ok(found)
    }

    /// Makes the index what it should be, or builds it, in bounded transactions; see
    /// [`derived::repair`].
    ///
    /// # Errors
    /// What the store says, and records that do not decode.
    pub fn repair<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        options: &RepairOptions,
        progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
    ) -> Result<RepairProgress> {
        derived::repair(self, table, store, options, progress)
    }
}

impl<K: RecordKey, V> DerivedEntries<K, V> for Index<K, V> {
    fn space(&self) -> &Subspace {
        &self.space
    }

    fn entries(&self, key: &K, value: &V) -> Vec<DerivedEntry> {
        let record_key = pack_one(key);
        let entry = |parts: KeyBuf| {
            let mut entry = KeyBuf::from_slice(self.space.prefix());
            entry.extend_from_slice(&parts);
            entry.extend_from_slice(&record_key);
            (entry, entry_value(record_key.len()))
        };
        (self.function)(key, value).0.into_iter().map(entry).collect()
    }

    fn record_key(&self, key: &[u8], value: &[u8]) -> Result<K> {
        Found::new(&self.space, (key, value))?.record_key()
    }
}

impl<K: RecordKey, V> Derived<K, V> for Index<K, V> {
    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        key: &K,
        old: Option<&V>,
        new: Option<&V>,
    ) -> Result<()> {
        derived::update_entries(self, txn, key, old, new)
    }

    fn plan(
        &self,
        writes: &mut SortedWrites,
        key: &K,
        old: Option<&V>,
        new: Option<&V>,
    ) -> Result<bool> {
        derived::plan_entries(self, writes, key, old, new)
    }
}

/// The value of an entry: the format and where its record key begins, counted from the end.
///
/// A record key that is too long for the 12 bits makes an entry that is too long for any store and
/// is refused there.
fn entry_value(record_key_bytes: usize) -> SmallVec<[u8; 16]> {
    let length = u16::try_from(record_key_bytes).unwrap_or(LENGTH_MASK) & LENGTH_MASK;
    SmallVec::from_slice(&(u16::from(FORMAT) << LENGTH_BITS | length).to_be_bytes())
}

const LENGTH_BITS: u32 = 12;
const LENGTH_MASK: u16 = (1 << LENGTH_BITS) - 1;

/// An entry of an [`Index`] that a query found.
#[derive(Clone, Debug)]
pub struct Found<B, K> {
    key: B,
    parts_at: usize,
    record_key_at: usize,
    types: PhantomData<fn() -> K>,
}

impl<B: Deref<Target = [u8]>, K> Found<B, K> {
    fn new(space: &Subspace, (key, value): Entry<B>) -> Result<Self> {
        let parts_at = space.prefix().len();
        let Some(value) = value.first_chunk::<2>().filter(|_| value.len() == 2) else {
            return Err(no_entry(&key));
        };
        let value = u16::from_be_bytes(*value);
        let format = value >> LENGTH_BITS;
        if format > u16::from(FORMAT) {
            return Err(Error::NewerFormat {
                what: format!("the index {space}"),
                found: format.into(),
                supported: FORMAT.into(),
            });
        }
        let record_key_at = key.len().checked_sub(usize::from(value & LENGTH_MASK));
        match record_key_at.filter(|&at| at >= parts_at && format == u16::from(FORMAT)) {
            Some(record_key_at) => Ok(Self { key, parts_at, record_key_at, types: PhantomData }),
            None => Err(no_entry(&key)),
        }
    }

    /// The parts of the entry, as the function of the index gave them. Strings and bytes can be
    /// borrowed from the entry, which must be kept in a variable then; what is here need not be read
    /// from the record.
    ///
    /// # Errors
    /// When the parts are not a `P`; for a `&str` or `&[u8]` also when it holds a NUL, which is stored
    /// in two bytes and cannot be borrowed (take a `String`, or a `Cow`).
    pub fn parts<'k, P: Unpack<'k>>(&'k self) -> Result<P> {
        Ok(unpack(self.key.get(self.parts_at..self.record_key_at).unwrap_or_default())?)
    }

    /// The whole key of the entry.
    pub fn entry_key(&self) -> &[u8] {
        &self.key
    }
}

impl<B: Deref<Target = [u8]>, K: RecordKey> Found<B, K> {
    /// The key of the record.
    ///
    /// # Errors
    /// When the bytes there are not a `K`.
    pub fn record_key(&self) -> Result<K> {
        let mut input = Unpacker::new(self.key.get(self.record_key_at..).unwrap_or_default());
        let key = K::unpack_element(&mut input)?;
        if input.is_at_end() { Ok(key) } else { Err(no_entry(&self.key)) }
    }
}

/// A record key as exactly one element: a tuple of several stands nested behind the parts, so that
/// `("a",)` with the key `("b", "c")` is another entry than `("a", "b")` with `("c",)`.
fn pack_one<K: Pack>(key: &K) -> KeyBuf {
    let mut packer = Packer::new();
    key.pack_element(&mut packer);
    packer.finish()
}

#[derive(Debug, thiserror::Error)]
#[error("the entry dangles: its record is not there; repair the index")]
struct Dangling;

#[derive(Debug, thiserror::Error)]
#[error("{0} is no entry of this index; is another kind of data in its subspace?")]
struct NoEntry(String);

#[cold]
fn no_entry(key: &[u8]) -> Error {
    Error::other(NoEntry(keyloom::key::display(key).to_string()))
}

/// The entries that a query on an [`Index`] finds.
#[derive(Debug)]
pub struct FoundEntries<I, K> {
    entries: I,
    space: Subspace,
    key: PhantomData<fn() -> K>,
}

impl<I, B, K> Iterator for FoundEntries<I, K>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
{
    type Item = Result<Found<B, K>>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.entries.next()?.and_then(|entry| Found::new(&self.space, entry)))
    }
}

/// Some of the entries that a query finds, and where it goes on.
#[derive(Clone, Debug)]
pub struct IndexPage<B, K> {
    /// The entries.
    pub found: Vec<Found<B, K>>,
    /// Where the next page begins, `None` when this was the last.
    pub next: Option<Continuation>,
}
