//! Labels under sustained appends, loads and moves, on stores with few writes per transaction.

use std::ops::ControlFlow;

use keyloom::{Fault, Faulty, Limits, Memory, Metered, Reader, Store, Writer};
use keyloom_tables::Progress;
use keyloom_trees::{InsertAt, NestedNode, NestedSets, NodeId, Tree, TreeError};

use super::{faults, insert, preorder, tree};
use keyloom_testing::laws::dump_all;

const OPTIMIZED: bool = !cfg!(debug_assertions);

/// The number of children appended to one of several roots, in transactions of 1,000. About 10,000
/// would use up labels of 64 bits.
const APPENDED: u64 = if OPTIMIZED { 1_000_000 } else { 12_000 };
/// The number of loaded roots with 199 children each. 221 of them would use up labels of 64 bits.
const LOADS: u64 = if OPTIMIZED { 10_000 } else { 300 };
/// The number of moves in steps, and of nodes per move. About 30 moves would use up labels of 64
/// bits.
const MOVES: u64 = if OPTIMIZED { 1_000 } else { 45 };
const MOVED: u64 = if OPTIMIZED { 4_000 } else { 600 };

fn with_limits(limits: Limits) -> Memory {
    Memory::builder().limits(limits).build()
}

/// A store with this many writes per transaction.
fn with_operations(most: usize) -> Memory {
    let mut limits = Limits::etcd();
    limits.max_transaction_operations = Some(most);
    with_limits(limits)
}

fn is_no_room(error: &keyloom::Error) -> bool {
    matches!(error.downcast_ref(), Some(TreeError::NoRoom { .. }))
}

#[test]
fn appended_nodes_write_two_keys_each_beyond_64_bits() {
    let (tree, store) = (tree(), Metered::new(Memory::new()));
    for root in 0..2 {
        insert(&tree, store.inner(), root, InsertAt::last(None));
    }
    let (mut next, mut worst) = (0, 0);
    while next < APPENDED {
        let ids = next..next + 1_000;
        let append = |store: &Metered<Memory>| {
            store.transact(|txn| {
                ids.clone()
                    .try_for_each(|id| tree.insert(txn, id + 2, "node", &0, InsertAt::last(1)))
            })
        };
        let (appended, cost) = store.measure(append);
        appended.unwrap();
        worst = worst.max(cost.keys_written);
        next += 1_000;
    }
    println!("{next} nodes appended, at most {worst} keys written by 1,000 of them");
    assert_eq!(worst, 2_000);
    assert_eq!(tree.descendant_count(&store.snapshot().unwrap(), 1).unwrap(), next);
}

#[test]
fn roots_loaded_one_by_one_are_never_refused() {
    for limits in [Limits::etcd(), Limits::foundationdb()] {
        let (tree, store) = (tree(), Metered::new(with_limits(limits)));
        let mut worst = 0;
        for root in 0..LOADS {
            let first = 200 * root;
            let mut loaded = NestedNode::new(first, "root", 0);
            loaded.children =
                (1..200).map(|child| NestedNode::new(first + child, "child", 0)).collect();
            let trees = std::slice::from_ref(&loaded);
            let (done, cost) =
                store.measure(|store| store.transact(|txn| tree.import(txn, None, trees)));
            done.unwrap();
            worst = worst.max(cost.keys_written);
        }
        println!("{LOADS} loads of 200 nodes, at most {worst} keys written by one");
        assert_eq!(worst, 400);
    }
}

/// Roots 0 and 1; the second root has the children 2 and 3 with large subtrees.
fn with_large_subtrees(store: &impl Store) -> NestedSets<u32> {
    let tree = tree();
    let load = |parent: Option<NodeId>, trees: &[NestedNode<u32>]| {
        store.transact(|txn| tree.import(txn, parent, trees)).unwrap();
    };
    for root in 0..2 {
        load(None, &[NestedNode::new(root, "root", 0)]);
    }
    for large in 2..4 {
        load(Some(1), &[NestedNode::new(large, "large", 0)]);
        let nodes: Vec<_> =
            (1..MOVED).map(|n| NestedNode::new(large * 100_000 + n, "node", 0)).collect();
        for some in nodes.chunks(100) {
            load(Some(large), some);
        }
    }
    tree
}

#[test]
fn moves_in_steps_are_never_refused() {
    let etcd = if OPTIMIZED { with_limits(Limits::etcd()) } else { with_operations(1_000) };
    for store in [etcd, with_limits(Limits::foundationdb())] {
        let tree = with_large_subtrees(&store);
        for n in 0..MOVES {
            // Each in turn becomes the last child, in some moves of another root.
            let place = InsertAt::last(u64::from(n % 100 != 99));
            let done = tree.move_in_steps(&store, 2 + n % 2, place, |_| ControlFlow::Continue(()));
            let done = done.unwrap_or_else(|error| panic!("move {n}: {error}"));
            assert!(done.finished);
        }
        assert_eq!(faults(&tree, &store), Vec::<String>::new());
        let snapshot = store.snapshot().unwrap();
        for large in [2, 3] {
            assert_eq!(tree.descendant_count(&snapshot, large).unwrap(), MOVED - 1);
        }
    }
}

