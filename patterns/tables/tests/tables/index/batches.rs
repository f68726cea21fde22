//! Batches of records: results, costs, and the number of records per transaction.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use keyloom::key::Subspace;
use keyloom::value::Json;
use keyloom::{
    Cost, DynWriter, Error, KeyRange, Limits, Memory, Metered, Order, Reader, Store, Transaction,
    Writer,
};
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::{BatchSize, Index, Maintained, Table, entry};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::index::fixture::{Cities, City, apply, city, fill, history, sample};
use keyloom_testing::ids::number;
use keyloom_testing::laws::{clear, dump, property};
use keyloom_testing::waits_for_the_version;

fn samples(ids: impl IntoIterator<Item = u16>) -> Vec<(u16, City)> {
    ids.into_iter().map(|id| (id, sample(id))).collect()
}

pub fn many_at_once_leave_what_one_by_one_leaves(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    // Few ids, so that a batch repeats some of them, and some are stored already.
    let id = |count: u64| (0..count).prop_map(|n| number(n) as u16);
    let puts = vec((id(12), city()), 0..20);
    let deletes = vec(id(14), 0..10);
    property((history(), puts, deletes), |(history, puts, deletes)| {
        let run = |at_once: bool| {
            clear(store);
            apply(&cities, store, history.clone());
            let there = store.transact(|txn| {
                if at_once {
                    cities.table.put_many(txn, &puts)?;
                    return cities.table.delete_many(txn, &deletes);
                }
                puts.iter().try_for_each(|(id, city)| cities.table.put(txn, id, city))?;
                let there = deletes.iter().map(|id| cities.table.delete(txn, id));
                Ok(there.collect::<keyloom::Result<Vec<_>>>()?.into_iter().filter(|t| *t).count())
            });
            (there.unwrap(), dump(&store.snapshot().unwrap(), KeyRange::all()))
        };
        assert_eq!(run(true), run(false));
        assert_eq!(cities.faults(store), []);
    });
}

pub fn replaced_records_leave_what_puts_and_deletes_leave(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    let id = (0..12_u64).prop_map(|n| number(n) as u16);
    let changes = proptest::collection::btree_map(id, proptest::option::of(city()), 0..12);
    property((history(), changes), |(history, changes)| {
        let run = |by_replacing: bool| {
            clear(store);
            apply(&cities, store, history.clone());
            let done = store.transact(|txn| {
                if !by_replacing {
                    return changes.iter().try_for_each(|(id, city)| match city {
                        Some(city) => cities.table.put(txn, id, city),
                        None => cities.table.delete(txn, id).map(drop),
                    });
                }
                let old = cities.table.get_many(txn, changes.keys())?;
                // Not in the order of the keys.
                let all = changes.iter().zip(&old).rev();
                let all = all.map(|((id, new), old)| (id, old.as_ref(), new.as_ref()));
                cities.table.replace_many(txn, all)
            });
            done.unwrap();
            dump(&store.snapshot().unwrap(), KeyRange::all())
        };
        assert_eq!(run(true), run(false));
        assert_eq!(cities.faults(store), []);
    });
    let (one, two) = (sample(1), sample(2));
    let twice = [(&7, None, Some(&one)), (&3, None, Some(&one)), (&7, None, Some(&two))];
    let error = store.transact(|txn| cities.table.replace_many(txn, twice)).unwrap_err();
    assert!(error.to_string().contains("7"), "{error}");
}

/// Round trips, gets, ranges, keys read, keys written.
fn counts(cost: Cost) -> [u64; 5] {
    [cost.round_trips, cost.gets, cost.ranges, cost.keys_read, cost.keys_written]
}

/// Whether the cost is that of the model. A server may need an extra round trip to begin before a
/// write, or to fix a snapshot before a large read, and none for a commit without writes.
#[track_caller]
fn cost_is(store: &impl Store, cost: [u64; 5], expected: [u64; 5]) {
    assert_eq!(cost[1..], expected[1..]);
    let [at_least, at_most] = match store.round_trips() {
        None => [expected[0]; 2],
        Some(_) => {
            // Each of these transactions has at most three round trips.
            let transactions = expected[0].div_ceil(3);
            let for_versions = transactions * waits_for_the_version(store);
            [expected[0] - transactions, expected[0] + 1 + for_versions]
        }
    };
    assert!((at_least..=at_most).contains(&cost[0]), "{cost:?} is not {expected:?}");
}

