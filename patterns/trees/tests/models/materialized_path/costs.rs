//! The costs of operations.

use keyloom::{Cost, Memory, Metered, Order, Result, Store};
use keyloom_trees::{InsertAt, NestedNode, OnDelete, Tree};

use super::{both, filled};
use crate::questions::findings;

fn reading<T>(
    store: &Metered<Memory>,
    read: impl Fn(&<Metered<Memory> as Store>::Snapshot<'_>) -> Result<T>,
) -> Cost {
    store.measure(|store| read(&store.snapshot().unwrap()).unwrap()).1
}

fn keys_written(
    store: &Metered<Memory>,
    write: impl Fn(&mut <Metered<Memory> as Store>::Transaction<'_>) -> Result<()>,
) -> u64 {
    store.measure(|store| store.transact(|txn| write(txn)).unwrap()).1.keys_written
}

#[test]
fn operations_cost_what_the_documentation_says() {
    for (model, rules) in both() {
        let of_names = rules.ordered_by_name;
        let store = Metered::new(Memory::new());
        filled(&store, &model, rules);
        let trips = |cost: Cost| cost.round_trips;

        let get = reading(&store, |reader| model.get(reader, 111).map(drop));
        assert_eq!((get.gets, get.ranges, get.round_trips), (3, 0, 2));
        let depth = reading(&store, |reader| model.depth(reader, 111));
        assert_eq!((depth.gets, depth.ranges, depth.round_trips), (2, 0, 1));
        let parent = reading(&store, |reader| model.parent(reader, 111));
        assert_eq!((parent.gets, trips(parent)), if of_names { (3, 2) } else { (2, 1) });
        let is_ancestor = reading(&store, |reader| model.is_ancestor(reader, 1, 111));
        assert_eq!((is_ancestor.gets, is_ancestor.round_trips), (3, 1));
        let common = reading(&store, |reader| model.lowest_common_ancestor(reader, 111, 121));
        assert_eq!((common.gets, trips(common)), if of_names { (4, 2) } else { (3, 1) });
        let ancestors = reading(&store, |reader| model.ancestors(reader, 111).map(drop));
        assert_eq!((ancestors.gets, ancestors.ranges, ancestors.round_trips), (4, 0, 2));
        let descendants = reading(&store, |reader| {
            assert_eq!(model.descendants(reader, 1, ..)?.count(), 16);
            Ok(())
        });
        // One range. It reads the returned entries; the path of the node is one more key.
        assert_eq!((descendants.ranges, descendants.keys_read), (1, 1 + 16));
        assert_eq!(descendants.round_trips, 2);
        let count = reading(&store, |reader| model.descendant_count(reader, 1));
        assert_eq!((count.ranges, count.round_trips), (1, 2));
        // Regions of four cities each are either stepped over or skipped by a seek, whichever is
        // cheaper.
        let children = reading(&store, |reader| {
            assert_eq!(model.children(reader, 1)?.count(), 3);
            Ok(())
        });
        assert!(children.keys_read <= 1 + 15 && children.ranges <= 1 + 3, "{children}");
        let sibling =
            reading(&store, |reader| model.sibling(reader, 11, Order::Ascending).map(drop));
        assert!(sibling.keys_read <= 3 && sibling.ranges == 1, "{sibling}");

        let sorted = InsertAt::sorted;
        assert_eq!(keys_written(&store, |txn| model.insert(txn, 500, "new", &0, sorted(11))), 2);
        assert_eq!(keys_written(&store, |txn| model.set_value(txn, 1, &7)), 1);
        // With ids in paths, a rename is one write, whatever the size of the subtree is. With names
        // in paths, the subtree is rewritten.
        let rename = keys_written(&store, |txn| model.rename(txn, 1, "renamed"));
        assert_eq!(rename, if of_names { 1 + 2 * 17 } else { 1 });
        // One range is deleted; for each node the record and the path entry are written.
        assert_eq!(keys_written(&store, |txn| model.move_to(txn, 11, sorted(21))), 1 + 2 * 6);
        assert_eq!(
            keys_written(&store, |txn| model.move_to(txn, 11, sorted(21))),
            0,
            "it is there"
        );
        let adopted = keys_written(&store, |txn| model.delete_node(txn, 11, OnDelete::Reparent));
        assert_eq!(adopted, 1 + 1 + 2 * 5);
        assert_eq!(keys_written(&store, |txn| model.delete_subtree(txn, 2).map(drop)), 1 + 21);
        let trees = [NestedNode::new(600, "a", 0).with(NestedNode::new(601, "b", 0))];
        assert_eq!(keys_written(&store, |txn| model.import(txn, 3, &trees)), 2 * 2);
        assert_eq!(findings(&model, &store.snapshot().unwrap()), [""; 0]);
    }
}

#[test]
fn a_name_is_found_by_one_get_where_paths_are_of_names() {
    let (model, rules) = &both()[1];
    let store = Metered::new(Memory::new());
    filled(&store, model, *rules);
    let names = ["node 1", "node 11", "node 112"];
    let found = reading(&store, |reader| {
        assert_eq!(model.node_at(reader, names)?, Some(112));
        Ok(())
    });
    assert_eq!((found.gets, found.ranges), (2, 0));
    let child = reading(&store, |reader| model.child_named(reader, 11, "node 112"));
    assert_eq!((child.gets, child.ranges), (3, 0));
}

#[test]
fn a_load_waits_as_often_for_many_trees() {
    for (model, rules) in both() {
        for trees in [1, 2_000] {
            let store = Metered::new(Memory::new());
            filled(&store, &model, rules);
            let some: Vec<_> = (9_000..9_000 + trees)
                .map(|id| NestedNode::new(id, format!("new {id}"), 0))
                .collect();
            let (_, cost) = store.measure(|store| {
                store.transact(|txn| model.import(txn, 3, &some)).unwrap();
            });
            let of_names = if rules.ordered_by_name { trees } else { 0 };
            assert_eq!((cost.gets, cost.round_trips), (2 + trees + of_names, 3));
        }
    }
}
