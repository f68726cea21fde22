//! Wide columns, compared with a map of all versions.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::{Bound, ControlFlow, RangeBounds};

use keyloom::{DynWriter, Error, Fault, Faulty, Metered, Result, Store, Subspace, Writer};
use keyloom_tables::RepairOptions;
use keyloom_tables::entity::wide_column::{Cell, Keep, NOW, Version, WideColumns};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use keyloom_testing::laws::{
    clear, counts, dump_all, faults_leave_nothing_half_done, long_property, refused, writing,
};

/// Row names that are prefixes of each other.
const ROWS: [(&str, u8); 3] = [("r", 1), ("r", 2), ("r\0", 1)];
const FAMILIES: [&str; 2] = ["f", "f\0"];
const COLUMNS: [&str; 3] = ["", "c", "cc"];
const LAST_TIME: u64 = 9;

type Row = (String, u8);
/// Row, family, column, and the time; `None` is a tombstone.
type Model = BTreeMap<(Row, &'static str, &'static str, u64), Option<Vec<u8>>>;
type Write = (usize, usize, usize, u64, Option<Vec<u8>>);

fn web() -> WideColumns<Row> {
    WideColumns::new(&Subspace::new("web"))
}

fn row(at: usize) -> Row {
    (ROWS[at].0.to_owned(), ROWS[at].1)
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let value = option::weighted(0.7, vec(any::<u8>(), 0..3));
    vec((0..3usize, 0..2usize, 0..3usize, 0..=LAST_TIME, value), 0..30)
}

fn fill(store: &impl Store, writes: &[Write]) -> Model {
    clear(store);
    put_all(store, writes);
    writes.iter().map(entry).collect()
}

fn entry(
    (r, f, c, time, value): &Write,
) -> ((Row, &'static str, &'static str, u64), Option<Vec<u8>>) {
    ((row(*r), FAMILIES[*f], COLUMNS[*c], *time), value.clone())
}

fn put_all(store: &impl Store, writes: &[Write]) {
    let web = web();
    store
        .transact(|txn| {
            writes.iter().try_for_each(|(r, f, c, time, value)| {
                let (row, family, column) = (row(*r), FAMILIES[*f], COLUMNS[*c]);
                match value {
                    Some(value) => web.put(txn, &row, family, column, *time, value),
                    None => web.delete(txn, &row, family, column, *time),
                }
            })
        })
        .unwrap();
}

/// The value of a column at a time, found by a scan over all versions.
fn current(model: &Model, row: &Row, family: &str, column: &str, as_of: u64) -> Option<Cell> {
    let versions = model
        .iter()
        .filter(|((r, f, c, time), _)| (r, *f, *c) == (row, family, column) && *time <= as_of);
    let (key, value) = versions.max_by_key(|(key, _)| key.3)?;
    let value = value.clone()?;
    Some(Cell { family: family.into(), column: column.into(), timestamp: key.3, value })
}

fn cells(model: &Model, row: &Row, as_of: u64) -> Vec<Cell> {
    let names = FAMILIES.iter().flat_map(|family| COLUMNS.iter().map(move |c| (family, c)));
    names.filter_map(|(family, column)| current(model, row, family, column, as_of)).collect()
}

pub fn every_read_finds_what_a_filter_over_all_versions_finds(store: &(impl Store + Clone)) {
    let web = web();
    let bound = prop_oneof![
        (0..=LAST_TIME).prop_map(Bound::Included),
        (0..=LAST_TIME).prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ];
    let name = || prop::sample::select(COLUMNS.to_vec());
    let names = prop_oneof![
        name().prop_map(Bound::Included),
        name().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ];
    let case = (writes(), (bound.clone(), bound), (names.clone(), names));
    long_property(case, |(writes, times, names)| {
        let model = fill(store, &writes);
        let snapshot = store.snapshot().unwrap();
        for row in (0..3).map(row) {
            for as_of in [0, 4, NOW] {
                assert_eq!(web.row(&snapshot, &row, as_of).unwrap(), cells(&model, &row, as_of));
                let some = web.columns(&snapshot, &row, "f", names, as_of).unwrap();
                let wanted = cells(&model, &row, as_of).into_iter();
                let wanted = wanted.filter(|cell| {
                    cell.family == "f"
                        && RangeBounds::<&str>::contains(&names, &cell.column.as_str())
                });
                assert_eq!(some, wanted.collect::<Vec<_>>());
                for column in COLUMNS {
                    let found = web.get(&snapshot, &row, "f", column, as_of).unwrap();
                    assert_eq!(found, current(&model, &row, "f", column, as_of));
                }
            }
            let versions = web.versions(&snapshot, &row, "f", "c", times).unwrap();
            let of_column = model.iter().rev().filter(|((r, f, c, time), _)| {
                (r, *f, *c) == (&row, "f", "c") && times.contains(time)
            });
            let wanted =
                of_column.map(|(key, value)| Version { timestamp: key.3, value: value.clone() });
            assert_eq!(versions, wanted.collect::<Vec<_>>());
        }
        drop(snapshot);
        store.transact(|txn| web.delete_row(txn, &row(0))).unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(web.row(&snapshot, &row(0), NOW).unwrap(), []);
        for other in [row(1), row(2)] {
            assert_eq!(web.row(&snapshot, &other, NOW).unwrap(), cells(&model, &other, NOW));
        }
    });
}

