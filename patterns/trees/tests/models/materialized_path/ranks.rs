//! Ranks, sibling names in order, and paths that are too long for a key.

use std::ops::ControlFlow::Continue;

use keyloom::{MAX_KEY_BYTES, Memory, Metered, Order, Reader, Store};
use keyloom_trees::{InsertAt, NestedNode, NodeId, Tree, TreeError};

use super::{Paths, both, filled, space};
use crate::operations::{Operation, perform};
use crate::oracle::{Oracle, Rules};
use crate::questions::{compare_whole, findings, outcome};
use keyloom_testing::laws::dump_all;

#[test]
fn ranks_stay_short_wherever_nodes_are_put() {
    let model = Paths::new(&space());
    let longest = |store: &Memory| {
        let snapshot = store.snapshot().unwrap();
        let keys = snapshot.range(space().range(), Order::Ascending).unwrap();
        keys.map(|entry| entry.unwrap().0.len()).max().unwrap()
    };
    // Inserts at the start, at the end, and always between the same two nodes: after the left one,
    // or before the right one.
    let places = [InsertAt::first(1), InsertAt::last(1), InsertAt::After(2), InsertAt::Before(3)];
    for place in places {
        let store = Metered::new(Memory::new());
        let three = [NestedNode::new(1, "1", 0)
            .with(NestedNode::new(2, "2", 0))
            .with(NestedNode::new(3, "3", 0))];
        store.transact(|txn| model.import(txn, None, &three)).unwrap();
        let count = 1_500;
        let (_, cost) = store.measure(|store| {
            for id in 10..10 + count {
                store.transact(|txn| model.insert(txn, id, "x", &0, place)).unwrap();
            }
        });
        let per_insert = cost.keys_written as f64 / count as f64;
        println!(
            "{place:?}: {per_insert:.2} keys written each, keys of {} bytes",
            longest(store.inner())
        );
        assert!(longest(store.inner()) <= 54 && per_insert < 12.0, "{per_insert}");
        let children = model.export(&store.snapshot().unwrap(), 1).unwrap().remove(0).children;
        let ids: Vec<NodeId> = children.iter().map(|node| node.id).filter(|id| *id >= 10).collect();
        let rising = matches!(place, InsertAt::Last(_) | InsertAt::Before(_));
        assert!(ids.is_sorted_by(|a, b| if rising { a < b } else { a > b }));
        assert_eq!(findings(&model, &store.snapshot().unwrap()), [""; 0]);
    }
}

#[test]
fn a_node_moves_out_from_below_one_whose_rank_has_grown_long() {
    // A move would rewrite the new siblings, and the node itself would be below one of them.
    let model = Paths::new(&space());
    for in_steps in [false, true] {
        let store = Memory::new();
        let mut oracle = Oracle::new(Rules::NONE, space().to_string());
        let mut both = |operation: Operation| {
            match &operation {
                Operation::Move { id, place } if in_steps => {
                    model.move_in_steps(&store, *id, *place, |_| Continue(())).map(drop)
                }
                operation => store.transact(|txn| perform(&model, txn, operation).map(drop)),
            }
            .unwrap();
            oracle.perform(&operation).unwrap();
        };
        let insert = |id, place| Operation::Insert { id, name: "x".into(), value: 0, place };
        both(insert(1, InsertAt::last(None)));
        both(insert(2, InsertAt::last(None)));
        // Always between the two latest nodes: each rank grows by some bits.
        let mut low = 1;
        for id in 3..120 {
            both(insert(id, InsertAt::After(low)));
            both(insert(1_000 + id, InsertAt::last(id)));
            both(insert(2_000 + id, InsertAt::last(1_000 + id)));
            both(Operation::Move { id: 1_000 + id, place: InsertAt::After(id) });
            both(Operation::Move { id: 1_000 + id, place: InsertAt::last(id) });
            low = if id % 2 == 0 { id } else { low };
        }
        let snapshot = store.snapshot().unwrap();
        compare_whole(&model, &snapshot, &oracle);
        assert_eq!(findings(&model, &snapshot), [""; 0]);
    }
}

#[test]
fn a_path_too_long_is_refused_before_anything_is_written() {
    for (model, rules) in both() {
        let store = Memory::new();
        let insert = |id: u64, parent: Option<u64>| {
            let name = format!("{:0>30}", id);
            store.transact(|txn| model.insert(txn, id, &name, &0, InsertAt::Sorted(parent)))
        };
        let too_long = |error: keyloom::Error| match error.downcast_ref() {
            Some(TreeError::PathTooLong { node, bytes, limit }) => {
                assert!(*bytes > *limit && *limit == MAX_KEY_BYTES);
                *node
            }
            _ => panic!("{error}"),
        };
        insert(1, None).unwrap();
        let mut deepest = 1;
        let error = loop {
            match insert(deepest + 1, Some(deepest)) {
                Ok(()) => deepest += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(too_long(error), deepest + 1);
        assert!(deepest >= if rules.ordered_by_name { 15 } else { 80 }, "{deepest}");
        // A subtree whose longest path would be too long: as a move, as a move in steps, and as a
        // load.
        insert(1_000, None).unwrap();
        let before = dump_all(&store);
        let place = InsertAt::sorted(1_000);
        let at_once = store.transact(|txn| model.move_to(txn, 1, place)).unwrap_err();
        assert!(too_long(at_once) <= deepest);
        let in_steps = model.move_in_steps(&store, 1, place, |_| Continue(())).unwrap_err();
        assert!(too_long(in_steps) <= deepest);
        let trees =
            [NestedNode::new(2_000, "x", 0).with(NestedNode::new(2_001, "y".repeat(30), 0))];
        let loaded = store.transact(|txn| model.import(txn, deepest, &trees)).unwrap_err();
        too_long(loaded);
        if rules.ordered_by_name {
            let name = "z".repeat(60);
            too_long(store.transact(|txn| model.rename(txn, 1, &name)).unwrap_err());
            too_long(model.rename_in_steps(&store, 1, &name, |_| Continue(())).unwrap_err());
        }
        assert_eq!(dump_all(&store), before);
    }
}

#[test]
fn names_take_sorted_places_only() {
    let (model, rules) = &both()[1];
    let store = Memory::new();
    filled(&store, model, *rules);
    let before = dump_all(&store);
    for place in [
        InsertAt::first(1),
        InsertAt::last(None),
        InsertAt::at(1, 0),
        InsertAt::Before(2),
        InsertAt::After(2),
    ] {
        for operation in [
            Operation::Move { id: 3, place },
            Operation::Insert { id: 900, name: "x".into(), value: 0, place },
        ] {
            let refused = outcome(store.transact(|txn| perform(model, txn, &operation)));
            assert_eq!(refused, Err(TreeError::OrderedByName { tree: space().to_string() }));
        }
    }
    assert_eq!(dump_all(&store), before);
}
