//! Distances, compared with those of another library, and positions.

use geo::{Distance, Haversine, Point};
use keyloom::Error;
use keyloom_spatial::{Area, EARTH_RADIUS};
use keyloom_spatial::{Circle, LatLng};

use super::fixture::{place, position};
use keyloom_testing::laws::property;

#[test]
fn distances_are_those_of_the_crate_geo() {
    property((place(), place()), |(a, b)| {
        let point = |(latitude, longitude): (f64, f64)| Point::new(longitude, latitude);
        let wanted = Haversine.distance(point(a), point(b));
        let found = position(a).distance(&position(b));
        // Near half the circumference, the sine is ill-conditioned: a metre there is 1e-7 radians.
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

/// The distance of a place from the equator along its meridian, on the ellipsoid WGS84.
fn from_equator_wgs84(latitude: f64) -> f64 {
    let (a, f) = (6_378_137.0, 1.0 / 298.257_223_563);
    let e2: f64 = f * (2.0 - f);
    let steps = 2_000;
    let step = latitude.to_radians() / f64::from(steps);
    let radius = |n: u32| {
        let sine = ((f64::from(n) + 0.5) * step).sin();
        a * (1.0 - e2) / (1.0 - e2 * sine * sine).powf(1.5)
    };
    (0..steps).map(radius).sum::<f64>() * step
}

/// The sphere exceeds WGS84 most along a meridian at the equator.
#[test]
fn a_radius_enlarged_by_the_documented_share_loses_no_place() {
    let equator = position((0.0, 12.0));
    for latitude in [0.001, 0.1, 1.0, 5.0, 20.0, 60.0, 90.0] {
        let radius = from_equator_wgs84(latitude);
        let enlarged = |percent: f64| Circle::new(equator, radius * (1.0 + percent / 100.0));
        let place = position((latitude, 12.0));
        assert!(enlarged(0.57).unwrap().contains(&place), "{latitude}");
        assert_eq!(enlarged(0.5).unwrap().contains(&place), latitude > 30.0, "{latitude}");
    }
    let pole = from_equator_wgs84(90.0) - from_equator_wgs84(89.0);
    let shorter = 1.0 - position((89.0, 0.0)).distance(&position((90.0, 0.0))) / pole;
    assert!((0.0044..0.0045).contains(&shorter), "{shorter}");
}

#[test]
fn one_place_is_one_position() {
    assert_eq!(position((10.0, 180.0)), position((10.0, -180.0)));
    assert_eq!(position((10.0, 190.0)), position((10.0, -170.0)));
    assert_eq!(position((10.0, -900.0)), position((10.0, 180.0)));
    assert_eq!(position((-90.0, 77.0)), position((-90.0, -1.0)));
    // Slightly west of the antimeridian.
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
        (0.0, 180.000_1),
        (0.0, 181.0),
        (0.0, -200.0),
        (0.0, 1e300),
    ] {
        let error = LatLng::new(latitude, longitude).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
}
