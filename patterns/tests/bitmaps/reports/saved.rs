//! Audiences that are saved day by day, in reports and expressions.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Store, Subspace};
use keyloom_bitmaps::{Bitmap, BitmapExpr};
use proptest::collection::vec;
use proptest::prelude::*;
use roaring::RoaringTreemap;

use super::breakdowns::WAYS;
use super::fixture::{Ask, Fixture, User, Users, ask, crowd, id, user, users};
use keyloom_testing::laws::very_long_property;

const DAYS: u32 = 3;

#[derive(Clone, Debug)]
enum Step {
    Save(u32),
    Insert(u32, u32),
    Remove(u32, u32),
    Put(u32, User),
    Delete(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..DAYS).prop_map(Step::Save),
        1 => (0..DAYS, id()).prop_map(|(day, id)| Step::Insert(day, id)),
        1 => (0..DAYS, id()).prop_map(|(day, id)| Step::Remove(day, id)),
        2 => (id(), user()).prop_map(|(id, user)| Step::Put(id, user)),
        1 => id().prop_map(Step::Delete),
    ];
    vec(step, 1..12)
}

pub fn saved_audiences_are_those_of_sets_in_memory(store: &impl Store) {
    very_long_property((users(), ask(), steps()), |(mut users, ask, steps)| {
        let fixture = Fixture::holding(store, &users);
        let space = Subspace::new("saved");
        let on = |day: u32| Bitmap::new(&space.child(&("audience", day)));
        let mut sets = vec![BTreeSet::<u32>::new(); DAYS as usize];
        for step in &steps {
            step_in_memory(step, &ask, &mut users, &mut sets);
            let done = store.transact(|txn| {
                match step {
                    Step::Save(day) => {
                        (ask.expr(&fixture.index) & fixture.index.all())
                            .store_in(txn, &on(*day))?;
                    }
                    Step::Insert(day, id) => drop(on(*day).insert(txn, (*id).into())?),
                    Step::Remove(day, id) => drop(on(*day).remove(txn, (*id).into())?),
                    Step::Put(id, user) => drop(fixture.table.put(txn, id, user)?),
                    Step::Delete(id) => drop(fixture.table.delete(txn, id)?),
                }
                Ok(())
            });
            done.unwrap();
        }
        let snapshot = store.snapshot().unwrap();
        for (day, set) in (0..).zip(&sets) {
            let ids = set.iter().map(|id| u64::from(*id)).collect::<RoaringTreemap>();
            assert_eq!(on(day).to_treemap(&snapshot).unwrap(), ids, "day {day}");
        }
        // The records that are in the audience on some day, and those that have left it.
        let union = BitmapExpr::any_of((0..DAYS).map(on));
        let left = BitmapExpr::from(on(0)) - on(1);
        let of_union: BTreeSet<u32> = sets.iter().flatten().copied().collect();
        let of_left: BTreeSet<u32> = sets[0].difference(&sets[1]).copied().collect();
        for (expr, set) in [(union, of_union), (left, of_left)] {
            let records = || set.iter().filter_map(|id| users.get(id));
            let mut tags = BTreeMap::<String, u64>::new();
            records().flat_map(|user| &user.tags).for_each(|tag| {
                *tags.entry(tag.clone()).or_default() += 1;
            });
            for way in WAYS {
                let report = way(fixture.index.report(&expr));
                let found = report.breakdown::<String>(&snapshot, "tag").unwrap();
                assert_eq!(found.rows, tags.clone().into_iter().collect::<Vec<_>>());
                assert_eq!(found.ids, records().count() as u64);
            }
        }
    });
}

fn step_in_memory(step: &Step, ask: &Ask, users: &mut Users, sets: &mut [BTreeSet<u32>]) {
    match step {
        Step::Save(day) => sets[*day as usize] = ask.of(users).map(|(id, _)| id).collect(),
        Step::Insert(day, id) => drop(sets[*day as usize].insert(*id)),
        Step::Remove(day, id) => drop(sets[*day as usize].remove(id)),
        Step::Put(id, user) => drop(users.insert(*id, user.clone())),
        Step::Delete(id) => drop(users.remove(id)),
    }
}

/// Negative control: a report of a saved audience that lacks a member differs from the loop.
pub fn a_missing_member_is_caught(store: &impl Store) {
    let users = crowd(1, 20);
    let fixture = Fixture::holding(store, &users);
    let saved = Bitmap::new(&Subspace::new("saved"));
    store.transact(|txn| fixture.index.all().store_in(txn, &saved)).unwrap();
    let rows = || {
        let report = fixture.index.report(&saved);
        report.breakdown::<String>(&store.snapshot().unwrap(), "tag").unwrap().rows
    };
    let mut tags = BTreeMap::<String, u64>::new();
    users.values().for_each(|user| *tags.entry(user.tags[0].clone()).or_default() += 1);
    let expected: Vec<(String, u64)> = tags.into_iter().collect();
    assert_eq!(rows(), expected);
    store.transact(|txn| saved.remove(txn, 7)).unwrap();
    assert_ne!(rows(), expected);
}
