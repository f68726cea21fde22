//! The edges of a polygon, in an R-tree.

use geo::algorithm::Intersects;
use geo::kernels::{Kernel, RobustKernel};
use geo::{Coord, Line, LineString, Orientation, Rect};
use rstar::{AABB, RTree, RTreeObject};

/// The edges of the shell and the holes of a polygon.
#[derive(Clone, Debug)]
pub(super) struct Edges(RTree<Edge>);

#[derive(Clone, Copy, Debug)]
struct Edge {
    line: Line<f64>,
    /// The ring, 0 for the shell, and the place of the edge in it.
    ring: usize,
    number: usize,
}

impl RTreeObject for Edge {
    type Envelope = AABB<[f64; 2]>;

    fn envelope(&self) -> Self::Envelope {
        let Line { start, end } = self.line;
        AABB::from_corners([start.x, start.y], [end.x, end.y])
    }
}

/// The rings of a polygon, the shell first.
pub(super) fn rings(polygon: &geo::Polygon<f64>) -> impl Iterator<Item = &LineString<f64>> {
    std::iter::once(polygon.exterior()).chain(polygon.interiors())
}

impl Edges {
    pub(super) fn of(polygon: &geo::Polygon<f64>) -> Self {
        let edges = rings(polygon).enumerate().flat_map(|(ring, corners)| {
            let edge = move |(number, line)| Edge { line, ring, number };
            corners.lines().enumerate().map(edge)
        });
        Self(RTree::bulk_load(edges.collect()))
    }

    /// The first ring, from the ring `first` on, that crosses or touches itself. Consecutive edges
    /// may share their common corner.
    ///
    /// Edges whose bounding boxes are disjoint do not touch, and are not compared.
    pub(super) fn crossed_ring(&self, first: usize) -> Option<usize> {
        let edges = self.0.iter().filter(|edge| edge.ring >= first);
        edges.filter(|edge| self.is_crossed(edge)).map(|edge| edge.ring).min()
    }

    fn is_crossed(&self, edge: &Edge) -> bool {
        let near = self.0.locate_in_envelope_intersecting(&edge.envelope());
        near.filter(|other| other.ring == edge.ring && other.number < edge.number).any(|other| {
            edge.line.intersects(&other.line)
                && edge.line.start != other.line.end
                && edge.line.end != other.line.start
        })
    }

    /// Whether an edge touches a rectangle.
    pub(super) fn cross(&self, cell: &Rect<f64>) -> bool {
        let (low, high) = (cell.min(), cell.max());
        let near = AABB::from_corners([low.x, low.y], [high.x, high.y]);
        let mut near = self.0.locate_in_envelope_intersecting(&near);
        near.any(|edge| crosses(&edge.line, cell))
    }

    /// Whether a corner is inside the rings or on one of them: a ray to the east crosses an odd
    /// number of edges.
    pub(super) fn contain(&self, corner: Coord<f64>) -> bool {
        let Coord { x, y } = corner;
        let ray = AABB::from_corners([x, y], [f64::MAX, y]);
        let mut is_inside = false;
        for Edge { line, .. } in self.0.locate_in_envelope_intersecting(&ray) {
            if line.intersects(&corner) {
                return true;
            }
            let is_up = line.end.y > y;
            if (line.start.y > y) != is_up {
                let side = RobustKernel::orient2d(line.start, line.end, corner);
                is_inside ^= (side == Orientation::CounterClockwise) == is_up;
            }
        }
        is_inside
    }
}

/// Whether a line touches a rectangle: their projections overlap on both axes, and the corners are
/// not all on one side of the line.
fn crosses(line: &Line<f64>, cell: &Rect<f64>) -> bool {
    let (low, high) = (cell.min(), cell.max());
    let (from, to) = (line.start, line.end);
    let overlaps = from.x.max(to.x) >= low.x
        && from.x.min(to.x) <= high.x
        && from.y.max(to.y) >= low.y
        && from.y.min(to.y) <= high.y;
    if !overlaps {
        return false;
    }
    let side = |x: f64, y: f64| (to.x - from.x) * (y - from.y) - (to.y - from.y) * (x - from.x);
    let sides =
        [side(low.x, low.y), side(low.x, high.y), side(high.x, low.y), side(high.x, high.y)];
    !(sides.iter().all(|side| *side > 0.0) || sides.iter().all(|side| *side < 0.0))
}
