//! A query reads exactly the parts that its explanation lists.

use std::cell::Cell;
use std::collections::HashSet;

use keyloom::{Memory, Store, Subspace};
use keyloom_spatial::{Area, CellBounds, CellRelation, CoverPart, GeoCell};
use keyloom_spatial::{BoundingBox, Circle, LatLng, PointIndex, Polygon};
use keyloom_tables::{Scan, Table};

type Degrees = (f64, f64);

fn by_position() -> PointIndex<u32, Degrees> {
    PointIndex::new(&Subspace::new("by_position"), |_, (latitude, longitude)| {
        LatLng::new(*latitude, *longitude).map(Some)
    })
}

/// Positions all over the sphere, and some near the poles and the antimeridian.
fn places() -> Vec<LatLng> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut place = |latitude: f64, longitude: f64, spread: f64| {
        let off = |random: &mut fastrand::Rng| (random.f64() - 0.5) * 2.0 * spread;
        let latitude = (latitude + off(&mut random)).clamp(-90.0, 90.0);
        LatLng::wrapping(latitude, longitude + off(&mut random)).unwrap()
    };
    let mut places = Vec::new();
    for _ in 0..600 {
        places.push(place(0.0, 0.0, 180.0));
        places.push(place(-18.0, 180.0, 15.0));
        places.push(place(90.0, 0.0, 12.0));
        places.push(place(48.0, 8.0, 4.0));
    }
    places
}

fn areas() -> Vec<Box<dyn Area>> {
    let circle = |latitude, longitude, radius| {
        Circle::new(LatLng::new(latitude, longitude).unwrap(), radius).unwrap()
    };
    let ring = [(46.0, 6.0), (48.0, 7.0), (47.0, 10.0), (46.0, 6.0)];
    vec![
        Box::new(circle(-18.1, 178.4, 900_000.0)),
        Box::new(circle(88.0, 15.0, 700_000.0)),
        Box::new(circle(48.0, 8.0, 0.0)),
        Box::new(BoundingBox::new(-25.0, 170.0, -10.0, -170.0).unwrap()),
        Box::new(BoundingBox::new(80.0, -180.0, 90.0, 180.0).unwrap()),
        Box::new(Polygon::new(&ring).unwrap()),
        Box::new(GeoCell::WORLD),
    ]
}

fn code(place: &LatLng) -> u64 {
    *GeoCell::of(place, u64::BITS).unwrap().codes().start()
}

fn part_of<'p>(parts: &'p [CoverPart], place: &LatLng) -> Option<&'p CoverPart> {
    let code = code(place);
    let begun = parts.partition_point(|part| *part.codes().start() <= code);
    parts.get(begun.checked_sub(1)?).filter(|part| part.codes().contains(&code))
}

fn ranges_of(parts: &[CoverPart]) -> usize {
    parts.last().map_or(0, |last| last.range() + 1)
}

const BUDGETS: [usize; 4] = [1, 4, 16, 256];

#[test]
fn parts_are_ordered_and_no_range_begins_or_ends_with_a_gap() {
    for area in areas() {
        for budget in BUDGETS {
            let query = by_position().within(&*area).in_ranges(budget).unwrap();
            let parts = query.cover_parts();
            for pair in parts.windows(2) {
                let (this, next) = (&pair[0], &pair[1]);
                assert!(this.codes().end() < next.codes().start());
                let is_gap = |part: &CoverPart| part.relation() == CellRelation::Outside;
                if this.range() == next.range() {
                    assert_eq!(this.codes().end() + 1, *next.codes().start(), "no hole");
                    assert!(!is_gap(this) || !is_gap(next));
                } else {
                    assert_eq!(this.range() + 1, next.range());
                    assert!(!is_gap(this) && !is_gap(next));
                }
            }
            assert!(ranges_of(&parts) <= budget);
        }
    }
}

