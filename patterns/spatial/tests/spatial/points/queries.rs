//! Every query, compared with a filter over all points.

use std::collections::BTreeMap;

use keyloom::{Memory, Store};
use keyloom_spatial::{Area, CellBounds, CellRelation, GeoCell};
use keyloom_spatial::{BoundingBox, Circle, LatLng, Polygon};
use keyloom_tables::Scan;
use proptest::prelude::*;

use super::super::keys::index_of;
use super::fixture::{Places, keys, place, places, position, radius};
use keyloom_testing::laws::{clear, long_property, property};

/// The area of a query. The expected result is computed by an independent formula.
#[derive(Clone, Debug)]
pub enum Asked {
    Circle {
        centre: (f64, f64),
        radius: f64,
    },
    /// A circle through one of the points.
    Through {
        centre: (f64, f64),
        point: prop::sample::Index,
    },
    Box {
        south_west: (f64, f64),
        north_east: (f64, f64),
    },
    /// A star-shaped polygon around a centre.
    Star {
        middle: (f64, f64),
        rays: Vec<f64>,
    },
}

pub fn asked() -> impl Strategy<Value = Asked> {
    let star = ((-60.0..60.0, -180.0..180.0), prop::collection::vec(0.1..29.0, 3..12));
    prop_oneof![
        4 => (place(), radius()).prop_map(|(centre, radius)| Asked::Circle { centre, radius }),
        1 => (place(), any::<prop::sample::Index>())
            .prop_map(|(centre, point)| Asked::Through { centre, point }),
        3 => (place(), place()).prop_map(|(a, b)| Asked::Box {
            south_west: (a.0.min(b.0), a.1),
            north_east: (a.0.max(b.0), b.1),
        }),
        2 => star.prop_map(|(middle, rays)| Asked::Star { middle, rays }),
    ]
}

fn star((latitude, longitude): (f64, f64), rays: &[f64]) -> Vec<(f64, f64)> {
    let corner = |(number, length): (usize, &f64)| {
        let angle = number as f64 / rays.len() as f64 * std::f64::consts::TAU;
        (latitude + length * angle.sin(), longitude + length * angle.cos())
    };
    let mut ring: Vec<_> = rays.iter().enumerate().map(corner).collect();
    ring.push(ring[0]);
    ring
}

/// Whether a ray to the east crosses the ring an odd number of times, on a sphere that wraps
/// around.
fn is_in_ring(ring: &[(f64, f64)], position: &LatLng) -> bool {
    let crossings = |longitude: f64| {
        let crosses = |edge: &&[(f64, f64)]| {
            let [(y1, x1), (y2, x2)] = [edge[0], edge[1]];
            let y = position.latitude();
            (y1 > y) != (y2 > y) && longitude < x1 + (x2 - x1) * (y - y1) / (y2 - y1)
        };
        ring.windows(2).filter(crosses).count()
    };
    [-360.0, 0.0, 360.0].iter().any(|turn| crossings(position.longitude() + turn) % 2 == 1)
}

fn is_in_box(south_west: (f64, f64), north_east: (f64, f64), at: &LatLng) -> bool {
    let ((south, west), (north, east)) = (south_west, north_east);
    let is_high = south <= at.latitude() && at.latitude() <= north;
    // Going east from the western edge, the position is reached before the eastern edge.
    let way = |to: f64| (to - west).rem_euclid(360.0);
    let longitude = at.longitude();
    let is_between = east - west >= 360.0
        || way(longitude) <= way(east)
        || longitude == position((0.0, east)).longitude();
    is_high && (is_between || at.latitude().abs() == 90.0)
}

