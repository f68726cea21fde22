//! Areas that are made of two others.

use super::area::{Area, BoundingBox, CellBounds, CellRelation};
use super::position::LatLng;

/// An area made of two others, by [`Area::union`], [`Area::intersection`] or [`Area::difference`].
#[derive(Clone, Copy, Debug)]
pub struct Combined<A, B> {
    first: A,
    second: B,
    operation: Operation,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Union,
    Intersection,
    Difference,
}

impl<A: Area, B: Area> Combined<A, B> {
    pub(super) fn new(first: A, operation: Operation, second: B) -> Self {
        Self { first, second, operation }
    }

    /// The smaller of the boxes of both areas.
    fn smaller_bounds(&self) -> BoundingBox {
        let (first, second) = (self.first.bounds(), self.second.bounds());
        let size = |area: &BoundingBox| (area.north() - area.south()) * width(area);
        if size(&first) <= size(&second) { first } else { second }
    }
}

impl<A: Area, B: Area> Area for Combined<A, B> {
    fn contains(&self, position: &LatLng) -> bool {
        let in_first = self.first.contains(position);
        match self.operation {
            Operation::Union => in_first || self.second.contains(position),
            Operation::Intersection => in_first && self.second.contains(position),
            Operation::Difference => in_first && !self.second.contains(position),
        }
    }

    fn relation(&self, cell: &CellBounds) -> CellRelation {
        use CellRelation::{Across, Inside, Outside};
        let first = self.first.relation(cell);
        // The relation that the first area alone decides.
        let decisive = if let Operation::Union = self.operation { Inside } else { Outside };
        if first == decisive {
            return decisive;
        }
        let second = match (self.operation, self.second.relation(cell)) {
            (Operation::Difference, Inside) => Outside,
            (Operation::Difference, Outside) => Inside,
            (_, second) => second,
        };
        match first {
            _ if second == decisive => decisive,
            Across => Across,
            _ => second,
        }
    }

    fn bounds(&self) -> BoundingBox {
        match self.operation {
            Operation::Union => around(&self.first.bounds(), &self.second.bounds()),
            Operation::Intersection => self.smaller_bounds(),
            Operation::Difference => self.first.bounds(),
        }
    }
}

/// A bound on the rounding error of the eastern edge, in degrees.
const MARGIN: f64 = 1e-9;

/// The extent from west to east, in degrees.
fn width(area: &BoundingBox) -> f64 {
    match area.east() - area.west() {
        width if width < 0.0 => width + 360.0,
        width => width,
    }
}

/// The narrower of two boxes that contain both areas. Each begins at the western edge of one area.
fn around(first: &BoundingBox, second: &BoundingBox) -> BoundingBox {
    let from = |begin: &BoundingBox, other: &BoundingBox| {
        let off = (other.west() - begin.west()).rem_euclid(360.0);
        (begin.west(), width(begin).max(off + width(other)) + MARGIN)
    };
    let ways = [from(first, second), from(second, first)];
    let [(west, width), (other_west, other_width)] = ways;
    let (west, width) =
        if width <= other_width { (west, width) } else { (other_west, other_width) };
    let (south, north) = (first.south().min(second.south()), first.north().max(second.north()));
    BoundingBox::wrapping(south, west, north, west + width).unwrap_or(BoundingBox::WORLD)
}
