//! Faults that `check` reports and `repair` fixes.

use std::ops::ControlFlow::Continue;

use keyloom::{Error, KeyRange, Limits, Memory, Reader, Store, Writer};
use keyloom_trees::{InsertAt, NodeId, OnDelete, Tree};

use super::{Paths, both, filled, is_tidy, space};
use crate::operations::Operation;
use crate::questions::compare_whole;
use keyloom_tables::{RepairOptions, Rule};
use keyloom_testing::laws::{dump, dump_all};

fn faults(model: &Paths, store: &impl Store) -> Vec<Rule> {
    let mut rules = Vec::new();
    let note = |found: keyloom_tables::Inconsistency| {
        rules.push(found.rule);
        Continue(())
    };
    model.check_each(&store.snapshot().unwrap(), note).unwrap();
    rules
}

#[test]
fn where_nodes_are_is_found_wrong_and_derived_again() {
    for (model, rules) in both() {
        let store = Memory::new();
        let oracle = filled(&store, &model, rules);
        let whole = dump_all(&store);
        let node = |id: NodeId| space().pack(&("node", id));
        let path_of =
            |id: NodeId| store.snapshot().unwrap().get(&node(id)).unwrap().unwrap().to_vec();
        let (one, other) = (path_of(11), path_of(2));
        type Damage<'d> = (Rule, Box<dyn Fn(&mut dyn FnMut(&[u8], Option<&[u8]>)) + 'd>);
        let damages: Vec<Damage<'_>> = vec![
            (Rule::Missing, Box::new(|write| write(&node(11), None))),
            (Rule::Wrong, Box::new(|write| write(&node(11), Some(&other)))),
            (Rule::Wrong, Box::new(|write| write(&node(11), Some(b"not a path")))),
            (Rule::Dangling, Box::new(|write| write(&node(999), Some(&one)))),
            (Rule::Dangling, Box::new(|write| write(&node(999), Some(b"not a path")))),
        ];
        for (rule, damage) in damages {
            store
                .transact(|txn| {
                    damage(&mut |key, value| match value {
                        Some(value) => txn.put(key, value).unwrap(),
                        None => txn.delete(key).unwrap(),
                    });
                    Ok(())
                })
                .unwrap();
            let found = faults(&model, &store);
            assert!(found.contains(&rule), "{rule:?}: {found:?}");
            assert!(model.repair(&store).unwrap().changed() > 0);
            assert_eq!(dump_all(&store), whole, "{rule:?}");
        }
        assert_eq!(model.repair(&store).unwrap().changed(), 0);
        compare_whole(&model, &store.snapshot().unwrap(), &oracle);
    }
}

#[test]
fn what_lost_its_parent_becomes_a_root_with_all_below_it() {
    for (model, rules) in both() {
        let store = Memory::new();
        let mut oracle = filled(&store, &model, rules);
        let path = store
            .snapshot()
            .unwrap()
            .get(&space().pack(&("node", 1_u64)))
            .unwrap()
            .unwrap()
            .to_vec();
        let record = [space().child("path").prefix(), &path].concat();
        store.transact(|txn| txn.delete(&record)).unwrap();
        let found = faults(&model, &store);
        assert_eq!(found.iter().filter(|rule| **rule == Rule::NoParent).count(), 3, "{found:?}");
        model.repair(&store).unwrap();
        oracle.perform(&Operation::DeleteNode { id: 1, orphans: OnDelete::Promote }).unwrap();
        compare_whole(&model, &store.snapshot().unwrap(), &oracle);
        is_tidy(&store, &model, &oracle);
    }
}

#[test]
fn what_is_foreign_is_reported_and_left_alone() {
    for (model, rules) in both() {
        let store = Memory::new();
        filled(&store, &model, rules);
        let foreign = [
            space().pack("other"),
            space().pack(&("node", "no id")),
            space().pack(&("path", 7.5_f64)),
            space().pack("move"),
        ];
        for key in &foreign {
            store.transact(|txn| txn.put(key, b"\x01?")).unwrap();
            assert_eq!(faults(&model, &store), [Rule::Foreign], "{key:?}");
            store.transact(|txn| txn.delete(key)).unwrap();
        }
        // Data of a newer program is not a fault, but this program cannot check it.
        store.transact(|txn| txn.put(&space().pack("move"), b"\x02")).unwrap();
        let snapshot = store.snapshot().unwrap();
        assert!(is_of_newer_format(model.check_each(&snapshot, |_| Continue(())).unwrap_err()));
        assert!(is_of_newer_format(model.get(&snapshot, 1).unwrap_err()));
    }
}