/// The area, and the numbers of the points in it.
pub fn expected(asked: &Asked, points: &[(f64, f64)]) -> Option<(Box<dyn Area>, Vec<u32>)> {
    let positions: Vec<LatLng> = points.iter().map(|place| position(*place)).collect();
    let numbers = |is_in: &dyn Fn(&LatLng) -> bool| {
        (0..).zip(&positions).filter(|(_, at)| is_in(at)).map(|(number, _)| number).collect()
    };
    let within = |centre: (f64, f64), radius: f64| {
        let centre = position(centre);
        let circle: Box<dyn Area> = Box::new(Circle::new(centre, radius).unwrap());
        Some((circle, numbers(&|at| centre.distance(at) <= radius)))
    };
    match asked {
        Asked::Circle { centre, radius } => within(*centre, *radius),
        Asked::Through { centre, point } => {
            let point = (!points.is_empty()).then(|| *point.get(points))?;
            within(*centre, position(*centre).distance(&position(point)))
        }
        Asked::Box { south_west, north_east } => {
            let ((south, west), (north, east)) = (*south_west, *north_east);
            let area = BoundingBox::wrapping(south, west, north, east).unwrap();
            Some((Box::new(area), numbers(&|at| is_in_box(*south_west, *north_east, at))))
        }
        Asked::Star { middle, rays } => {
            let ring = star(*middle, rays);
            let area = Polygon::new(&ring).ok()?;
            Some((Box::new(area), numbers(&|at| is_in_ring(&ring, at))))
        }
    }
}

fn look(places: &Places, store: &impl Store, points: &[(f64, f64)], asked: &Asked, ranges: usize) {
    let Some((area, wanted)) = expected(asked, points) else { return };
    let snapshot = store.snapshot().unwrap();
    let query = || places.index.within(&*area).in_ranges(ranges).unwrap();
    let mut found = query().points(&snapshot).unwrap();
    assert_eq!(keys(found.by_ref(), |point| point.record_key()), wanted, "{asked:?}");
    let explain = found.explain();
    assert!(explain.planned <= ranges as u64, "{explain}");
    assert_eq!(explain.keys_returned, wanted.len() as u64);
    assert_eq!(query().count(&snapshot).unwrap(), wanted.len() as u64);

    let odd = |key: &u32| index_of(*key) % 2 == 1;
    let found = query().only(&odd).points(&snapshot).unwrap();
    let wanted_odd: Vec<u32> = wanted.iter().copied().filter(|n| n % 2 == 1).collect();
    assert_eq!(keys(found, |point| point.record_key()), wanted_odd);

    let from = position(points.first().copied().unwrap_or((3.0, 4.0)));
    let nearest = query().by_distance(&snapshot, from).unwrap();
    let found: Vec<(f64, u32)> = nearest
        .map(|near| near.map(|near| (near.distance(), near.record_key().unwrap())).unwrap())
        .collect();
    assert!(found.is_sorted_by(|a, b| a.0 <= b.0), "{found:?}");
    for (distance, key) in &found {
        assert_eq!(*distance, from.distance(&position(points[index_of(*key) as usize])));
    }
    assert_eq!(
        keys(found.into_iter().map(Ok), |(_, key)| Ok(key)),
        wanted,
        "by distance: {asked:?}"
    );
}

fn nearest(places: &Places, store: &impl Store, points: &[(f64, f64)], from: (f64, f64), k: usize) {
    let from = position(from);
    let mut wanted: Vec<f64> =
        points.iter().map(|place| from.distance(&position(*place))).collect();
    wanted.sort_unstable_by(f64::total_cmp);
    wanted.truncate(k);
    let snapshot = store.snapshot().unwrap();
    let found: Vec<f64> = places
        .index
        .nearest(&snapshot, from)
        .unwrap()
        .take(k)
        .map(|near| near.unwrap().distance())
        .collect();
    assert_eq!(found, wanted, "nearest to {from}");
}

pub fn every_query_finds_what_a_look_at_all_points_finds(store: &impl Store) {
    let queries = prop::collection::vec((asked(), 1_usize..24), 8);
    long_property((places(40), queries, place(), 0_usize..60), |(points, queries, from, k)| {
        clear(store);
        let places = Places::new();
        places.put(store, &points);
        for (asked, ranges) in &queries {
            look(&places, store, &points, asked, *ranges);
        }
        nearest(&places, store, &points, from, k);
    });
}