pub fn many_cost_few_round_trips(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    let bare = Table::<u16, City>::new(cities.table.space());
    let table = bare.clone().with(&cities.by_name).with(&cities.by_size);
    let metered = Metered::new(store.clone());
    let putting = |table: &Table<u16, City>, records: &[(u16, City)]| {
        let (done, cost) = metered.measure(|s| s.transact(|txn| table.put_many(txn, records)));
        done.unwrap();
        counts(cost)
    };
    let records = samples(1..=1_000);
    cost_is(store, putting(&table, &records), [2, 1_000, 0, 0, 3_000]);
    cost_is(store, putting(&table, &records), [2, 1_000, 0, 1_000, 1_000]);
    let twice = [(1, sample(1)), (1, City { name: "renamed".into(), ..sample(1) })];
    cost_is(store, putting(&table, &twice), [2, 1, 0, 1, 3]);
    cost_is(store, putting(&bare, &records), [1, 0, 0, 0, 1_000]);
    cost_is(store, putting(&table, &[]), [1, 0, 0, 0, 0]);
    putting(&table, &[twice[1].clone()]);

    // The records that were read are not read again.
    let replacing = |records: &[(u16, City)]| {
        let new = City { name: "replaced".into(), ..sample(1) };
        let changes = records.iter().map(|(id, old)| (id, Some(old), Some(&new)));
        let (done, cost) =
            metered.measure(|s| s.transact(|txn| table.replace_many(txn, changes.clone())));
        done.unwrap();
        store.transact(|txn| table.put_many(txn, records)).unwrap();
        counts(cost)
    };
    cost_is(store, replacing(&records[1..101]), [1, 0, 0, 0, 500]);
    cost_is(store, replacing(&[]), [1, 0, 0, 0, 0]);

    let deleting = |ids: &[u16]| {
        let (there, cost) = metered.measure(|s| s.transact(|txn| table.delete_many(txn, ids)));
        (there.unwrap(), counts(cost))
    };
    let (there, cost) = deleting(&[]);
    assert_eq!(there, 0);
    cost_is(store, cost, [1, 0, 0, 0, 0]);
    let (there, cost) = deleting(&[5, 5, 2_000]);
    assert_eq!(there, 1);
    cost_is(store, cost, [2, 2, 0, 1, 3]);
    let ids: Vec<u16> = (1..=1_000).collect();
    let (there, cost) = deleting(&ids);
    assert_eq!(there, 999);
    cost_is(store, cost, [2, 1_000, 0, 999, 2_997]);
}

/// From this batch size on, one range read checks whether the table is empty.
#[test]
fn a_load_of_new_records_gets_none() {
    let cities = Cities::new();
    let store = Metered::new(Memory::new());
    let records = samples(1..=5_000);
    let load = || {
        let put = |s: &Metered<Memory>| s.transact(|txn| cities.table.put_many(txn, &records));
        let (done, cost) = store.measure(put);
        done.unwrap();
        counts(cost)
    };
    assert_eq!(load(), [2, 0, 1, 0, 20_000]);
    assert_eq!(load(), [3, 5_000, 1, 5_001, 5_000]);
    assert_eq!(cities.faults(&store), []);
}

pub fn check_repair_and_lookups_cost_few_round_trips(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    let bare = Table::<u16, City>::new(cities.table.space());
    store.transact(|txn| bare.put_many(txn, samples(1..=3_000))).unwrap();
    let metered = Metered::new(store.clone());
    let repair = || {
        let options = RepairOptions::default();
        let (done, cost) =
            metered.measure(|store| {
                cities
                    .by_size
                    .repair_with(store, &cities.table, &options, |_| ControlFlow::Continue(()))
            });
        assert_eq!(cost.commits, 6, "three for the records and three for the entries");
        (done.unwrap().written, counts(cost))
    };
    // Each phase has three chunks of a page, a get_many and a commit.
    let (written, cost) = repair();
    assert_eq!(written, 3_000, "it builds the index");
    cost_is(store, cost, [18, 6_000, 6, 9_000, 3_000]);
    let (written, cost) = repair();
    assert_eq!(written, 0, "all is right");
    cost_is(store, cost, [18, 6_000, 6, 12_000, 0]);

    let snapshot = metered.snapshot().unwrap();
    let (faults, cost) = metered.measure(|_| cities.by_size.check(&snapshot, &cities.table));
    assert_eq!(faults.unwrap(), []);
    match waits_for_the_version(store) {
        0 => assert_eq!(counts(cost), [12, 6_000, 6, 12_000, 0]),
        // Pages also end at a limit of bytes, which may split a page in two.
        _ => cost_is(store, counts(cost), [12, 6_000, 6, 12_000, 0]),
    }

    let lookup = |country| {
        let order = Order::Ascending;
        let (page, cost) = metered.measure(|_| {
            cities
                .by_size
                .query()
                .prefix(country)
                .order(order)
                .limit(1_000)
                .records(&snapshot, &cities.table)
        });
        (page.unwrap().items.len(), counts(cost))
    };
    let (found, cost) = lookup("FR");
    assert_eq!(found, 1_000);
    // A server's snapshot may remember the records that the check has read.
    cost_is(store, cost, [2, 1_000, 1, 2_000, 0]);
    assert_eq!(lookup("CH"), (0, [1, 0, 1, 0, 0]));
    let page = || cities.by_size.query().prefix("FR").limit(1_000).page(&snapshot).map(drop);
    assert_eq!(counts(metered.measure(|_| page()).1), [1, 0, 1, 1_000, 0]);
    let page = || bare.page(&snapshot, .., 1_000, None).map(drop);
    assert_eq!(counts(metered.measure(|_| page()).1), [1, 0, 1, 1_000, 0]);
}

