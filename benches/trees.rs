//! The models of a hierarchy: the same operations on the same tree of 10,000 nodes, in memory, on
//! LMDB and on redb, and the additional operations of each model.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "trees/adjacency_list.rs"]
mod adjacency_list;
#[path = "trees/materialized_path.rs"]
mod materialized_path;
#[path = "trees/nested_sets.rs"]
mod nested_sets;
#[path = "trees/tree_document.rs"]
mod tree_document;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Memory, Store, Subspace};
use keyloom_patterns::trees::{InsertAt, NestedNode, NodeId, Tree};

/// Ten roots with four levels below, ten children per node: ids 0..11,110, in preorder.
fn forest() -> Vec<NestedNode<u32>> {
    let mut id = 0;
    (0..10).map(|_| node(&mut id, 3)).collect()
}

fn node(id: &mut NodeId, levels_below: u32) -> NestedNode<u32> {
    let this = NestedNode::new(*id, format!("node {id}"), 7);
    *id += 1;
    let children = if levels_below > 0 { 10 } else { 0 };
    (0..children).fold(this, |this, _| this.with(node(id, levels_below - 1)))
}

const NODES: NodeId = 11_110;

/// The operations of the trait, for one model.
fn operations<T: Tree<Value = u32>>(c: &mut Criterion, name: &str, make: impl Fn(&Subspace) -> T) {
    let tree = make(&Subspace::new("bench"));
    on_a_store(c, &format!("{name}/memory"), &tree, &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = keyloom::Lmdb::options().durability(Durability::MayLoseStore);
    let lmdb = options.open(directory.path()).unwrap();
    on_a_store(c, &format!("{name}/LMDB MayLoseStore"), &tree, &lmdb);
    let redb = keyloom_benches::redb(&directory);
    on_a_store(c, &format!("{name}/{}", keyloom_benches::REDB), &tree, &redb);
}

fn on_a_store<T: Tree<Value = u32>>(c: &mut Criterion, name: &str, tree: &T, store: &impl Store) {
    store.transact(|txn| tree.import(txn, None, &forest())).unwrap();
    let mut group = c.benchmark_group(format!("trees/{name}"));
    let mut n = 0;
    let mut next = move || {
        n = (n + 7_919) % NODES;
        n
    };
    let snapshot = store.snapshot().unwrap();
    group.bench_function("get", |b| b.iter(|| black_box(tree.get(&snapshot, next()).unwrap())));
    group.bench_function("children", |b| {
        b.iter(|| tree.children(&snapshot, next()).unwrap().count());
    });
    // The second half of the children of the first root.
    group.bench_function("page of 5 children after a known one", |b| {
        b.iter(|| {
            let rest = tree.children_after(&snapshot, 0, 445).unwrap();
            assert_eq!(rest.take(5).map(|node| node.unwrap().id()).last(), Some(1_000));
        });
    });
    group.bench_function("ancestors", |b| b.iter(|| tree.ancestors(&snapshot, next()).unwrap()));
    group.bench_function("descendants, 1,111 of them", |b| {
        b.iter(|| tree.descendants(&snapshot, 0, ..).unwrap().count());
    });
    group.bench_function("sorted place among 10 children", |b| {
        b.iter(|| {
            tree.sorted_place(&snapshot, next(), None, |node| Ok(node.value()?.cmp(&7))).unwrap()
        });
    });
    drop(snapshot);
    let mut id = NODES;
    group.bench_function("insert and delete", |b| {
        b.iter(|| {
            id += 1;
            store
                .transact(|txn| {
                    tree.insert(txn, id, "new", &7, InsertAt::last(next()))?;
                    tree.delete_subtree(txn, id)
                })
                .unwrap()
        });
    });
    // Moves a subtree of 111 nodes to another root, and back.
    let mut roots = [1_111, 2_222].into_iter().cycle();
    group.bench_function("move of 111 nodes", |b| {
        b.iter(|| {
            let to = roots.next().unwrap();
            store.transact(|txn| tree.move_to(txn, 1, InsertAt::last(to))).unwrap();
        });
    });
    group.finish();
}

fn hierarchy(c: &mut Criterion) {
    adjacency_list::adjacency_list(c);
    materialized_path::materialized_path(c);
    nested_sets::nested_sets(c);
    tree_document::tree_document(c);
}

criterion_group!(benches, hierarchy);
criterion_main!(benches);
