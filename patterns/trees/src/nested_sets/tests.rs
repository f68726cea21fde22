//! Trees with few labels, so that nearly every change relabels, compared with a naive tree.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use keyloom::{Limits, Memory, Order, Reader, Store, Subspace, Writer};
use keyloom_kit::{Progress, in_order};
use proptest::collection::vec;
use proptest::prelude::*;

use super::labels::LabelSpace;
use super::*;
use crate::{OnDelete, Tree, TreeError};

type Parent = Option<NodeId>;

/// The children of each node, in order.
#[derive(Clone, Default)]
struct Naive(BTreeMap<Parent, Vec<NodeId>>);

impl Naive {
    fn children(&self, of: Parent) -> &[NodeId] {
        self.0.get(&of).map_or(&[], Vec::as_slice)
    }

    fn parent(&self, id: NodeId) -> Parent {
        *self.0.iter().find(|(_, children)| children.contains(&id)).unwrap().0
    }

    fn preorder(&self, of: Parent, depth: u32, found: &mut Vec<(u32, NodeId)>) {
        for child in self.children(of) {
            found.push((depth, *child));
            self.preorder(Some(*child), depth + 1, found);
        }
    }

    fn all(&self) -> Vec<(u32, NodeId)> {
        let mut found = Vec::new();
        self.preorder(None, 1, &mut found);
        found
    }

    fn has_below(&self, above: NodeId, id: NodeId) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            if id == above {
                return true;
            }
            at = self.parent(id);
        }
        false
    }

    fn take(&mut self, id: NodeId) -> (Parent, usize) {
        let parent = self.parent(id);
        let siblings = self.0.get_mut(&parent).unwrap();
        let at = siblings.iter().position(|other| *other == id).unwrap();
        siblings.remove(at);
        (parent, at)
    }

    fn put(&mut self, id: NodeId, place: InsertAt) {
        let (parent, at) = match place {
            InsertAt::First(parent) => (parent, 0),
            InsertAt::Last(parent) => (parent, self.children(parent).len()),
            InsertAt::At(parent, at) => (parent, at as usize),
            InsertAt::Sorted(parent) => {
                let names = self.children(parent).iter().map(|id| id.to_string());
                let at = names.take_while(|name| *name <= id.to_string()).count();
                (parent, at)
            }
            InsertAt::Before(sibling) | InsertAt::After(sibling) => {
                let parent = self.parent(sibling);
                let at = self.children(parent).iter().position(|id| *id == sibling).unwrap();
                (parent, at + usize::from(place == InsertAt::After(sibling)))
            }
        };
        self.0.entry(parent).or_default().insert(at, id);
    }

    fn delete_subtree(&mut self, id: NodeId) {
        self.take(id);
        self.drop_below(id);
    }

    fn drop_below(&mut self, id: NodeId) {
        for child in self.0.remove(&Some(id)).unwrap_or_default() {
            self.drop_below(child);
        }
    }

    fn delete_node(&mut self, id: NodeId, orphans: OnDelete) {
        let (parent, at) = self.take(id);
        let children = self.0.remove(&Some(id)).unwrap_or_default();
        let (parent, at) = match orphans {
            OnDelete::Reparent => (parent, at),
            OnDelete::Promote => (None, self.children(None).len()),
        };
        let siblings = self.0.entry(parent).or_default();
        siblings.splice(at..at, children);
    }
}

fn with_levels(levels: u32) -> NestedSets<u32> {
    let mut keys = Keys::new(&Subspace::new("tree"));
    keys.labels = LabelSpace { levels };
    NestedSets { keys, records: NodeRecords::NONE, types: PhantomData }
}

fn place_of(naive: &Naive, moving: Option<NodeId>, [kind, target, at]: [u8; 3]) -> InsertAt {
    let all = naive.all();
    let target = match all.len() {
        0 => None,
        // `None` means the roots.
        nodes => all.get(target as usize % (nodes + 1)).map(|(_, id)| *id),
    };
    let others = naive.children(target).iter().filter(|id| Some(**id) != moving).count();
    match (kind % 6, target) {
        (0, _) => InsertAt::First(target),
        (1, _) => InsertAt::Last(target),
        (2, _) => InsertAt::At(target, at as u64 % (others as u64 + 1)),
        (3, _) => InsertAt::Sorted(target),
        (4, Some(sibling)) => InsertAt::Before(sibling),
        (_, Some(sibling)) => InsertAt::After(sibling),
        (_, None) => InsertAt::Last(None),
    }
}

