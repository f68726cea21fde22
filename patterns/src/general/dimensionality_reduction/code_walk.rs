//! A walk along a curve, through the stretches of a cover.

use std::fmt;
use std::ops::Deref;

use keyloom::{Entry, KeyRange, Order, Reader, Result, Subspace};

use super::cover::{Cover, Run};
use crate::explain::Explain;
use crate::general::composite_key_index::Found;
use crate::select::{Select, within};
use crate::table::RecordKey;
use crate::walk::Walk;

/// After so many entries in a row that are of no use, a new range is begun where the next can be that is: that
/// costs about as much as they did.
const MOST_IN_A_ROW: usize = 8;

/// Which records a query takes, by their keys.
pub(super) type Only<'q, K> = &'q dyn Fn(&K) -> bool;

/// What is found at a code: an entry of an index, and what it covers.
pub(super) trait Placed: Sized {
    /// What the reader hands out.
    type Bytes: Deref<Target = [u8]>;
    /// The key of the record.
    type Key: RecordKey;

    fn of(found: Found<Self::Bytes, Self::Key>) -> Result<Self>;

    fn found(&self) -> &Found<Self::Bytes, Self::Key>;
}

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
}

impl<'r, R: Reader> CodeWalk<'r, R> {
    /// Through the entries of `space`, whose keys begin with a code.
    pub(super) fn new(reader: &'r R, space: &Subspace, cover: Cover) -> Self {
        let walk = Walk::new(reader, Order::Ascending, cover.ranges.len());
        Self { walk, space: space.clone(), cover, range: 0, run: 0, useless: 0 }
    }

    /// Goes on with the entries of another space, through another cover.
    pub(super) fn go_on(&mut self, space: Subspace, cover: Cover) {
        self.walk.end();
        self.walk.explain.ranges += cover.ranges.len() as u64;
        (self.space, self.cover) = (space, cover);
        (self.range, self.run, self.useless) = (0, 0, 0);
    }

    pub(super) fn explain(&self) -> Explain {
        self.walk.explain
    }

    /// The first entry of a range, wherever the walk is.
    pub(super) fn first(&mut self, range: KeyRange<'_>) -> Result<Option<Entry<R::Bytes<'r>>>> {
        self.walk.seek(range)?;
        let first = self.walk.step()?;
        self.walk.end();
        Ok(first)
    }

    /// The next of those that `has` takes, and whose records `only` takes, with its code. Only what lies across
    /// the border is shown to `has`.
    #[inline]
    pub(super) fn next_placed<P: Placed<Bytes = R::Bytes<'r>>>(
        &mut self,
        has: impl Fn(&P) -> bool,
        only: Option<Only<'_, P::Key>>,
    ) -> Result<Option<(u64, P)>> {
        while let Some(entry) = self.step()? {
            let found = Found::new(&self.space, entry)?;
            let code = found.parts()?;
            let place = self.place(code);
            if place == Place::InGap {
                self.useless(code)?;
                continue;
            }
            let placed = P::of(found)?;
            if place == Place::Across && !has(&placed) {
                self.useless(code)?;
                continue;
            }
            self.useless = 0;
            if is_taken(only, placed.found())? {
                self.walk.explain.keys_returned += 1;
                return Ok(Some((code, placed)));
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

    /// Counts an entry that was of no use. When there have been too many, goes on where the next can be that is.
    fn useless(&mut self, code: u64) -> Result<()> {
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

impl<R: Reader> fmt::Debug for CodeWalk<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeWalk").field("explain", &self.explain()).finish_non_exhaustive()
    }
}
