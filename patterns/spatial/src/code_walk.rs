//! A walk along a curve, through the runs of a cover.

use std::ops::Deref;

use keyloom::{Entry, Error, KeyBuf, KeyRange, Order, Reader, Result, Subspace};
use keyloom_kit::{Explain, Reading, RecordKey, Walk, within};
use keyloom_tables::index::Found;

use super::cover::{Cover, Run};
use super::located::{Located, Place, code_of};

/// After this many entries in a row outside the region, the walk seeks to the next entry that may
/// be inside, unless it has prefetched entries.
const MOST_IN_A_ROW: usize = 8;

/// The number of steps that take about as long as a seek.
const STEPS_PER_SEEK: usize = 16;

/// The maximum number of ranges of a query. Computing more ranges costs more than these ranges
/// save.
pub(super) const MOST_RANGES: usize = 16_384;

/// The default number of ranges that a query begins with on a local store, and the factor by which
/// it increases them.
// Fewer ranges read more keys outside the area; more ranges cost more than reading a small result:
// with 4, circles of 1 and 10 km among 135,000 places took 1.9 times as long, mostly to compute.
// Since each increase is by a factor of four, all earlier covers together cost a third of the last
// cover.
pub(super) const FIRST_RANGES: usize = 2;
const MORE_RANGES: usize = 4;
/// The number of keys read in the time that one more range takes to compute and to begin.
const KEYS_PER_RANGE: usize = 32;

/// The default number of ranges that a query begins with. If entries are prefetched, each range is
/// a round trip and its first page is free. Such a query begins with one range, and seeks only
/// after a useless page.
pub(super) fn first_ranges(reader: &impl Reader) -> usize {
    match reader.prefetched() {
        0 => FIRST_RANGES,
        // With 4 ranges, a query for a circle of 1 km makes 3.81 times as many round trips as
        // with the best number of ranges (mean of 26 circles among 50,000 places, pages of 256
        // entries). With one range, the query makes as many round trips as with the best number.
        _ => 1,
    }
}

/// Decides when more ranges pay off.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// The initial number of ranges.
    first: usize,
    /// The number of ranges after the next increase.
    next: usize,
    /// The cost of a range, in keys.
    keys_per_range: usize,
    /// Keys read outside the region since the last increase.
    in_vain: usize,
}

impl Patience {
    fn new(reader: &impl Reader) -> Self {
        let keys_per_range = reader.prefetched().max(KEYS_PER_RANGE);
        Self { first: first_ranges(reader), next: 0, keys_per_range, in_vain: 0 }.reset()
    }

    /// Returns the same state, as it was before any key was read.
    fn reset(self) -> Self {
        Self { next: self.first * MORE_RANGES, in_vain: 0, ..self }
    }

    /// Counts a key outside the region. Returns the new number of ranges if it is time for an
    /// increase.
    fn lose(&mut self) -> Option<usize> {
        self.in_vain += 1;
        if self.next > MOST_RANGES || self.in_vain < self.next * self.keys_per_range {
            return None;
        }
        let ranges = self.next;
        (self.in_vain, self.next) = (0, ranges * MORE_RANGES);
        Some(ranges)
    }
}

/// Selects records by their keys.
pub(super) type Only<'q, K> = &'q dyn Fn(&K) -> bool;

/// The location of an entry relative to the cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Location {
    /// Between the runs of the cover.
    InGap,
    /// In a run across the border: the exact position must be checked.
    Across,
    /// In a run that is completely inside the region.
    Inside,
}

pub(super) struct CodeWalk<'r, R: Reader> {
    walk: Walk<'r, R>,
    space: Subspace,
    cover: Cover,
    /// The key of the last entry of the previous page.
    after: Option<KeyBuf>,
    /// The current range, counted from 1, and the run that the walk is in or before.
    range: usize,
    run: usize,
    /// Entries in a row outside the region.
    useless: usize,
    /// The code of the previous entry.
    before: Option<u64>,
    /// `None` if the ranges do not change.
    patience: Option<Patience>,
}

