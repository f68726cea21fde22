//! Materialized path beyond the contract: what operations cost, work in steps, ranks, long paths, damage.

use std::collections::BTreeSet;
use std::ops::ControlFlow::{Break, Continue};

use fastrand::Rng;
use keyloom::key::Subspace;
use keyloom::{
    Cost, Fault, Faulty, KeyRange, Limits, MAX_KEY_BYTES, Memory, Metered, Order, Reader, Result,
    Store, Writer,
};
use keyloom_patterns::hierarchy::{
    MaterializedPath, MoveProgress, MoveStep, Nested, NodeId, Orphans, Place, Tree, TreeError,
    TreeRule,
};

use crate::common_laws::dump_all;
use crate::operations::{Operation, perform};
use crate::oracle::{Oracle, Rules};
use crate::questions::{ask, compare_whole, findings, outcome};

type Paths = MaterializedPath<u32>;

fn space() -> Subspace {
    Subspace::new("tree")
}

fn both() -> [(Paths, Rules); 2] {
    let paths = Paths::new(&space());
    [(paths.clone(), Rules::NONE), (paths.of_names(), Rules::ORDERED_BY_NAME)]
}

/// Three countries of three regions of four cities.
fn countries() -> Vec<Nested<u32>> {
    let node = |id: u64| Nested::new(id, format!("node {id}"), id as u32);
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
            let insert =
                Operation::Insert { id, name, value, place: Place::Sorted(path.last().copied()) };
            store.transact(|txn| perform(model, txn, &insert)).unwrap();
            oracle.perform(&insert).unwrap();
            path.push(id);
        }
    }
    oracle
}

/// All answers, not only the whole tree.
fn compare_all(model: &Paths, reader: &impl Reader, oracle: &Oracle) {
    compare_whole(model, reader, oracle);
    let mut rng = Rng::with_seed(1);
    for id in [1, 2, 3, 11, 13, 21, 111, 134, 212, 99] {
        let other = *rng.choice(&[1, 2, 11, 12, 21, 112, 131]).unwrap();
        ask(model, reader, oracle, [id, other], &mut rng);
    }
}

// ---- costs ------------------------------------------------------------------------------------------------------

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
        // One range; what is read is what is told, and where the node is.
        assert_eq!((descendants.ranges, descendants.keys_read), (1, 1 + 16));
        assert_eq!(descendants.round_trips, 2);
        let count = reading(&store, |reader| model.descendant_count(reader, 1));
        assert_eq!((count.ranges, count.round_trips), (1, 2));
        // Regions of four cities each are stepped over, or sought behind: no more than that is read.
        let children = reading(&store, |reader| {
            assert_eq!(model.children(reader, 1, Order::Ascending)?.count(), 3);
            Ok(())
        });
        assert!(children.keys_read <= 1 + 15 && children.ranges <= 1 + 3, "{children}");
        let sibling =
            reading(&store, |reader| model.sibling(reader, 11, Order::Ascending).map(drop));
        assert!(sibling.keys_read <= 3 && sibling.ranges == 1, "{sibling}");

        let sorted = Place::sorted;
        assert_eq!(keys_written(&store, |txn| model.insert(txn, 500, "new", &0, sorted(11))), 2);
        assert_eq!(keys_written(&store, |txn| model.set_value(txn, 1, &7)), 1);
        // By id a rename is one write, whatever is below; by name the subtree is rewritten.
        let rename = keys_written(&store, |txn| model.rename(txn, 1, "renamed"));
        assert_eq!(rename, if of_names { 1 + 2 * 17 } else { 1 });
        // A range that goes; of each node the record and where it is.
        assert_eq!(keys_written(&store, |txn| model.move_to(txn, 11, sorted(21))), 1 + 2 * 6);
        assert_eq!(
            keys_written(&store, |txn| model.move_to(txn, 11, sorted(21))),
            0,
            "it is there"
        );
        let adopted = keys_written(&store, |txn| model.delete_node(txn, 11, Orphans::Adopted));
        assert_eq!(adopted, 1 + 1 + 2 * 5);
        assert_eq!(keys_written(&store, |txn| model.delete_subtree(txn, 2).map(drop)), 1 + 21);
        let trees = [Nested::new(600, "a", 0).with(Nested::new(601, "b", 0))];
        assert_eq!(keys_written(&store, |txn| model.load(txn, 3, &trees)), 2 * 2);
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

