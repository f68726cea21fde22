//! The laws of tables and of the composite-key index, on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use keyloom::key::{Subspace, pack};
use keyloom::{
    Cost, Desc, DynWriter, Error, Fault, Faulty, KeyRange, Metered, Order, Reader, Store,
    Transaction, Writer,
};
use keyloom_patterns::derived::{RepairOptions, RepairPhase};
use keyloom_patterns::{
    Continuation, Inconsistency, Index, IndexEntries, Select, Table, entry, starting_with, within,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde::{Deserialize, Serialize};

on_every_store! {
    rebuilt_from_scratch_equals_maintained_step_by_step,
    every_query_finds_what_a_filter_over_all_records_finds,
    pages_join_to_the_whole_whatever_is_written_in_between,
    check_finds_and_repair_mends_every_kind_of_damage,
    a_repair_that_was_stopped_goes_on_where_it_was,
    a_fault_at_any_operation_leaves_nothing_half_done,
    a_conflict_at_any_operation_is_retried_to_the_same_end,
    operations_cost_what_the_documentation_says,
    bad_input_is_refused_and_nothing_is_lost,
    several_patterns_commit_or_roll_back_together,
    continuations_of_other_queries_are_refused,
    prefixes_do_not_find_keys_that_only_begin_with_the_same_bytes,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct City {
    country: String,
    name: String,
    population: u64,
    tags: Vec<String>,
}

/// A table with three kinds of index: plain, descending and partial, multi-valued.
#[derive(Clone)]
struct Cities {
    table: Table<u16, City>,
    by_name: Index<u16, City>,
    by_size: Index<u16, City>,
    by_tag: Index<u16, City>,
    space: Subspace,
}

impl Cities {
    fn new() -> Self {
        Self::at(&Subspace::new("test"))
    }

    fn at(space: &Subspace) -> Self {
        let by_name =
            Index::new(&space.child("by_name"), |_, c: &City| entry((&c.country, &c.name)));
        let by_size = Index::new(&space.child("by_size"), |_, c: &City| match c.population {
            0 => IndexEntries::none(),
            some => entry((&c.country, Desc(some))),
        });
        let by_tag = Index::new(&space.child("by_tag"), |_, c: &City| c.tags.iter().collect());
        let table = Table::new(&space.child("cities")).with(&by_name).with(&by_size).with(&by_tag);
        Self { table, by_name, by_size, by_tag, space: space.clone() }
    }

    fn indexes(&self) -> [&Index<u16, City>; 3] {
        [&self.by_name, &self.by_size, &self.by_tag]
    }

    fn faults(&self, store: &impl Store) -> Vec<Inconsistency> {
        let snapshot = store.snapshot().unwrap();
        let check = |index: &&Index<u16, City>| index.check(&snapshot, &self.table).unwrap();
        self.indexes().iter().flat_map(check).collect()
    }
}

fn clear(store: &impl Store) {
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}

fn dump(reader: &impl Reader, range: KeyRange<'_>) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let entries = reader.range(range, Order::Ascending).unwrap();
    entries.map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

fn city() -> impl Strategy<Value = City> {
    let name = prop::sample::select(vec!["", "a", "a\0", "ab", "b", "San José", "\u{10FFFF}"]);
    let tags = prop::collection::vec(prop::sample::select(vec!["x", "y", "z"]), 0..4);
    (prop::sample::select(vec!["FR", "US"]), name, 0..4u64, tags).prop_map(
        |(country, name, population, tags)| City {
            country: country.into(),
            name: name.into(),
            population,
            tags: tags.into_iter().map(String::from).collect(),
        },
    )
}

/// Transactions of puts (`Some`) and deletes (`None`).
fn history() -> impl Strategy<Value = Vec<Vec<(u16, Option<City>)>>> {
    let step = (0..12u16, prop::option::weighted(0.7, city()));
    prop::collection::vec(prop::collection::vec(step, 1..6), 1..20)
}

fn apply(
    cities: &Cities,
    store: &impl Store,
    history: Vec<Vec<(u16, Option<City>)>>,
) -> BTreeMap<u16, City> {
    let mut oracle = BTreeMap::new();
    for steps in history {
        store
            .transact(|txn| {
                for (id, city) in &steps {
                    match city {
                        Some(city) => cities.table.put(txn, id, city)?,
                        None => drop(cities.table.delete(txn, id)?),
                    }
                }
                Ok(())
            })
            .unwrap();
        for (id, city) in steps {
            match city {
                Some(city) => oracle.insert(id, city),
                None => oracle.remove(&id),
            };
        }
    }
    oracle
}

/// Runs a property with a fixed number of cases, 256 unless the environment asks for more.
fn property<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, law: impl Fn(T)) {
    let mut runner =
        TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() });
    runner
        .run(&strategy, |case| {
            law(case);
            Ok(())
        })
        .unwrap();
}

