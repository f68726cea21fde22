//! Queries for numbers between bounds.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use keyloom::{Error, Reader, Result, Subspace};
use keyloom_kit::{Continuation, Page, RecordKey, Scan, scan};

use super::super::area::CellRelation;
use super::super::code_walk::{CodeWalk, Only, first_ranges, refuse_others};
use super::super::cover::{Cover, Region};
use super::super::curve::Morton;
use super::super::interval::{Interval, all_of};
use super::super::located::Located;
use super::super::page::page;
use super::super::query::{at_most, count};
use super::Quantizer;

/// A query for the records with numbers in a box; see
/// [`CurveIndex::within`](super::CurveIndex::within).
pub struct CurveQuery<'q, K, const N: usize> {
    /// The entries with the current dimensions, within the subspace of the index.
    space: Subspace,
    index: Subspace,
    made_with: u64,
    bounds: Bounds<N>,
    cells: Cells<N>,
    /// The number of ranges; `None` for as many as pay off.
    ranges: Option<usize>,
    only: Option<Only<'q, K>>,
}

impl<K, const N: usize> Clone for CurveQuery<'_, K, N> {
    fn clone(&self) -> Self {
        Self { space: self.space.clone(), index: self.index.clone(), ..*self }
    }
}

impl<K, const N: usize> fmt::Debug for CurveQuery<'_, K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurveQuery")
            .field("index", &self.index)
            .field("bounds", &self.bounds)
            .field("ranges", &self.ranges)
            .finish_non_exhaustive()
    }
}

/// The bounds in each dimension.
#[derive(Clone, Copy, Debug)]
struct Bounds<const N: usize>([(Bound<f64>, Bound<f64>); N]);

impl<const N: usize> Bounds<N> {
    fn contain(&self, values: [f64; N]) -> bool {
        self.0.iter().zip(values).all(|(bounds, value)| bounds.contains(&value))
    }

    /// A name for queries with these bounds.
    fn name(&self) -> Subspace {
        let end = |end: &Bound<f64>| match *end {
            Bound::Included(number) => (0_u64, number),
            Bound::Excluded(number) => (1, number),
            Bound::Unbounded => (2, 0.0),
        };
        let ends = self.0.iter().map(|(from, to)| (end(from), end(to)));
        ends.fold(Subspace::root(), |name, ends| name.child(&ends))
    }
}

/// The cells of a box.
#[derive(Clone, Copy, Debug)]
struct Cells<const N: usize>([Interval; N]);

impl<const N: usize> Cells<N> {
    /// The interval and the edges of a block in each dimension.
    fn with(&self, low: [u32; N], high: [u32; N]) -> impl Iterator<Item = (&Interval, u32, u32)> {
        self.0.iter().zip(low).zip(high).map(|((cells, low), high)| (cells, low, high))
    }
}

impl<const N: usize> Region<N> for Cells<N> {
    fn relation(&self, low: [u32; N], high: [u32; N]) -> CellRelation {
        all_of(self.with(low, high).map(|(cells, low, high)| cells.relation(low, high)))
    }

    /// The number of cells of the block outside the box.
    fn size(&self, low: [u32; N], high: [u32; N]) -> f64 {
        let mut whole = 1.0;
        let mut inside = 1.0;
        for (cells, low, high) in self.with(low, high) {
            whole *= f64::from(high - low) + 1.0;
            inside *= f64::from(cells.overlap(low, high));
        }
        whole - inside
    }

    fn hull(&self) -> ([u32; N], [u32; N]) {
        (self.0.map(|cells| cells.first), self.0.map(|cells| cells.last))
    }
}

