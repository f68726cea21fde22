//! Nested sets, and the leaves below a node.

use std::ops::ControlFlow;

use criterion::Criterion;
use keyloom::{Limits, Memory, Store, Subspace};
use keyloom_patterns::trees::{InsertAt, NestedSets, NodeId, Tree, TreeError};

use crate::{forest, operations};

pub fn nested_sets(c: &mut Criterion) {
    operations(c, "nested sets", NestedSets::<u32>::new);
    let tree = NestedSets::<u32>::new(&Subspace::new("tree"));
    let store = Memory::new();
    store.transact(|txn| tree.import(txn, None, &forest())).unwrap();
    let snapshot = store.snapshot().unwrap();
    c.bench_function("hierarchy/nested sets, leaves of a root", |b| {
        b.iter(|| tree.leaves(&snapshot, 0).unwrap().count());
    });
    let mut group = c.benchmark_group("hierarchy/nested sets, with the limits of etcd");
    group.sample_size(10).bench_function("5,000 inserts before one node", |b| {
        b.iter(|| {
            let store = Memory::builder().limits(Limits::etcd()).build();
            let first = InsertAt::last(None);
            store.transact(|txn| tree.insert(txn, 0, "first", &0, first)).unwrap();
            (1..5_000).for_each(|id| insert_before_first(&tree, &store, id));
        });
    });
}

/// Inserts a node where the gaps become narrow, and makes room if there is none.
fn insert_before_first(tree: &NestedSets<u32>, store: &Memory, id: NodeId) {
    let place = InsertAt::Before(0);
    let insert = || store.transact(|txn| tree.insert(txn, id, "new", &0, place));
    let Err(error) = insert() else { return };
    assert!(matches!(error.downcast_ref(), Some(TreeError::NoRoom { .. })), "{error}");
    tree.make_room(store, "new", place, 1, |_| ControlFlow::Continue(())).unwrap();
    insert().unwrap();
}