fn rebuilt_from_scratch_equals_maintained_step_by_step(store: &(impl Store + Clone)) {
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
            index.repair(store, &cities.table, &options, |_| ControlFlow::Continue(())).unwrap();
        }
        assert_eq!(maintained, dump(&store.snapshot().unwrap(), cities.space.range()));
    });
}

fn every_query_finds_what_a_filter_over_all_records_finds(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    property(history(), |history| {
        clear(store);
        let oracle = apply(&cities, store, history);
        let snapshot = store.snapshot().unwrap();
        let ids = |found: &mut dyn Iterator<Item = keyloom::Result<u16>>| -> Vec<u16> {
            found.map(Result::unwrap).collect()
        };

        // The whole table, in both orders, and record by record.
        let mut records: Vec<_> = cities
            .table
            .range(&snapshot, (), Order::Ascending)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(records, oracle.clone().into_iter().collect::<Vec<_>>());
        records.reverse();
        let reversed = cities.table.range(&snapshot, (), Order::Descending).unwrap();
        assert_eq!(reversed.map(Result::unwrap).collect::<Vec<_>>(), records);
        let some: Vec<u16> = (0..14).rev().collect();
        let expected: Vec<_> = some.iter().map(|id| oracle.get(id).cloned()).collect();
        assert_eq!(cities.table.get_many(&snapshot, &some).unwrap(), expected);

        // A leading part, in the order of the index.
        let mut expected: Vec<_> = oracle
            .iter()
            .filter(|(_, c)| c.country == "FR")
            .map(|(id, c)| (c.name.clone(), *id))
            .collect();
        expected.sort();
        let expected: Vec<u16> = expected.into_iter().map(|(_, id)| id).collect();
        let mut found = cities
            .by_name
            .range(&snapshot, "FR", Order::Ascending)
            .unwrap()
            .map(|found| found?.record_key());
        assert_eq!(ids(&mut found), expected);
        assert_eq!(cities.by_name.count(&snapshot, "FR").unwrap(), expected.len() as u64);
        let mut found = cities
            .by_name
            .range(&snapshot, "FR", Order::Descending)
            .unwrap()
            .map(|found| found?.record_key());
        assert_eq!(ids(&mut found), expected.iter().rev().copied().collect::<Vec<_>>());

        // The beginning of a string.
        let expected: BTreeSet<u16> = oracle
            .iter()
            .filter(|(_, c)| c.country == "US" && c.name.starts_with('a'))
            .map(|(id, _)| *id)
            .collect();
        let mut found = cities
            .by_name
            .range(&snapshot, starting_with(("US", "a")), Order::Ascending)
            .unwrap()
            .map(|found| found?.record_key());
        assert_eq!(ids(&mut found).into_iter().collect::<BTreeSet<_>>(), expected);

        // Descending parts, of those records that have the entry at all.
        let mut expected: Vec<_> = oracle
            .iter()
            .filter(|(_, c)| c.country == "US" && c.population > 0)
            .map(|(id, c)| (std::cmp::Reverse(c.population), *id))
            .collect();
        expected.sort();
        for (found, (population, id)) in
            cities.by_size.range(&snapshot, "US", Order::Ascending).unwrap().zip(&expected)
        {
            let found = found.unwrap();
            let (country, Desc(size)) = found.parts::<(&str, Desc<u64>)>().unwrap();
            assert_eq!((country, size, found.record_key().unwrap()), ("US", population.0, *id));
        }
        assert_eq!(cities.by_size.count(&snapshot, "US").unwrap(), expected.len() as u64);

        // A half-open range of parts: populations above 1 and up to 3.
        let between = cities
            .by_size
            .range(&snapshot, within(("US", Desc(3u64))..("US", Desc(1))), Order::Ascending)
            .unwrap()
            .count();
        assert_eq!(between, expected.iter().filter(|(p, _)| p.0 > 1 && p.0 <= 3).count());

        // Ranges of record keys, of every kind, against the same ranges of numbers.
        let keys = |select: keyloom_patterns::Within<u16>| {
            let records = cities.table.range(&snapshot, select, Order::Ascending).unwrap();
            records.map(|record| record.unwrap().0).collect::<Vec<_>>()
        };
        let expected = |range: &dyn Fn(u16) -> bool| {
            oracle.keys().copied().filter(|id| range(*id)).collect::<Vec<_>>()
        };
        assert_eq!(keys(within(3..8)), expected(&|id| (3..8).contains(&id)));
        assert_eq!(keys(within(3..=8)), expected(&|id| (3..=8).contains(&id)));
        assert_eq!(keys(within(3..)), expected(&|id| id >= 3));
        assert_eq!(keys(within(..8)), expected(&|id| id < 8));
        assert_eq!(keys(within(..=8)), expected(&|id| id <= 8));
        assert_eq!(keys(within::<u16>(..)), expected(&|_| true));
        let behind = (std::ops::Bound::Excluded(3), std::ops::Bound::Unbounded);
        assert_eq!(keys(within(behind)), expected(&|id| id > 3));
        // Bounds that name only the first of two parts take in, or leave out, all that continue them.
        let in_france = cities.by_name.count(&snapshot, "FR").unwrap();
        let in_america = cities.by_name.count(&snapshot, "US").unwrap();
        assert_eq!(cities.by_name.count(&snapshot, within(.."US")).unwrap(), in_france);
        assert_eq!(cities.by_name.count(&snapshot, within(..="FR")).unwrap(), in_france);
        assert_eq!(cities.by_name.count(&snapshot, within("US"..)).unwrap(), in_america);
        let behind = (std::ops::Bound::Excluded("FR"), std::ops::Bound::<&str>::Unbounded);
        assert_eq!(cities.by_name.count(&snapshot, within::<&str>(behind)).unwrap(), in_america);

        // One entry per value, once, however often it is named.
        for tag in ["x", "y", "z", "w"] {
            let expected: Vec<u16> = oracle
                .iter()
                .filter(|(_, c)| c.tags.iter().any(|t| t == tag))
                .map(|(id, _)| *id)
                .collect();
            let mut found = cities
                .by_tag
                .range(&snapshot, tag, Order::Ascending)
                .unwrap()
                .map(|found| found?.record_key());
            assert_eq!(ids(&mut found), expected);
        }
    });
}

