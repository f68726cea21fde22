//! Moves and deletions in steps.

use std::collections::BTreeSet;
use std::ops::ControlFlow::{Break, Continue};

use keyloom::{Fault, Faulty, KeyRange, Limits, Memory, Reader, Result, Store, Writer};
use keyloom_trees::{InsertAt, NestedNode, NodeId, OnDelete, Tree, TreeError};

use super::{Paths, both, compare_all, filled, is_tidy, space};
use crate::operations::{Operation, perform};
use crate::oracle::{Oracle, Rules};
use crate::questions::{compare_whole, outcome};
use keyloom_tables::{Inconsistency, Progress, Rule};
use keyloom_testing::laws::dump_all;

/// A store with the limits of etcd, and with this many writes per transaction.
fn small(operations: usize) -> Memory {
    let mut limits = Limits::etcd();
    limits.max_transaction_operations = Some(operations);
    Memory::builder().limits(limits).build()
}

/// Work in steps, and its expected result.
#[derive(Clone, Debug)]
enum Work {
    Move(NodeId, InsertAt),
    Rename(NodeId, &'static str),
    Delete(NodeId),
}

impl Work {
    fn some(rules: Rules) -> Vec<Self> {
        let mut some = vec![
            Self::Move(1, InsertAt::sorted(22)),
            Self::Move(12, InsertAt::sorted(None)),
            Self::Move(111, InsertAt::sorted(3)),
            Self::Delete(1),
            Self::Delete(31),
            Self::Delete(331),
        ];
        if rules.ordered_by_name {
            some.extend([
                Self::Rename(1, "z"),
                Self::Rename(12, "node 0"),
                Self::Rename(2, "node 2"),
            ]);
        } else {
            some.extend([
                Self::Move(1, InsertAt::first(21)),
                Self::Move(2, InsertAt::After(3)),
                Self::Move(2, InsertAt::Before(3)),
                Self::Move(13, InsertAt::first(1)),
                Self::Rename(1, "z"),
            ]);
        }
        some
    }

    fn begin(
        &self,
        model: &Paths,
        store: &impl Store,
        progress: impl FnMut(&Progress) -> std::ops::ControlFlow<()>,
    ) -> Result<Progress> {
        match self {
            Self::Move(id, place) => model.move_in_steps(store, *id, *place, progress),
            Self::Rename(id, name) => model.rename_in_steps(store, *id, name, progress),
            Self::Delete(id) => model.delete_in_steps(store, *id, progress),
        }
    }

