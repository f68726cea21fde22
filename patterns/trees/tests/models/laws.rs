//! The laws of all models: faults, conflicts, bad input, the nested form.

use std::ops::ControlFlow::Continue;

use keyloom::key::Subspace;
use keyloom::{DynWriter, Error, Result, Store};
use keyloom_trees::{InsertAt, NestedNode, NodeId, OnDelete, Tree, TreeError};

use crate::operations::{Operation, perform};
use crate::oracle::{Oracle, Rules};
use crate::questions::{compare_whole, findings};
use keyloom_testing::laws::{clear, refused};

fn space() -> Subspace {
    Subspace::new("tree")
}

/// The roots fruit, nuts and tools. Only fruit has children: apples, with three descendants, and
/// pears.
fn sample() -> Vec<NestedNode<u32>> {
    let apples = NestedNode::new(2, "apples", 2)
        .with(NestedNode::new(4, "boskop", 4).with(NestedNode::new(8, "red", 8)))
        .with(NestedNode::new(5, "cox", 5));
    let fruit = NestedNode::new(1, "fruit", 1).with(apples).with(NestedNode::new(3, "pears", 3));
    vec![fruit, NestedNode::new(6, "nuts", 6), NestedNode::new(7, "tools", 7)]
}

fn fill<T: Tree<Value = u32>>(store: &impl Store, model: &T) {
    clear(store);
    store.transact(|txn| model.import(txn, None, &sample())).unwrap();
}

/// One operation of each kind, all of them valid.
fn changes(rules: Rules) -> Vec<Operation> {
    let place = |place: InsertAt, sorted: Option<NodeId>| match rules.ordered_by_name {
        true => InsertAt::Sorted(sorted),
        false => place,
    };
    let figs = NestedNode::new(21, "figs", 21).with(NestedNode::new(22, "dried", 22));
    vec![
        Operation::Insert {
            id: 20,
            name: "plums".into(),
            value: 20,
            place: place(InsertAt::Before(3), Some(1)),
        },
        Operation::Rename { id: 2, name: "quinces".into() },
        Operation::SetValue { id: 4, value: 44 },
        Operation::Move { id: 2, place: place(InsertAt::first(6), Some(6)) },
        Operation::Move { id: 3, place: place(InsertAt::at(None, 1), None) },
        Operation::Load { parent: Some(6), trees: vec![figs] },
        Operation::DeleteNode { id: 4, orphans: OnDelete::Reparent },
        Operation::DeleteNode { id: 2, orphans: OnDelete::Promote },
        Operation::DeleteSubtree { id: 6 },
    ]
}

fn perform_all<T: Tree<Value = u32>>(
    model: &T,
    txn: &mut DynWriter<'_>,
    operations: &[Operation],
) -> Result<()> {
    operations.iter().try_for_each(|operation| perform(model, txn, operation).map(drop))
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    let model = make(&space());
    let changes = changes(rules);
    keyloom_testing::laws::faults_leave_nothing_half_done(
        store,
        |store| fill(store, &model),
        |txn| perform_all(&model, txn, &changes),
        |store| findings(&model, &store.snapshot().unwrap()),
    );
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    let model = make(&space());
    let changes = changes(rules);
    keyloom_testing::laws::conflicts_are_retried_to_the_same_end(
        store,
        |store| fill(store, &model),
        |txn| perform_all(&model, txn, &changes),
    );
}

