//! Deferred derived data: queues of changed records, and drains in batches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use keyloom::{Error, KeyBuf, Memory, Metered, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_patterns::aggregate::contribution;
use keyloom_patterns::{
    Attached, Index, IndexEntries, IndexError, Schema, SchemaError, Table, Totals, entry,
};
use proptest::prelude::*;

use crate::fixture::{Build, Bytes, Disable, Drain, KINDS, Sale, Shop, UNIQUE, sale};
use keyloom_patterns::{Inconsistency, Rule};
use keyloom_testing::laws::{clear, counts, dump, dump_all, long_property, writing};

type Numbers = Table<u32, u32>;
type ByValue = Attached<Index<u32, u32, u32>>;

fn by_value(_: &u32, value: &u32) -> IndexEntries<u32> {
    if *value == 0 { IndexEntries::none() } else { entry(value) }
}

/// Numbers and a deferred index of them.
fn numbers(store: &impl Store) -> (Numbers, ByValue) {
    let schema = Schema::open(store, "numbers").unwrap();
    let numbers = schema.table::<u32, u32>("numbers").unwrap();
    let make = |space: &Subspace| Ok(Index::new(space, by_value));
    let by_value = schema.derive_deferred(&numbers, "by_value", 1, make).unwrap();
    (numbers, by_value)
}

/// The keys and values of the queue.
fn queue(store: &impl Store, by_value: &ByValue) -> Vec<(KeyBuf, Vec<u8>)> {
    // The id of the queue follows that of the data.
    let id: i64 = keyloom::unpack(by_value.space().prefix()).unwrap();
    let queued = dump(&store.snapshot().unwrap(), Subspace::new(&(id - 1)).self_and_children());
    queued.into_iter().map(|(key, value)| (KeyBuf::from_vec(key), value)).collect()
}

pub fn a_record_is_queued_once_until_it_is_drained(store: &(impl Store + Clone)) {
    let metered = Metered::new(store.clone());
    let (numbers, by_value) = numbers(&metered);
    // The record, the entry of the table, the queue; the record and its position in the queue.
    assert_eq!(writing(&metered, |txn| numbers.put(txn, &1, &10)), [3, 0, 1, 2]);
    assert_eq!(writing(&metered, |txn| numbers.put(txn, &1, &11)), [3, 0, 3, 1]);
    let many = || (1..11).map(|id| (id, 20 + id));
    let (_, cost) = metered.measure(|s| s.transact(|txn| numbers.put_many(txn, many())).unwrap());
    assert_eq!(counts(cost), [21, 0, 3, 19]);
    if store.round_trips().is_none() {
        assert_eq!(cost.round_trips, 2, "all reads, the commit");
    }
    assert_eq!(writing(&metered, |txn| numbers.delete(txn, &2).map(drop)), [3, 0, 3, 1]);
    let snapshot = metered.snapshot().unwrap();
    assert_eq!(by_value.pending(&snapshot).unwrap(), 10);
    assert!(by_value.is_pending(&snapshot, &1).unwrap());
    assert!(!by_value.is_pending(&snapshot, &11).unwrap());
    assert_eq!(by_value.at(&snapshot).unwrap().count(&snapshot, ..).unwrap(), 0);
    drop(snapshot);
    // The entry and ten queued records are read, nine of which exist. Nine entries and ten
    // positions are written.
    let (done, cost) = metered.measure(|store| by_value.drain(store).unwrap());
    assert_eq!((done.records, done.finished), (10, true));
    assert_eq!(counts(cost), [1 + 10, 1, 1 + 10 + 9, 9 + 10]);
    let snapshot = metered.snapshot().unwrap();
    assert_eq!(by_value.pending(&snapshot).unwrap(), 0);
    assert_eq!(by_value.at(&snapshot).unwrap().count(&snapshot, ..).unwrap(), 9);
    assert_eq!(by_value.check(&snapshot).unwrap(), []);
    assert!(queue(store, &by_value).is_empty());
}

