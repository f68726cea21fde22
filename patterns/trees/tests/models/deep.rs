//! Every operation on a tree of 100,000 levels (5,000 in a debug build): no operation recurses.

use std::ops::ControlFlow::Continue;

use keyloom::key::Subspace;
use keyloom::{Memory, Store};
use keyloom_trees::{
    AdjacencyList, InsertAt, MaterializedPath, NestedNode, NestedSets, OnDelete, Tree,
    TreeDocument, TreeError,
};

use crate::nested::chain;
use crate::questions::findings;
use keyloom_testing::TemporaryLmdb;
use keyloom_testing::laws::refused;

const LEVELS: u64 = if cfg!(debug_assertions) { 5_000 } else { 100_000 };

/// Runs `work` on a stack with less than a frame per level.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    thread.spawn(work).unwrap().join().unwrap();
}

fn all_operations<T: Tree<Value = u32>>(store: &impl Store, make: impl Fn(&Subspace) -> T) {
    let (tree, deepest) = (make(&Subspace::new("tree")), LEVELS);
    let trees = [chain(LEVELS)];
    store.transact(|txn| tree.import(txn, None, &trees)).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert!(tree.export(&snapshot, None).unwrap() == trees);
    assert_eq!(tree.descendant_count(&snapshot, None).unwrap(), LEVELS);
    assert_eq!(tree.leaves(&snapshot, None).unwrap().count(), 1);
    assert_eq!(tree.descendants(&snapshot, 1, LEVELS as u32 - 1_000..).unwrap().count(), 1_000);
    assert!(tree.dot(&snapshot, None).unwrap().len() > LEVELS as usize);
    assert_eq!(tree.ancestors(&snapshot, deepest).unwrap().len() as u64, LEVELS - 1);
    assert_eq!(u64::from(tree.depth(&snapshot, deepest).unwrap()), LEVELS - 1);
    assert!(tree.is_ancestor(&snapshot, 1, deepest).unwrap());
    assert_eq!(tree.lowest_common_ancestor(&snapshot, deepest, 7).unwrap(), Some(7));
    assert_eq!(findings(&tree, &snapshot), [""; 0]);
    drop(snapshot);
    assert_eq!(tree.repair(store).unwrap().changed(), 0);
    let below = refused(store, |txn| tree.move_to(txn, 1, InsertAt::last(deepest)));
    assert!(matches!(below.downcast_ref(), Some(TreeError::BelowItself { .. })));
    store
        .transact(|txn| {
            tree.insert(txn, 0, "deeper", &0, InsertAt::last(deepest))?;
            tree.delete_node(txn, 2, OnDelete::Reparent)?;
            tree.move_to(txn, LEVELS / 2, InsertAt::last(None))
        })
        .unwrap();
    tree.delete_in_steps(store, LEVELS / 2, |_| Continue(())).unwrap();
    store.transact(|txn| tree.delete_subtree(txn, 1).map(drop)).unwrap();
    assert!(tree.export(&store.snapshot().unwrap(), None).unwrap().is_empty());
}

#[test]
fn an_adjacency_list_of_many_levels() {
    on_a_small_stack(|| all_operations(&Memory::new(), AdjacencyList::new));
}

#[test]
fn an_adjacency_list_of_many_levels_on_lmdb() {
    on_a_small_stack(|| all_operations(&*TemporaryLmdb::new(), AdjacencyList::new));
}

#[test]
fn nested_sets_of_many_levels() {
    on_a_small_stack(|| all_operations(&Memory::new(), NestedSets::new));
}

#[test]
fn a_document_of_many_levels() {
    on_a_small_stack(|| all_operations(&Memory::new(), TreeDocument::new));
}

#[test]
fn a_path_of_many_levels_is_refused() {
    on_a_small_stack(|| {
        let space = Subspace::new("tree");
        for tree in [MaterializedPath::new(&space), MaterializedPath::new(&space).of_names()] {
            let store = Memory::new();
            let trees: [NestedNode<u32>; 1] = [chain(LEVELS)];
            let refused = refused(&store, |txn| tree.import(txn, None, &trees));
            assert!(matches!(refused.downcast_ref(), Some(TreeError::PathTooLong { .. })));
        }
    });
}
