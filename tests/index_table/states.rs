//! Random changes and random steps of the state machine, in any order.

use keyloom::{Order, Store, Writer};
use keyloom_patterns::Inconsistency;
use keyloom_patterns::general::index_table::{BuildPhase, DrainProgress, IndexState};
use proptest::prelude::*;

use crate::fixture::{
    Change, NAMES, Oracle, People, change, clear, holder, imitate, is_not_unique, make, property,
};

#[derive(Clone, Debug)]
enum Step {
    Change(Vec<Change>),
    Build(&'static str, usize),
    Disable(&'static str),
    Drop(&'static str),
    Drain,
    Open,
}

fn step() -> impl Strategy<Value = Step> {
    let name = || prop::sample::select(&NAMES[..]);
    prop_oneof![
        8 => prop::collection::vec(change(), 1..4).prop_map(Step::Change),
        6 => (name(), 1..4usize).prop_map(|(name, batch)| Step::Build(name, batch)),
        1 => name().prop_map(Step::Disable),
        1 => name().prop_map(Step::Drop),
        2 => Just(Step::Drain),
        1 => Just(Step::Open),
    ]
}

pub fn any_order_of_changes_and_steps_keeps_the_invariants(store: &(impl Store + Clone)) {
    property(64, prop::collection::vec(step(), 1..50), |steps| {
        let people = People::new();
        clear(store);
        let mut oracle = Oracle::new();
        for step in steps {
            take(&people, store, &mut oracle, step);
            holds(&people, store, &oracle);
        }
        comes_to_an_end(&people, store, &mut oracle);
    });
}

fn state(people: &People, store: &impl Store, name: &str) -> Option<IndexState> {
    let states = people.catalog.states(&store.snapshot().unwrap()).unwrap();
    states.into_iter().find(|info| info.name == name).map(|info| info.state)
}

fn take(people: &People, store: &impl Store, oracle: &mut Oracle, step: Step) {
    let is_in_store = |name| state(people, store, name).is_some();
    match step {
        Step::Change(changes) => {
            let outcome = store.transact(|txn| make(&people.table, txn, &changes));
            let is_enforced = state(people, store, "by_email") == Some(IndexState::Readable);
            match (outcome, imitate(oracle, &changes)) {
                (Ok(()), Some(after)) => *oracle = after,
                (Err(error), None) => is_not_unique(&error),
                (Err(error), Some(_)) => panic!("refused without a reason: {error}"),
                // While the index is being built it refuses what it knows of.
                (Ok(()), None) => {
                    assert!(!is_enforced, "two records have one address");
                    for (id, person) in changes {
                        match person {
                            Some(person) => drop(oracle.insert(id, person)),
                            None => drop(oracle.remove(&id)),
                        }
                    }
                }
            }
        }
        Step::Build(name, batch) => {
            let done = store
                .transact(|txn| people.catalog.build_batch(txn, &people.table, name, batch))
                .unwrap();
            let is_readable = state(people, store, name) == Some(IndexState::Readable);
            assert_eq!(done.is_finished(), is_readable);
            assert!(done.phase != BuildPhase::Blocked || name == "by_email");
        }
        Step::Disable(name) => {
            let outcome = store.transact(|txn| people.catalog.disable(txn, name));
            assert_eq!(outcome.is_ok(), is_in_store(name));
        }
        Step::Drop(name) => {
            let done = store.transact(|txn| people.catalog.drop_batch(txn, name, 3)).unwrap();
            assert_eq!(done.finished, !is_in_store(name));
        }
        Step::Drain => {
            let is_followed =
                state(people, store, "by_age").is_some_and(|s| s != IndexState::Disabled);
            let drained = store.transact(|txn| {
                let beginning = DrainProgress::default();
                people.catalog.drain_batch(txn, &people.table, "by_age", 2, beginning)
            });
            assert_eq!(drained.is_ok(), is_followed);
        }
        Step::Open => store.transact(|txn| people.catalog.open(txn, &people.table)).unwrap(),
    }
}

fn holds(people: &People, store: &impl Store, oracle: &Oracle) {
    let snapshot = store.snapshot().unwrap();
    let records: keyloom::Result<Oracle> =
        people.table.range(&snapshot, (), Order::Ascending).unwrap().collect();
    assert_eq!(records.unwrap(), *oracle);
    for (name, index) in people.indexes() {
        let checked = people.catalog.check(&snapshot, &people.table, name);
        match state(people, store, name) {
            Some(IndexState::Readable) => assert_eq!(checked.unwrap(), [], "{name}"),
            Some(IndexState::WriteOnly) => {
                assert!(checked.is_err() && people.catalog.readable(&snapshot, name).is_err());
                // Something may be missing, but what is there is right; the deferred one may be late.
                let found = index.check(&snapshot, &people.table).unwrap();
                let is_early = |fault: &Inconsistency| {
                    matches!(fault, Inconsistency::Missing { .. } | Inconsistency::Contested { .. })
                };
                assert!(name == "by_age" || found.iter().all(is_early), "{name}: {found:?}");
            }
            Some(IndexState::Disabled) => assert!(checked.is_err()),
            None => {
                assert!(checked.is_err());
                let space = people.space.child(name).self_and_children();
                assert_eq!(
                    keyloom::Reader::count(&snapshot, space).unwrap(),
                    0,
                    "nothing is left of {name}"
                );
            }
        }
    }
}

/// From wherever it is, each index becomes readable, and the same as if it had always been.
fn comes_to_an_end(people: &People, store: &impl Store, oracle: &mut Oracle) {
    for name in NAMES {
        let done = people.build(store, name, 3);
        if name != "by_email" {
            assert!(done.is_finished(), "{name}: {done:?}");
            continue;
        }
        let violations =
            people.catalog.violations(&store.snapshot().unwrap(), &people.table, name, 99).unwrap();
        let twins = oracle.iter().filter(|(id, p)| holder(oracle, **id, p).is_some()).count();
        assert_eq!(done.is_finished(), twins == 0);
        assert_eq!(violations.is_empty(), twins == 0);
        assert!(violations.len() < twins.max(1));
        for violation in &violations {
            let (record, holder) = (violation.record().unwrap(), violation.holder().unwrap());
            assert_eq!(oracle[&record].email, oracle[&holder].email);
            oracle.remove(&record);
            store.transact(|txn| people.table.delete(txn, &record).map(drop)).unwrap();
        }
        assert!(people.build(store, name, 3).is_finished());
    }
    people.is_clean(store);
    people.drain(store);
    let maintained = people.entries(store);
    let again = People::opened(store);
    store.transact(|txn| again.table.put_many(txn, oracle.clone())).unwrap();
    again.drain(store);
    assert_eq!(again.entries(store), maintained);
    store.transact(|txn| txn.delete_range(keyloom::KeyRange::all())).unwrap();
}
