//! Leaf ranges, against the tree that they are built from.

use std::ops::ControlFlow;

use keyloom::{Limits, Memory, Metered, Store, Subspace, Writer};
use keyloom_patterns::hierarchy::{LeafRanges, Nested, NodeId, Tree, TreeError};

use super::{bushy, tree};

fn catalogue() -> LeafRanges<u32> {
    LeafRanges::new(&Subspace::new("catalogue"))
}

/// Trees of uneven depth: some roots are leaves, some inner nodes have one child.
fn trees() -> Vec<Nested<u32>> {
    let mut id = 0;
    let mut trees: Vec<Nested<u32>> = (1..=3).map(|depth| bushy(&mut id, depth, depth)).collect();
    let chain = Nested::new(501, "chain", 0)
        .with(Nested::new(502, "only", 0).with(Nested::new(503, "leaf", 0)));
    trees.push(chain);
    trees
}

fn faults(catalogue: &LeafRanges<u32>, store: &impl Store) -> Vec<String> {
    let mut found = Vec::new();
    let note = |fault: keyloom_patterns::Inconsistency| {
        found.push(fault.to_string());
        ControlFlow::Continue(())
    };
    catalogue.check(&store.snapshot().unwrap(), note).unwrap();
    found
}

#[test]
fn they_answer_as_the_tree_does() {
    let (tree, catalogue, store) = (tree(), catalogue(), Memory::new());
    store
        .transact(|txn| {
            tree.load(txn, None, &trees())?;
            catalogue.copy_from(txn, &tree)
        })
        .unwrap();
    assert_eq!(faults(&catalogue, &store), Vec::<String>::new());
    let snapshot = store.snapshot().unwrap();
    let ids: Vec<NodeId> =
        super::preorder(&tree, &snapshot).into_iter().map(|(_, id)| id).collect();
    let all: Vec<NodeId> =
        tree.leaves(&snapshot, None).unwrap().map(|leaf| leaf.unwrap().id()).collect();
    for (number, id) in all.iter().enumerate() {
        assert_eq!(catalogue.leaf(&snapshot, number as u64).unwrap().unwrap().id(), *id);
    }
    assert!(catalogue.leaf(&snapshot, all.len() as u64).unwrap().is_none());
    for id in &ids {
        let expected: Vec<NodeId> =
            tree.leaves(&snapshot, *id).unwrap().map(|leaf| leaf.unwrap().id()).collect();
        let found = catalogue.leaves(&snapshot, *id).unwrap();
        let found: Vec<NodeId> = found.map(|leaf| leaf.unwrap().id()).collect();
        assert_eq!(found, expected);
        assert_eq!(catalogue.leaf_count(&snapshot, *id).unwrap(), expected.len() as u64);
        let numbers = catalogue.numbers(&snapshot, *id).unwrap();
        assert_eq!(all[*numbers.start() as usize..=*numbers.end() as usize], expected);
        let names = |nodes: &[NodeId]| -> Vec<String> {
            let name = |id: &NodeId| {
                tree.get(&snapshot, *id).unwrap().unwrap().name().unwrap().to_string()
            };
            nodes.iter().map(name).collect()
        };
        let above: Vec<NodeId> =
            tree.ancestors(&snapshot, *id).unwrap().iter().map(|n| n.id()).collect();
        let containing = catalogue.containing(&snapshot, *id).unwrap();
        assert_eq!(
            containing.iter().map(|node| node.name().unwrap()).collect::<Vec<_>>(),
            names(&above)
        );
        assert_eq!(
            catalogue.get(&snapshot, *id).unwrap().unwrap().name().unwrap(),
            names(&[*id])[0]
        );
        for other in &ids {
            assert_eq!(
                catalogue.contains(&snapshot, *other, *id).unwrap(),
                tree.is_ancestor(&snapshot, *other, *id).unwrap()
            );
        }
    }
}

#[test]
fn trees_and_rows_come_to_the_same_bytes() {
    let (catalogue, one) = (catalogue(), Memory::new());
    one.transact(|txn| catalogue.load(txn, &trees())).unwrap();
    let two = Memory::builder().limits(Limits::etcd()).build();
    let trees = trees();
    let rows = trees
        .iter()
        .flat_map(Nested::preorder)
        .map(|(depth, node)| (depth + 1, Nested::new(node.id, node.name.clone(), node.value)));
    catalogue.load_rows(&two, rows).unwrap();
    let dump = |store: &Memory| -> Vec<(Vec<u8>, Vec<u8>)> {
        let snapshot = store.snapshot().unwrap();
        let entries =
            keyloom::Reader::range(&snapshot, keyloom::KeyRange::all(), keyloom::Order::Ascending)
                .unwrap();
        entries.map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
    };
    assert_eq!(dump(&one), dump(&two));
    let many = Memory::builder().limits(Limits::etcd()).build();
    let rows = (0..12_000_u64).map(|id| (1 + u32::from(id % 10 > 0), Nested::new(id, "row", 0)));
    catalogue.load_rows(&many, rows).unwrap();
    assert_eq!(catalogue.leaf_count(&many.snapshot().unwrap(), 11_990).unwrap(), 9);
    assert_eq!(faults(&catalogue, &many), Vec::<String>::new());
}

