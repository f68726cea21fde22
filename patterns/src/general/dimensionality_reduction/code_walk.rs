//! A walk along a curve, through the stretches of a cover.

use std::fmt;

use keyloom::{Entry, Order, Reader, Result, Subspace};

use super::cover::Cover;
use crate::explain::Explain;
use crate::select::{Select, within};
use crate::walk::Walk;

/// After so many entries in a row that are of no use, a new range is begun behind the gap: that costs about as
/// much as they did.
const MOST_IN_A_GAP: usize = 8;

/// Where an entry lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
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
    in_gap: usize,
}

impl<'r, R: Reader> CodeWalk<'r, R> {
    /// Through the entries of `space`, whose keys begin with a code.
    pub(super) fn new(reader: &'r R, space: &Subspace, cover: Cover) -> Self {
        let walk = Walk::new(reader, Order::Ascending, cover.ranges.len());
        Self { walk, space: space.clone(), cover, range: 0, run: 0, in_gap: 0 }
    }

    pub(super) fn explain_mut(&mut self) -> &mut Explain {
        &mut self.walk.explain
    }

    pub(super) fn explain(&self) -> Explain {
        self.walk.explain
    }

    /// The next entry.
    pub(super) fn step(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        loop {
            if let Some(entry) = self.walk.step()? {
                return Ok(Some(entry));
            }
            let begun = self.range.checked_sub(1).and_then(|range| self.cover.ranges.get(range));
            self.run = begun.copied().unwrap_or(0);
            self.range += 1;
            if !self.seek()? {
                return Ok(None);
            }
        }
    }

    /// Lets nothing more come.
    pub(super) fn end(&mut self) {
        self.walk.end();
        self.range = self.cover.ranges.len();
    }

    /// Where the entry lies that has this code and was read last.
    pub(super) fn place(&mut self, code: u64) -> Place {
        let runs = self.cover.runs.get(self.run..).unwrap_or_default();
        let passed = runs.iter().take_while(|run| run.last < code).count();
        self.run += passed;
        let place = match runs.get(passed) {
            Some(run) if run.first <= code && run.is_inside => Place::Inside,
            Some(run) if run.first <= code => Place::Across,
            _ => Place::InGap,
        };
        if place != Place::InGap {
            self.in_gap = 0;
        }
        place
    }

    /// The entry that was read last lies in a gap: begins behind it where there has been too much in it.
    pub(super) fn leave_gap(&mut self) -> Result<()> {
        self.in_gap += 1;
        if self.in_gap >= MOST_IN_A_GAP && self.walk.at_hand() == 0 {
            self.in_gap = 0;
            self.seek()?;
        }
        Ok(())
    }

    /// Goes on in the ranges of another cover, which begins with the entries that were read last, those with the
    /// same code.
    pub(super) fn go_on_in(&mut self, cover: Cover) {
        self.walk.end();
        self.walk.explain.ranges += cover.ranges.len() as u64;
        (self.cover, self.range, self.in_gap) = (cover, 0, 0);
    }

    /// Begins at the run that the walk is before, if the cover has one.
    fn seek(&mut self) -> Result<bool> {
        let end = self.range.checked_sub(1).and_then(|range| self.cover.ranges.get(range));
        let last = end.and_then(|end| self.cover.runs.get(end.checked_sub(1)?));
        let (Some(first), Some(last)) = (self.cover.runs.get(self.run), last) else {
            return Ok(false);
        };
        let range = within(first.first..=last.last).key_range(&self.space);
        self.walk.seek(range)?;
        Ok(true)
    }
}

impl<R: Reader> fmt::Debug for CodeWalk<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodeWalk").field("explain", &self.explain()).finish_non_exhaustive()
    }
}
