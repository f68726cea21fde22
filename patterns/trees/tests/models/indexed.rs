//! Data derived from the nodes of a tree is maintained through every change, in every model.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow::{Break, Continue};

use fastrand::Rng;
use keyloom::key::Subspace;
use keyloom::value::{Json, Postcard};
use keyloom::{Error, Metered, Result, Store, Writer};
use keyloom_tables::aggregate::{Contributions, Totals, contribution};
use keyloom_tables::schema::State;
use keyloom_tables::{
    Attached, Inconsistency, Index, IndexEntries, Maintained, Rule, Schema, SchemaError, entry,
};
use keyloom_trees::DeclareTree as _;
use keyloom_trees::{
    AdjacencyList, InsertAt, MaterializedPath, NestedNode, NestedSets, NodeCodec, NodeId,
    NodeRecord, OnDelete, Tree, TreeModel,
};

use crate::operations::{Mix, Operation, perform};
use crate::oracle::Rules;
use crate::questions::findings;
use keyloom_testing::laws::{
    Dump, clear, conflicts_are_retried_to_the_same_end, dump, dump_all,
    faults_leave_nothing_half_done, writing,
};

/// A model with its options, and its rules beyond the contract.
struct Model<T> {
    make: fn(&Subspace) -> T,
    rules: Rules,
}

/// Runs a test function for each model.
macro_rules! each_model {
    ($law:ident, $store:expr) => {{
        $law($store, &Model { make: AdjacencyList::<u32>::new, rules: Rules::NONE });
        $law($store, &Model { make: of_unique_names, rules: Rules::UNIQUE_NAMES });
        $law($store, &Model { make: NestedSets::<u32>::new, rules: Rules::NONE });
        $law($store, &Model { make: MaterializedPath::<u32>::new, rules: Rules::NONE });
        $law($store, &Model { make: of_names, rules: Rules::ORDERED_BY_NAME });
    }};
}

fn of_unique_names(space: &Subspace) -> AdjacencyList<u32> {
    AdjacencyList::new(space).with_unique_names()
}

fn of_names(space: &Subspace) -> MaterializedPath<u32> {
    MaterializedPath::new(space).of_names()
}

type Of<D> = Attached<D, NodeCodec<Postcard>>;

/// A tree and the data derived from its nodes.
struct Indexed<T> {
    tree: T,
    by_name: Of<Index<NodeId, NodeRecord<u32>, (String, u32)>>,
    sums: Of<Totals<NodeId, NodeRecord<u32>, String>>,
    deferred: Of<Index<NodeId, NodeRecord<u32>, (String, u32)>>,
}

impl<T: TreeModel<Value = u32, Codec = Postcard>> Model<T> {
    fn tree(&self, store: &impl Store) -> T {
        Schema::open(store, "files").unwrap().tree("dirs", self.make).unwrap()
    }

    fn indexed(&self, store: &impl Store) -> Indexed<T> {
        let schema = Schema::open(store, "files").unwrap();
        let tree = schema.tree("dirs", self.make).unwrap();
        let nodes = tree.nodes().unwrap();
        let by_name = schema.index(nodes, "by_name", 1, name_and_value).unwrap();
        let sums = schema.totals(nodes, "sums", 1, value_of_name).unwrap();
        let make = |space: &Subspace| Ok(Index::new(space, name_and_value));
        let deferred = schema.derive_deferred(nodes, "deferred", 1, make).unwrap();
        Indexed { tree, by_name, sums, deferred }
    }
}

fn name_and_value(_: &NodeId, node: &NodeRecord<u32>) -> IndexEntries<(String, u32)> {
    entry((node.name(), *node.value()))
}

fn value_of_name(_: &NodeId, node: &NodeRecord<u32>) -> Contributions<String> {
    contribution(node.name(), i64::from(*node.value()))
}

/// The name, value and id of each node.
type Nodes = BTreeSet<(String, u32, NodeId)>;

impl<T: Tree<Value = u32>> Indexed<T> {
    /// The expected contents of the indexes, computed from the tree alone.
    fn expected(&self, store: &impl Store) -> Nodes {
        let forest = self.tree.export(&store.snapshot().unwrap(), None).unwrap();
        let nodes = forest.iter().flat_map(NestedNode::preorder);
        nodes.map(|(_, node)| (node.name.clone(), node.value, node.id)).collect()
    }