// ---- steps ------------------------------------------------------------------------------------------------------

/// A store like etcd whose transactions take this few writes.
fn small(operations: usize) -> Memory {
    let mut limits = Limits::etcd();
    limits.max_transaction_operations = Some(operations);
    Memory::builder().limits(limits).build()
}

/// What is done in steps, and what it should come to.
#[derive(Clone, Debug)]
enum Work {
    Move(NodeId, Place),
    Rename(NodeId, &'static str),
    Delete(NodeId),
}

impl Work {
    fn some(rules: Rules) -> Vec<Self> {
        let mut some = vec![
            Self::Move(1, Place::sorted(22)),
            Self::Move(12, Place::sorted(None)),
            Self::Move(111, Place::sorted(3)),
            Self::Delete(1),
            Self::Delete(31),
            Self::Delete(331),
        ];
        if rules.ordered_by_name {
            some.extend([
                Self::Rename(1, "z"),
                Self::Rename(12, "node 0"),
                Self::Rename(2, "node 2"),
            ]);
        } else {
            some.extend([
                Self::Move(1, Place::first(21)),
                Self::Move(2, Place::After(3)),
                Self::Move(2, Place::Before(3)),
                Self::Move(13, Place::first(1)),
                Self::Rename(1, "z"),
            ]);
        }
        some
    }

    fn begin(
        &self,
        model: &Paths,
        store: &impl Store,
        progress: impl FnMut(&MoveProgress) -> std::ops::ControlFlow<()>,
    ) -> Result<MoveProgress> {
        match self {
            Self::Move(id, place) => model.move_in_steps(store, *id, *place, progress),
            Self::Rename(id, name) => model.rename_in_steps(store, *id, name, progress),
            Self::Delete(id) => model.delete_in_steps(store, *id, progress),
        }
    }

    fn imitate(&self, oracle: &Oracle) -> Oracle {
        let mut oracle = oracle.clone();
        let operation = match self {
            Self::Move(id, place) => Operation::Move { id: *id, place: *place },
            Self::Rename(id, name) => Operation::Rename { id: *id, name: (*name).into() },
            Self::Delete(id) => Operation::DeleteSubtree { id: *id },
        };
        oracle.perform(&operation).unwrap();
        oracle
    }