pub fn what_is_refused_is_refused_before_anything_is_written<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    let model = make(&space());
    fill(store, &model);
    let tree = || space().to_string();
    let unknown = |node| TreeError::UnknownNode { tree: tree(), node };
    let exists = |node| TreeError::NodeExists { tree: tree(), node };
    let below = |node, target| TreeError::BelowItself { node, target };
    let insert = |id, place| Operation::Insert { id, name: "new".into(), value: 0, place };
    let moving = |id, place| Operation::Move { id, place };
    let sorted = |parent: u64| InsertAt::sorted(parent);
    let mut cases = vec![
        (insert(1, sorted(3)), exists(1)),
        (insert(1, sorted(99)), exists(1)),
        (insert(20, sorted(99)), unknown(99)),
        (insert(20, sorted(20)), unknown(20)),
        (Operation::Rename { id: 99, name: "x".into() }, unknown(99)),
        (Operation::SetValue { id: 99, value: 0 }, unknown(99)),
        (Operation::DeleteSubtree { id: 99 }, unknown(99)),
        (Operation::DeleteNode { id: 99, orphans: OnDelete::Reparent }, unknown(99)),
        (moving(99, sorted(98)), unknown(99)),
        (moving(1, sorted(99)), unknown(99)),
        (moving(1, sorted(1)), below(1, 1)),
        (moving(1, sorted(2)), below(1, 2)),
        (moving(1, sorted(8)), below(1, 8)),
        (Operation::Load { parent: Some(99), trees: sample_of(20) }, unknown(99)),
        (Operation::Load { parent: None, trees: sample_of(8) }, exists(8)),
    ];
    if !rules.ordered_by_name {
        let (parent, position) = (Some(1), 3);
        cases.extend([
            (insert(20, InsertAt::Before(99)), unknown(99)),
            (insert(20, InsertAt::After(20)), unknown(20)),
            (moving(1, InsertAt::After(8)), below(1, 8)),
            (moving(2, InsertAt::Before(5)), below(2, 5)),
            (
                insert(20, InsertAt::at(1, 3)),
                TreeError::NoSuchPosition { parent, position, children: 2 },
            ),
            (
                moving(2, InsertAt::at(1, 3)),
                TreeError::NoSuchPosition { parent, position, children: 1 },
            ),
            (
                moving(7, InsertAt::at(None, u64::MAX)),
                TreeError::NoSuchPosition { parent: None, position: u64::MAX, children: 2 },
            ),
        ]);
    }
    if rules.unique_names {
        let named = |id, name: &str| Operation::Rename { id, name: name.into() };
        let taken = |parent, name: &str, taken_by| TreeError::NameTaken {
            parent,
            name: name.into(),
            taken_by,
        };
        let pears = Operation::Insert {
            id: 20,
            name: "pears".into(),
            value: 0,
            place: InsertAt::sorted(1),
        };
        cases.extend([
            (pears, taken(Some(1), "pears", 3)),
            (named(2, "pears"), taken(Some(1), "pears", 3)),
            (named(7, "fruit"), taken(None, "fruit", 1)),
        ]);
    }
    for (operation, wanted) in cases {
        let error = refused(store, |txn| perform(&model, txn, &operation).map(drop));
        assert_eq!(error.downcast_ref(), Some(&wanted), "{operation:?}: {error}");
        is_helpful(&error);
    }
}

/// Whether a message names the remedy.
fn is_helpful(error: &Error) {
    let text = error.to_string();
    let remedies = ["insert it first", "use another", "out of it first", "use a smaller one"];
    assert!(remedies.iter().any(|remedy| text.contains(remedy)), "{text}");
}

/// A tree of two nodes; the second node has this id.
fn sample_of(id: NodeId) -> Vec<NestedNode<u32>> {
    vec![NestedNode::new(200, "one", 0).with(NestedNode::new(id, "two", 0))]
}

pub fn a_move_beside_itself_changes_nothing<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    let model = make(&space());
    fill(store, &model);
    let before = keyloom_testing::laws::dump_all(store);
    for id in 1..=8 {
        for place in [InsertAt::Before(id), InsertAt::After(id)] {
            let moved = store.transact(|txn| model.move_to(txn, id, place));
            match rules.ordered_by_name {
                true => {
                    let tree = space().to_string();
                    let refusal = TreeError::OrderedByName { tree };
                    assert_eq!(moved.unwrap_err().downcast_ref(), Some(&refusal));
                }
                false => {
                    moved.unwrap();
                    model.move_in_steps(store, id, place, |_| Continue(())).unwrap();
                }
            }
            assert_eq!(keyloom_testing::laws::dump_all(store), before, "{place:?}");
        }
    }
    // A missing node cannot be moved beside itself, either.
    let moved = refused(store, |txn| model.move_to(txn, 99, InsertAt::After(99)));
    let wanted = TreeError::UnknownNode { tree: space().to_string(), node: 99 };
    assert_eq!(moved.downcast_ref(), Some(&wanted));
}

