//! Moves and deletions in steps: readers always see the old tree or the new one.

use std::ops::ControlFlow;

use keyloom::{Fault, Faulty, Limits, Memory, Metered, Order, Reader, Store, Writer};
use keyloom_tables::{Progress, in_order};
use keyloom_trees::{InsertAt, NestedNode, NestedSets, NodeId, Tree, TreeError};

use super::damage::row;
use super::{bushy, faults, insert, preorder, tree};
use keyloom_testing::laws::{dump_all, refused};

/// A store with a low limit of writes per transaction.
fn small() -> Memory {
    let mut limits = Limits::etcd();
    limits.max_transaction_operations = Some(20);
    Memory::builder().limits(limits).build()
}

/// Two roots, 0 and 100, with subtrees of 13 nodes below 1 and 101.
fn fill(tree: &NestedSets<u32>, store: &impl Store) {
    for root in [0, 100] {
        insert(tree, store, root, InsertAt::last(None));
        let NestedNode { id, children, .. } = bushy(&mut { root + 1 }, 3, 3);
        insert(tree, store, id, InsertAt::last(root));
        for child in children {
            store.transact(|txn| tree.import(txn, id, std::slice::from_ref(&child))).unwrap();
        }
    }
}

/// The results of all tree queries.
fn answers(tree: &NestedSets<u32>, reader: &impl Reader) -> Vec<String> {
    let all = preorder(tree, reader);
    let mut answers = vec![format!("{all:?}")];
    for id in 0..120 {
        let found = tree.get(reader, id).unwrap().map(|node| node.name().unwrap().to_string());
        answers.push(format!("{id}: {found:?}"));
        if found.is_none() {
            continue;
        }
        let children = |order| -> Vec<NodeId> {
            tree.children(reader, in_order(id, order))
                .unwrap()
                .map(|child| child.unwrap().id())
                .collect()
        };
        let sibling = |order| tree.sibling(reader, id, order).unwrap().map(|node| node.id());
        let above: Vec<NodeId> =
            tree.ancestors(reader, id).unwrap().iter().map(|n| n.id()).collect();
        answers.push(format!("{:?} {:?}", children(Order::Ascending), children(Order::Descending)));
        answers.push(format!("{:?} {:?}", sibling(Order::Ascending), sibling(Order::Descending)));
        answers.push(format!("{above:?} {}", tree.descendant_count(reader, id).unwrap()));
        answers.push(format!("{:?}", tree.lowest_common_ancestor(reader, 5, id).ok()));
    }
    answers
}

