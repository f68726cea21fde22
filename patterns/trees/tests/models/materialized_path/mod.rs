//! Materialized path: its properties beyond the contract of all trees.

mod costs;
mod damage;
mod ranks;
mod steps;

use fastrand::Rng;
use keyloom::{KeyRange, Memory, Reader, Store, Subspace, Writer};
use keyloom_trees::{InsertAt, MaterializedPath, NestedNode, NodeId, Tree};

use crate::operations::{Operation, perform};
use crate::oracle::{Oracle, Rules};
use crate::questions::{ask, compare_whole};

type Paths = MaterializedPath<u32>;

fn space() -> Subspace {
    Subspace::new("tree")
}

fn both() -> [(Paths, Rules); 2] {
    let paths = Paths::new(&space());
    [(paths.clone(), Rules::NONE), (paths.of_names(), Rules::ORDERED_BY_NAME)]
}

/// Three countries of three regions of four cities.
fn countries() -> Vec<NestedNode<u32>> {
    let node = |id: u64| NestedNode::new(id, format!("node {id}"), id as u32);
    let region = |id| (1..=4).fold(node(id), |region, n| region.with(node(10 * id + n)));
    let country = |id| (1..=3).fold(node(id), |country, n| country.with(region(10 * id + n)));
    (1..=3).map(country).collect()
}

const NODES: u64 = 3 + 9 + 36;

fn filled(store: &impl Store, model: &Paths, rules: Rules) -> Oracle {
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    let mut oracle = Oracle::new(rules, space().to_string());
    for tree in countries() {
        let mut path: Vec<NodeId> = Vec::new();
        for (depth, node) in tree.preorder() {
            path.truncate(depth as usize);
            let (id, name, value) = (node.id, node.name.clone(), node.value);
            let insert = Operation::Insert {
                id,
                name,
                value,
                place: InsertAt::Sorted(path.last().copied()),
            };
            store.transact(|txn| perform(model, txn, &insert)).unwrap();
            oracle.perform(&insert).unwrap();
            path.push(id);
        }
    }
    oracle
}

/// Compares all queries, and not only the whole tree.
fn compare_all(model: &Paths, reader: &impl Reader, oracle: &Oracle) {
    compare_whole(model, reader, oracle);
    let mut rng = Rng::with_seed(1);
    for id in [1, 2, 3, 11, 13, 21, 111, 134, 212, 99] {
        let other = *rng.choice(&[1, 2, 11, 12, 21, 112, 131]).unwrap();
        ask(model, reader, oracle, [id, other], &mut rng);
    }
}

/// Whether the store contains only the record and the path entry of each node.
fn is_tidy(store: &impl Store, model: &Paths, oracle: &Oracle) {
    let snapshot = store.snapshot().unwrap();
    compare_all(model, &snapshot, oracle);
    assert_eq!(snapshot.count(KeyRange::all()).unwrap(), 2 * oracle.len() as u64);
}

#[test]
fn an_empty_tree_and_one_of_many_nodes_count_alike() {
    let (model, _) = &both()[0];
    let store = Memory::new();
    store.transact(|txn| model.import(txn, None, &countries())).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(model.descendant_count(&snapshot, None).unwrap(), NODES);
    assert_eq!(model.descendant_count(&snapshot, 1).unwrap(), 15);
}

#[test]
fn a_name_that_continues_where_another_ends_lies_beside_it() {
    // In a key, the end of a name and a NUL within a name start with the same byte.
    let (model, rules) = &both()[1];
    let store = Memory::new();
    let mut oracle = Oracle::new(*rules, space().to_string());
    for (id, name, parent) in [
        (1, "a", None),
        (2, "b", Some(1)),
        (3, "a\0", None),
        (4, "b", Some(3)),
        (5, "a\0\0b", None),
    ] {
        let place = InsertAt::Sorted(parent);
        let insert = Operation::Insert { id, name: name.into(), value: 0, place };
        store.transact(|txn| perform(model, txn, &insert)).unwrap();
        oracle.perform(&insert).unwrap();
    }
    compare_whole(model, &store.snapshot().unwrap(), &oracle);
}
