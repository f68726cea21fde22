//! A walk along a curve, through the stretches of a cover.

use std::ops::Deref;

use keyloom::{Entry, Error, KeyRange, Order, Reader, Result, Subspace};

use super::cover::{Cover, Run};
use super::located::{Covered, Located};
use super::query::MOST_RANGES;
use keyloom_tables::Explain;
use keyloom_tables::index::Found;
use keyloom_tables::kit::Reading;
use keyloom_tables::kit::Walk;
use keyloom_tables::table::RecordKey;
use keyloom_tables::within;

/// After so many entries in a row that are of no use, a new range is begun where the next can be
/// that is: that costs about as much as they did.
const MOST_IN_A_ROW: usize = 8;

/// About as many steps take the time of a seek.
const STEPS_PER_SEEK: usize = 16;

/// How many ranges a query begins with on a local store, and how many times more it goes on with,
/// unless it is told otherwise.
pub(super) const FIRST_RANGES: usize = 4;
const MORE_RANGES: usize = 4;
/// As many keys are read in the time that one more range takes: to be found, and to be begun.
const KEYS_PER_RANGE: usize = 32;

/// How many ranges a query begins with, unless it is told otherwise. Where entries are prefetched,
/// each range is a round trip and its first page is free: one range, from whose pages the walk
/// leaps where they end in vain.
pub(super) fn first_ranges(reader: &impl Reader) -> usize {
    match reader.prefetched() {
        0 => FIRST_RANGES,
        _ => 1,
    }
}

/// When more ranges pay.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// How many ranges there were first.
    first: usize,
    /// How many ranges there would be next.
    next: usize,
    /// What each of them costs, in keys.
    keys_per_range: usize,
    /// Keys read in vain since there are as many ranges as there are.
    in_vain: usize,
}

impl Patience {
    fn new(reader: &impl Reader) -> Self {
        let keys_per_range = reader.prefetched().max(KEYS_PER_RANGE);
        Self { first: first_ranges(reader), next: 0, keys_per_range, in_vain: 0 }.anew()
    }

    /// The same, before any key was read.
    fn anew(self) -> Self {
        Self { next: self.first * MORE_RANGES, in_vain: 0, ..self }
    }

    /// A key was read in vain. Whether it is time for more ranges, and for how many.
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

/// Which records a query takes, by their keys.
pub(super) type Only<'q, K> = &'q dyn Fn(&K) -> bool;

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Between the runs of the cover.
    InGap,
    /// In a run across the border: it must be looked at.
    Across,
    /// In a run that is in the region as a whole.
    Inside,
}

pub(super) struct CodeWalk<'r, R: Reader> {
    walk: Walk<'r, R>,
    space: Subspace,
    cover: Cover,
    /// The range that the walk is in, from 1, and the run that it is in or before.
    range: usize,
    run: usize,
    /// Entries in a row that were of no use.
    useless: usize,
    /// The code of the entry before the last one.
    before: Option<u64>,
    /// `None`: the ranges stay as they are.
    patience: Option<Patience>,
}

impl<'r, R: Reader> CodeWalk<'r, R> {
    /// Through the entries of `space`, whose keys begin with a code.
    pub(super) fn new(reader: &'r R, space: &Subspace, cover: Cover) -> Self {
        let walk = Walk::new(reader, Order::Ascending, cover.ranges.len());
        let space = space.clone();
        Self { walk, space, cover, range: 0, run: 0, useless: 0, before: None, patience: None }
    }

    /// The same walk, which begins with the cover of [`first_ranges`] and takes more ranges where
    /// they pay; see [`CodeWalk::next_in_finer`].
    pub(super) fn that_refines(self, reader: &R) -> Self {
        Self { patience: Some(Patience::new(reader)), ..self }
    }

    /// Goes on with the entries of another space, through another cover.
    pub(super) fn go_on(&mut self, space: Subspace, cover: Cover) {
        self.walk.end();
        self.walk.explain.ranges += cover.ranges.len() as u64;
        (self.space, self.cover) = (space, cover);
        (self.range, self.run, self.useless, self.before) = (0, 0, 0, None);
    }

    /// The same, where more ranges have to pay again.
    pub(super) fn begin(&mut self, space: Subspace, cover: Cover) {
        self.patience = self.patience.map(Patience::anew);
        self.go_on(space, cover);
    }

