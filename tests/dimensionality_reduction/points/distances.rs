//! Distances beside those of another library, and positions.

use geo::{Distance, Haversine, Point};
use keyloom::Error;
use keyloom_patterns::Position;
use keyloom_patterns::general::dimensionality_reduction::EARTH_RADIUS;

use super::fixture::{place, position};
use crate::laws::property;

#[test]
fn distances_are_those_of_the_crate_geo() {
    property((place(), place()), |(a, b)| {
        let point = |(latitude, longitude): (f64, f64)| Point::new(longitude, latitude);
        let wanted = Haversine.distance(point(a), point(b));
        let found = position(a).distance(&position(b));
        // Where the angle is near half a turn its sine tells little; a metre there is 1e-7 of a radian.
        let tolerance = if wanted > 2e7 { 1.0 } else { 1e-6 + wanted * 1e-9 };
        assert!((found - wanted).abs() < tolerance, "{a:?} to {b:?}: {found}, not {wanted}");
        assert_eq!(found, position(b).distance(&position(a)));
    });
}

#[test]
fn the_antipode_is_half_the_way_around() {
    let half = EARTH_RADIUS * std::f64::consts::PI;
    for (from, to) in
        [((0.0, 0.0), (0.0, 180.0)), ((90.0, 3.0), (-90.0, 3.0)), ((30.0, 10.0), (-30.0, -170.0))]
    {
        let distance = position(from).distance(&position(to));
        assert!((distance - half).abs() < 1.0, "{from:?}: {distance}");
    }
}

#[test]
fn one_place_is_one_position() {
    assert_eq!(position((10.0, 180.0)), position((10.0, -180.0)));
    assert_eq!(position((10.0, 190.0)), position((10.0, -170.0)));
    assert_eq!(position((10.0, -900.0)), position((10.0, 180.0)));
    assert_eq!(position((-90.0, 77.0)), position((-90.0, -1.0)));
    // A hair west of the antimeridian.
    assert_eq!(position((0.0, -180.0 - 1e-15)).longitude(), -180.0);
    assert!(position((0.0, 0.0)).latitude().is_sign_positive());
    assert!(position((-0.0, -0.0)).longitude().is_sign_positive());
}

#[test]
fn what_is_no_position_is_refused() {
    for (latitude, longitude) in [
        (90.000_001, 0.0),
        (-91.0, 0.0),
        (f64::NAN, 0.0),
        (f64::INFINITY, 0.0),
        (0.0, f64::NAN),
        (0.0, f64::NEG_INFINITY),
    ] {
        let error = Position::new(latitude, longitude).unwrap_err();
        assert!(matches!(error, Error::BadOption { .. }), "{error}");
    }
}