fn sample(id: u16) -> City {
    City {
        country: if id.is_multiple_of(2) { "FR" } else { "US" }.into(),
        name: format!("city {id}"),
        population: u64::from(id),
        tags: vec!["x".into()],
    }
}

fn fill(cities: &Cities, store: &impl Store, ids: impl IntoIterator<Item = u16>) {
    let ids: Vec<u16> = ids.into_iter().collect();
    store
        .transact(|txn| ids.iter().try_for_each(|id| cities.table.put(txn, id, &sample(*id))))
        .unwrap();
}

fn pages_join_to_the_whole_whatever_is_written_in_between(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    for order in [Order::Ascending, Order::Descending] {
        clear(store);
        fill(&cities, store, (0..100).map(|n| n * 10));
        let (mut seen, mut after) = (Vec::new(), None::<Vec<u8>>);
        for round in 0.. {
            // The continuation goes through bytes, as it would through a client.
            let continuation = after.as_deref().map(Continuation::from_bytes);
            {
                let snapshot = store.snapshot().unwrap();
                let page =
                    cities.by_size.page(&snapshot, "FR", order, 7, continuation.as_ref()).unwrap();
                seen.extend(page.found.iter().map(|found| found.record_key().unwrap()));
                let Some(next) = page.next else { break };
                after = Some(next.as_bytes().to_vec());
            }
            // Remove the very record where the page ended, and add others all over the place.
            let last = *seen.last().unwrap();
            store.transact(|txn| cities.table.delete(txn, &last)).unwrap();
            fill(&cities, store, [round * 20 + 2, round * 20 + 4]);
        }
        let originals: Vec<u16> =
            seen.iter().copied().filter(|id| id % 10 == 0 && *id > 0).collect();
        let mut expected: Vec<u16> = (1..100).map(|n| n * 10).collect();
        if order == Order::Ascending {
            expected.reverse(); // by_size descends
        }
        assert_eq!(originals, expected, "every record that stayed is seen once, in order");
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len(), "nothing is seen twice");
    }
}

