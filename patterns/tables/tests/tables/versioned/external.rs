//! Versions from another system, compared with a map, and in every order of arrival.

use std::collections::BTreeMap;

use keyloom::{DynWriter, Error, Metered, Result, Store, Subspace, Writer};
use keyloom_tables::versioned::{Expected, ExternalVersion};
use keyloom_tables::{RecordConflict, VersionedTable};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::model::{IDS, List, Lists};
use keyloom_testing::laws::{
    clear, conflicts_are_retried_to_the_same_end, dump_all, faults_leave_nothing_half_done,
    property, refused, writing,
};

use ExternalVersion::{Greater, GreaterOrEqual};

/// A change from another system: the value at a version, or `None` after a deletion.
type Change = (u64, Option<List>);

/// The version and the value of each key; a deleted key has no value.
type Model = BTreeMap<u8, Change>;

fn change(txn: &mut impl Writer, id: u8, version: ExternalVersion, to: Option<List>) -> Result<()> {
    let Lists { table, .. } = Lists::new();
    match to {
        Some(list) => table.put_external(txn, &id, version, list),
        None => table.delete_external(txn, &id, version).map(drop),
    }
}

fn stored(store: &impl Store, id: u8) -> Option<(u64, List)> {
    let found = Lists::new().table.get(&store.snapshot().unwrap(), &id).unwrap();
    found.map(|record| (record.version, record.value))
}

/// Whether the model accepts the change. If not, the conflict contains the conflicting record.
fn apply(
    store: &impl Store,
    model: &mut Model,
    id: u8,
    version: ExternalVersion,
    to: Option<List>,
) {
    let current = model.get(&id).cloned();
    let is_newer = match (&current, version) {
        (None, _) => true,
        (Some((current, _)), Greater(given)) => given > *current,
        (Some((current, _)), GreaterOrEqual(given)) => given >= *current,
    };
    let result = store.transact(|txn| change(txn, id, version, to.clone()));
    if is_newer {
        result.unwrap();
        model.insert(id, (version.number(), to));
        return;
    }
    let error = result.unwrap_err();
    let conflict = error.downcast_ref::<RecordConflict<List>>().expect("a conflict");
    assert_eq!(conflict.expected, Expected::External(version));
    let (found, value) = current.unwrap();
    let record = conflict.current.clone().map(|record| (record.version, record.value));
    match value {
        Some(value) => assert_eq!((record, conflict.deleted), (Some((found, value)), None)),
        None => assert_eq!((record, conflict.deleted), (None, Some(found))),
    }
}

pub fn external_changes_do_what_they_do_to_a_map(store: &(impl Store + Clone)) {
    let list = vec(0..2u8, 0..3);
    let id = prop::sample::select(IDS[..3].to_vec());
    let changes = vec((id, 0..12u64, any::<bool>(), option::weighted(0.7, list)), 1..30);
    property(changes, |changes| {
        clear(store);
        let mut model = Model::new();
        for (id, number, is_strict, to) in changes {
            let version = if is_strict { Greater(number) } else { GreaterOrEqual(number) };
            apply(store, &mut model, id, version, to);
            let wanted = model.get(&id).and_then(|(version, to)| Some((*version, to.clone()?)));
            assert_eq!(stored(store, id), wanted);
        }
        assert_eq!(Lists::new().faults(store), [""; 0]);
    });
}

/// Another system changes a record, and its changes arrive in random order, some of them twice.
pub fn changes_in_any_order_end_with_the_newest(store: &(impl Store + Clone)) {
    let history = vec(option::weighted(0.7, vec(any::<u8>(), 0..3)), 1..8);
    let arrivals = history.prop_flat_map(|history| {
        let numbered: Vec<Change> = (1..).zip(history).collect();
        let twice = numbered.iter().chain(&numbered).cloned().collect::<Vec<_>>();
        (Just(numbered), Just(twice).prop_shuffle())
    });
    let lost = std::cell::Cell::new(0);
    property(arrivals, |(history, arrivals)| {
        clear(store);
        let mut written_blindly = None;
        for (version, to) in arrivals {
            let version = GreaterOrEqual(version);
            // A refused change is older, and is skipped.
            let _older = store.transact(|txn| change(txn, 1, version, to.clone()));
            written_blindly = to;
        }
        let (version, newest) = history.last().unwrap().clone();
        assert_eq!(stored(store, 1), newest.clone().map(|list| (version, list)));
        lost.set(lost.get() + u32::from(written_blindly != newest));
    });
    // The negative control: the last change to arrive is often an older one.
    assert!(lost.get() > 0);
}

