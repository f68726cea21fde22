//! Validity of polygons.
//!
//! The rules and their errors are the same as in `geo::Validation`. The search for
//! self-intersections in `geo` compares every pair of edges: 4.7 s for 30,000 corners.

use geo::algorithm::coordinate_position::CoordPos;
use geo::algorithm::dimensions::Dimensions;
use geo::algorithm::validation::{InvalidPolygon, RingRole};
use geo::algorithm::{PreparedGeometry, Relate, RemoveRepeatedPoints};
use geo::{LineString, Polygon};

use super::edges::{Edges, rings};

/// Checks the rings of a polygon from `first_ring` on, and their relation to all other rings.
pub(super) fn check(
    polygon: &Polygon<f64>,
    edges: &Edges,
    first_ring: usize,
) -> Result<(), InvalidPolygon> {
    for (number, ring) in rings(polygon).enumerate().skip(first_ring) {
        if ring.remove_repeated_points().0.len() < 4 {
            return Err(InvalidPolygon::TooFewPointsInRing(role(number)));
        }
    }
    if let Some(ring) = edges.crossed_ring(first_ring) {
        return Err(InvalidPolygon::SelfIntersection(role(ring)));
    }
    check_holes(polygon, first_ring.saturating_sub(1))
}

fn role(ring: usize) -> RingRole {
    ring.checked_sub(1).map_or(RingRole::Exterior, RingRole::Interior)
}

/// Checks that the holes from the hole `first` on are inside the shell and outside the other holes.
/// Rings may touch at points.
fn check_holes(polygon: &Polygon<f64>, first: usize) -> Result<(), InvalidPolygon> {
    let filled = |ring: &LineString<f64>| Polygon::new(ring.clone(), Vec::new());
    if first >= polygon.interiors().len() {
        return Ok(());
    }
    let shell = PreparedGeometry::from(filled(polygon.exterior()));
    let holes: Vec<_> =
        polygon.interiors().iter().map(|ring| PreparedGeometry::from(filled(ring))).collect();
    for (number, hole) in holes.iter().enumerate().skip(first) {
        let role = RingRole::Interior(number);
        let within = shell.relate(hole);
        if !within.is_contains() {
            return Err(InvalidPolygon::InteriorRingNotContainedInExteriorRing(role));
        }
        if within.get(CoordPos::OnBoundary, CoordPos::OnBoundary) == Dimensions::OneDimensional {
            return Err(InvalidPolygon::IntersectingRingsOnALine(RingRole::Exterior, role));
        }
        for (other, before) in holes.iter().enumerate().take(number) {
            let (before, other) = (before.relate(hole), RingRole::Interior(other));
            if before.get(CoordPos::Inside, CoordPos::Inside) == Dimensions::TwoDimensional {
                return Err(InvalidPolygon::IntersectingRingsOnAnArea(other, role));
            }
            if before.get(CoordPos::OnBoundary, CoordPos::OnBoundary) == Dimensions::OneDimensional
            {
                return Err(InvalidPolygon::IntersectingRingsOnALine(other, role));
            }
        }
    }
    Ok(())
}