#[test]
fn they_cost_what_the_table_says() {
    let (catalogue, store) = (catalogue(), Metered::new(Memory::new()));
    let nested = [bushy(&mut 0, 4, 4)];
    let (_, cost) =
        store.measure(|store| store.transact(|txn| catalogue.load(txn, &nested)).unwrap());
    assert_eq!(cost.keys_written, 2 * 64 + 21);
    let snapshot = store.snapshot().unwrap();
    let of = |work: &dyn Fn() -> u64| {
        let (_, cost) = store.measure(|_| work());
        (cost.gets, cost.ranges, cost.keys_read, cost.round_trips)
    };
    assert_eq!(of(&|| catalogue.leaf_count(&snapshot, 1).unwrap()), (1, 0, 1, 1));
    assert_eq!(of(&|| catalogue.leaves(&snapshot, 1).unwrap().count() as u64), (1, 1, 1 + 16, 2));
    assert_eq!(of(&|| catalogue.leaves_in(&snapshot, 3..6).unwrap().count() as u64), (0, 1, 3, 1));
    assert_eq!(of(&|| catalogue.containing(&snapshot, 3).unwrap().len() as u64), (1 + 3, 0, 4, 2));
    assert_eq!(of(&|| u64::from(catalogue.contains(&snapshot, 1, 3).unwrap())), (2, 0, 2, 1));
    assert_eq!(of(&|| u64::from(catalogue.get(&snapshot, 3).unwrap().is_some())), (2, 0, 2, 2));
    assert_eq!(of(&|| u64::from(catalogue.get(&snapshot, 1).unwrap().is_some())), (1, 0, 1, 1));
}

#[test]
fn what_cannot_be_numbered_is_refused_and_nothing_written() {
    let (catalogue, store) = (catalogue(), Memory::new());
    let twice = [Nested::new(1, "one", 0), Nested::new(1, "again", 0)];
    let error = store.transact(|txn| catalogue.load(txn, &twice)).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(TreeError::NodeExists { node: 1, .. })), "{error}");
    let deep = [(1, Nested::new(1, "one", 0)), (3, Nested::new(2, "two levels down", 0))];
    let error = catalogue.load_rows(&store, deep).unwrap_err().to_string();
    assert!(error.contains("3 (node 2)"), "{error}");
    store.transact(|txn| catalogue.load(txn, &trees())).unwrap();
    let error = store.transact(|txn| catalogue.load(txn, &trees())).unwrap_err().to_string();
    assert!(error.contains("catalogue") && error.contains("fresh"), "{error}");
    let error = catalogue.leaf_count(&store.snapshot().unwrap(), 999).unwrap_err();
    assert!(
        matches!(error.downcast_ref(), Some(TreeError::UnknownNode { node: 999, .. })),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_told() {
    let (catalogue, store) = (catalogue(), Memory::new());
    store.transact(|txn| catalogue.load(txn, &trees())).unwrap();
    store
        .transact(|txn| {
            txn.delete(&catalogue.space().pack(&("leaf", 1_u64)))?;
            txn.put(&catalogue.space().pack("other"), b"")
        })
        .unwrap();
    let key = |key: &str, rule: &str| format!(r#"the key ("catalogue", {key}) {rule}"#);
    let wrong = "has a wrong value";
    // Each leaf behind the one that is lost has a number too large.
    let mut expected: Vec<String> =
        (2..=12).map(|n| key(&format!("\"leaf\", {n}"), wrong)).collect();
    expected.push(key("\"node\", 1", wrong));
    expected.push(key("\"node\", 2", "dangles: nothing makes it"));
    expected.push(key("\"other\"", "is of another kind of data"));
    assert_eq!(faults(&catalogue, &store), expected);
}

#[test]
fn a_record_with_the_number_of_another_leaf_is_told_and_never_answers_with_it() {
    let (catalogue, store) = (catalogue(), Memory::new());
    store.transact(|txn| catalogue.load(txn, &trees())).unwrap();
    let key = |id: NodeId| catalogue.space().pack(&("node", id));
    let snapshot = store.snapshot().unwrap();
    let of_leaf = keyloom::Reader::get(&snapshot, &key(503)).unwrap().unwrap().to_vec();
    drop(snapshot);
    store.transact(|txn| txn.put(&key(700), &of_leaf)).unwrap();
    assert_eq!(
        faults(&catalogue, &store),
        [r#"the key ("catalogue", "node", 700) dangles: nothing makes it"#]
    );
    let snapshot = store.snapshot().unwrap();
    assert_eq!(catalogue.get(&snapshot, 503).unwrap().unwrap().id(), 503);
    let error = catalogue.get(&snapshot, 700).unwrap_err().to_string();
    assert!(error.contains(r#""node", 700)"#) && error.contains("build them anew"), "{error}");
}

#[test]
fn names_and_values_that_do_not_decode_are_told() {
    let (catalogue, store) = (catalogue(), Memory::new());
    let nested = [Nested::new(1, "inner", 0).with(Nested::new(2, "leaf", 0))];
    store.transact(|txn| catalogue.load(txn, &nested)).unwrap();
    for key in [catalogue.space().pack(&("leaf", 0_u64)), catalogue.space().pack(&("node", 1_u64))]
    {
        let snapshot = store.snapshot().unwrap();
        let whole = keyloom::Reader::get(&snapshot, &key).unwrap().unwrap().to_vec();
        drop(snapshot);
        let told = format!("the key {} is of another kind of data", keyloom::key::display(&key));
        for bytes in [whole.len() - 1, whole.len() - 3] {
            store.transact(|txn| txn.put(&key, &whole[..bytes])).unwrap();
            assert_eq!(faults(&catalogue, &store), [&*told]);
        }
        store.transact(|txn| txn.put(&key, &whole)).unwrap();
    }
}
