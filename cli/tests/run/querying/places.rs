//! Points and extents, compared with the positions of all records.

use super::contents::{Pin, TENANTS, park, pins};
use super::{filled, objects, text};
use crate::support::Directory;

/// The radius of the Earth in metres, as geodesists define the mean radius.
const RADIUS: f64 = 6_371_008.8;

/// The distance in metres, by the angle between two vectors.
fn distance(a: Pin, b: Pin) -> f64 {
    let vector = |(latitude, longitude): Pin| {
        let (latitude, longitude) = (latitude.to_radians(), longitude.to_radians());
        let across = latitude.cos();
        [across * longitude.cos(), across * longitude.sin(), latitude.sin()]
    };
    let ([a, b, c], [x, y, z]) = (vector(a), vector(b));
    let cross = [b * z - c * y, c * x - a * z, a * y - b * x];
    let sine = cross.iter().map(|one| one * one).sum::<f64>().sqrt();
    RADIUS * sine.atan2(a * x + b * y + c * z)
}

/// Whether a position is in a box, which may cross the 180th meridian.
fn is_inside(pin: Pin, [south, west, north, east]: [f64; 4]) -> bool {
    let is_between = match west <= east {
        true => (west..=east).contains(&pin.1),
        false => pin.1 >= west || pin.1 <= east,
    };
    (south..=north).contains(&pin.0) && is_between
}

/// The last element of the keys, which is the number of the pin.
fn numbers(address: &str, arguments: &[&str]) -> Vec<usize> {
    let all = objects(&[&[address], arguments, &["-n", "1000"]].concat());
    let number = |key: String| key.trim_end_matches(')').rsplit(", ").next().unwrap().parse();
    all.iter().map(|one| number(text(one, "key")).unwrap()).collect()
}

fn sorted(mut numbers: Vec<usize>) -> Vec<usize> {
    numbers.sort_unstable();
    numbers
}

#[test]
fn a_box_has_the_points_inside() {
    let directory = Directory::new();
    let address = filled(&directory);
    for area in ["-10,-20,30,40", "-60,150,60,-150", "-90,-180,90,180", " -33.5, 10,-10 ,60"] {
        let sides: Vec<f64> = area.split(',').map(|one| one.trim().parse().unwrap()).collect();
        let sides: [f64; 4] = sides.try_into().unwrap();
        let of = |is_of: &dyn Fn(usize) -> bool| -> Vec<usize> {
            let all = pins().into_iter().enumerate();
            all.filter(|(n, pin)| is_of(*n) && is_inside(*pin, sides)).map(|(n, _)| n).collect()
        };
        let expected = of(&|_| true);
        assert!(expected.len() > 3, "{area}");
        assert_eq!(sorted(numbers(&address, &["pins.by_place", area])), expected, "{area}");
        for (n, tenant) in TENANTS.iter().enumerate() {
            let group = format!("({tenant:?},)");
            let found = numbers(&address, &["vans.by_place", area, "--group", &group]);
            assert_eq!(sorted(found), of(&|id| id % TENANTS.len() == n), "{area} {group}");
        }
    }
    let all = numbers(&address, &["pins.by_place"]);
    assert_eq!(sorted(all), (0..pins().len()).collect::<Vec<_>>());
}

#[test]
fn a_circle_has_its_points_the_nearest_first() {
    let directory = Directory::new();
    let address = filled(&directory);
    for (centre, radius) in [
        ((51.5, -0.1), Some(2_000.0)),
        ((-33.9, 151.2), Some(5_000.0)),
        ((0.0, 180.0), Some(3_000.0)),
        ((-80.0, 0.0), None),
    ] {
        let query = match radius {
            Some(radius) => format!("{},{},{radius}km", centre.0, centre.1),
            None => format!("{},{}", centre.0, centre.1),
        };
        let limit = radius.map_or(f64::INFINITY, |kilometres| kilometres * 1_000.0);
        let mut expected: Vec<(f64, usize)> =
            (0..).zip(pins()).map(|(n, pin)| (distance(centre, pin), n)).collect();
        expected.retain(|(metres, _)| *metres <= limit);
        expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert!(expected.len() > 3, "{query}");
        let order: Vec<usize> = expected.iter().map(|(_, n)| *n).collect();
        assert_eq!(numbers(&address, &["pins.by_place", &query]), order, "{query}");
        for (one, (metres, n)) in objects(&[&address, "pins.by_place", &query]).iter().zip(expected)
        {
            assert!((one["metres"].as_f64().unwrap() - metres).abs() < 1.0, "{one}");
            let pin = (one["latitude"].as_f64().unwrap(), one["longitude"].as_f64().unwrap());
            assert_eq!(pin, pins()[n]);
        }
    }
    let near = numbers(&address, &["pins.by_place", "51.5,-0.1,2000000m"]);
    assert_eq!(near, numbers(&address, &["pins.by_place", "51.5,-0.1,2000km"]));
    // The control: another radius has other points.
    assert_ne!(near, numbers(&address, &["pins.by_place", "51.5,-0.1,1000km"]));
}

#[test]
fn extents_overlap_a_box_or_contain_a_position() {
    let directory = Directory::new();
    let address = filled(&directory);
    let parks = || pins().into_iter().enumerate().filter(|(n, _)| n % 5 == 0);
    let [south, west, north, east] = [-10.0, -60.0, 40.0, 70.0];
    let overlaps = |pin: Pin| {
        let [a, b, c, d] = park(pin);
        a <= north && c >= south && b <= east && d >= west
    };
    let expected: Vec<usize> = parks().filter(|(_, pin)| overlaps(*pin)).map(|(n, _)| n).collect();
    assert!(expected.len() > 3);
    let found = numbers(&address, &["parks.by_extent", "-10,-60,40,70"]);
    assert_eq!(sorted(found), expected);
    for (n, pin) in parks().take(10) {
        let query = format!("{},{}", pin.0 + 1.9, pin.1);
        let contains =
            |pin: Pin, (latitude, longitude): Pin| is_inside((latitude, longitude), park(pin));
        let expected: Vec<usize> = parks()
            .filter(|(_, other)| contains(*other, (pin.0 + 1.9, pin.1)))
            .map(|(n, _)| n)
            .collect();
        assert!(expected.contains(&n));
        assert_eq!(sorted(numbers(&address, &["parks.by_extent", &query])), expected);
    }
}