/// Only records that have the entry now and had it at the last drain are returned.
pub fn records_by_a_deferred_index_are_current(store: &(impl Store + Clone)) {
    let changes = || prop::collection::vec((0..10_u32, prop::option::of(0..4_u32)), 0..12);
    long_property((changes(), changes()), |(before, after)| {
        clear(store);
        let (numbers, by_value) = numbers(store);
        let mut model = BTreeMap::new();
        let apply = |changes: Vec<(u32, Option<u32>)>, model: &mut BTreeMap<u32, u32>| {
            for (id, value) in changes {
                match value {
                    Some(value) => drop(model.insert(id, value)),
                    None => drop(model.remove(&id)),
                }
                store
                    .transact(|txn| match value {
                        Some(value) => numbers.put(txn, &id, &value),
                        None => numbers.delete(txn, &id).map(drop),
                    })
                    .unwrap();
            }
        };
        apply(before, &mut model);
        assert!(by_value.drain(store).unwrap().finished);
        let drained = model.clone();
        apply(after, &mut model);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(by_value.check(&snapshot).unwrap(), []);
        for value in 1..4 {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let order = Order::Ascending;
                let page = by_value
                    .query()
                    .prefix(value)
                    .order(order)
                    .limit(2)
                    .after(after.as_ref())
                    .records(&snapshot)
                    .unwrap();
                found.extend(page.items);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let had = |id: &u32| drained.get(id) == Some(&value);
            let wanted = model.iter().filter(|(id, now)| **now == value && had(id));
            assert!(found.iter().map(|(id, now)| (id, now)).eq(wanted), "{found:?}");
        }
        drop(snapshot);
        by_value.drain(store).unwrap();
        let snapshot = store.snapshot().unwrap();
        let index = by_value.at(&snapshot).unwrap();
        let wanted = model.values().filter(|value| **value > 0).count();
        assert_eq!(index.count(&snapshot, ..).unwrap(), wanted as u64);
    });
}

pub fn a_drain_beside_writers_leaves_what_a_build_leaves(store: &(impl Store + Clone)) {
    let shop = Shop::try_open(store, true).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..200_u32 {
                let id = n * 7 % 40;
                let changed = Sale { serial: Some(id), ..sale(n) };
                store
                    .transact(|txn| match n % 5 {
                        0 => shop.sales.delete(txn, &id).map(drop),
                        _ => shop.sales.put(txn, &id, &changed),
                    })
                    .unwrap();
            }
            is_over.store(true, Relaxed);
        });
        while !is_over.load(Relaxed) {
            for kind in 0..KINDS {
                shop.with_kind(kind, Drain(store, usize::MAX)).unwrap();
            }
        }
        writer.join().unwrap();
    });
    let snapshot = store.snapshot().unwrap();
    let records = shop.sales.range(&snapshot, ..).unwrap();
    let records: Vec<_> = records.collect::<Result<_>>().unwrap();
    drop(snapshot);
    let fresh = Memory::new();
    let wanted = Shop::try_open(&fresh, true).unwrap();
    fresh.transact(|txn| wanted.sales.put_many(txn, &records)).unwrap();
    for kind in 0..KINDS {
        let bytes = wanted.with_kind(kind, Bytes(&fresh));
        assert_eq!(shop.with_kind(kind, Bytes(store)), bytes, "kind {kind}");
    }
}

pub fn damage_of_deferred_data_is_found_and_repaired(store: &(impl Store + Clone)) {
    let (numbers, by_value) = numbers(store);
    store.transact(|txn| numbers.put_many(txn, (1..9).map(|id| (id, id)))).unwrap();
    by_value.drain(store).unwrap();
    // A queued record is not a fault.
    store.transact(|txn| numbers.put_many(txn, [(1, 100), (20, 20)])).unwrap();
    store.transact(|txn| numbers.delete(txn, &2).map(drop)).unwrap();
    let check = || by_value.check(&store.snapshot().unwrap()).unwrap();
    assert_eq!(check(), []);
    let before = dump_all(store);
    assert!(by_value.repair(store).unwrap().finished);
    assert_eq!(dump_all(store), before, "nothing is wrong");

    let keys: Vec<_> = dump(&store.snapshot().unwrap(), by_value.space().self_and_children())
        .into_keys()
        .collect();
    store
        .transact(|txn| {
            txn.delete(&keys[3])?;
            txn.put(&by_value.space().pack("foreign"), b"?")
        })
        .unwrap();
    let found = check();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&Inconsistency::new(KeyBuf::from_slice(&keys[3]), Rule::Missing)));
    let done = by_value.repair(store).unwrap();
    assert!(done.finished && done.records == 8, "{done:?}");
    assert_eq!(check(), []);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(by_value.pending(&snapshot).unwrap(), 0);
    assert_eq!(by_value.at(&snapshot).unwrap().count(&snapshot, ..).unwrap(), 8);
}

