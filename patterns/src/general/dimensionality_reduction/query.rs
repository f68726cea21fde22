//! Queries for what is in an area.

use std::fmt;

use keyloom::{Error, Order, Reader, Result, Subspace};

use super::area::{Area, Relation};
use super::cell::OnSphere;
use super::code_walk::{CodeWalk, Place};
use super::cover::Cover;
use super::grid::Grid;
use super::nearest::{Nearest, NearestPage, Rank};
use super::page::page;
use super::point_index::Point;
use super::position::Position;
use crate::continuation::Continuation;
use crate::explain::Explain;
use crate::general::composite_key_index::Found;
use crate::table::RecordKey;

/// A point that `R` gave, and its code.
pub(super) type CodedPoint<'r, R, K> = (u64, Point<<R as Reader>::Bytes<'r>, K>);

/// Which records a query takes, by their keys.
pub(super) type Only<'q, K> = &'q dyn Fn(&K) -> bool;

/// A query for the points in an area; see [`PointIndex::within`](super::PointIndex::within).
pub struct AreaQuery<'q, K, A> {
    space: Subspace,
    area: A,
    /// `None`: as many as pay.
    ranges: Option<usize>,
    only: Option<Only<'q, K>>,
}

impl<K, A: Clone> Clone for AreaQuery<'_, K, A> {
    fn clone(&self) -> Self {
        Self { space: self.space.clone(), area: self.area.clone(), ..*self }
    }
}

impl<K, A: fmt::Debug> fmt::Debug for AreaQuery<'_, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AreaQuery")
            .field("space", &self.space)
            .field("area", &self.area)
            .field("ranges", &self.ranges)
            .finish_non_exhaustive()
    }
}

/// How many ranges a query begins with, and how many times more it goes on with, unless it is told otherwise.
const FIRST_RANGES: usize = 4;
const MORE_RANGES: usize = 4;
/// As many keys are read in the time that one more range takes: to be found, and to be begun.
const KEYS_PER_RANGE: usize = 32;

impl<'q, K, A: Area> AreaQuery<'q, K, A> {
    pub(super) fn new(space: &Subspace, area: A) -> Self {
        Self { space: space.clone(), area, ranges: None, only: None }
    }

    /// The same query in at most so many ranges.
    ///
    /// More ranges lie closer to the area: fewer keys are read in vain, and more ranges are begun. Unless it is
    /// told otherwise a query begins with 4, and takes 4 times as many for the rest of the area whenever as many
    /// keys were read in vain as these cost: about 32 keys each, or a page on a store behind a network. So it
    /// costs at most about twice what the best number would have cost.
    ///
    /// # Errors
    /// [`Error::BadOption`] for 0.
    pub fn in_ranges(self, most: usize) -> Result<Self> {
        if most == 0 {
            return Err(Error::BadOption {
                what: "the number of ranges",
                value: most.to_string(),
                why: "a query reads one range or more",
            });
        }
        Ok(Self { ranges: Some(most), ..self })
    }

    /// The same query for those records only whose keys `only` takes.
    #[must_use]
    pub fn only(self, only: &'q dyn Fn(&K) -> bool) -> Self {
        Self { only: Some(only), ..self }
    }

    fn cover(&self) -> Cover {
        Cover::of(&OnSphere(&self.area), self.ranges.unwrap_or(FIRST_RANGES))
    }
}

impl<'q, K: RecordKey, A: Area> AreaQuery<'q, K, A> {
    /// The points, in the order of their codes.
    ///
    /// # Errors
    /// What the store says; the iterator too.
    pub fn points<R: Reader>(self, reader: &R) -> Result<Points<'_, 'q, R, K, A>> {
        let cover = self.cover();
        Ok(self.walk(reader, cover))
    }

