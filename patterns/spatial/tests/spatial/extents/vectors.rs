//! Distances of boxes on the sphere, computed with vectors.

use keyloom_spatial::{Area, BoundingBox, EARTH_RADIUS, LatLng};

type Vector = [f64; 3];

fn vector(latitude: f64, longitude: f64) -> Vector {
    let (latitude, longitude) = (latitude.to_radians(), longitude.to_radians());
    let cosine = latitude.cos();
    [cosine * longitude.cos(), cosine * longitude.sin(), latitude.sin()]
}

fn dot(a: Vector, b: Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cross([a, b, c]: Vector, [x, y, z]: Vector) -> Vector {
    [b * z - c * y, c * x - a * z, a * y - b * x]
}

fn metres(a: Vector, b: Vector) -> f64 {
    let across = cross(a, b);
    dot(across, across).sqrt().atan2(dot(a, b)) * EARTH_RADIUS
}

/// The longitudes of the edges. The eastern one is not less than the western one.
fn longitudes(extent: &BoundingBox) -> (f64, f64) {
    let (west, east) = (extent.west(), extent.east());
    (west, if east < west { east + 360.0 } else { east })
}

fn has_longitude(extent: &BoundingBox, longitude: f64) -> bool {
    let (west, east) = longitudes(extent);
    (-3..=3).any(|turn| {
        let longitude = longitude + 360.0 * f64::from(turn);
        west <= longitude && longitude <= east
    })
}

/// The position on the meridian of `longitude` that the great circle from `from`, at a right angle,
/// meets, if this is between the edges.
fn foot(from: Vector, extent: &BoundingBox, longitude: f64) -> Option<Vector> {
    let (equator, pole) = (vector(0.0, longitude), [0.0, 0.0, 1.0]);
    let latitude = dot(from, pole).atan2(dot(from, equator)).to_degrees();
    let is_between = (extent.south()..=extent.north()).contains(&latitude);
    is_between.then(|| vector(latitude, longitude))
}

/// The distance from a position to the nearest position of a box, in metres.
pub fn nearest(position: &LatLng, extent: &BoundingBox) -> f64 {
    if extent.contains(position) {
        return 0.0;
    }
    let (latitude, longitude) = (position.latitude(), position.longitude());
    let from = vector(latitude, longitude);
    let mut least = f64::INFINITY;
    let mut meet = |other: Vector| least = least.min(metres(from, other));
    for edge in [extent.west(), extent.east()] {
        meet(vector(extent.south(), edge));
        meet(vector(extent.north(), edge));
        foot(from, extent, edge).into_iter().for_each(&mut meet);
    }
    if has_longitude(extent, longitude) {
        meet(vector(extent.south(), longitude));
        meet(vector(extent.north(), longitude));
    }
    least
}

/// The distance from a position to the farthest position of a box: what is missing to half of the
/// circumference is the distance of the box from the antipode.
pub fn farthest(position: &LatLng, extent: &BoundingBox) -> f64 {
    std::f64::consts::PI * EARTH_RADIUS - nearest(&position.antipode(), extent)
}