    /// Whether readers see what was before or what will be.
    fn seen<'o>(done: &MoveProgress, old: &'o Oracle, new: &'o Oracle) -> &'o Oracle {
        if done.step == MoveStep::Copying { old } else { new }
    }
}

/// Nothing is left of the work but the nodes: of each the record and where it is.
fn is_tidy(store: &impl Store, model: &Paths, oracle: &Oracle) {
    let snapshot = store.snapshot().unwrap();
    compare_all(model, &snapshot, oracle);
    assert_eq!(snapshot.count(KeyRange::all()).unwrap(), 2 * oracle.len() as u64);
}

#[test]
fn readers_see_the_old_tree_or_the_new_one_after_every_transaction() {
    for (model, rules) in both() {
        for work in Work::some(rules) {
            let store = small(12);
            let mut stops = 0;
            for stop in 0.. {
                let old = filled(&store, &model, rules);
                let new = work.imitate(&old);
                let mut reports = 0;
                let done = work.begin(&model, &store, |_| {
                    reports += 1;
                    if reports > stop { Break(()) } else { Continue(()) }
                });
                let done = done.unwrap();
                let seen = Work::seen(&done, &old, &new);
                let snapshot = store.snapshot().unwrap();
                compare_all(&model, &snapshot, seen);
                if done.step != MoveStep::Finished {
                    others_may_write_and_it_is_locked(&store, &model, &work, seen);
                }
                // Another program goes on where this one died.
                let again = if rules.ordered_by_name {
                    Paths::new(&space()).of_names()
                } else {
                    Paths::new(&space())
                };
                let finished = again.finish_steps(&store, |_| Continue(())).unwrap();
                assert_eq!(finished.step, MoveStep::Finished);
                is_tidy(&store, &model, &new);
                if done.step == MoveStep::Finished {
                    break;
                }
                stops += 1;
            }
            let subtree = if matches!(work, Work::Move(1, _) | Work::Delete(1)) { 16 } else { 1 };
            assert!(
                stops >= subtree / 5 || matches!(work, Work::Move(2 | 13, _) | Work::Rename(..)),
                "{work:?}: {stops}"
            );
        }
    }
}

/// In the middle of the work: what it stands on is refused to others, everything else is theirs.
fn others_may_write_and_it_is_locked(store: &Memory, model: &Paths, work: &Work, seen: &Oracle) {
    let (Work::Move(root, _) | Work::Rename(root, _) | Work::Delete(root)) = work;
    let in_steps = TreeError::InSteps { tree: space().to_string(), node: *root };
    let refused = |operation: Operation| {
        let mut txn = store.begin().unwrap();
        let outcome = outcome(perform(model, &mut txn, &operation));
        assert_eq!(outcome, Err(in_steps.clone()), "{operation:?}");
    };
    let free = |operation: Operation| {
        let mut txn = store.begin().unwrap();
        let mut oracle = seen.clone();
        let wanted = oracle.perform(&operation);
        assert_eq!(outcome(perform(model, &mut txn, &operation)), wanted, "{operation:?}");
        compare_whole(model, &txn, &oracle);
    };
    let insert = |id, name: &str, parent: u64| Operation::Insert {
        id,
        name: name.into(),
        value: 0,
        place: Place::sorted(parent),
    };
    let there = |id: u64| seen.find(id).is_some();
    if there(*root) {
        refused(insert(900, "new", *root));
        refused(Operation::SetValue { id: *root, value: 1 });
        refused(Operation::Rename { id: *root, name: "new".into() });
        refused(Operation::DeleteSubtree { id: *root });
        refused(Operation::DeleteNode { id: *root, orphans: Orphans::Rooted });
        refused(Operation::Move { id: *root, place: Place::sorted(None) });
        refused(Operation::Load { parent: Some(*root), trees: vec![Nested::new(900, "x", 0)] });
        for above in seen.ancestors(*root).unwrap() {
            refused(Operation::DeleteSubtree { id: above });
            refused(Operation::DeleteNode { id: above, orphans: Orphans::Adopted });
            refused(Operation::Move { id: above, place: Place::sorted(None) });
        }
    }
    let begun = model.delete_in_steps(store, 321, |_| Continue(())).unwrap_err();
    assert_eq!(begun.downcast_ref(), Some(&in_steps), "there is room for one");
    free(insert(900, "new", 32));
    free(Operation::Rename { id: 322, name: "new".into() });
    free(Operation::SetValue { id: 3, value: 8 });
    free(Operation::DeleteSubtree { id: 321 });
    free(Operation::DeleteNode { id: 32, orphans: Orphans::Adopted });
    if *root != 2 {
        free(insert(900, "node 0", 2));
        free(Operation::Move { id: 323, place: Place::sorted(23) });
        free(Operation::DeleteNode { id: 23, orphans: Orphans::Adopted });
        free(Operation::Load { parent: Some(23), trees: vec![Nested::new(900, "x", 0)] });
    }
}

#[test]
fn what_others_insert_beside_the_new_place_stands_where_they_put_it() {
    let (model, rules) = &both()[0];
    let store = small(8);
    let mut oracle = filled(&store, model, *rules);
    let moved = Operation::Move { id: 1, place: Place::last(22) };
    oracle.perform(&moved).unwrap();
    let mut next = 900;
    let done = model.move_in_steps(&store, 1, Place::last(22), |_| {
        let (id, place) = (next, Place::last(22));
        next += 1;
        let insert = Operation::Insert { id, name: "beside".into(), value: 0, place };
        store.transact(|txn| perform(model, txn, &insert)).unwrap();
        oracle.perform(&insert).unwrap();
        Continue(())
    });
    assert_eq!(done.unwrap().step, MoveStep::Finished);
    assert!(next > 905);
    compare_whole(model, &store.snapshot().unwrap(), &oracle);
}

#[test]
fn a_fault_at_any_operation_of_steps_leaves_the_old_tree_or_the_new_one() {
    for (model, rules) in both() {
        for work in [Work::Move(12, Place::sorted(21)), Work::Delete(12)] {
            let store = Faulty::new(small(8));
            let mut ends = BTreeSet::new();
            for n in 0.. {
                let old = filled(&store, &model, rules);
                let new = work.imitate(&old);
                store.fail_at(n, Fault::Error);
                let failed = work.begin(&model, &store, |_| Continue(())).is_err();
                store.heal();
                let snapshot = store.snapshot().unwrap();
                let is_new = model.dump(&snapshot, None).unwrap() == new.forest();
                let is_begun = snapshot.get(&space().pack("move")).unwrap().is_some();
                compare_whole(&model, &snapshot, if is_new { &new } else { &old });
                drop(snapshot);
                ends.insert((is_new, is_begun));
                model.finish_steps(&store, |_| Continue(())).unwrap();
                is_tidy(&store, &model, if is_new || is_begun { &new } else { &old });
                if !failed {
                    break;
                }
            }
            assert!(ends.len() >= 3, "{ends:?}");
        }
    }
}

#[test]
fn a_subtree_that_is_too_large_for_etcd_moves_in_steps() {
    let store = Memory::builder().limits(Limits::etcd()).build();
    for (model, _) in both() {
        store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
        let node = |id: u64| Nested::new(id, format!("node {id:06}"), 0);
        store.transact(|txn| model.load(txn, None, &[node(0), node(1)])).unwrap();
        for thousand in 0..6 {
            let many: Vec<_> = (0..1_000).map(|n| node(10 + 1_000 * thousand + n)).collect();
            store.transact(|txn| model.load(txn, 0, &many)).unwrap();
        }
        let whole = model.dump(&store.snapshot().unwrap(), 0).unwrap();
        let at_once = store.transact(|txn| model.move_to(txn, 0, Place::sorted(1))).unwrap_err();
        assert!(at_once.is_too_much_at_once());
        let mut steps = Vec::new();
        let done = model.move_in_steps(&store, 0, Place::sorted(1), |done| {
            steps.push(done.step);
            Continue(())
        });
        assert_eq!(done.unwrap().step, MoveStep::Finished);
        assert!(steps.len() > 12 && steps.is_sorted_by_key(|step| *step as u8), "{steps:?}");
        assert_eq!(model.dump(&store.snapshot().unwrap(), 0).unwrap(), whole);
        let parent = model.parent(&store.snapshot().unwrap(), 0).unwrap();
        assert_eq!(parent, Some(1));
        model.delete_in_steps(&store, 0, |_| Continue(())).unwrap();
        assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 2);
    }
}

