//! Faults and bad input.

use keyloom::{Error, Fault, Faulty, Reader, Store, Subspace};
use keyloom_spatial::GeoCell;
use keyloom_spatial::{BoundingBox, Circle, PointIndex, Polygon};
use keyloom_tables::Schema;

use super::fixture::{Place, Places, as_position, position};
use keyloom_testing::laws::{clear, refused};

const PLACES: [(f64, f64); 4] = [(1.0, 2.0), (3.0, 4.0), (5.0, 6.0), (90.0, 0.0)];

pub fn a_fault_while_reading_ends_a_query(store: &(impl Store + Clone)) {
    clear(store);
    let places = Places::new();
    let many: Vec<(f64, f64)> = (0..60).map(|n| (f64::from(n % 8), f64::from(n / 8))).collect();
    places.put(store, &many);
    let faulty = Faulty::new(store.clone());
    let circle = Circle::new(position((4.0, 4.0)), 350_000.0).unwrap();
    let mut failures = [0; 2];
    for n in 0..400 {
        let snapshot = faulty.snapshot().unwrap();
        faulty.fail_at(n, Fault::Error);
        let points = places.index.within(circle).points(&snapshot);
        let ends: Vec<bool> =
            points.map_or(vec![false], |points| points.map(|point| point.is_ok()).collect());
        failures[0] += check_end(&ends);
        faulty.fail_at(n, Fault::Error);
        let nearest = places.index.nearest(&snapshot, position((4.0, 4.0)));
        let ends: Vec<bool> =
            nearest.map_or(vec![false], |near| near.map(|near| near.is_ok()).collect());
        failures[1] += check_end(&ends);
        faulty.clear_fault();
    }
    // On a remote store, the nearest points are read in two round trips.
    let fewest = if store.snapshot().unwrap().prefetched() > 0 { 2 } else { 5 };
    assert!(failures.iter().all(|failed| *failed >= fewest), "{failures:?} could fail");
}

/// An iterator returns nothing after an error.
fn check_end(is_ok: &[bool]) -> usize {
    let failed = is_ok.iter().filter(|is_ok| !**is_ok).count();
    assert!(failed == 0 || failed == 1 && is_ok.last() == Some(&false), "{is_ok:?}");
    failed
}

pub fn bad_input_is_refused_and_nothing_is_lost(store: &(impl Store + Clone)) {
    clear(store);
    let places = Places::new();
    places.put(store, &PLACES);
    for bad in [(91.0, 0.0), (f64::NAN, 0.0), (0.0, f64::INFINITY)] {
        let error = refused(store, |txn| places.table.put(txn, &1, &Some(bad)));
        assert!(error.to_string().contains("degrees"), "{error}");
        // The error names the record.
        assert!(error.to_string().contains(", 1)"), "{error}");
        refused(store, |txn| places.table.put_many(txn, [(7, Some((1.0, 1.0))), (8, Some(bad))]));
    }
    let snapshot = store.snapshot().unwrap();
    let error = places.index.within(GeoCell::WORLD).in_ranges(0).unwrap_err();
    assert!(error.to_string().contains("one range or more"), "{error}");
    assert!(places.index.within(GeoCell::WORLD).grid(&snapshot, 65).is_err());
    assert_eq!(places.index.within(GeoCell::WORLD).count(&snapshot).unwrap(), 4);
    let most = places.index.within(GeoCell::WORLD).in_ranges(usize::MAX).unwrap();
    assert_eq!(most.count(&snapshot).unwrap(), 4);
    let first = places.index.within(GeoCell::WORLD).page(&snapshot, 1, None).unwrap().next.unwrap();
    // A continuation does not depend on the number of ranges.
    let more = places.index.within(GeoCell::WORLD).in_ranges(3).unwrap();
    assert!(more.page(&snapshot, 1, Some(&first)).is_ok());
    let other = BoundingBox::new(0.0, 0.0, 4.5, 5.0).unwrap();
    let error = places.index.within(other).page(&snapshot, 1, Some(&first)).err().unwrap();
    assert!(error.to_string().contains("another query"), "{error}");
    let near = |from, after| {
        places.index.within(GeoCell::WORLD).page_by_distance(&snapshot, position(from), 1, after)
    };
    let first = near((0.0, 0.0), None).unwrap().next.unwrap();
    let error = near((0.0, 1.0), Some(&first)).err().unwrap();
    assert!(error.to_string().contains("another query"), "{error}");
}

pub fn a_schema_refuses_what_its_index_refuses(store: &impl Store) {
    clear(store);
    let schema = Schema::open(store, "places").unwrap();
    let table = schema.table::<u32, Place>("places").unwrap();
    let make = |space: &Subspace| Ok(PointIndex::new(space, |_, place: &Place| as_position(place)));
    schema.derive(&table, "by_place", 1, make).unwrap();
    store.transact(|txn| table.put(txn, &1, &Some((1.0, 1.0)))).unwrap();
    let error = refused(store, |txn| table.put(txn, &1, &Some((91.0, 0.0))));
    assert!(error.to_string().contains("degrees"), "{error}");
}

fn why(error: Error) -> String {
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    error.to_string()
}

#[test]
fn areas_that_are_none_are_refused() {
    let centre = position((1.0, 1.0));
    for radius in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(why(Circle::new(centre, radius).unwrap_err()).contains("metres"));
    }
    assert!(why(BoundingBox::new(2.0, 0.0, 1.0, 1.0).unwrap_err()).contains("south"));
    for (south, west, north, east) in [(-91.0, 0.0, 0.0, 0.0), (0.0, f64::NAN, 1.0, 1.0)] {
        why(BoundingBox::new(south, west, north, east).unwrap_err());
    }
    let ring = |corners: &[(f64, f64)]| why(Polygon::new(corners).unwrap_err());
    assert!(ring(&[(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0)]).contains("not closed"));
    assert!(ring(&[]).contains("three corners"));
    assert!(ring(&[(0.0, 0.0), (1.0, 1.0), (0.0, 0.0)]).contains("three corners"));
    // A self-intersecting ring.
    let crossing = ring(&[(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)]);
    assert!(crossing.contains("cross"), "{crossing}");
    assert!(ring(&[(0.0, -200.0), (0.0, 200.0), (1.0, 0.0), (0.0, -200.0)]).contains("360"));
    ring(&[(0.0, 0.0), (0.0, f64::NAN), (1.0, 1.0), (0.0, 0.0)]);
    ring(&[(0.0, 0.0), (95.0, 0.0), (1.0, 1.0), (0.0, 0.0)]);
    let square = [(0.0, 0.0), (0.0, 4.0), (4.0, 4.0), (4.0, 0.0), (0.0, 0.0)];
    let outside = [(5.0, 5.0), (5.0, 6.0), (6.0, 6.0), (5.0, 5.0)];
    why(Polygon::new(&square).unwrap().with_hole(&outside).unwrap_err());
}