#[test]
fn inserts_at_one_spot_continue_after_room_is_made_in_steps() {
    let most = if OPTIMIZED { 4_096 } else { 300 };
    let (tree, store) = (tree(), Metered::new(with_operations(most)));
    let (mut refused, mut steps, mut worst) = (0_u64, 0_u64, 0);
    let count = if OPTIMIZED { 100_000 } else { 3_000 };
    for id in 0..count {
        let place = if id == 0 { InsertAt::Last(None) } else { InsertAt::Before(0) };
        let insert =
            |store: &Metered<Memory>| store.transact(|txn| tree.insert(txn, id, "node", &0, place));
        let (inserted, cost) = store.measure(insert);
        worst = worst.max(cost.keys_written);
        if let Err(error) = inserted {
            assert!(is_no_room(&error), "{error}");
            assert_eq!(cost.keys_written, 0, "what is refused has written nothing");
            refused += 1;
            let made = tree.make_room(&store, "node", place, 1, |_| {
                steps += 1;
                ControlFlow::Continue(())
            });
            assert!(made.unwrap().finished);
            insert(&store).unwrap();
        }
    }
    println!(
        "{count} inserts before one node: {refused} refused, {steps} steps, {worst} keys by one"
    );
    assert!(refused > 0 && steps > refused && worst <= most as u64 / 2 + 2);
    assert_eq!(faults(&tree, store.inner()), Vec::<String>::new());
}

#[test]
fn a_move_makes_room_in_steps_before_it_begins() {
    let store = with_operations(300);
    let tree = tree();
    // 1,500 nodes as close as possible before node 0.
    for id in 0..1_500 {
        let place = if id == 0 { InsertAt::Last(None) } else { InsertAt::Before(0) };
        let insert = || store.transact(|txn| tree.insert(txn, id, "node", &0, place));
        if insert().is_err() {
            tree.make_room(&store, "node", place, 1, |_| ControlFlow::Continue(())).unwrap();
            insert().unwrap();
        }
    }
    let mut relabelled = 0;
    // Each node is moved before node 0, until a move finds no label. This move stops in the middle
    // of a relabelling, and is called again.
    for id in 1..1_500 {
        loop {
            let stop = |_: &_| ControlFlow::Break(());
            let done = tree.move_in_steps(&store, id, InsertAt::Before(0), stop).unwrap();
            let snapshot = store.snapshot().unwrap();
            assert_eq!(tree.descendant_count(&snapshot, None).unwrap(), 1_500);
            if done.finished {
                break;
            }
            // A move that has not begun has no move record and cannot be resumed.
            let has_begun = snapshot.get(&tree.space().pack("move")).unwrap().is_some();
            drop(snapshot);
            let resumed = tree.resume(&store, |_| ControlFlow::Continue(())).unwrap();
            assert!(resumed.finished && done.written > 0);
            assert_eq!(resumed.changed() > 0, has_begun);
            relabelled += usize::from(!has_begun);
        }
        if relabelled > 5 {
            break;
        }
    }
    assert!(relabelled > 5, "{relabelled}");
    assert_eq!(faults(&tree, &store), Vec::<String>::new());
}

#[test]
fn a_fault_or_a_change_between_steps_leaves_the_same_tree() {
    let sample = with_operations(60);
    let tree = tree();
    let place = InsertAt::Before(0);
    // Inserts until an insert finds no label.
    let mut id = 0;
    loop {
        let at = if id == 0 { InsertAt::Last(None) } else { place };
        let inserted = sample.transact(|txn| tree.insert(txn, id, "node", &0, at));
        if inserted.is_err_and(|error| is_no_room(&error)) {
            break;
        }
        id += 1;
    }
    let before = preorder(&tree, &sample.snapshot().unwrap());
    let mut n = 0;
    loop {
        let store = Memory::builder().limits(sample.limits()).build();
        for some in dump_all(&sample).into_iter().collect::<Vec<_>>().chunks(50) {
            store
                .transact(|txn| some.iter().try_for_each(|(key, value)| txn.put(key, value)))
                .unwrap();
        }
        let faulty = Faulty::new(store.clone());
        faulty.fail_at(n, Fault::Error);
        let made = tree.make_room(&faulty, "node", place, 1, |_| ControlFlow::Continue(()));
        faulty.clear_fault();
        assert_eq!(preorder(&tree, &store.snapshot().unwrap()), before, "operation {n}");
        assert_eq!(faults(&tree, &store), Vec::<String>::new(), "operation {n}");
        // Another writer changes the window between two steps.
        let other = InsertAt::After(id / 2);
        if n % 2 == 0 && store.transact(|txn| tree.insert(txn, 90_000, "other", &0, other)).is_ok()
        {
            store.transact(|txn| tree.delete_subtree(txn, 90_000)).unwrap();
        }
        let finished = tree.make_room(&store, "node", place, 1, |_| ControlFlow::Continue(()));
        assert!(finished.unwrap().finished);
        store.transact(|txn| tree.insert(txn, id, "node", &0, place)).unwrap();
        if made.is_ok() {
            break;
        }
        n += if OPTIMIZED { 1 } else { 5 };
    }
    assert!(n > 20, "{n}");
}