// ---- ranks and long paths ---------------------------------------------------------------------------------------

#[test]
fn ranks_stay_short_wherever_nodes_are_put() {
    let model = Paths::new(&space());
    let longest = |store: &Memory| {
        let snapshot = store.snapshot().unwrap();
        let keys = snapshot.range(space().range(), Order::Ascending).unwrap();
        keys.map(|entry| entry.unwrap().0.len()).max().unwrap()
    };
    // At the head, at the end, and always between the same two: behind the left, before the right one.
    let places = [Place::first(1), Place::last(1), Place::After(2), Place::Before(3)];
    for place in places {
        let store = Metered::new(Memory::new());
        let three =
            [Nested::new(1, "1", 0).with(Nested::new(2, "2", 0)).with(Nested::new(3, "3", 0))];
        store.transact(|txn| model.load(txn, None, &three)).unwrap();
        let count = 1_500;
        let (_, cost) = store.measure(|store| {
            for id in 10..10 + count {
                store.transact(|txn| model.insert(txn, id, "x", &0, place)).unwrap();
            }
        });
        let per_insert = cost.keys_written as f64 / count as f64;
        println!(
            "{place:?}: {per_insert:.2} keys written each, keys of {} bytes",
            longest(store.inner())
        );
        assert!(longest(store.inner()) <= 54 && per_insert < 12.0, "{per_insert}");
        let children = model.dump(&store.snapshot().unwrap(), 1).unwrap().remove(0).children;
        let ids: Vec<NodeId> = children.iter().map(|node| node.id).filter(|id| *id >= 10).collect();
        let rising = matches!(place, Place::Last(_) | Place::Before(_));
        assert!(ids.is_sorted_by(|a, b| if rising { a < b } else { a > b }));
        assert_eq!(findings(&model, &store.snapshot().unwrap()), [""; 0]);
    }
}