pub fn damage_in_every_chunk_is_found_and_repaired(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    let mut size = BatchSize::new(1_000);
    size.transact_all(store, &samples(1..=2_500), |txn, some| cities.table.put_many(txn, some))
        .unwrap();
    let whole = dump(&store.snapshot().unwrap(), KeyRange::all());
    let space = cities.space.child("by_tag");
    // Format 1, a record key of 3 bytes.
    let entry_value = [0x10, 0x03];
    let damaged = [1, 999, 1_000, 1_001, 1_999, 2_000, 2_001, 2_500u16];
    store
        .transact(|txn| {
            damaged.iter().try_for_each(|id| {
                txn.delete(&space.pack(&("x", id)))?;
                txn.put(&space.pack(&("gone", id)), &entry_value)
            })
        })
        .unwrap();
    assert_eq!(cities.faults(store).len(), 2 * damaged.len());
    let options = RepairOptions::default();
    let going_on = |_: &_| ControlFlow::Continue(());
    let done = cities.by_tag.repair_with(store, &cities.table, &options, going_on).unwrap();
    assert_eq!((done.written, done.removed), (8, 8));
    assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), whole);
}

pub fn bad_input_among_many_is_found_before_anything_is_written(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    fill(&cities, store, 1..=5);
    let before = dump(&store.snapshot().unwrap(), KeyRange::all());
    macro_rules! error_of {
        ($work:expr) => {{
            let mut txn = store.begin().unwrap();
            let error = $work(&mut txn).unwrap_err();
            assert_eq!(dump(&txn, KeyRange::all()), before, "{error}");
            assert!(matches!(txn.commit(), Err(keyloom::Error::CommitRefused { .. })));
            error
        }};
    }
    // JSON objects cannot have pairs of numbers as keys.
    type Pairs = BTreeMap<(u8, u8), u8>;
    let pairs = Table::<u16, Pairs, Json>::with_codec(&cities.space.child("pairs"));
    let records = [(1, Pairs::new()), (2, Pairs::from([((1, 2), 3)]))];
    let error = error_of!(|txn| pairs.put_many(txn, &records));
    assert!(error.to_string().starts_with(r#"at key ("test", "pairs", 2): "#), "{error}");

    let names = Table::<String, u8>::new(&cities.space.child("names"));
    let records = [("a".to_owned(), 1), ("n".repeat(600), 2)];
    let error = error_of!(|txn| names.put_many(txn, &records));
    assert!(matches!(&error, Error::KeyTooLong { key, .. } if key.contains("names")), "{error}");
}

/// A store that takes 128 writes per transaction.
fn narrow() -> Limits {
    let mut limits = Limits::etcd();
    limits.max_transaction_operations = Some(128);
    limits
}

#[test]
fn a_load_fits_a_store_that_takes_little() {
    let limits = narrow();
    let store = Metered::new(Memory::builder().limits(limits).build());
    let cities = Cities::new();
    let records = samples(1..=1_000);
    let mut size = BatchSize::new(10_000);
    let (done, cost) = store.measure(|store| {
        size.transact_all(store, &records, |txn, some| cities.table.put_many(txn, some))
    });
    done.unwrap();
    assert_eq!(size.get(), 32, "of four writes each");
    assert_eq!(cost.commits, 32, "31 with 32 of them, and one with the rest");
    assert_eq!(cities.faults(&store), []);
    assert_eq!(cities.table.count(&store.snapshot().unwrap(), ()).unwrap(), 1_000);
    // The batch size has adapted: no transaction fails.
    let (_, again) = store.measure(|store| {
        size.transact_all(store, &records, |txn, some| cities.table.put_many(txn, some))
    });
    assert_eq!((again.commits, again.round_trips, again.gets), (32, 64, 1_000));
}

#[test]
fn a_load_fits_a_store_that_bounds_bytes() {
    let limits = Limits::foundationdb();
    let store = Memory::builder().limits(limits).build();
    // Strings, because encoding a `Vec<u8>` byte by byte would take most of the time of the test.
    let table = Table::<u16, String>::new(&Subspace::new("blobs"));
    let blobs: Vec<(u16, String)> = (0..300).map(|id| (id, "7".repeat(90_000))).collect();
    let mut size = BatchSize::new(1_000);
    size.transact_all(&store, &blobs, |txn, some| table.put_many(txn, some)).unwrap();
    assert_eq!(table.count(&store.snapshot().unwrap(), ()).unwrap(), 300);
    assert_eq!(size.get(), 62, "of 90 KB each, halved four times");
}

#[test]
fn what_is_too_large_by_itself_and_other_errors_come_out() {
    let store = Memory::builder().limits(narrow()).build();
    let mut size = BatchSize::new(8);
    let too_large = size.transact_all(&store, &[1u8, 2], |txn, some| {
        some.iter().try_for_each(|_| (0..=200).try_for_each(|n| txn.put(&[1, n], b"")))
    });
    assert!(matches!(too_large, Err(Error::TransactionTooLarge { .. })));
    assert_eq!(size.get(), 1);

    // A wrapped error is still recognized as too large.
    let mut size = BatchSize::new(8);
    let done = size.transact_all(&store, &[0u8; 8], |txn, some| {
        let too_large = |error: Error| Error::other(error.at(b"where"));
        match some.len() {
            0..=2 => Ok(()),
            _ => (0..=200).try_for_each(|n| txn.put(&[2, n], b"")).map_err(too_large),
        }
    });
    done.unwrap();
    assert_eq!(size.get(), 2);

    // Only the commits before the error remain.
    let mut size = BatchSize::new(2);
    let failed = size.transact_all(&store, &[1u8, 2, 3, 4, 5], |txn, some| {
        some.iter().try_for_each(|n| match n {
            4 => Err(Error::other("no four")),
            n => txn.put(&[*n], b""),
        })
    });
    assert_eq!(failed.unwrap_err().to_string(), "no four");
    assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()).len(), 2);

    let nothing = BatchSize::new(0).transact_all(&store, &[] as &[u8], |_, _| unreachable!());
    assert!(nothing.is_ok());
    assert_eq!(BatchSize::new(0).get(), 1);
}