    fn found(&self, store: &impl Store) -> Nodes {
        let query = self.by_name.query().limit(100_000);
        let records = query.records(&store.snapshot().unwrap()).unwrap();
        let of_each =
            |(id, node): (NodeId, NodeRecord<u32>)| (node.name().into(), *node.value(), id);
        records.items.into_iter().map(of_each).collect()
    }

    fn assert_in_step(&self, store: &impl Store) {
        assert_eq!(self.found(store), self.expected(store));
        let mut sums = BTreeMap::<String, i64>::new();
        for (name, value, _) in self.expected(store) {
            *sums.entry(name).or_default() += i64::from(value);
        }
        let snapshot = store.snapshot().unwrap();
        for (name, sum) in sums {
            assert_eq!(self.sums.at(&snapshot).unwrap().get(&snapshot, &name).unwrap(), sum);
        }
        assert_eq!(self.faults(store), [""; 0]);
    }

    fn faults(&self, store: &impl Store) -> Vec<String> {
        let snapshot = store.snapshot().unwrap();
        let mut faults = findings(&self.tree, &snapshot);
        faults.extend(self.by_name.check(&snapshot).unwrap().iter().map(ToString::to_string));
        faults.extend(self.sums.check(&snapshot).unwrap().iter().map(ToString::to_string));
        faults.extend(self.deferred.check(&snapshot).unwrap().iter().map(ToString::to_string));
        faults
    }
}

/// A root with `children` children, which have two children each.
fn wide(children: u64) -> Vec<NestedNode<u32>> {
    let node = |id: u64| NestedNode::new(id, format!("node {id:05}"), (id % 7) as u32);
    let mut root = node(1);
    for child in 0..children {
        let first = 3 * child + 2;
        root = root.with(node(first).with(node(first + 1)).with(node(first + 2)));
    }
    vec![root]
}

pub fn nodes_rebuilt_equal_nodes_maintained(store: &(impl Store + Clone)) {
    each_model!(rebuilt_equals_maintained, store);
}

fn rebuilt_equals_maintained<T: TreeModel<Value = u32, Codec = Postcard>>(
    store: &(impl Store + Clone),
    model: &Model<T>,
) {
    for seed in 0..4 {
        clear(store);
        let indexed = model.indexed(store);
        let mut rng = Rng::with_seed(seed);
        let mix = Mix { ids: [8, 60][seed as usize % 2], rules: model.rules, deletions: 10 };
        let mut accepted = 0;
        for (n, operation) in mix.operations(&mut rng, 60).into_iter().enumerate() {
            let outcome = store.transact(|txn| perform(&indexed.tree, txn, &operation));
            accepted += u32::from(outcome.is_ok());
            // Checking every step would take four times as long without finding more, since a fault
            // of a change persists.
            if n % 4 == 3 {
                indexed.assert_in_step(store);
            }
            if n % 20 == 19 {
                indexed.deferred.drain(store).unwrap();
                let snapshot = store.snapshot().unwrap();
                assert_eq!(
                    indexed.deferred.query().limit(1_000).keys(&snapshot).unwrap(),
                    indexed.by_name.query().limit(1_000).keys(&snapshot).unwrap()
                );
            }
        }
        assert!(accepted > 15, "only {accepted} operations were not refused");
        let entries = || {
            let snapshot = store.snapshot().unwrap();
            [indexed.by_name.space(), indexed.sums.space()]
                .map(|space| dump(&snapshot, space.self_and_children()))
        };
        let maintained = entries();
        store
            .transact(|txn| {
                indexed.by_name.disable(txn)?;
                indexed.sums.disable(txn)
            })
            .unwrap();
        indexed.by_name.build(store).unwrap();
        indexed.sums.build(store).unwrap();
        // A total of 0 may remain stored.
        let nonzero = |mut entries: Dump| {
            entries.retain(|_, value| value.iter().any(|byte| *byte != 0));
            entries
        };
        assert_eq!(entries().map(nonzero), maintained.map(nonzero));
    }
}

