//! XZ-ordering: the codes of extents, and the runs of codes that a query reads.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::area::{Area, BoundingBox, CellBounds, CellRelation};
use super::cell::{coordinates, outer_bounds};
use super::cover::{BLOCKS_PER_RANGE, Cover, Run};
use super::position::LatLng;
use super::shape::Shape;

/// The number of times that the sphere is divided in four. 27 is the maximum for which codes take 7
/// bytes in a key. The smallest elements are 0.3 m wide, at the equator, and 0.15 m high.
pub(super) const RESOLUTION: u32 = 27;

/// The minimum number of elements into which a query is divided, if possible, however few its
/// ranges are. A walk can skip the gaps between them.
const LEAST_ELEMENTS: usize = 128;

/// The number of bits of each axis of the grid.
const BITS: u32 = u32::BITS;

/// The number of codes of an element: itself and all elements below it.
const fn codes(level: u32) -> u64 {
    (4_u64.pow(RESOLUTION - level + 1) - 1) / 3
}

/// Steps of longitude: a first step, and the number of further steps to the east, around the sphere
/// if necessary.
#[derive(Clone, Copy, Debug)]
struct Arc {
    first: u32,
    further: u32,
}

impl Arc {
    fn overlaps(&self, other: &Self) -> bool {
        other.first.wrapping_sub(self.first) <= self.further
            || self.first.wrapping_sub(other.first) <= other.further
    }
}

/// Steps of latitude, from the lowest to the highest.
#[derive(Clone, Copy, Debug)]
struct Rows {
    low: u32,
    high: u32,
}

impl Rows {
    fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The grid steps that an area touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    x: Arc,
    y: Rows,
}

impl Steps {
    fn of(area: &BoundingBox) -> Self {
        let [west, south] = coordinates(area.south(), area.west());
        let [east, north] = coordinates(area.north(), area.east());
        // Both ends are in the same step, but the box goes around the sphere.
        let is_around = area.west() > area.east() && west == east;
        let further = if is_around { u32::MAX } else { east.wrapping_sub(west) };
        Self { x: Arc { first: west, further }, y: Rows { low: south, high: north } }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.x.overlaps(&other.x) && self.y.overlaps(&other.y)
    }

    /// The steps as one cell, or as two cells if they cross the antimeridian.
    pub(super) fn cells(&self) -> impl Iterator<Item = CellBounds> + use<> {
        let Self { x, y } = *self;
        let (last, is_cut) = x.first.overflowing_add(x.further);
        let first = (x.first, if is_cut { u32::MAX } else { last });
        let cell = move |(west, east)| outer_bounds([west, y.low], [east, y.high]);
        std::iter::once(first).chain(is_cut.then_some((0, last))).map(cell)
    }
}

pub(super) fn has_north_pole(area: &BoundingBox) -> bool {
    area.north() >= 90.0
}

pub(super) fn has_south_pole(area: &BoundingBox) -> bool {
    area.south() <= -90.0
}

/// An element: the sphere, or a quarter of an element. It holds the extents whose south-western
/// corner is in the element, and that end in the enlarged element: twice the size, to the north and
/// to the east.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    level: u32,
    /// The first step of longitude and of latitude of the element.
    first: [u32; 2],
    code: u64,
}

impl Element {
    pub(super) const WHOLE: Self = Self { level: 0, first: [0, 0], code: 0 };

    /// The quarter with these next bits of longitude and latitude.
    fn quarter(&self, bits: [u32; 2]) -> Self {
        let level = self.level + 1;
        let [x, y] = bits;
        let code = self.code + 1 + u64::from(2 * x + y) * codes(level);
        let [west, south] = self.first;
        let shift = BITS - level;
        Self { level, first: [west | x << shift, south | y << shift], code }
    }

    pub(super) fn is_smallest(&self) -> bool {
        self.level == RESOLUTION
    }

    pub(super) fn quarters(self) -> impl Iterator<Item = Self> {
        let quarters = if self.is_smallest() { 0 } else { 4 };
        (0..quarters).map(move |quarter| self.quarter([quarter >> 1, quarter & 1]))
    }

    /// The steps in which the south-western corners of the extents of this element can lie.
    pub(super) fn corners(&self) -> Steps {
        self.grown(1)
    }

    /// The steps that the extents of this element can touch: twice the width and twice the height
    /// of the element.
    pub(super) fn extents(&self) -> Steps {
        self.grown(2)
    }

    fn grown(&self, times: u64) -> Steps {
        let further = (times << (BITS - self.level)) - 1;
        let further = u32::try_from(further).unwrap_or(u32::MAX);
        let [west, south] = self.first;
        Steps {
            x: Arc { first: west, further },
            y: Rows { low: south, high: south.saturating_add(further) },
        }
    }

