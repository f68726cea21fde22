//! Nested sets: their properties beyond the contract of all trees.

mod costs;
mod damage;
mod room;
mod steps;

use keyloom::{Reader, Store, Subspace};
use keyloom_trees::{InsertAt, NestedNode, NestedSets, NodeId, Tree};

fn tree() -> NestedSets<u32> {
    NestedSets::new(&Subspace::new("nested sets"))
}

/// Depths and ids, in depth-first order.
fn preorder(tree: &impl Tree, reader: &impl Reader) -> Vec<(u32, NodeId)> {
    let visits = tree.descendants(reader, None, ..).unwrap();
    visits.map(|visit| visit.map(|visit| (visit.depth, visit.node.id())).unwrap()).collect()
}

/// The findings of `check`, printed.
fn faults(tree: &impl Tree, store: &impl Store) -> Vec<String> {
    let mut found = Vec::new();
    let note = |fault: keyloom_tables::Inconsistency| {
        found.push(fault.to_string());
        std::ops::ControlFlow::Continue(())
    };
    tree.check_each(&store.snapshot().unwrap(), note).unwrap();
    found
}

/// A node with `width` children, which have as many, and so on; `depth` levels in total.
fn bushy(id: &mut NodeId, depth: u32, width: u32) -> NestedNode<u32> {
    let mut node = NestedNode::new(*id, format!("node {id}"), 0);
    *id += 1;
    if depth > 1 {
        node.children = (0..width).map(|_| bushy(id, depth - 1, width)).collect();
    }
    node
}

fn insert(tree: &NestedSets<u32>, store: &impl Store, id: NodeId, place: InsertAt) {
    store.transact(|txn| tree.insert(txn, id, &format!("node {id}"), &0, place)).unwrap();
}
