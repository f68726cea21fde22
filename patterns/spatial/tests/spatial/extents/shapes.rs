//! Queries by circles and polygons, compared with a decision about each extent: a distance computed
//! with vectors, and the relation of two flat shapes by the crate `geo`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use geo::{Area as _, Coord, Geometry, Line, LineString, Point, Rect, Relate};
use keyloom::{Memory, Store};
use keyloom_spatial::{
    Area, BoundingBox, CellBounds, CellRelation, Circle, LatLng, Polygon, Shape,
};
use keyloom_tables::Continuation;
use proptest::prelude::*;

use super::boxes::{Edges, UNITS, anywhere, degrees, edges, on_every_edge};
use super::fixture::{Things, ids};
use super::vectors::{farthest, nearest};
use keyloom_testing::laws::{long_property, property};

pub fn at(south: i64, west: i64) -> LatLng {
    LatLng::wrapping(degrees(south), degrees(west)).unwrap()
}

/// A circle around a corner of one box, through a corner of another, or slightly larger or smaller.
fn circle() -> impl Strategy<Value = Circle> {
    let scale = prop::sample::select(vec![0.0, 0.5, 0.999_999, 1.0, 1.000_001, 1.5]);
    (edges(), edges(), scale).prop_map(|(centre, through, scale)| {
        let [south, west, ..] = centre.0;
        let [.., north, east] = through.0;
        let centre = at(south, west);
        Circle::new(centre, centre.distance(&at(north, east)) * scale).unwrap()
    })
}

/// Whether a distance is within the radius; `None` if the difference is as small as the rounding.
fn within(radius: f64, distance: f64) -> Option<bool> {
    // Near half of the circumference, a distance has half of the digits.
    let margin = if distance > 19e6 { 1.0 } else { 1e-5 };
    ((distance - radius).abs() > margin).then_some(distance < radius)
}

/// Whether the circle overlaps an extent, and whether it contains it.
fn decided(circle: &Circle, edges: &Edges) -> [Option<bool>; 2] {
    let extent = edges.bounding_box();
    [nearest(&circle.centre(), &extent), farthest(&circle.centre(), &extent)]
        .map(|distance| within(circle.radius(), distance))
}

#[test]
fn circles_and_boxes_are_compared_by_the_distance() {
    let counts = RefCell::new((0, [0; 2], [0; 2]));
    // A circle for each extent: with one circle for all of a case, the shares below would depend on
    // few draws.
    property(prop::collection::vec((circle(), edges()), 200), |pairs| {
        for (circle, edges) in pairs {
            let extent = edges.bounding_box();
            let found = [circle.overlaps(&extent), circle.contains_box(&extent)];
            let (all, seen, open) = &mut *counts.borrow_mut();
            *all += 1;
            for (n, (wanted, found)) in decided(&circle, &edges).into_iter().zip(found).enumerate()
            {
                assert_eq!(wanted.unwrap_or(found), found, "{circle:?} {extent:?}");
                seen[n] += i32::from(found);
                open[n] += i32::from(wanted.is_none());
            }
            let distance = extent.distance(&circle.centre());
            let wanted = nearest(&circle.centre(), &extent);
            let margin = if wanted > 19e6 { 1.0 } else { 1e-5 };
            assert!(
                (distance - wanted).abs() < margin,
                "{distance} {wanted} {circle:?} {extent:?}"
            );
        }
    });
    let (all, seen, open) = counts.into_inner();
    assert!(seen.iter().all(|seen| 5 * seen > all), "{seen:?} of {all} boxes");
    assert!(open.iter().zip(seen).all(|(open, seen)| 10 * open < seen), "{open:?} are not decided");
}

/// The distance to a corner is computed in one way, whatever is compared with it.
#[test]
fn circle_through_the_nearest_corner_of_a_box_touches_it() {
    property((anywhere(), anywhere()), |(from, edges)| {
        let [[south, west, ..], [at_south, at_west, ..]] = [from.0, edges.0];
        let (centre, extent) = (at(south, west), edges.bounding_box());
        let corner = at(at_south, at_west);
        let distance = centre.distance(&corner);
        let circle = Circle::new(centre, distance).unwrap();
        assert!(circle.overlaps(&extent) && extent.distance(&centre) <= distance);
        let point = Edges([at_south, at_west, at_south, at_west]).bounding_box();
        assert!(circle.overlaps(&point) && circle.contains_box(&point));
        assert_eq!(point.distance(&centre), distance);
        assert_eq!(extent.distance(&corner), 0.0);
    });
}

