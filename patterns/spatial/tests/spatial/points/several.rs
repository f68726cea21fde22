//! Records at several positions, compared with a loop over all positions.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Memory, Result, Store, Subspace};
use keyloom_spatial::{Area, Circle, GeoCell, LatLng, PointIndex};
use keyloom_tables::{Continuation, Maintained, Table};
use keyloom_testing::laws::{clear, dump, long_property};
use proptest::prelude::*;

use super::fixture::{place, places, position, radius};

type Stops = Vec<(f64, f64)>;
type Point = (u32, [u64; 2]);

fn positions(stops: &Stops) -> Result<Vec<LatLng>> {
    stops.iter().map(|stop| LatLng::wrapping(stop.0, stop.1)).collect()
}

/// A table of lines with their stops, and an index of the stops that `function` returns.
fn lines(function: fn(&Stops) -> Result<Vec<LatLng>>) -> (Table<u32, Stops>, Lines) {
    let index = PointIndex::new(&Subspace::new("by_stop"), move |_id, stops| function(stops));
    (Table::new(&Subspace::new("lines")).with(&index), index)
}

type Lines = PointIndex<u32, Stops>;

/// The bits of a position. -0 and 0 are different keys, but one position.
fn bits(at: &LatLng) -> [u64; 2] {
    [at.latitude(), at.longitude()].map(|degrees| (degrees + 0.0).to_bits())
}

/// The distinct positions of each record.
fn points_of(model: &BTreeMap<u32, Stops>, is_in: impl Fn(&LatLng) -> bool) -> BTreeSet<Point> {
    let of_line = |(id, stops): (&u32, &Stops)| {
        let stops = positions(stops).unwrap();
        let stops = stops.into_iter().filter(&is_in);
        stops.map(|at| (*id, bits(&at))).collect::<Vec<_>>()
    };
    model.iter().flat_map(of_line).collect()
}

/// The points that a query finds, each once.
fn found(store: &impl Store, index: &Lines, area: impl Area + Clone) -> BTreeSet<Point> {
    let snapshot = store.snapshot().unwrap();
    let points = index.within(area.clone()).points(&snapshot).unwrap();
    let points: Vec<Point> = points
        .map(|point| point.unwrap())
        .map(|point| (point.record_key().unwrap(), bits(&point.position())))
        .collect();
    assert_eq!(index.within(area).count(&snapshot).unwrap(), points.len() as u64);
    let set: BTreeSet<Point> = points.iter().copied().collect();
    assert_eq!(set.len(), points.len(), "a position is found twice");
    set
}

/// All points in pages, the nearest first.
fn in_pages(store: &impl Store, index: &Lines, from: LatLng, limit: usize) -> Vec<(f64, Point)> {
    let snapshot = store.snapshot().unwrap();
    let (mut all, mut after): (Vec<_>, Option<Continuation>) = (Vec::new(), None);
    loop {
        let query = index.within(GeoCell::WORLD);
        let page = query.page_by_distance(&snapshot, from, limit, after.as_ref()).unwrap();
        all.extend(
            page.items.iter().map(|near| {
                (near.distance(), (near.record_key().unwrap(), bits(&near.position())))
            }),
        );
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

pub fn every_position_of_a_record_is_found(store: &impl Store) {
    let change = (0_u32..8, prop_oneof![1 => Just(None), 5 => places(5).prop_map(Some)]);
    let changes = prop::collection::vec(change, 1..14);
    long_property((changes, place(), radius(), 1_usize..9), |(changes, centre, radius, limit)| {
        clear(store);
        let (table, index) = lines(positions);
        let mut model = BTreeMap::new();
        for (id, stops) in changes {
            match stops {
                Some(stops) => {
                    store.transact(|txn| table.put(txn, &id, &stops)).unwrap();
                    model.insert(id, stops);
                }
                None => {
                    store.transact(|txn| table.delete(txn, &id)).unwrap();
                    model.remove(&id);
                }
            }
        }
        let centre = position(centre);
        let circle = Circle::new(centre, radius).unwrap();
        let wanted = points_of(&model, |at| centre.distance(at) <= radius);
        assert_eq!(found(store, &index, circle), wanted);

        let everywhere = points_of(&model, |_| true);
        let near = in_pages(store, &index, centre, limit);
        assert!(near.is_sorted_by(|one, next| one.0 <= next.0), "{near:?}");
        assert_eq!(near.len(), everywhere.len());
        assert_eq!(near.into_iter().map(|(_, point)| point).collect::<BTreeSet<_>>(), everywhere);

        // Rebuilt equals maintained.
        let snapshot = store.snapshot().unwrap();
        assert_eq!(index.check(&snapshot, &table).unwrap(), []);
        let maintained = dump(&snapshot, index.space().range());
        drop(snapshot);
        store.transact(|txn| keyloom::Writer::delete_range(txn, index.space().range())).unwrap();
        index.repair(store, &table).unwrap();
        assert_eq!(dump(&store.snapshot().unwrap(), index.space().range()), maintained);
    });
}

/// The comparison finds an index that leaves out all positions but one.
#[test]
fn comparison_finds_an_index_of_first_positions() {
    let first = |stops: &Stops| Ok(positions(stops)?.into_iter().take(1).collect());
    let ((table, index), store) = (lines(first), Memory::new());
    let model = BTreeMap::from([(1, vec![(1.0, 1.0)]), (2, vec![(2.0, 2.0), (3.0, 3.0)])]);
    store.transact(|txn| table.put_many(txn, model.clone())).unwrap();
    let wanted = points_of(&model, |_| true);
    let found = found(&store, &index, GeoCell::WORLD);
    assert_eq!((found.len(), wanted.len()), (2, 3));
}

/// A position that is refused refuses the record, whatever its other positions.
#[test]
fn one_bad_position_refuses_the_record() {
    let strict = |stops: &Stops| stops.iter().map(|stop| LatLng::new(stop.0, stop.1)).collect();
    let ((table, _), store) = (lines(strict), Memory::new());
    let stops = vec![(48.85, 2.35), (91.0, 0.0)];
    assert!(store.transact(|txn| table.put(txn, &1, &stops)).is_err());
    assert_eq!(table.get(&store.snapshot().unwrap(), &1).unwrap(), None);
}
