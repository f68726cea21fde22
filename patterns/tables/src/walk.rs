//! A walk over entries that leaves some of them out, by stepping over them or by a new range.

use std::fmt;
use std::iter::{self, FusedIterator};

use keyloom::{Entry, KeyRange, Order, Reader, Result};

use crate::explain::Explain;

/// How many entries are stepped over, at most, before a new range is begun behind them. About as
/// many as a walk in LMDB or in memory yields in the time that beginning one takes there; so the
/// two together never cost more than twice what the better of them would have cost.
const STEPS_PER_RANGE: usize = 16;

/// While groups are longer than that, stepping is tried for one group in this many.
const TRIED_ONCE_IN: u32 = 8;

/// A walk over the entries of a range; see [`Walk::leave`].
pub struct Walk<'r, R: Reader> {
    reader: &'r R,
    order: Order,
    /// `None` once the walk has ended or failed.
    entries: Option<R::Entries<'r>>,
    /// Entries taken since the range was begun.
    taken: usize,
    /// How many times in a row a new range had to be begun.
    long_in_a_row: u32,
    /// What was read so far.
    pub explain: Explain,
}

/// Where a walk is after it has left some entries out.
pub struct Left<B> {
    /// The last of the entries that were stepped over.
    pub passed: Option<Entry<B>>,
    /// Whether a new range was begun, so that there may be others behind `passed`.
    pub sought: bool,
    /// The first entry that was not to be left out.
    pub next: Option<Entry<B>>,
}

impl<'r, R: Reader> Walk<'r, R> {
    /// A walk over `range`.
    pub fn open(reader: &'r R, range: KeyRange<'_>, order: Order) -> Result<Self> {
        let mut walk = Self::new(reader, order, 1);
        walk.seek(range)?;
        Ok(walk)
    }

    /// A walk that is nowhere yet, over as many ranges as said; see [`Walk::seek`].
    pub fn new(reader: &'r R, order: Order, ranges: usize) -> Self {
        let explain = Explain { ranges: ranges as u64, ..Explain::default() };
        Self { reader, order, entries: None, taken: 0, long_in_a_row: 0, explain }
    }

    /// The order of the walk.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The next entry, whatever it is.
    pub fn step(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        let next = self.entries.as_mut().and_then(Iterator::next).transpose();
        match &next {
            Ok(Some(_)) => {
                self.taken += 1;
                self.explain.keys_scanned += 1;
            }
            _ => self.entries = None,
        }
        next
    }

    /// The entries to come, for a walk that leaves nothing out and does not count.
    #[inline]
    pub fn entries(&mut self) -> Option<&mut R::Entries<'r>> {
        self.entries.as_mut()
    }

    /// Goes on to the first entry in `rest`, which must reach to the end of the walk.
    ///
    /// Steps over what lies before it while that is cheap, and else begins a new range: a store
    /// behind a network has a page at hand, and a new range costs a round trip; elsewhere some
    /// steps cost as much as a new range, and what was left out the last times tells which to try
    /// first.
    pub fn leave(&mut self, rest: KeyRange<'_>) -> Result<Left<R::Bytes<'r>>> {
        let mut passed = None;
        for _ in 0..self.allowance() {
            match self.step()? {
                Some(entry) if !rest.contains(&entry.0) => passed = Some(entry),
                next => {
                    self.long_in_a_row = 0;
                    return Ok(Left { passed, sought: false, next });
                }
            }
        }
        self.long_in_a_row += 1;
        self.seek(rest)?;
        Ok(Left { passed, sought: true, next: self.step()? })
    }

    /// How many entries to step over before a new range is begun.
    fn allowance(&self) -> usize {
        match self.reader.prefetched() {
            0 if self.long_in_a_row.is_multiple_of(TRIED_ONCE_IN) => STEPS_PER_RANGE,
            0 => 1,
            page => page.saturating_sub(self.taken),
        }
    }

    /// Lets nothing more come, as after a failure.
    pub fn end(&mut self) {
        self.entries = None;
    }

    /// How many of the next entries cost no more than a step.
    pub fn at_hand(&self) -> usize {
        self.reader.prefetched().saturating_sub(self.taken)
    }

    /// Goes on with the entries of `range`.
    pub fn seek(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.entries = None;
        self.taken = 0;
        if range.normalized().is_some() {
            self.explain.seeks += 1;
            self.entries = Some(self.reader.range(range, self.order)?);
        }
        Ok(())
    }

    /// The entry of `range` that a walk in the other order would meet first.
    pub fn other_end(&mut self, range: KeyRange<'_>) -> Result<Option<Entry<R::Bytes<'r>>>> {
        self.explain.seeks += 1;
        let end = match self.order {
            Order::Ascending => self.reader.last(range)?,
            Order::Descending => self.reader.first(range)?,
        };
        self.explain.keys_scanned += u64::from(end.is_some());
        Ok(end)
    }
}

impl<R: Reader> fmt::Debug for Walk<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk").field("explain", &self.explain).finish_non_exhaustive()
    }
}

/// The items of `step`, up to its end or its first error.
pub fn until_error<T>(
    step: impl FnMut() -> Result<Option<T>>,
) -> impl FusedIterator<Item = Result<T>> {
    let mut step = Some(step);
    iter::from_fn(move || {
        let next = step.as_mut()?().transpose();
        if !matches!(next, Some(Ok(_))) {
            step = None;
        }
        next
    })
    .fuse()
}
