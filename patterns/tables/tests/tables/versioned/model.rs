//! Random operations, compared with the same operations on a map.

use std::collections::BTreeMap;

use keyloom::{Error, Store, Subspace, Writer};
use keyloom_tables::versioned::{Expected, Full, VersionedRecord};
use keyloom_tables::{Index, Maintained, RecordConflict, VersionedTable, entry};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use keyloom_testing::laws::{clear, dump, dump_all, property};

pub type List = Vec<u8>;

/// Short lists by id, and an index of their lengths. The encoded ids share prefixes and suffixes.
pub const IDS: [u8; 4] = [0, 20, 1, 255];

pub struct Lists {
    pub table: VersionedTable<u8, List>,
    pub by_length: Index<u8, VersionedRecord<List>, usize>,
}

impl Lists {
    pub fn new() -> Self {
        let space = Subspace::new("lists");
        let by_length = Index::new(&space.child("by_length"), |_, list: &VersionedRecord<List>| {
            entry(list.value.len())
        });
        Self { table: VersionedTable::new(&space).with(&by_length), by_length }
    }

    pub fn faults(&self, store: &impl Store) -> Vec<String> {
        let found = self.by_length.check(&store.snapshot().unwrap(), self.table.records()).unwrap();
        found.iter().map(ToString::to_string).collect()
    }
}

#[derive(Clone, Debug)]
enum Change {
    Create(List),
    /// An update whose expected version is this far behind the current one.
    Update(u64, List),
    Delete(u64),
    Swap(Option<List>, Option<List>),
    Reverse,
    Remove,
    Append(u8, usize),
    AppendDroppingOldest(u8, usize),
}

fn changes() -> impl Strategy<Value = Vec<(u8, Change)>> {
    let list = || vec(0..2u8, 0..3);
    let item = || (any::<u8>(), 1..4usize);
    let change = prop_oneof![
        3 => list().prop_map(Change::Create),
        3 => (0..2u64, list()).prop_map(|(behind, list)| Change::Update(behind, list)),
        2 => (0..2u64).prop_map(Change::Delete),
        3 => (option::of(list()), option::of(list())).prop_map(|(old, new)| Change::Swap(old, new)),
        1 => Just(Change::Reverse),
        1 => Just(Change::Remove),
        2 => item().prop_map(|(item, most)| Change::Append(item, most)),
        2 => item().prop_map(|(item, most)| Change::AppendDroppingOldest(item, most)),
    ];
    vec((prop::sample::select(IDS.to_vec()), change), 1..40)
}

/// The outcome of a change: the new version, or the conflicting record.
#[derive(Debug, PartialEq)]
enum Outcome {
    Done(Option<u64>),
    Refused(Expected, Option<(u64, List)>),
    Full(usize),
}

/// The model: records and their versions, and the largest version that was deleted.
#[derive(Default)]
struct Model {
    records: BTreeMap<u8, (u64, List)>,
    deleted: u64,
}

impl Model {
    fn set(&mut self, id: u8, new: Option<List>) -> Outcome {
        let old = self.records.remove(&id);
        let Some(list) = new else {
            self.deleted = self.deleted.max(old.map_or(0, |(version, _)| version));
            return Outcome::Done(None);
        };
        let version = old.map_or(self.deleted, |(version, _)| version) + 1;
        self.records.insert(id, (version, list));
        Outcome::Done(Some(version))
    }

    fn apply(&mut self, id: u8, change: Change) -> Outcome {
        let there = self.records.get(&id).cloned();
        let version = there.as_ref().map(|(version, _)| *version);
        let list = there.as_ref().map(|(_, list)| list.clone());
        match change {
            Change::Create(new) if there.is_none() => self.set(id, Some(new)),
            Change::Create(_) => Outcome::Refused(Expected::Absent, there),
            Change::Update(0, new) if there.is_some() => self.set(id, Some(new)),
            Change::Delete(0) if there.is_some() => self.set(id, None),
            Change::Update(behind, _) | Change::Delete(behind) => {
                Outcome::Refused(Expected::Version(wanted(version, behind)), there)
            }
            Change::Swap(old, new) if old == list => self.set(id, new),
            Change::Swap(None, _) => Outcome::Refused(Expected::Absent, there),
            Change::Swap(Some(_), _) => Outcome::Refused(Expected::Value, there),
            Change::Reverse => self.set(id, list.map(|list| list.into_iter().rev().collect())),
            Change::Remove => self.set(id, None),
            Change::Append(item, most) => {
                let mut list = list.unwrap_or_default();
                if list.len() >= most {
                    return Outcome::Full(list.len());
                }
                list.push(item);
                self.set(id, Some(list))
            }
            Change::AppendDroppingOldest(item, most) => {
                let mut list = list.unwrap_or_default();
                list.push(item);
                while list.len() > most {
                    list.remove(0);
                }
                self.set(id, Some(list))
            }
        }
    }
}

