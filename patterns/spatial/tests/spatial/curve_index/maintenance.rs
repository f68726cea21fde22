//! An index of numbers: maintenance, check, repair, costs, faults and bad input.

use std::ops::ControlFlow;

use keyloom::{Error, Fault, Faulty, Metered, Reader, Store};
use keyloom_spatial::curve::Morton;
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::{Maintained, Scan};

use super::fixture::Numbers;
use keyloom_testing::laws::{clear, counts, refused, writing};

fn repaired<const N: usize>(numbers: &Numbers<N>, store: &impl Store)
where
    u64: Morton<N, Coordinate = u32>,
{
    let options = RepairOptions { batch: 3, resume: None };
    let go_on = |_: &_| ControlFlow::Continue(());
    assert!(numbers.index.repair_with(store, &numbers.table, &options, go_on).unwrap().finished);
}

const ALL: [[f64; 2]; 4] = [[1.0, 2.0], [3.0, -4.0], [100.0, 0.0], [-3.0, f64::INFINITY]];

pub fn entries_of_other_dimensions_are_refused_and_repair_makes_them_again(store: &impl Store) {
    let before = Numbers::<2>::new();
    for after in [Numbers::<2>::between(-8.0, 9.0), Numbers::between(0.0, 16.0)] {
        clear(store);
        before.put(store, &ALL);
        // One record was put after the others.
        store.transact(|txn| after.table.put(txn, &7, &vec![1.0, 1.0])).unwrap();
        for numbers in [&before, &after] {
            let snapshot = store.snapshot().unwrap();
            let query = numbers.index.within([0.0..1.0, 0.0..1.0]).unwrap();
            for error in [
                query.clone().count(&snapshot).unwrap_err(),
                query.page(&snapshot, 1, None).err().unwrap(),
            ] {
                assert!(matches!(
                    error,
                    Error::InvalidArgument { what: "the dimensions of the curve", .. }
                ));
                assert!(error.to_string().contains("repair"), "{error}");
            }
        }
        repaired(&after, store);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(after.index.within([.., ..]).unwrap().count(&snapshot).unwrap(), 5);
        assert_eq!(after.faults(store), [""; 0]);
    }
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let numbers = Numbers::<2>::new();
    let grid: Vec<[f64; 2]> = (0..2_500_u32)
        .map(|n| [f64::from(n / 50) / 50.0 * 16.0 - 8.0, f64::from(n % 50) / 50.0 * 16.0 - 8.0])
        .collect();
    numbers.put(store, &grid);
    let metered = Metered::new(store.clone());
    // The record and its entry; after a move also the old entry; with unchanged numbers only the
    // record.
    let put = |record: [f64; 2]| {
        writing(&metered, |txn| numbers.table.put(txn, &9_000, &record.to_vec()))
    };
    assert_eq!(put([5.0, 5.0]), [1, 0, 0, 2]);
    assert_eq!(put([5.0, 6.0]), [1, 0, 1, 3]);
    assert_eq!(put([5.0, 6.0]), [1, 0, 1, 1]);
    assert_eq!(writing(&metered, |txn| numbers.table.delete(txn, &9_000).map(drop)), [1, 0, 1, 2]);

    let has =
        |point: &&[f64; 2]| (-3.3..4.1).contains(&point[0]) && (-6.0..0.2).contains(&point[1]);
    let wanted = grid.iter().filter(has).count();
    assert!(wanted > 400, "{wanted}");
    for (ranges, most) in [(1, 1.8), (4, 1.7), (16, 1.3), (64, 1.15)] {
        let snapshot = metered.snapshot().unwrap();
        let before = counts(metered.cost());
        let query = numbers.index.within([-3.3..4.1, -6.0..0.2]).unwrap();
        let mut points = query.in_ranges(ranges).unwrap().points(&snapshot).unwrap();
        assert_eq!(points.by_ref().map(Result::unwrap).count(), wanted);
        let explain = points.explain();
        let [gets, seeks, keys, written] = before;
        // The costs that a query explains are those of the store.
        assert_eq!(
            counts(metered.cost()),
            [gets, seeks + explain.ranges, keys + explain.keys_scanned, written]
        );
        assert!(explain.planned <= ranges as u64, "{explain}");
        // Two ranges for other dimensions, and the seeks over gaps.
        let useless = explain.keys_scanned - wanted as u64;
        assert!(explain.ranges <= explain.planned + 2 + useless / 8, "{explain}");
        let per_hit = explain.keys_scanned as f64 / wanted as f64;
        // On stores that read entries in pages, it is cheaper to scan over the entries.
        let is_near = snapshot.prefetched() == 0;
        assert!(per_hit <= most || !is_near, "{ranges} ranges: {explain}");
    }
}

pub fn a_fault_while_reading_ends_a_query(store: &(impl Store + Clone)) {
    clear(store);
    let numbers = Numbers::<2>::new();
    let many: Vec<_> = (0..64).map(|n| [f64::from(n % 8), f64::from(n / 8)]).collect();
    numbers.put(store, &many);
    let faulty = Faulty::new(store.clone());
    let snapshot = faulty.snapshot().unwrap();
    let mut failures = 0;
    for n in 0.. {
        faulty.fail_at(n, Fault::Error);
        let points = numbers.index.within([1.0..5.5, 2.5..8.0]).unwrap().points(&snapshot);
        let is_ok: Vec<bool> =
            points.map_or(vec![false], |points| points.map(|point| point.is_ok()).collect());
        let failed = is_ok.iter().filter(|is_ok| !**is_ok).count();
        if failed == 0 {
            assert_eq!(is_ok.len(), 25);
            break;
        }
        // An iterator returns nothing after an error.
        assert!(failed == 1 && is_ok.last() == Some(&false), "{is_ok:?}");
        failures += 1;
    }
    faulty.clear_fault();
    assert!(failures > 10, "only {failures} operations could fail");
}

pub fn bad_input_is_refused_and_nothing_is_lost(store: &(impl Store + Clone)) {
    clear(store);
    let numbers = Numbers::<2>::new();
    numbers.put(store, &ALL);
    for bad in [vec![f64::NAN, 0.0], vec![0.0, -f64::NAN]] {
        let error = refused(store, |txn| numbers.table.put(txn, &1, &bad));
        // The error names the record and the number.
        let dimension = bad.iter().position(|number| number.is_nan()).unwrap();
        for word in [", 1)", &format!("NaN in dimension {dimension}"), "give no numbers"] {
            assert!(error.to_string().contains(word), "{error}");
        }
        refused(store, |txn| numbers.table.put_many(txn, [(7, vec![1.0, 1.0]), (8, bad.clone())]));
    }
    let error = numbers.index.within([0.0..1.0, 0.0..f64::NAN]).unwrap_err();
    assert!(error.to_string().contains("NaN in dimension 1"), "{error}");
    let error = numbers.index.within([.., ..]).unwrap().in_ranges(0).unwrap_err();
    assert!(error.to_string().contains("one range or more"), "{error}");
    let snapshot = store.snapshot().unwrap();
    let all = numbers.index.within([.., ..]).unwrap();
    let first = all.page(&snapshot, 1, None).unwrap().next.unwrap();
    let other = numbers.index.within([0.0..1.0, 0.0..1.0]).unwrap();
    let error = other.page(&snapshot, 1, Some(&first)).err().unwrap();
    assert!(error.to_string().contains("another query"), "{error}");
}