fn check_finds_and_repair_mends_every_kind_of_damage(store: &(impl Store + Clone)) {
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
    has(Inconsistency::Missing { entry: missing.clone() });
    has(Inconsistency::Wrong { entry: wrong.clone() });
    has(Inconsistency::Dangling { entry: dangling.clone() });
    has(Inconsistency::Dangling { entry: stale.clone() });
    has(Inconsistency::Foreign { entry: foreign.clone() });
    for fault in &found {
        let text = fault.to_string();
        assert!(text.contains("by_name"), "{text} names the entry");
    }

    let options = RepairOptions { batch: 4, resume: None };
    let mut told = Vec::new();
    let done = cities
        .by_name
        .repair(store, &cities.table, &options, |progress| {
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

fn a_repair_that_was_stopped_goes_on_where_it_was(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    let bare = Table::<u16, City>::new(&cities.space.child("cities"));
    store.transact(|txn| (1..=30).try_for_each(|id| bare.put(txn, &id, &sample(id)))).unwrap();
    let mut options = RepairOptions { batch: 4, resume: None };
    let mut visited = 0;
    loop {
        let done = cities
            .by_name
            .repair(store, &cities.table, &options, |_| ControlFlow::Break(()))
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

/// A change that touches everything: one record new, one moved within the indexes, one gone.
fn change(cities: &Cities, txn: &mut impl Writer) -> keyloom::Result<()> {
    cities.table.put(txn, &100, &sample(100))?;
    let moved = City { country: "IT".into(), tags: vec!["y".into(), "z".into()], ..sample(1) };
    cities.table.put(txn, &1, &moved)?;
    cities.table.delete(txn, &2)?;
    Ok(())
}

fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    let faulty = Faulty::new(store.clone());
    for fault in [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted] {
        let mut failures = 0;
        for n in 0.. {
            clear(store);
            fill(&cities, store, 1..=5);
            let before = dump(&store.snapshot().unwrap(), KeyRange::all());
            faulty.fail_at(n, fault);
            let outcome = faulty.transact(|txn| change(&cities, txn));
            faulty.heal();
            let after = dump(&store.snapshot().unwrap(), KeyRange::all());
            assert_eq!(cities.faults(store), [], "after {fault:?} at operation {n}");
            match outcome {
                Ok(()) => {
                    assert_ne!(before, after);
                    break;
                }
                Err(error) => {
                    failures += 1;
                    let committed = fault == Fault::UnknownButCommitted && error.maybe_committed();
                    assert_eq!(before != after, committed, "{error}");
                    assert!(error.to_string().contains("made to fail"), "{error}");
                }
            }
        }
        assert!(failures > 15, "the change has {failures} operations that can fail");
    }
}

fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    let faulty = Faulty::new(store.clone());
    clear(store);
    fill(&cities, store, 1..=5);
    store.transact(|txn| change(&cities, txn)).unwrap();
    let wanted = dump(&store.snapshot().unwrap(), KeyRange::all());
    let mut reruns = 0;
    for n in 0.. {
        clear(store);
        fill(&cities, store, 1..=5);
        faulty.fail_at(n, Fault::Conflict);
        let mut runs = 0;
        faulty
            .transact(|txn| {
                runs += 1;
                change(&cities, txn)
            })
            .unwrap();
        assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), wanted);
        // A conflict at the beginning is met before the body has run at all.
        if runs == 1 && n > 0 {
            break;
        }
        reruns += 1;
    }
    assert!(reruns > 15);
}

fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    fill(&cities, store, 1..=20);
    let metered = Metered::new(store.clone());
    let writing = |work: &dyn Fn(&mut DynWriter<'_>)| {
        let (_, cost) = metered.measure(|store| {
            let mut txn = store.begin().unwrap();
            work(&mut DynWriter::new(&mut txn));
            txn.commit().unwrap();
        });
        cost
    };
    let counts = |cost: Cost| (cost.gets, cost.ranges, cost.keys_written);

    // A put whose indexed values stay writes one key.
    let retagged = City { tags: vec!["x".into(), "x".into()], ..sample(4) };
    assert_eq!(counts(writing(&|txn| cities.table.put(txn, &4, &retagged).unwrap())), (1, 0, 1));
    // A new name moves one entry: one key out, one in.
    let renamed = City { name: "renamed".into(), ..retagged.clone() };
    assert_eq!(counts(writing(&|txn| cities.table.put(txn, &4, &renamed).unwrap())), (1, 0, 3));
    // A new record: itself and its three entries.
    assert_eq!(counts(writing(&|txn| cities.table.put(txn, &50, &sample(50)).unwrap())), (1, 0, 4));
    // Deleting takes the same four; deleting nothing takes nothing.
    assert_eq!(counts(writing(&|txn| assert!(cities.table.delete(txn, &50).unwrap()))), (1, 0, 4));
    assert_eq!(counts(writing(&|txn| assert!(!cities.table.delete(txn, &50).unwrap()))), (1, 0, 0));
    // Without anything attached a put does not read.
    let bare = Table::<u16, City>::new(&cities.space.child("bare"));
    assert_eq!(counts(writing(&|txn| bare.put(txn, &1, &sample(1)).unwrap())), (0, 0, 1));
    writing(&|txn| assert!(bare.delete(txn, &1).unwrap()));

    let snapshot = metered.snapshot().unwrap();
    let reading = |work: &dyn Fn()| metered.measure(|_| work()).1;
    let cost = reading(&|| drop(cities.table.get(&snapshot, &3).unwrap()));
    assert_eq!((cost.gets, cost.ranges, cost.keys_read, cost.round_trips), (1, 0, 1, 1));
    let cost = reading(&|| {
        let found = cities.by_name.range(&snapshot, "FR", Order::Ascending).unwrap();
        assert_eq!(found.count(), 10);
    });
    assert_eq!((cost.gets, cost.ranges, cost.keys_read, cost.round_trips), (0, 1, 10, 1));
    // Records through the index: two round trips, however many they are.
    let cost = reading(&|| {
        let records =
            cities.by_name.records(&snapshot, &cities.table, "FR", Order::Ascending, 8, None);
        assert_eq!(records.unwrap().records.len(), 8);
    });
    assert_eq!((cost.gets, cost.ranges, cost.keys_read, cost.round_trips), (8, 1, 16, 2));
}

