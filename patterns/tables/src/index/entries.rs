//! The result of the function of an index.

use std::marker::PhantomData;

use keyloom::{KeyBuf, Pack, pack};
use keyloom_kit::parts::{AnyParts, Parts};
use smallvec::SmallVec;

/// The parts of the entries of a record, and the covered fields: the result of the function of an
/// [`Index`](super::Index). `P` is the [type](crate::parts) of the parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntries<P> {
    entries: SmallVec<[IndexEntry; 1]>,
    parts: PhantomData<fn() -> P>,
}

/// One entry, without the subspace, the header and the record key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IndexEntry {
    pub(crate) parts: KeyBuf,
    pub(crate) covered: KeyBuf,
}

/// Returns one entry with these parts.
///
/// ```
/// use keyloom::Desc;
/// use keyloom_tables::entry;
/// // By country, and within a country the largest first.
/// let parts = entry(("FR", Desc(2_138_551_u64)));
/// ```
pub fn entry<Q: Parts>(parts: Q) -> IndexEntries<Q::Owned> {
    IndexEntries::of([IndexEntry::new(&parts)])
}

impl IndexEntry {
    fn new(parts: &impl Pack) -> Self {
        Self { parts: pack(parts), covered: KeyBuf::new() }
    }
}

impl<P> Default for IndexEntries<P> {
    fn default() -> Self {
        Self::none()
    }
}

impl<P> IndexEntries<P> {
    fn of(entries: impl IntoIterator<Item = IndexEntry>) -> Self {
        Self { entries: entries.into_iter().collect(), parts: PhantomData }
    }

    /// Returns no entry: the index does not include this record.
    pub fn none() -> Self {
        Self { entries: SmallVec::new(), parts: PhantomData }
    }

    /// The same entries with parts of any type.
    pub(crate) fn untyped(self) -> IndexEntries<AnyParts> {
        IndexEntries { entries: self.entries, parts: PhantomData }
    }

    /// The same entries, each with a copy of these fields (a covering index). A query that needs
    /// only these fields reads no records: [`Found::covered`](super::Found::covered) returns the
    /// fields.
    ///
    /// The fields are packed like a key, but stored in the value. So the length limit of keys does
    /// not apply to the fields, and queries cannot select by them. If a field changes, the entry is
    /// written again, which costs one key written.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Index, Table, entry};
    /// use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Price { cents: u32, name: String }
    /// let by_price = Index::new(&Subspace::new("by_price"), |_id, p: &Price| entry(p.cents).covering(&p.name));
    /// let prices = Table::<u32, Price>::new(&Subspace::new("prices")).with(&by_price);
    /// let store = Memory::new();
    /// store.transact(|txn| prices.put(txn, &1, &Price { cents: 250, name: "tea".into() }))?;
    /// let snapshot = store.snapshot()?;
    /// let mut found = by_price.range(&snapshot, 250)?;
    /// let found = found.next().expect("there is tea")?;
    /// assert_eq!(found.covered::<&str>()?, "tea");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn covering<F: Pack>(mut self, fields: F) -> Self {
        let Some((last, others)) = self.entries.split_last_mut() else { return self };
        last.covered = pack(&fields);
        others.iter_mut().for_each(|entry| entry.covered.clone_from(&last.covered));
        self
    }
}

impl IndexEntries<AnyParts> {
    /// Entries whose parts are already packed, for patterns that are built on an index.
    pub fn packed(parts: impl IntoIterator<Item = KeyBuf>) -> Self {
        let entry = |parts| IndexEntry { parts, covered: KeyBuf::new() };
        Self::of(parts.into_iter().map(entry))
    }

    /// The packed parts of the entries.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = KeyBuf> {
        self.entries.into_iter().map(|entry| entry.parts)
    }

    /// Sorts the entries by their parts. If several entries have equal parts, keeps only the one
    /// with the smallest covered fields.
    pub(super) fn normalized(mut self) -> Self {
        if self.entries.len() > 1 {
            self.entries.sort_unstable();
            self.entries.dedup_by(|a, b| a.parts == b.parts);
        }
        self
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, IndexEntry> {
        self.entries.iter()
    }

    /// Whether a normalized list has an entry with the parts of `entry`.
    pub(super) fn has_parts(&self, entry: &IndexEntry) -> bool {
        self.entries.binary_search_by(|other| other.parts.cmp(&entry.parts)).is_ok()
    }

    /// Whether a normalized list has exactly this entry.
    pub(super) fn has(&self, entry: &IndexEntry) -> bool {
        self.entries.binary_search(entry).is_ok()
    }
}

impl<Q: Parts> FromIterator<Q> for IndexEntries<Q::Owned> {
    /// One entry for each item, for example one per tag.
    fn from_iter<I: IntoIterator<Item = Q>>(parts: I) -> Self {
        Self::of(parts.into_iter().map(|parts| IndexEntry::new(&parts)))
    }
}

impl<P> FromIterator<IndexEntries<P>> for IndexEntries<P> {
    /// Combines several lists of entries, for example one entry per tag, each with its own covered
    /// fields.
    fn from_iter<I: IntoIterator<Item = Self>>(entries: I) -> Self {
        Self::of(entries.into_iter().flat_map(|entries| entries.entries))
    }
}