/// The versions that a collection must keep, computed for each column as a list.
fn collected(model: &Model, keep: Keep) -> Model {
    let mut left = Model::new();
    let columns: BTreeSet<_> = model.keys().map(|(r, f, c, _)| (r.clone(), *f, *c)).collect();
    for (row, family, column) in columns {
        let of_column =
            |key: &&(Row, &str, &str, u64)| (&key.0, key.1, key.2) == (&row, family, column);
        // Newest first.
        let versions: Vec<_> = model.keys().rev().filter(of_column).collect();
        let mut kept: Vec<_> = match keep {
            Keep::Versions(most) => versions.into_iter().take(most.get()).collect(),
            Keep::Since(moment) => {
                let newer = versions.iter().filter(|key| key.3 > moment).count();
                versions.into_iter().take(newer + 1).collect()
            }
        };
        // A tombstone at the end hides nothing. But after the moment it may hide a late write.
        let may_go =
            |last: &(Row, &str, &str, u64)| !matches!(keep, Keep::Since(moment) if last.3 > moment);
        if kept.last().is_some_and(|last| model[*last].is_none() && may_go(last)) {
            kept.pop();
        }
        left.extend(kept.into_iter().map(|key| (key.clone(), model[key].clone())));
    }
    left
}

pub fn collecting_keeps_what_it_should_and_changes_no_read_that_is_promised(
    store: &(impl Store + Clone),
) {
    let web = web();
    let keep = prop_oneof![
        (1..4usize).prop_map(|most| Keep::Versions(NonZeroUsize::new(most).unwrap())),
        (0..=LAST_TIME + 1).prop_map(Keep::Since),
    ];
    let late = writes();
    let case = (writes(), keep, 1..7usize, any::<bool>(), late);
    long_property(case, |(writes, keep, batch, stopped, late)| {
        let mut model = fill(store, &writes);
        let wanted = collected(&model, keep);
        let mut options = RepairOptions { batch, resume: None };
        let mut removed = 0;
        // In one call, or interrupted after each transaction and resumed.
        loop {
            let mut told = None;
            let done = web.sweep_with(store, keep, &options, |progress| {
                told = Some(progress.clone());
                if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let done = done.unwrap();
            assert_eq!(told.as_ref(), Some(&done));
            assert!(!stopped || done.entries <= batch as u64);
            removed += done.removed;
            if done.finished {
                break;
            }
            options.resume = Some(done.position);
        }
        assert_eq!(removed, (model.len() - wanted.len()) as u64);
        let before = dump_all(store);
        fill(store, &[]);
        refill(store, &wanted);
        assert_eq!(before, dump_all(store), "what is left, byte for byte");
        let snapshot = store.snapshot().unwrap();
        let promised = match keep {
            Keep::Versions(_) => NOW..=NOW,
            Keep::Since(moment) => moment..=LAST_TIME + 2,
        };
        let reads = || (0..3).flat_map(|r| promised.clone().map(move |time| (row(r), time)));
        for (row, as_of) in reads() {
            assert_eq!(web.row(&snapshot, &row, as_of).unwrap(), cells(&model, &row, as_of));
        }
        // A write that arrives late, but belongs after the moment, is hidden by newer versions.
        let Keep::Since(moment) = keep else { return };
        drop(snapshot);
        let late: Vec<_> = late.into_iter().filter(|(.., time, _)| *time > moment).collect();
        put_all(store, &late);
        model.extend(late.iter().map(entry));
        let snapshot = store.snapshot().unwrap();
        for (row, as_of) in reads() {
            assert_eq!(web.row(&snapshot, &row, as_of).unwrap(), cells(&model, &row, as_of));
        }
    });
}

fn refill(store: &impl Store, model: &Model) {
    let web = web();
    let put = |txn: &mut DynWriter<'_>| -> Result<()> {
        model.iter().try_for_each(|((row, family, column, time), value)| match value {
            Some(value) => web.put(txn, row, family, column, *time, value),
            None => web.delete(txn, row, family, column, *time),
        })
    };
    store.transact(|txn| put(&mut DynWriter::new(txn))).unwrap();
}

/// Two columns of ten versions; the last version of the second is a tombstone.
fn twenty(store: &impl Store) {
    let web = web();
    store
        .transact(|txn| {
            (0..10).try_for_each(|time| {
                web.put(txn, &row(0), "f", "c", time, b"value")?;
                web.put(txn, &row(0), "f", "d", time, b"value")
            })?;
            web.delete(txn, &row(0), "f", "d", 9)
        })
        .unwrap();
}

pub fn wide_columns_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    twenty(store);
    let web = web();
    let store = Metered::new(store.clone());
    let r = row(0);
    assert_eq!(writing(&store, |txn| web.put(txn, &r, "f", "e", 1, b"1")), [0, 0, 0, 1]);
    assert_eq!(writing(&store, |txn| web.delete(txn, &r, "f", "e", 1)), [0, 0, 0, 1]);
    let snapshot = store.snapshot().unwrap();
    let reading = |work: &dyn Fn()| counts(store.measure(|_| work()).1);
    for as_of in [NOW, 5] {
        let get = || assert!(web.get(&snapshot, &r, "f", "c", as_of).unwrap().is_some());
        assert_eq!(reading(&get), [0, 1, 1, 0]);
    }
    let versions = || assert_eq!(web.versions(&snapshot, &r, "f", "c", 3..6).unwrap().len(), 3);
    assert_eq!(reading(&versions), [0, 1, 3, 0]);
    let all = || assert_eq!(web.row(&snapshot, &r, NOW).unwrap().len(), 1);
    assert_eq!(reading(&all), [0, 1, 21, 0]);
    let columns = || assert_eq!(web.columns(&snapshot, &r, "f", "d"..="d", 8).unwrap().len(), 1);
    assert_eq!(reading(&columns), [0, 1, 10, 0]);
    drop(snapshot);
    let one = Keep::Versions(NonZeroUsize::MIN);
    let options = RepairOptions { batch: 7, resume: None };
    let going_on = |_: &_| ControlFlow::Continue(());
    let (done, cost) = store.measure(|store| web.sweep_with(store, one, &options, going_on));
    // Three pages: nine old versions of each column and two tombstones. Each is checked by a get
    // and a range read.
    assert_eq!(done.unwrap().removed, 20);
    assert_eq!(counts(cost), [2, 5, 23, 20]);
    assert_eq!(cost.commits, 3);
    assert_eq!(writing(&store, |txn| web.delete_row(txn, &r)), [0, 0, 0, 1]);
    assert_eq!(dump_all(&store).len(), 0);
}

