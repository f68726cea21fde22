//! Boxes and polygons.

use geo::algorithm::Intersects;
use geo::{Coord, Rect};

use super::super::area::{Area, BoundingBox, CellBounds};
use super::super::position::LatLng;
use super::super::shape::Shape;
use super::{Polygon, TURNS};

/// The edges of a box are straight lines in degrees, as the edges of a polygon. The decision is
/// exact for these lines: it is computed without rounding.
impl Shape for Polygon {
    fn overlaps(&self, extent: &BoundingBox) -> bool {
        let is_at_pole = extent.north() >= 90.0 && self.has_pole(90.0)
            || extent.south() <= -90.0 && self.has_pole(-90.0);
        let touches =
            |cell: CellBounds| TURNS.iter().any(|turn| self.touches(&shifted(&cell, *turn)));
        is_at_pole || extent.cells().any(touches)
    }

    fn contains_box(&self, extent: &BoundingBox) -> bool {
        // The box is only a pole.
        if extent.south() >= 90.0 {
            return self.has_pole(90.0);
        }
        if extent.north() <= -90.0 {
            return self.has_pole(-90.0);
        }
        let is_in = |cell: CellBounds| TURNS.iter().any(|turn| self.has_all(&cell, *turn));
        extent.cells().all(is_in)
    }
}

impl Polygon {
    fn has_pole(&self, latitude: f64) -> bool {
        self.contains(&LatLng::stored(latitude, 0.0))
    }

    fn touches(&self, cell: &Rect<f64>) -> bool {
        self.bounds.intersects(cell) && (self.edges.cross(cell) || self.edges.contain(cell.min()))
    }

    /// Whether the polygon contains a cell that is shifted by a turn.
    fn has_all(&self, cell: &CellBounds, turn: f64) -> bool {
        let shifted = shifted(cell, turn);
        if self.edges.contain_all(&shifted) {
            return true;
        }
        // The western end of a polygon of all longitudes is also its eastern end. A cell across
        // this meridian is in two parts of the polygon.
        let (low, high) = (self.bounds.min(), self.bounds.max());
        let (west, east) = (shifted.min().x, shifted.max().x);
        if self.bounds.width() < 360.0 || !(west < low.x && low.x <= east) {
            return false;
        }
        let part = |west, east| {
            Rect::new(Coord { x: west, y: cell.south }, Coord { x: east, y: cell.north })
        };
        let next_turn = cell.west + (turn + 360.0);
        self.edges.contain_all(&part(low.x, east))
            && self.edges.contain_all(&part(next_turn, high.x))
    }
}

fn shifted(cell: &CellBounds, turn: f64) -> Rect<f64> {
    let south_west = Coord { x: cell.west + turn, y: cell.south };
    let north_east = Coord { x: cell.east + turn, y: cell.north };
    Rect::new(south_west, north_east)
}
