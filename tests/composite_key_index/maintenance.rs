//! Derived data: maintained, checked, repaired.

use std::ops::ControlFlow;

use keyloom::key::Subspace;
use keyloom::{Error, KeyRange, Store, Writer};
use keyloom_patterns::derived::{RepairOptions, RepairPhase};
use keyloom_patterns::{Index, Maintained, Table, entry};

use crate::fixture::{Cities, City, apply, clear, dump, fill, history, property, sample};
use keyloom_patterns::{Inconsistency, Rule};

pub fn rebuilt_from_scratch_equals_maintained_step_by_step(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    property(history(), |history| {
        clear(store);
        let oracle = apply(&cities, store, history);
        assert_eq!(cities.faults(store), []);
        let maintained = dump(&store.snapshot().unwrap(), cities.space.range());

        clear(store);
        store
            .transact(|txn| {
                oracle.iter().try_for_each(|(id, city)| cities.table.put(txn, id, city))
            })
            .unwrap();
        let rebuilt = dump(&store.snapshot().unwrap(), cities.space.range());
        assert_eq!(maintained, rebuilt);

        // A third way to the same bytes: records without indexes, and a repair that builds them.
        clear(store);
        let bare = Table::<u16, City>::new(&cities.space.child("cities"));
        store
            .transact(|txn| oracle.iter().try_for_each(|(id, city)| bare.put(txn, id, city)))
            .unwrap();
        let options = RepairOptions { batch: 3, resume: None };
        for index in cities.indexes() {
            index
                .repair_with(store, &cities.table, &options, |_| ControlFlow::Continue(()))
                .unwrap();
        }
        assert_eq!(maintained, dump(&store.snapshot().unwrap(), cities.space.range()));
    });
}

pub fn check_finds_and_repair_mends_every_kind_of_damage(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    fill(&cities, store, 1..=20);
    let whole = dump(&store.snapshot().unwrap(), cities.space.range());
    let space = cities.space.child("by_name");
    let key = |name: &str, id: u16| space.pack(&("US", name, id));
    let (missing, wrong) = (key("city 3", 3), key("city 5", 5));
    let (dangling, foreign) = (key("Atlantis", 900), space.pack(&7));
    // Its record is there, but would make another entry.
    let stale = key("an old name", 7);
    store
        .transact(|txn| {
            txn.delete(&missing)?;
            txn.put(&wrong, &[0x10, 0x01])?;
            txn.put(&dangling, &[0x10, 0x03])?;
            txn.put(&stale, &[0x10, 0x02])?;
            txn.put(&foreign, b"?")
        })
        .unwrap();
    let found = cities.faults(store);
    let has = |wanted: Inconsistency| {
        assert!(found.contains(&wanted), "{wanted} is not among {found:?}");
    };
    has(Inconsistency::new(missing.clone(), Rule::Missing));
    has(Inconsistency::new(wrong.clone(), Rule::Wrong));
    has(Inconsistency::new(dangling.clone(), Rule::Dangling));
    has(Inconsistency::new(stale.clone(), Rule::Dangling));
    has(Inconsistency::new(foreign.clone(), Rule::Foreign));
    for fault in &found {
        let text = fault.to_string();
        assert!(text.contains("by_name"), "{text} names the entry");
    }

    let options = RepairOptions { batch: 4, resume: None };
    let mut told = Vec::new();
    let done = cities
        .by_name
        .repair_with(store, &cities.table, &options, |progress| {
            told.push(progress.clone());
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(done.finished && told.last() == Some(&done));
    assert_eq!(done.records, 20);
    assert!(told.windows(2).all(|pair| pair[1].records - pair[0].records <= 4));
    assert_eq!(cities.faults(store), []);
    assert_eq!(dump(&store.snapshot().unwrap(), cities.space.range()), whole);
}

pub fn a_repair_that_was_stopped_goes_on_where_it_was(store: &(impl Store + Clone)) {
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
            assert_eq!(done.position.phase, RepairPhase::Entries);
            break;
        }
        options.resume = Some(done.position);
    }
    assert_eq!(visited, 30, "no record is visited twice");
    assert_eq!(cities.by_name.check(&store.snapshot().unwrap(), &cities.table).unwrap(), []);
}

#[test]
fn an_index_and_its_table_that_lie_inside_each_other_are_refused_before_harm_is_done() {
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
        assert!(matches!(put, Err(Error::BadOption { what: "the subspace", .. })));
        for table in [table, bare.clone()] {
            let options = RepairOptions::default();
            let repaired =
                index.repair_with(&store, &table, &options, |_| ControlFlow::Continue(()));
            assert!(matches!(repaired, Err(Error::BadOption { what: "the table", .. })));
            let checked = index.check(&store.snapshot().unwrap(), &table);
            assert!(matches!(checked, Err(Error::BadOption { what: "the table", .. })));
        }
        assert_eq!(bare.get(&store.snapshot().unwrap(), &1).unwrap(), Some(7));
    }
}

#[test]
fn an_entry_of_an_unknown_format_is_a_fault_that_repair_removes() {
    let store = keyloom::Memory::new();
    let cities = Cities::new();
    store.transact(|txn| cities.table.put(txn, &2, &sample(2))).unwrap();
    let clean = dump(&store.snapshot().unwrap(), KeyRange::all());
    let entries = [
        cities.space.child("by_name").pack(&("FR", "city 2", 2u16)),
        cities.space.child("by_name").pack(&("FR", "of another kind", 2u16)),
    ];
    for entry in &entries {
        store.transact(|txn| txn.put(entry, &[0x20, 0x02])).unwrap();
        let faults = cities.by_name.check(&store.snapshot().unwrap(), &cities.table).unwrap();
        assert!(faults.iter().any(|fault| fault.key[..] == entry[..]), "{faults:?}");
        let options = RepairOptions::default();
        cities
            .by_name
            .repair_with(&store, &cities.table, &options, |_| ControlFlow::Continue(()))
            .unwrap();
        assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), clean);
    }
}

#[test]
fn a_repair_goes_on_only_where_it_was_itself() {
    let store = keyloom::Memory::new();
    let cities = Cities::new();
    fill(&cities, &store, 1..=5);
    for phase in [RepairPhase::Records, RepairPhase::Entries] {
        let last = Some(keyloom::key::pack(&("elsewhere", 1)));
        let resume = Some(keyloom_patterns::derived::RepairPosition { phase, last });
        let options = RepairOptions { batch: 10, resume };
        let repaired = cities
            .by_name
            .repair_with(&store, &cities.table, &options, |_| ControlFlow::Continue(()));
        assert!(matches!(repaired, Err(Error::BadOption { .. })));
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
fn a_repair_takes_smaller_steps_where_a_store_takes_no_large_ones() {
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
fn a_forgetful_index_is_caught() {
    // The negative control of the law "rebuilt equals maintained": an index that is attached to one
    // of two handles of its table is not maintained by the other.
    let store = keyloom::Memory::new();
    let cities = Cities::new();
    let forgetful = Table::<u16, City>::new(&cities.space.child("cities")).with(&cities.by_name);
    store.transact(|txn| forgetful.put(txn, &2, &sample(2))).unwrap();
    let found = cities.faults(&store);
    assert_eq!(found.len(), 2, "by_size and by_tag miss an entry: {found:?}");
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
