//! Index entries: for any contents of the subspaces of an index and its table, reads return an
//! error or a finding, and a repair leaves no findings.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use arbitrary::{Arbitrary, Unstructured};
use keyloom::key::unpack;
use keyloom::value::{Codec, Postcard};
use keyloom::{MAX_KEY_BYTES, Memory, Order, Store, Subspace, Writer};
use keyloom_patterns::derived::RepairOptions;
use keyloom_patterns::{AnyParts, Index, Maintained, in_order, starting_with};

use crate::records::{Id, Town, Towns, dump, order};
use keyloom_patterns::{Inconsistency, Rule};

#[derive(Debug, Arbitrary)]
struct Input {
    records: BTreeMap<Id, Town>,
    garbage: Vec<Garbage>,
    batch: u8,
    descending: bool,
}

#[derive(Debug, Arbitrary)]
enum Garbage {
    /// Any bytes after the prefix of one of the indexes, with any value.
    Entry { index: u8, key: Vec<u8>, value: Vec<u8> },
    /// The key of a possible entry, with a value that gives the offset of the record key.
    Plausible { country: u8, name: String, id: Id, format: u8, length: u8 },
    /// An existing entry, with another value.
    Overwritten { at: u8, value: Vec<u8> },
    /// An entry that was removed.
    Removed { at: u8 },
    /// Any bytes in the table.
    Record { key: Vec<u8>, value: Vec<u8> },
}

pub(crate) fn index_entries(data: &[u8]) {
    let Ok(input) = Input::arbitrary(&mut Unstructured::new(data)) else { return };
    let towns = Towns::new();
    let store = Memory::new();
    // Longer names would not fit into a key.
    let good = input.records.iter().filter(|(_, town)| town.name.len() < 200);
    let good: Vec<_> = good.map(|(id, town)| (*id, town.clone())).collect();
    store.transact(|txn| towns.table.put_many(txn, &good)).unwrap();
    let clean = dump(&store);
    for garbage in &input.garbage {
        spoil(garbage, &towns, &store);
    }
    for index in towns.indexes() {
        ask(&index, &towns, &store, order(input.descending));
    }
    repair(&input, &towns, &store, &clean);
}

fn spoil(garbage: &Garbage, towns: &Towns, store: &Memory) {
    let entry = |at: &u8| {
        let entries = dump(store);
        entries.keys().nth(usize::from(*at) % entries.len().max(1)).cloned()
    };
    let join = |space: &Subspace, rest: &[u8]| [space.prefix(), rest].concat();
    let (key, value) = match garbage {
        Garbage::Entry { index, key, value } => {
            let index = &towns.indexes()[usize::from(index % 3)];
            (join(index.space(), key), Some(value.clone()))
        }
        Garbage::Plausible { country, name, id, format, length } => {
            let space = towns.by_name.space();
            let key = space.pack(&(*country, name, *id)).to_vec();
            (key, Some(vec![format << 4, *length]))
        }
        Garbage::Overwritten { at, value } => match entry(at) {
            Some(key) if !towns.table.space().contains(&key) => (key, Some(value.clone())),
            _ => return,
        },
        Garbage::Removed { at } => match entry(at) {
            Some(key) => (key, None),
            None => return,
        },
        Garbage::Record { key, value } => (join(towns.table.space(), key), Some(value.clone())),
    };
    if key.len() > MAX_KEY_BYTES {
        return;
    }
    let write = |txn: &mut keyloom::memory::MemoryTransaction<'_>| match &value {
        Some(value) => txn.put(&key, value),
        None => txn.delete(&key),
    };
    store.transact(write).unwrap();
}

/// Reads in every way. Each result is right or an error.
fn ask(index: &Index<Id, Town, AnyParts>, towns: &Towns, store: &Memory, order: Order) {
    let snapshot = store.snapshot().unwrap();
    let mut count = 0;
    for found in index.range(&snapshot, in_order(.., order)).unwrap() {
        count += 1;
        let Ok(found) = found.map_err(|error| error.to_string()) else { continue };
        let _ = found.parts_as::<(u8, String)>().map_err(|error| error.to_string());
        let _ = found.parts_as::<keyloom::Desc<u16>>().map_err(|error| error.to_string());
        if let Ok(id) = found.record_key() {
            let packed = keyloom::key::pack(&(id,));
            assert!(unpack::<(Id,)>(&packed).is_ok_and(|again| again.0 == id));
        }
    }
    assert_eq!(index.count(&snapshot, ..).unwrap(), count);
    let _ = index
        .query()
        .prefix(1_u8)
        .order(order)
        .limit(3)
        .page(&snapshot)
        .map_err(|error| error.to_string());
    let select = starting_with((1_u8, "a"));
    if let Ok(page) =
        index.query().select(select).order(order).limit(5).records(&snapshot, &towns.table)
    {
        for (id, town) in page.items {
            assert_eq!(towns.table.get(&snapshot, &id).unwrap(), Some(town));
        }
    }
    for record in towns.table.range(&snapshot, in_order(.., order)).unwrap() {
        let _ = record.map_err(|error| error.to_string());
    }
}

/// A check reports every fault, and a repair removes it or reports why it cannot.
fn repair(input: &Input, towns: &Towns, store: &Memory, clean: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let spoilt = dump(store);
    let within = |space: &Subspace, key: &[u8]| space.self_and_children().contains(key);
    let has_bad_records =
        spoilt.iter().filter(|(key, _)| within(towns.table.space(), key)).any(|(key, value)| {
            let is_record = towns.table.space().unpack::<Id>(key).is_ok()
                && <Postcard as Codec<Town>>::decode(value).is_ok();
            !is_record
        });
    let options = RepairOptions { batch: usize::from(input.batch % 8) + 1, resume: None };
    let mut repaired = 0;
    for index in towns.indexes() {
        let before = index.check(&store.snapshot().unwrap(), &towns.table);
        let outcome =
            index.repair_with(store, &towns.table, &options, |_| ControlFlow::Continue(()));
        let (before, outcome) = (before.unwrap(), outcome.unwrap());
        assert!(outcome.finished);
        let left = index.check(&store.snapshot().unwrap(), &towns.table).unwrap();
        if !has_bad_records {
            assert_eq!(before.is_empty(), outcome.written + outcome.removed == 0, "{before:?}");
            // An entry with a wrong value may also be superfluous.
            let entries: BTreeSet<_> = before.iter().map(|fault| &fault.key).collect();
            assert_eq!(entries.len() as u64, outcome.written + outcome.removed, "{before:?}");
            assert_eq!(left, []);
            repaired += 1;
            continue;
        }
        // A record that does not decode remains as a fault.
        let stays = |fault: &Inconsistency| fault.rule == Rule::Undecodable;
        assert!(!left.is_empty() && left.iter().all(stays), "{left:?}");
    }
    let same_records = |dump: &BTreeMap<Vec<u8>, Vec<u8>>| -> BTreeMap<_, _> {
        let mut dump = dump.clone();
        dump.retain(|key, _| within(towns.table.space(), key));
        dump
    };
    // If the records are the original ones, the entries are also restored byte for byte.
    if repaired == 3 && same_records(&spoilt) == same_records(clean) {
        let mut repaired_store = dump(store);
        // Keys outside of the subspaces, after `FF`, belong to no index.
        let spaces = towns.indexes().map(|index| index.space().clone());
        repaired_store.retain(|key, _| {
            within(towns.table.space(), key) || spaces.iter().any(|space| within(space, key))
        });
        assert_eq!(&repaired_store, clean);
    }
}