    fn walk<R: Reader>(self, reader: &R, cover: Cover) -> Points<'_, 'q, R, K, A> {
        let patience = match self.ranges {
            Some(_) => None,
            None => Some(Patience::new(reader)),
        };
        let walk = CodeWalk::new(reader, &self.space, cover);
        Points { walk, space: self.space, area: self.area, only: self.only, patience }
    }

    /// How many there are. Reads all of them.
    ///
    /// # Errors
    /// What the store says.
    pub fn count(self, reader: &impl Reader) -> Result<u64> {
        let mut points = self.points(reader)?;
        let mut count = 0;
        points.try_for_each(|point| point.map(|_| count += 1))?;
        Ok(count)
    }

    /// How many there are in each cell of so many bits, for those cells in which there are any, in the order of
    /// their codes.
    ///
    /// # Errors
    /// [`Error::BadOption`] for more than 64 bits; what the store says, the iterator too.
    pub fn grid<R: Reader>(self, reader: &R, bits: u32) -> Result<Grid<'_, 'q, R, K, A>> {
        Grid::open(self.points(reader)?, bits)
    }

    /// The points, the nearest to `from` first.
    ///
    /// # Errors
    /// What the store says; the iterator too.
    pub fn by_distance<R: Reader>(
        self,
        reader: &R,
        from: Position,
    ) -> Result<Nearest<'_, 'q, R, K, A>> {
        Nearest::open(reader, &self.space, from, self.area, self.only)
    }

    /// At most `limit` of the points, the nearest to `from` first, beginning behind `after`.
    ///
    /// What lies nearer than the end of the page before is not read again, but for the border.
    ///
    /// # Errors
    /// As [`page`](AreaQuery::page).
    pub fn page_by_distance<'r, R: Reader>(
        self,
        reader: &'r R,
        from: Position,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<NearestPage<R::Bytes<'r>, K>> {
        // The continuation names a distance and a record, which stand in the order of the answer.
        let answers = Subspace::new(&(from.latitude(), from.longitude()));
        let whole = answers.range();
        let mut nearest = self.by_distance(reader, from)?;
        if let Some(after) = after {
            let rest = Continuation::resume(Some(after), whole.clone(), Order::Ascending)?;
            nearest.resume(Rank::behind(&answers, &rest)?);
        }
        let points = nearest.by_ref().take(limit).collect::<Result<Vec<_>>>()?;
        let has_more = limit > 0 && nearest.next().transpose()?.is_some();
        let next = points.last().filter(|_| has_more).map(|last| {
            Continuation::behind(&Rank::of(last).pack(&answers), &whole, Order::Ascending)
        });
        Ok(NearestPage { points, next })
    }

    /// At most `limit` of the points in the order of their codes, beginning behind `after`.
    ///
    /// # Errors
    /// [`Error::BadOption`] for a continuation of another query; what the store says.
    pub fn page<'r, R: Reader>(
        self,
        reader: &'r R,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<PointPage<R::Bytes<'r>, K>> {
        let (space, cover) = (self.space.clone(), self.cover());
        let query = Subspace::new(&cover.ends());
        let walk = |cover| self.walk(reader, cover);
        let (points, next) =
            page(&query, (&space, cover), limit, after, walk, |one| one.entry().entry_key())?;
        Ok(PointPage { points, next })
    }
}

/// Some of the points that a query finds, and where it goes on.
#[derive(Clone, Debug)]
pub struct PointPage<B, K> {
    /// The points.
    pub points: Vec<Point<B, K>>,
    /// Where the next page begins, `None` when this was the last.
    pub next: Option<Continuation>,
}

/// The points in an area, in the order of their codes.
pub struct Points<'r, 'q, R: Reader, K, A> {
    walk: CodeWalk<'r, R>,
    space: Subspace,
    area: A,
    only: Option<Only<'q, K>>,
    /// `None`: the ranges stay as they are.
    patience: Option<Patience>,
}