/// A bug in the comparison of a shape with extents.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mutation {
    None,
    /// The bounding box of the shape is compared.
    ByBounds,
    /// Only the corners of the extent are compared.
    ByCorners,
    /// A shape across the antimeridian ends there.
    NoTurn,
}

#[derive(Clone, Debug)]
struct Mutant<A>(A, Mutation);

impl<A: Area> Mutant<A> {
    fn crosses(&self) -> bool {
        let bounds = self.bounds();
        bounds.west() > bounds.east()
    }
}

impl<A: Area> Area for Mutant<A> {
    fn contains(&self, position: &LatLng) -> bool {
        self.0.contains(position)
    }

    fn relation(&self, cell: &CellBounds) -> CellRelation {
        match self.1 {
            Mutation::NoTurn if cell.west == -180.0 && self.crosses() => CellRelation::Outside,
            _ => self.0.relation(cell),
        }
    }

    fn bounds(&self) -> BoundingBox {
        self.0.bounds()
    }
}

impl<A: Shape> Shape for Mutant<A> {
    fn overlaps(&self, extent: &BoundingBox) -> bool {
        match self.1 {
            Mutation::ByBounds => extent.overlaps(&self.bounds()),
            Mutation::ByCorners => corners(extent).any(|corner| self.contains(&corner)),
            _ => self.0.overlaps(extent),
        }
    }

    fn contains_box(&self, extent: &BoundingBox) -> bool {
        match self.1 {
            Mutation::ByBounds => extent.is_inside(&self.bounds()),
            Mutation::ByCorners => corners(extent).all(|corner| self.contains(&corner)),
            _ => self.0.contains_box(extent),
        }
    }
}

fn corners(extent: &BoundingBox) -> impl Iterator<Item = LatLng> + use<> {
    let (south, west, north, east) = (extent.south(), extent.west(), extent.north(), extent.east());
    [(south, west), (south, east), (north, west), (north, east)]
        .map(|(latitude, longitude)| LatLng::new(latitude, longitude).unwrap())
        .into_iter()
}

/// The number of queries by a shape with a wrong result. `decided` decides whether the shape
/// overlaps an extent, and whether it contains it.
fn wrong<A: Shape + Clone>(
    things: &Things,
    store: &impl Store,
    all: &BTreeMap<u16, Edges>,
    (area, ranges): (&A, usize),
    decided: impl Fn(&Edges) -> [Option<bool>; 2],
) -> usize {
    let snapshot = store.snapshot().unwrap();
    let decided: Vec<_> = all.iter().map(|(id, edges)| (id, decided(edges))).collect();
    let queries = [things.index.overlapping(area.clone()), things.index.inside(area.clone())];
    let is_wrong = |(n, query): &(usize, keyloom_spatial::ExtentQuery<'_, u16, A>)| {
        let query = query.clone().in_ranges(ranges).unwrap();
        let found = ids(query.clone().extents(&snapshot).unwrap());
        let odd = |id: &u16| id % 2 == 1;
        let odds = found.iter().filter(|id| odd(id)).count() as u64;
        assert_eq!(query.only(&odd).count(&snapshot).unwrap(), odds);
        decided
            .iter()
            .any(|(id, decided)| decided[*n].is_some_and(|in_it| in_it != found.contains(id)))
    };
    queries.into_iter().enumerate().filter(is_wrong).count()
}

fn ranges() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![1, 7, 16, 64])
}

pub fn circles_find_the_extents_within_the_distance(store: &(impl Store + Clone)) {
    let things = Things::new();
    let circles = prop::collection::vec((circle(), ranges()), 12);
    long_property((prop::collection::vec(edges(), 0..60), circles), |(extents, circles)| {
        let all = things.put(store, &extents);
        for (circle, ranges) in circles {
            let decided = |edges: &Edges| decided(&circle, edges);
            assert_eq!(wrong(&things, store, &all, (&circle, ranges), decided), 0, "{circle:?}");
        }
    });
}

/// The negative controls.
#[test]
fn circles_compared_by_bounds_or_by_corners_are_caught() {
    let (things, store) = (Things::new(), Memory::new());
    let extents: Vec<Edges> = on_every_edge().step_by(101).collect();
    let all = things.put(&store, &extents);
    let circles: Vec<Circle> = on_every_edge()
        .step_by(151)
        .map(|Edges([south, west, north, east])| {
            let centre = at(south, west);
            Circle::new(centre, centre.distance(&at(north, east)) * 0.7 + 1.0).unwrap()
        })
        .collect();
    let wrong = |mutation| -> usize {
        let of_circle = |circle: &Circle| {
            let decided = |edges: &Edges| decided(circle, edges);
            wrong(&things, &store, &all, (&Mutant(*circle, mutation), 16), decided)
        };
        circles.iter().map(of_circle).sum()
    };
    assert_eq!(wrong(Mutation::None), 0);
    for mutation in [Mutation::ByBounds, Mutation::ByCorners, Mutation::NoTurn] {
        let wrong = wrong(mutation);
        assert!(wrong > 10, "{wrong} of {} are wrong with {mutation:?}", 2 * circles.len());
    }
}