fn same(tree: &NestedSets<u32>, store: &Memory, naive: &Naive) {
    let snapshot = store.snapshot().unwrap();
    let visits = tree.descendants(&snapshot, None, ..).unwrap();
    let found: Vec<_> =
        visits.map(|visit| visit.map(|v| (v.depth, v.node.id())).unwrap()).collect();
    let expected = naive.all();
    assert_eq!(found, expected);
    for (_, id) in &expected {
        for order in [Order::Ascending, Order::Descending] {
            let children = tree.children(&snapshot, in_order(*id, order)).unwrap();
            let children: Vec<_> = children.map(|child| child.unwrap().id()).collect();
            let mut expected = naive.children(Some(*id)).to_vec();
            if order == Order::Descending {
                expected.reverse();
            }
            assert_eq!(children, expected, "children of {id}, {order:?}");
        }
        assert_eq!(tree.parent(&snapshot, *id).unwrap(), naive.parent(*id));
    }
    tree.check_each(&snapshot, |found| -> ControlFlow<()> { panic!("{found}") }).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn tree_that_is_often_relabelled_agrees_with_the_model(
        operations in vec((0..10_u8, any::<[u8; 4]>()), 0..80), levels in 3..=6_u32,
    ) {
        let tree = with_levels(levels);
        let most = LabelSpace::capacity(levels) as usize / 2;
        let store = Memory::new();
        let mut naive = Naive::default();
        for (next, (kind, [node, place @ ..])) in operations.into_iter().enumerate() {
            let all = naive.all();
            let node = all.get(node as usize % all.len().max(1)).map(|(_, id)| *id);
            match (kind, node) {
                (6 | 7, Some(node)) => {
                    let place = place_of(&naive, Some(node), place);
                    let moved = store.transact(|txn| tree.move_to(txn, node, place));
                    let target = match place {
                        InsertAt::First(target) | InsertAt::Last(target) | InsertAt::At(target, _) | InsertAt::Sorted(target) => target,
                        InsertAt::Before(target) | InsertAt::After(target) => Some(target),
                    };
                    match target.filter(|target| naive.has_below(node, *target)) {
                        // A node that is placed beside itself keeps its position.
                        Some(target) if target == node && place.is_beside(node) => moved.unwrap(),
                        Some(target) => {
                            let error = moved.unwrap_err();
                            prop_assert_eq!(
                                error.downcast_ref(),
                                Some(&TreeError::BelowItself { node, target })
                            );
                        }
                        None => {
                            moved.unwrap();
                            naive.take(node);
                            naive.put(node, place);
                        }
                    }
                }
                (8, Some(node)) => {
                    let orphans = [OnDelete::Reparent, OnDelete::Promote][place[0] as usize % 2];
                    store.transact(|txn| tree.delete_node(txn, node, orphans)).unwrap();
                    naive.delete_node(node, orphans);
                }
                (9, Some(node)) => {
                    store.transact(|txn| tree.delete_subtree(txn, node)).unwrap();
                    naive.delete_subtree(node);
                }
                _ => {
                    let place = place_of(&naive, None, place);
                    let id = next as u64;
                    let inserted = store.transact(|txn| tree.insert(txn, id, &id.to_string(), &7, place));
                    if all.len() < most {
                        inserted.unwrap();
                        naive.put(id, place);
                    } else if let Err(error) = inserted {
                        let full = matches!(error.downcast_ref(), Some(TreeError::TooManyNodes { limit, .. }) if *limit == most as u64);
                        prop_assert!(full, "{}", error);
                    } else {
                        naive.put(id, place);
                    }
                }
            }
            same(&tree, &store, &naive);
        }
    }
}

#[test]
fn a_chain_of_nodes_gives_way_as_a_whole() {
    let tree = with_levels(8);
    let store = Memory::new();
    let mut naive = Naive::default();
    for id in 0..128_u64 {
        let place = InsertAt::Last(id.checked_sub(1));
        store.transact(|txn| tree.insert(txn, id, "", &7, place)).unwrap();
        naive.put(id, place);
    }
    same(&tree, &store, &naive);
    assert_eq!(tree.depth(&store.snapshot().unwrap(), 127).unwrap(), 127);
}