impl<'r, R: Reader> CodeWalk<'r, R> {
    /// A walk through the entries of `space`, whose keys begin with a code.
    pub(super) fn new(reader: &'r R, space: &Subspace, cover: Cover) -> Self {
        let walk = Walk::new(reader, Order::Ascending, cover.ranges.len());
        Self {
            walk,
            space: space.clone(),
            cover,
            after: None,
            range: 0,
            run: 0,
            useless: 0,
            before: None,
            patience: None,
        }
    }

    /// The same walk, beginning after this key.
    pub(super) fn after(self, key: Option<&[u8]>) -> Self {
        Self { after: key.map(KeyBuf::from_slice), ..self }
    }

    /// The same walk, which begins with the cover of [`first_ranges`] and uses more ranges when
    /// they pay off; see [`CodeWalk::next_in_finer`].
    pub(super) fn that_refines(self, reader: &R) -> Self {
        Self { patience: Some(Patience::new(reader)), ..self }
    }

    /// Continues with the entries of another space, through another cover.
    pub(super) fn enter(&mut self, space: Subspace, cover: Cover) {
        self.walk.end();
        self.walk.explain.planned += cover.ranges.len() as u64;
        (self.space, self.cover) = (space, cover);
        (self.range, self.run, self.useless, self.before) = (0, 0, 0, None);
    }

    /// Like `enter`, but resets the count that decides about more ranges.
    pub(super) fn begin(&mut self, space: Subspace, cover: Cover) {
        self.patience = self.patience.map(Patience::reset);
        self.enter(space, cover);
    }