pub fn external_changes_cost_what_the_docs_say(store: &(impl Store + Clone)) {
    clear(store);
    let table = VersionedTable::<u8, List>::new(&Subspace::new("lists"));
    let store = Metered::new(store.clone());
    let put =
        |version| writing(&store, |txn| table.put_external(txn, &1, Greater(version), vec![1]));
    let delete =
        |version| writing(&store, |txn| table.delete_external(txn, &1, Greater(version)).map(drop));
    // Gets, ranges, keys read, keys written.
    assert_eq!(put(1), [3, 0, 0, 1]);
    assert_eq!(put(2), [1, 0, 1, 1]);
    assert_eq!(delete(3), [1, 0, 1, 3]);
    assert_eq!(delete(4), [3, 0, 1, 2]);
    assert_eq!(put(5), [3, 0, 1, 2]);
}

/// A change with a version from either source.
#[derive(Clone, Debug)]
enum AnyChange {
    /// A change by the table itself, which counts the version.
    Own(Option<List>),
    External(u64, bool, Option<List>),
}

/// Both sources change the same keys. A version of a key never recurs, so a caller that has read a
/// version cannot change another record by mistake.
pub fn no_version_comes_twice_whatever_its_source(store: &(impl Store + Clone)) {
    let list = || option::weighted(0.6, vec(0..2u8, 0..2));
    let any_change = prop_oneof![
        list().prop_map(AnyChange::Own),
        (0..8u64, any::<bool>(), list())
            .prop_map(|(number, is_strict, to)| AnyChange::External(number, is_strict, to)),
    ];
    let repeated = std::cell::Cell::new(0);
    let id = prop::sample::select(IDS[..2].to_vec());
    property(vec((id, any_change), 1..24), |mut changes| {
        clear(store);
        let Lists { table, .. } = Lists::new();
        // The control: the other system may repeat a version, and does so at the end of each
        // history.
        changes.extend([
            (0, AnyChange::External(100, false, Some(vec![1]))),
            (0, AnyChange::External(100, false, Some(vec![0]))),
        ]);
        // All versions of each key, and whether the other system assigned them.
        let mut had: BTreeMap<(u8, u64), bool> = BTreeMap::new();
        for (id, change_to) in changes {
            let before = stored(store, id);
            let external = match &change_to {
                AnyChange::External(number, ..) => Some(*number),
                AnyChange::Own(_) => None,
            };
            let may_be_equal = matches!(change_to, AnyChange::External(_, false, _));
            let done = store.transact(|txn| match change_to.clone() {
                AnyChange::Own(to) => table.modify(txn, &id, |_| Ok(to)).map(drop),
                AnyChange::External(number, true, to) => change(txn, id, Greater(number), to),
                AnyChange::External(number, false, to) => {
                    change(txn, id, GreaterOrEqual(number), to)
                }
            });
            if done.is_err() {
                continue;
            }
            let Some((version, _)) = stored(store, id) else {
                // A deletion by the other system also assigns a version.
                had.extend(external.map(|version| ((id, version), true)));
                continue;
            };
            let is_new = !had.contains_key(&(id, version));
            // The other system may repeat a version of its own, or the current version.
            let is_there = before.is_some_and(|(before, _)| before == version);
            let may_repeat = may_be_equal && (is_there || had.get(&(id, version)) == Some(&true));
            assert!(is_new || may_repeat, "{id} {version}");
            repeated.set(repeated.get() + u32::from(!is_new));
            had.insert((id, version), external.is_some());
        }
        assert_eq!(Lists::new().faults(store), [""; 0]);
    });
    assert!(repeated.get() > 0, "no version was repeated");
}

