//! Costs, faults, conflicts and bad input.

use keyloom::{DynWriter, Error, Metered, Result, Store, Subspace, Writer};
use keyloom_tables::versioned::{Full, OutOfBounds};
use keyloom_tables::{Counters, VersionedTable};

use crate::versioned::model::Lists;
use keyloom_testing::laws::{
    clear, conflicts_are_retried_to_the_same_end, counts, dump_all, faults_leave_nothing_half_done,
    refused, waits, writing,
};
use keyloom_testing::looks_before_it_adds;

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let table = VersionedTable::<u8, Vec<u8>>::new(&Subspace::new("lists"));
    let counters = Counters::<u8>::new(&Subspace::new("counters"));
    let store = Metered::new(store.clone());
    let list = vec![1, 2];
    let done = |result: Result<u64>| result.map(drop);
    // Gets, ranges, keys read, keys written.
    assert_eq!(writing(&store, |txn| done(table.create(txn, &1, list.clone()))), [2, 0, 0, 1]);
    assert_eq!(writing(&store, |txn| done(table.update(txn, &1, 1, list.clone()))), [1, 0, 1, 1]);
    let swap = |txn: &mut DynWriter<'_>| {
        table.compare_and_swap(txn, &1, Some(&list), Some(vec![])).map(drop)
    };
    assert_eq!(writing(&store, swap), [1, 0, 1, 1]);
    let modify = |txn: &mut DynWriter<'_>, id| table.modify(txn, &id, |_| Ok(Some(vec![3])));
    assert_eq!(writing(&store, |txn| modify(txn, 1).map(drop)), [1, 0, 1, 1]);
    assert_eq!(writing(&store, |txn| modify(txn, 2).map(drop)), [2, 0, 0, 1]);
    let append = |txn: &mut DynWriter<'_>, id| table.append(txn, &id, 9, 2);
    assert_eq!(writing(&store, |txn| done(append(txn, 1))), [1, 0, 1, 1]);
    assert_eq!(writing(&store, |txn| done(append(txn, 3))), [2, 0, 0, 1]);
    let version = table.get(&store.snapshot().unwrap(), &1).unwrap().unwrap().version;
    assert_eq!(writing(&store, |txn| table.delete(txn, &1, version)), [1, 0, 1, 3]);
    // An operation that is refused, or that deletes an absent record, reads once and writes
    // nothing.
    let refused = |work: &dyn Fn(&mut DynWriter<'_>) -> bool| {
        let mut txn = store.begin().unwrap();
        let (is_refused, cost) = store.measure(|_| work(&mut DynWriter::new(&mut txn)));
        assert!(is_refused);
        counts(cost)
    };
    assert_eq!(refused(&|txn| table.update(txn, &2, 99, vec![]).is_err()), [1, 0, 1, 0]);
    assert_eq!(refused(&|txn| table.create(txn, &2, vec![]).is_err()), [1, 0, 1, 0]);
    assert_eq!(refused(&|txn| table.delete(txn, &8, 1).is_err()), [1, 0, 0, 0]);
    assert_eq!(refused(&|txn| table.modify(txn, &8, |_| Ok(None)).is_ok()), [1, 0, 0, 0]);

    assert_eq!(writing(&store, |txn| counters.add(txn, &1, 1)), [0, 0, 0, 1]);
    assert_eq!(writing(&store, |txn| counters.min(txn, &1, 1)), [0, 0, 0, 1]);
    assert_eq!(writing(&store, |txn| counters.max(txn, &1, 1)), [0, 0, 0, 1]);
    let within = |txn: &mut DynWriter<'_>| counters.add_within(txn, &1, 1, 0..=9).map(drop);
    assert_eq!(writing(&store, within), [1, 0, 1, 1]);

    let snapshot = store.snapshot().unwrap();
    let reading = |work: &dyn Fn()| counts(store.measure(|_| work()).1);
    assert_eq!(reading(&|| drop(table.get(&snapshot, &2).unwrap())), [1, 0, 1, 0]);
    assert_eq!(reading(&|| assert_eq!(counters.get(&snapshot, &1).unwrap(), 2)), [1, 0, 1, 0]);
    drop(snapshot);

    // With an index, the difference in it is written, without additional reads.
    let lists = Lists::new();
    let table = &lists.table;
    clear(&store);
    assert_eq!(writing(&store, |txn| done(table.create(txn, &1, list.clone()))), [2, 0, 0, 2]);
    assert_eq!(writing(&store, |txn| done(table.update(txn, &1, 1, list.clone()))), [1, 0, 1, 1]);
    assert_eq!(writing(&store, |txn| done(table.update(txn, &1, 2, vec![]))), [1, 0, 1, 3]);
    assert_eq!(writing(&store, |txn| table.delete(txn, &1, 3)), [1, 0, 1, 4]);
}