/// A store with a low limit of operations per transaction.
fn with_operations(most: usize) -> Memory {
    let mut limits = Limits::etcd();
    limits.max_transaction_operations = Some(most);
    Memory::builder().limits(limits).build()
}

fn is_no_room(error: &keyloom::Error) -> bool {
    matches!(error.downcast_ref(), Some(TreeError::NoRoom { .. }))
}

/// Inserts a node. If there is no label left, relabels in steps, and checks the tree after each
/// step. Returns the number of steps.
fn insert_in_steps(
    tree: &NestedSets<u32>,
    store: &Memory,
    naive: &Naive,
    id: NodeId,
    place: InsertAt,
) -> Result<usize> {
    let insert = || store.transact(|txn| tree.insert(txn, id, &id.to_string(), &7, place));
    let Err(error) = insert() else { return Ok(0) };
    if !is_no_room(&error) {
        return Err(error);
    }
    let mut steps = 0;
    loop {
        // Stops after each transaction, as if the program were killed.
        let made =
            tree.make_room(store, &id.to_string(), place, 1, |_| ControlFlow::Break(())).unwrap();
        same(tree, store, naive);
        steps += 1;
        assert!(steps < 1_000);
        if made.finished {
            break;
        }
    }
    insert().map(|()| steps)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_window_relabelled_in_steps_is_the_same_tree_after_each(
        operations in vec(any::<[u8; 3]>(), 0..60), levels in 3..=6_u32, most in 8..30_usize,
    ) {
        let (tree, store) = (with_levels(levels), with_operations(most));
        let most = LabelSpace::capacity(levels) as usize / 2;
        let mut naive = Naive::default();
        for (id, place) in operations.into_iter().enumerate().take(most) {
            let place = place_of(&naive, None, place);
            insert_in_steps(&tree, &store, &naive, id as u64, place).unwrap();
            naive.put(id as u64, place);
            same(&tree, &store, &naive);
        }
    }
}

#[test]
fn room_at_one_spot_is_made_in_steps_and_inserts_continue() {
    let (tree, store) = (with_levels(8), with_operations(8));
    let mut naive = Naive::default();
    let mut steps = 0;
    for id in 0..120 {
        let place = if id == 0 { InsertAt::Last(None) } else { InsertAt::Before(0) };
        steps += insert_in_steps(&tree, &store, &naive, id, place).unwrap();
        naive.put(id, place);
    }
    same(&tree, &store, &naive);
    assert!(steps > 15, "{steps}");
}

/// A store with a tree in the first format, whose labels have 8 bytes: a root, 0, with `children`
/// children. The children's labels are so dense that the windows around them are full.
fn first_format(children: u64) -> Memory {
    let store = Memory::new();
    let leaves = (1..=children).map(|id| crate::NestedNode::new(id, id.to_string(), 7));
    let mut root = crate::NestedNode::new(0, "0", 7);
    root.children = leaves.collect();
    store.transact(|txn| with_levels(9).import(txn, None, std::slice::from_ref(&root))).unwrap();
    store
}

