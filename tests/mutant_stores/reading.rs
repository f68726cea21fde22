//! Flaws of reads.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use keyloom::memory::MemorySnapshot;
use keyloom::{
    EntryPage, Error, KeyBuf, KeyRange, MAX_KEY_BYTES, Order, Reader, Result, Store, check_key,
    successor,
};

use super::flaw::STOPS_AT;
use super::{Flaw, Map, MutantStore};

pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// A snapshot of a [`MutantStore`].
#[derive(Debug)]
pub struct MutantSnapshot<'s> {
    mutant: &'s MutantStore,
    inner: MemorySnapshot<'s>,
    /// The entries that a flawed snapshot shows instead.
    shown: Option<Map>,
    /// The number of commits when the snapshot was taken.
    taken_at: u64,
}

impl<'s> MutantSnapshot<'s> {
    pub(super) fn new(mutant: &'s MutantStore) -> Result<Self> {
        let shown = match mutant.flaw {
            Flaw::DirtyRead => {
                let mut map = mutant.map()?;
                mutant.uncommitted().iter().for_each(|write| write.apply_to_map(&mut map));
                Some(map)
            }
            Flaw::StaleSnapshot => Some(mutant.before().clone()),
            Flaw::OtherThreadsLate if mutant.is_of_another_thread() => {
                Some(mutant.before().clone())
            }
            _ => None,
        };
        let taken_at = mutant.commits.load(Relaxed);
        Ok(Self { mutant, inner: mutant.memory.snapshot()?, shown, taken_at })
    }

    /// Whether the snapshot shows newer commits instead of its own state.
    fn moves(&self) -> bool {
        match self.mutant.flaw {
            Flaw::MovingSnapshot => true,
            Flaw::SnapshotExpires => self.mutant.commits.load(Relaxed) > self.taken_at + 1_000,
            _ => false,
        }
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
        self.mutant.get(key, |key| match (&self.shown, self.moves()) {
            (Some(map), _) => Ok(map.get(key).cloned()),
            (None, true) => value(&self.mutant.memory.snapshot()?, key),
            _ => value(&self.inner, key),
        })
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<MutantEntries> {
        self.mutant.range(range, order, |range| match (&self.shown, self.moves()) {
            (Some(map), _) => Ok(part(map, range)),
            (None, true) => entries(&self.mutant.memory.snapshot()?, range),
            _ => entries(&self.inner, range),
        })
    }

    fn page(&self, range: KeyRange<'_>, order: Order, limit: usize) -> Result<EntryPage<Vec<u8>>> {
        self.mutant.page(self.range(range, order)?, limit)
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

/// The entries of a map that are in a range.
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
        if self.fails() {
            return Err(failure());
        }
        let is_absent = match self.flaw {
            Flaw::LongKeyAbsent => key.len() > MAX_KEY_BYTES,
            Flaw::EmptyKeyAbsent => key.is_empty(),
            _ => false,
        };
        if is_absent {
            return Ok(None);
        }
        let key = self.key(key);
        check_key(key)?;
        let value = honest(key)?;
        Ok(value.filter(|value| self.flaw != Flaw::EmptyIsAbsent || !value.is_empty()))
    }

    /// Whether this read must fail.
    fn fails(&self) -> bool {
        fails(&self.reads_to_failure)
    }

    /// The correct page, except for the flaws of pages.
    pub(super) fn page(&self, entries: MutantEntries, limit: usize) -> Result<EntryPage<Vec<u8>>> {
        if self.flaw == Flaw::EmptyPage && limit == 0 {
            return Ok(EntryPage { entries: Vec::new(), last: None });
        }
        let mut page = first_page(entries.collect::<Result<_>>()?, limit);
        if self.flaw == Flaw::PageBehindTheEnd && page.entries.len() == limit {
            page.last = page.entries.last().map(|(key, _)| KeyBuf::from_slice(key));
        }
        Ok(page)
    }

    /// The key, truncated if the flaw does so.
    pub(super) fn key<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        match self.flaw {
            Flaw::LongKeyCut => key.get(..MAX_KEY_BYTES).unwrap_or(key),
            Flaw::TrailingZerosCut => {
                let end = key.iter().rposition(|byte| *byte != 0).unwrap_or(0);
                key.get(..=end).unwrap_or(key)
            }
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
        if self.fails() {
            return Err(failure());
        }
        let bounds = range.normalized();
        let mut entries = honest(&self.with_other_bounds(&range))?;
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
            (Flaw::ShorterFirst, _) => entries.sort_by_key(|(key, _)| key.len()),
            (Flaw::RangeStops, _) => entries.truncate(STOPS_AT),
            (Flaw::LargeRangeStops, _) => {
                let mut bytes = 0;
                entries.retain(|(_, value)| {
                    bytes += value.len();
                    bytes <= 16 << 20
                });
            }
            _ => {}
        }
        if order == Order::Descending {
            entries.reverse();
            let has_end = bounds.is_some_and(|(_, end)| end != Bound::Unbounded);
            if self.flaw == Flaw::ReverseOffByOne && has_end && !entries.is_empty() {
                entries.remove(0);
            }
            if self.flaw == Flaw::ReverseStops {
                entries.truncate(STOPS_AT);
            }
        }
        let again = match self.flaw {
            Flaw::ResumesAfterTheEnd => entries.first().cloned(),
            _ => None,
        };
        let reads_to_failure = Arc::clone(&self.reads_to_failure);
        Ok(MutantEntries { entries: entries.into_iter(), again, flaw: self.flaw, reads_to_failure })
    }