fn bad_input_is_refused_and_nothing_is_lost(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    fill(&cities, store, 1..=5);
    let before = dump(&store.snapshot().unwrap(), KeyRange::all());

    // A name too long for the key of an entry; the message shows where it would have gone.
    let long = City { name: "n".repeat(600), ..sample(3) };
    let error = store.transact(|txn| cities.table.put(txn, &3, &long)).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::KeyTooLong { limit: 511, .. }), "{error:?}");
    assert!(text.contains("by_name") && text.contains("511"), "{text}");
    assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), before);

    // A record that is none: reading and replacing it are errors, and it stays as it is.
    let broken = cities.table.space().pack(&77u16);
    store.transact(|txn| txn.put(&broken, b"\xFF\xFF")).unwrap();
    let snapshot = store.snapshot().unwrap();
    let no_record = |error: Error| {
        let Error::At { key, source } = error else { panic!("{error:?} names no key") };
        assert_eq!(&*key, r#"("test", "cities", 77)"#);
        assert!(matches!(*source, Error::Value { action: "decode", .. }), "{source:?}");
    };
    no_record(cities.table.get(&snapshot, &77).unwrap_err());
    no_record(cities.table.get_many(&snapshot, &[1, 77]).unwrap_err());
    no_record(
        cities.table.range(&snapshot, 77, Order::Ascending).unwrap().next().unwrap().unwrap_err(),
    );
    assert!(cities.by_name.check(&snapshot, &cities.table).is_err());
    drop(snapshot);
    let replaced = store.transact(|txn| cities.table.put(txn, &77, &sample(77)));
    no_record(replaced.unwrap_err());
    no_record(store.transact(|txn| cities.table.delete(txn, &77)).unwrap_err());
    assert_eq!(store.snapshot().unwrap().get(&broken).unwrap().as_deref(), Some(&b"\xFF\xFF"[..]));
    store.transact(|txn| txn.delete(&broken)).unwrap();

    // A key of the wrong type in the subspace of the records.
    let foreign = cities.table.space().pack("not a number");
    store.transact(|txn| txn.put(&foreign, b"")).unwrap();
    let snapshot = store.snapshot().unwrap();
    // Strings sort before numbers.
    let first = cities.table.range(&snapshot, (), Order::Ascending).unwrap().next().unwrap();
    let Err(Error::At { key, source }) = first else { panic!("{first:?}") };
    assert!(key.contains("not a number") && matches!(*source, Error::Key(_)), "{key}: {source}");
    drop(snapshot);

    // An entry of a format that this code does not know.
    let newer = cities.space.child("by_name").pack(&("FR", "x", 3u16));
    store.transact(|txn| txn.put(&newer, &[0x20, 0x02])).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut found =
        cities.by_name.range(&snapshot, starting_with(("FR", "x")), Order::Ascending).unwrap();
    assert!(matches!(found.next(), Some(Err(Error::NewerFormat { found: 2, supported: 1, .. }))));
}

