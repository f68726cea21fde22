//! Nested sets, and the leaves below a node.

use criterion::Criterion;
use keyloom::{Memory, Store, Subspace};
use keyloom_patterns::trees::{NestedSets, Tree};

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
}