/// A centre, and a point on the circle. Either the two are on one parallel, on both sides of the
/// antimeridian, or on both sides of an edge of a cell. Or the point is where a circle near a pole
/// touches a meridian.
fn touching() -> impl Strategy<Value = [(f64, f64); 2]> {
    let edge = prop::sample::select(vec![180.0, -180.0, 90.0, 45.0, 0.0, 11.25]);
    let small = (-9.0..0.5_f64).prop_map(|exponent| 10_f64.powf(exponent));
    let latitude = prop_oneof![Just(0.0), -80.0..80.0, Just(60.0)];
    let parallel = (edge, small.clone(), latitude, any::<bool>()).prop_map(
        |(longitude, way, latitude, is_west)| {
            let other = if is_west { longitude - way } else { longitude + way };
            [(latitude, other), (latitude, longitude)]
        },
    );
    // The tangent point of a meridian some degrees away is slightly nearer to the pole.
    let at_pole = (small, 0.1..89.9_f64, -180.0..180.0).prop_map(|(off, way, longitude)| {
        let latitude = 90.0 - off;
        let touched = (latitude.to_radians().tan() / f64::cos(way.to_radians())).atan();
        [(latitude, longitude), (touched.to_degrees().min(90.0), longitude + way)]
    });
    prop_oneof![parallel, at_pole]
}

#[test]
fn circles_contain_the_points_that_they_end_at() {
    property(prop::collection::vec(touching(), 40), |pairs| {
        let (store, places) = (Memory::new(), Places::new());
        let points: Vec<(f64, f64)> = pairs.iter().map(|[_, point]| *point).collect();
        places.put(&store, &points);
        let snapshot = store.snapshot().unwrap();
        for [centre, point] in pairs {
            let centre = position(centre);
            let radius = centre.distance(&position(point));
            let within = |at: &(f64, f64)| centre.distance(&position(*at)) <= radius;
            let wanted: Vec<u32> =
                (0..).zip(&points).filter(|(_, at)| within(at)).map(|(key, _)| key).collect();
            let circle = Circle::new(centre, radius).unwrap();
            let found =
                places.index.within(circle).in_ranges(9).unwrap().points(&snapshot).unwrap();
            assert_eq!(keys(found, |point| point.record_key()), wanted, "{circle:?}");
            let nearest = places.index.nearest(&snapshot, centre).unwrap().take(3);
            let nearest: Vec<f64> = nearest.map(|near| near.unwrap().distance()).collect();
            let mut all: Vec<f64> =
                points.iter().map(|at| centre.distance(&position(*at))).collect();
            all.sort_unstable_by(f64::total_cmp);
            assert_eq!(nearest, all[..3]);
        }
    });
}

/// Ten thousand queries.
#[test]
fn queries_are_exact_wherever_they_are() {
    let queries = prop::collection::vec((asked(), 1_usize..10), 40);
    property((places(60), queries, place()), |(points, queries, from)| {
        let (store, places) = (Memory::new(), Places::new());
        places.put(&store, &points);
        for (asked, ranges) in &queries {
            look(&places, &store, &points, asked, *ranges);
        }
        nearest(&places, &store, &points, from, points.len());
    });
}

/// A circle on a flat map that ends at ±180 degrees.
struct Flat(Circle);

impl Area for Flat {
    fn contains(&self, position: &LatLng) -> bool {
        self.0.contains(position)
    }

    fn relation(&self, cell: &CellBounds) -> CellRelation {
        let centre = self.0.centre();
        let degrees = (self.0.radius() / 111_000.0 * 1.1).min(180.0);
        let is_off = cell.south > centre.latitude() + degrees
            || cell.north < centre.latitude() - degrees
            || cell.west > centre.longitude() + degrees
            || cell.east < centre.longitude() - degrees;
        if is_off { CellRelation::Outside } else { CellRelation::Across }
    }
}