    /// The range, with the wrong bounds of a flaw.
    fn with_other_bounds<'k>(&self, range: &KeyRange<'k>) -> KeyRange<'k> {
        let range = range.clone();
        let other = match (self.flaw, range.normalized()) {
            (Flaw::InclusiveEnd, Some((start, Bound::Excluded(end)))) => {
                Some(KeyRange::new(start, Bound::Included(end)).into_owned())
            }
            (Flaw::ExclusiveEnd, Some((start, Bound::Included(end)))) => {
                Some(KeyRange::new(start, Bound::Excluded(end)).into_owned())
            }
            (Flaw::InclusiveStart, Some((Bound::Excluded(start), end))) => {
                Some(KeyRange::new(Bound::Included(start), end).into_owned())
            }
            (Flaw::UnboundedEndsAtFf, Some((start, Bound::Unbounded))) => {
                Some(KeyRange::new(start, Bound::Excluded(b"\xFF")).into_owned())
            }
            (Flaw::InvertedIsAll, None) => Some(KeyRange::all()),
            _ => None,
        };
        other.unwrap_or(range)
    }

    pub(super) fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        get: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        match self.flaw {
            Flaw::SortedBatch => keys.sort_unstable(),
            Flaw::DistinctBatch => {
                let mut seen = BTreeSet::new();
                keys.retain(|key| seen.insert(*key));
            }
            _ => {}
        }
        let stops_at = if self.flaw == Flaw::BatchStops { STOPS_AT } else { usize::MAX };
        let value = |(n, key)| if n < stops_at { get(key) } else { Ok(None) };
        keys.into_iter().enumerate().map(value).collect()
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
        let stops_at = if self.flaw == Flaw::RangeBatchStops { STOPS_AT } else { usize::MAX };
        let empty = || EntryPage { entries: Vec::new(), last: None };
        let page = |(n, range)| if n < stops_at { page(range) } else { Ok(empty()) };
        ranges.into_iter().enumerate().map(page).collect()
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
        let bytes = match (<[u8; 8]>::try_from(value), self.flaw) {
            (Err(_), Flaw::AnyValueCounts) => [0; 8],
            (bytes, _) => bytes.map_err(refuse)?,
        };
        Ok(Some(match self.flaw {
            Flaw::BigEndianCounter => i64::from_be_bytes(bytes),
            _ => i64::from_le_bytes(bytes),
        }))
    }
}

/// Counts a read. Returns whether it fails.
fn fails(reads_to_failure: &AtomicI64) -> bool {
    let count = |left: i64| (left >= 0).then_some(left - 1);
    reads_to_failure.fetch_update(Relaxed, Relaxed, count) == Ok(0)
}

fn failure() -> Error {
    Error::Backend("a read was made to fail".into())
}

/// Removes the first entry of each part of 128 if it is the successor of the previous entry.
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

fn has_long_bound(bounds: Option<(Bound<&[u8]>, Bound<&[u8]>)>) -> bool {
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
    flaw: Flaw,
    reads_to_failure: Arc<AtomicI64>,
}

impl Iterator for MutantEntries {
    type Item = Result<Pair>;

    fn next(&mut self) -> Option<Self::Item> {
        if fails(&self.reads_to_failure) {
            if self.flaw != Flaw::GoesOnAfterAnError {
                self.entries = Vec::new().into_iter();
            }
            return (self.flaw != Flaw::ErrorIsTheEnd).then(|| Err(failure()));
        }
        let next = self.entries.next();
        if next.is_none() {
            self.entries = self.again.take().map_or(Vec::new(), |pair| vec![pair]).into_iter();
        }
        next.map(Ok)
    }
}
