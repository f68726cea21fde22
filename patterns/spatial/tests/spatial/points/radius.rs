//! Circles through a position: the radius is the computed distance, so the circle must contain the
//! position.

use fastrand::Rng;
use keyloom_spatial::{Area, CellRelation, Circle, GeoCell, LatLng};

/// Numbers at which spherical formulas lose precision, and numbers near them and between them.
fn coordinate(rng: &mut Rng, most: f64) -> f64 {
    let special = [0.0, most, -most, most / 2.0, -most / 2.0, 45.0, -45.0, most - 1e-9];
    let distance = 10_f64.powf(rng.f64() * 16.0 - 15.0);
    match rng.u8(..4) {
        0 => (rng.f64() * 2.0 - 1.0) * most,
        1 => special[rng.usize(..special.len())],
        2 => special[rng.usize(..special.len())] + distance,
        _ => special[rng.usize(..special.len())] - distance,
    }
}

fn place(rng: &mut Rng) -> LatLng {
    let latitude = coordinate(rng, 90.0).clamp(-90.0, 90.0);
    LatLng::wrapping(latitude, coordinate(rng, 180.0)).unwrap()
}

/// The circle reaches each cell that contains the position, and its bounding box contains the
/// position.
fn reaches(centre: LatLng, position: LatLng) {
    let circle = Circle::new(centre, centre.distance(&position)).unwrap();
    assert!(circle.contains(&position), "{centre} to {position}");
    assert!(circle.bounds().contains(&position), "{centre} to {position}: {:?}", circle.bounds());
    for bits in 0..=64 {
        let bounds = GeoCell::of(&position, bits).unwrap().bounds();
        // A rounding error may put a position into the adjacent cell.
        let is_within = (bounds.south..=bounds.north).contains(&position.latitude())
            && (bounds.west..=bounds.east).contains(&position.longitude());
        let is_outside = circle.relation(&bounds) == CellRelation::Outside;
        assert!(!is_within || !is_outside, "{centre} to {position}, {bits} bits: {bounds:?}");
    }
}

/// The extreme latitudes of a circle, the minimum on a meridian a quarter turn away, and the
/// antipode.
#[test]
fn circles_reach_positions_at_their_radius() {
    let known = [
        [(89.99989145592227, 45.0), (-90.0, 0.0)],
        [(-90.0, 0.0), (89.99995853614557, -180.0)],
        [(-89.99999873451448, 176.23639637820577), (89.99999999900001, 45.0)],
        [(6.736400498195563e-11, -90.0), (89.999999999, 7.649369220504259e-7)],
    ];
    for [from, to] in known {
        let at = |(latitude, longitude)| LatLng::new(latitude, longitude).unwrap();
        reaches(at(from), at(to));
    }
    let mut rng = Rng::with_seed(1);
    (0..3_000).for_each(|_| reaches(place(&mut rng), place(&mut rng)));
}