/// Runs work in steps, interrupts the work after each transaction, and checks the tree each time.
fn one_by_one(
    tree: &NestedSets<u32>,
    store: &Memory,
    begin: impl Fn(&Memory, &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Progress,
    at_once: impl Fn(&Memory),
) {
    let before = answers(tree, &store.snapshot().unwrap());
    let other = Memory::new();
    fill(tree, &other);
    at_once(&other);
    let after = answers(tree, &other.snapshot().unwrap());
    assert_ne!(before, after);
    let mut switched = false;
    let mut transactions = 1;
    let mut stop = |_: &Progress| ControlFlow::Break(());
    let mut progress = begin(store, &mut stop);
    loop {
        let now = answers(tree, &store.snapshot().unwrap());
        switched |= now == after;
        assert_eq!(now, if switched { after.clone() } else { before.clone() }, "{progress:?}");
        assert_eq!(faults(tree, store), Vec::<String>::new(), "{progress:?}");
        if progress.finished {
            break;
        }
        progress = tree.resume(store, stop).unwrap();
        transactions += 1;
    }
    assert!(switched && transactions >= 3, "{transactions} transactions");
    assert_eq!(store.snapshot().unwrap().get(&tree.space().pack("move")).unwrap(), None);
}

#[test]
fn interrupted_move_shows_the_old_tree_or_the_new_one() {
    for place in [
        InsertAt::last(100),
        InsertAt::first(103),
        InsertAt::Before(101),
        InsertAt::last(None),
        InsertAt::first(None),
    ] {
        let (tree, store) = (tree(), small());
        fill(&tree, &store);
        one_by_one(
            &tree,
            &store,
            |store, progress| tree.move_in_steps(store, 1, place, progress).unwrap(),
            |store| store.transact(|txn| tree.move_to(txn, 1, place)).unwrap(),
        );
    }
}

#[test]
fn interrupted_deletion_shows_the_old_tree_or_the_new_one() {
    let (tree, store) = (tree(), small());
    fill(&tree, &store);
    one_by_one(
        &tree,
        &store,
        |store, progress| tree.delete_in_steps(store, 1, progress).unwrap(),
        |store| assert_eq!(store.transact(|txn| tree.delete_subtree(txn, 1)).unwrap(), 13),
    );
}

#[test]
fn what_is_too_large_for_one_transaction_moves_in_steps() {
    let (tree, store) = (tree(), small());
    fill(&tree, &store);
    let error = store.transact(|txn| tree.move_to(txn, 1, InsertAt::last(100))).unwrap_err();
    assert!(error.is_batch_too_large(), "{error}");
    let go_on = |_: &Progress| ControlFlow::Continue(());
    let done = tree.move_in_steps(&store, 1, InsertAt::last(100), go_on).unwrap();
    assert!(done.finished);
    // The move record is written when the move begins, switches and removes, and once per page of
    // copied rows. For each of the 13 nodes, the new row and the old row are written, and the
    // position twice.
    assert_eq!((done.written, done.removed), (3 * 13 + 2 + 2, 13 + 1), "{done:?}");
    assert_eq!(tree.parent(&store.snapshot().unwrap(), 1).unwrap(), Some(100));
}

#[test]
fn a_walk_ends_at_a_damaged_row_while_steps_are_unfinished() {
    let (tree, store) = (tree(), small());
    fill(&tree, &store);
    let mut looks = 0;
    let look = |_: &Progress| {
        let (key, row) = row(&tree, &store, 0);
        store.transact(|txn| txn.put(&key, b"")).unwrap();
        let snapshot = store.snapshot().unwrap();
        let mut walk = tree.descendants(&snapshot, None, ..).unwrap();
        assert!(walk.by_ref().any(|visit| visit.is_err()));
        assert!(walk.next().is_none() && walk.next().is_none());
        store.transact(|txn| txn.put(&key, &row)).unwrap();
        looks += 1;
        ControlFlow::Continue(())
    };
    tree.move_in_steps(&store, 1, InsertAt::last(100), look).unwrap();
    assert!(looks > 2, "{looks}");
}

#[test]
fn move_in_steps_refuses_changes_of_its_subtree_only() {
    let (tree, store) = (tree(), small());
    fill(&tree, &store);
    insert(&tree, &store, 50, InsertAt::last(0));
    let in_steps = |result: keyloom::Result<()>| {
        let error = result.unwrap_err();
        assert!(
            matches!(error.downcast_ref(), Some(TreeError::InSteps { node: 1, .. })),
            "{error}"
        );
    };
    let mut looks = 0;
    let look = |_: &Progress| {
        looks += 1;
        let change = |body: &mut dyn FnMut(
            &mut <Memory as Store>::Transaction<'_>,
        ) -> keyloom::Result<()>| { store.transact(|txn| body(txn)) };
        // The condition also holds at the end, after the record was deleted.
        if store.snapshot().unwrap().get(&tree.space().pack("move")).unwrap().is_none() {
            return ControlFlow::Continue(());
        }
        in_steps(change(&mut |txn| tree.insert(txn, 900, "new", &0, InsertAt::last(2))));
        in_steps(change(&mut |txn| tree.rename(txn, 1, "other")));
        in_steps(change(&mut |txn| tree.set_value(txn, 3, &1)));
        in_steps(change(&mut |txn| tree.move_to(txn, 2, InsertAt::last(50))));
        in_steps(change(&mut |txn| tree.delete_subtree(txn, 2).map(drop)));
        in_steps(change(&mut |txn| tree.move_to(txn, 50, InsertAt::first(2))));
        in_steps(
            tree.move_in_steps(&store, 50, InsertAt::last(100), |_| ControlFlow::Continue(()))
                .map(drop),
        );
        insert(&tree, &store, 200 + looks, InsertAt::first(50));
        change(&mut |txn| tree.rename(txn, 0, "also above it")).unwrap();
        ControlFlow::Continue(())
    };
    tree.move_in_steps(&store, 1, InsertAt::last(102), look).unwrap();
    assert!(looks > 3);
    assert_eq!(faults(&tree, &store), Vec::<String>::new());
    assert_eq!(tree.descendant_count(&store.snapshot().unwrap(), 50).unwrap(), looks - 1);
    assert_eq!(tree.descendant_count(&store.snapshot().unwrap(), 102).unwrap(), 3 + 13);
}

#[test]
fn a_fault_at_any_operation_is_come_over_by_finishing() {
    let tree = tree();
    let sample = small();
    fill(&tree, &sample);
    let before = answers(&tree, &sample.snapshot().unwrap());
    let wanted = Memory::new();
    fill(&tree, &wanted);
    wanted.transact(|txn| tree.move_to(txn, 1, InsertAt::last(100))).unwrap();
    let after = answers(&tree, &wanted.snapshot().unwrap());
    let mut n = 0;
    loop {
        let store = small();
        fill(&tree, &store);
        let faulty = Faulty::new(store.clone());
        faulty.fail_at(n, Fault::Error);
        let outcome =
            tree.move_in_steps(&faulty, 1, InsertAt::last(100), |_| ControlFlow::Continue(()));
        faulty.clear_fault();
        let now = answers(&tree, &store.snapshot().unwrap());
        assert!(now == before || now == after, "at operation {n}");
        assert_eq!(faults(&tree, &store), Vec::<String>::new(), "at operation {n}");
        let had_begun =
            store.snapshot().unwrap().get(&tree.space().pack("move")).unwrap().is_some();
        tree.resume(&store, |_| ControlFlow::Continue(())).unwrap();
        let now = answers(&tree, &store.snapshot().unwrap());
        if had_begun || outcome.is_ok() {
            assert_eq!(now, after, "at operation {n}");
        }
        if outcome.is_ok() {
            break;
        }
        // There are hundreds of operations; after each one everything is checked.
        n += if cfg!(debug_assertions) { 7 } else { 1 };
    }
    assert!(n > 50, "{n}");
}

#[test]
fn an_id_is_free_again_when_its_deletion_has_ended() {
    let (tree, store) = (tree(), small());
    fill(&tree, &store);
    let begun = tree.delete_in_steps(&store, 1, |_| ControlFlow::Break(())).unwrap();
    assert_eq!(begun, Progress { written: 1, ..Progress::default() });
    let place = InsertAt::last(101);
    let before = dump_all(&store);
    let again = [NestedNode::new(300, "other", 0).with(NestedNode::new(2, "again", 0))];
    for error in [
        refused(&store, |txn| tree.insert(txn, 2, "again", &0, place)),
        refused(&store, |txn| tree.import(txn, 101, &again)),
    ] {
        let is_in_steps = matches!(error.downcast_ref(), Some(TreeError::InSteps { node: 1, .. }));
        assert!(is_in_steps, "{error}");
    }
    assert_eq!(dump_all(&store), before);
    let done = tree.resume(&store, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(done, Progress { removed: 2 * 13 + 1, ..Progress::complete() });
    insert(&tree, &store, 2, place);
    assert_eq!(faults(&tree, &store), Vec::<String>::new());
    assert_eq!(tree.parent(&store.snapshot().unwrap(), 2).unwrap(), Some(101));
}

#[test]
fn progress_is_reported_per_transaction_and_per_repaired_key() {
    let (tree, store) = (tree(), Metered::new(Memory::new()));
    fill(&tree, &store);
    let mut told = Vec::new();
    let (done, cost) = store.measure(|store| {
        let note = |progress: &Progress| {
            told.push(progress.changed());
            ControlFlow::Continue(())
        };
        tree.move_in_steps(store, 1, InsertAt::last(100), note).unwrap()
    });
    assert_eq!((done.changed(), told.len() as u64), (cost.keys_written, cost.commits));
    assert!(told[0] > 0 && told.is_sorted(), "{told:?}");
    // A repair finishes work that was begun, and counts it.
    tree.delete_in_steps(&store, 1, |_| ControlFlow::Break(())).unwrap();
    let (repaired, cost) = store.measure(|store| tree.repair(store).unwrap());
    assert_eq!((repaired.changed(), cost.keys_written), (2 * 13 + 1, 2 * 13 + 1));
}

#[test]
fn repair_deletes_a_damaged_record_of_steps_and_keeps_all_nodes() {
    let (tree, store) = (tree(), small());
    fill(&tree, &store);
    let whole = answers(&tree, &store.snapshot().unwrap());
    let record = tree.space().pack("move");
    store.transact(|txn| txn.put(&record, b"\x01?")).unwrap();
    let shown = r#"("nested sets", "move")"#;
    assert_eq!(faults(&tree, &store), [format!("the key {shown} has a wrong value")]);
    let snapshot = store.snapshot().unwrap();
    let text = tree.get(&snapshot, 1).unwrap_err().to_string();
    assert!(text.contains(shown) && text.contains("run repair, which deletes this key"), "{text}");
    drop(snapshot);
    assert_eq!(tree.repair(&store).unwrap().changed(), 1);
    assert_eq!(tree.repair(&store).unwrap().changed(), 0);
    assert_eq!(answers(&tree, &store.snapshot().unwrap()), whole);
    // A record of a newer program is left unchanged.
    store.transact(|txn| txn.put(&record, &[3])).unwrap();
    let before = dump_all(&store);
    let newer = tree.check_each(&store.snapshot().unwrap(), |_| ControlFlow::Continue(()));
    for error in [newer.unwrap_err(), tree.repair(&store).unwrap_err()] {
        assert!(error.to_string().contains("has format 3") && error.to_string().contains(shown));
    }
    assert_eq!(dump_all(&store), before);
}

/// Interrupts the work after each of its transactions, damages one key at a time, and repairs.
fn damaged_in_the_middle(
    begin: impl Fn(&NestedSets<u32>, &Memory, &mut dyn FnMut(&Progress) -> ControlFlow<()>),
) {
    let tree = tree();
    let (mut stop_after, mut repaired) = (1, 0);
    loop {
        let sample = small();
        fill(&tree, &sample);
        let mut left = stop_after;
        begin(&tree, &sample, &mut |_| {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let record = tree.space().pack("move").to_vec();
        let entries = dump_all(&sample);
        if !entries.contains_key(&record) {
            break;
        }
        for damaged in entries.keys() {
            let store = small();
            for some in entries.iter().collect::<Vec<_>>().chunks(10) {
                store
                    .transact(|txn| some.iter().try_for_each(|(key, value)| txn.put(key, value)))
                    .unwrap();
            }
            store.transact(|txn| txn.put(damaged, b"\x01cut")).unwrap();
            let what = format!("after {stop_after} transactions, {damaged:?} damaged");
            let written = tree.repair(&store);
            written.unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = faults(&tree, &store);
            assert!(found.iter().all(|fault| fault.contains("value")), "{what}: {found:?}");
            assert_eq!(tree.repair(&store).unwrap().changed(), 0, "{what}");
            let ids: Vec<_> = preorder(&tree, &store.snapshot().unwrap());
            // The deleted subtree has 13 nodes, and the damage destroys at most one more.
            assert!(ids.len() >= 28 - 13 - 1, "{what}: {ids:?}");
            repaired += 1;
        }
        stop_after += 1;
    }
    assert!(stop_after > 3 && repaired > 100, "{stop_after} {repaired}");
}

#[test]
fn damage_in_the_middle_of_a_move_in_steps_is_repaired() {
    damaged_in_the_middle(|tree, store, progress| {
        tree.move_in_steps(store, 1, InsertAt::last(100), progress).unwrap();
    });
}

#[test]
fn damage_in_the_middle_of_a_deletion_in_steps_is_repaired() {
    damaged_in_the_middle(|tree, store, progress| {
        tree.delete_in_steps(store, 1, progress).unwrap();
    });
}

#[test]
fn a_move_in_steps_that_meets_damage_is_cancelled_by_a_repair() {
    let (tree, store) = (tree(), small());
    fill(&tree, &store);
    let before = preorder(&tree, &store.snapshot().unwrap());
    let stop = |progress: &Progress| match progress.changed() {
        ..5 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let begun = tree.move_in_steps(&store, 1, InsertAt::last(100), stop).unwrap();
    assert!(!begun.finished && begun.removed == 0);
    // The position of the node that is copied last.
    let position = tree.space().pack(&("node", 13_u64));
    store.transact(|txn| txn.put(&position, b"\x01cut")).unwrap();
    let go_on = |_: &Progress| ControlFlow::Continue(());
    let error = tree.resume(&store, go_on).unwrap_err().to_string();
    assert!(error.contains("run check, then repair"), "{error}");
    tree.repair(&store).unwrap();
    assert_eq!(faults(&tree, &store), Vec::<String>::new());
    assert_eq!(preorder(&tree, &store.snapshot().unwrap()), before);
    let done = tree.move_in_steps(&store, 1, InsertAt::last(100), go_on).unwrap();
    assert!(done.finished);
}