/// A negative control of the law above: the tree does not maintain derived data for one kind of
/// operation. The check reports this, and the repair fixes it.
pub fn a_tree_that_forgets_an_operation_is_caught(store: &(impl Store + Clone)) {
    each_model!(forgetting_is_caught, store);
}

fn forgetting_is_caught<T: TreeModel<Value = u32, Codec = Postcard>>(
    store: &(impl Store + Clone),
    model: &Model<T>,
) {
    let place = InsertAt::sorted(2);
    let operations = [
        Operation::Insert { id: 90, name: "new".into(), value: 5, place },
        Operation::Rename { id: 5, name: "other".into() },
        Operation::SetValue { id: 6, value: 60 },
        Operation::DeleteSubtree { id: 8 },
        Operation::DeleteNode { id: 2, orphans: OnDelete::Reparent },
        Operation::Load { parent: Some(5), trees: vec![NestedNode::new(95, "loaded", 5)] },
    ];
    for operation in operations {
        clear(store);
        let indexed = model.indexed(store);
        store.transact(|txn| indexed.tree.import(txn, None, &wide(3))).unwrap();
        let forgetful = (model.make)(indexed.tree.space());
        store.transact(|txn| perform(&forgetful, txn, &operation)).unwrap();
        assert_ne!(indexed.expected(store), indexed.found(store), "{operation:?}");
        assert_ne!(indexed.faults(store), [""; 0], "{operation:?}");
        assert!(indexed.tree.repair(store).unwrap().changed() > 0);
        indexed.assert_in_step(store);
    }
}

/// Changes of all kinds to `wide(3)`.
fn changes() -> Vec<Operation> {
    let place = InsertAt::sorted(2);
    vec![
        Operation::Insert { id: 90, name: "new".into(), value: 5, place },
        Operation::Rename { id: 5, name: "other".into() },
        Operation::SetValue { id: 6, value: 60 },
        Operation::Move { id: 9, place },
        Operation::DeleteSubtree { id: 8 },
        Operation::DeleteNode { id: 5, orphans: OnDelete::Reparent },
    ]
}

pub fn faults_leave_no_node_half_indexed(store: &(impl Store + Clone)) {
    each_model!(faults_leave_nothing, store);
}

fn faults_leave_nothing<T: TreeModel<Value = u32, Codec = Postcard>>(
    store: &(impl Store + Clone),
    model: &Model<T>,
) {
    clear(store);
    let indexed = model.indexed(store);
    let empty = dump_all(store);
    let prepare = |store: &_| prepare(store, &empty, &indexed.tree);
    let change = |txn: &mut keyloom::DynWriter<'_>| change(txn, &indexed.tree);
    faults_leave_nothing_half_done(store, prepare, change, |store| indexed.faults(store));
    conflicts_are_retried_to_the_same_end(store, prepare, change);
    indexed.assert_in_step(store);
}

fn prepare<T: Tree<Value = u32>>(store: &impl Store, empty: &Dump, tree: &T) {
    clear(store);
    store.transact(|txn| empty.iter().try_for_each(|(k, v)| txn.put(k, v))).unwrap();
    store.transact(|txn| tree.import(txn, None, &wide(3))).unwrap();
}

fn change<T: Tree<Value = u32>>(txn: &mut impl Writer, tree: &T) -> Result<()> {
    changes().iter().try_for_each(|change| perform(tree, txn, change).map(drop))
}

pub fn work_in_steps_keeps_nodes_indexed(store: &(impl Store + Clone)) {
    each_model!(steps_keep_nodes_indexed, store);
}

fn steps_keep_nodes_indexed<T: TreeModel<Value = u32, Codec = Postcard>>(
    store: &(impl Store + Clone),
    model: &Model<T>,
) {
    clear(store);
    let indexed = model.indexed(store);
    let tree = &indexed.tree;
    let assert_sound = || assert_eq!(indexed.faults(store), [""; 0]);
    store.transact(|txn| tree.import(txn, None, &wide(400))).unwrap();
    store.transact(|txn| tree.insert(txn, 9_000, "zoo", &1, InsertAt::sorted(None))).unwrap();
    tree.move_in_steps(store, 1, InsertAt::sorted(9_000), |_| {
        assert_sound();
        Continue(())
    })
    .unwrap();
    indexed.assert_in_step(store);
    assert_eq!(indexed.found(store).len(), 1_202);

    tree.delete_in_steps(store, 1, |_| Break(())).unwrap();
    assert_sound();
    tree.resume(store, |_| {
        assert_sound();
        Continue(())
    })
    .unwrap();
    indexed.assert_in_step(store);
    assert_eq!(indexed.found(store).len(), 1);
}