pub fn wide_columns_refuse_bad_input(store: &(impl Store + Clone)) {
    clear(store);
    twenty(store);
    let web = web();
    let r = row(0);
    let long = "n".repeat(600);
    let error = refused(store, |txn| web.put(txn, &r, "f", &long, 1, b""));
    assert!(matches!(&error, Error::KeyTooLong { key, .. } if key.contains("web")), "{error}");
    let key = |column: &str| web.space().child(&r).child(&("f", column)).pack(&keyloom::Desc(1u64));
    let options = RepairOptions::default();
    let going_on = |_: &_| ControlFlow::Continue(());
    for (value, words) in
        [(&b"\x21x"[..], "upgrade the program"), (b"\x13", "not a cell"), (b"", "not a cell")]
    {
        store.transact(|txn| txn.put(&key("x"), value)).unwrap();
        let error = web.get(&store.snapshot().unwrap(), &r, "f", "x", NOW).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        let collected = web.sweep_with(store, Keep::Since(5), &options, going_on);
        assert!(collected.unwrap_err().to_string().contains(words));
    }
    store.transact(|txn| txn.delete(&key("x"))).unwrap();
    let foreign = web.space().pack(&("r", 1, "f", "c", "no time"));
    store.transact(|txn| txn.put(&foreign, b"\x11")).unwrap();
    let error = web.row(&store.snapshot().unwrap(), &r, NOW).unwrap_err();
    assert!(error.to_string().contains("no time"), "{error}");
    store.transact(|txn| txn.delete(&foreign)).unwrap();

    // A position of another collection, and a position that is not a cell.
    let one = RepairOptions { batch: 1, resume: None };
    let done = web.sweep_with(store, Keep::Since(9), &one, |_| ControlFlow::Break(())).unwrap();
    let elsewhere = WideColumns::<Row>::new(&Subspace::new("elsewhere"));
    let mut resumed = RepairOptions { batch: 1, resume: Some(done.position) };
    let error = elsewhere.sweep_with(store, Keep::Since(9), &resumed, going_on).unwrap_err();
    assert!(error.to_string().contains("another repair"), "{error}");
    resumed.resume.as_mut().unwrap().last = Some(web.space().pack(&("r", 1, "f")));
    let error = web.sweep_with(store, Keep::Since(9), &resumed, going_on).unwrap_err();
    assert!(matches!(error, Error::At { .. }), "{error}");

    // A fault in a write or in a collection leaves complete versions.
    let change = |txn: &mut DynWriter<'_>| {
        web.put(txn, &r, "f", "c", 20, b"new")?;
        web.delete(txn, &r, "f", "d", 21)?;
        web.put(txn, &row(1), "g", "c", 1, b"")?;
        web.delete_row(txn, &row(2))
    };
    faults_leave_nothing_half_done(
        store,
        |store| twenty(store),
        change,
        |store| {
            let snapshot = store.snapshot().unwrap();
            web.row(&snapshot, &r, NOW).map_or_else(|error| vec![error.to_string()], |_| vec![])
        },
    );
}

