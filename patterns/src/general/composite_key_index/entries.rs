//! What the function of an index returns.

use keyloom::{KeyBuf, Pack, pack};
use smallvec::SmallVec;

/// The parts of a record's entries, and the fields that they cover: what the function of an
/// [`Index`](super::Index) returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexEntries(SmallVec<[IndexEntry; 1]>);

/// One entry, without what every entry of its record has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexEntry {
    pub(crate) parts: KeyBuf,
    pub(crate) covered: KeyBuf,
}

/// One entry with these parts.
///
/// ```
/// use keyloom::Desc;
/// use keyloom_patterns::entry;
/// // By country, and within a country the largest first.
/// let parts = entry(("FR", Desc(2_138_551_u64)));
/// ```
pub fn entry<P: Pack>(parts: P) -> IndexEntries {
    IndexEntries(SmallVec::from_iter([IndexEntry::new(&parts)]))
}

impl IndexEntry {
    fn new(parts: &impl Pack) -> Self {
        Self { parts: pack(parts), covered: KeyBuf::new() }
    }
}

impl IndexEntries {
    /// No entry: the index does not hold this record.
    pub fn none() -> Self {
        Self::default()
    }

    /// Entries whose parts are packed already.
    pub(crate) fn packed(parts: impl IntoIterator<Item = KeyBuf>) -> Self {
        let entry = |parts| IndexEntry { parts, covered: KeyBuf::new() };
        Self(parts.into_iter().map(entry).collect())
    }

    /// The packed parts.
    pub(crate) fn into_parts(self) -> impl Iterator<Item = KeyBuf> {
        self.0.into_iter().map(|entry| entry.parts)
    }

    /// The same entries, each with a copy of these fields: a query that needs no others reads no record.
    /// It takes them from [`Found::covered`](super::Found::covered).
    ///
    /// The fields are packed like a key, but are in the value, so they have no limit of their own, and
    /// queries cannot select by them. When one of them changes, the entry is written anew: one key.
    ///
    /// ```
    /// use keyloom::{Memory, Order, Store, Subspace};
    /// use keyloom_patterns::{Index, Table, entry};
    /// use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Price { cents: u32, name: String }
    /// let by_price = Index::new(&Subspace::new("by_price"), |_id, p: &Price| entry(p.cents).covering(&p.name));
    /// let prices = Table::<u32, Price>::new(&Subspace::new("prices")).with(&by_price);
    /// let store = Memory::new();
    /// store.transact(|txn| prices.put(txn, &1, &Price { cents: 250, name: "tea".into() }))?;
    /// let snapshot = store.snapshot()?;
    /// let found = by_price.range(&snapshot, 250, Order::Ascending)?.next().expect("there is tea")?;
    /// assert_eq!(found.covered::<&str>()?, "tea");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn covering<F: Pack>(mut self, fields: F) -> Self {
        let Some((last, others)) = self.0.split_last_mut() else { return self };
        last.covered = pack(&fields);
        others.iter_mut().for_each(|entry| entry.covered.clone_from(&last.covered));
        self
    }

    /// In the order of the parts, each parts once: those with the smallest covered fields.
    pub(super) fn normalized(mut self) -> Self {
        if self.0.len() > 1 {
            self.0.sort_unstable();
            self.0.dedup_by(|a, b| a.parts == b.parts);
        }
        self
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, IndexEntry> {
        self.0.iter()
    }

    /// Whether a normalized list has an entry with the parts of `entry`.
    pub(super) fn has_parts(&self, entry: &IndexEntry) -> bool {
        self.0.binary_search_by(|other| other.parts.cmp(&entry.parts)).is_ok()
    }

    /// Whether a normalized list has exactly this entry.
    pub(super) fn has(&self, entry: &IndexEntry) -> bool {
        self.0.binary_search(entry).is_ok()
    }
}

impl<P: Pack> FromIterator<P> for IndexEntries {
    /// One entry for each of the parts, such as one per tag.
    fn from_iter<I: IntoIterator<Item = P>>(parts: I) -> Self {
        Self(parts.into_iter().map(|parts| IndexEntry::new(&parts)).collect())
    }
}

impl FromIterator<IndexEntries> for IndexEntries {
    /// All of the entries, such as one per tag that covers something of its own.
    fn from_iter<I: IntoIterator<Item = IndexEntries>>(entries: I) -> Self {
        Self(entries.into_iter().flat_map(|entries| entries.0).collect())
    }
}