pub fn a_damaged_queue_is_found_and_repaired(store: &(impl Store + Clone)) {
    let (numbers, by_value) = numbers(store);
    store.transact(|txn| numbers.put_many(txn, (1..5).map(|id| (id, id)))).unwrap();
    let [(first, _), (second, _), ..] = &queue(store, &by_value)[..] else { panic!("queued") };
    for damage in [&b""[..], b"\x01", b"\x01\x02", b"?"] {
        store.transact(|txn| txn.put(second, damage)).unwrap();
        if damage == b"?" {
            let refused = by_value.check(&store.snapshot().unwrap()).unwrap_err();
            assert!(refused.to_string().contains("format 63"), "{refused}");
            continue;
        }
        let found = by_value.check(&store.snapshot().unwrap()).unwrap();
        assert!(found.contains(&Inconsistency::new(second.clone(), Rule::Foreign)), "{found:?}");
        let error = by_value.drain(store).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(SchemaError::Damaged)), "{error}");
        // The key is printed with its name, unless another test has used its number for another
        // name.
        let (said, raw) = (error.to_string(), keyloom::key::display(second).to_string());
        assert!(said.contains("the queue of numbers.by_value") || said.contains(&raw), "{said}");
    }
    store.transact(|txn| txn.put(second, b"\x01\x02")).unwrap();
    assert!(by_value.repair(store).unwrap().finished);
    assert_eq!(by_value.check(&store.snapshot().unwrap()).unwrap(), []);
    assert!(queue(store, &by_value).is_empty());
    assert!(store.snapshot().unwrap().get(first).unwrap().is_none());
}

pub fn what_an_update_refuses_is_not_queued(store: &(impl Store + Clone)) {
    let schema = Schema::open(store, "words").unwrap();
    let words = schema.table::<u32, String>("words").unwrap();
    let make = |space: &Subspace| {
        Ok(Index::try_new(space, |_, word: &String| match word.is_empty() {
            true => Err(Error::other(std::fmt::Error)),
            false => Ok(entry(word)),
        }))
    };
    schema.derive_deferred(&words, "by_word", 1, make).unwrap();
    let totals = |space: &Subspace| Ok(Totals::new(space, |_, word| contribution(word, 1)));
    schema.derive_deferred(&words, "totals", 1, totals).unwrap();
    store.transact(|txn| words.put(txn, &1, &"word".into())).unwrap();
    let before = dump_all(store);
    for word in [String::new(), "w".repeat(600)] {
        for outcome in [
            store.transact(|txn| words.put(txn, &1, &word)),
            store.transact(|txn| words.put_many(txn, [(1, "other".into()), (2, word.clone())])),
        ] {
            let error = outcome.unwrap_err();
            let is_named = matches!(
                error.downcast_ref(),
                Some(IndexError::EntryTooLong { .. } | IndexError::Refused { .. })
            );
            assert!(is_named, "{error}");
        }
        assert_eq!(dump_all(store), before);
    }
}

/// Each kind alone refuses invalid input at the write, not at a later drain.
pub fn each_kind_refuses_when_it_defers(store: &(impl Store + Clone)) {
    let shop = Shop::try_open(store, true).unwrap();
    let long = Sale { town: "t".repeat(600), ..sale(1) };
    let kinds_by_town = [0, 2, 3, 4, 5, 6];
    for kind in kinds_by_town {
        (0..KINDS).for_each(|other| shop.with_kind(other, Disable(store)).unwrap());
        assert!(shop.with_kind(kind, Build(store, usize::MAX)).unwrap());
        let refused = store.transact(|txn| shop.sales.put(txn, &1, &long));
        assert!(refused.is_err(), "kind {kind}");
        assert!(shop.with_kind(kind, Drain(store, usize::MAX)).unwrap());
    }
}