/// Corners, latitude first, and boxes in a plane of eight by eight degrees.
type Ring = Vec<(f64, f64)>;

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![6 => (0..=8_i32).prop_map(f64::from), 1 => (0..=32_i32).prop_map(|n| f64::from(n) / 4.0)]
}

fn flat_box() -> impl Strategy<Value = [f64; 4]> {
    (number(), number(), number(), number(), 0..4_u32).prop_map(|(a, b, c, d, flat)| {
        let (height, width) =
            (if flat & 1 == 1 { a } else { c }, if flat & 2 == 2 { b } else { d });
        [a.min(height), b.min(width), a.max(height), b.max(width)]
    })
}

fn polygon() -> impl Strategy<Value = (Ring, Option<Ring>)> {
    let corner = || (number(), number());
    let any = prop::collection::vec(corner(), 3..7);
    let block = (0..=2_i32, 0..=2_i32, 3..=6_i32, 3..=6_i32).prop_map(|(y, x, height, width)| {
        let [y, x, height, width] = [y, x, height, width].map(f64::from);
        vec![(y, x), (y, x + width), (y + height, x + width), (y + height, x)]
    });
    let hole = prop::option::of(prop::collection::vec(corner(), 3..5));
    (prop_oneof![any, block], hole)
}

fn flat((shell, hole): &(Ring, Option<Ring>)) -> geo::Polygon<f64> {
    let ring = |ring: &Ring| -> LineString<f64> {
        ring.iter().map(|(y, x)| Coord { x: *x, y: *y }).collect()
    };
    geo::Polygon::new(ring(shell), hole.iter().map(ring).collect())
}

/// Whether a polygon overlaps a box, and whether it contains it.
fn flat_relation(polygon: &geo::Polygon<f64>, [south, west, north, east]: [f64; 4]) -> [bool; 2] {
    let (low, high) = (Coord { x: west, y: south }, Coord { x: east, y: north });
    let of_box: Geometry<f64> = match (low.x == high.x, low.y == high.y) {
        (true, true) => Point(low).into(),
        (false, false) => Rect::new(low, high).into(),
        _ => Line::new(low, high).into(),
    };
    let relation = Geometry::from(polygon.clone()).relate(&of_box);
    [relation.is_intersects(), relation.is_covers()]
}

/// The plane is moved to these degrees of latitude and longitude. One place is at a pole, two are
/// at the antimeridian.
const PLACES: [(f64, f64); 4] = [(0.0, 0.0), (-3.0, 176.0), (-90.0, -120.0), (82.0, -184.0)];

fn moved(ring: &Ring, (latitude, longitude): (f64, f64)) -> Ring {
    let moved = ring.iter().map(|(y, x)| (y + latitude, x + longitude));
    moved.chain(ring.first().map(|(y, x)| (y + latitude, x + longitude))).collect()
}

pub fn polygons_find_the_extents_that_geo_finds(store: &(impl Store + Clone)) {
    let things = Things::new();
    let [seen, caught] = [0, 0].map(Cell::new);
    let place = prop::sample::select(PLACES.to_vec());
    let polygons = prop::collection::vec((polygon(), ranges()), 24);
    let case = (prop::collection::vec(flat_box(), 1..60), place, polygons);
    long_property(case, |(boxes, (latitude, longitude), polygons)| {
        let units = |degrees: f64| (degrees * UNITS as f64) as i64;
        let of_box = |[south, west, north, east]: [f64; 4]| {
            let latitudes = [south, north].map(|degrees| units(degrees + latitude));
            let longitudes = [west, east].map(|degrees| units(degrees + longitude));
            Edges([latitudes[0], longitudes[0], latitudes[1], longitudes[1]])
        };
        let extents: Vec<Edges> = boxes.iter().map(|flat| of_box(*flat)).collect();
        let all = things.put(store, &extents);
        for ((shell, hole), ranges) in polygons {
            let place = (latitude, longitude);
            let Ok(mut area) = Polygon::new(&moved(&shell, place)) else { continue };
            let hole = hole.filter(|hole| match area.clone().with_hole(&moved(hole, place)) {
                Ok(holed) => {
                    area = holed;
                    true
                }
                Err(_) => false,
            });
            let flat = flat(&(shell, hole));
            // The relation of `geo` is undefined for a polygon that is only a line.
            if flat.unsigned_area() == 0.0 {
                continue;
            }
            let decided = |edges: &Edges| {
                let of_flat = boxes.iter().find(|flat| of_box(**flat) == *edges).unwrap();
                at_poles(&area, edges, flat_relation(&flat, *of_flat)).map(Some)
            };
            seen.set(seen.get() + 1);
            assert_eq!(wrong(&things, store, &all, (&area, ranges), decided), 0, "{area:?}");
            let mutant = Mutant(area.clone(), Mutation::ByBounds);
            caught.set(caught.get() + wrong(&things, store, &all, (&mutant, ranges), decided));
        }
    });
    let (seen, caught) = (seen.get(), caught.get());
    assert!(4 * caught > seen, "{caught} of {seen} bounding boxes of polygons are caught");
}