#[test]
fn a_path_too_long_is_refused_before_anything_is_written() {
    for (model, rules) in both() {
        let store = Memory::new();
        let insert = |id: u64, parent: Option<u64>| {
            let name = format!("{:0>30}", id);
            store.transact(|txn| model.insert(txn, id, &name, &0, Place::Sorted(parent)))
        };
        let too_long = |error: keyloom::Error| match error.downcast_ref() {
            Some(TreeError::PathTooLong { node, bytes, limit }) => {
                assert!(*bytes > *limit && *limit == MAX_KEY_BYTES);
                *node
            }
            _ => panic!("{error}"),
        };
        insert(1, None).unwrap();
        let mut deepest = 1;
        let error = loop {
            match insert(deepest + 1, Some(deepest)) {
                Ok(()) => deepest += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(too_long(error), deepest + 1);
        assert!(deepest >= if rules.ordered_by_name { 15 } else { 80 }, "{deepest}");
        // A subtree whose longest path would be too long: a move, its steps, a load.
        insert(1_000, None).unwrap();
        let before = dump_all(&store);
        let place = Place::sorted(1_000);
        let at_once = store.transact(|txn| model.move_to(txn, 1, place)).unwrap_err();
        assert!(too_long(at_once) <= deepest);
        let in_steps = model.move_in_steps(&store, 1, place, |_| Continue(())).unwrap_err();
        assert!(too_long(in_steps) <= deepest);
        let trees = [Nested::new(2_000, "x", 0).with(Nested::new(2_001, "y".repeat(30), 0))];
        let loaded = store.transact(|txn| model.load(txn, deepest, &trees)).unwrap_err();
        too_long(loaded);
        if rules.ordered_by_name {
            let name = "z".repeat(60);
            too_long(store.transact(|txn| model.rename(txn, 1, &name)).unwrap_err());
            too_long(model.rename_in_steps(&store, 1, &name, |_| Continue(())).unwrap_err());
        }
        assert_eq!(dump_all(&store), before);
    }
}

#[test]
fn names_take_sorted_places_only() {
    let (model, rules) = &both()[1];
    let store = Memory::new();
    filled(&store, model, *rules);
    let before = dump_all(&store);
    for place in
        [Place::first(1), Place::last(None), Place::at(1, 0), Place::Before(2), Place::After(2)]
    {
        for operation in [
            Operation::Move { id: 3, place },
            Operation::Insert { id: 900, name: "x".into(), value: 0, place },
        ] {
            let refused = outcome(store.transact(|txn| perform(model, txn, &operation)));
            assert_eq!(refused, Err(TreeError::OrderedByName { tree: space().to_string() }));
        }
    }
    assert_eq!(dump_all(&store), before);
}

// ---- damage -----------------------------------------------------------------------------------------------------

fn faults(model: &Paths, store: &impl Store) -> Vec<TreeRule> {
    let mut rules = Vec::new();
    let note = |found: keyloom_patterns::hierarchy::TreeInconsistency| {
        rules.push(found.rule);
        Continue(())
    };
    model.check(&store.snapshot().unwrap(), note).unwrap();
    rules
}

#[test]
fn where_nodes_are_is_found_wrong_and_derived_again() {
    for (model, rules) in both() {
        let store = Memory::new();
        let oracle = filled(&store, &model, rules);
        let whole = dump_all(&store);
        let node = |id: NodeId| space().pack(&("node", id));
        let path_of =
            |id: NodeId| store.snapshot().unwrap().get(&node(id)).unwrap().unwrap().to_vec();
        let (one, other) = (path_of(11), path_of(2));
        type Damage<'d> = (TreeRule, Box<dyn Fn(&mut dyn FnMut(&[u8], Option<&[u8]>)) + 'd>);
        let damages: Vec<Damage<'_>> = vec![
            (TreeRule::Missing, Box::new(|write| write(&node(11), None))),
            (TreeRule::Wrong, Box::new(|write| write(&node(11), Some(&other)))),
            (TreeRule::Wrong, Box::new(|write| write(&node(11), Some(b"no path")))),
            (TreeRule::Dangling, Box::new(|write| write(&node(999), Some(&one)))),
            (TreeRule::Dangling, Box::new(|write| write(&node(999), Some(b"no path")))),
        ];
        for (rule, damage) in damages {
            store
                .transact(|txn| {
                    damage(&mut |key, value| match value {
                        Some(value) => txn.put(key, value).unwrap(),
                        None => txn.delete(key).unwrap(),
                    });
                    Ok(())
                })
                .unwrap();
            let found = faults(&model, &store);
            assert!(found.contains(&rule), "{rule:?}: {found:?}");
            assert!(model.repair(&store).unwrap() > 0);
            assert_eq!(dump_all(&store), whole, "{rule:?}");
        }
        assert_eq!(model.repair(&store).unwrap(), 0);
        compare_whole(&model, &store.snapshot().unwrap(), &oracle);
    }
}

