//! An index of points: maintenance, check, repair, and costs.

use keyloom::{Metered, Reader, Store};
use keyloom_spatial::Circle;
use keyloom_tables::Scan;

use super::fixture::{Places, position};
use keyloom_testing::laws::{clear, counts, writing};

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let places = Places::new();
    let grid: Vec<(f64, f64)> =
        (0..900).map(|n| (f64::from(n / 30) - 15.0, f64::from(n % 30) - 15.0)).collect();
    places.put(store, &grid);
    let metered = Metered::new(store.clone());
    // The record and its entry; after a move also the old entry; at the same position only the
    // record.
    let put =
        |place: (f64, f64)| writing(&metered, |txn| places.table.put(txn, &2_000, &Some(place)));
    assert_eq!(put((50.0, 50.0)), [1, 0, 0, 2]);
    assert_eq!(put((60.0, 50.0)), [1, 0, 1, 3]);
    assert_eq!(put((60.0, 50.0)), [1, 0, 1, 1]);
    assert_eq!(writing(&metered, |txn| places.table.delete(txn, &2_000).map(drop)), [1, 0, 1, 2]);

    let centre = position((0.5, 0.5));
    let wanted = grid.iter().filter(|at| centre.distance(&position(**at)) <= 700_000.0).count();
    assert!(wanted > 100);
    for ranges in [9, 16, 64] {
        let snapshot = metered.snapshot().unwrap();
        let query = places.index.within(Circle::new(centre, 700_000.0).unwrap());
        let mut points = query.in_ranges(ranges).unwrap().points(&snapshot).unwrap();
        let before = metered.cost();
        let found = points.by_ref().map(Result::unwrap).count();
        let explain = points.explain();
        let after = counts(metered.cost());
        let [gets, seeks, keys, written] = counts(before);
        // The costs that a query explains are those of the store.
        assert_eq!(after, [gets, seeks + explain.ranges, keys + explain.keys_scanned, written]);
        assert_eq!(found, wanted);
        assert!(explain.planned <= ranges as u64);
        let most = [(9, 2.0), (16, 1.5), (64, 1.25)].into_iter().find(|(n, _)| *n == ranges);
        assert!(
            explain.keys_scanned as f64 <= most.unwrap().1 * found as f64,
            "{ranges}: {explain}"
        );
    }

    let snapshot = metered.snapshot().unwrap();
    let before = counts(metered.cost());
    let mut nearest = places.index.nearest(&snapshot, position((3.3, 3.3))).unwrap();
    assert_eq!(nearest.by_ref().take(10).map(Result::unwrap).count(), 10);
    let explain = nearest.explain();
    let after = counts(metered.cost());
    assert_eq!(after[1] - before[1], explain.ranges);
    assert_eq!(after[2] - before[2], explain.keys_scanned);
    // A remote store sends up to one page in each round trip.
    let most = if snapshot.prefetched() > 0 { snapshot.prefetched() } else { 120 };
    assert!(explain.ranges <= 12 && explain.keys_scanned <= most as u64, "{explain}");
}
