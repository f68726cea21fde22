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

    fn near(&self, cell: &Rect<f64>) -> impl Iterator<Item = &Line<f64>> {
        let (low, high) = (cell.min(), cell.max());
        let near = AABB::from_corners([low.x, low.y], [high.x, high.y]);
        self.0.locate_in_envelope_intersecting(&near).map(|edge| &edge.line)
    }

    /// Whether an edge touches a rectangle.
    pub(super) fn cross(&self, cell: &Rect<f64>) -> bool {
        self.near(cell).any(|edge| crosses(edge, cell))
    }

    /// Whether a whole rectangle is inside the rings or on them. The rectangle may be a line or a
    /// point.
    pub(super) fn contain_all(&self, cell: &Rect<f64>) -> bool {
        if self.near(cell).any(|edge| divides(edge, cell)) {
            return false;
        }
        // No edge divides the rectangle, so one position decides for all of it. A line may lead
        // through corners of the rings, and leave the polygon there.
        let mut ends = vec![cell.min(), cell.max()];
        if cell.width() == 0.0 || cell.height() == 0.0 {
            ends.extend(self.near(cell).map(|edge| edge.start).filter(|end| cell.intersects(end)));
            ends.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
        }
        ends.windows(2).all(|ends| match ends {
            [from, to] => self.contain((*from / 2.0) + (*to / 2.0)),
            _ => true,
        })
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
    overlaps && {
        let [is_left, is_right] = sides(line, cell).map(|count| count == CORNERS);
        !is_left && !is_right
    }
}

/// Whether a line has positions in the interior of a rectangle. If the rectangle is a line, whether
/// the lines cross between their ends.
fn divides(line: &Line<f64>, cell: &Rect<f64>) -> bool {
    let (low, high) = (cell.min(), cell.max());
    let (from, to) = (line.start, line.end);
    let overlaps = from.x.max(to.x) > low.x
        && from.x.min(to.x) < high.x
        && from.y.max(to.y) > low.y
        && from.y.min(to.y) < high.y;
    overlaps && sides(line, cell).iter().all(|count| *count > 0)
}

const CORNERS: usize = 4;

/// The number of corners of a rectangle to the left and to the right of a line.
// Exact arithmetic: a rounded product would put a corner that is nearly on the line on the wrong
// side.
fn sides(line: &Line<f64>, cell: &Rect<f64>) -> [usize; 2] {
    let (low, high) = (cell.min(), cell.max());
    let corners = [low, Coord { x: low.x, y: high.y }, Coord { x: high.x, y: low.y }, high];
    let sides = corners.map(|corner| RobustKernel::orient2d(line.start, line.end, corner));
    [Orientation::CounterClockwise, Orientation::Clockwise]
        .map(|side| sides.iter().filter(|of| **of == side).count())
}