    /// The codes of the element and of all elements below it, or of the element alone.
    pub(super) fn codes(&self, is_alone: bool) -> RangeInclusive<u64> {
        let below = if is_alone { 0 } else { codes(self.level) - 1 };
        self.code..=self.code + below
    }

    fn run(&self, is_alone: bool, is_inside: bool) -> Run {
        let (first, last) = self.codes(is_alone).into_inner();
        Run { first, last, is_inside }
    }
}

/// The code of an extent: the code of the smallest element that holds the extent.
pub(super) fn code(extent: &BoundingBox) -> u64 {
    let Steps { x, y } = Steps::of(extent);
    let holds = |level: u32| {
        let size = 1 << (BITS - level);
        // The distance from the beginning of the element to the end of the extent.
        let reach = |first: u32, further: u32| u64::from(first) % size + u64::from(further);
        reach(x.first, x.further) < 2 * size && reach(y.low, y.high - y.low) < 2 * size
    };
    let mut element = Element::WHOLE;
    while element.level < RESOLUTION && holds(element.level + 1) {
        let bit = |steps: u32| steps >> (BITS - element.level - 1) & 1;
        element = element.quarter([bit(x.first), bit(y.low)]);
    }
    element.code
}

/// Which extents a query selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Extents that have a position in common with the area.
    Overlapping,
    /// Extents whose positions are all in the area.
    Inside,
    /// Extents that contain all positions of the area.
    Containing,
}

impl Wanted {
    /// Whether a query by an area selects an extent.
    pub(super) fn has(self, area: &impl Shape, extent: &BoundingBox) -> bool {
        match self {
            Self::Overlapping => area.overlaps(extent),
            Self::Inside => area.contains_box(extent),
            Self::Containing => area.bounds().is_inside(extent),
        }
    }
}

/// A query for extents.
pub(super) struct Query<A> {
    area: A,
    wanted: Wanted,
    /// The steps that the area touches.
    touched: Steps,
    has_north_pole: bool,
    has_south_pole: bool,
}

impl<A: Area> Query<A> {
    pub(super) fn new(area: A, wanted: Wanted) -> Self {
        let [has_north_pole, has_south_pole] =
            [90.0, -90.0].map(|latitude| area.contains(&LatLng::stored(latitude, 0.0)));
        let touched = Steps::of(&area.bounds());
        Self { area, wanted, touched, has_north_pole, has_south_pole }
    }

    /// The relation of the query to the extents of an element and of all elements below it.
    ///
    /// An extent whose south-western corner is in the area overlaps it. An extent whose corner is
    /// not in the area is not inside the area. So each kind of query needs the enlarged element for
    /// only one of the two tests.
    pub(super) fn relation(&self, element: &Element) -> CellRelation {
        let (may_be, must_be) = match self.wanted {
            Wanted::Overlapping | Wanted::Containing => (element.extents(), element.corners()),
            Wanted::Inside => (element.corners(), element.extents()),
        };
        // A pole has all longitudes.
        let has_pole = self.has_north_pole && may_be.y.high == u32::MAX
            || self.has_south_pole && may_be.y.low == 0;
        let is = |steps: &Steps, relation| {
            steps.cells().all(|cell| self.area.relation(&cell) == relation)
        };
        // The comparison of the steps comes first, because it is cheaper than most areas.
        let is_outside = || !self.touched.overlaps(&may_be) || is(&may_be, CellRelation::Outside);
        if !has_pole && is_outside() {
            CellRelation::Outside
        } else if is(&must_be, CellRelation::Inside) {
            CellRelation::Inside
        } else {
            CellRelation::Across
        }
    }

    pub(super) fn has(&self, extent: &BoundingBox) -> bool
    where
        A: Shape,
    {
        self.wanted.has(&self.area, extent)
    }

    fn add(&self, element: Element, across: &mut VecDeque<Element>, runs: &mut Vec<Run>) {
        match self.relation(&element) {
            CellRelation::Outside => {}
            CellRelation::Inside => runs.push(element.run(false, true)),
            CellRelation::Across => across.push_back(element),
        }
    }
}

/// The codes that selected extents may have, in at most `budget` ranges.
///
/// Divides the largest elements first, until there are enough elements.
pub(super) fn cover(area: &impl Area, wanted: Wanted, budget: usize) -> Cover {
    let query = Query::new(area, wanted);
    let most = budget.saturating_mul(BLOCKS_PER_RANGE).max(LEAST_ELEMENTS);
    let (mut runs, mut across) = (Vec::new(), VecDeque::new());
    query.add(Element::WHOLE, &mut across, &mut runs);
    while runs.len() + across.len() < most
        && let Some(element) = across.pop_front()
    {
        runs.push(element.run(true, false));
        element.quarters().for_each(|quarter| query.add(quarter, &mut across, &mut runs));
    }
    runs.extend(across.iter().map(|element| element.run(false, false)));
    Cover::of_runs(runs, budget)
}
