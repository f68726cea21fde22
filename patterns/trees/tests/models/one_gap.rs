//! Many inserts at one place, on a store with small transactions.

use std::ops::ControlFlow;

use keyloom::{Fault, Faulty, Limits, Memory, Result, Store, Subspace};
use keyloom_tables::Progress;
use keyloom_testing::laws::dump_all;
use keyloom_trees::{
    AdjacencyList, InsertAt, MaterializedPath, NestedSets, NodeId, Tree, TreeError,
};

fn narrow() -> Memory {
    let limits = Limits::default().with_max_transaction(None, Some(50));
    Memory::builder().limits(limits).build()
}

/// A store whose transactions take few bytes and any number of keys.
fn narrow_in_bytes() -> Memory {
    let limits = Limits::default().with_max_transaction(Some(4_000), None);
    Memory::builder().limits(limits).build()
}

fn space() -> Subspace {
    Subspace::new("tree")
}

fn lacks_room(error: &keyloom::Error) -> bool {
    matches!(error.downcast_ref(), Some(TreeError::NoRoom { .. }))
}

/// The place of the node with an id, of nodes that are all inserted into one gap.
type Place = fn(NodeId) -> InsertAt;

/// Always before one node, after one node, or between the two nodes inserted last.
const PLACES: [Place; 3] = [
    |_| InsertAt::Before(2),
    |_| InsertAt::After(1),
    |id| match id {
        3 => InsertAt::After(1),
        id if id % 2 == 0 => InsertAt::Before(id - 1),
        id => InsertAt::After(id - 1),
    },
];

/// A tree, and its root nodes in order.
struct Gap<'t, T, S> {
    tree: &'t T,
    store: S,
    order: Vec<NodeId>,
}

impl<'t, T: Tree<Value = u32>, S: Store> Gap<'t, T, S> {
    fn new(tree: &'t T, store: S) -> Self {
        let mut gap = Self { tree, store, order: Vec::new() };
        gap.insert(1, InsertAt::last(None)).unwrap();
        gap.insert(2, InsertAt::last(None)).unwrap();
        gap
    }

    fn insert(&mut self, id: NodeId, place: InsertAt) -> Result<()> {
        self.store.transact(|txn| self.tree.insert(txn, id, "node", &0, place))?;
        let at = |other| self.order.iter().position(|id| *id == other).unwrap();
        let at = match place {
            InsertAt::Before(other) => at(other),
            InsertAt::After(other) => at(other) + 1,
            _ => self.order.len(),
        };
        self.order.insert(at, id);
        Ok(())
    }

    /// Makes room by calls that are each stopped after one commit, and inserts.
    fn make_room_and_insert(&mut self, id: NodeId, place: InsertAt) -> usize {
        let mut calls = 1;
        let stopped = |_: &Progress| ControlFlow::Break(());
        while !self.tree.make_room(&self.store, "node", place, 1, stopped).unwrap().finished {
            calls += 1;
            assert!(calls < 10_000);
            assert_eq!(self.stored(), self.order, "the order is unchanged");
        }
        self.insert(id, place).unwrap();
        calls
    }

    fn stored(&self) -> Vec<NodeId> {
        let snapshot = self.store.snapshot().unwrap();
        let children = self.tree.children(&snapshot, None).unwrap();
        children.map(|child| child.unwrap().id()).collect()
    }

    fn is_whole(&self) {
        assert_eq!(self.stored(), self.order);
        let mut faults = Vec::new();
        let note = |fault| {
            faults.push(fault);
            ControlFlow::Continue(())
        };
        self.tree.check_each(&self.store.snapshot().unwrap(), note).unwrap();
        assert_eq!(faults, []);
    }
}

fn inserts_continue(tree: &impl Tree<Value = u32>, store: fn() -> Memory, inserts: NodeId) {
    let (mut refused, mut calls) = (0, 0);
    for place in PLACES {
        let mut gap = Gap::new(tree, store());
        for id in 3..inserts {
            if let Err(error) = gap.insert(id, place(id)) {
                assert!(lacks_room(&error), "{error}");
                refused += 1;
                calls += gap.make_room_and_insert(id, place(id));
            }
        }
        gap.is_whole();
    }
    println!("{refused} refused, {calls} calls");
    assert!(refused > 0 && calls > 2 * refused, "{refused}, {calls}");
}

