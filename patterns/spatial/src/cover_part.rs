//! The parts of the curve that a query will read.

use std::ops::RangeInclusive;

use super::area::CellRelation;
use super::cell::GeoCell;
use super::cover::{Cover, Run};

/// A run of codes that a query reads; see
/// [`AreaQuery::cover_parts`](super::AreaQuery::cover_parts).
///
/// ```
/// use keyloom_spatial::{GeoCell, CellRelation};
/// use keyloom_spatial::{Circle, PointIndex, LatLng};
/// # let space = keyloom::Subspace::new("by_place");
/// let by_place = PointIndex::new(&space, |_id: &u32, (latitude, longitude): &(f64, f64)| {
///     LatLng::new(*latitude, *longitude).map(Some)
/// });
/// let paris = LatLng::new(48.8534, 2.3488)?;
/// let parts = by_place.within(Circle::new(paris, 100_000.0)?).in_ranges(4)?.cover_parts();
/// assert_eq!(parts.last().map(|part| part.range()), Some(3)); // the fourth
/// // Of the part that Paris is in, all is within the circle.
/// let code = *GeoCell::of(&paris, 64)?.codes().start();
/// let part = parts.iter().find(|part| part.codes().contains(&code)).expect("Paris is in one");
/// assert_eq!(part.relation(), CellRelation::Inside);
/// assert!(part.cells().any(|cell| GeoCell::of(&paris, cell.bits()).is_ok_and(|its| its == cell)));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverPart {
    range: usize,
    codes: RangeInclusive<u64>,
    relation: CellRelation,
}

impl CoverPart {
    /// The range of the query that this part belongs to, counted from 0.
    pub fn range(&self) -> usize {
        self.range
    }

    /// The codes, from the first to the last.
    pub fn codes(&self) -> RangeInclusive<u64> {
        self.codes.clone()
    }

    /// The relation of the area to this part. Points in an [`Inside`](CellRelation::Inside) part
    /// are returned without a check; points in an [`Across`](CellRelation::Across) part are checked
    /// one by one. An [`Outside`](CellRelation::Outside) part is a gap within a range; its points
    /// are dropped. After a few points in a row outside the area, the query skips codes that cannot
    /// be in the area.
    pub fn relation(&self) -> CellRelation {
        self.relation
    }

    /// The largest cells that make up the part, in code order.
    pub fn cells(&self) -> impl Iterator<Item = GeoCell> + use<> {
        let last = *self.codes.end();
        let mut next = Some(*self.codes.start());
        std::iter::from_fn(move || {
            let first = next.filter(|first| *first <= last)?;
            // A cell with `widest` bits may begin here, but it may extend beyond the part.
            let widest = u64::BITS - first.trailing_zeros();
            let cell = (widest..=u64::BITS)
                .map(|bits| GeoCell::of_code(first, bits))
                .find(|cell| *cell.codes().end() <= last)?;
            next = cell.codes().end().checked_add(1);
            Some(cell)
        })
    }
}

impl Cover {
    /// The runs of each range, and the gaps between them.
    pub(super) fn parts(&self) -> Vec<CoverPart> {
        let mut parts = Vec::with_capacity(2 * self.runs.len());
        let mut begin = 0;
        for (range, end) in self.ranges.iter().enumerate() {
            let runs = self.runs.get(begin..*end).unwrap_or_default();
            let mut behind = None;
            for Run { first, last, is_inside } in runs {
                if let Some(gap) = behind.filter(|behind| behind < first) {
                    let codes = gap..=first - 1;
                    parts.push(CoverPart { range, codes, relation: CellRelation::Outside });
                }
                let relation = if *is_inside { CellRelation::Inside } else { CellRelation::Across };
                parts.push(CoverPart { range, codes: *first..=*last, relation });
                behind = last.checked_add(1);
            }
            begin = *end;
        }
        parts
    }
}
