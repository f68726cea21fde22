//! Siblings that are ordered by a key of their values.

use keyloom::key::Subspace;
use keyloom::{Metered, Reader, Store};
use keyloom_testing::laws::{clear, property};
use keyloom_trees::{InsertAt, NodeId, Tree};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::oracle::Rules;

/// The key of a value: few different keys, so that some are equal.
fn key(value: u32) -> u32 {
    value % 8
}

fn place<T: Tree<Value = u32>>(
    tree: &T,
    reader: &impl Reader,
    parent: Option<NodeId>,
    moved: Option<NodeId>,
    value: u32,
) -> InsertAt {
    let compare = |child: u32| key(child).cmp(&key(value));
    tree.sorted_place(reader, parent, moved, |node| Ok(compare(node.value()?))).unwrap()
}

/// The nodes in the order in which they were placed, with their values.
type Placed = Vec<(NodeId, u32)>;

/// Inserts, changes of values and moves. The oracle is a stable sort.
pub fn children_stay_in_the_order_of_their_keys<T: Tree<Value = u32>>(
    store: &impl Store,
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    if rules.ordered_by_name {
        return;
    }
    let step = (any::<u32>(), proptest::option::of(any::<prop::sample::Index>()));
    property((any::<bool>(), vec(step, 1..20)), |(has_parent, steps)| {
        clear(store);
        let tree = make(&Subspace::new("tree"));
        let parent = has_parent.then_some(1_000);
        if has_parent {
            let last = InsertAt::last(None);
            store.transact(|txn| tree.insert(txn, 1_000, "parent", &0, last)).unwrap();
        }
        let mut placed = Placed::new();
        for (id, (value, changed)) in (1..).zip(steps) {
            let changed = changed.filter(|_| !placed.is_empty());
            let moved = changed.map(|changed| placed.remove(changed.index(placed.len())).0);
            let id = moved.unwrap_or(id);
            store
                .transact(|txn| match moved {
                    Some(id) => {
                        tree.set_value(txn, id, &value)?;
                        let place = place(&tree, txn, parent, moved, value);
                        tree.move_to(txn, id, place)
                    }
                    None => {
                        let place = place(&tree, txn, parent, None, value);
                        tree.insert(txn, id, &format!("n{id}"), &value, place)
                    }
                })
                .unwrap();
            placed.push((id, value));
            placed.sort_by_key(|(_, value)| key(*value));
            let snapshot = store.snapshot().unwrap();
            let children = tree.children(&snapshot, parent).unwrap();
            let ids: Vec<NodeId> = children.map(|node| node.unwrap().id()).collect();
            assert!(ids.iter().eq(placed.iter().map(|(id, _)| id)), "{ids:?}, not {placed:?}");
        }
    });
}

/// A node that becomes the last or the first reads one or two of 500 children.
pub fn a_place_at_an_end_reads_few_children<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    // A document is read whole.
    if rules.ordered_by_name || rules.definition.is_some() {
        return;
    }
    clear(store);
    let metered = Metered::new(store.clone());
    let tree = make(&Subspace::new("tree"));
    for id in 1..=500_u64 {
        let value = id as u32;
        store
            .transact(|txn| tree.insert(txn, id, &format!("n{id}"), &value, InsertAt::last(None)))
            .unwrap();
    }
    let keys_read = |value: u32, wanted: InsertAt| {
        let (found, cost) = metered.measure(|store| {
            let snapshot = store.snapshot().unwrap();
            let compare = |child: u32| child.cmp(&value);
            tree.sorted_place(&snapshot, None, None, |node| Ok(compare(node.value()?))).unwrap()
        });
        assert_eq!(found, wanted);
        cost.keys_read + cost.gets
    };
    let (last, first) = (keys_read(501, InsertAt::After(500)), keys_read(0, InsertAt::Before(1)));
    let middle = keys_read(250, InsertAt::After(250));
    assert!(last <= 12 && first <= 12, "{last}, {first}");
    assert!(middle > 490, "{middle}: both halves are read");
}