#[test]
fn inserts_into_one_gap_of_a_list_continue() {
    inserts_continue(&AdjacencyList::new(&space()), narrow, 4_000);
    inserts_continue(&AdjacencyList::new(&space()), narrow_in_bytes, 4_000);
}

#[test]
fn inserts_into_one_gap_of_paths_continue() {
    inserts_continue(&MaterializedPath::new(&space()), narrow, 1_200);
    inserts_continue(&MaterializedPath::new(&space()), narrow_in_bytes, 1_200);
}

#[test]
fn inserts_into_one_gap_of_nested_sets_continue() {
    inserts_continue(&NestedSets::new(&space()), narrow, 300);
    inserts_continue(&NestedSets::new(&space()), narrow_in_bytes, 300);
}

/// A tree in which the next insert has no room; the id and the place of that insert.
fn crowded<'t, T: Tree<Value = u32>>(tree: &'t T) -> (Gap<'t, T, Memory>, NodeId, InsertAt) {
    let mut gap = Gap::new(tree, narrow());
    let mut id = 3;
    loop {
        let place = PLACES[2](id);
        match gap.insert(id, place) {
            Ok(()) => id += 1,
            Err(error) => {
                assert!(lacks_room(&error), "{error}");
                return (gap, id, place);
            }
        }
    }
}

/// Other writers insert into the gap between the transactions that make room.
fn others_insert_meanwhile(tree: &impl Tree<Value = u32>) {
    let (gap, id, place) = crowded(tree);
    let (mut order, store) = (gap.order.clone(), gap.store.clone());
    let mut other = Gap { tree, store: gap.store, order: gap.order };
    let (mut next, mut met, mut finished) = (id + 1, 0, 0);
    let insert = |progress: &Progress| {
        finished += u32::from(progress.finished);
        // At the front of the crowd, which the relabelling has left, and in the middle of it.
        for place in [InsertAt::After(1), InsertAt::After(next / 3)] {
            if other.order.len() < order.len() + 20 && other.insert(next, place).is_ok() {
                (next, met) = (next + 1, met + 1);
            }
        }
        ControlFlow::Continue(())
    };
    assert!(tree.make_room(&store, "node", place, 1, insert).unwrap().finished);
    assert!(met > 1, "{met}");
    assert!(finished <= 1, "{finished} reports of the end");
    order = other.order.clone();
    let mut gap = Gap { tree, store, order };
    gap.is_whole();
    gap.insert(id, place).unwrap();
    gap.is_whole();
}

/// A fault at any operation leaves the order, and the next call continues.
fn faults_leave_the_order(tree: &impl Tree<Value = u32>) {
    let (mut gap, id, place) = crowded(tree);
    let store = Faulty::new(gap.store.clone());
    let all = |_: &Progress| ControlFlow::Continue(());
    let before = dump_all(&gap.store);
    let mut failed = 0;
    for n in (0..).step_by(37) {
        store.fail_at(n, Fault::Error);
        let outcome = tree.make_room(&store, "node", place, 1, all);
        store.clear_fault();
        assert_eq!(gap.stored(), gap.order);
        match outcome {
            Err(_) => failed += 1,
            Ok(done) if done.finished => break,
            Ok(_) => unreachable!("nothing stops it"),
        }
    }
    assert!(failed > 3, "{failed}");
    assert_ne!(dump_all(&gap.store), before);
    gap.insert(id, place).unwrap();
    gap.is_whole();
}

/// Room for any number of nodes; more than a nested set can have are refused.
#[test]
fn room_is_made_for_any_number_of_nodes() {
    let all = |_: &Progress| ControlFlow::Continue(());
    let (list, paths) = (AdjacencyList::new(&space()), MaterializedPath::new(&space()));
    for nodes in [0, 1, 100_000, u64::MAX] {
        let (mut gap, id, place) = crowded(&list);
        assert!(list.make_room(&gap.store, "node", place, nodes, all).unwrap().finished);
        gap.insert(id, place).unwrap();
        gap.is_whole();
        let (mut gap, id, place) = crowded(&paths);
        assert!(paths.make_room(&gap.store, "node", place, nodes, all).unwrap().finished);
        gap.insert(id, place).unwrap();
        gap.is_whole();
    }
    let sets = NestedSets::new(&space());
    let (gap, _, place) = crowded(&sets);
    let refused = sets.make_room(&gap.store, "node", place, u64::MAX, all).unwrap_err();
    assert!(matches!(refused.downcast_ref(), Some(TreeError::TooManyNodes { .. })), "{refused}");
}

