//! Containers of random records, and scans over them, compared with a map.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, RangeBounds};

use keyloom::{Order, Result, Store, Subspace, Writer};
use keyloom_tables::{AppendLog, Index, Maintained, Progress, RepairOptions, entry, in_order};
use proptest::collection::vec;
use proptest::prelude::*;

use keyloom_testing::laws::{clear, dump_all, property};

/// User names that are prefixes of each other.
const USERS: [&str; 3] = ["", "ada", "ada\0"];

#[derive(Clone, Debug)]
enum Step {
    Append(usize, u32),
    Delete(usize, u64),
    Sweep(usize, u64, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3usize, any::<u32>()).prop_map(|(user, value)| Step::Append(user, value)),
        2 => (0..3usize, 0..12u64).prop_map(|(user, number)| Step::Delete(user, number)),
        1 => (0..3usize, 0..6u64, 1..4usize)
            .prop_map(|(user, keep, most)| Step::Sweep(user, keep, most)),
    ];
    vec(step, 0..40)
}

type Model = BTreeMap<(String, u64), u32>;

/// Applies the steps to the store and to the model.
fn apply(store: &impl Store, mail: &AppendLog<String, u32>, keep: u64, steps: &[Step]) -> Model {
    let mut model = Model::new();
    let mut last = [0; 3];
    for step in steps {
        match *step {
            Step::Append(user, value) => {
                let name = USERS[user].to_owned();
                let number = store.transact(|txn| mail.append(txn, &name, &value)).unwrap();
                last[user] += 1;
                assert_eq!(number, last[user]);
                model.insert((name.clone(), number), value);
                if let Some(old) = number.checked_sub(keep) {
                    model.remove(&(name, old));
                }
            }
            Step::Delete(user, number) => {
                let name = USERS[user].to_owned();
                let was_there = store.transact(|txn| mail.delete(txn, &name, number)).unwrap();
                assert_eq!(was_there, model.remove(&(name, number)).is_some());
            }
            Step::Sweep(user, keep, most) => {
                let name = USERS[user].to_owned();
                let options = RepairOptions { batch: most, ..RepairOptions::default() };
                let stop = |_: &Progress| ControlFlow::Break(());
                let gone = mail.sweep_with(store, &name, keep, &options, stop).unwrap().removed;
                let old = |key: &&(String, u64)| key.0 == name && key.1 + keep <= last[user];
                let old: Vec<_> = model.keys().filter(old).take(most).cloned().collect();
                assert_eq!(gone, old.len() as u64);
                model.retain(|key, _| !old.contains(key));
            }
        }
    }
    model
}

pub fn every_walk_finds_what_a_filter_over_all_records_finds(store: &(impl Store + Clone)) {
    let bound = prop_oneof![
        (0..12u64).prop_map(Bound::Included),
        (0..12u64).prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ];
    let bounds = (bound.clone(), bound);
    // A bound of 0 is treated as 1.
    property((steps(), 0..8u64, bounds, 1..5usize), |(steps, keep, bounds, limit)| {
        clear(store);
        let bounded = AppendLog::<String, u32>::new(&Subspace::new("mail")).bounded(keep);
        let model = apply(store, &bounded, keep.max(1), &steps);
        let snapshot = store.snapshot().unwrap();
        for user in USERS.map(String::from) {
            let in_bounds = |key: &&(String, u64)| key.0 == user && bounds.contains(&key.1);
            let mut wanted: Vec<u64> = model.keys().filter(in_bounds).map(|key| key.1).collect();
            for order in [Order::Ascending, Order::Descending] {
                let walk = bounded.range(&snapshot, &user, in_order(bounds, order)).unwrap();
                let walked: Result<Vec<_>> = walk.collect();
                let walked = walked.unwrap();
                assert!(walked.iter().all(|(key, value)| model.get(key) == Some(value)));
                let numbers: Vec<u64> = walked.iter().map(|(key, _)| key.1).collect();
                assert_eq!(numbers, wanted, "{order:?}");
                // The pages contain the same entries.
                let (mut paged, mut after) = (Vec::new(), None);
                loop {
                    let page = bounded
                        .page(&snapshot, &user, in_order(bounds, order), limit, after.as_ref())
                        .unwrap();
                    paged.extend(page.items);
                    after = page.next;
                    if after.is_none() {
                        break;
                    }
                }
                assert_eq!(paged, walked);
                wanted.reverse();
            }
            for number in 0..12 {
                let found = bounded.get(&snapshot, &user, number).unwrap();
                assert_eq!(found, model.get(&(user.clone(), number)).copied());
            }
        }
        assert_eq!(bounded.check(&snapshot).unwrap(), []);
    });
}

pub fn an_index_of_the_records_is_maintained_as_it_is_rebuilt(store: &(impl Store + Clone)) {
    let space = Subspace::new("indexed");
    let by_value = Index::new(&space.child("by_value"), |_, value: &u32| entry(value % 5));
    let mail = AppendLog::<String, u32>::new(&space).bounded(6).with(&by_value);
    property(steps(), |steps| {
        clear(store);
        let model = apply(store, &mail, 6, &steps);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(by_value.check(&snapshot, mail.records()).unwrap(), []);
        assert_eq!(by_value.count(&snapshot, ..).unwrap(), model.len() as u64);
        drop(snapshot);
        let maintained = dump_all(store);
        let entries = space.child("by_value").range();
        store.transact(|txn| txn.delete_range(entries.clone())).unwrap();
        by_value.repair(store, mail.records()).unwrap();
        assert_eq!(dump_all(store), maintained);
    });
}