    fn imitate(&self, oracle: &Oracle) -> Oracle {
        let mut oracle = oracle.clone();
        let operation = match self {
            Self::Move(id, place) => Operation::Move { id: *id, place: *place },
            Self::Rename(id, name) => Operation::Rename { id: *id, name: (*name).into() },
            Self::Delete(id) => Operation::DeleteSubtree { id: *id },
        };
        oracle.perform(&operation).unwrap();
        oracle
    }
}

#[test]
fn readers_between_steps_see_the_old_tree_or_the_new_one() {
    for (model, rules) in both() {
        for work in Work::some(rules) {
            let store = small(12);
            let mut stops = 0;
            // A deletion is visible from its first transaction on.
            let mut switched = matches!(work, Work::Delete(_));
            for stop in 0.. {
                let old = filled(&store, &model, rules);
                let new = work.imitate(&old);
                let mut reports = 0;
                let done = work.begin(&model, &store, |_| {
                    reports += 1;
                    if reports > stop { Break(()) } else { Continue(()) }
                });
                let done = done.unwrap();
                let snapshot = store.snapshot().unwrap();
                switched |= done.finished;
                switched |= model.export(&snapshot, None).unwrap() == new.forest();
                let seen = if switched { &new } else { &old };
                compare_all(&model, &snapshot, seen);
                if !done.finished {
                    others_may_write_and_it_is_locked(&store, &model, &work, seen);
                }
                // Another program continues the work after this program died.
                let again = if rules.ordered_by_name {
                    Paths::new(&space()).of_names()
                } else {
                    Paths::new(&space())
                };
                let finished = again.resume(&store, |_| Continue(())).unwrap();
                assert!(finished.finished);
                is_tidy(&store, &model, &new);
                if done.finished {
                    break;
                }
                stops += 1;
            }
            let subtree = if matches!(work, Work::Move(1, _) | Work::Delete(1)) { 16 } else { 1 };
            assert!(
                stops >= subtree / 5 || matches!(work, Work::Move(2 | 13, _) | Work::Rename(..)),
                "{work:?}: {stops}"
            );
        }
    }
}

/// During the work, other writers cannot change the nodes involved, but can change all others.
fn others_may_write_and_it_is_locked(store: &Memory, model: &Paths, work: &Work, seen: &Oracle) {
    let (Work::Move(root, _) | Work::Rename(root, _) | Work::Delete(root)) = work;
    let in_steps = TreeError::InSteps { tree: space().to_string(), node: *root };
    let refused = |operation: Operation| {
        let mut txn = store.begin().unwrap();
        let outcome = outcome(perform(model, &mut txn, &operation));
        assert_eq!(outcome, Err(in_steps.clone()), "{operation:?}");
    };
    let free = |operation: Operation| {
        let mut txn = store.begin().unwrap();
        let mut oracle = seen.clone();
        let wanted = oracle.perform(&operation);
        assert_eq!(outcome(perform(model, &mut txn, &operation)), wanted, "{operation:?}");
        compare_whole(model, &txn, &oracle);
    };
    let insert = |id, name: &str, parent: u64| Operation::Insert {
        id,
        name: name.into(),
        value: 0,
        place: InsertAt::sorted(parent),
    };
    let there = |id: u64| seen.find(id).is_some();
    if there(*root) {
        refused(insert(900, "new", *root));
        refused(Operation::SetValue { id: *root, value: 1 });
        refused(Operation::Rename { id: *root, name: "new".into() });
        refused(Operation::DeleteSubtree { id: *root });
        refused(Operation::DeleteNode { id: *root, orphans: OnDelete::Promote });
        refused(Operation::Move { id: *root, place: InsertAt::sorted(None) });
        refused(Operation::Load { parent: Some(*root), trees: vec![NestedNode::new(900, "x", 0)] });
        for above in seen.ancestors(*root).unwrap() {
            refused(Operation::DeleteSubtree { id: above });
            refused(Operation::DeleteNode { id: above, orphans: OnDelete::Reparent });
            refused(Operation::Move { id: above, place: InsertAt::sorted(None) });
        }
    }
    free(insert(900, "new", 32));
    free(Operation::Rename { id: 322, name: "new".into() });
    free(Operation::SetValue { id: 3, value: 8 });
    free(Operation::DeleteSubtree { id: 321 });
    free(Operation::DeleteNode { id: 32, orphans: OnDelete::Reparent });
    if *root != 2 {
        free(insert(900, "node 0", 2));
        free(Operation::Move { id: 323, place: InsertAt::sorted(23) });
        free(Operation::DeleteNode { id: 23, orphans: OnDelete::Reparent });
        free(Operation::Load { parent: Some(23), trees: vec![NestedNode::new(900, "x", 0)] });
    }
}

/// There is one record of work in steps.
#[test]
fn other_work_in_steps_is_refused_until_the_first_has_ended() {
    let mut refused = 0;
    for (model, rules) in both() {
        for (first, second) in Work::some(rules).iter().flat_map(|first| {
            Work::some(rules).into_iter().map(move |second| (first.clone(), second))
        }) {
            let store = small(12);
            filled(&store, &model, rules);
            let begun = first.begin(&model, &store, |_| Break(())).unwrap();
            let is_one_write = matches!(second, Work::Rename(..)) && !rules.ordered_by_name;
            if begun.finished || is_one_write {
                continue;
            }
            let before = dump_all(&store);
            let error = second.begin(&model, &store, |_| Continue(())).unwrap_err();
            let error = error.downcast_ref();
            assert!(matches!(error, Some(TreeError::InSteps { .. })), "{first:?} {second:?}");
            assert_eq!(dump_all(&store), before);
            refused += 1;
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn concurrent_inserts_beside_the_target_keep_their_place() {
    let (model, rules) = &both()[0];
    let store = small(8);
    let mut oracle = filled(&store, model, *rules);
    let moved = Operation::Move { id: 1, place: InsertAt::last(22) };
    oracle.perform(&moved).unwrap();
    let mut next = 900;
    let done = model.move_in_steps(&store, 1, InsertAt::last(22), |_| {
        let (id, place) = (next, InsertAt::last(22));
        next += 1;
        let insert = Operation::Insert { id, name: "beside".into(), value: 0, place };
        store.transact(|txn| perform(model, txn, &insert)).unwrap();
        oracle.perform(&insert).unwrap();
        Continue(())
    });
    assert!(done.unwrap().finished);
    assert!(next > 905);
    compare_whole(model, &store.snapshot().unwrap(), &oracle);
}

#[test]
fn fault_at_any_operation_of_steps_leaves_the_old_or_new_tree() {
    for (model, rules) in both() {
        for work in [Work::Move(12, InsertAt::sorted(21)), Work::Delete(12)] {
            let store = Faulty::new(small(8));
            let mut ends = BTreeSet::new();
            for n in 0.. {
                let old = filled(&store, &model, rules);
                let new = work.imitate(&old);
                store.fail_at(n, Fault::Error);
                let failed = work.begin(&model, &store, |_| Continue(())).is_err();
                store.clear_fault();
                let snapshot = store.snapshot().unwrap();
                let is_new = model.export(&snapshot, None).unwrap() == new.forest();
                let is_begun = snapshot.get(&space().pack("move")).unwrap().is_some();
                compare_whole(&model, &snapshot, if is_new { &new } else { &old });
                drop(snapshot);
                ends.insert((is_new, is_begun));
                model.resume(&store, |_| Continue(())).unwrap();
                is_tidy(&store, &model, if is_new || is_begun { &new } else { &old });
                if !failed {
                    break;
                }
            }
            assert!(ends.len() >= 3, "{ends:?}");
        }
    }
}

#[test]
fn a_subtree_that_is_too_large_for_etcd_moves_in_steps() {
    let store = Memory::builder().limits(Limits::etcd()).build();
    for (model, _) in both() {
        store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
        let node = |id: u64| NestedNode::new(id, format!("node {id:06}"), 0);
        store.transact(|txn| model.import(txn, None, &[node(0), node(1)])).unwrap();
        for thousand in 0..6 {
            let many: Vec<_> = (0..1_000).map(|n| node(10 + 1_000 * thousand + n)).collect();
            store.transact(|txn| model.import(txn, 0, &many)).unwrap();
        }
        let whole = model.export(&store.snapshot().unwrap(), 0).unwrap();
        let at_once = store.transact(|txn| model.move_to(txn, 0, InsertAt::sorted(1))).unwrap_err();
        assert!(at_once.is_batch_too_large());
        let mut transactions = 0;
        let done = model.move_in_steps(&store, 0, InsertAt::sorted(1), |_| {
            transactions += 1;
            Continue(())
        });
        assert!(done.unwrap().finished);
        assert!(transactions > 12, "{transactions}");
        assert_eq!(model.export(&store.snapshot().unwrap(), 0).unwrap(), whole);
        let parent = model.parent(&store.snapshot().unwrap(), 0).unwrap();
        assert_eq!(parent, Some(1));
        model.delete_in_steps(&store, 0, |_| Continue(())).unwrap();
        assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 2);
    }
}

#[test]
fn damage_in_the_middle_of_work_in_steps_is_repaired() {
    for (model, rules) in both() {
        for work in [Work::Move(1, InsertAt::sorted(22)), Work::Delete(1)] {
            for stop in 1.. {
                let sample = small(12);
                filled(&sample, &model, rules);
                let mut reports = 0;
                let done = work.begin(&model, &sample, |_| {
                    reports += 1;
                    if reports == stop { Break(()) } else { Continue(()) }
                });
                if done.unwrap().finished {
                    assert!(stop > 3, "{work:?}: {stop}");
                    break;
                }
                let entries = dump_all(&sample);
                for damaged in entries.keys() {
                    let store = Memory::new();
                    let copy = |txn: &mut <Memory as Store>::Transaction<'_>| {
                        entries.iter().try_for_each(|(key, value)| txn.put(key, value))?;
                        txn.put(damaged, b"\x01cut")
                    };
                    store.transact(copy).unwrap();
                    let what = format!("{work:?} stopped after {stop}, {damaged:?} damaged");
                    let repaired = model.repair(&store);
                    repaired.unwrap_or_else(|error| panic!("{what}: {error}"));
                    let mut left = Vec::new();
                    let note = |fault: Inconsistency| {
                        left.push(fault);
                        Continue(())
                    };
                    model.check_each(&store.snapshot().unwrap(), note).unwrap();
                    assert!(left.iter().all(|f| f.rule == Rule::Undecodable), "{what}: {left:?}");
                    assert_eq!(model.repair(&store).unwrap().changed(), 0, "{what}");
                }
            }
        }
    }
}
