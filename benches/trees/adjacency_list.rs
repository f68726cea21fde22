//! Adjacency list: moves of subtrees of any size, and children by their names.

use criterion::Criterion;
use keyloom::{Memory, Store, Subspace};
use keyloom_patterns::trees::{AdjacencyList, InsertAt, Tree};

use crate::{forest, operations};

pub fn adjacency_list(c: &mut Criterion) {
    operations(c, "adjacency list", AdjacencyList::<u32>::new);
    names_and_moves(c);
}

fn names_and_moves(c: &mut Criterion) {
    let tree = AdjacencyList::<u32>::new(&Subspace::new("bench")).with_unique_names();
    let store = Memory::new();
    store.transact(|txn| tree.import(txn, None, &forest())).unwrap();
    let mut group = c.benchmark_group("hierarchy/adjacency list with unique names");
    let snapshot = store.snapshot().unwrap();
    group.bench_function("a path of four names", |b| {
        let path = ["node 0", "node 1", "node 2", "node 12"];
        b.iter(|| tree.node_at(&snapshot, path).unwrap());
    });
    drop(snapshot);
    // Node 0 has 1,111 descendants; node 3 has none.
    for (what, node, one, other) in
        [("move 1,111 nodes", 0, Some(1_111), None), ("move a leaf", 3, Some(1_111), Some(2))]
    {
        group.bench_function(what, |b| {
            b.iter(|| {
                store.transact(|txn| tree.move_to(txn, node, InsertAt::Last(one))).unwrap();
                store.transact(|txn| tree.move_to(txn, node, InsertAt::Last(other))).unwrap();
            });
        });
    }
}