fn several_patterns_commit_or_roll_back_together(store: &(impl Store + Clone)) {
    clear(store);
    let (europe, asia) = (Cities::at(&Subspace::new("europe")), Cities::at(&Subspace::new("asia")));
    let counters = Subspace::new("moves");
    fill(&europe, store, 1..=3);
    let before = dump(&store.snapshot().unwrap(), KeyRange::all());
    let relocate = |txn: &mut DynWriter<'_>, id: u16| {
        let city =
            europe.table.get(txn, &id)?.ok_or_else(|| Error::other(format!("no city {id}")))?;
        europe.table.delete(txn, &id)?;
        asia.table.put(txn, &id, &city)?;
        txn.add(&counters.pack(&id), 1)
    };
    let both = |ids: [u16; 2]| {
        store.transact(|txn| ids.iter().try_for_each(|id| relocate(&mut DynWriter::new(txn), *id)))
    };
    // The second of them is not there: the first must not have moved either.
    let error = both([1, 9]).unwrap_err();
    assert_eq!(error.to_string(), "no city 9");
    assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), before);
    both([1, 2]).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(europe.table.range(&snapshot, (), Order::Ascending).unwrap().count(), 1);
    assert_eq!(asia.by_tag.count(&snapshot, "x").unwrap(), 2);
    assert_eq!(snapshot.counter(&counters.pack(&1u16)).unwrap(), 1);
}