/// A pole has all longitudes.
fn at_poles(area: &Polygon, edges: &Edges, [overlaps, contains]: [bool; 2]) -> [bool; 2] {
    let (extent, bounds) = (edges.bounding_box(), area.bounds());
    let have_pole = extent.north() == 90.0 && bounds.north() == 90.0
        || extent.south() == -90.0 && bounds.south() == -90.0;
    let is_pole = extent.south() == 90.0 || extent.north() == -90.0;
    [overlaps || have_pole, if is_pole { have_pole } else { contains }]
}

#[test]
fn polygon_of_all_longitudes_has_the_boxes_across_its_ends() {
    // The ends of the ring are at 20 degrees.
    let ring = [(50.0, 20.0), (50.0, 380.0), (90.0, 380.0), (90.0, 20.0), (50.0, 20.0)];
    let north = Polygon::new(&ring).unwrap();
    let extent = |south, west, north, east| BoundingBox::new(south, west, north, east).unwrap();
    let inside = [
        extent(60.0, 10.0, 70.0, 30.0),
        extent(60.0, 20.0, 70.0, 30.0),
        extent(60.0, 10.0, 70.0, 20.0),
        extent(60.0, -180.0, 90.0, 180.0),
        extent(50.0, 170.0, 60.0, -170.0),
        extent(60.0, 30.0, 70.0, 10.0),
        extent(90.0, 3.0, 90.0, 4.0),
    ];
    for extent in inside {
        assert!(north.contains_box(&extent) && north.overlaps(&extent), "{extent:?}");
    }
    for extent in [extent(49.9, 10.0, 70.0, 30.0), extent(0.0, -180.0, 50.0, 180.0)] {
        assert!(!north.contains_box(&extent) && north.overlaps(&extent), "{extent:?}");
    }
    assert!(!north.overlaps(&extent(0.0, -180.0, 49.9, 180.0)));
    // A hole on both sides of the ends.
    let [east, west] = [(20.0, 25.0), (375.0, 380.0)]
        .map(|(west, east)| [(60.0, west), (60.0, east), (65.0, east), (65.0, west), (60.0, west)]);
    let holed = north.with_hole(&east.map(|(y, x)| (y, x + 1.0))).unwrap();
    let holed = holed.with_hole(&west.map(|(y, x)| (y, x - 1.0))).unwrap();
    assert!(holed.contains_box(&extent(60.0, 19.0, 65.0, 21.0)));
    assert!(!holed.contains_box(&extent(60.0, 18.9, 65.0, 21.0)));
    assert!(!holed.contains_box(&extent(60.0, 19.0, 65.0, 21.1)));
}

/// A continuation belongs to the shape; the pages join to the result.
pub fn pages_by_a_shape_join_to_the_whole(store: &(impl Store + Clone)) {
    let things = Things::new();
    things.put(store, &on_every_edge().step_by(101).collect::<Vec<_>>());
    let snapshot = store.snapshot().unwrap();
    let circle = Circle::new(at(0, 179 * UNITS), 4_000_000.0).unwrap();
    let all = ids(things.index.overlapping(circle).extents(&snapshot).unwrap());
    let (mut joined, mut after) = (Vec::new(), None::<Continuation>);
    for ranges in (1..).step_by(5) {
        let query = things.index.overlapping(&circle).in_ranges(ranges).unwrap();
        let page = query.page(&snapshot, 7, after.as_ref()).unwrap();
        joined.extend(page.items.iter().map(|extent| extent.record_key().unwrap()));
        after = page.next;
        let Some(after) = &after else { break };
        let other = things.index.inside(circle).page(&snapshot, 7, Some(after));
        assert!(matches!(other, Err(keyloom::Error::InvalidArgument { .. })));
    }
    joined.sort_unstable();
    assert!(joined == all && all.len() > 20, "{} extents", all.len());
}