pub fn undecodable_records_leave_deferred_data_in_step(store: &(impl Store + Clone)) {
    for change in 0..3 {
        for is_queued in [false, true] {
            clear(store);
            let schema = Schema::open(store, "numbers").unwrap();
            let numbers = schema.table::<u32, u32>("numbers").unwrap();
            let make = |space: &Subspace| Ok(Index::new(space, by_value));
            let by_value = schema.derive_deferred(&numbers, "by_value", 1, make).unwrap();
            let make = |space: &Subspace| {
                Ok(Totals::new(space, |_, value: &u32| contribution("all", i64::from(*value))))
            };
            let totals = schema.derive_deferred(&numbers, "totals", 1, make).unwrap();
            store.transact(|txn| numbers.put_many(txn, [(1, 5), (2, 7)])).unwrap();
            if !is_queued {
                by_value.drain(store).unwrap();
                totals.drain(store).unwrap();
            }
            store.transact(|txn| txn.put(&numbers.space().pack(&2), b"\xFF")).unwrap();
            let outcome = store.transact(|txn| match change {
                0 => numbers.delete(txn, &2).map(drop),
                1 => numbers.put(txn, &2, &9),
                _ => numbers.put_many(txn, [(1, 6), (2, 9)]),
            });
            // Totals cannot subtract an unknown record; the queue stores the amounts of a queued
            // record.
            assert_eq!(outcome.is_ok(), is_queued, "{outcome:?}");
            if !is_queued {
                continue;
            }
            for _ in 0..2 {
                let snapshot = store.snapshot().unwrap();
                assert_eq!(by_value.check(&snapshot).unwrap(), []);
                assert_eq!(totals.check(&snapshot).unwrap(), []);
                drop(snapshot);
                by_value.drain(store).unwrap();
                totals.drain(store).unwrap();
            }
        }
    }
    // A drain treats a record that does not decode as absent, and an index deletes the record's
    // entries.
    clear(store);
    let (numbers, by_value) = numbers(store);
    store.transact(|txn| numbers.put_many(txn, [(1, 5), (2, 7)])).unwrap();
    by_value.drain(store).unwrap();
    store.transact(|txn| numbers.put(txn, &1, &6)).unwrap();
    for id in [1_u32, 2] {
        store.transact(|txn| txn.put(&numbers.space().pack(&id), b"\xFF")).unwrap();
    }
    assert!(by_value.drain(store).unwrap().finished);
    let undecodable = |found: Vec<Inconsistency>| {
        let is_record = |one: &Inconsistency| one.rule == Rule::Undecodable;
        assert!(found.iter().all(is_record), "{found:?}");
    };
    undecodable(by_value.check(&store.snapshot().unwrap()).unwrap());
    store.transact(|txn| numbers.put_many(txn, [(1, 8), (2, 9)])).unwrap();
    assert_eq!(by_value.check(&store.snapshot().unwrap()).unwrap(), []);
    by_value.drain(store).unwrap();
    assert_eq!(by_value.check(&store.snapshot().unwrap()).unwrap(), []);
}

pub fn a_change_of_deferral_needs_another_version_and_a_build(store: &(impl Store + Clone)) {
    let open = |version: u32, is_deferred: bool| -> Result<(Numbers, ByValue)> {
        let schema = Schema::open(store, "numbers")?;
        let numbers = schema.table::<u32, u32>("numbers")?;
        let make = |space: &Subspace| Ok(Index::new(space, by_value));
        let by_value = match is_deferred {
            true => schema.derive_deferred(&numbers, "by_value", version, make)?,
            false => schema.derive(&numbers, "by_value", version, make)?,
        };
        Ok((numbers, by_value))
    };
    open(1, false).unwrap();
    let refused = open(1, true).unwrap_err();
    assert!(matches!(refused.downcast_ref(), Some(SchemaError::Contradiction { .. })));
    assert!(refused.to_string().contains("deferred index of version 1"), "{refused}");
    for (version, is_deferred) in [(2, true), (3, false), (4, true), (5, true)] {
        let (older, of_older) =
            open(version - 1, !is_deferred).or_else(|_| open(version - 1, is_deferred)).unwrap();
        store.transact(|txn| older.put_many(txn, [(1, version), (version, 50)])).unwrap();
        let (newer, of_newer) = open(version, is_deferred).unwrap();
        for outcome in [
            store.transact(|txn| newer.put(txn, &1, &9)),
            of_newer.drain(store).map(drop),
            of_newer.pending(&store.snapshot().unwrap()).map(drop),
        ] {
            let error = outcome.unwrap_err();
            assert!(matches!(error.downcast_ref(), Some(SchemaError::Changed { .. })), "{error}");
        }
        assert!(of_newer.build(store).unwrap().finished);
        // The handle that built the data uses the queue, and so does another handle.
        for numbers in [newer, open(version, is_deferred).unwrap().0] {
            store.transact(|txn| numbers.put(txn, &1, &(60 + version))).unwrap();
            store.transact(|txn| numbers.put(txn, &1, &(70 + version))).unwrap();
        }
        let snapshot = store.snapshot().unwrap();
        assert_eq!(of_newer.pending(&snapshot).unwrap(), u64::from(is_deferred));
        assert_eq!(of_newer.check(&snapshot).unwrap(), []);
        drop(snapshot);
        of_newer.drain(store).unwrap();
        assert_eq!(of_newer.check(&store.snapshot().unwrap()).unwrap(), []);
        let refused = of_older.drain(store).unwrap_err();
        assert!(matches!(refused.downcast_ref(), Some(SchemaError::Changed { .. })), "{refused}");
    }
    let (_, last) = open(5, true).unwrap();
    let id: i64 = keyloom::unpack(last.space().prefix()).unwrap();
    last.drop_data(store).unwrap();
    for id in [id, id - 1] {
        assert!(
            dump(&store.snapshot().unwrap(), Subspace::new(&id).self_and_children()).is_empty()
        );
    }
}