fn continuations_of_other_queries_are_refused(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    fill(&cities, store, 1..=20);
    let snapshot = store.snapshot().unwrap();
    let page = |index: &Index<u16, City>, prefix: &str, order, after: Option<&Continuation>| {
        index.page(&snapshot, prefix, order, 3, after).map(|page| page.next)
    };
    let next = page(&cities.by_name, "FR", Order::Ascending, None).unwrap().unwrap();
    assert!(page(&cities.by_name, "FR", Order::Ascending, Some(&next)).is_ok());
    let others = [
        page(&cities.by_name, "FR", Order::Descending, Some(&next)),
        page(&cities.by_name, "US", Order::Ascending, Some(&next)),
        page(&cities.by_size, "FR", Order::Ascending, Some(&next)),
        page(&cities.by_name, "FR", Order::Ascending, Some(&Continuation::from_bytes(b""))),
        page(&cities.by_name, "FR", Order::Ascending, Some(&Continuation::from_bytes(&[0; 9]))),
    ];
    for other in others {
        let error = other.unwrap_err();
        assert!(matches!(error, Error::BadOption { what: "the continuation", .. }), "{error}");
    }
    // One whose key lies inside the other query all the same.
    let of_country = page(&cities.by_name, "FR", Order::Ascending, None).unwrap().unwrap();
    let of_all = cities.by_name.page(&snapshot, (), Order::Ascending, 3, Some(&of_country));
    assert!(matches!(of_all, Err(Error::BadOption { .. })));
    let mut newer = next.as_bytes().to_vec();
    newer[0] = 2;
    let newer =
        page(&cities.by_name, "FR", Order::Ascending, Some(&Continuation::from_bytes(&newer)));
    assert!(matches!(newer, Err(Error::NewerFormat { found: 2, .. })));
}

/// `("a\0", ..)` begins with the bytes of `("a",)`, and 1 with those of no number but itself.
fn prefixes_do_not_find_keys_that_only_begin_with_the_same_bytes(store: &(impl Store + Clone)) {
    clear(store);
    let table = Table::<(String, u32), u32>::new(&Subspace::new("t"));
    let keys = [("a", 1), ("a", 256), ("a\0", 1), ("a\0\u{FF}", 2), ("ab", 1)];
    store
        .transact(|txn| keys.iter().try_for_each(|(s, n)| table.put(txn, &((*s).into(), *n), n)))
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let count = |prefix: &dyn Fn() -> KeyRange<'static>| snapshot.count(prefix()).unwrap();
    assert_eq!(count(&|| "a".key_range(table.space())), 2);
    assert_eq!(count(&|| "a\0".key_range(table.space())), 1);
    assert_eq!(count(&|| ("a", 1).key_range(table.space())), 1);
    assert_eq!(count(&|| ().key_range(table.space())), 5);
    assert_eq!(pack(&("a",)), pack("a"), "a value is the tuple of itself");
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
        let table = Table::<u16, u32>::new(&table_space);
        store.transact(|txn| table.put(txn, &1, &7)).unwrap();
        let options = RepairOptions::default();
        let repaired = index.repair(&store, &table, &options, |_| ControlFlow::Continue(()));
        assert!(matches!(repaired, Err(Error::BadOption { what: "the subspace", .. })));
        let checked = index.check(&store.snapshot().unwrap(), &table);
        assert!(matches!(checked, Err(Error::BadOption { what: "the subspace", .. })));
        assert_eq!(table.get(&store.snapshot().unwrap(), &1).unwrap(), Some(7));
    }
}