#[test]
fn operations_wait_as_often_as_the_documentation_says() {
    let store = Metered::new(keyloom::Memory::new());
    let lists = Lists::new();
    let counters = Counters::<u8>::new(&Subspace::new("counters"));
    let table = &lists.table;
    // One round trip is the commit.
    assert_eq!(waits(&store, |txn| table.create(txn, &1, vec![1]).map(drop)), 3);
    assert_eq!(waits(&store, |txn| table.update(txn, &1, 1, vec![2]).map(drop)), 2);
    assert_eq!(waits(&store, |txn| table.modify(txn, &1, |_| Ok(Some(vec![]))).map(drop)), 2);
    assert_eq!(waits(&store, |txn| table.delete(txn, &1, 3)), 2);
    assert_eq!(waits(&store, |txn| counters.add(txn, &1, 1)), 1);
    assert_eq!(waits(&store, |txn| counters.add_within(txn, &1, 1, 0..=9).map(drop)), 2);
    let (_, cost) = store.measure(|store| store.transact(|txn| table.update(txn, &9, 1, vec![])));
    assert_eq!(cost.round_trips, 1, "what is refused is not committed");
}

fn prepare(store: &impl Store) {
    let lists = Lists::new();
    store
        .transact(|txn| (1..=3).try_for_each(|id| lists.table.create(txn, &id, vec![id]).map(drop)))
        .unwrap();
}

fn change(txn: &mut DynWriter<'_>) -> Result<()> {
    let Lists { table, .. } = Lists::new();
    table.create(txn, &9, vec![1, 2])?;
    table.update(txn, &1, 1, vec![])?;
    table.delete(txn, &2, 1)?;
    table.compare_and_swap(txn, &3, Some(&vec![3]), None)?;
    table.append_dropping_oldest(txn, &9, 3, 2)?;
    let counters = Counters::new(&Subspace::new("counters"));
    counters.add(txn, &1, 5)?;
    counters.max(txn, &1, 7)?;
    counters.add_within(txn, &1, 1, 0..=8).map(drop)
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    let check = |store: &_| Lists::new().faults(store);
    faults_leave_nothing_half_done(store, prepare, change, check);
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    conflicts_are_retried_to_the_same_end(store, prepare, change);
}

pub fn bad_input_is_refused_and_nothing_is_written(store: &(impl Store + Clone)) {
    clear(store);
    let names = VersionedTable::<String, Vec<u8>>::new(&Subspace::new("names"));
    let long = "n".repeat(600);
    let error = refused(store, |txn| names.create(txn, &long, vec![]).map(drop));
    assert!(matches!(&error, Error::KeyTooLong { key, limit: 511, .. } if key.contains("names")));

    let ada = "Ada".to_owned();
    for error in [
        refused(store, |txn| names.append(txn, &ada, 1, 0).map(drop)),
        refused(store, |txn| names.append_dropping_oldest(txn, &ada, 1, 0).map(drop)),
    ] {
        assert!(error.to_string().contains("at least 1 item"), "{error}");
    }
    store.transact(|txn| names.create(txn, &ada, vec![1, 2])).unwrap();
    let error = refused(store, |txn| names.append(txn, &ada, 3, 2).map(drop));
    let full = error.downcast_ref::<Full>().unwrap();
    assert_eq!((full.items, full.limit), (2, 2));
    assert_eq!(
        error.to_string(),
        r#"the list ("names", "record", "Ada") holds 2 items, the limit is 2; remove some, or raise the limit"#
    );
    // An error of the closure stops the change.
    let error =
        refused(store, |txn| names.modify(txn, &ada, |_| Err(Error::other("no"))).map(drop));
    assert_eq!(error.to_string(), "no");

    let counters = Counters::<u8>::new(&Subspace::new("counters"));
    store.transact(|txn| counters.add(txn, &1, i64::MAX)).unwrap();
    for bounds in [0..=9, i64::MIN..=i64::MAX] {
        let add =
            |txn: &mut DynWriter<'_>| counters.add_within(txn, &1, 1, bounds.clone()).map(drop);
        let error = refused(store, add);
        assert_eq!(error.downcast_ref::<OutOfBounds>().unwrap().current, i64::MAX);
    }

    // The stored value is not a record, or is a record of a newer program.
    let key = names.records().space().pack("Ada");
    for (bytes, words) in [(&[2, 0][..], "upgrade the program"), (&[1, 0], "has no version")] {
        store.transact(|txn| txn.put(&key, bytes)).unwrap();
        let before = dump_all(store);
        let error = refused(store, |txn| names.update(txn, &ada, 1, vec![]).map(drop));
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains(r#"("names", "record", "Ada")"#), "{error}");
        assert_eq!(dump_all(store), before);
    }
    if !looks_before_it_adds(store) {
        return;
    }
    let number = counters.space().pack(&2);
    store.transact(|txn| txn.put(&number, b"seven")).unwrap();
    let error = refused(store, |txn| counters.add(txn, &2, 1));
    assert!(matches!(error, Error::NotACounter { bytes: 5, .. }), "{error}");
}