/// A tree in which an insert before node 0 finds no label, and the number of its nodes.
fn without_room(store: &impl Store) -> (NestedSets<u32>, NodeId) {
    let tree = tree();
    for id in 0.. {
        let place = if id == 0 { InsertAt::Last(None) } else { InsertAt::Before(0) };
        let inserted = store.transact(|txn| tree.insert(txn, id, "node", &0, place));
        if inserted.is_err_and(|error| is_no_room(&error)) {
            return (tree, id);
        }
    }
    unreachable!()
}

#[test]
fn room_for_more_nodes_than_a_tree_takes_is_refused() {
    let store = with_operations(60);
    let (tree, id) = without_room(&store);
    let make = |nodes| {
        let go_on = |_: &Progress| ControlFlow::Continue(());
        tree.make_room(&store, "node", InsertAt::Before(0), nodes, go_on)
    };
    for nodes in [u64::MAX, u64::MAX / 2 + 1, (1 << 31) + 1, 1 << 31] {
        let error = make(nodes).unwrap_err();
        let limit = matches!(error.downcast_ref(), Some(TreeError::TooManyNodes { .. }));
        assert!(limit, "{nodes}: {error}");
    }
    // The maximum number of nodes, without a label for each in memory.
    let nodes = (1 << 31) - id;
    assert!(make(nodes).unwrap().finished);
    assert_eq!(make(nodes).unwrap(), Progress::complete());
    assert_eq!(faults(&tree, &store), Vec::<String>::new());
}

#[test]
fn room_is_planned_again_and_progress_reports_it() {
    let store = with_operations(60);
    let (tree, id) = without_room(&store);
    let mut reported = Vec::new();
    let made = tree.make_room(&store, "node", InsertAt::Before(0), 1, |progress| {
        if reported.is_empty() {
            // Nodes with planned labels are deleted.
            for other in (1..id).step_by(2) {
                store.transact(|txn| tree.delete_subtree(txn, other)).unwrap();
            }
        }
        reported.push(progress.changed());
        ControlFlow::Continue(())
    });
    assert!(made.unwrap().finished);
    let replans = reported.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(replans > 0, "{reported:?}");
    assert_eq!(faults(&tree, &store), Vec::<String>::new());
}

#[test]
fn room_beside_a_label_that_two_rows_have_is_refused() {
    let store = with_operations(60);
    let (tree, _) = without_room(&store);
    let rows = dump_all(&store);
    let prefix = tree.space().child("left").prefix().to_vec();
    let rows: Vec<_> = rows.into_iter().filter(|(key, _)| key.starts_with(&prefix)).collect();
    let (damaged, next) = (&rows[rows.len() - 4], &rows[rows.len() - 3]);
    let (_, label): (String, u128) = tree.space().unpack(&next.0).unwrap();
    let mut row = damaged.1.clone();
    row[..16].copy_from_slice(&label.to_be_bytes());
    store.transact(|txn| txn.put(&damaged.0, &row)).unwrap();
    let go_on = |_: &Progress| ControlFlow::Continue(());
    let error = tree.make_room(&store, "node", InsertAt::Before(0), 1, go_on).unwrap_err();
    assert!(error.to_string().contains("check and repair"), "{error}");
}

#[test]
fn inserts_of_long_values_find_room_as_long_as_one_window_fits() {
    let tree = NestedSets::<String>::new(&keyloom::Subspace::new("nested sets"));
    let store = with_limits(Limits::etcd());
    let value = "v".repeat(850);
    for id in 0..500 {
        let place = if id == 0 { InsertAt::Last(None) } else { InsertAt::Before(0) };
        let inserted = store.transact(|txn| tree.insert(txn, id, "node", &value, place));
        inserted.unwrap_or_else(|error| panic!("insert {id}: {error}"));
    }
}