    /// The first entry of a range, independent of the position of the walk.
    pub(super) fn first(&mut self, range: KeyRange<'_>) -> Result<Option<Entry<R::Bytes<'r>>>> {
        self.walk.seek(range)?;
        let first = self.walk.step()?;
        self.walk.end();
        Ok(first)
    }

    /// The next entry that `has` and `only` accept, with its code. `has` is called only for entries
    /// in runs across the border. `only` is called with the record key.
    #[inline]
    pub(super) fn next_placed<K: RecordKey, P: Place>(
        &mut self,
        has: impl Fn(&P) -> bool,
        only: Option<Only<'_, K>>,
    ) -> Result<Option<(u64, Located<R::Bytes<'r>, K, P>)>> {
        self.next_in_finer(has, only, |_| Cover::none())
    }

    /// Like [`next_placed`](Self::next_placed), but may change to more ranges when they pay off.
    /// `cover` returns a cover of the region with the given number of ranges.
    #[inline]
    pub(super) fn next_in_finer<K: RecordKey, P: Place>(
        &mut self,
        has: impl Fn(&P) -> bool,
        only: Option<Only<'_, K>>,
        cover: impl Fn(usize) -> Cover,
    ) -> Result<Option<(u64, Located<R::Bytes<'r>, K, P>)>> {
        while let Some(entry) = self.step()? {
            let found = Found::new(&self.space, entry)?;
            let code = code_of(&self.space, &found)?;
            let place = self.place(code);
            let is_first = self.before.replace(code) != Some(code);
            if place == Location::InGap {
                self.useless(code, is_first, &cover)?;
                continue;
            }
            let located = Located::of(found)?;
            if place == Location::Across && !has(located.place()) {
                self.useless(code, is_first, &cover)?;
                continue;
            }
            self.useless = 0;
            if is_taken(only, located.entry())? {
                self.walk.explain.keys_returned += 1;
                return Ok(Some((code, located)));
            }
        }
        Ok(None)
    }

    /// The next entry.
    fn step(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        loop {
            if let Some(entry) = self.walk.step()? {
                return Ok(Some(entry));
            }
            if self.range >= self.cover.ranges.len() {
                return Ok(None);
            }
            self.run = self.behind_range().unwrap_or(0);
            self.range += 1;
            let Some(first) = self.cover.runs.get(self.run) else { return Ok(None) };
            self.seek(first.first)?;
        }
    }

    /// Skips everything before a code. Call it only if no entry at or after this code was returned
    /// yet.
    pub(super) fn skip_to(&mut self, code: u64) {
        self.walk.end();
        self.cover.skip_to(code);
        (self.range, self.run, self.useless, self.before) = (0, 0, 0, None);
    }

    /// The number of entries to step over before a seek is cheaper.
    pub(super) fn steps_per_seek(&self) -> usize {
        self.walk.at_hand().max(STEPS_PER_SEEK)
    }

    /// Ends the walk.
    pub(super) fn end(&mut self) {
        self.walk.end();
        self.range = self.cover.ranges.len();
    }

    /// The location of the entry with this code, which was read last.
    #[inline]
    fn place(&mut self, code: u64) -> Location {
        match self.run_at(code) {
            Some(run) if run.first <= code && run.is_inside => Location::Inside,
            Some(run) if run.first <= code => Location::Across,
            _ => Location::InGap,
        }
    }

    /// The run that a code is in or before. The code must not be less than any previous code.
    #[inline]
    fn run_at(&mut self, code: u64) -> Option<Run> {
        let runs = self.cover.runs.get(self.run..).unwrap_or_default();
        let passed = runs.iter().take_while(|run| run.last < code).count();
        self.run += passed;
        runs.get(passed).copied()
    }

    /// Counts an entry outside the region. After too many of them, seeks to the next entry that may
    /// be inside.
    fn useless(
        &mut self,
        code: u64,
        is_first: bool,
        cover: &impl Fn(usize) -> Cover,
    ) -> Result<()> {
        // Restart only at the first entry of a code. Otherwise, entries with this code may have
        // been returned already.
        if is_first && let Some(ranges) = self.patience.as_mut().and_then(Patience::lose) {
            let mut finer = cover(ranges);
            finer.skip_to(code);
            self.enter(self.space.clone(), finer);
            return Ok(());
        }
        self.useless += 1;
        if self.useless < MOST_IN_A_ROW || self.walk.at_hand() > 0 {
            return Ok(());
        }
        let next = self.cover.hull.first_from(code);
        let next = next.and_then(|next| Some(self.run_at(next)?.first.max(next)));
        match next {
            // Another entry with the same code may be inside.
            Some(next) if next == code => Ok(()),
            Some(next) => {
                self.useless = 0;
                self.seek(next)
            }
            None => {
                self.end();
                Ok(())
            }
        }
    }

    /// The index of the first run after the current range; `None` before the first range.
    fn behind_range(&self) -> Option<usize> {
        self.cover.ranges.get(self.range.checked_sub(1)?).copied()
    }

    /// Begins the current range at a code, or ends it if the code is after its end.
    fn seek(&mut self, from: u64) -> Result<()> {
        let last = self.behind_range().and_then(|behind| behind.checked_sub(1));
        match last.and_then(|last| self.cover.runs.get(last)) {
            Some(last) if from <= last.last => {
                let range = within(from..=last.last).key_range(&self.space);
                match self.after.as_deref().filter(|after| range.contains(after)) {
                    Some(after) => self.walk.seek(range.after(after)),
                    None => self.walk.seek(range),
                }
            }
            _ => {
                self.walk.end();
                Ok(())
            }
        }
    }
}

/// Whether a query accepts the record of an entry.
pub(super) fn is_taken<B, K>(only: Option<Only<'_, K>>, found: &Found<B, K>) -> Result<bool>
where
    B: Deref<Target = [u8]>,
    K: RecordKey,
{
    only.map_or(Ok(true), |only| Ok(only(&found.record_key()?)))
}

impl<R: Reader> Reading for CodeWalk<'_, R> {
    fn reads(&self) -> Explain {
        self.walk.explain
    }
}

/// Returns an error if the index has entries that begin with a number other than `made_with`: the
/// query would miss these entries. Costs two seeks, which normally find nothing.
pub(super) fn refuse_others<R: Reader>(
    walk: &mut CodeWalk<'_, R>,
    space: &Subspace,
    made_with: u64,
    refused: impl Fn(u64) -> Error,
) -> Result<()> {
    use std::ops::Bound::{Excluded, Unbounded};
    let before = within(..made_with);
    let behind = within((Excluded(made_with), Unbounded));
    for others in [before.key_range(space), behind.key_range(space)] {
        if let Some(entry) = walk.first(others)? {
            let found: Found<_, u64> = Found::new(space, entry)?;
            let leading = space.leading(found.entry_key(), 1)?.get(space.prefix().len()..);
            return Err(refused(keyloom::unpack(leading.unwrap_or_default())?));
        }
    }
    Ok(())
}
