//! Flaws of reads.

use std::ops::Bound;

use keyloom::memory::MemorySnapshot;
use keyloom::{
    EntryPage, Error, KeyBounds, KeyBuf, KeyRange, MAX_KEY_BYTES, Order, Reader, Result, Store,
    check_key, successor,
};

use super::{Flaw, Map, MutantStore};

pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// A snapshot of a [`MutantStore`].
#[derive(Debug)]
pub struct MutantSnapshot<'s> {
    mutant: &'s MutantStore,
    inner: MemorySnapshot<'s>,
    /// The entries that a dirty read shows instead.
    dirty: Option<Map>,
}

impl<'s> MutantSnapshot<'s> {
    pub(super) fn new(mutant: &'s MutantStore) -> Result<Self> {
        let mut dirty = (mutant.flaw == Flaw::DirtyRead).then(|| mutant.map()).transpose()?;
        if let Some(map) = &mut dirty {
            mutant.uncommitted().iter().for_each(|write| write.apply_to_map(map));
        }
        Ok(Self { mutant, inner: mutant.memory.snapshot()?, dirty })
    }
}

impl Reader for MutantSnapshot<'_> {
    type Bytes<'r>
        = Vec<u8>
    where
        Self: 'r;
    type Entries<'r>
        = MutantEntries
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.mutant.get(key, |key| match (&self.dirty, self.mutant.flaw) {
            (Some(map), _) => Ok(map.get(key).cloned()),
            (None, Flaw::MovingSnapshot) => value(&self.mutant.memory.snapshot()?, key),
            _ => value(&self.inner, key),
        })
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<MutantEntries> {
        self.mutant.range(range, order, |range| match (&self.dirty, self.mutant.flaw) {
            (Some(map), _) => Ok(part(map, range)),
            (None, Flaw::MovingSnapshot) => entries(&self.mutant.memory.snapshot()?, range),
            _ => entries(&self.inner, range),
        })
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.mutant.get_many(keys, |key| self.get(key))
    }

    fn range_many(&self, ranges: &[KeyRange<'_>], limit: usize) -> Result<Vec<EntryPage<Vec<u8>>>> {
        self.mutant.range_many(ranges, |range| self.page(range.clone(), Order::Ascending, limit))
    }

    fn counter(&self, key: &[u8]) -> Result<i64> {
        self.mutant.counter(key, self.get(key)?)
    }
}

/// The correct value of a key.
pub(super) fn value<R: Reader>(reader: &R, key: &[u8]) -> Result<Option<Vec<u8>>> {
    Ok(reader.get(key)?.map(|value| value.to_vec()))
}

