//! Patterns on a tree whose paths consist of names.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use fastrand::Rng;
use keyloom::{Metered, Order, Reader, Result, Store, Subspace};
use keyloom_tables::in_order;
use keyloom_trees::path::PathPattern;
use keyloom_trees::{InsertAt, MaterializedPath, NestedNode, NodeId, Tree};

use crate::language::lquery;
use crate::naive;
use crate::scan::random_case;
use keyloom_testing::laws::clear;

/// The node at each path.
type Nodes = BTreeMap<Vec<String>, NodeId>;

fn tree() -> MaterializedPath<u32> {
    MaterializedPath::new(&Subspace::new("tree")).of_names()
}

/// Random paths with all their ancestors, as nodes of the tree.
fn fill(store: &impl Store, rng: &mut Rng) -> Nodes {
    clear(store);
    let mut nodes = Nodes::new();
    for _ in 0..150 {
        let path = naive::path(rng);
        for depth in 1..=path.len() {
            let id = nodes.len() as NodeId + 1;
            let parent = nodes.get(&path[..depth - 1]).copied();
            if nodes.contains_key(&path[..depth]) {
                continue;
            }
            let name = &path[depth - 1];
            store
                .transact(|txn| tree().insert(txn, id, name, &0, InsertAt::Sorted(parent)))
                .unwrap();
            nodes.insert(path[..depth].into(), id);
        }
    }
    nodes
}

/// The nodes that a scan finds, with their paths.
fn found(reader: &impl Reader, pattern: &PathPattern, order: Order) -> Vec<(Vec<String>, NodeId)> {
    let found = tree().matching(reader, in_order(pattern, order)).unwrap().map(|node| {
        let id = node?.id();
        Ok((tree().names_to(reader, id)?, id))
    });
    found.collect::<Result<Vec<_>>>().unwrap()
}

fn text(found: Vec<(Vec<String>, NodeId)>) -> Vec<(String, NodeId)> {
    found.into_iter().map(|(labels, id)| (labels.join("."), id)).collect()
}

pub fn trees_of_names_are_searched_as_they_are(store: &impl Store) {
    let mut rng = Rng::with_seed(43);
    let nodes = fill(store, &mut rng);
    let snapshot = store.snapshot().unwrap();
    let mut seen = 0;
    for _ in 0..120 {
        let (pattern, matches) = random_case(&mut rng);
        let matching = nodes.iter().filter(|(labels, _)| matches(labels));
        let mut expected: Vec<_> = matching.map(|(labels, id)| (labels.clone(), *id)).collect();
        assert_eq!(found(&snapshot, &pattern, Order::Ascending), expected, "{pattern}");
        expected.reverse();
        assert_eq!(found(&snapshot, &pattern, Order::Descending), expected, "{pattern}");
        seen += expected.len();
    }
    assert!(seen > 500, "{seen}");
    drop(snapshot);
    a_move_in_steps_shows_one_place(store);
    a_deletion_in_steps_shows_no_place(store);
}

fn subtree(store: &impl Store) {
    clear(store);
    let nodes = [(1, "from", None), (2, "below", Some(1)), (3, "to", None)];
    for (id, name, parent) in nodes {
        store.transact(|txn| tree().insert(txn, id, name, &0, InsertAt::Sorted(parent))).unwrap();
    }
}

fn a_move_in_steps_shows_one_place(store: &impl Store) {
    subtree(store);
    let mut shown = Vec::new();
    let all = lquery("*.from.*");
    let done = tree().move_in_steps(store, 1, InsertAt::sorted(3), |_| {
        let snapshot = store.snapshot().unwrap();
        shown.push(text(found(&snapshot, &all, Order::Ascending)));
        ControlFlow::Continue(())
    });
    assert!(done.unwrap().finished);
    let of = |paths: [&str; 2]| vec![(paths[0].to_owned(), 1), (paths[1].to_owned(), 2)];
    let (old, new) = (of(["from", "from.below"]), of(["to.from", "to.from.below"]));
    assert!(shown.iter().all(|shown| *shown == old || *shown == new), "{shown:?}");
    assert!(shown.contains(&old) && shown.contains(&new), "{shown:?}");
    let snapshot = store.snapshot().unwrap();
    assert_eq!(text(found(&snapshot, &all, Order::Ascending)), new);
}

fn a_deletion_in_steps_shows_no_place(store: &impl Store) {
    subtree(store);
    let mut shown = Vec::new();
    let done = tree().delete_in_steps(store, 1, |_| {
        let snapshot = store.snapshot().unwrap();
        shown.extend(found(&snapshot, &lquery("*.from.*"), Order::Ascending));
        ControlFlow::Continue(())
    });
    assert!(done.unwrap().finished);
    assert_eq!(shown, []);
}

/// The record of work in steps, and the range of the literal beginning of the pattern.
#[test]
fn a_pattern_costs_what_the_documentation_says() {
    let store = Metered::new(keyloom::Memory::new());
    let children = |n: u64| NestedNode::new(n, format!("child {n}"), 0);
    let some = (10..60).map(children).fold(NestedNode::new(1, "some", 0), NestedNode::with);
    let others = (100..900).map(children).fold(NestedNode::new(2, "others", 0), NestedNode::with);
    store.transact(|txn| tree().import(txn, None, &[some.clone(), others.clone()])).unwrap();
    let snapshot = store.snapshot().unwrap();
    let (found, cost) =
        store.measure(|_| tree().matching(&snapshot, &lquery("some.*{1}")).unwrap().count());
    assert_eq!((found, cost.gets, cost.ranges, cost.round_trips), (50, 1, 1, 2));
    assert!(cost.keys_read <= 53, "{cost}");
}

#[test]
fn a_tree_of_ids_has_no_names_in_its_paths() {
    let tree = MaterializedPath::<u32>::new(&Subspace::new("tree"));
    let store = keyloom::Memory::new();
    let snapshot = store.snapshot().unwrap();
    let Err(error) = tree.matching(&snapshot, &lquery("*")).map(drop) else { panic!("it matches") };
    assert!(error.to_string().contains("of_names"), "{error}");
}