pub fn a_version_that_the_table_gave_is_not_given_again(store: &(impl Store + Clone)) {
    clear(store);
    let Lists { table, .. } = Lists::new();
    let version = store.transact(|txn| table.create(txn, &1, vec![1])).unwrap();
    let next = store.transact(|txn| table.update(txn, &1, version, vec![2])).unwrap();
    store.transact(|txn| table.delete(txn, &1, next)).unwrap();
    for version in [Greater(1), GreaterOrEqual(1), Greater(2), GreaterOrEqual(2)] {
        let error = refused(store, |txn| change(txn, 1, version, Some(vec![9])));
        let conflict = error.downcast_ref::<RecordConflict<List>>().expect("a conflict");
        assert_eq!((conflict.current.as_ref(), conflict.deleted), (None, None));
        assert_eq!(conflict.deleted_here, Some(2));
        assert!(error.to_string().contains("come from one source"), "{error}");
    }
    store.transact(|txn| change(txn, 1, Greater(3), Some(vec![9]))).unwrap();
    assert!(store.transact(|txn| table.update(txn, &1, 1, vec![7])).is_err(), "a stale reader");

    // Version 0 comes from another system, and is not assigned again either.
    clear(store);
    store.transact(|txn| change(txn, 1, GreaterOrEqual(0), Some(vec![1]))).unwrap();
    store.transact(|txn| table.delete(txn, &1, 0)).unwrap();
    let error = refused(store, |txn| change(txn, 1, Greater(0), Some(vec![2])));
    let conflict = error.downcast_ref::<RecordConflict<List>>().expect("a conflict");
    assert_eq!(conflict.deleted_here, Some(0));
}

pub fn bad_external_versions_are_refused(store: &(impl Store + Clone)) {
    clear(store);
    let largest = i64::MAX.cast_unsigned();
    for number in [largest + 1, (-1_i64).cast_unsigned()] {
        for version in [Greater(number), GreaterOrEqual(number)] {
            for to in [Some(vec![1]), None] {
                let error = refused(store, |txn| change(txn, 1, version, to));
                assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
                assert!(error.to_string().contains("negative"), "{error}");
            }
        }
    }
    // After the largest version, the table still has versions for its own records.
    store.transact(|txn| change(txn, 1, Greater(largest), None)).unwrap();
    let Lists { table, .. } = Lists::new();
    let version = store.transact(|txn| table.create(txn, &2, vec![])).unwrap();
    assert_eq!(version, largest + 1);
    // The smallest version is valid, too.
    store.transact(|txn| change(txn, 3, Greater(0), Some(vec![]))).unwrap();
    let error = refused(store, |txn| change(txn, 3, Greater(0), Some(vec![])));
    assert_eq!(
        error.to_string(),
        "the record (\"lists\", \"record\", 3) has version 0, a version less than 0 was expected; \
         the change is older, so leave it out"
    );
    store.transact(|txn| change(txn, 3, GreaterOrEqual(0), Some(vec![7]))).unwrap();
    assert_eq!(stored(store, 3), Some((0, vec![7])));
}

pub fn forgotten_deletions_are_gone(store: &(impl Store + Clone)) {
    clear(store);
    for id in 0..10 {
        store.transact(|txn| change(txn, id, Greater(10 + u64::from(id)), None)).unwrap();
    }
    let Lists { table, .. } = Lists::new();
    assert_eq!(table.sweep(store, 15).unwrap().removed, 5);
    assert_eq!(table.sweep(store, 15).unwrap().removed, 0);
    for id in 0..10 {
        let put = store.transact(|txn| change(txn, id, Greater(9), Some(vec![])));
        assert_eq!(put.is_ok(), id < 5, "{id}");
    }
    assert_eq!(table.sweep(store, u64::MAX).unwrap().removed, 5);
}

fn prepare(store: &impl Store) {
    store
        .transact(|txn| {
            change(txn, 1, Greater(5), Some(vec![1]))?;
            change(txn, 2, Greater(5), Some(vec![2]))?;
            change(txn, 3, Greater(5), None)
        })
        .unwrap();
}

fn changes(txn: &mut DynWriter<'_>) -> Result<()> {
    change(txn, 1, Greater(6), Some(vec![1, 2]))?;
    change(txn, 2, Greater(6), None)?;
    change(txn, 3, Greater(6), Some(vec![3]))?;
    change(txn, 4, GreaterOrEqual(1), None)
}

pub fn a_fault_in_an_external_change_leaves_nothing(store: &(impl Store + Clone)) {
    faults_leave_nothing_half_done(store, prepare, changes, |store| Lists::new().faults(store));
    conflicts_are_retried_to_the_same_end(store, prepare, changes);
    assert!(!dump_all(store).is_empty());
}