/// The version that a change expects.
fn wanted(current: Option<u64>, behind: u64) -> u64 {
    current.unwrap_or(1).wrapping_sub(behind)
}

fn outcome(done: keyloom::Result<Option<u64>>) -> Outcome {
    let error = match done {
        Ok(version) => return Outcome::Done(version),
        Err(error) => error,
    };
    assert!(!error.is_retryable(), "the same change would be refused again");
    if let Some(full) = error.downcast_ref::<Full>() {
        return Outcome::Full(full.items);
    }
    let conflict = error.downcast_ref::<RecordConflict<List>>().expect("no other error is known");
    let current = conflict.current.clone().map(|current| (current.version, current.value));
    Outcome::Refused(conflict.expected, current)
}

fn apply(
    lists: &Lists,
    txn: &mut impl Writer,
    id: u8,
    change: Change,
) -> keyloom::Result<Option<u64>> {
    let table = &lists.table;
    let current = table.get(txn, &id)?.map(|record| record.version);
    match change {
        Change::Create(list) => table.create(txn, &id, list).map(Some),
        Change::Update(behind, list) => {
            table.update(txn, &id, wanted(current, behind), list).map(Some)
        }
        Change::Delete(behind) => table.delete(txn, &id, wanted(current, behind)).map(|()| None),
        Change::Swap(old, new) => table.compare_and_swap(txn, &id, old.as_ref(), new),
        Change::Reverse => {
            table.modify(txn, &id, |list| Ok(list.map(|list| list.iter().rev().copied().collect())))
        }
        Change::Remove => table.modify(txn, &id, |_| Ok(None)),
        Change::Append(item, most) => table.append(txn, &id, item, most).map(Some),
        Change::AppendDroppingOldest(item, most) => {
            table.append_dropping_oldest(txn, &id, item, most).map(Some)
        }
    }
}

pub fn every_operation_does_what_it_does_to_a_map(store: &(impl Store + Clone)) {
    let lists = Lists::new();
    property(changes(), |changes| {
        clear(store);
        let mut model = Model::default();
        for (id, change) in changes {
            let wanted = model.apply(id, change.clone());
            let found = outcome(store.transact(|txn| apply(&lists, txn, id, change.clone())));
            assert_eq!(found, wanted, "{change:?} of {id}");
        }
        let snapshot = store.snapshot().unwrap();
        for id in 0..4u8 {
            let record = lists.table.get(&snapshot, &id).unwrap();
            let found = record.map(|record| (record.version, record.value));
            assert_eq!(found.as_ref(), model.records.get(&id));
        }
        drop(snapshot);
        // The rebuilt data is equal to the maintained data.
        assert_eq!(lists.faults(store), [""; 0]);
        let maintained = dump_all(store);
        let index = Subspace::new("lists").child("by_length").range();
        assert_eq!(dump(&store.snapshot().unwrap(), index.clone()).len(), model.records.len());
        store.transact(|txn| txn.delete_range(index.clone())).unwrap();
        lists.by_length.repair(store, lists.table.records()).unwrap();
        assert_eq!(dump_all(store), maintained);
    });
}

/// The "ABA problem": a version of a deleted record must not match a later record with the same
/// key.
pub fn a_record_that_comes_back_has_a_version_of_its_own(store: &(impl Store + Clone)) {
    clear(store);
    let table = VersionedTable::<u8, String>::new(&Subspace::new("names"));
    let seen = store.transact(|txn| table.create(txn, &1, "first".into())).unwrap();
    store
        .transact(|txn| {
            table.delete(txn, &1, seen)?;
            table.create(txn, &1, "second".into())
        })
        .unwrap();
    let late = store.transact(|txn| table.update(txn, &1, seen, "late".into()));
    let error = late.unwrap_err();
    let conflict = error.downcast_ref::<RecordConflict<String>>().unwrap();
    assert_eq!(conflict.current.as_deref().unwrap(), "second");
    // The same with a deletion that has no expected version.
    store.transact(|txn| table.modify(txn, &1, |_| Ok(None))).unwrap();
    let third = store.transact(|txn| table.create(txn, &1, "third".into())).unwrap();
    assert_eq!(third, 3);
    let other = store.transact(|txn| table.create(txn, &2, "another".into())).unwrap();
    assert_eq!(other, 3, "no versions of 2 were deleted, but a key begins behind all that were");
    let of_nothing = store.transact(|txn| table.update(txn, &9, 1, "nobody".into()));
    let error: Error = of_nothing.unwrap_err();
    assert!(error.to_string().contains("does not exist, version 1 was expected"), "{error}");
}
