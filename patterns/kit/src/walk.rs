//! A scan that skips some entries, either by stepping over them or by beginning a new range.

use std::fmt;
use std::iter::{self, FusedIterator};

use keyloom::{Entry, KeyRange, Order, Reader, Result};

use crate::explain::Explain;

/// The maximum number of entries to step over before a new range begins, on stores that do not
/// prefetch. In LMDB or in memory, a scan reads about 16 entries in the time that it takes to begin
/// a range. So the steps and the new range together cost at most twice as much as the better choice
/// alone.
const STEPS_PER_RANGE: usize = 16;

/// While the skipped groups are longer than [`STEPS_PER_RANGE`], stepping is tried for one in this
/// many groups.
// A failed trial costs as much as a new range, so trials add an eighth to the cost of long groups.
// With rarer trials, the scan detects later that groups have become short.
const TRIED_ONCE_IN: u32 = 8;

/// How much larger than the first page of a range the next pages are, at least, on stores that
/// prefetch.
// The pages of remote stores grow further, but are limited to 4 MiB. If entries take up to 1 KB,
// all pages after the first have at least four times its entries. A wrong guess costs a round trip.
const GROWTH: usize = 4;

/// A scan of the entries of a range; see [`Walk::leave`].
pub struct Walk<'r, R: Reader> {
    reader: &'r R,
    order: Order,
    /// `None` once the scan has ended or failed.
    entries: Option<R::Entries<'r>>,
    /// Entries read since the range began.
    taken: usize,
    /// How many of the last skips in a row needed a new range.
    long_in_a_row: u32,
    /// Whether the last skip in this range ended within the steps that it was allowed.
    is_short: bool,
    /// The reads so far.
    pub explain: Explain,
}

/// The state of a scan after it has skipped some entries.
pub struct Left<B> {
    /// The last entry that was stepped over.
    pub passed: Option<Entry<B>>,
    /// Whether a new range began. If so, there may be other skipped entries after `passed`.
    pub sought: bool,
    /// The first entry that was not skipped.
    pub next: Option<Entry<B>>,
}

impl<'r, R: Reader> Walk<'r, R> {
    /// A scan of `range`.
    pub fn open(reader: &'r R, range: KeyRange<'_>, order: Order) -> Result<Self> {
        let mut walk = Self::new(reader, order, 1);
        walk.seek(range)?;
        Ok(walk)
    }

    /// A scan that has not begun; begin it with [`Walk::seek`]. `ranges` is the number of planned
    /// ranges in `explain`.
    pub fn new(reader: &'r R, order: Order, ranges: usize) -> Self {
        let explain = Explain { planned: ranges as u64, ..Explain::default() };
        let (entries, taken, long_in_a_row, is_short) = (None, 0, 0, false);
        Self { reader, order, entries, taken, long_in_a_row, is_short, explain }
    }

    /// The order of the scan.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The next entry.
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

    /// The remaining entries, for a scan that skips nothing. Entries read in this way are not
    /// counted in `explain`.
    #[inline]
    pub fn entries(&mut self) -> Option<&mut R::Entries<'r>> {
        self.entries.as_mut()
    }

    /// Advances to the first entry in `rest`, which must extend to the end of the scan.
    ///
    /// Steps over the skipped entries while that is cheap, and otherwise begins a new range. On a
    /// remote store, a new range costs a round trip, so the scan first steps over the rest of the
    /// current page. If the previous skip ended within its page, the scan also steps into the next
    /// page, which is larger than the first page of a new range. On other stores, a new range costs
    /// as much as some steps, and the lengths of the previous skips decide whether to step first.
    pub fn leave(&mut self, rest: KeyRange<'_>) -> Result<Option<Entry<R::Bytes<'r>>>> {
        Ok(self.left(rest)?.next)
    }

    /// Like [`leave`](Self::leave), but also returns the last entry that was stepped over.
    pub fn left(&mut self, rest: KeyRange<'_>) -> Result<Left<R::Bytes<'r>>> {
        let mut passed = None;
        for _ in 0..self.allowance() {
            match self.step()? {
                Some(entry) if !rest.contains(&entry.0) => passed = Some(entry),
                next => {
                    (self.long_in_a_row, self.is_short) = (0, true);
                    return Ok(Left { passed, sought: false, next });
                }
            }
        }
        self.long_in_a_row += 1;
        self.seek(rest)?;
        Ok(Left { passed, sought: true, next: self.step()? })
    }

    /// The maximum number of entries to step over before a new range begins.
    fn allowance(&self) -> usize {
        match self.reader.prefetched() {
            0 if self.long_in_a_row.is_multiple_of(TRIED_ONCE_IN) => STEPS_PER_RANGE,
            0 => 1,
            page if self.is_short => self.left_of_page(page) + page,
            page => self.left_of_page(page),
        }
    }

    /// The number of entries of the current page that were not read yet. `first` is the number of
    /// entries of the first page.
    fn left_of_page(&self, first: usize) -> usize {
        match self.taken.checked_sub(first + 1) {
            None => first - self.taken,
            Some(after) => first * GROWTH - after % (first * GROWTH) - 1,
        }
    }

    /// Ends the scan, for example after a failure.
    pub fn end(&mut self) {
        self.entries = None;
    }

    /// The number of entries of the current page that were not read yet, at most; 0 on stores that
    /// do not prefetch.
    pub fn at_hand(&self) -> usize {
        match self.reader.prefetched() {
            0 => 0,
            first => self.left_of_page(first),
        }
    }

    /// Continues with the entries of `range`.
    pub fn seek(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.entries = None;
        (self.taken, self.is_short) = (0, false);
        if range.normalized().is_some() {
            self.explain.ranges += 1;
            self.entries = Some(self.reader.range(range, self.order)?);
        }
        Ok(())
    }

    /// The entry of `range` that a scan in the opposite order would read first.
    pub fn other_end(&mut self, range: KeyRange<'_>) -> Result<Option<Entry<R::Bytes<'r>>>> {
        self.explain.ranges += 1;
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

/// The items that `step` returns, up to `None` or up to and including the first error.
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