#[test]
fn a_repair_by_an_older_program_leaves_entries_of_a_newer_format_alone() {
    let store = keyloom::Memory::new();
    let cities = Cities::new();
    store.transact(|txn| cities.table.put(txn, &2, &sample(2))).unwrap();
    let newer = [
        cities.space.child("by_name").pack(&("FR", "city 2", 2u16)),
        cities.space.child("by_name").pack(&("FR", "of a newer kind", 2u16)),
    ];
    for entry in &newer {
        store.transact(|txn| txn.put(entry, &[0x20, 0x02])).unwrap();
        let options = RepairOptions::default();
        let repaired =
            cities.by_name.repair(&store, &cities.table, &options, |_| ControlFlow::Continue(()));
        assert!(matches!(repaired, Err(Error::NewerFormat { found: 2, .. })));
        assert!(matches!(
            cities.by_name.check(&store.snapshot().unwrap(), &cities.table),
            Err(Error::NewerFormat { found: 2, .. })
        ));
        let kept = store.snapshot().unwrap().get(entry).unwrap().map(<[u8]>::to_vec);
        assert_eq!(kept.as_deref(), Some(&[0x20, 0x02][..]));
        store.transact(|txn| txn.put(entry, &[0x10, 0x02])).unwrap();
    }
}

#[test]
fn a_repair_takes_smaller_steps_where_a_store_takes_no_large_ones() {
    let store = keyloom::Memory::builder().limits(keyloom::Limits::etcd()).build();
    let cities = Cities::new();
    let bare = Table::<u16, City>::new(cities.table.space());
    for id in 0..1_000 {
        store.transact(|txn| bare.put(txn, &id, &sample(id))).unwrap();
    }
    for index in cities.indexes() {
        let options = RepairOptions::default();
        index.repair(&store, &cities.table, &options, |_| ControlFlow::Continue(())).unwrap();
    }
    assert_eq!(cities.faults(&store), []);
}

#[test]
fn entries_of_different_records_are_different_whatever_their_parts_hold() {
    use keyloom::List;
    type Words = List<Vec<String>>;
    let words = |all: &[&str]| List(all.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
    let index = Index::new(&Subspace::new("i"), |_: &Words, v: &Vec<String>| entry(List(&v[..])));
    let table = Table::<Words, Vec<String>>::new(&Subspace::new("t")).with(&index);
    let store = keyloom::Memory::new();
    let (ab, abc) = (vec!["a".to_owned(), "b".to_owned()], vec!["a".to_owned()]);
    store
        .transact(|txn| {
            table.put(txn, &words(&["c"]), &ab)?;
            table.put(txn, &words(&["b", "c"]), &abc)
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(index.count(&snapshot, ()).unwrap(), 2);
    assert_eq!(index.check(&snapshot, &table).unwrap(), []);
}

#[test]
fn a_beginning_of_no_string_is_the_whole_of_what_was_named() {
    let store = keyloom::Memory::new();
    let index = Index::new(&Subspace::new("by"), |_: &u16, size: &u32| entry(size));
    let other = Subspace::new("by_other").pack(&1);
    let table = Table::<u16, u32>::new(&Subspace::new("t")).with(&index);
    store
        .transact(|txn| {
            txn.put(&other, b"not of this index")?;
            [(1, 256), (2, 257), (3, 256)].iter().try_for_each(|(id, v)| table.put(txn, id, v))
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let count = |found: keyloom_patterns::general::composite_key_index::FoundEntries<_, u16>| {
        found.map(Result::unwrap).count()
    };
    assert_eq!(count(index.range(&snapshot, starting_with(()), Order::Ascending).unwrap()), 3);
    assert_eq!(count(index.range(&snapshot, starting_with(256), Order::Ascending).unwrap()), 2);
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

#[test]
fn types_can_be_named_in_the_fields_of_a_struct_and_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Cities>();
    shared::<Table<u32, City, keyloom::value::Json>>();
}
