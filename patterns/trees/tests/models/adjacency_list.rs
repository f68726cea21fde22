//! The adjacency list beyond the contract: costs of operations, growth of ranks, and repairs.

use std::ops::ControlFlow;

use fastrand::Rng;
use keyloom::key::Subspace;
use keyloom::{Error, KeyBuf, Memory, Metered, Order, Reader, Store, Writer};
use keyloom_trees::{AdjacencyList, InsertAt, NestedNode, NodeId, OnDelete, Tree, TreeError};

use crate::questions::findings;
use keyloom_tables::{Inconsistency, Progress, Rule};
use keyloom_testing::laws::{counts, dump, dump_all, refused, writing};
use keyloom_testing::optimistic_memory;

fn space() -> Subspace {
    Subspace::new("tree")
}

fn tree() -> AdjacencyList<u32> {
    AdjacencyList::new(&space())
}

/// A node `first` with `children` children, whose ids begin at `first` + 1.
fn fan(first: NodeId, children: u64) -> NestedNode<u32> {
    let node = |id: NodeId| NestedNode::new(id, format!("n{id:06}"), 0);
    (1..=children).fold(node(first), |parent, n| parent.with(node(first + n)))
}

fn filled<S: Store>(store: S, tree: &AdjacencyList<u32>, trees: &[NestedNode<u32>]) -> S {
    store.transact(|txn| tree.import(txn, None, trees)).unwrap();
    store
}

