//! Builds in many transactions: stopped, beside writers, and with records in each other's way.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use keyloom::{Error, Store};
use keyloom_patterns::derived::RepairOptions;
use keyloom_patterns::general::index_table::{BuildOptions, BuildPhase};
use keyloom_patterns::{BatchSize, Table};

use crate::fixture::{NAMES, People, Person, clear, dump_all, going_on, make, sample, samples};

fn fill(people: &People, store: &impl Store, ids: std::ops::RangeInclusive<u16>) {
    clear(store);
    let records = samples(ids);
    let mut size = BatchSize::new(500);
    size.transact_all(store, &records, |txn, some| people.bare.put_many(txn, some)).unwrap();
}

pub fn a_build_that_was_stopped_goes_on_where_the_store_says(store: &(impl Store + Clone)) {
    let people = People::new();
    for name in NAMES {
        fill(&people, store, 1..=30);
        let options = BuildOptions { batch: 4, ..BuildOptions::default() };
        let mut calls = 0;
        loop {
            // Each time from another value, as another process has it.
            let people = People::new();
            let stop = |_: &_| ControlFlow::Break(());
            let done = people.catalog.build(store, &people.table, name, &options, stop).unwrap();
            calls += 1;
            assert!(done.records <= 4 * calls, "one batch for each call");
            if done.is_finished() {
                assert_eq!(done.records, 30, "no record is visited twice");
                break;
            }
        }
        assert!(calls >= 9, "the beginning, eight batches of records");
        let snapshot = store.snapshot().unwrap();
        assert_eq!(people.catalog.check(&snapshot, &people.table, name).unwrap(), []);
        drop(snapshot);
        let before = dump_all(store);
        assert!(people.build(store, name, 4).is_finished(), "what is built is built");
        assert_eq!(dump_all(store), before);
    }
}

pub fn a_build_beside_writers_leaves_what_a_build_alone_leaves(store: &(impl Store + Clone)) {
    const RECORDS: u16 = 400;
    let people = People::new();
    fill(&people, store, 1..=RECORDS);
    let (is_built, written) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..2u64 {
            let (people, is_built, written) = (&people, &is_built, &written);
            scope.spawn(move || {
                let mut n = seed;
                while !is_built.load(Relaxed) {
                    n = n
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    // Numbers of their own, so that nobody's address is taken; some of them are new.
                    let id = 2 * ((n >> 40) as u16 % RECORDS) + seed as u16;
                    let person = Person { age: (n >> 33) as u8 % 50, ..sample(id) };
                    let change = match n >> 60 {
                        0..4 => (id, None),
                        _ => (id, Some(person)),
                    };
                    let change = std::slice::from_ref(&change);
                    store.transact(|txn| make(&people.table, txn, change)).unwrap();
                    written.fetch_add(1, Relaxed);
                }
            });
        }
        for name in NAMES {
            let options = BuildOptions { batch: 20, rest: Duration::from_micros(200) };
            let done = people.catalog.build(store, &people.table, name, &options, going_on);
            assert!(done.unwrap().is_finished());
        }
        is_built.store(true, Relaxed);
    });
    assert!(written.load(Relaxed) > 0, "somebody wrote meanwhile");
    people.is_clean(store);
    people.drain(store);
    people.is_clean(store);
}

