//! Derived data: maintained, checked, repaired.

use std::ops::ControlFlow;

use keyloom::key::Subspace;
use keyloom::{Error, Store};
use keyloom_tables::derived::{RepairOptions, RepairPosition};
use keyloom_tables::{Index, Maintained, Table, entry};

use crate::index::fixture::{Cities, City, fill, sample};
use keyloom_testing::laws::clear;

pub fn a_repair_that_was_stopped_continues_where_it_was(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    let bare = Table::<u16, City>::new(&cities.space.child("cities"));
    store.transact(|txn| (1..=30).try_for_each(|id| bare.put(txn, &id, &sample(id)))).unwrap();
    let mut options = RepairOptions { batch: 4, resume: None };
    let mut visited = 0;
    loop {
        let done = cities
            .by_name
            .repair_with(store, &cities.table, &options, |_| ControlFlow::Break(()))
            .unwrap();
        visited += done.records;
        assert!(done.records <= 4 && done.entries <= 4, "one batch, then it stops");
        if done.finished {
            assert!(done.position.entries);
            break;
        }
        options.resume = Some(done.position);
    }
    assert_eq!(visited, 30, "no record is visited twice");
    assert_eq!(cities.by_name.check(&store.snapshot().unwrap(), &cities.table).unwrap(), []);
}

#[test]
fn index_and_table_in_overlapping_subspaces_are_refused() {
    let store = keyloom::Memory::new();
    let space = Subspace::new("geo");
    for (index_space, table_space) in [
        (space.clone(), space.child("cities")),
        (space.child("by_size"), space.clone()),
        (space.clone(), space.clone()),
    ] {
        let index = Index::new(&index_space, |_: &u16, size: &u32| entry(size));
        let bare = Table::<u16, u32>::new(&table_space);
        store.transact(|txn| bare.put(txn, &1, &7)).unwrap();
        let table = bare.clone().with(&index);
        let put = store.transact(|txn| table.put(txn, &2, &8));
        assert!(matches!(put, Err(Error::InvalidArgument { what: "the subspace", .. })));
        for table in [table, bare.clone()] {
            let options = RepairOptions::default();
            let repaired =
                index.repair_with(&store, &table, &options, |_| ControlFlow::Continue(()));
            assert!(matches!(repaired, Err(Error::InvalidArgument { what: "the table", .. })));
            let checked = index.check(&store.snapshot().unwrap(), &table);
            assert!(matches!(checked, Err(Error::InvalidArgument { what: "the table", .. })));
        }
        assert_eq!(bare.get(&store.snapshot().unwrap(), &1).unwrap(), Some(7));
    }
}

#[test]
fn a_repair_continues_only_where_it_was_itself() {
    let store = keyloom::Memory::new();
    let cities = Cities::new();
    fill(&cities, &store, 1..=5);
    for entries in [false, true] {
        let last = Some(keyloom::key::pack(&("elsewhere", 1)));
        let resume = Some(RepairPosition { entries, last, ..RepairPosition::default() });
        let options = RepairOptions { batch: 10, resume };
        let repaired = cities
            .by_name
            .repair_with(&store, &cities.table, &options, |_| ControlFlow::Continue(()));
        assert!(matches!(repaired, Err(Error::InvalidArgument { .. })));
    }
}

#[test]
fn subspaces_that_only_begin_with_the_same_bytes_lie_apart() {
    let store = keyloom::Memory::new();
    let index = Index::new(&Subspace::new("a\0b"), |_: &u16, size: &u32| entry(size));
    let table = Table::<u16, u32>::new(&Subspace::new("a")).with(&index);
    store.transact(|txn| table.put(txn, &1, &7)).unwrap();
    assert_eq!(index.check(&store.snapshot().unwrap(), &table).unwrap(), []);
}

#[test]
fn repair_takes_smaller_steps_within_the_limits_of_the_store() {
    let mut limits = keyloom::Limits::etcd();
    limits.max_transaction_operations = Some(128);
    let store = keyloom::Memory::builder().limits(limits).build();
    let cities = Cities::new();
    let bare = Table::<u16, City>::new(cities.table.space());
    for id in 0..1_000 {
        store.transact(|txn| bare.put(txn, &id, &sample(id))).unwrap();
    }
    for index in cities.indexes() {
        let options = RepairOptions::default();
        index.repair_with(&store, &cities.table, &options, |_| ControlFlow::Continue(())).unwrap();
    }
    assert_eq!(cities.faults(&store), []);
}

#[test]
fn an_index_function_that_changes_its_mind_is_caught() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let space = Subspace::new("fickle");
    let fickle = Index::new(&space.child("index"), |_, _: &u32| entry(CALLS.fetch_add(1, Relaxed)));
    let table = Table::<u32, u32>::new(&space.child("table")).with(&fickle);
    let store = keyloom::Memory::new();
    store.transact(|txn| table.put(txn, &1, &1)).unwrap();
    assert!(!fickle.check(&store.snapshot().unwrap(), &table).unwrap().is_empty());
}
