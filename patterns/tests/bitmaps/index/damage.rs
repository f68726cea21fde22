//! Damaged entries of an index.

use std::fmt::Debug;
use std::ops::ControlFlow;

use keyloom::{KeyBuf, KeyRange, Store, Subspace, Writer, pack};
use keyloom_bitmaps::{FieldValues, InvertedIndex, one};
use keyloom_tables::Table;
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::table::RecordKey;

use super::fixture::{Audience, User, audience, by_number, clear_index, name, sample};
use super::model::compare;
use keyloom_tables::{Inconsistency, Maintained, Rule};
use keyloom_testing::laws::{Dump, clear, dump};

fn restore(store: &impl Store, whole: &Dump) {
    clear(store);
    store.transact(|txn| whole.iter().try_for_each(|(k, v)| txn.put(k, v))).unwrap();
}

/// Damages one entry. Asserts that the check finds the fault, and that a repair in batches of
/// `batch` fixes it.
fn find_and_repair<K: RecordKey + Ord + Clone + Debug>(
    of: &Audience<K>,
    store: &impl Store,
    whole: &Dump,
    what: &str,
    (key, value): (&[u8], Option<&[u8]>),
    batch: usize,
) {
    restore(store, whole);
    store
        .transact(|txn| match value {
            Some(value) => txn.put(key, value),
            None => txn.delete(key),
        })
        .unwrap();
    let shown = keyloom::key::display(key).to_string();
    let found = of.faults(store);
    assert!(!found.is_empty(), "{what} {shown} is not found");
    let model = of.records(&store.snapshot().unwrap());
    of.repair(store, batch);
    assert_eq!(of.faults(store), [], "{what} {shown} is not mended");
    compare(of, &store.snapshot().unwrap(), &model);
}

/// Each entry is deleted, overwritten with invalid bytes, or replaced by another value of its kind.
fn damage_each<K: RecordKey + Ord + Clone + Debug>(of: &Audience<K>, store: &impl Store) {
    let whole = dump(&store.snapshot().unwrap(), KeyRange::all());
    let stored = of.stored(store);
    let batches = [1, 3, 1_000, 40_000];
    for (n, ((key, value), batch)) in stored.iter().zip(batches.into_iter().cycle()).enumerate() {
        find_and_repair(of, store, &whole, "the missing", (key, None), batch);
        // Another value of the same kind, if there is one.
        let other = stored.values().find(|other| *other != value && other[0] == value[0]);
        let altered: &[u8] = match other {
            Some(other) if n % 2 == 0 => other,
            _ => b"\x00 junk",
        };
        find_and_repair(of, store, &whole, "the altered", (key, Some(altered)), batch);
    }
}