pub fn violations_are_listed_and_the_build_goes_on_once_they_are_mended(
    store: &(impl Store + Clone),
) {
    let people = People::new();
    fill(&people, store, 1..=30);
    // Ten addresses of three people each.
    let twin = |id: u16| Person { email: Some(format!("{}@example.org", id % 10)), ..sample(id) };
    store.transact(|txn| people.bare.put_many(txn, (1..=30).map(|id| (id, twin(id))))).unwrap();
    let done = people.build(store, "by_email", 7);
    assert_eq!((done.phase, done.records, done.violations), (BuildPhase::Blocked, 30, 20));
    assert_eq!(done.written, 10);
    let listed = |limit| {
        let snapshot = store.snapshot().unwrap();
        let found = people.catalog.violations(&snapshot, &people.table, "by_email", limit).unwrap();
        found
            .iter()
            .map(|v| (v.record().unwrap(), v.holder().unwrap()))
            .collect::<Vec<(u16, u16)>>()
    };
    let wanted: Vec<(u16, u16)> = (11..=30).map(|id| (id, (id - 1) % 10 + 1)).collect();
    assert_eq!(listed(99), wanted);
    assert_eq!(listed(3), wanted[..3]);
    let refused = people.catalog.readable(&store.snapshot().unwrap(), "by_email").unwrap_err();
    assert!(refused.to_string().contains("write-only"), "{refused}");

    // A holder goes, some others get an address of their own, one is deleted.
    store
        .transact(|txn| {
            people.table.delete(txn, &1)?;
            (12..=20).try_for_each(|id| people.table.put(txn, &id, &sample(id)))?;
            (23..=30).try_for_each(|id| people.table.put(txn, &id, &sample(id)))?;
            people.table.delete(txn, &22).map(drop)
        })
        .unwrap();
    assert_eq!(listed(99), [(21, 11)], "one of them may have it now");
    let done = people.build(store, "by_email", 7);
    assert_eq!((done.phase, done.violations), (BuildPhase::Blocked, 1));
    assert_eq!(listed(99), [(21, 11)]);
    // A value that the index has is refused already.
    let taken = store.transact(|txn| people.table.put(txn, &99, &twin(11))).unwrap_err();
    crate::fixture::is_not_unique(&taken);
    store.transact(|txn| people.table.put(txn, &21, &sample(21))).unwrap();
    assert!(people.build(store, "by_email", 7).is_finished());
    let snapshot = store.snapshot().unwrap();
    assert_eq!(people.catalog.check(&snapshot, &people.table, "by_email").unwrap(), []);
}

#[test]
fn a_build_takes_smaller_steps_where_a_store_takes_no_large_ones() {
    let mut limits = keyloom::Limits::etcd();
    limits.max_transaction_operations = Some(64);
    let store = keyloom::Memory::builder().limits(limits).build();
    let people = People::new();
    let records = samples(1..=300);
    let mut size = BatchSize::new(500);
    size.transact_all(&store, &records, |txn, some| people.bare.put_many(txn, some)).unwrap();
    for name in NAMES {
        assert!(people.build(&store, name, 1_000).is_finished());
    }
    people.is_clean(&store);
}

#[test]
fn another_table_with_the_same_types_is_refused_at_every_step() {
    let store = keyloom::Memory::new();
    let people = People::new();
    let guests = Table::new(&people.space.child("guests"));
    for name in NAMES {
        fill(&people, &store, 1..=30);
        store.transact(|txn| guests.put_many(txn, samples(50..=80))).unwrap();
        let options = BuildOptions { batch: 4, ..BuildOptions::default() };
        for steps in 1.. {
            let before = dump_all(&store);
            // Whoever comes first says which table it is.
            if steps > 1 {
                let build = people.catalog.build(&store, &guests, name, &options, going_on);
                is_refused(build.map(drop));
                assert_eq!(dump_all(&store), before, "{name} after {steps} steps");
            }
            let step = |_: &_| ControlFlow::Break(());
            let done = people.catalog.build(&store, &people.table, name, &options, step).unwrap();
            if done.is_finished() {
                assert!(steps > 8);
                break;
            }
        }
        let before = dump_all(&store);
        if name == "by_age" {
            is_refused(people.catalog.drain(&store, &guests, name, 9, going_on).map(drop));
        }
        let options = RepairOptions::default();
        is_refused(people.catalog.repair(&store, &guests, name, &options, going_on).map(drop));
        assert_eq!(dump_all(&store), before);
    }
}

#[track_caller]
fn is_refused(outcome: keyloom::Result<()>) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::BadOption { what: "the table", .. }), "{error}");
    assert!(error.to_string().contains("guests"), "{error}");
}
