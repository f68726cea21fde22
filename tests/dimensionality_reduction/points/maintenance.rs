//! An index of points: maintained, checked, repaired, and what it costs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use keyloom::{Metered, Store, Writer};
use keyloom_patterns::derived::RepairOptions;
use keyloom_patterns::{Circle, Maintained, Table};
use proptest::prelude::*;

use super::fixture::{Place, Places, place, position};
use crate::laws::{clear, counts, dump_all, property, writing};

fn repaired(places: &Places, store: &impl Store) {
    let options = RepairOptions { batch: 3, resume: None };
    let go_on = |_: &_| ControlFlow::Continue(());
    assert!(places.index.repair_with(store, &places.table, &options, go_on).unwrap().finished);
}

pub fn rebuilt_from_scratch_equals_maintained_step_by_step(store: &impl Store) {
    // What is there, is moved, has no place, or is gone.
    let change = (0_u32..12, prop::option::of(prop::option::weighted(0.8, place())));
    property(prop::collection::vec(change, 0..30), |changes| {
        clear(store);
        let places = Places::new();
        let mut oracle = BTreeMap::<u32, Place>::new();
        for (id, change) in changes {
            match change {
                Some(place) => {
                    store.transact(|txn| places.table.put(txn, &id, &place)).unwrap();
                    oracle.insert(id, place);
                }
                None => {
                    store.transact(|txn| places.table.delete(txn, &id)).unwrap();
                    oracle.remove(&id);
                }
            }
        }
        assert_eq!(places.faults(store), [""; 0]);
        let maintained = dump_all(store);
        clear(store);
        store.transact(|txn| places.bare.put_many(txn, oracle.clone())).unwrap();
        repaired(&places, store);
        assert_eq!(dump_all(store), maintained);
    });
}

pub fn check_finds_and_repair_mends_every_kind_of_damage(store: &impl Store) {
    clear(store);
    let places = Places::new();
    places.put(store, &[(1.0, 2.0), (3.0, 4.0), (90.0, 5.0), (-3.0, 180.0)]);
    let whole = dump_all(store);
    let space = places.index.as_index().space().clone();
    let entries: Vec<_> = whole.keys().filter(|key| space.contains(key)).cloned().collect();
    assert_eq!(entries.len(), 4);
    store
        .transact(|txn| {
            txn.delete(&entries[0])?;
            txn.put(&entries[1], &whole[&entries[2]])?;
            txn.put(&space.pack(&(7_u64, 9_u32)), &whole[&entries[2]])?;
            txn.put(&space.pack(&"no code"), b"?")
        })
        .unwrap();
    let found = places.faults(store);
    for rule in ["is missing", "has a wrong value", "dangles", "is of another kind"] {
        assert!(found.iter().any(|fault| fault.contains(rule)), "{rule}: {found:?}");
    }
    repaired(&places, store);
    assert_eq!(dump_all(store), whole);
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let places = Places::new();
    let grid: Vec<(f64, f64)> =
        (0..900).map(|n| (f64::from(n / 30) - 15.0, f64::from(n % 30) - 15.0)).collect();
    places.put(store, &grid);
    let metered = Metered::new(store.clone());
    // The record and its entry; moved: the old entry too; elsewhere the same: the record alone.
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
        // What a query says of itself is what the store was asked for.
        assert_eq!(after, [gets, seeks + explain.seeks, keys + explain.keys_scanned, written]);
        assert_eq!(found, wanted);
        assert!(explain.ranges <= ranges as u64);
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
    assert_eq!(after[1] - before[1], explain.seeks);
    assert_eq!(after[2] - before[2], explain.keys_scanned);
    assert!(explain.seeks <= 12 && explain.keys_scanned <= 150, "{explain}");
}

#[test]
fn a_table_that_forgets_its_index_is_noticed() {
    let (store, places) = (keyloom::Memory::new(), Places::new());
    let forgetful = Table::<u32, Place>::new(places.bare.space());
    store.transact(|txn| forgetful.put(txn, &1, &Some((1.0, 1.0)))).unwrap();
    assert_eq!(places.faults(&store).len(), 1);
}