pub fn every_kind_of_damage_is_found_and_repaired(store: &(impl Store + Clone)) {
    clear(store);
    let of = audience();
    let users = |range: std::ops::Range<u32>| range.map(|n| (name(n), sample(n)));
    store.transact(|txn| of.table.put_many(txn, users(0..7))).unwrap();
    store.transact(|txn| of.table.delete_many(txn, &[name(2), name(5)])).unwrap();
    damage_each(&of, store);

    // Entries without a corresponding record.
    clear(store);
    store.transact(|txn| of.table.put_many(txn, users(0..7))).unwrap();
    store.transact(|txn| of.table.delete_many(txn, &[name(2), name(5)])).unwrap();
    let whole = dump(&store.snapshot().unwrap(), KeyRange::all());
    let (id, container) = (pack(&1_u64), &b"\x11\x01\x00"[..]);
    // A wrong "x" at the first id of a block, or a wrong integer 7.
    let column = &b"\x11\x01\x00\x02\x01\x00\x01\x00\x00\x00\x03\x02x\x00\x01"[..];
    let integers = &b"\x13\x00\x00\x01\x00\x07\x00\x00\x00\x00\x00\x00\x00"[..];
    let space = of.index.space();
    let strays: [(KeyBuf, &[u8]); 18] = [
        (space.pack(&("all", 7)), container),
        (space.pack(&("direct", 99)), &b"\x01"[..]),
        (space.pack(&("direct", "city", 3)), column),
        (space.pack(&("direct", "city", 40)), column),
        (space.pack(&("direct", "city", u64::MAX)), column),
        (space.pack(&("direct", "unknown", 0)), column),
        (space.pack(&("direct", "cents", 1)), integers),
        (space.pack(&("direct", "cents", 2)), column),
        (space.pack(&("terms", "city", "nowhere", 0)), container),
        (space.pack(&("terms", "city", "nowhere", u64::MAX)), container),
        (space.pack(&("terms", "unknown", "x", 0)), container),
        (space.pack(&("integers", "cents", 0, 60)), container),
        (space.pack(&("integers", "cents", 3, 0)), container),
        (space.pack(&("ids", "id", "nobody")), &id[..]),
        (space.pack(&("ids", "key", 2)), &b"\x02nobody\0"[..]),
        (space.pack(&("ids", "free", 5)), container),
        (space.pack(&("containers", "unknown")), &[1, 0, 0, 0, 0, 0, 0, 0]),
        (space.pack(&("else", "x")), &b""[..]),
    ];
    for ((key, value), batch) in strays.iter().zip([1, 5, 1_000, 40_000].into_iter().cycle()) {
        find_and_repair(&of, store, &whole, "the stray", (key, Some(value)), batch);
        let mended = dump(&store.snapshot().unwrap(), KeyRange::all());
        assert_eq!(mended, whole, "{} {batch}", keyloom::key::display(key));
    }

    // All of these faults at once, and two records with one id.
    restore(store, &whole);
    store
        .transact(|txn| {
            strays.iter().try_for_each(|(key, value)| txn.put(key, value))?;
            txn.put(&space.pack(&("ids", "id", name(3))), &pack(&4_u64))?;
            txn.delete(&space.pack("all"))?;
            txn.delete_range(space.child("direct").range())
        })
        .unwrap();
    let model = of.records(&store.snapshot().unwrap());
    of.repair(store, 2);
    assert_eq!(of.faults(store), []);
    compare(&of, &store.snapshot().unwrap(), &model);
}

pub fn strays_in_other_blocks_are_found_and_repaired(store: &(impl Store + Clone)) {
    clear(store);
    let of = by_number();
    let ids = [0, 1, 255, 256, 700, 32_511, 32_512, 70_000];
    store.transact(|txn| of.table.put_many(txn, ids.map(|n| (n, sample(n))))).unwrap();
    let whole = dump(&store.snapshot().unwrap(), KeyRange::all());
    // Ids in their own block and in other blocks, in existing and in new containers.
    let city = sample(1).city.unwrap();
    let key = of.index.space().pack(&("terms", "city", city, 0));
    for batch in [1, 1_000, 40_000] {
        for stray in [2_u16, 254, 300, 20_000] {
            let mut value = b"\x11\x01\x00".to_vec();
            value.extend_from_slice(&stray.to_le_bytes());
            find_and_repair(&of, store, &whole, "the stray", (&key, Some(&value)), batch);
            assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), whole, "{stray} {batch}");
        }
    }
    // A check reports each entry once.
    restore(store, &whole);
    store.transact(|txn| txn.put(&key, b"\x11\x01\x00\x20\x4E")).unwrap();
    assert_eq!(of.faults(store), [Inconsistency::new(key.clone(), Rule::Wrong)]);
    let stray = of.index.space().pack(&("terms", "city", "zz", 0));
    restore(store, &whole);
    store.transact(|txn| txn.put(&stray, b"\x11\x01\x00")).unwrap();
    let counter = of.index.space().pack(&("containers", "city"));
    let wanted =
        [Inconsistency::new(stray, Rule::Dangling), Inconsistency::new(counter, Rule::Wrong)];
    assert_eq!(of.faults(store), wanted);
}

pub fn a_column_of_records_that_hold_nothing_there_is_found_and_repaired(
    store: &(impl Store + Clone),
) {
    clear(store);
    let of = by_number();
    // No id has an integer, and the last id has no city.
    let ids = [1, 5, 9, 2_045];
    store.transact(|txn| of.table.put_many(txn, ids.map(|n| (n, sample(n))))).unwrap();
    let whole = dump(&store.snapshot().unwrap(), KeyRange::all());
    let space = of.index.space();
    // The second id of its block gets an integer, the thirteenth a city.
    let integer = &b"\x13\x00\x01\x02\x00\x07\x00\x00\x00\x00\x00\x00\x00\x02"[..];
    let mut city = b"\x11\x01\x00\x02\x0e\x00\x01\x00\x00\x00\x03\x02x\x00".to_vec();
    city.extend_from_slice(&(1_u16 << 13).to_le_bytes());
    let strays = [
        (space.pack(&("direct", "cents", 0)), integer),
        (space.pack(&("direct", "city", 2)), &city[..]),
    ];
    for (key, value) in strays {
        restore(store, &whole);
        store.transact(|txn| txn.put(&key, value)).unwrap();
        assert_eq!(of.faults(store), [Inconsistency::new(key.clone(), Rule::Dangling)]);
        for batch in [1, 300, 1_000, 40_000] {
            find_and_repair(&of, store, &whole, "the stray", (&key, Some(value)), batch);
            assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), whole, "{batch}");
        }
    }
}