#[test]
fn the_cells_of_a_part_are_all_of_it_and_the_largest_that_fit() {
    for area in areas() {
        for part in by_position().within(&*area).cover_parts() {
            let cells: Vec<GeoCell> = part.cells().collect();
            assert_eq!(
                cells.first().map(|cell| *cell.codes().start()),
                Some(*part.codes().start())
            );
            assert_eq!(cells.last().map(|cell| *cell.codes().end()), Some(*part.codes().end()));
            for pair in cells.windows(2) {
                assert_eq!(pair[0].codes().end() + 1, *pair[1].codes().start());
                assert!(pair[0].parent() != pair[1].parent(), "both halves, not the whole");
            }
        }
    }
}

#[test]
fn relation_of_each_part_is_right_and_parts_cover_the_area() {
    let places = places();
    let mut seen = HashSet::new();
    for area in areas() {
        for budget in BUDGETS {
            let query = by_position().within(&*area).in_ranges(budget).unwrap();
            let parts = query.cover_parts();
            for place in &places {
                let relation = part_of(&parts, place).map(CoverPart::relation);
                match relation {
                    None | Some(CellRelation::Outside) => assert!(!area.contains(place), "{place}"),
                    Some(CellRelation::Inside) => assert!(area.contains(place), "{place}"),
                    Some(CellRelation::Across) => {}
                }
                seen.insert(format!("{relation:?}"));
            }
        }
    }
    assert_eq!(seen.len(), 4, "none, gap, across, inside");
}

/// An area that counts how many cells are compared with it.
struct Counted<A>(A, Cell<usize>);

impl<A: Area> Area for Counted<A> {
    fn contains(&self, position: &LatLng) -> bool {
        self.0.contains(position)
    }

    fn relation(&self, cell: &CellBounds) -> CellRelation {
        self.1.set(self.1.get() + 1);
        self.0.relation(cell)
    }

    fn bounds(&self) -> BoundingBox {
        self.0.bounds()
    }
}

/// A cover that begins with the whole sphere compares two cells for each of the 40 bits that the
/// codes of a circle of 1 km share.
#[test]
fn a_cover_compares_few_cells_however_small_its_area() {
    // The last three are where large cells meet.
    for (latitude, longitude) in
        [(48.1, 11.6), (-33.9, 151.2), (0.0, 0.0), (45.0, 0.0), (0.0, -90.0)]
    {
        for (metres, ranges) in [(1.0, 2), (1_000.0, 2), (100_000.0, 2), (1.0, 16), (1_000.0, 16)] {
            let circle = Circle::new(LatLng::new(latitude, longitude).unwrap(), metres).unwrap();
            let area = Counted(circle, Cell::new(0));
            let index = by_position();
            let query = index.within(&area).in_ranges(ranges).unwrap();
            let parts = query.cover_parts().len();
            let most = 10 * ranges;
            assert!(area.1.get() <= most, "{} cells for {parts} parts", area.1.get());
        }
    }
}

#[test]
fn a_query_reads_its_parts_and_nothing_else() {
    let (index, store) = (by_position(), Memory::new());
    let table = Table::<u32, Degrees>::new(&Subspace::new("places")).with(&index);
    let places = places();
    let records = (0..).zip(places.iter().map(|place| (place.latitude(), place.longitude())));
    store.transact(|txn| table.put_many(txn, records.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut gaps = 0;
    for area in areas() {
        for budget in BUDGETS {
            let query = index.within(&*area).in_ranges(budget).unwrap();
            let parts = query.cover_parts();
            let kind = |place: &LatLng| part_of(&parts, place).map(CoverPart::relation);
            let count = |taken: &dyn Fn(CellRelation) -> bool| {
                places.iter().filter(|place| kind(place).is_some_and(taken)).count() as u64
            };
            let in_gaps = count(&|relation| relation == CellRelation::Outside);
            let inside = count(&|relation| relation == CellRelation::Inside);
            let all = count(&|_| true);
            let found = places.iter().filter(|place| area.contains(place)).count() as u64;
            let mut points = query.points(&snapshot).unwrap();
            points.by_ref().try_for_each(|point| point.map(drop)).unwrap();
            // Gaps may be skipped by seeks.
            let scanned = points.explain().keys_scanned;
            assert!((inside.max(found)..=all).contains(&scanned), "{scanned} of {all}");
            assert_eq!(points.explain().planned, ranges_of(&parts) as u64);
            gaps += in_gaps;
        }
    }
    assert!(gaps > 0, "no query had a gap");
}
