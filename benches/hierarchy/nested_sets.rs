//! Nested sets, and the leaf ranges of trees that do not change.

use std::hint::black_box;

use criterion::Criterion;
use keyloom::{Memory, Store, Subspace};
use keyloom_patterns::hierarchy::{LeafRanges, NestedSets, Tree};

use crate::{NODES, forest, operations};

pub fn nested_sets(c: &mut Criterion) {
    operations(c, "nested sets", NestedSets::<u32>::new);
    leaves(c);
}

/// What both forms answer: the 1,000 leaves of a root, how many they are, and what contains a leaf.
fn leaves(c: &mut Criterion) {
    let tree = NestedSets::<u32>::new(&Subspace::new("tree"));
    let ranges = LeafRanges::<u32>::new(&Subspace::new("ranges"));
    let store = Memory::new();
    store
        .transact(|txn| {
            tree.load(txn, None, &forest())?;
            ranges.copy_from(txn, &tree)
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut n = 0;
    let mut next = move || {
        n = (n + 7_919) % NODES;
        n
    };
    let mut group = c.benchmark_group("hierarchy/leaves");
    group.bench_function("nested sets, leaves of a root", |b| {
        b.iter(|| tree.leaves(&snapshot, 0).unwrap().count());
    });
    group.bench_function("leaf ranges, leaves of a root", |b| {
        b.iter(|| ranges.leaves(&snapshot, 0).unwrap().count());
    });
    group.bench_function("leaf ranges, how many", |b| {
        b.iter(|| ranges.leaf_count(&snapshot, next()).unwrap());
    });
    group.bench_function("leaf ranges, what contains a node", |b| {
        b.iter(|| black_box(ranges.containing(&snapshot, next()).unwrap().len()));
    });
    group.finish();
}
