//! Polygons: validity and containment, compared with the crate `geo`, which compares every pair of
//! edges and visits all edges.

use std::cell::Cell;

use geo::{Coord, Intersects, LineString, Validation};
use keyloom_spatial::{Area, CellRelation, LatLng, Polygon};
use keyloom_spatial::{BoundingBox, GeoCell};
use proptest::prelude::*;

use super::fixture::position;
use keyloom_testing::laws::property;

/// A corner of a coarse grid: edges often touch, overlap or pass through corners.
fn corner() -> impl Strategy<Value = (f64, f64)> {
    let degrees = || prop_oneof![9 => (0..7_i32).prop_map(f64::from), 1 => 0.0..6.0_f64];
    (degrees(), degrees())
}

fn square() -> impl Strategy<Value = Vec<(f64, f64)>> {
    (corner(), 1.0..4.0_f64)
        .prop_map(|((y, x), size)| vec![(y, x), (y, x + size), (y + size, x + size), (y + size, x)])
}

fn ring() -> impl Strategy<Value = Vec<(f64, f64)>> {
    prop_oneof![prop::collection::vec(corner(), 3..9), square()]
}

fn line_string(ring: &[(f64, f64)]) -> LineString<f64> {
    ring.iter().map(|(y, x)| Coord { x: *x, y: *y }).collect()
}

#[test]
fn polygons_are_refused_exactly_if_geo_finds_them_invalid() {
    let [valid, invalid] = [0, 0].map(Cell::new);
    let any_rings = (ring(), prop::collection::vec(ring(), 0..3));
    // A third of the cases is always valid, so few cases suffice to see both results.
    let rings = prop_oneof![1 => square().prop_map(|shell| (shell, Vec::new())), 2 => any_rings];
    property(rings, |(shell, holes)| {
        let holes = holes.iter().map(|hole| line_string(hole)).collect();
        let polygon = geo::Polygon::new(line_string(&shell), holes);
        let made = Polygon::from_geo(polygon.clone());
        match polygon.check_validation() {
            Ok(()) => {
                assert!(made.is_ok(), "{polygon:?}: {made:?}");
                valid.set(valid.get() + 1);
            }
            Err(error) => {
                assert!(made.is_err(), "{polygon:?}: {error}");
                invalid.set(invalid.get() + 1);
            }
        }
        // One hole after the other.
        let closed = |ring: &LineString<f64>| -> Vec<(f64, f64)> {
            ring.coords().map(|corner| (corner.y, corner.x)).collect()
        };
        let shell = Polygon::new(&closed(polygon.exterior()));
        let stepwise = polygon
            .interiors()
            .iter()
            .fold(shell, |polygon, hole| polygon.and_then(|it| it.with_hole(&closed(hole))));
        assert_eq!(stepwise.is_ok(), polygon.check_validation().is_ok(), "{polygon:?}");
    });
    let (valid, invalid) = (valid.get(), invalid.get());
    assert!(valid > 0 && invalid > 0, "{valid} valid, {invalid} invalid");
}

#[test]
fn polygons_contain_what_geo_says_that_they_contain() {
    let at = prop_oneof![corner(), corner().prop_map(|(y, x)| (y + 0.5, x + 0.25))];
    let places = prop::collection::vec(at, 30);
    property((ring(), ring(), places), |(shell, hole, places)| {
        let shell = geo::Polygon::new(line_string(&shell), Vec::new());
        let holed = geo::Polygon::new(shell.exterior().clone(), vec![line_string(&hole)]);
        for polygon in [shell, holed] {
            let Ok(area) = Polygon::from_geo(polygon.clone()) else { continue };
            for (y, x) in &places {
                let wanted = polygon.intersects(&Coord { x: *x, y: *y });
                assert_eq!(area.contains(&position((*y, *x))), wanted, "{polygon:?} {y} {x}");
                let at: LatLng = position((*y, *x));
                for bits in [10, 14, 18, 30] {
                    let cell = GeoCell::of(&at, bits).unwrap().bounds();
                    match area.relation(&cell) {
                        CellRelation::Inside => assert!(wanted),
                        CellRelation::Outside => assert!(!wanted),
                        CellRelation::Across => {}
                    }
                }
            }
        }
    });
}

/// A border with many corners, like the border of a country.
#[test]
fn border_of_many_corners_is_a_polygon() {
    let corner = |n: u32| {
        let angle = f64::from(n) / 30_000.0 * std::f64::consts::TAU;
        let radius = 5.0 + (angle * 40.0).sin() + 0.001 * f64::from(n % 2);
        (45.0 + radius * angle.sin(), 8.0 + radius * angle.cos())
    };
    let ring: Vec<_> = (0..30_000).chain([0]).map(corner).collect();
    let border = Polygon::new(&ring).unwrap();
    assert!(border.contains(&position((45.0, 8.0))));
    assert!(!border.contains(&position((45.0, 15.0))));
    assert!(border.bounds() != BoundingBox::WORLD);
    // Swaps two distant corners.
    let mut crossing = ring;
    crossing.swap(1_000, 1_010);
    assert!(Polygon::new(&crossing).unwrap_err().to_string().contains("self-intersection"));
}
