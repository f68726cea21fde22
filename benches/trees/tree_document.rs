//! Tree aggregation: every operation reads the document, so reads and changes of a decoded document
//! are measured separately, too.

use std::hint::black_box;

use criterion::Criterion;
use keyloom::{Memory, Store, Subspace};
use keyloom_patterns::trees::{InsertAt, TreeDocument};

use crate::{NODES, forest, operations};

pub fn tree_document(c: &mut Criterion) {
    operations(c, "tree document", TreeDocument::<u32>::new);
    in_memory(c);
}

/// A document of 11,110 nodes, some 290 kB.
fn in_memory(c: &mut Criterion) {
    let tree = TreeDocument::<u32>::new(&Subspace::new("bench"));
    let store = Memory::new();
    let mut document = tree.read(&store.snapshot().unwrap()).unwrap();
    document.import(None, &forest()).unwrap();
    store.transact(|txn| tree.write(txn, &document)).unwrap();
    let mut group = c.benchmark_group("hierarchy/document in memory");
    let snapshot = store.snapshot().unwrap();
    group.bench_function("read", |b| b.iter(|| black_box(tree.read(&snapshot).unwrap())));
    drop(snapshot);
    let document = tree.read(&store.snapshot().unwrap()).unwrap();
    let mut n = 0;
    let mut next = move || {
        n = (n + 7_919) % NODES;
        n
    };
    group.bench_function("ancestors", |b| b.iter(|| document.ancestors(next()).unwrap()));
    group.bench_function("find by a value, among all", |b| {
        b.iter(|| document.find(|node| Ok(node.value()? == 8)).count());
    });
    let mut changed = document.clone();
    let mut id = NODES;
    group.bench_function("insert and delete", |b| {
        b.iter(|| {
            id += 1;
            changed.insert(id, "new", &7, InsertAt::last(next())).unwrap();
            changed.delete_subtree(id).unwrap()
        });
    });
    let mut name = 0;
    group.bench_function("rename one, write", |b| {
        b.iter(|| {
            name += 1;
            let mut document = tree.read(&store.snapshot().unwrap()).unwrap();
            document.rename(7, &name.to_string()).unwrap();
            store.transact(|txn| tree.write(txn, &document)).unwrap()
        });
    });
    group.finish();
}