#[test]
fn room_is_made_beside_other_writers() {
    others_insert_meanwhile(&AdjacencyList::new(&space()));
    others_insert_meanwhile(&MaterializedPath::new(&space()));
    others_insert_meanwhile(&NestedSets::new(&space()));
}

#[test]
fn faults_while_room_is_made_leave_the_order() {
    faults_leave_the_order(&AdjacencyList::new(&space()));
    faults_leave_the_order(&MaterializedPath::new(&space()));
    faults_leave_the_order(&NestedSets::new(&space()));
}

/// The siblings around the gap have more descendants than a transaction takes, so they move in
/// steps.
#[test]
fn siblings_with_large_subtrees_make_way_in_steps() {
    let tree = MaterializedPath::<u32>::new(&space());
    let (mut gap, id, place) = crowded(&tree);
    let large = [id - 1, id - 2, 1];
    for (n, parent) in large.into_iter().enumerate() {
        for child in 0..60 {
            let child = 100_000 + 1_000 * n as u64 + child;
            let place = InsertAt::last(parent);
            gap.store.transact(|txn| tree.insert(txn, child, "below", &0, place)).unwrap();
        }
    }
    // While another subtree is deleted in steps, there is no second record of steps.
    gap.insert(500_000, InsertAt::last(None)).unwrap();
    for child in 0..60 {
        let place = InsertAt::last(500_000);
        let child = 500_001 + child;
        gap.store.transact(|txn| tree.insert(txn, child, "below", &0, place)).unwrap();
    }
    tree.delete_in_steps(&gap.store, 500_000, |_| ControlFlow::Break(())).unwrap();
    let all = |_: &Progress| ControlFlow::Continue(());
    let refused = tree.make_room(&gap.store, "node", place, 1, all).unwrap_err();
    assert!(matches!(refused.downcast_ref(), Some(TreeError::InSteps { .. })), "{refused}");
    assert!(tree.resume(&gap.store, all).unwrap().finished);
    gap.order.retain(|id| *id != 500_000);
    gap.is_whole();
    // Other writers insert beside the siblings that move.
    let (stopped, mut next) = (|_: &Progress| ControlFlow::Break(()), 600_000);
    while !tree.make_room(&gap.store, "node", place, 1, stopped).unwrap().finished {
        for sibling in large {
            for place in [InsertAt::Before(sibling), InsertAt::After(sibling)] {
                let is_new = next < 600_040 && gap.insert(next, place).is_ok();
                next += NodeId::from(is_new);
            }
        }
        assert_eq!(gap.stored(), gap.order);
    }
    assert!(next > 600_020, "{next}");
    gap.make_room_and_insert(id, place);
    gap.is_whole();
    let snapshot = gap.store.snapshot().unwrap();
    for parent in large {
        assert_eq!(tree.child_count(&snapshot, parent).unwrap(), 60);
    }
}

#[test]
fn a_place_with_room_is_left_as_it_is() {
    let tree = MaterializedPath::<u32>::new(&space());
    let gap = Gap::new(&tree, narrow());
    let before = dump_all(&gap.store);
    let all = |_: &Progress| ControlFlow::Continue(());
    let done = tree.make_room(&gap.store, "node", InsertAt::After(1), 1, all).unwrap();
    assert_eq!((done.finished, done.changed()), (true, 0));
    assert_eq!(dump_all(&gap.store), before);
    let unknown = tree.make_room(&gap.store, "node", InsertAt::After(77), 1, all).unwrap_err();
    assert!(matches!(unknown.downcast_ref(), Some(TreeError::UnknownNode { .. })), "{unknown}");
}
