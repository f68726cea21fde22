//! XZ-ordering: which code an extent has, and which stretches of codes a query reads.

use std::collections::VecDeque;

use super::area::{BoundingBox, Relation};
use super::cell::coordinates;
use super::cover::{BLOCKS_PER_RANGE, Cover, Run};

/// How often the sphere is divided in four at most: the most often for which codes take 7 bytes in
/// a key. The smallest elements are 0.3 m wide, at the equator, and 0.15 m high.
pub(super) const RESOLUTION: u32 = 27;

/// So many elements a query is made of, if it can be, however few its ranges are: the gaps between
/// them are what a walk can leave out.
const LEAST_ELEMENTS: usize = 128;

/// Of one of the two axes of the grid.
const BITS: u32 = u32::BITS;

/// How many elements an element of a level has below it, itself included; its codes.
const fn codes(level: u32) -> u64 {
    (4_u64.pow(RESOLUTION - level + 1) - 1) / 3
}

/// Steps of longitude: from a first one, so many further ones to the east, on around the sphere if
/// need be.
#[derive(Clone, Copy, Debug)]
struct Arc {
    first: u32,
    further: u32,
}

impl Arc {
    const WHOLE: Self = Self { first: 0, further: u32::MAX };

    fn overlaps(&self, other: &Self) -> bool {
        other.first.wrapping_sub(self.first) <= self.further
            || self.first.wrapping_sub(other.first) <= other.further
    }

    fn holds(&self, other: &Self) -> bool {
        let before = u64::from(other.first.wrapping_sub(self.first));
        self.further == u32::MAX || before + u64::from(other.further) <= u64::from(self.further)
    }
}

/// Steps of latitude. These have two ends.
#[derive(Clone, Copy, Debug)]
struct Rows {
    low: u32,
    high: u32,
}

impl Rows {
    fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    fn holds(&self, other: &Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }
}

/// The steps that something touches.
#[derive(Clone, Copy, Debug)]
struct Steps {
    x: Arc,
    y: Rows,
}

impl Steps {
    fn of(area: &BoundingBox) -> Self {
        let [west, south] = coordinates(area.south(), area.west());
        let [east, north] = coordinates(area.north(), area.east());
        // Where both ends are in one step, all or nothing else is between them.
        let is_around = area.west() > area.east() && west == east;
        let further = if is_around { u32::MAX } else { east.wrapping_sub(west) };
        Self { x: Arc { first: west, further }, y: Rows { low: south, high: north } }
    }

    /// The steps of which all positions are in `area`: a step is in part outside where an edge is
    /// in it.
    fn inside(area: &BoundingBox) -> Option<Self> {
        let Self { x, y } = Self::of(area);
        let is_whole = area.west() == -180.0 && area.east() == 180.0;
        let x = match is_whole {
            true => Arc::WHOLE,
            false => Arc { first: x.first.wrapping_add(1), further: x.further.checked_sub(2)? },
        };
        // Beyond a pole there is nothing.
        let low = if has_south_pole(area) { 0 } else { y.low.checked_add(1)? };
        let high = if has_north_pole(area) { u32::MAX } else { y.high.checked_sub(1)? };
        (low <= high).then_some(Self { x, y: Rows { low, high } })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.x.overlaps(&other.x) && self.y.overlaps(&other.y)
    }

    fn holds(&self, other: &Self) -> bool {
        self.x.holds(&other.x) && self.y.holds(&other.y)
    }
}

pub(super) fn has_north_pole(area: &BoundingBox) -> bool {
    area.north() >= 90.0
}

pub(super) fn has_south_pole(area: &BoundingBox) -> bool {
    area.south() <= -90.0
}

/// An element: a quarter of a quarter and so on of the sphere, for the extents that begin in it,
/// with their south-western corner, and end in it or in what is as large to the north and to the
/// east of it.
#[derive(Clone, Copy, Debug)]
struct Element {
    level: u32,
    /// Its first step of longitude and of latitude.
    first: [u32; 2],
    code: u64,
}

impl Element {
    const WHOLE: Self = Self { level: 0, first: [0, 0], code: 0 };