/// The correct entries of a range.
pub(super) fn entries<R: Reader>(reader: &R, range: &KeyRange<'_>) -> Result<Vec<Pair>> {
    let entries = reader.range(range.clone(), Order::Ascending)?;
    entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

/// The first page of a range whose entries are these.
pub(super) fn first_page(mut entries: Vec<Pair>, limit: usize) -> EntryPage<Vec<u8>> {
    let has_more = entries.len() > limit.max(1);
    entries.truncate(limit.max(1));
    let last = entries.last().filter(|_| has_more).map(|(key, _)| KeyBuf::from_slice(key));
    EntryPage { entries, last }
}

/// The entries of a map in a range.
pub(super) fn part(map: &Map, range: &KeyRange<'_>) -> Vec<Pair> {
    let inside = map.iter().filter(|(key, _)| range.contains(key));
    inside.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl MutantStore {
    /// `honest` returns the correct value of a key.
    pub(super) fn get(
        &self,
        key: &[u8],
        honest: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>,
    ) -> Result<Option<Vec<u8>>> {
        if self.flaw == Flaw::LongKeyAbsent && key.len() > MAX_KEY_BYTES {
            return Ok(None);
        }
        let key = self.key(key);
        check_key(key)?;
        let value = honest(key)?;
        Ok(value.filter(|value| self.flaw != Flaw::EmptyIsAbsent || !value.is_empty()))
    }

    /// The key, cut by the flaw that truncates keys.
    pub(super) fn key<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        match self.flaw {
            Flaw::LongKeyCut => key.get(..MAX_KEY_BYTES).unwrap_or(key),
            _ => key,
        }
    }

    /// `honest` returns the correct entries of a range, in ascending order.
    pub(super) fn range(
        &self,
        range: KeyRange<'_>,
        order: Order,
        honest: impl Fn(&KeyRange<'_>) -> Result<Vec<Pair>>,
    ) -> Result<MutantEntries> {
        let bounds = range.normalized();
        let mut entries = match (self.flaw, bounds) {
            (Flaw::InclusiveEnd, Some((start, Bound::Excluded(end)))) => {
                honest(&KeyRange::new(start, Bound::Included(end)))?
            }
            _ => honest(&range)?,
        };
        match (self.flaw, bounds) {
            (Flaw::LongBoundRefused, _) if has_long_bound(bounds) => return Err(Error::EmptyKey),
            (Flaw::LostFf, Some((Bound::Included(prefix), Bound::Excluded(_)))) => {
                entries.retain(|(key, _)| {
                    key.strip_prefix(prefix).is_none_or(|rest| rest.first() != Some(&0xFF))
                });
            }
            (Flaw::PageSkips, Some((Bound::Excluded(last), _))) => {
                entries.retain(|(key, _)| !key.starts_with(last));
            }
            (Flaw::PartSkips, _) => skip_successors(&mut entries),
            (Flaw::SignedOrder, _) => entries.sort_by_key(|(key, _)| signed(key)),
            _ => {}
        }
        if order == Order::Descending {
            entries.reverse();
            let has_end = bounds.is_some_and(|(_, end)| end != Bound::Unbounded);
            if self.flaw == Flaw::ReverseOffByOne && has_end && !entries.is_empty() {
                entries.remove(0);
            }
        }
        let again = match self.flaw {
            Flaw::ResumesAfterTheEnd => entries.first().cloned(),
            _ => None,
        };
        Ok(MutantEntries { entries: entries.into_iter(), again })
    }

    pub(super) fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        get: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        if self.flaw == Flaw::SortedBatch {
            keys.sort_unstable();
        }
        keys.into_iter().map(get).collect()
    }

    pub(super) fn range_many(
        &self,
        ranges: &[KeyRange<'_>],
        page: impl Fn(&KeyRange<'_>) -> Result<EntryPage<Vec<u8>>>,
    ) -> Result<Vec<EntryPage<Vec<u8>>>> {
        let mut ranges: Vec<&KeyRange<'_>> = ranges.iter().collect();
        if self.flaw == Flaw::SortedRangeBatch {
            ranges.sort_by_key(|range| match range.normalized() {
                Some((Bound::Included(start) | Bound::Excluded(start), _)) => start.to_vec(),
                _ => Vec::new(),
            });
        }
        ranges.into_iter().map(page).collect()
    }

    pub(super) fn counter(&self, key: &[u8], value: Option<Vec<u8>>) -> Result<i64> {
        Ok(self.optional_counter(key, value)?.unwrap_or(0))
    }

    pub(super) fn optional_counter(
        &self,
        key: &[u8],
        value: Option<Vec<u8>>,
    ) -> Result<Option<i64>> {
        let Some(value) = value else { return Ok(None) };
        let refuse = |value: Vec<u8>| Error::NotACounter {
            key: String::from_utf8_lossy(key).into(),
            bytes: value.len(),
        };
        let bytes = <[u8; 8]>::try_from(value).map_err(refuse)?;
        Ok(Some(match self.flaw {
            Flaw::BigEndianCounter => i64::from_be_bytes(bytes),
            _ => i64::from_le_bytes(bytes),
        }))
    }
}

/// Removes the first entry of each part of 128 if it is the successor of the entry before.
fn skip_successors(entries: &mut Vec<Pair>) {
    let mut at = 0;
    let mut last = Vec::new();
    entries.retain(|(key, _)| {
        let is_first = at > 0 && at % 128 == 0;
        at += 1;
        let is_successor = *key == *successor(&std::mem::replace(&mut last, key.clone()));
        !(is_first && is_successor)
    });
}

fn signed(key: &[u8]) -> Vec<i8> {
    key.iter().map(|byte| byte.cast_signed()).collect()
}

fn has_long_bound(bounds: Option<KeyBounds<'_>>) -> bool {
    let is_long = |bound| match bound {
        Bound::Included(key) | Bound::Excluded(key) => <[u8]>::len(key) >= MAX_KEY_BYTES,
        Bound::Unbounded => false,
    };
    bounds.is_some_and(|(start, end)| is_long(start) || is_long(end))
}

/// The entries of a range of a [`MutantStore`].
#[derive(Debug)]
pub struct MutantEntries {
    entries: std::vec::IntoIter<Pair>,
    /// The entries that the iterator returns after its end.
    again: Option<Pair>,
}

impl Iterator for MutantEntries {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.entries.next();
        if next.is_none() {
            self.entries = self.again.take().map_or(Vec::new(), |pair| vec![pair]).into_iter();
        }
        next.map(Ok)
    }
}