/// Gets, ranges, keys read and keys written by a change.
fn cost(
    store: &Metered<Memory>,
    change: impl FnOnce(&mut keyloom::DynWriter<'_>) -> keyloom::Result<()>,
) -> [u64; 4] {
    writing(store, change)
}

#[test]
fn operations_cost_what_the_documentation_says() {
    let tree = tree();
    // Three levels below 1. Node 2 has the children 3 and 4, node 3 is a leaf, and node 4 has the
    // child 5.
    let four = NestedNode::new(4, "four", 4).with(NestedNode::new(5, "five", 5));
    let two = NestedNode::new(2, "two", 2).with(NestedNode::new(3, "three", 3)).with(four);
    let trees = [NestedNode::new(1, "one", 1).with(two), fan(100, 50)];
    let store = filled(Metered::new(Memory::new()), &tree, &trees);
    let snapshot = store.snapshot().unwrap();
    macro_rules! reads {
        ($snapshot:ident, $work:expr, $wanted:expr) => {{
            let $snapshot = &snapshot;
            let (_, cost) = store.measure(|_| std::hint::black_box($work));
            assert_eq!((counts(cost), cost.round_trips), $wanted, stringify!($work));
        }};
    }
    reads!(s, tree.get(s, 3).unwrap(), ([1, 0, 1, 0], 1));
    reads!(s, tree.parent(s, 3).unwrap(), ([1, 0, 1, 0], 1));
    reads!(s, tree.children(s, 100).unwrap().count(), ([1, 1, 51, 0], 2));
    reads!(s, tree.sibling(s, 3, Order::Ascending).unwrap(), ([1, 1, 2, 0], 2));
    reads!(s, tree.child_count(s, 100).unwrap(), ([2, 0, 2, 0], 1));
    reads!(s, tree.child_count(s, None).unwrap(), ([1, 0, 1, 0], 1));
    // Node 5 has three ancestors.
    reads!(s, tree.ancestors(s, 5).unwrap(), ([4, 0, 4, 0], 4));
    reads!(s, tree.depth(s, 5).unwrap(), ([4, 0, 4, 0], 4));
    // Reads one of the two nodes and all ancestors of the other, or all ancestors of both.
    reads!(s, tree.is_ancestor(s, 1, 5).unwrap(), ([5, 0, 5, 0], 5));
    reads!(s, tree.lowest_common_ancestor(s, 5, 3).unwrap(), ([7, 0, 7, 0], 7));
    // The roots, then the children of one root.
    reads!(s, tree.node_at(s, ["one", "two"]).unwrap(), ([1, 2, 3, 0], 3));
    // Fifty leaves: one range for them, and two ranges that find no children; some leaves are read
    // first.
    let (count, leaves) = store.measure(|_| tree.descendants(&snapshot, 100, ..).unwrap().count());
    assert!(count == 51 && leaves.ranges <= 4, "{leaves:?}");
    // Deeper levels are not requested, so their children are not read.
    let (count, children) =
        store.measure(|_| tree.descendants(&snapshot, 100, ..=1).unwrap().count());
    assert_eq!((count, children.ranges), (51, 1), "{children:?}");
    // Operations that visit the whole subtree have the same cost.
    type Through<'t> = &'t dyn Fn() -> u64;
    let through: [Through<'_>; 3] = [
        &|| tree.descendant_count(&snapshot, 100).unwrap() + 1,
        &|| tree.leaves(&snapshot, 100).unwrap().count() as u64 + 1,
        &|| tree.export(&snapshot, 100).unwrap()[0].preorder().count() as u64,
    ];
    for walk in through {
        assert_eq!(store.measure(|_| walk()), (51, leaves));
    }
    drop(snapshot);

    let insert = |id, place: InsertAt| {
        let tree = tree.clone();
        cost(&store, move |txn| tree.insert(txn, id, "new", &0, place))
    };
    assert_eq!(insert(20, InsertAt::last(100)), [2, 1, 2, 3]);
    assert_eq!(insert(21, InsertAt::first(100)), [2, 1, 2, 3]);
    assert_eq!(insert(22, InsertAt::last(None)), [1, 1, 1, 3]);
    assert_eq!(insert(23, InsertAt::Before(101)), [2, 1, 3, 3]);
    assert_eq!(insert(24, InsertAt::After(101)), [2, 1, 3, 3]);
    assert_eq!(insert(25, InsertAt::at(100, 10)), [2, 1, 12, 3]);
    let moving = |id, place: InsertAt| cost(&store, |txn| tree.move_to(txn, id, place));
    // Node 2 with its subtree moves below another root, back again, among its siblings, and to its
    // own position.
    assert_eq!(moving(2, InsertAt::last(100)), [2, 1, 3, 5]);
    assert_eq!(moving(2, InsertAt::last(1)), [2, 1, 2, 5]);
    // The new parent has two ancestors.
    assert_eq!(moving(110, InsertAt::last(3)), [4, 1, 4, 5]);
    assert_eq!(moving(110, InsertAt::last(None)), [1, 1, 2, 5]);
    assert_eq!(moving(3, InsertAt::last(2)), [2, 1, 3, 3]);
    assert_eq!(moving(3, InsertAt::last(2)), [2, 1, 4, 0]);
    assert_eq!(cost(&store, |txn| tree.rename(txn, 100, "hundred")), [1, 0, 1, 2]);
    assert_eq!(cost(&store, |txn| tree.set_value(txn, 100, &7)), [1, 0, 1, 2]);
    assert_eq!(cost(&store, |txn| tree.delete_subtree(txn, 4).map(drop))[3], 2 * 2 + 1 + 2);
    let children = tree.child_count(&store.snapshot().unwrap(), 100).unwrap();
    let spent = cost(&store, |txn| tree.delete_node(txn, 100, OnDelete::Reparent));
    assert_eq!((spent[0], spent[3]), (1, 2 * children + 5));
    let spent = cost(&store, |txn| tree.import(txn, 1, &[fan(200, 9), fan(300, 0)]));
    assert_eq!(spent, [12, 1, 2, 2 * 11 + 1 + 1]);
    assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
}

#[test]
fn a_move_costs_the_same_whatever_hangs_from_the_node() {
    let tree = tree();
    for children in [0, 10, 3_000] {
        let store = filled(Metered::new(Memory::new()), &tree, &[fan(10_000, children), fan(1, 1)]);
        assert_eq!(cost(&store, |txn| tree.move_to(txn, 10_000, InsertAt::last(1))), [2, 1, 3, 5]);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(tree.descendant_count(&snapshot, 1).unwrap(), children + 2);
        assert_eq!(findings(&tree, &snapshot), [""; 0]);
    }
}

#[test]
fn unique_names_cost_a_get_and_a_write_more() {
    let tree = tree().with_unique_names();
    let store = filled(Metered::new(Memory::new()), &tree, &[fan(1, 3), fan(10, 3)]);
    let spent = cost(&store, |txn| tree.insert(txn, 20, "new", &0, InsertAt::last(1)));
    assert_eq!(spent, [3, 1, 2, 4]);
    assert_eq!(cost(&store, |txn| tree.rename(txn, 20, "newer")), [2, 0, 1, 4]);
    assert_eq!(cost(&store, |txn| tree.move_to(txn, 20, InsertAt::last(10))), [3, 1, 3, 7]);
    let snapshot = store.snapshot().unwrap();
    let (found, cost) = store.measure(|_| tree.child_named(&snapshot, 10, "newer").unwrap());
    assert_eq!((found, cost.gets, cost.round_trips), (Some(20), 2, 1));
}

#[test]
fn a_load_with_unique_names_waits_as_often_for_many_trees() {
    let tree = tree().with_unique_names();
    for trees in [1, 3_000] {
        let store = filled(Metered::new(Memory::new()), &tree, &[fan(1, 3)]);
        let some: Vec<_> = (100..100 + trees).map(|id| fan(id, 0)).collect();
        let (_, cost) = store.measure(|store| {
            store.transact(|txn| tree.import(txn, 1, &some)).unwrap();
        });
        // The ids, the names, the last child, the commit.
        assert_eq!((cost.gets, cost.round_trips), (2 * trees + 1, 4));
        assert_eq!(cost.keys_written, 3 * trees + 1);
    }
}

/// The lengths of the ranks below a parent: the longest, and the sum.
fn ranks(store: &impl Store, parent: NodeId) -> (usize, usize) {
    let snapshot = store.snapshot().unwrap();
    let children = space().child("child");
    let range = children.range_of(&(parent,));
    let lengths = snapshot.range(range, Order::Ascending).unwrap().map(|entry| {
        let key = entry.unwrap().0;
        children.unpack::<(u64, Vec<u8>, u64)>(&key).unwrap().1.len()
    });
    lengths.fold((0, 0), |(longest, total), length| (longest.max(length), total + length))
}

/// The documented figures are for this number of operations. Debug builds run fewer, unless the
/// environment sets a number.
fn many(of: u64) -> u64 {
    let asked = std::env::var_os("KEYLOOM_TREE_OPERATIONS").is_some();
    if cfg!(debug_assertions) && !asked { of / 50 } else { of }
}

/// Inserts below one parent, each at the position that `place` returns. Returns the keys written
/// per insert, and the longest rank.
fn inserts(what: &str, count: u64, mut place: impl FnMut(u64) -> InsertAt) -> (f64, usize) {
    let tree = tree();
    let store = filled(Metered::new(Memory::new()), &tree, &[fan(1, 2)]);
    let (mut ids, mut worst) = (10..10 + count, 0);
    let (_, cost) = store.measure(|store| {
        loop {
            let some: Vec<NodeId> = ids.by_ref().take(500).collect();
            if some.is_empty() {
                break;
            }
            let mut txn = store.begin().unwrap();
            for id in some {
                let before = store.cost().keys_written;
                tree.insert(&mut txn, id, "", &0, place(id)).unwrap();
                worst = worst.max(store.cost().keys_written - before);
            }
            keyloom::Transaction::commit(txn).unwrap();
        }
    });
    assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
    assert_eq!(tree.child_count(&store.snapshot().unwrap(), 1).unwrap(), count + 2);
    let (longest, total) = ranks(&store, 1);
    let each = cost.keys_written as f64 / count as f64;
    println!(
        "{count} inserts {what}: {each:.3} key writes each, {worst} at the most; ranks of {:.1} bytes, {longest} at the most",
        total as f64 / (count + 2) as f64
    );
    assert!(worst <= 3 + 3 * 1_024, "{worst}");
    (each, longest)
}

#[test]
fn inserts_at_random_places_cost_three_key_writes() {
    let mut rng = Rng::with_seed(7);
    let (each, longest) = inserts("at random places", many(100_000), |id| {
        // The first two nodes have the ids 2 and 3.
        let beside = match rng.u64(8..id) {
            first @ 8..10 => first - 6,
            other => other,
        };
        if rng.bool() { InsertAt::After(beside) } else { InsertAt::Before(beside) }
    });
    assert!(each < 3.01 && longest <= 16, "{each} {longest}");
}

#[test]
fn inserts_at_the_ends_have_short_ranks() {
    for place in [InsertAt::first(1), InsertAt::last(1)] {
        let (each, longest) = inserts(&format!("{place:?}"), many(100_000).max(500), |_| place);
        assert!(each == 3.0 && longest <= 4, "{each} {longest}");
    }
}

#[test]
fn repeated_inserts_at_one_place_rerank_siblings_rarely() {
    let last = |id: NodeId| if id == 10 { 2 } else { id - 1 };
    type Run = (&'static str, u64, fn(NodeId, NodeId) -> InsertAt);
    let many = many(100_000).max(3_000);
    let runs: [Run; 4] = [
        ("before a fixed one", many, |_, _| InsertAt::Before(3)),
        ("behind a fixed one", many, |_, _| InsertAt::After(2)),
        ("behind the last one", many, |_, last| InsertAt::After(last)),
        // The worst case: each insert leaves most free ranks on the side that the next insert does
        // not use.
        ("on both sides in turn", 3_000, |id, last| match id % 2 {
            0 => InsertAt::After(last),
            _ => InsertAt::Before(last),
        }),
    ];
    for (what, count, place) in runs {
        let (each, longest) = inserts(what, count, |id| place(id, last(id)));
        let limit = if count == 3_000 && what.contains("both") { 10.0 } else { 3.2 };
        assert!(each < limit && longest <= 16, "{what}: {each} {longest}");
    }
}

/// Puts the record and the child entry of a node directly.
fn put_by_hand(txn: &mut impl Writer, id: NodeId, parent: Option<NodeId>, rank: &[u8]) {
    let stored = [&[1, 1, b'x'][..], &[0]].concat();
    let has_parent = if parent.is_some() { 0x80 } else { 0 };
    let mut record = vec![1, rank.len() as u8 | has_parent];
    record.extend(parent.iter().flat_map(|parent| parent.to_be_bytes()));
    record.extend_from_slice(rank);
    record.extend_from_slice(&stored);
    txn.put(&space().pack(&("node", id)), &record).unwrap();
    txn.put(&space().pack(&("child", parent, rank, id)), &stored).unwrap();
}

fn order_below(tree: &AdjacencyList<u32>, store: &impl Store, parent: NodeId) -> Vec<NodeId> {
    let snapshot = store.snapshot().unwrap();
    let children = tree.children(&snapshot, parent).unwrap();
    children.map(|child| child.unwrap().id()).collect()
}

/// Writers without isolation may assign one rank twice, for example after a merge of two stores.
#[test]
fn between_equal_ranks_there_is_room_all_the_same() {
    let tree = tree();
    for (place, wanted) in [
        (InsertAt::After(12), vec![11, 12, 20, 13, 14]),
        (InsertAt::Before(12), vec![11, 20, 12, 13, 14]),
        (InsertAt::at(1, 3), vec![11, 12, 13, 20, 14]),
    ] {
        let store = filled(Memory::new(), &tree, &[fan(1, 0)]);
        store
            .transact(|txn| {
                (11..=14).for_each(|id| put_by_hand(txn, id, Some(1), &[0x80]));
                txn.add(&space().pack(&("count", 1)), 4)
            })
            .unwrap();
        assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
        assert_eq!(order_below(&tree, &store, 1), [11, 12, 13, 14]);
        store.transact(|txn| tree.insert(txn, 20, "new", &0, place)).unwrap();
        assert_eq!(order_below(&tree, &store, 1), wanted, "{place:?}");
        assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
    }
    // An invalid rank is replaced as well.
    let store = filled(Memory::new(), &tree, &[fan(1, 0)]);
    store
        .transact(|txn| {
            put_by_hand(txn, 11, Some(1), b"");
            put_by_hand(txn, 12, Some(1), &[0xFF, 0]);
            txn.add(&space().pack(&("count", 1)), 2)?;
            tree.insert(txn, 20, "new", &0, InsertAt::After(11))?;
            tree.insert(txn, 21, "new", &0, InsertAt::last(1))
        })
        .unwrap();
    assert_eq!(order_below(&tree, &store, 1), [11, 20, 12, 21]);
    assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
}

#[test]
fn whatever_is_lost_or_damaged_is_found_and_repaired() {
    let tree = tree().with_unique_names();
    let trees = [fan(1, 4), fan(10, 2).with(fan(20, 3))];
    let store = filled(Memory::new(), &tree, &trees);
    let whole = dump_all(&store);
    for (key, value) in &whole {
        for damaged in [None, Some([value, &b"?"[..]].concat()), Some(Vec::new())] {
            if damaged.as_ref() == Some(value) {
                continue;
            }
            store
                .transact(|txn| match &damaged {
                    Some(damaged) => txn.put(key, damaged),
                    None => txn.delete(key),
                })
                .unwrap();
            let shown = keyloom::key::display(key);
            assert_ne!(findings(&tree, &store.snapshot().unwrap()), [""; 0], "{shown}");
            assert!(tree.repair(&store).unwrap().changed() > 0, "{shown}: {damaged:?}");
            let left = findings(&tree, &store.snapshot().unwrap());
            // Each node is stored twice: the record can be restored from the child entry, and the
            // reverse.
            assert_eq!((left, dump_all(&store)), (vec![], whole.clone()), "{shown}");
            store
                .transact(|txn| {
                    txn.delete_range(keyloom::KeyRange::all())?;
                    whole.iter().try_for_each(|(key, value)| txn.put(key, value))
                })
                .unwrap();
        }
    }
    // The name of a node is free below another parent. Another name entry below the same parent
    // does not belong to the node.
    let own = whole[&space().pack(&("name", 1, "n000002"))[..]].clone();
    for stray in [("name", 1, "n000099"), ("name", 10, "n000002")] {
        store.transact(|txn| txn.put(&space().pack(&stray), &own)).unwrap();
        let found = findings(&tree, &store.snapshot().unwrap());
        assert!(found.len() == 1 && found[0].contains(stray.2), "{found:?}");
        assert_eq!(tree.repair(&store).unwrap().changed(), 1);
        assert_eq!(dump_all(&store), whole);
    }
    // A repair deletes unreferenced entries of the tree, but no foreign entries.
    let foreign = [
        space().pack(&("child", 1, "no rank", 2)),
        space().pack(&("child", Some(1_u64), &[0x90_u8][..], 99_u64)),
        space().pack(&("count", 99)),
        space().pack(&("name", 1, "nobody")),
        space().pack(&("else",)),
    ];
    store.transact(|txn| foreign.iter().try_for_each(|key| txn.put(key, b"\0"))).unwrap();
    assert_eq!(findings(&tree, &store.snapshot().unwrap()).len(), foreign.len());
    assert_eq!(tree.repair(&store).unwrap().changed(), foreign.len() as u64 - 1);
    let mut left = whole.clone();
    left.insert(space().pack(&("else",)).to_vec(), b"\0".to_vec());
    assert_eq!(dump_all(&store), left);
    assert_eq!(findings(&tree, &store.snapshot().unwrap()).len(), 1);
    assert_eq!(tree.repair(&store).unwrap().changed(), 0);
}

#[test]
fn repair_restores_lost_records_from_the_child_entries() {
    let tree = tree().with_unique_names();
    let trees = [fan(1, 4), fan(10, 2).with(fan(20, 3))];
    let store = filled(Memory::new(), &tree, &trees);
    let whole = dump_all(&store);
    store.transact(|txn| txn.delete_range(space().child("node").range())).unwrap();
    assert_eq!(tree.repair(&store).unwrap().changed(), 12);
    assert_eq!(dump_all(&store), whole);
    // If the child entry is damaged as well, the node keeps its position, and its value is reported
    // as lost.
    let record = space().pack(&("node", 4));
    let entry = whole.iter().find(|(key, _)| {
        let unpacked = space().child("child").unpack::<(Option<NodeId>, Vec<u8>, NodeId)>(key);
        unpacked.is_ok_and(|(_, _, id)| id == 4)
    });
    let (entry, _) = entry.unwrap();
    store
        .transact(|txn| {
            txn.put(&record, b"\0")?;
            txn.put(entry, b"\0")
        })
        .unwrap();
    tree.repair(&store).unwrap();
    let found = findings(&tree, &store.snapshot().unwrap());
    assert!(found.len() == 1 && found[0].contains("\"node\", 4) has a value"), "{found:?}");
    let snapshot = store.snapshot().unwrap();
    assert_eq!(tree.parent(&snapshot, 4).unwrap(), Some(1));
    assert_eq!(tree.get(&snapshot, 4).unwrap().unwrap().name().unwrap(), "lost 4");
    drop(snapshot);
    store.transact(|txn| tree.set_value(txn, 4, &4)).unwrap();
    assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
}

#[test]
fn an_inner_node_of_which_only_a_key_is_left_keeps_its_children() {
    let tree = tree();
    let store = filled(Memory::new(), &tree, &[fan(1, 2).with(fan(20, 3))]);
    let entry = space().child("child").range_of(&(Some(1_u64),));
    let entry = dump(&store.snapshot().unwrap(), entry).into_keys().next_back().unwrap();
    store
        .transact(|txn| {
            txn.delete(&space().pack(&("node", 20)))?;
            txn.put(&entry, b"\0damaged")
        })
        .unwrap();
    tree.repair(&store).unwrap();
    let snapshot = store.snapshot().unwrap();
    let below: Vec<_> = tree.descendants(&snapshot, 20, ..).unwrap().collect();
    assert!(below.len() == 4 && below.iter().all(Result::is_ok));
    assert_eq!(findings(&tree, &snapshot).len(), 1);
}

#[test]
fn a_stray_child_entry_that_closes_a_circle_ends_the_walk() {
    let tree = tree();
    let store = filled(Memory::new(), &tree, &[fan(1, 2).with(fan(20, 3).with(fan(30, 5)))]);
    let whole = dump_all(&store);
    let stray = space().pack(&("child", Some(30_u64), &[0x80_u8][..], 20_u64));
    store.transact(|txn| txn.put(&stray, b"\x01\0\0")).unwrap();
    let snapshot = store.snapshot().unwrap();
    let circle = TreeError::Broken { tree: space().to_string(), node: 20 };
    for from in [None, Some(1), Some(20)] {
        let last = tree.descendants(&snapshot, from, ..).unwrap().last().unwrap();
        assert_eq!(last.unwrap_err().downcast_ref(), Some(&circle), "{from:?}");
        assert!(tree.export(&snapshot, from).is_err() && tree.dot(&snapshot, from).is_err());
        assert!(tree.leaves(&snapshot, from).unwrap().any(|leaf| leaf.is_err()));
    }
    drop(snapshot);
    let copied = refused(&store, |txn| {
        AdjacencyList::<u32>::new(&Subspace::new("copy")).copy_from(txn, &tree)
    });
    assert_eq!(copied.downcast_ref(), Some(&circle));
    let deleted = refused(&store, |txn| tree.delete_subtree(txn, 1).map(drop));
    assert_eq!(deleted.downcast_ref(), Some(&circle));
    // The entry is one fault, named by its key, and the repair deletes it.
    let found = findings(&tree, &store.snapshot().unwrap());
    assert!(found.len() == 1 && found[0].contains("dangles"), "{found:?}");
    assert_eq!(tree.repair(&store).unwrap().changed(), 1);
    assert_eq!(dump_all(&store), whole);
}

#[test]
fn repair_batches_its_reads_and_obeys_the_limits_of_writes() {
    let tree = tree();
    let store = filled(Metered::new(Memory::new()), &tree, &[fan(1, 2_500)]);
    let whole = dump_all(&store);
    let (repaired, cost) = store.measure(|store| tree.repair(store).unwrap().changed());
    assert!(repaired == 0 && cost.round_trips <= 50, "{cost}");
    let mut limits = keyloom::Limits::etcd();
    limits.max_transaction_operations = Some(100);
    let small = Memory::builder().limits(limits).build();
    for some in whole.iter().collect::<Vec<_>>().chunks(50) {
        store_all(&small, some);
    }
    let records = space().child("node");
    let lost: Vec<_> = whole.keys().filter(|key| records.contains(key)).collect();
    for some in lost.chunks(50) {
        small.transact(|txn| some.iter().try_for_each(|key| txn.delete(key))).unwrap();
    }
    assert_eq!(tree.repair(&small).unwrap().changed(), 2_501);
    assert_eq!(dump_all(&small), whole);
}

fn store_all(store: &impl Store, entries: &[(&Vec<u8>, &Vec<u8>)]) {
    store.transact(|txn| entries.iter().try_for_each(|(key, value)| txn.put(key, value))).unwrap();
}

#[test]
fn a_value_that_does_not_decode_is_found() {
    let tree = tree();
    let store = filled(Memory::new(), &tree, &[fan(1, 1)]);
    let key = space().pack(&("node", 2));
    let record = store.snapshot().unwrap().get(&key).unwrap().unwrap().to_vec();
    // The value is the last byte of the record and of its child entry.
    store
        .transact(|txn| {
            for (key, value) in dump_all(&store) {
                if value.ends_with(&record[record.len() - 8..]) {
                    txn.put(&key, &value[..value.len() - 1])?;
                }
            }
            Ok(())
        })
        .unwrap();
    let found = findings(&tree, &store.snapshot().unwrap());
    let told = "has a value that does not decode; delete or replace it";
    assert_eq!(found, [format!(r#"the key ("tree", "node", 2) {told}"#)]);
    assert_eq!(tree.repair(&store).unwrap().changed(), 0);
    store.transact(|txn| tree.set_value(txn, 2, &7)).unwrap();
    assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
}

#[test]
fn before_an_error_no_inner_node_is_reported_as_a_leaf() {
    let tree = tree();
    let store = filled(Memory::new(), &tree, &[fan(1, 2)]);
    // The first child entry of node 2 is undecodable, so it is unknown whether the node has
    // children.
    store.transact(|txn| txn.put(&space().pack(&("child", 2, "no rank")), b"")).unwrap();
    let snapshot = store.snapshot().unwrap();
    let leaves: Vec<_> = tree.leaves(&snapshot, 1).unwrap().collect();
    assert!(leaves.first().unwrap().is_err(), "{leaves:?}");
}

#[test]
fn nodes_without_a_way_up_are_found_and_become_roots() {
    let tree = tree();
    let store = filled(Memory::new(), &tree, &[fan(1, 2)]);
    store
        .transact(|txn| {
            put_by_hand(txn, 20, Some(99), &[0x80]);
            put_by_hand(txn, 21, Some(20), &[0x80]);
            put_by_hand(txn, 30, Some(32), &[0x80]);
            put_by_hand(txn, 31, Some(30), &[0x80]);
            put_by_hand(txn, 32, Some(31), &[0x80]);
            put_by_hand(txn, 33, Some(31), &[0x81]);
            put_by_hand(txn, 40, Some(40), &[0x80]);
            [20, 30, 31, 31, 32, 40]
                .iter()
                .try_for_each(|p| txn.add(&space().pack(&("count", p)), 1))
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let found = findings(&tree, &snapshot);
    let says = |node: u64, what: &str| {
        let key = format!("\"node\", {node})");
        found.iter().any(|found| found.contains(&key) && found.contains(what))
    };
    assert!(says(20, "has a parent that does not exist"), "{found:?}");
    assert!(says(30, "is below itself") && says(40, "is below itself"), "{found:?}");
    assert_eq!(found.len(), 3, "{found:?}");
    // Reads of a cycle end.
    for id in [30, 33, 40, 21] {
        let error = tree.ancestors(&snapshot, id).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(TreeError::Broken { .. })), "{error}");
    }
    let walk: Vec<_> = tree.descendants(&snapshot, 30, ..).unwrap().collect();
    assert!(walk.len() < 6 && walk.last().unwrap().is_err());
    drop(snapshot);
    assert!(store.transact(|txn| tree.move_to(txn, 2, InsertAt::last(33))).is_err());

    tree.repair(&store).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(findings(&tree, &snapshot), [""; 0]);
    let roots = tree.children(&snapshot, None).unwrap();
    let roots: Vec<NodeId> = roots.map(|root| root.unwrap().id()).collect();
    assert_eq!(roots.first(), Some(&1));
    assert_eq!(
        roots.iter().collect::<std::collections::BTreeSet<_>>(),
        [1, 20, 30, 40].iter().collect()
    );
    assert_eq!(tree.descendant_count(&snapshot, None).unwrap(), 10);
}

#[test]
fn a_record_of_a_newer_format_is_refused_and_named() {
    let tree = tree();
    let store = filled(Memory::new(), &tree, &[fan(1, 1)]);
    store.transact(|txn| txn.put(&space().pack(&("node", 1)), &[2, 0])).unwrap();
    let snapshot = store.snapshot().unwrap();
    let error = tree.get(&snapshot, 1).unwrap_err();
    let Error::At { source, .. } = &error else { panic!("{error:?}") };
    assert!(matches!(**source, Error::NewerFormat { found: 2, supported: 1, .. }), "{error}");
    drop(snapshot);
    // A record that cannot be read is one fault: the child entry contains the same data.
    let key = KeyBuf::from_slice(&space().pack(&("node", 1)));
    let named = Inconsistency::new(key, Rule::Foreign);
    let found = crate::damage::faults(&tree, &store).unwrap();
    assert!(found.contains(&named), "{found:?}");
    tree.repair(&store).unwrap();
    assert_eq!(crate::damage::faults(&tree, &store).unwrap(), []);
    assert_eq!(tree.export(&store.snapshot().unwrap(), None).unwrap(), [fan(1, 1)]);
}

#[test]
fn a_name_too_long_for_a_key_is_refused() {
    let unique = tree().with_unique_names();
    let store = filled(Memory::new(), &unique, &[fan(1, 1)]);
    let long = "n".repeat(600);
    let is_too_long = |error: Error| {
        let found = error.downcast_ref();
        assert!(matches!(found, Some(TreeError::NameTooLong { limit: 511, .. })), "{error}");
        assert!(error.to_string().contains("shorten"), "{error}");
    };
    is_too_long(refused(&store, |txn| unique.insert(txn, 9, &long, &0, InsertAt::last(1))));
    is_too_long(refused(&store, |txn| unique.rename(txn, 2, &long)));
    let deep = [NestedNode::new(8, "short", 0).with(NestedNode::new(9, &*long, 0))];
    is_too_long(refused(&store, |txn| unique.import(txn, 1, &deep)));
    // Names that are not keys may be long.
    let plain = AdjacencyList::<u32>::new(&Subspace::new("plain"));
    store.transact(|txn| plain.insert(txn, 1, &long, &0, InsertAt::last(None))).unwrap();
    assert_eq!(plain.get(&store.snapshot().unwrap(), 1).unwrap().unwrap().name().unwrap(), long);
}

#[test]
fn concurrent_appends_below_one_parent_keep_each_writers_order() {
    let tree = tree();
    let store = filled(optimistic_memory(), &tree, &[fan(1, 0)]);
    std::thread::scope(|scope| {
        for writer in 1..=4_u64 {
            let (store, tree) = (&store, &tree);
            scope.spawn(move || {
                for n in 0..25 {
                    let id = writer * 1_000 + n;
                    store.transact(|txn| tree.insert(txn, id, "", &0, InsertAt::last(1))).unwrap();
                }
            });
        }
    });
    let order = order_below(&tree, &store, 1);
    assert_eq!(order.len(), 100);
    for writer in 1..=4 {
        let own = order.iter().filter(|id| **id / 1_000 == writer);
        assert!(own.is_sorted());
    }
    assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
}

#[test]
fn inserts_at_different_places_below_one_parent_do_not_conflict() {
    let tree = tree();
    let store = filled(optimistic_memory(), &tree, &[fan(1, 10)]);
    let (mut one, mut other) = (store.begin().unwrap(), store.begin().unwrap());
    tree.insert(&mut one, 20, "", &0, InsertAt::After(3)).unwrap();
    tree.insert(&mut other, 21, "", &0, InsertAt::After(8)).unwrap();
    keyloom::Transaction::commit(one).unwrap();
    keyloom::Transaction::commit(other).unwrap();
    assert_eq!(tree.child_count(&store.snapshot().unwrap(), 1).unwrap(), 12);
    assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
    // Two inserts at the same place conflict.
    let (mut one, mut other) = (store.begin().unwrap(), store.begin().unwrap());
    tree.insert(&mut one, 30, "", &0, InsertAt::After(3)).unwrap();
    tree.insert(&mut other, 31, "", &0, InsertAt::After(3)).unwrap();
    keyloom::Transaction::commit(one).unwrap();
    assert!(keyloom::Transaction::commit(other).unwrap_err().is_retryable());
}

#[test]
fn leaves_are_found_without_a_range_for_each() {
    let tree = tree();
    // Regions with cities, whose ids are larger than all others.
    let city = |region: u64, n: u64| NestedNode::new(1_000 + region * 100 + n, "city", 0);
    let region = |region: u64| {
        (0..100).fold(NestedNode::new(region, "region", 0), |r, n| r.with(city(region, n)))
    };
    let trees =
        [(2..12).fold(NestedNode::new(1, "country", 0), |country, n| country.with(region(n)))];
    let store = filled(Metered::new(Memory::new()), &tree, &trees);
    let snapshot = store.snapshot().unwrap();
    let (count, cost) = store.measure(|_| tree.descendants(&snapshot, 1, ..).unwrap().count());
    assert_eq!(count, 1_011);
    // One range per parent, one range per region to find its children, and two or three per region
    // for its cities.
    assert!(cost.ranges <= 11 + 11 + 30, "{cost}");
}

/// A store in memory with the limits of etcd: some thousand writes per transaction.
fn as_etcd() -> Memory {
    Memory::builder().limits(keyloom::Limits::etcd()).build()
}

/// Adds a root with `nodes` nodes below it, a thousand per transaction, with ids from 10 on.
fn grow(store: &Memory, tree: &AdjacencyList<u32>, nodes: u64) {
    store.transact(|txn| tree.insert(txn, 10, "ten", &0, InsertAt::last(None))).unwrap();
    let mut last = 10;
    while last < nodes {
        // A wide tree, with a further level below every thousandth node.
        let some: Vec<_> = (last + 1..last + 1_000).map(|id| fan(id, 0)).collect();
        store.transact(|txn| tree.import(txn, last, &some)).unwrap();
        last += 999;
    }
}

#[test]
fn a_subtree_larger_than_a_transaction_is_deleted_in_steps() {
    let tree = tree();
    let store = as_etcd();
    store.transact(|txn| tree.import(txn, None, &[fan(1, 3)])).unwrap();
    let before = dump_all(&store);
    let nodes = many(100_000).max(10_000);
    grow(&store, &tree, nodes);
    let at_once = store.transact(|txn| tree.delete_subtree(txn, 10).map(drop));
    assert!(at_once.unwrap_err().is_batch_too_large());
    let mut transactions = 0;
    let done = tree
        .delete_in_steps(&store, 10, |_| {
            transactions += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    println!("{nodes} nodes: {} keys in {transactions} transactions", done.changed());
    assert!(done.finished);
    assert_eq!(dump_all(&store), before);
}

#[test]
fn a_deletion_that_stops_anywhere_is_hidden_and_continues() {
    let tree = tree().with_unique_names();
    let trees =
        [fan(1, 3), fan(10, 5).with(fan(100, 700).with(fan(1_000, 800).with(fan(3_000, 4))))];
    let store = filled(Memory::new(), &tree, &trees[..1]);
    let before = dump_all(&store);
    store.transact(|txn| tree.import(txn, None, &trees[1..])).unwrap();
    let stop = |_: &Progress| ControlFlow::Break(());
    let mut done = tree.delete_in_steps(&store, 10, stop).unwrap();
    let mut stops = 0;
    while !done.finished {
        let snapshot = store.snapshot().unwrap();
        assert_eq!(findings(&tree, &snapshot), [""; 0]);
        assert!(tree.get(&snapshot, 10).unwrap().is_none());
        assert_eq!(tree.export(&snapshot, None).unwrap(), trees[..1]);
        assert!(tree.children(&snapshot, 10).is_err());
        assert!(tree.child_count(&snapshot, 10).is_err());
        drop(snapshot);
        if stops == 0 {
            // The id is in use, and nothing can be inserted below it.
            let in_steps = TreeError::InSteps { tree: space().to_string(), node: 10 };
            let again = refused(&store, |txn| tree.insert(txn, 10, "x", &0, InsertAt::last(None)));
            assert_eq!(again.downcast_ref(), Some(&in_steps));
            let again = refused(&store, |txn| tree.import(txn, None, &[fan(10, 0)]));
            assert_eq!(again.downcast_ref(), Some(&in_steps));
            let below = refused(&store, |txn| tree.insert(txn, 9, "x", &0, InsertAt::last(10)));
            assert!(matches!(below.downcast_ref(), Some(TreeError::UnknownNode { node: 10, .. })));
        }
        stops += 1;
        done = tree.resume(&store, stop).unwrap();
    }
    assert!(stops >= 4, "{stops}");
    assert_eq!(dump_all(&store), before);
    // A repair also continues the deletion, and deletes a mark without a deletion.
    store.transact(|txn| tree.import(txn, None, &trees[1..])).unwrap();
    let whole = dump_all(&store);
    store.transact(|txn| txn.put(&space().pack(&("delete", 100)), b"")).unwrap();
    assert_eq!(findings(&tree, &store.snapshot().unwrap()).len(), 1);
    assert_eq!(tree.repair(&store).unwrap().changed(), 1);
    assert_eq!(dump_all(&store), whole);
    tree.delete_in_steps(&store, 10, stop).unwrap();
    store.transact(|txn| txn.delete(&space().pack(&("delete", 10)))).unwrap();
    assert_ne!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
    tree.repair(&store).unwrap();
    assert_eq!(dump_all(&store), before);
}

#[test]
fn a_deletion_in_steps_leaves_what_only_a_stray_entry_names() {
    let tree = tree();
    let store = filled(Memory::new(), &tree, &[fan(1, 3), fan(10, 5)]);
    let stray = space().pack(&("child", Some(10_u64), &[0x90_u8][..], 1_u64));
    store.transact(|txn| txn.put(&stray, b"\x01\0\0")).unwrap();
    tree.delete_in_steps(&store, 10, |_| ControlFlow::Continue(())).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(findings(&tree, &snapshot), [""; 0]);
    assert_eq!(tree.export(&snapshot, None).unwrap(), [fan(1, 3)]);
}