    /// The first entry of a range, wherever the walk is.
    pub(super) fn first(&mut self, range: KeyRange<'_>) -> Result<Option<Entry<R::Bytes<'r>>>> {
        self.walk.seek(range)?;
        let first = self.walk.step()?;
        self.walk.end();
        Ok(first)
    }

    /// The next of those that `has` takes, and whose records `only` takes, with its code. Only what
    /// lies across the border is shown to `has`.
    #[inline]
    pub(super) fn next_placed<K: RecordKey, P: Covered>(
        &mut self,
        has: impl Fn(&P) -> bool,
        only: Option<Only<'_, K>>,
    ) -> Result<Option<(u64, Located<R::Bytes<'r>, K, P>)>> {
        self.next_in_finer(has, only, |_| Cover::none())
    }

    /// The same, where `cover` gives a cover of the same region in so many ranges, for when more of
    /// them pay.
    #[inline]
    pub(super) fn next_in_finer<K: RecordKey, P: Covered>(
        &mut self,
        has: impl Fn(&P) -> bool,
        only: Option<Only<'_, K>>,
        cover: impl Fn(usize) -> Cover,
    ) -> Result<Option<(u64, Located<R::Bytes<'r>, K, P>)>> {
        while let Some(entry) = self.step()? {
            let found = Found::new(&self.space, entry)?;
            let code = found.parts_as()?;
            let place = self.place(code);
            let is_first = self.before.replace(code) != Some(code);
            if place == Place::InGap {
                self.useless(code, is_first, &cover)?;
                continue;
            }
            let located = Located::of(found)?;
            if place == Place::Across && !has(located.place()) {
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

    /// Leaves out what lies before a code, which no entry was read of yet.
    pub(super) fn skip_to(&mut self, code: u64) {
        self.walk.end();
        self.cover.skip_to(code);
        (self.range, self.run, self.useless, self.before) = (0, 0, 0, None);
    }

    /// How many entries may be stepped over before a seek is worth its cost.
    pub(super) fn steps_per_seek(&self) -> usize {
        self.walk.at_hand().max(STEPS_PER_SEEK)
    }

    /// Lets nothing more come.
    pub(super) fn end(&mut self) {
        self.walk.end();
        self.range = self.cover.ranges.len();
    }

    /// Where the entry lies that has this code and was read last.
    #[inline]
    fn place(&mut self, code: u64) -> Place {
        match self.run_at(code) {
            Some(run) if run.first <= code && run.is_inside => Place::Inside,
            Some(run) if run.first <= code => Place::Across,
            _ => Place::InGap,
        }
    }

    /// The run that a code, behind all those before, is in or before.
    #[inline]
    fn run_at(&mut self, code: u64) -> Option<Run> {
        let runs = self.cover.runs.get(self.run..).unwrap_or_default();
        let passed = runs.iter().take_while(|run| run.last < code).count();
        self.run += passed;
        runs.get(passed).copied()
    }

    /// Counts an entry that was of no use. When there have been too many, goes on where the next
    /// can be that is.
    fn useless(
        &mut self,
        code: u64,
        is_first: bool,
        cover: &impl Fn(usize) -> Cover,
    ) -> Result<()> {
        // Of the entries with the same code none is read again behind one that was taken.
        if is_first && let Some(ranges) = self.patience.as_mut().and_then(Patience::lose) {
            let mut finer = cover(ranges);
            finer.skip_to(code);
            self.go_on(self.space.clone(), finer);
            return Ok(());
        }
        self.useless += 1;
        if self.useless < MOST_IN_A_ROW || self.walk.at_hand() > 0 {
            return Ok(());
        }
        let next = self.cover.hull.first_from(code);
        let next = next.and_then(|next| Some(self.run_at(next)?.first.max(next)));
        match next {
            // What is of no use itself may share its code with what is.
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

    /// The run behind the range that the walk is in; `None` before the first.
    fn behind_range(&self) -> Option<usize> {
        self.cover.ranges.get(self.range.checked_sub(1)?).copied()
    }

    /// Begins the range that the walk is in at a code, or ends it when that is behind it.
    fn seek(&mut self, from: u64) -> Result<()> {
        let last = self.behind_range().and_then(|behind| behind.checked_sub(1));
        match last.and_then(|last| self.cover.runs.get(last)) {
            Some(last) if from <= last.last => {
                self.walk.seek(within(from..=last.last).key_range(&self.space))
            }
            _ => {
                self.walk.end();
                Ok(())
            }
        }
    }
}

/// Whether a query takes the record of an entry.
pub(super) fn is_taken<B, K>(only: Option<Only<'_, K>>, found: &Found<B, K>) -> Result<bool>
where
    B: Deref<Target = [u8]>,
    K: RecordKey,
{
    only.map_or(Ok(true), |only| Ok(only(&found.record_key()?)))
}

impl<R: Reader> Reading for CodeWalk<'_, R> {
    fn explain(&self) -> Explain {
        self.walk.explain
    }
}

/// Refuses an index in which there are entries that begin with another number than `made_with`:
/// they would be missed. Costs two seeks, which find nothing when all is well.
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