pub fn a_rename_in_steps_keeps_nodes_indexed(store: &(impl Store + Clone)) {
    clear(store);
    let indexed = Model { make: of_names, rules: Rules::ORDERED_BY_NAME }.indexed(store);
    store.transact(|txn| indexed.tree.import(txn, None, &wide(400))).unwrap();
    indexed
        .tree
        .rename_in_steps(store, 1, "renamed", |_| {
            indexed.assert_in_step(store);
            Continue(())
        })
        .unwrap();
    let found = indexed.by_name.query().prefix("renamed").keys(&store.snapshot().unwrap());
    assert_eq!(found.unwrap().items, [1]);
}

pub fn an_index_is_built_over_nodes_that_are_there(store: &(impl Store + Clone)) {
    each_model!(index_is_built, store);
}

fn index_is_built<T: TreeModel<Value = u32, Codec = Postcard>>(
    store: &(impl Store + Clone),
    model: &Model<T>,
) {
    clear(store);
    let without = model.tree(store);
    store.transact(|txn| without.import(txn, None, &wide(40))).unwrap();

    let Indexed { tree, by_name, .. } = model.indexed(store);
    assert_eq!(by_name.state(&store.snapshot().unwrap()).unwrap(), State::Disabled);
    // Writers change nodes before and after the position of the build.
    let (mut next, mut left) = (200, 12);
    by_name
        .build_with(store, 10, |_| {
            next += 1;
            store.transact(|txn| tree.set_value(txn, next % 120 + 1, &77)).unwrap();
            store.transact(|txn| tree.rename(txn, next % 50 + 1, &format!("n {next}"))).unwrap();
            left -= 1;
            if left < 0 { Break(()) } else { Continue(()) }
        })
        .unwrap();
    // A tree handle that was opened before the index existed cannot make the index inconsistent.
    let error = store.transact(|txn| without.set_value(txn, 5, &5)).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(SchemaError::Undeclared { .. })), "{error}");
    let indexed = model.indexed(store);
    indexed.by_name.build(store).unwrap();
    indexed.sums.build(store).unwrap();
    indexed.deferred.build(store).unwrap();
    indexed.assert_in_step(store);

    for derived in ["by_name", "sums", "deferred"] {
        Schema::open(store, "files").unwrap().drop_derived("dirs", derived).unwrap();
    }
    store.transact(|txn| without.set_value(txn, 5, &5)).unwrap();
}

pub fn a_tree_that_was_dropped_takes_no_change(store: &(impl Store + Clone)) {
    each_model!(dropped_takes_no_change, store);
}

fn dropped_takes_no_change<T: TreeModel<Value = u32, Codec = Postcard>>(
    store: &(impl Store + Clone),
    model: &Model<T>,
) {
    clear(store);
    let tree = model.tree(store);
    store.transact(|txn| tree.import(txn, None, &wide(3))).unwrap();
    let schema = Schema::open(store, "files").unwrap();
    // The drop has begun, and all nodes still exist.
    schema.drop_table_with("dirs", 1, |_| Break(())).unwrap();
    for change in changes() {
        let error = store.transact(|txn| perform(&tree, txn, &change)).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(SchemaError::Gone { .. })), "{error}");
    }
    let place = InsertAt::sorted(5);
    assert!(tree.move_in_steps(store, 9, place, |_| Continue(())).is_err());
    assert!(tree.delete_in_steps(store, 9, |_| Continue(())).is_err());
    schema.drop_table("dirs").unwrap();
    assert!(schema.tables().unwrap().is_empty());
    let space = tree.space().self_and_children();
    assert!(dump(&store.snapshot().unwrap(), space).is_empty());
}