#[test]
fn a_tree_of_the_first_format_is_read_and_changed() {
    let bytes = |parts: &[&[u8]]| parts.concat();
    let (space, store) = (Subspace::new("tree"), Memory::new());
    let mut node = Vec::new();
    crate::tree::encode_node::<u32, Postcard>("old", &7, &mut node).unwrap();
    let number = |n: u64| n.to_be_bytes();
    store
        .transact(|txn| {
            let (root, child) = (1 << 20, 1 << 30);
            let end = bytes(&[&number(1 << 40), &number(5), &node]);
            txn.put(&space.pack(&("left", root)), &end)?;
            txn.put(&space.pack(&("node", 5_u64)), &bytes(&[&[1, 1], &number(root), &[0]]))?;
            let end = bytes(&[&number(1 << 31), &number(6), &node]);
            txn.put(&space.pack(&("left", child)), &end)?;
            let at = bytes(&[&[1, 1], &number(child), &[1], &number(5)]);
            txn.put(&space.pack(&("node", 6_u64)), &at)
        })
        .unwrap();
    let tree = NestedSets::<u32>::new(&space);
    let mut naive = Naive::default();
    naive.put(5, InsertAt::Last(None));
    naive.put(6, InsertAt::last(5));
    same(&tree, &store, &naive);
    assert_eq!(tree.get(&store.snapshot().unwrap(), 6).unwrap().unwrap().name().unwrap(), "old");
    for (id, place) in [
        InsertAt::last(5),
        InsertAt::last(None),
        InsertAt::Before(5),
        InsertAt::last(6),
        InsertAt::Before(6),
    ]
    .into_iter()
    .enumerate()
    {
        let id = id as u64 + 10;
        store.transact(|txn| tree.insert(txn, id, "new", &7, place)).unwrap();
        naive.put(id, place);
        same(&tree, &store, &naive);
    }
    store.transact(|txn| tree.move_to(txn, 5, InsertAt::last(11))).unwrap();
    naive.take(5);
    naive.put(5, InsertAt::last(11));
    same(&tree, &store, &naive);
}

#[test]
fn tree_of_the_first_format_is_relabelled_at_once_or_in_steps() {
    const CHILDREN: u64 = 33_000;
    let tree = NestedSets::<u32>::new(&Subspace::new("tree"));
    let old = first_format(CHILDREN);
    let wide = |store: &Memory| {
        let snapshot = store.snapshot().unwrap();
        let keys =
            snapshot.range(tree.keys.lefts(Span { first: 0, last: u128::MAX }), Order::Ascending);
        keys.unwrap().filter(|entry| tree.keys.is_wide(entry.as_ref().unwrap().0)).count()
    };
    assert_eq!(wide(&old), 0);
    for most in [None, Some(4_096)] {
        let store = match most {
            None => Memory::new(),
            Some(most) => with_operations(most),
        };
        let snapshot = old.snapshot().unwrap();
        for entries in snapshot
            .range(keyloom::KeyRange::all(), Order::Ascending)
            .unwrap()
            .collect::<Vec<_>>()
            .chunks(1_000)
        {
            store
                .transact(|txn| {
                    entries.iter().try_for_each(|entry| {
                        let (key, value) = entry.as_ref().unwrap();
                        txn.put(key, value)
                    })
                })
                .unwrap();
        }
        let place = InsertAt::Before(CHILDREN / 2);
        let mut steps = 0;
        for id in 0..60 {
            let insert =
                || store.transact(|txn| tree.insert(txn, CHILDREN + 1 + id, "new", &7, place));
            if let Err(error) = insert() {
                assert!(is_no_room(&error), "{error}");
                let mut changed = Vec::new();
                let note = |_: &Progress| {
                    steps += 1;
                    // Checks in the middle, when some rows have the new format and others the first
                    // format.
                    if steps == 20 {
                        let snapshot = store.snapshot().unwrap();
                        changed.push(wide(&store));
                        tree.check_each(&snapshot, |found| panic!("{found}")).unwrap();
                        assert_eq!(tree.child_count(&snapshot, 0).unwrap(), CHILDREN + id);
                        assert_eq!(tree.parent(&snapshot, CHILDREN).unwrap(), Some(0));
                        let above = tree.ancestors(&snapshot, CHILDREN).unwrap();
                        assert_eq!(above.first().unwrap().name().unwrap(), "0");
                    }
                    ControlFlow::Continue(())
                };
                tree.make_room(&store, "new", place, 1, note).unwrap();
                insert().unwrap();
            }
        }
        assert_eq!(steps > 50, most.is_some(), "{steps} steps");
        assert!(wide(&store) > CHILDREN as usize / 2);
        let snapshot = store.snapshot().unwrap();
        tree.check_each(&snapshot, |found| panic!("{found}")).unwrap();
        let children = tree.children(&snapshot, 0).unwrap();
        let children: Vec<NodeId> = children.map(|child| child.unwrap().id()).collect();
        let expected =
            (1..CHILDREN / 2).chain(CHILDREN + 1..=CHILDREN + 60).chain(CHILDREN / 2..=CHILDREN);
        assert!(children.into_iter().eq(expected));
    }
}