fn is_of_newer_format(error: Error) -> bool {
    match error {
        Error::At { source, .. } => is_of_newer_format(*source),
        error => matches!(error, Error::NewerFormat { .. }),
    }
}

#[test]
fn a_record_of_steps_that_cannot_be_read_is_named_and_goes() {
    let (model, rules) = &both()[0];
    let store = Memory::new();
    let oracle = filled(&store, model, *rules);
    let key = space().pack("move");
    store.transact(|txn| txn.put(&key, b"\x01?")).unwrap();
    let error = model.get(&store.snapshot().unwrap(), 1).unwrap_err().to_string();
    assert!(error.contains(r#""move""#) && error.contains("run repair"), "{error}");
    assert_eq!(model.repair(&store).unwrap().changed(), 1);
    compare_whole(model, &store.snapshot().unwrap(), &oracle);
}

#[test]
fn a_value_that_does_not_decode_is_reported() {
    for (model, rules) in both() {
        let store = Memory::new();
        filled(&store, &model, rules);
        let snapshot = store.snapshot().unwrap();
        let path = snapshot.get(&space().pack(&("node", 11))).unwrap().unwrap();
        let key = [space().child("path").prefix(), path].concat();
        let record = snapshot.get(&key).unwrap().unwrap().to_vec();
        drop(snapshot);
        // A number whose last byte has the continuation bit, at the end of the record.
        let damaged = [&record[..record.len() - 1], &[0x80]].concat();
        store.transact(|txn| txn.put(&key, &damaged)).unwrap();
        assert_eq!(faults(&model, &store), [Rule::Undecodable]);
        assert_eq!(model.repair(&store).unwrap().changed(), 0);
        store.transact(|txn| model.set_value(txn, 11, &11)).unwrap();
        assert_eq!(faults(&model, &store), []);
    }
}

#[test]
fn repair_gives_a_node_with_a_duplicate_id_its_own_or_a_new_id() {
    for (model, rules) in both() {
        let store = Memory::new();
        filled(&store, &model, rules);
        let whole = dump_all(&store);
        let count = model.descendant_count(&store.snapshot().unwrap(), None).unwrap();
        // A subtree is stored twice, as after an interrupted move in steps that has lost its
        // record.
        let path = |id: NodeId| {
            let snapshot = store.snapshot().unwrap();
            snapshot.get(&space().pack(&("node", id))).unwrap().unwrap().to_vec()
        };
        let (from, to) = (path(11), path(2));
        let last = |path: &[u8], above: &[u8]| path[above.len()..].to_vec();
        let segment = last(&from, &path(1));
        let prefix = space().child("path").prefix().to_vec();
        let old = [&prefix[..], &from].concat();
        let below = KeyRange::self_and_children(&old).into_owned();
        let copied = dump(&store.snapshot().unwrap(), below);
        store
            .transact(|txn| {
                copied.iter().try_for_each(|(key, record)| {
                    let rest = &key[old.len()..];
                    txn.put(&[&prefix[..], &to, &segment, rest].concat(), record)
                })
            })
            .unwrap();
        let wrong = faults(&model, &store);
        assert_eq!(wrong, vec![Rule::Wrong; copied.len()]);
        model.repair(&store).unwrap();
        assert_eq!(faults(&model, &store), []);
        let snapshot = store.snapshot().unwrap();
        let now = model.descendant_count(&snapshot, None).unwrap();
        assert_eq!(now, count + copied.len() as u64);
        assert_eq!(path(11), from, "the first is found by its id as before");
        // The second copy can be deleted like any other node.
        let copy = model.child_named(&snapshot, 2, "node 11").unwrap().unwrap();
        drop(snapshot);
        store.transact(|txn| model.delete_subtree(txn, copy).map(drop)).unwrap();
        assert_eq!(dump_all(&store), whole);
    }
}

#[test]
fn repair_restores_the_id_of_a_record_and_keeps_its_children() {
    let (model, rules) = &both()[1];
    for damaged in [&b""[..], b"short", b"\0\0\0\0\0\0\0\x0b\0no node"] {
        let store = Memory::new();
        filled(&store, model, *rules);
        let snapshot = store.snapshot().unwrap();
        let path = snapshot.get(&space().pack(&("node", 11_u64))).unwrap().unwrap();
        let key = [space().child("path").prefix(), path].concat();
        drop(snapshot);
        store.transact(|txn| txn.put(&key, damaged)).unwrap();
        assert!(faults(model, &store).contains(&Rule::Foreign));
        model.repair(&store).unwrap();
        assert_eq!(faults(model, &store), [Rule::Undecodable]);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(model.node_at(&snapshot, ["node 1", "node 11", "node 111"]).unwrap(), Some(111));
        assert_eq!(model.parent(&snapshot, 111).unwrap(), Some(11));
    }
}

/// A store whose transactions take 50 writes, and a tree in which node 3 has 100 children. Node 3
/// is below 2, and 2 is below 1.
fn with_many_children(model: &Paths, is_sorted: bool) -> Memory {
    let limits = Limits::default().with_max_transaction(None, Some(50));
    let store = Memory::builder().limits(limits).build();
    for id in 1..=103_u64 {
        let above = Some((id - 1).min(3)).filter(|above| *above > 0);
        let place = if is_sorted { InsertAt::sorted(above) } else { InsertAt::last(above) };
        store.transact(|txn| model.insert(txn, id, &format!("n{id}"), &0, place)).unwrap();
    }
    store
}

/// Repairs a tree by calls that are each stopped after one commit.
fn repair_call_by_call(model: &Paths, store: &Memory) {
    let stopped = |_: &_| std::ops::ControlFlow::Break(());
    let (mut options, mut calls) = (RepairOptions::default(), 0);
    loop {
        let done = model.repair_with(store, &options, stopped).unwrap();
        options.resume = Some(done.position);
        calls += 1;
        if done.finished {
            break;
        }
        assert!(calls < 1_000);
    }
    assert!(calls > 2, "{calls}");
    assert_eq!(faults(model, store), []);
}

fn record_of(model: &Paths, store: &Memory, id: NodeId) -> (Vec<u8>, Vec<u8>) {
    let snapshot = store.snapshot().unwrap();
    let path = snapshot.get(&space().pack(&("node", id))).unwrap().unwrap();
    let key = [model.space().child("path").prefix(), path].concat();
    let record = snapshot.get(&key).unwrap().unwrap().to_vec();
    (key, record)
}

#[test]
fn an_orphan_too_large_for_a_transaction_becomes_a_root() {
    for (model, rules) in both() {
        let store = with_many_children(&model, rules.ordered_by_name);
        let (lost, _) = record_of(&model, &store, 2);
        store.transact(|txn| txn.delete(&lost)).unwrap();
        repair_call_by_call(&model, &store);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(model.parent(&snapshot, 3).unwrap(), None);
        let children = model.children(&snapshot, 3).unwrap().map(|node| node.unwrap().id());
        let mut children: Vec<NodeId> = children.collect();
        children.sort_unstable();
        assert_eq!(children, (4..=103).collect::<Vec<_>>());
        assert_eq!(model.descendant_count(&snapshot, None).unwrap(), 102);
    }
}

/// Two subtrees of one id, each with more nodes than a transaction takes.
#[test]
fn a_second_subtree_of_an_id_gets_its_own_ids_in_steps() {
    for (model, rules) in both() {
        let store = with_many_children(&model, rules.ordered_by_name);
        let (three, _) = record_of(&model, &store, 3);
        let (two, _) = record_of(&model, &store, 2);
        let subtree = KeyRange::self_and_children(&three).into_owned();
        let copied: Vec<_> = dump(&store.snapshot().unwrap(), subtree).into_iter().collect();
        let (one, _) = record_of(&model, &store, 1);
        // The copy is a child of node 1.
        let mut size = keyloom_tables::BatchSize::new(50);
        size.transact_all(&store, &copied, |txn, some| {
            some.iter().try_for_each(|(key, record)| {
                txn.put(&[&one[..], &key[two.len()..]].concat(), record)
            })
        })
        .unwrap();
        repair_call_by_call(&model, &store);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(model.descendant_count(&snapshot, None).unwrap(), 103 + copied.len() as u64);
        assert_eq!(model.child_count(&snapshot, 3).unwrap(), 100, "the first keeps its id");
        assert_eq!(model.parent(&snapshot, 3).unwrap(), Some(2));
        let copy = model.child_named(&snapshot, 1, "n3").unwrap().unwrap();
        assert_eq!(model.child_count(&snapshot, copy).unwrap(), 100);
    }
}

/// The id of a node maps to a second record with this id, far below the node. The node gets another
/// id, with its descendants in steps or in one transaction.
#[test]
fn a_renumbered_node_leaves_its_id_to_a_descendant() {
    for (model, rules) in both() {
        for is_large in [true, false] {
            let store = with_many_children(&model, rules.ordered_by_name);
            if !is_large {
                model.delete_in_steps(&store, 3, |_| std::ops::ControlFlow::Continue(())).unwrap();
            }
            let nodes = if is_large { 103 } else { 2 };
            let (one, record) = record_of(&model, &store, 1);
            let (two, _) = record_of(&model, &store, 2);
            let prefix = model.space().child("path").prefix().len();
            let below = [&two[..], &one[prefix..]].concat();
            store
                .transact(|txn| {
                    txn.put(&below, &record)?;
                    txn.put(&space().pack(&("node", 1_u64)), &below[prefix..])
                })
                .unwrap();
            assert_ne!(faults(&model, &store), []);
            repair_call_by_call(&model, &store);
            let snapshot = store.snapshot().unwrap();
            assert_eq!(model.parent(&snapshot, 1).unwrap(), Some(2));
            let roots = model.children(&snapshot, None).unwrap().map(|node| node.unwrap().id());
            let roots: Vec<NodeId> = roots.collect();
            assert!(matches!(roots[..], [root] if root != 1), "{roots:?}");
            assert_eq!(model.parent(&snapshot, 2).unwrap(), Some(roots[0]));
            assert_eq!(model.descendant_count(&snapshot, None).unwrap(), nodes + 1);
        }
    }
}

/// While a repair makes two orphans roots, another program begins to move a node below the second
/// one in steps.
#[test]
fn work_in_steps_that_begins_beside_a_repair_is_finished_first() {
    for (model, rules) in both() {
        let store = Memory::new();
        let place = |above: Option<NodeId>| match rules.ordered_by_name {
            true => InsertAt::sorted(above),
            false => InsertAt::last(above),
        };
        for id in 1..=30_u64 {
            // Nodes 11 and 21 are below node 1, and the others below 2, 12 and 22.
            let above = match id {
                1 => None,
                2 | 12 | 22 => Some(1),
                _ => Some(id / 10 * 10 + 2).filter(|above| *above < id).or(Some(2)),
            };
            store
                .transact(|txn| model.insert(txn, id, &format!("n{id}"), &0, place(above)))
                .unwrap();
        }
        let nodes = model.descendant_count(&store.snapshot().unwrap(), None).unwrap();
        let (lost, _) = record_of(&model, &store, 1);
        store.transact(|txn| txn.delete(&lost)).unwrap();
        let mut begun = 0;
        let done = model.repair_with(&store, &RepairOptions::default(), |progress| {
            if progress.changed() > 0 && begun == 0 {
                let stopped = |_: &_| std::ops::ControlFlow::Break(());
                let others = [13, 23].map(|id| {
                    let name = format!("other {id}");
                    match rules.ordered_by_name {
                        true => model.rename_in_steps(&store, id, &name, stopped),
                        false => model.move_in_steps(&store, id, InsertAt::last(None), stopped),
                    }
                });
                begun = others.iter().flatten().count();
            }
            std::ops::ControlFlow::Continue(())
        });
        assert!(done.unwrap().finished && begun > 0);
        assert!(model.resume(&store, |_| std::ops::ControlFlow::Continue(())).unwrap().finished);
        assert_eq!(faults(&model, &store), []);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(model.descendant_count(&snapshot, None).unwrap(), nodes - 1);
    }
}