pub fn a_tree_of_another_definition_is_refused(store: &(impl Store + Clone)) {
    clear(store);
    Schema::open(store, "files").unwrap().tree("dirs", of_unique_names).unwrap();
    let open = || Schema::open(store, "files").unwrap();
    let contradicts = |error: Error| {
        let refused = matches!(
            error.downcast_ref(),
            Some(SchemaError::Contradiction { .. } | SchemaError::ChangedRecord { .. })
        );
        assert!(refused, "{error}");
    };
    contradicts(open().tree("dirs", AdjacencyList::<u32>::new).unwrap_err());
    contradicts(open().tree("dirs", NestedSets::<u32>::new).unwrap_err());
    contradicts(open().tree("dirs", MaterializedPath::<u32>::new).unwrap_err());
    contradicts(open().tree("dirs", of_names).unwrap_err());
    contradicts(open().tree("dirs", AdjacencyList::<u64>::new).unwrap_err());
    contradicts(open().tree("dirs", AdjacencyList::<u32, Json>::with_codec).unwrap_err());
    contradicts(open().table::<NodeId, u32>("dirs").unwrap_err());
    // Options of an open tree may also contradict the stored ones.
    let late = open().tree("other", AdjacencyList::<u32>::new).unwrap().with_unique_names();
    let error =
        store.transact(|txn| late.insert(txn, 1, "a", &1, InsertAt::last(None))).unwrap_err();
    assert!(error.to_string().contains("with_unique_names"), "{error}");
    let late = open().tree("paths", MaterializedPath::<u32>::new).unwrap().of_names();
    let sorted = InsertAt::sorted(None);
    let error = store.transact(|txn| late.insert(txn, 1, "a", &1, sorted)).unwrap_err();
    assert!(error.to_string().contains("of_names"), "{error}");
}

pub fn nodes_of_a_tree_are_written_by_the_tree_alone(store: &(impl Store + Clone)) {
    clear(store);
    let open = || Schema::open(store, "files").unwrap();
    let tree = open().tree("dirs", NestedSets::<u32>::new).unwrap();
    store.transact(|txn| tree.import(txn, None, &wide(3))).unwrap();
    let before = dump_all(store);
    let nodes =
        open().table_with::<NodeId, NodeRecord<u32>, NodeCodec<Postcard>>("dirs", 1).unwrap();
    let error = store.transact(|txn| nodes.delete(txn, &3)).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(SchemaError::Undeclared { .. })), "{error}");
    assert!(open().disable("dirs", "tree").is_err());
    assert!(open().drop_derived("dirs", "tree").is_err());
    assert_eq!(dump_all(store), before);
}

pub fn a_damaged_record_of_a_node_is_found_and_repaired(store: &(impl Store + Clone)) {
    each_model!(damage_is_repaired, store);
}

fn damage_is_repaired<T: TreeModel<Value = u32, Codec = Postcard>>(
    store: &(impl Store + Clone),
    model: &Model<T>,
) {
    clear(store);
    let schema = Schema::open(store, "files").unwrap();
    let tree = schema.tree("dirs", model.make).unwrap();
    let by_name = schema.index(tree.nodes().unwrap(), "by_name", 1, name_and_value).unwrap();
    store.transact(|txn| tree.import(txn, None, &wide(3))).unwrap();
    let data = || {
        let snapshot = store.snapshot().unwrap();
        let spaces = [tree.space(), tree.nodes().unwrap().space(), &by_name.space()];
        spaces.map(|space| dump(&snapshot, space.self_and_children()))
    };
    let sound = data();
    let space = tree.nodes().unwrap().space().clone();
    let [undecodable, missing, dangling, deleted] = [3_u64, 4, 70, 6].map(|id| space.pack(&id));
    store
        .transact(|txn| {
            txn.put(&undecodable, b"?")?;
            txn.put(&deleted, b"?")?;
            txn.delete(&missing)?;
            txn.put(&dangling, b"?")
        })
        .unwrap();
    let mut faults = Vec::new();
    let note = |fault: Inconsistency| {
        faults.push((fault.key, fault.rule));
        Continue(())
    };
    tree.check_each(&store.snapshot().unwrap(), note).unwrap();
    assert_eq!(faults.len(), 4, "{faults:?}");
    for (key, rule) in [
        (undecodable, Rule::Wrong),
        (deleted.clone(), Rule::Wrong),
        (missing, Rule::Missing),
        (dangling, Rule::Dangling),
    ] {
        assert!(faults.contains(&(key.clone(), rule)), "{rule:?}: {faults:?}");
    }
    assert_eq!(tree.repair(store).unwrap().changed(), 4);
    by_name.repair(store).unwrap();
    assert!(data() == sound, "the repair restores all keys");
    // A node can be deleted although its record does not decode.
    store.transact(|txn| txn.put(&deleted, b"?")).unwrap();
    store.transact(|txn| tree.delete_subtree(txn, 6)).unwrap();
    by_name.repair(store).unwrap();
    assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
    assert_eq!(by_name.check(&store.snapshot().unwrap()).unwrap(), []);
}