#[test]
fn dyn_writer_costs_as_many_reads_as_the_writer_inside() {
    let store = Metered::new(Memory::new());
    let keys = [[1u8], [2], [3]];
    store.transact(|txn| keys.iter().try_for_each(|key| txn.put(key, b"value"))).unwrap();
    let reading = |work: &dyn Fn(&DynWriter<'_>)| {
        let mut txn = store.begin().unwrap();
        counts(store.measure(|_| work(&DynWriter::new(&mut txn))).1)
    };
    let page = |order| {
        move |txn: &DynWriter<'_>| {
            let page = txn.page(KeyRange::all(), order, 2).unwrap();
            assert_eq!((page.entries.len(), page.last.as_deref()), (2, Some(&[2][..])));
        }
    };
    // A page that scanned a range would also read the entry after it.
    assert_eq!(reading(&page(Order::Ascending)), [1, 0, 1, 2, 0]);
    assert_eq!(reading(&page(Order::Descending)), [1, 0, 1, 2, 0]);
    let ends = |txn: &DynWriter<'_>| {
        assert_eq!(txn.first(KeyRange::all()).unwrap().unwrap().0, [1]);
        assert_eq!(txn.last(KeyRange::all()).unwrap().unwrap().0, [3]);
    };
    assert_eq!(reading(&ends), [2, 0, 2, 2, 0]);
    let many = |txn: &DynWriter<'_>| assert_eq!(txn.get_many(&keys).unwrap().len(), 3);
    assert_eq!(reading(&many), [1, 3, 0, 3, 0]);
}

/// From 4,096 records on, one range read checks whether all of them are new. The range includes
/// both ends of the batch.
#[test]
fn a_large_batch_replaces_a_record_at_either_end() {
    const RECORDS: u32 = 4_096;
    for old in [0, 1, RECORDS - 2, RECORDS - 1] {
        let store = Memory::new();
        let space = Subspace::new("scores");
        let by_score = Index::new(&space.child("by_score"), |_: &u32, score: &u32| entry(*score));
        let scores = Table::<u32, u32>::new(&space.child("scores")).with(&by_score);
        store.transact(|txn| scores.put(txn, &old, &7)).unwrap();
        store.transact(|txn| scores.put_many(txn, (0..RECORDS).map(|id| (id, 9)))).unwrap();
        let snapshot = store.snapshot().unwrap();
        let found = |score: u32| by_score.range(&snapshot, score).unwrap().count();
        assert_eq!((found(7), found(9)), (0, RECORDS as usize), "record {old} was there");
    }
}