/// When more ranges pay.
#[derive(Clone, Copy, Debug)]
struct Patience {
    /// How many ranges there would be next.
    next: usize,
    /// What each of them costs, in keys.
    keys_per_range: usize,
    /// Keys read in vain since there are as many ranges as there are.
    in_vain: usize,
    /// The code before.
    last: Option<u64>,
}

impl Patience {
    fn new(reader: &impl Reader) -> Self {
        let keys_per_range = reader.entries_at_hand().max(KEYS_PER_RANGE);
        Self { next: FIRST_RANGES * MORE_RANGES, keys_per_range, in_vain: 0, last: None }
    }

    /// Tells that an entry was of no use. Whether it is time for more ranges, and for how many; never between
    /// entries with the same code.
    fn lose(&mut self, code: u64) -> Option<usize> {
        let is_first = self.last != Some(code);
        self.in_vain += 1;
        if !is_first || self.in_vain < self.next.saturating_mul(self.keys_per_range) {
            return None;
        }
        let ranges = self.next;
        (self.in_vain, self.next) = (0, ranges.saturating_mul(MORE_RANGES));
        Some(ranges)
    }
}

impl<R: Reader, K, A> Points<'_, '_, R, K, A> {
    /// What was read so far.
    pub fn explain(&self) -> Explain {
        self.walk.explain()
    }
}

impl<R: Reader, K, A> fmt::Debug for Points<'_, '_, R, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Points").field("walk", &self.walk).finish_non_exhaustive()
    }
}

impl<'r, R: Reader, K: RecordKey, A: Area> Points<'r, '_, R, K, A> {
    /// Lets nothing more come, as after a failure.
    pub(super) fn end(&mut self) {
        self.walk.end();
    }

    pub(super) fn step(&mut self) -> Result<Option<CodedPoint<'r, R, K>>> {
        while let Some(entry) = self.walk.step()? {
            let found = Found::new(&self.space, entry)?;
            let code = Point::code(&found)?;
            let place = self.walk.place(code);
            let point = match place {
                Place::InGap => None,
                Place::Inside => Some(Point::of(found)?),
                Place::Across => {
                    Some(Point::of(found)?).filter(|at| self.area.contains(&at.position()))
                }
            };
            if point.is_none() {
                self.lose(code, place)?;
            }
            if let Some(patience) = &mut self.patience {
                patience.last = Some(code);
            }
            if let Some(point) = point
                && is_taken(self.only, &point)?
            {
                self.walk.explain_mut().keys_returned += 1;
                return Ok(Some((code, point)));
            }
        }
        Ok(None)
    }

    /// An entry was of no use: goes on behind the gap, or in more ranges, where that pays.
    fn lose(&mut self, code: u64, place: Place) -> Result<()> {
        if let Some(ranges) = self.patience.as_mut().and_then(|patience| patience.lose(code)) {
            let mut cover = Cover::of(&OnSphere(&self.area), ranges);
            cover.skip_to(code);
            self.walk.go_on_in(cover);
        } else if place == Place::InGap {
            self.walk.leave_gap()?;
        }
        Ok(())
    }
}

impl<'r, R: Reader, K: RecordKey, A: Area> Iterator for Points<'r, '_, R, K, A> {
    type Item = Result<Point<R::Bytes<'r>, K>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if next.is_err() {
            self.end();
        }
        next.map(|found| found.map(|(_, point)| point)).transpose()
    }
}

/// Whether a query takes the record of a point.
pub(super) fn is_taken<B, K>(only: Option<Only<'_, K>>, point: &Point<B, K>) -> Result<bool>
where
    B: std::ops::Deref<Target = [u8]>,
    K: RecordKey,
{
    only.map_or(Ok(true), |only| Ok(only(&point.record_key()?)))
}

/// All positions.
#[derive(Clone, Copy, Debug)]
pub struct Everywhere;

impl Area for Everywhere {
    fn contains(&self, _: &Position) -> bool {
        true
    }

    fn relation(&self, _: &super::area::CellBounds) -> Relation {
        Relation::Inside
    }
}