pub fn an_index_without_a_schema_follows_a_tree(store: &(impl Store + Clone)) {
    each_model!(index_without_schema_follows, store);
}

fn index_without_schema_follows<T: TreeModel<Value = u32, Codec = Postcard>>(
    store: &(impl Store + Clone),
    model: &Model<T>,
) {
    clear(store);
    let index = |space: &Subspace| Index::new(space, name_and_value);
    let space = Subspace::new("tree");
    let by_name = index(&Subspace::new("by_name"));
    let bare = (model.make)(&space);
    assert!(bare.nodes().is_err());
    store.transact(|txn| bare.import(txn, None, &wide(3))).unwrap();
    // The first repair writes the records of existing nodes.
    let tree = bare.clone().with(&by_name);
    assert_eq!(tree.repair(store).unwrap().changed(), 10);
    assert_eq!(findings(&tree, &store.snapshot().unwrap()), [""; 0]);
    store.transact(|txn| tree.rename(txn, 2, "renamed")).unwrap();
    store.transact(|txn| tree.delete_subtree(txn, 5)).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(by_name.count(&snapshot, ("renamed",)).unwrap(), 1);
    assert_eq!(by_name.count(&snapshot, ..).unwrap(), 7);
    assert_eq!(by_name.check(&snapshot, tree.nodes().unwrap()).unwrap(), []);
    drop(snapshot);

    let inside = bare.with(&index(&space.child("node")));
    let before = dump_all(store);
    assert!(store.transact(|txn| inside.set_value(txn, 2, &9)).is_err());
    assert_eq!(dump_all(store), before);
}

/// The cost of the table of nodes: one get and one written key for each change of a name or a
/// value, none for a move. A transaction reads the table's entry once.
pub fn a_node_costs_a_get_and_a_key_more(store: &(impl Store + Clone)) {
    clear(store);
    let plain = AdjacencyList::<u32>::new(&Subspace::new("plain"));
    let schema = Schema::open(store, "files").unwrap();
    let tree = schema.tree("dirs", AdjacencyList::<u32>::new).unwrap();
    for tree in [&plain, &tree] {
        store.transact(|txn| tree.import(txn, None, &wide(3))).unwrap();
    }
    let metered = Metered::new(store.clone());
    let more = |change: &Operation| {
        let [of_plain, of_tree] = [&plain, &tree].map(|tree| {
            let work = |txn: &mut keyloom::DynWriter<'_>| perform(tree, txn, change).map(drop);
            writing(&metered, work)
        });
        [0, 1, 2, 3].map(|n| of_tree[n] - of_plain[n])
    };
    let [gets, _, _, written] = more(&Operation::SetValue { id: 3, value: 9 });
    assert_eq!((gets, written), (2, 1));
    let [gets, _, _, written] = more(&Operation::Rename { id: 3, name: "other".into() });
    assert_eq!((gets, written), (2, 1));
    let [gets, _, _, written] = more(&Operation::Move { id: 3, place: InsertAt::last(5) });
    assert_eq!((gets, written), (1, 0));
    let [gets, _, _, written] = more(&Operation::DeleteSubtree { id: 8 });
    assert_eq!((gets, written), (4, 3));
}
