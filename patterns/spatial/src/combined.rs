//! Areas that are made of two others.

use super::area::{Area, BoundingBox, CellBounds, Relation};
use super::position::LatLng;

/// The positions in both of two areas; see [`Area::intersection`].
#[derive(Clone, Copy, Debug)]
pub struct Intersection<A, B>(pub(super) A, pub(super) B);

/// The positions in at least one of two areas; see [`Area::union`].
#[derive(Clone, Copy, Debug)]
pub struct Union<A, B>(pub(super) A, pub(super) B);

/// The positions in the first of two areas and not in the second; see [`Area::difference`].
#[derive(Clone, Copy, Debug)]
pub struct Difference<A, B>(pub(super) A, pub(super) B);

impl<A: Area, B: Area> Area for Intersection<A, B> {
    fn contains(&self, position: &LatLng) -> bool {
        self.0.contains(position) && self.1.contains(position)
    }

    fn relation(&self, cell: &CellBounds) -> Relation {
        match self.0.relation(cell) {
            Relation::Outside => Relation::Outside,
            Relation::Inside => self.1.relation(cell),
            Relation::Across => match self.1.relation(cell) {
                Relation::Outside => Relation::Outside,
                _ => Relation::Across,
            },
        }
    }

    /// The smaller of the two boxes.
    fn bounds(&self) -> BoundingBox {
        let (first, second) = (self.0.bounds(), self.1.bounds());
        let size = |area: &BoundingBox| (area.north() - area.south()) * width(area);
        if size(&first) <= size(&second) { first } else { second }
    }
}

impl<A: Area, B: Area> Area for Union<A, B> {
    fn contains(&self, position: &LatLng) -> bool {
        self.0.contains(position) || self.1.contains(position)
    }

    fn relation(&self, cell: &CellBounds) -> Relation {
        match self.0.relation(cell) {
            Relation::Inside => Relation::Inside,
            Relation::Outside => self.1.relation(cell),
            Relation::Across => match self.1.relation(cell) {
                Relation::Inside => Relation::Inside,
                _ => Relation::Across,
            },
        }
    }

    fn bounds(&self) -> BoundingBox {
        around(&self.0.bounds(), &self.1.bounds())
    }
}

impl<A: Area, B: Area> Area for Difference<A, B> {
    fn contains(&self, position: &LatLng) -> bool {
        self.0.contains(position) && !self.1.contains(position)
    }

    fn relation(&self, cell: &CellBounds) -> Relation {
        match (self.0.relation(cell), self.1.relation(cell)) {
            (Relation::Outside, _) | (_, Relation::Inside) => Relation::Outside,
            (first, Relation::Outside) => first,
            _ => Relation::Across,
        }
    }

    fn bounds(&self) -> BoundingBox {
        self.0.bounds()
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

/// A box around two others: from the western edge of one of them to the east, the shorter way.
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