#[test]
fn kinds_that_cannot_wait_are_not_deferred() {
    let store = Memory::new();
    let schema = Schema::open(&store, "shop").unwrap();
    let sales = schema.table::<u32, Sale>("sales").unwrap();
    let before = dump_all(&store);
    let make = |space: &Subspace| Ok(Index::new(space, crate::fixture::by_serial).unique());
    let refused = schema.derive_deferred(&sales, "by_serial", 1, make).unwrap_err();
    assert!(matches!(refused, Error::InvalidArgument { .. }), "{refused}");
    assert!(refused.to_string().contains("unique index"), "{refused}");
    assert_eq!(dump_all(&store), before);
    assert!(!Shop::try_open(&store, true).unwrap().by_serial.is_deferred());
    assert_eq!(UNIQUE, 1);
}

/// Totals cannot subtract a record that does not decode. If the record is queued, the queue
/// contains its amounts.
#[test]
fn the_lost_record_that_is_not_queued_is_named() {
    let store = Memory::new();
    let schema = Schema::open(&store, "numbers").unwrap();
    let numbers: Numbers = schema.table("numbers").unwrap();
    let make = |space: &Subspace| {
        Ok(Totals::new(space, |_: &u32, n: &u32| contribution(0_u32, i64::from(*n))))
    };
    let totals = schema.derive_deferred(&numbers, "totals", 1, make).unwrap();
    store.transact(|txn| numbers.put_many(txn, [(1, 10), (2, 20)])).unwrap();
    totals.drain(&store).unwrap();
    store.transact(|txn| numbers.put(txn, &1, &11)).unwrap();
    let damage = |key: u32| {
        let key = numbers.space().pack(&key);
        store.transact(|txn| txn.put(&key, b"\xFF")).unwrap();
    };
    [1, 2].into_iter().for_each(damage);
    let refused = store.transact(|txn| numbers.delete_many(txn, &[1, 2])).unwrap_err();
    // Other tests of this process register other names for this number.
    let text = refused.to_string();
    let shown = ["at key (-1, 2): ", "at key numbers (2,): "];
    assert!(shown.iter().any(|shown| text.starts_with(shown)), "{text}");
    assert!(store.transact(|txn| numbers.delete(txn, &1)).unwrap());
    totals.drain(&store).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(totals.at(&snapshot).unwrap().get(&snapshot, 0).unwrap(), 20);
}

/// The queue gets shorter by at most a batch with each transaction, and by all of it in the end.
pub fn a_drain_in_batches_keeps_its_bound(store: &impl Store) {
    for batch in [1, 7, 40, 1_000] {
        clear(store);
        let (numbers, by_value) = numbers(store);
        store.transact(|txn| numbers.put_many(txn, (1..=100).map(|id| (id, id)))).unwrap();
        let pending = || by_value.pending(&store.snapshot().unwrap()).unwrap();
        let (mut before, mut commits) = (pending(), 0);
        let done = by_value
            .drain_with(store, batch, |_| {
                let now = pending();
                assert!(before - now <= batch as u64, "{} of at most {batch}", before - now);
                (before, commits) = (now, commits + 1);
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!((done.records, done.finished, pending()), (100, true, 0));
        assert!(commits >= 100_usize.div_ceil(batch), "{commits}");
        // A stop leaves the others in the queue.
        store.transact(|txn| numbers.put_many(txn, (1..=100).map(|id| (id, 0)))).unwrap();
        let stop = |_: &_| std::ops::ControlFlow::Break(());
        by_value.drain_with(store, batch, stop).unwrap();
        assert_eq!(pending(), 100_u64.saturating_sub(batch as u64));
    }
}