/// The same records, but only those from `from` on have cities and integers.
fn narrowed(of: &Audience<u32>, from: u32) -> Audience<u32> {
    let city = move |n: &u32, user: &User| match *n < from {
        true => FieldValues::none(),
        false => one(user.city.as_ref()),
    };
    let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
        .field("city", city)
        .field("site", |_, user| user.sites.iter().collect())
        .integers("cents", move |n, user| user.cents.filter(|_| *n >= from))
        .field("member", |_, user| one(user.is_member));
    Audience { table: of.bare().with(&index), index }
}

pub fn columns_of_a_function_that_yields_less_than_before_are_found_and_repaired(
    store: &(impl Store + Clone),
) {
    clear(store);
    let of = by_number();
    let users: Vec<_> = (0..3_500).step_by(7).chain([40_002]).map(|n| (n, sample(n))).collect();
    store.transact(|txn| of.table.put_many(txn, &users)).unwrap();
    let whole = dump(&store.snapshot().unwrap(), KeyRange::all());
    // `from` is within a block, at its end, or after all records; `without` is the number of stale
    // columns per field, whose blocks have no values left.
    for (from, without) in [(700, 0), (2_032, 2), (50_000, 5)] {
        let now = narrowed(&of, from);
        let fresh = {
            clear_index(&now, store, KeyRange::all());
            now.repair(store, 40_000);
            now.stored(store)
        };
        for batch in [1, 1_000, 40_000] {
            restore(store, &whole);
            let stale = of.stored(store).into_keys().filter(|key| !fresh.contains_key(key));
            let columns = now.index.space().child("direct");
            let stale = stale.filter(|key| columns.contains(key));
            let stale: Vec<_> = stale.map(|key| KeyBuf::from_slice(&key)).collect();
            assert_eq!(stale.len(), 2 * without, "of cities and of integers");
            let found = now.faults(store);
            for entry in stale {
                let is_it = |fault: &&Inconsistency| fault.key[..] == entry[..];
                let faults: Vec<_> = found.iter().filter(is_it).collect();
                assert_eq!(faults, [&Inconsistency::new(entry.clone(), Rule::Dangling)]);
            }
            now.repair(store, batch);
            assert_eq!(now.stored(store), fresh, "{from} {batch}");
            assert_eq!(now.faults(store), []);
        }
    }
}

/// A NUL byte is escaped in keys, so the stored bytes of such a name differ from the name.
pub fn repair_keeps_fields_whose_names_hold_nul(store: &impl Store) {
    let index = InvertedIndex::new(&Subspace::new("index"))
        .field("ci\0ty", |_: &u32, user: &User| one(user.city.as_ref()))
        .field("\0", |_, user| one((user.visits, "a\0")))
        .integers("cents\0", |_, user| user.cents);
    let table = Table::new(&Subspace::new("users")).with(&index);
    let users: Vec<(u32, User)> = (0..200).map(|n| (n, sample(n))).collect();
    store.transact(|txn| table.put_many(txn, &users)).unwrap();
    let whole = dump(&store.snapshot().unwrap(), KeyRange::all());
    assert_eq!(index.check(&store.snapshot().unwrap(), &table).unwrap(), []);
    for batch in [1, 1_000] {
        let options = RepairOptions { batch, resume: None };
        let done =
            index.repair_with(store, &table, &options, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((done.written, done.removed), (0, 0));
        assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), whole);
    }
    let cities = index.term("ci\0ty", "city 1").unwrap().count(&store.snapshot().unwrap()).unwrap();
    let expected = users.iter().filter(|(_, user)| user.city.as_deref() == Some("city 1"));
    assert_eq!(cities, expected.count() as u64);
    assert!(cities > 0);
    let all = index.term("\0", (0, "a\0")).unwrap().count(&store.snapshot().unwrap()).unwrap();
    assert_eq!(all, 200);
}