pub fn a_collection_that_failed_is_begun_again(store: &(impl Store + Clone)) {
    let (web, r) = (web(), row(0));
    let keep = Keep::Since(6);
    let collect = |store: &_| {
        let options = RepairOptions { batch: 5, resume: None };
        going(&web, store, keep, &options)
    };
    let reads = |store: &_| {
        let snapshot = Store::snapshot(store).unwrap();
        (6..12).map(|as_of| web.row(&snapshot, &r, as_of).unwrap()).collect::<Vec<_>>()
    };
    clear(store);
    twenty(store);
    let wanted = reads(store);
    collect(store).unwrap();
    let collected = dump_all(store);
    let faulty = Faulty::new(store.clone());
    for fault in [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted] {
        for n in 0.. {
            clear(store);
            twenty(store);
            faulty.fail_at(n, fault);
            let outcome = going(&web, &faulty, keep, &RepairOptions { batch: 5, resume: None });
            faulty.clear_fault();
            assert_eq!(reads(store), wanted, "{fault:?} at operation {n}");
            if outcome.is_ok() {
                assert!(n > 30, "a collection has only {n} operations");
                break;
            }
            collect(store).unwrap();
            assert_eq!(dump_all(store), collected, "{fault:?} at operation {n}");
        }
    }
}

fn going<S: Store>(
    web: &WideColumns<Row>,
    store: &S,
    keep: Keep,
    options: &RepairOptions,
) -> Result<u64> {
    web.sweep_with(store, keep, options, |_| ControlFlow::Continue(())).map(|done| done.removed)
}

/// Another writer overwrites a tombstone between two transactions of a collection.
#[test]
fn a_value_that_replaces_a_deletion_is_not_collected_with_it() {
    let store = keyloom::Memory::new();
    let web = web();
    let r = row(0);
    store
        .transact(|txn| {
            web.delete(txn, &r, "f", "c", 5)?;
            web.put(txn, &r, "f", "d", 1, b"other")
        })
        .unwrap();
    let options = RepairOptions { batch: 1, resume: None };
    web.sweep_with(&store, Keep::Since(9), &options, |progress| {
        if progress.entries == 1 {
            store.transact(|txn| web.put(txn, &r, "f", "c", 5, b"new")).unwrap();
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    let found = web.get(&store.snapshot().unwrap(), &r, "f", "c", NOW).unwrap();
    assert_eq!(found.unwrap().value, b"new");
    // A deletion is kept if an older version is written after the collection has begun.
    store.transact(|txn| web.delete(txn, &r, "f", "c", 5)).unwrap();
    web.sweep_with(&store, Keep::Since(9), &options, |progress| {
        if progress.entries == 1 {
            store.transact(|txn| web.put(txn, &r, "f", "c", 2, b"late")).unwrap();
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(web.get(&store.snapshot().unwrap(), &r, "f", "c", NOW).unwrap(), None);
}
