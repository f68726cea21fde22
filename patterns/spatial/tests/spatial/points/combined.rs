//! Intersections, unions and differences of areas, compared with a filter over all points.

use keyloom::{Memory, Store};
use keyloom_spatial::{Area, BoundingBox, Circle, GeoCell, LatLng};
use keyloom_tables::Scan;
use proptest::prelude::*;

use super::fixture::{Places, keys, place, places, position, radius};
use keyloom_testing::laws::property;

/// An area with an independent test.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Circle((f64, f64), f64),
    Box((f64, f64), (f64, f64)),
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        (place(), radius()).prop_map(|(centre, radius)| Asked::Circle(centre, radius)),
        (place(), place()).prop_map(|(a, b)| Asked::Box((a.0.min(b.0), a.1), (a.0.max(b.0), b.1))),
    ]
}

impl Asked {
    fn area(&self) -> Box<dyn Area> {
        match *self {
            Self::Circle(centre, radius) => {
                Box::new(Circle::new(position(centre), radius).unwrap())
            }
            Self::Box((south, west), (north, east)) => {
                Box::new(BoundingBox::wrapping(south, west, north, east).unwrap())
            }
        }
    }

    fn has(&self, at: &LatLng) -> bool {
        match *self {
            Self::Circle(centre, radius) => position(centre).distance(at) <= radius,
            Self::Box(..) => self.area().contains(at),
        }
    }
}

#[test]
fn combined_areas_find_what_a_filter_finds() {
    let queries = prop::collection::vec((asked(), asked()), 12);
    property((places(40), queries, place()), |(points, queries, from)| {
        let (store, all) = (Memory::new(), Places::new());
        all.put(&store, &points);
        let snapshot = store.snapshot().unwrap();
        let check = |area: &dyn Area, has: &dyn Fn(&LatLng) -> bool| {
            let is_in = |(_, place): &(u32, &(f64, f64))| has(&position(**place));
            let wanted: Vec<u32> = (0..).zip(&points).filter(is_in).map(|(key, _)| key).collect();
            let found = all.index.within(area).points(&snapshot).unwrap();
            assert_eq!(keys(found, |point| point.record_key()), wanted);
            let near = all.index.within(area).by_distance(&snapshot, position(from)).unwrap();
            assert_eq!(keys(near, |near| near.record_key()), wanted);
        };
        for (a, b) in queries {
            check(&a.area().intersection(b.area()), &|at| a.has(at) && b.has(at));
            check(&a.area().union(b.area()), &|at| a.has(at) || b.has(at));
            check(&a.area().difference(b.area()), &|at| a.has(at) && !b.has(at));
        }
    });
}

#[test]
fn nearest_beyond_a_minimum_distance_skip_the_middle() {
    let (store, all) = (Memory::new(), Places::new());
    let points: Vec<_> =
        (0..40_000).map(|n| (f64::from(n / 200) * 0.1, f64::from(n % 200) * 0.1)).collect();
    all.put(&store, &points);
    let snapshot = store.snapshot().unwrap();
    let from = position((10.0, 10.0));
    let far = |metres| Circle::new(from, metres).unwrap();
    let ring = far(700_000.0).difference(far(500_000.0));
    let mut near = all.index.within(ring).by_distance(&snapshot, from).unwrap();
    let found: Vec<f64> = near.by_ref().take(20).map(|near| near.unwrap().distance()).collect();
    let distance = |at: &(f64, f64)| from.distance(&position(*at));
    let mut wanted: Vec<f64> = points.iter().map(distance).filter(|at| *at > 500_000.0).collect();
    wanted.sort_unstable_by(f64::total_cmp);
    assert_eq!(found, wanted[..20]);
    // About 6,400 points are nearer.
    assert!(near.explain().keys_scanned < 2_500, "{}", near.explain());
}

#[test]
fn farthest_points_are_the_nearest_to_the_antipode() {
    property((places(40), place()), |(points, from)| {
        let (store, all) = (Memory::new(), Places::new());
        all.put(&store, &points);
        let snapshot = store.snapshot().unwrap();
        let from = position(from);
        assert!(from.antipode().antipode().distance(&from) < 1e-6);
        let half = from.distance(&from.antipode());
        let farthest = all.index.within(GeoCell::WORLD).by_distance(&snapshot, from.antipode());
        let mut before = f64::INFINITY;
        for near in farthest.unwrap() {
            let near = near.unwrap();
            let distance = from.distance(&near.position());
            // Near half the circumference, a distance has an error of some centimetres.
            assert!(distance <= before + 0.5 && (half - distance - near.distance()).abs() < 0.5);
            before = distance;
        }
    });
}
