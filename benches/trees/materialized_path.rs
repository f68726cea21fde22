//! Materialized path, of ids and of names; and a move in steps compared with a move in one
//! transaction.

use std::ops::ControlFlow;

use criterion::Criterion;
use keyloom::{Memory, Store, Subspace};
use keyloom_patterns::trees::{InsertAt, MaterializedPath, Tree};

use crate::{forest, operations};

pub fn materialized_path(c: &mut Criterion) {
    operations(c, "materialized path", MaterializedPath::<u32>::new);
    let tree = MaterializedPath::<u32>::new(&Subspace::new("bench"));
    let store = Memory::new();
    store.transact(|txn| tree.import(txn, None, &forest())).unwrap();
    let mut group = c.benchmark_group("hierarchy/materialized path in memory");
    let mut roots = [1_111, 2_222].into_iter().cycle();
    group.bench_function("move of 111 nodes in steps", |b| {
        b.iter(|| {
            let place = InsertAt::last(roots.next().unwrap());
            tree.move_in_steps(&store, 1, place, |_| ControlFlow::Continue(())).unwrap()
        });
    });
    group.finish();
    let files = MaterializedPath::<u32>::new(&Subspace::new("bench")).of_names();
    let store = Memory::new();
    store.transact(|txn| files.import(txn, None, &forest())).unwrap();
    let mut group = c.benchmark_group("hierarchy/materialized path of names in memory");
    let snapshot = store.snapshot().unwrap();
    group.bench_function("a node by its names", |b| {
        b.iter(|| files.node_at(&snapshot, ["node 0", "node 1", "node 2"]).unwrap());
    });
    drop(snapshot);
    let mut name = 0;
    group.bench_function("rename of 111 nodes", |b| {
        b.iter(|| {
            name += 1;
            store.transact(|txn| files.rename(txn, 1, &name.to_string())).unwrap();
        });
    });
    group.finish();
}