pub fn a_name_longer_than_a_key_is_no_child<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    _: Rules,
) {
    let model = make(&space());
    fill(store, &model);
    let snapshot = store.snapshot().unwrap();
    for bytes in [400, 490, 500, 511, 2_000, 1 << 20] {
        let name = "n".repeat(bytes);
        assert_eq!(model.child_named(&snapshot, None, &name).unwrap(), None, "{bytes}");
        assert_eq!(model.child_named(&snapshot, 1, &name).unwrap(), None, "{bytes}");
        assert_eq!(model.node_at(&snapshot, [&name[..]]).unwrap(), None, "{bytes}");
        assert_eq!(model.node_at(&snapshot, ["fruit", &name]).unwrap(), None, "{bytes}");
        let unknown = model.child_named(&snapshot, 99, &name).unwrap_err();
        let wanted = TreeError::UnknownNode { tree: space().to_string(), node: 99 };
        assert_eq!(unknown.downcast_ref(), Some(&wanted), "{bytes}");
    }
}

pub fn what_is_dumped_can_be_loaded_again<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    let model = make(&space());
    fill(store, &model);
    let mut oracle = Oracle::new(rules, space().to_string());
    oracle.perform(&Operation::Load { parent: None, trees: sample() }).unwrap();
    let snapshot = store.snapshot().unwrap();
    compare_whole(&model, &snapshot, &oracle);
    assert_eq!(model.export(&snapshot, 2).unwrap(), [oracle.nested(2)]);
    let dot = model.dot(&snapshot, 3).unwrap();
    assert_eq!(dot, "digraph tree {\n    3 [label=\"pears\"];\n}\n");
    let whole = model.dot(&snapshot, None).unwrap();
    assert!(whole.contains("    2 -> 4;\n") && whole.contains("4 [label=\"boskop\"]"), "{whole}");
    assert_eq!(whole.matches("->").count(), 5);
    drop(snapshot);

    // Imports into another tree, after the existing roots.
    let other = make(&Subspace::new("other"));
    let zebra = NestedNode::new(100, "zebra", 0);
    store
        .transact(|txn| {
            let earlier = if rules.ordered_by_name { "a" } else { "z" };
            other.import(txn, None, &[NestedNode::new(99, earlier, 0), zebra.clone()])?;
            other.copy_from(txn, &model)?;
            other.import(txn, 6, &[NestedNode::new(98, "almonds", 98)])
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(findings(&other, &snapshot), [""; 0]);
    let names: Vec<String> =
        other.export(&snapshot, None).unwrap().into_iter().map(|root| root.name).collect();
    match rules.ordered_by_name {
        true => assert_eq!(names, ["a", "fruit", "nuts", "tools", "zebra"]),
        false => assert_eq!(names, ["z", "zebra", "fruit", "nuts", "tools"]),
    }
    assert_eq!(other.export(&snapshot, 1).unwrap(), [oracle.nested(1)]);
    assert_eq!(other.node_at(&snapshot, ["nuts", "almonds"]).unwrap(), Some(98));
    // An empty tree is valid as well.
    let empty = make(&Subspace::new("empty"));
    assert_eq!(empty.export(&snapshot, None).unwrap(), []);
    assert_eq!(empty.descendant_count(&snapshot, None).unwrap(), 0);
    assert_eq!(findings(&empty, &snapshot), [""; 0]);
}

pub fn readers_keep_the_tree_that_they_began_with<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    let model = make(&space());
    fill(store, &model);
    let before = store.snapshot().unwrap();
    store.transact(|txn| perform_all(&model, &mut DynWriter::new(txn), &changes(rules))).unwrap();
    let mut oracle = Oracle::new(rules, space().to_string());
    oracle.perform(&Operation::Load { parent: None, trees: sample() }).unwrap();
    compare_whole(&model, &before, &oracle);
    for operation in changes(rules) {
        oracle.perform(&operation).unwrap();
    }
    compare_whole(&model, &store.snapshot().unwrap(), &oracle);
}