#[test]
fn what_lost_its_parent_becomes_a_root_with_all_below_it() {
    for (model, rules) in both() {
        let store = Memory::new();
        let mut oracle = filled(&store, &model, rules);
        let path = store
            .snapshot()
            .unwrap()
            .get(&space().pack(&("node", 1_u64)))
            .unwrap()
            .unwrap()
            .to_vec();
        let record = [space().child("path").prefix(), &path].concat();
        store.transact(|txn| txn.delete(&record)).unwrap();
        let found = faults(&model, &store);
        assert_eq!(
            found.iter().filter(|rule| **rule == TreeRule::NoParent).count(),
            3,
            "{found:?}"
        );
        model.repair(&store).unwrap();
        oracle.perform(&Operation::DeleteNode { id: 1, orphans: Orphans::Rooted }).unwrap();
        compare_whole(&model, &store.snapshot().unwrap(), &oracle);
        is_tidy(&store, &model, &oracle);
    }
}

#[test]
fn what_is_foreign_is_reported_and_left_alone() {
    for (model, rules) in both() {
        let store = Memory::new();
        filled(&store, &model, rules);
        let foreign = [
            space().pack("other"),
            space().pack(&("node", "no id")),
            space().pack(&("path", 7.5_f64)),
            space().pack("move"),
        ];
        for key in &foreign {
            store.transact(|txn| txn.put(key, b"\x01?")).unwrap();
            assert_eq!(faults(&model, &store), [TreeRule::Foreign], "{key:?}");
            store.transact(|txn| txn.delete(key)).unwrap();
        }
        // What a newer program has written is no fault, but nothing that this one can judge.
        store.transact(|txn| txn.put(&space().pack("move"), b"\x02")).unwrap();
        let snapshot = store.snapshot().unwrap();
        let newer = model.check(&snapshot, |_| Continue(())).unwrap_err();
        assert!(matches!(newer, keyloom::Error::NewerFormat { .. }));
        assert!(matches!(model.get(&snapshot, 1), Err(keyloom::Error::NewerFormat { .. })));
    }
}

#[test]
fn an_empty_tree_and_one_of_many_nodes_count_alike() {
    let (model, _) = &both()[0];
    let store = Memory::new();
    store.transact(|txn| model.load(txn, None, &countries())).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(model.descendant_count(&snapshot, None).unwrap(), NODES);
    assert_eq!(model.descendant_count(&snapshot, 1).unwrap(), 15);
}
