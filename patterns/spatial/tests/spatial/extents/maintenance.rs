//! The maintenance of the index, and its costs.

use std::ops::ControlFlow;

use keyloom::{KeyRange, Metered, Store, Writer};
use keyloom_spatial::{BoundingBox, Circle, ExtentQuery, LatLng, Polygon, Shape};
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::{Maintained, Scan, Table};

use super::fixture::{Degrees, Things, ids};
use keyloom_testing::laws::{clear, counts, writing};

fn repair(things: &Things, store: &impl Store) {
    let options = RepairOptions { batch: 4, resume: None };
    let going_on = |_: &_| ControlFlow::Continue(());
    assert!(things.index.repair_with(store, &things.table, &options, going_on).unwrap().finished);
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let things = Things::new();
    clear(store);
    let metered = Metered::new(store.clone());
    let put = |edges: Option<Degrees>| writing(&metered, |txn| things.table.put(txn, &1, &edges));
    // Each put costs 1 get for the old record, and 1 key for the record itself.
    assert_eq!(put(Some([10.1, 10.1, 11.0, 11.0])), [1, 0, 0, 1 + 1], "a new entry");
    assert_eq!(put(Some([10.1, 10.1, 11.0, 11.0])), [1, 0, 1, 1], "it stays");
    assert_eq!(put(Some([10.1, 10.1, 11.0, 11.1])), [1, 0, 1, 1 + 1], "other edges");
    assert_eq!(put(Some([40.1, 10.1, 41.0, 11.1])), [1, 0, 1, 1 + 2], "another element");
    assert_eq!(put(None), [1, 0, 1, 1 + 1], "no extent any more");
    assert_eq!(writing(&metered, |txn| things.table.delete(txn, &1).map(drop)), [1, 0, 1, 1]);

    // A grid of 400 boxes of a degree, and a box of half the world, in a cell of level 1.
    let grid = (0..400).map(|n| (n / 20, n % 20)).map(|(y, x)| {
        let [south, west] = [f64::from(y), f64::from(x)].map(|n| n + 0.125);
        Some([south, west, south + 0.75, west + 0.75])
    });
    let half = Some([-80.0, -170.0, -10.0, 15.0]);
    let records: Vec<(u16, Option<Degrees>)> = (1..).zip(grid.chain([half])).collect();
    store.transact(|txn| things.table.put_many(txn, &records)).unwrap();
    let snapshot = metered.snapshot().unwrap();
    let area = |south, west, north, east| BoundingBox::new(south, west, north, east).unwrap();
    let of_query = |query: ExtentQuery<'_, u16, &dyn Shape>, ranges: usize| {
        let query = query.in_ranges(ranges).unwrap();
        let most = query.ranges() as u64;
        let ((found, explain), cost) = metered.measure(|_| {
            let mut extents = query.extents(&snapshot).unwrap();
            let found = extents.by_ref().map(Result::unwrap).count() as u64;
            (found, extents.explain())
        });
        let [gets, begun, read, written] = counts(cost);
        assert_eq!((gets, written), (0, 0));
        assert_eq!((begun, read), (explain.ranges, explain.keys_scanned), "explain tells it");
        assert_eq!((explain.planned, explain.keys_returned), (most, found));
        assert!(most <= ranges as u64, "{explain}");
        if store.round_trips().is_some() {
            assert_eq!(begun, most, "a store behind a network goes on with the page that it has");
        }
        (found, read)
    };
    let cost = |area: BoundingBox, ranges| of_query(things.index.overlapping(&area), ranges);
    // The whole world is one range of codes, and every entry read is a result.
    assert_eq!(cost(area(-90.0, -180.0, 90.0, 180.0), 1), (401, 401));
    let (found, read) = cost(area(2.0, 2.0, 18.0, 18.0), 64);
    assert_eq!(found, 256);
    assert!(read <= 380, "{read}");
    // In an empty area only the large box is read.
    assert_eq!(cost(area(-60.0, 100.0, -50.0, 101.0), 16), (0, 1));
    assert_eq!(cost(area(60.0, 100.0, 61.0, 101.0), 16), (0, 1));
    assert_eq!(cost(area(-60.0, -100.0, -50.0, -99.0), 16), (1, 1));
    // A query by a circle or a polygon reads no more than a query by its bounding box.
    let circle = Circle::new(LatLng::new(10.0, 10.0).unwrap(), 700_000.0).unwrap();
    let slanting = [(2.0, 2.0), (3.0, 2.0), (18.0, 17.0), (17.0, 18.0), (2.0, 2.0)];
    let slanting = Polygon::new(&slanting).unwrap();
    let shapes: [(&dyn Shape, _, _); 2] = [(&circle, [148, 112], 240), (&slanting, [43, 3], 220)];
    for (shape, wanted, most) in shapes {
        let queries = [things.index.overlapping(shape), things.index.inside(shape)];
        let costs = queries.map(|query| of_query(query, 64));
        assert_eq!(costs.map(|(found, _)| found), wanted, "{costs:?}");
        let of_bounds = cost(shape.bounds(), 64).1.min(most);
        assert!(costs.iter().all(|(_, read)| *read <= of_bounds), "{costs:?} {of_bounds}");
    }
    let empty = Circle::new(LatLng::new(-55.0, 100.5).unwrap(), 60_000.0).unwrap();
    assert_eq!(of_query(things.index.overlapping(&empty), 16), (0, 1));
    // A search for extents that contain a box reads as little as a search for a position in the
    // box.
    let at = LatLng::new(0.5, 0.5).unwrap();
    let inner = BoundingBox::new(0.4, 0.5, 0.6, 0.7).unwrap();
    for there in [things.index.containing(at), things.index.containing_box(inner)] {
        let mut extents = there.extents(&snapshot).unwrap();
        assert_eq!(extents.by_ref().count(), 1);
        assert!(extents.explain().keys_scanned < 40, "{}", extents.explain());
    }
}

#[test]
fn an_index_of_a_table_that_is_there_is_built_by_repair() {
    let store = keyloom::Memory::new();
    let things = Things::new();
    let bare = Table::<u16, Option<Degrees>>::new(things.table.space());
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    // One record has an extent that the index refuses.
    let records = [(1, Some([0.0, 0.0, 1.0, 1.0])), (2, Some([9.0, 0.0, 1.0, 1.0])), (3, None)];
    store.transact(|txn| bare.put_many(txn, records)).unwrap();
    repair(&things, &store);
    let snapshot = store.snapshot().unwrap();
    let everything = BoundingBox::new(-90.0, -180.0, 90.0, 180.0).unwrap();
    assert_eq!(ids(things.index.overlapping(everything).extents(&snapshot).unwrap()), [1]);
}