impl<'q, K, const N: usize> CurveQuery<'q, K, N>
where
    u64: Morton<N, Coordinate = u32>,
{
    pub(super) fn new(
        index: &Subspace,
        quantizer: Quantizer<N>,
        ranges: [impl RangeBounds<f64>; N],
    ) -> Result<Self> {
        let bounds = ranges.map(|range| (range.start_bound().cloned(), range.end_bound().cloned()));
        let last_cell = u32::MAX >> (u32::BITS - Quantizer::<N>::BITS);
        let mut cells = [Interval::all(last_cell); N];
        for (dimension, (cells, (from, to))) in cells.iter_mut().zip(bounds).enumerate() {
            if let Bound::Included(from) | Bound::Excluded(from) = from {
                cells.first = quantizer.cell(dimension, from)?;
                cells.has_all_of_first = false;
            }
            if let Bound::Included(to) | Bound::Excluded(to) = to {
                cells.last = quantizer.cell(dimension, to)?;
                cells.has_all_of_last = false;
            }
        }
        let made_with = quantizer.made_with();
        Ok(Self {
            space: index.child(&made_with),
            index: index.clone(),
            made_with,
            bounds: Bounds(bounds),
            cells: Cells(cells),
            ranges: None,
            only: None,
        })
    }

    /// The same query in at most this many ranges.
    ///
    /// With more ranges, fewer keys outside the box are read, but more ranges are begun. By default
    /// a query begins with 2, or with 1 on a remote store, and uses more when they pay off; see
    /// [`AreaQuery::in_ranges`](super::super::AreaQuery::in_ranges).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for 0.
    pub fn in_ranges(self, most: usize) -> Result<Self> {
        Ok(Self { ranges: Some(at_most(most)?), ..self })
    }

    /// The same query, limited to records with keys that `only` accepts.
    #[must_use]
    pub fn only(self, only: &'q dyn Fn(&K) -> bool) -> Self {
        Self { only: Some(only), ..self }
    }

    fn cover(&self, reader: &impl Reader) -> Cover {
        Cover::of(&self.cells, self.ranges.unwrap_or_else(|| first_ranges(reader)))
    }
}

impl<'q, K: RecordKey, const N: usize> CurveQuery<'q, K, N>
where
    u64: Morton<N, Coordinate = u32>,
{
    /// The points in code order.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the index has entries of other dimensions; any error of the
    /// store, here or from the iterator. The iterator also returns [`Error::At`] for a malformed
    /// entry.
    pub fn points<'r, R: Reader>(
        self,
        reader: &'r R,
    ) -> Result<impl Scan<Item = Result<Located<R::Bytes<'r>, K, [f64; N]>>> + use<'r, 'q, R, K, N>>
    {
        let cover = self.cover(reader);
        self.walk(reader, cover, None)
    }

    fn walk<'r, R: Reader>(
        self,
        reader: &'r R,
        cover: Cover,
        after: Option<&[u8]>,
    ) -> Result<impl Scan<Item = Result<Located<R::Bytes<'r>, K, [f64; N]>>> + use<'r, 'q, R, K, N>>
    {
        let mut walk = CodeWalk::new(reader, &self.space, cover).after(after);
        if self.ranges.is_none() {
            walk = walk.that_refines(reader);
        }
        refuse_others(&mut walk, &self.index, self.made_with, |_| Error::InvalidArgument {
            what: "the dimensions of the curve",
            value: self.index.to_string(),
            why: "entries of other dimensions would be missed: declare those, or repair the index",
        })?;
        Ok(scan(walk, move |walk| {
            let has = |values: &_| self.bounds.contain(*values);
            let finer = |ranges| Cover::of(&self.cells, ranges);
            Ok(walk.next_in_finer(has, self.only, finer)?.map(|(_, point)| point))
        }))
    }

    /// The number of points. Reads all of them.
    ///
    /// # Errors
    /// Errors of [`points`](CurveQuery::points).
    pub fn count(self, reader: &impl Reader) -> Result<u64> {
        count(self.points(reader)?)
    }

    /// A page of at most `limit` points in code order, beginning after the continuation `after`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a continuation of another query; errors of
    /// [`points`](CurveQuery::points).
    pub fn page<'r, R: Reader>(
        self,
        reader: &'r R,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<Located<R::Bytes<'r>, K, [f64; N]>>> {
        let (query, space) = (self.bounds.name(), self.space.clone());
        let walk = |last: Option<(u64, &[u8])>| {
            let (code, key) = last.unzip();
            let cover = self.cover(reader).from(code);
            self.walk(reader, cover, key)
        };
        page(&query, (&space, 1), limit, after, walk)
    }
}
