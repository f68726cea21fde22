//! A leaf of the tree: some entries in key order, with the heads of their keys for the search.

use std::ops::Bound;

use smallvec::SmallVec;

use super::entry::Entry;

/// A start and an end.
pub(super) type KeyBounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);
/// A short part of a key, usually stored without an allocation.
pub(super) type Separator = SmallVec<[u8; 24]>;

/// The most entries of a leaf.
// The heads take 256 bytes, four cache lines. With larger leaves, scans are faster, but a change
// copies more of the data that a snapshot shares.
pub(super) const LEAF_ENTRIES: usize = 32;

/// Entries in key order.
///
/// The keys of a leaf share a prefix, which is stored once. The first eight bytes of each key after
/// the prefix (its *head*) are stored in one array, so that a search compares adjacent numbers.
/// Only keys with equal heads are compared in full, in their entries. A search through the entries
/// alone had a cache miss at each step and took 1.7 times as long.
#[derive(Clone, Default)]
pub(super) struct Leaf {
    prefix: Separator,
    heads: SmallVec<[u64; LEAF_ENTRIES]>,
    entries: SmallVec<[Entry; LEAF_ENTRIES]>,
}

impl Leaf {
    #[inline]
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The position of `key`, or, in `Err`, the position at which `key` would be inserted.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let Some(rest) = key.strip_prefix(self.prefix.as_slice()) else {
            return Err(if key < self.prefix.as_slice() { 0 } else { self.entries.len() });
        };
        let head = head_of(rest);
        let first = self.heads.partition_point(|&other| other < head);
        let equals = self.heads.iter().skip(first).take_while(|&&other| other == head).count();
        let candidates = self.entries.get(first..first + equals).unwrap_or_default();
        match candidates.binary_search_by(|entry| entry.key().cmp(key)) {
            Ok(position) => Ok(first + position),
            Err(position) => Err(first + position),
        }
    }

    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(self.find(key).ok()?)
    }

    /// The number of entries before a range that starts at `start`.
    pub(super) fn before(&self, start: Bound<&[u8]>) -> usize {
        match start {
            Bound::Included(key) => self.find(key).unwrap_or_else(|position| position),
            Bound::Excluded(key) => self.find(key).map_or_else(|position| position, |at| at + 1),
            Bound::Unbounded => 0,
        }
    }

    /// The number of entries before the end of a range that ends at `end`.
    pub(super) fn up_to(&self, end: Bound<&[u8]>) -> usize {
        match end {
            Bound::Included(key) => self.before(Bound::Excluded(key)),
            Bound::Excluded(key) => self.before(Bound::Included(key)),
            Bound::Unbounded => self.entries.len(),
        }
    }

    /// Inserts `entry`, or replaces the entry with the same key. A full leaf is split first; then
    /// the right half is returned.
    pub(super) fn insert(&mut self, entry: Entry) -> Option<Self> {
        match self.find(entry.key()) {
            Ok(position) => {
                *self.entries.get_mut(position)? = entry;
                None
            }
            Err(position) if self.entries.len() < LEAF_ENTRIES => {
                self.insert_at(position, entry);
                None
            }
            Err(position) => {
                // Keys that are inserted in ascending order leave full leaves.
                let appended = position == LEAF_ENTRIES;
                let cut = if appended { LEAF_ENTRIES } else { LEAF_ENTRIES / 2 };
                let mut right =
                    Self { entries: self.entries.drain(cut..).collect(), ..Self::default() };
                right.refresh();
                if position < cut {
                    self.entries.insert(position, entry);
                } else {
                    right.insert_at(position - cut, entry);
                }
                self.refresh();
                Some(right)
            }
        }
    }

    pub(super) fn remove(&mut self, key: &[u8]) {
        if let Ok(position) = self.find(key) {
            self.entries.remove(position);
            self.heads.remove(position);
        }
    }

    pub(super) fn remove_range(&mut self, (start, end): KeyBounds<'_>) {
        let (first, behind) = (self.before(start), self.up_to(end));
        if first < behind {
            self.entries.drain(first..behind);
            self.heads.drain(first..behind);
        }
    }

    fn insert_at(&mut self, position: usize, entry: Entry) {
        match entry.key().strip_prefix(self.prefix.as_slice()) {
            Some(rest) if !self.entries.is_empty() => {
                self.heads.insert(position, head_of(rest));
                self.entries.insert(position, entry);
            }
            _ => {
                self.entries.insert(position, entry);
                self.refresh();
            }
        }
    }

    /// Recomputes the shared prefix and the heads. All keys share the common prefix of the first
    /// and the last key.
    fn refresh(&mut self) {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
            return;
        };
        let shared = first.key().iter().zip(last.key()).take_while(|(a, b)| a == b).count();
        self.prefix = first.key().iter().take(shared).copied().collect();
        let rest = |entry: &Entry| head_of(entry.key().get(shared..).unwrap_or_default());
        self.heads = self.entries.iter().map(rest).collect();
    }
}

/// The first eight bytes as a big-endian number, which has the order of the bytes. Shorter keys are
/// extended with zeros.
#[inline]
fn head_of(rest: &[u8]) -> u64 {
    if let Some(head) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    rest.iter()
        .zip([56, 48, 40, 32, 24, 16, 8])
        .fold(0, |head, (&byte, shift)| head | u64::from(byte) << shift)
}