    /// Of steps which begin in this element, the quarter in which they begin.
    fn quarter(&self, bits: [u32; 2]) -> Self {
        let level = self.level + 1;
        let [x, y] = bits;
        let code = self.code + 1 + u64::from(2 * x + y) * codes(level);
        let [west, south] = self.first;
        let shift = BITS - level;
        Self { level, first: [west | x << shift, south | y << shift], code }
    }

    fn quarters(&self) -> impl Iterator<Item = Self> {
        let quarters = if self.level < RESOLUTION { 4 } else { 0 };
        (0..quarters).map(|quarter| self.quarter([quarter >> 1, quarter & 1]))
    }

    /// What the south-western corners of its extents touch.
    fn corners(&self) -> Steps {
        self.grown(1)
    }

    /// What its extents touch: twice as wide, and twice as high.
    fn extents(&self) -> Steps {
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

    /// The codes of it and all below it.
    fn run(&self, is_inside: bool) -> Run {
        Run { first: self.code, last: self.code + codes(self.level) - 1, is_inside }
    }

    fn own_run(&self) -> Run {
        Run { first: self.code, last: self.code, is_inside: false }
    }
}

/// The code of an extent: that of the smallest element which holds it.
pub(super) fn code(extent: &BoundingBox) -> u64 {
    let Steps { x, y } = Steps::of(extent);
    let holds = |level: u32| {
        let size = 1 << (BITS - level);
        // How far it reaches, from the beginning of the element that it begins in.
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

/// Which extents are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Those that have a position in common with the area.
    Overlapping,
    /// Those of which every position is in the area.
    Inside,
}

/// A query, in steps.
struct Query {
    wanted: Wanted,
    /// What the area touches, and what is inside it as a whole.
    touched: Steps,
    inside: Option<Steps>,
    has_north_pole: bool,
    has_south_pole: bool,
}

impl Query {
    fn new(area: &BoundingBox, wanted: Wanted) -> Self {
        Self {
            wanted,
            touched: Steps::of(area),
            inside: Steps::inside(area),
            has_north_pole: has_north_pole(area),
            has_south_pole: has_south_pole(area),
        }
    }

    /// How the extents of an element and of all below it lie to the query.
    ///
    /// An extent whose south-western corner is in the area overlaps it, and one whose corner is not
    /// in it is not inside. So each of the two questions needs the enlarged element only once.
    fn relation(&self, element: &Element) -> Relation {
        let (may_be, must_be) = match self.wanted {
            Wanted::Overlapping => (element.extents(), element.corners()),
            Wanted::Inside => (element.corners(), element.extents()),
        };
        // A pole has all longitudes.
        let has_pole = self.has_north_pole && may_be.y.high == u32::MAX
            || self.has_south_pole && may_be.y.low == 0;
        if !has_pole && !self.touched.overlaps(&may_be) {
            Relation::Outside
        } else if self.inside.is_some_and(|inside| inside.holds(&must_be)) {
            Relation::Inside
        } else {
            Relation::Across
        }
    }

    fn add(&self, element: Element, across: &mut VecDeque<Element>, runs: &mut Vec<Run>) {
        match self.relation(&element) {
            Relation::Outside => {}
            Relation::Inside => runs.push(element.run(true)),
            Relation::Across => across.push_back(element),
        }
    }
}

/// The codes that the extents may have which are wanted, in at most `budget` ranges.
///
/// Divides the largest elements first, until there are enough.
pub(super) fn cover(area: &BoundingBox, wanted: Wanted, budget: usize) -> Cover {
    let query = Query::new(area, wanted);
    let most = budget.saturating_mul(BLOCKS_PER_RANGE).max(LEAST_ELEMENTS);
    let (mut runs, mut across) = (Vec::new(), VecDeque::new());
    query.add(Element::WHOLE, &mut across, &mut runs);
    while runs.len() + across.len() < most
        && let Some(element) = across.pop_front()
    {
        runs.push(element.own_run());
        element.quarters().for_each(|quarter| query.add(quarter, &mut across, &mut runs));
    }
    runs.extend(across.iter().map(|element| element.run(false)));
    Cover::of_runs(runs, budget)
}