#[test]
fn area_cut_at_the_antimeridian_or_at_a_pole_is_noticed() {
    let (store, places) = (Memory::new(), Places::new());
    places.put(&store, &[(10.0, 179.9), (10.0, -179.9), (89.0, 0.0), (89.0, 90.0)]);
    let snapshot = store.snapshot().unwrap();
    let count = |area: &dyn Area| places.index.within(area).count(&snapshot).unwrap();
    for centre in [(10.0, 180.0 - 1e-9), (89.5, 45.0)] {
        let circle = Circle::new(position(centre), 170_000.0).unwrap();
        assert_eq!(count(&circle), 2);
        assert_eq!(count(&Flat(circle)), 1 - u64::from(centre.0 > 80.0));
    }
}

pub fn pages_join_to_the_whole(store: &impl Store) {
    long_property((places(30), asked(), 1_usize..7), |(points, asked, limit)| {
        clear(store);
        let places = Places::new();
        places.put(store, &points);
        let Some((area, wanted)) = expected(&asked, &points) else { return };
        let snapshot = store.snapshot().unwrap();
        let from = position((1.0, 2.0));
        let (mut after, mut paged) = (None, Vec::new());
        loop {
            let page = places.index.within(&*area).page(&snapshot, limit, after.as_ref()).unwrap();
            assert!(page.items.len() <= limit);
            assert!(page.items.len() == limit || page.next.is_none());
            paged.extend(page.items.iter().map(|point| point.record_key().unwrap()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let whole = places.index.within(&*area).points(&snapshot).unwrap();
        let whole: Vec<u32> = whole.map(|point| point.unwrap().record_key().unwrap()).collect();
        assert_eq!(paged, whole);

        let (mut after, mut paged) = (None, Vec::new());
        loop {
            let query = places.index.within(&*area);
            let page = query.page_by_distance(&snapshot, from, limit, after.as_ref()).unwrap();
            assert!(page.items.len() == limit || page.next.is_none());
            paged.extend(
                page.items.iter().map(|near| (near.distance(), near.record_key().unwrap())),
            );
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let whole = places.index.within(&*area).by_distance(&snapshot, from).unwrap();
        let whole: Vec<(f64, u32)> = whole
            .map(|near| near.map(|near| (near.distance(), near.record_key().unwrap())).unwrap())
            .collect();
        assert_eq!(paged, whole);
        assert_eq!(keys(paged.into_iter().map(Ok), |(_, key)| Ok(key)), wanted);
    });
}

pub fn grids_count_what_a_look_at_all_points_counts(store: &impl Store) {
    long_property((places(40), asked(), 0_u32..=64), |(points, asked, bits)| {
        clear(store);
        let places = Places::new();
        places.put(store, &points);
        let Some((area, wanted)) = expected(&asked, &points) else { return };
        let mut counts = BTreeMap::<GeoCell, u64>::new();
        for key in wanted {
            *counts
                .entry(GeoCell::of(&position(points[key as usize]), bits).unwrap())
                .or_default() += 1;
        }
        let snapshot = store.snapshot().unwrap();
        let grid = places.index.within(&*area).grid(&snapshot, bits).unwrap();
        let found: Vec<(GeoCell, u64)> = grid.map(Result::unwrap).collect();
        assert_eq!(found, counts.clone().into_iter().collect::<Vec<_>>());
        // The points that a fold passes are those of the cell, in code order.
        let folded = places.index.within(&*area);
        let folded = folded.fold_grid(&snapshot, bits, |keys: &mut Vec<u32>, point| {
            keys.push(point.record_key()?);
            Ok(())
        });
        let folded: Vec<(GeoCell, Vec<u32>)> = folded.unwrap().map(Result::unwrap).collect();
        let joined = folded.iter().flat_map(|(_, keys)| keys.iter().copied());
        let points_of = places.index.within(&*area).points(&snapshot).unwrap();
        assert!(points_of.map(|point| point.unwrap().record_key().unwrap()).eq(joined));
        let sizes = folded.iter().map(|(cell, keys)| (*cell, keys.len() as u64));
        assert!(sizes.eq(counts.iter().map(|(cell, count)| (*cell, *count))));
        let occupied = places.index.within(&*area).occupied(&snapshot, bits).unwrap();
        assert!(occupied.map(Result::unwrap).eq(counts.keys().copied()));
        for cell in counts.keys() {
            let there = places.index.in_cell(&snapshot, *cell).unwrap();
            let wanted: Vec<u32> = (0..)
                .zip(&points)
                .filter(|(_, place)| GeoCell::of(&position(**place), bits).unwrap() == *cell)
                .map(|(key, _)| key)
                .collect();
            assert_eq!(keys(there, |point| point.record_key()), wanted);
            let there = places.index.within(cell).points(&snapshot).unwrap();
            assert_eq!(keys(there, |point| point.record_key()), wanted);
        }
    });
}

#[test]
fn an_error_of_a_fold_ends_the_walk() {
    let (store, places) = (Memory::new(), Places::new());
    places.put(&store, &[(1.0, 1.0), (2.0, 2.0), (50.0, 50.0)]);
    let snapshot = store.snapshot().unwrap();
    let everywhere = places.index.within(GeoCell::WORLD);
    let mut cells = everywhere
        .fold_grid(&snapshot, 8, |_: &mut (), point| match point.position().latitude() {
            50.0 => Err(keyloom::Error::other("no")),
            _ => Ok(()),
        })
        .unwrap();
    assert!(cells.next().unwrap().is_ok());
    assert!(cells.next().unwrap().is_err());
    assert!(cells.next().is_none());
}

#[test]
fn occupied_cells_cost_a_seek_each_however_full_they_are() {
    let (store, places) = (Memory::new(), Places::new());
    // Four dense clusters.
    let cloud =
        |n: u32| (f64::from(n % 2) * 40.0 + f64::from(n) * 1e-4, f64::from(n / 2 % 2) * 90.0);
    places.put(&store, &(0..2_000).map(cloud).collect::<Vec<_>>());
    let snapshot = store.snapshot().unwrap();
    let everywhere = keyloom_spatial::GeoCell::WORLD;
    let mut cells = places.index.within(everywhere).occupied(&snapshot, 12).unwrap();
    assert_eq!(cells.by_ref().map(Result::unwrap).count(), 4);
    let explain = cells.explain();
    assert!(explain.ranges <= 5 && explain.keys_scanned <= 4 * 18, "{explain}");
}

#[test]
fn polygons_with_holes_span_the_antimeridian_and_a_pole() {
    let ring = |points: &[(f64, f64)]| points.to_vec();
    let square = |south: f64, west: f64, size: f64| {
        let (north, east) = (south + size, west + size);
        ring(&[(south, west), (south, east), (north, east), (north, west), (south, west)])
    };
    let atoll = Polygon::new(&square(-20.0, 170.0, 20.0))
        .unwrap()
        .with_hole(&square(-12.0, 178.0, 4.0))
        .unwrap();
    let cap = Polygon::new(&ring(&[
        (80.0, -180.0),
        (80.0, 180.0),
        (90.0, 180.0),
        (90.0, -180.0),
        (80.0, -180.0),
    ]))
    .unwrap();
    let points = [
        (-10.0, 180.0),
        (-15.0, -175.0),
        (-15.0, 175.0),
        (-15.0, 160.0),
        (85.0, 10.0),
        (90.0, 0.0),
        (79.0, 0.0),
    ];
    let (store, places) = (Memory::new(), Places::new());
    places.put(&store, &points);
    let snapshot = store.snapshot().unwrap();
    let found = |area: &Polygon| {
        keys(places.index.within(area).points(&snapshot).unwrap(), |point| point.record_key())
    };
    assert_eq!(found(&atoll), [1, 2]);
    assert_eq!(found(&cap), [4, 5]);
    assert_eq!(found(&Polygon::from_geo(atoll.as_geo().clone()).unwrap()), [1, 2]);
}
