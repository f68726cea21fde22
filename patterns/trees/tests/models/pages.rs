//! Pages, and reads that are composed of other reads, on a model and on the oracle.

use std::ops::RangeBounds;

use fastrand::Rng;
use keyloom::key::Subspace;
use keyloom::{Memory, Metered, Order, Reader, Result, Store};
use keyloom_tables::{descending, in_order};
use keyloom_trees::{
    AdjacencyList, InsertAt, MaterializedPath, NestedNode, NestedSets, NodeId, Tree, TreeError,
};

use crate::oracle::{Oracle, Rules};
use crate::questions::{DEPTHS, findings, outcome, same};
use keyloom_testing::laws::{clear, writing};

/// The part of a list after an element, or the error.
fn after<T: Clone>(
    list: std::result::Result<Vec<T>, TreeError>,
    id: impl Fn(&T) -> NodeId,
    last: NodeId,
    parent: Option<NodeId>,
) -> std::result::Result<Vec<T>, TreeError> {
    let list = list.unwrap_or_default();
    match list.iter().position(|one| id(one) == last) {
        Some(at) => Ok(list[at + 1..].to_vec()),
        None => Err(TreeError::NotBelow { node: last, parent }),
    }
}

/// All pages of a traversal, with at most `limit` items each.
macro_rules! all_pages {
    ($limit:expr, $after:ident => $page:expr, $shown:expr) => {
        (|| {
            let (mut found, mut token) = (Vec::new(), None);
            loop {
                let $after = token.as_ref();
                let page = $page?;
                assert!(page.items.len() == $limit || page.next.is_none());
                found.extend(page.items.iter().map($shown));
                token = page.next;
                if token.is_none() {
                    return Ok(found);
                }
            }
        })()
    };
}

pub fn ask_for_pages<T: Tree<Value = u32>>(
    model: &T,
    reader: &impl Reader,
    oracle: &Oracle,
    [one, other]: [NodeId; 2],
    rng: &mut Rng,
) {
    let limit = rng.usize(1..5);
    for parent in [Some(one), None] {
        for order in [Order::Ascending, Order::Descending] {
            let wanted = oracle.siblings_of(parent).map(|ids| {
                let mut ids = ids.to_vec();
                if order == Order::Descending {
                    ids.reverse();
                }
                ids
            });
            let rest = || {
                let rest = model.children_after(reader, in_order(parent, order), other)?;
                rest.map(|node| Ok(node?.id())).collect::<Result<Vec<_>>>()
            };
            let wanted_rest =
                oracle.node(other).and_then(|_| after(wanted.clone(), |id| *id, other, parent));
            same(("children_after", parent, other, order), rest(), wanted_rest);
            let children = model.children(reader, in_order(parent, order));
            let first = children.and_then(|mut children| children.next().transpose());
            let first = first.map(|node| node.map(|node| node.id()));
            let wanted_first = wanted.clone().map(|ids| ids.first().copied());
            same(("the first of the children", parent, order), first, wanted_first);
            let found = all_pages!(
                limit,
                after => model.children_page(reader, in_order(parent, order), limit, after),
                |node| node.id()
            );
            same(("children_page", parent, order, limit), found, wanted);
        }
        for depths in DEPTHS {
            let all = oracle.descendants(parent);
            let within = |visits: Vec<(u32, NodeId)>| {
                let within = visits.into_iter().filter(|(depth, _)| depths.contains(depth));
                within.collect::<Vec<_>>()
            };
            let rest = || {
                let rest = model.descendants_after(reader, parent, other, depths)?;
                let shown =
                    |visit: keyloom_trees::VisitedNode<_, _, _>| (visit.depth, visit.node.id());
                rest.map(|visit| Ok(shown(visit?))).collect::<Result<Vec<_>>>()
            };
            let wanted = oracle
                .node(other)
                .and_then(|_| after(all.clone(), |(_, id)| *id, other, parent).map(within));
            same(("descendants_after", parent, other, depths), rest(), wanted);
            let found = all_pages!(
                limit,
                after => model.descendants_page(reader, parent, depths, limit, after),
                |visit| (visit.depth, visit.node.id())
            );
            same(("descendants_page", parent, depths, limit), found, all.map(within));
        }
    }
    let names = oracle.ancestors(one).map(|above| {
        let path = above.iter().rev().chain([&one]);
        path.map(|id| oracle.find(*id).unwrap().name.clone()).collect::<Vec<_>>()
    });
    same(("names_to", one), model.names_to(reader, one), names);
}

/// Paths are created only once, only leaves are deleted, and a copy ends at its depth limit.
pub fn paths_are_created_once_and_leaves_are_deleted<T: Tree<Value = u32>>(
    store: &impl Store,
    make: impl Fn(&Subspace) -> T,
    _rules: Rules,
) {
    clear(store);
    let tree = make(&Subspace::new("tree"));
    let mut next = 0;
    let mut create = |names: &[&str]| {
        // A retried closure may use up ids.
        store
            .transact(|txn| {
                let new_id = |_: &mut _| {
                    next += 1;
                    Ok(next)
                };
                tree.create_path(txn, names.iter().copied(), &7, InsertAt::sorted, new_id)
            })
            .unwrap()
    };
    assert_eq!(create(&[]), None);
    let deep = create(&["a", "b", "c"]).unwrap();
    let beside = create(&["a", "b", "d"]).unwrap();
    assert_eq!(create(&["a", "b", "c"]), Some(deep));
    let b = create(&["a", "b"]).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(tree.names_to(&snapshot, beside).unwrap(), ["a", "b", "d"]);
    assert_eq!(tree.descendant_count(&snapshot, None).unwrap(), 4);
    let a = tree.parent(&snapshot, b).unwrap().unwrap();
    let shallow = [NestedNode::new(a, "a", 7).with(NestedNode::new(b, "b", 7))];
    assert_eq!(tree.export_to_depth(&snapshot, None, 2).unwrap(), shallow);
    assert_eq!(tree.export_to_depth(&snapshot, a, 1).unwrap(), shallow);
    drop(snapshot);

    let refused = outcome(store.transact(|txn| tree.delete_leaf(txn, b)));
    assert_eq!(refused, Err(TreeError::HasChildren { node: b, child: deep }));
    for leaf in [deep, beside, b] {
        store.transact(|txn| tree.delete_leaf(txn, leaf)).unwrap();
    }
    assert_eq!(tree.descendant_count(&store.snapshot().unwrap(), None).unwrap(), 1);
    assert!(store.transact(|txn| tree.delete_leaf(txn, b)).is_err());
}

/// A move with a rename: the old name may be taken at the new place, and the new name at the old
/// place.
pub fn a_move_takes_another_name<T: Tree<Value = u32>>(
    store: &impl Store,
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    clear(store);
    let tree = make(&Subspace::new("tree"));
    let leaf = |id: NodeId, name: &str| NestedNode::new(id, name, id as u32);
    let one = leaf(1, "a").with(leaf(11, "x").with(leaf(111, "below"))).with(leaf(12, "y"));
    let two = leaf(2, "b").with(leaf(21, "x"));
    let trees = [one, two];
    store.transact(|txn| tree.import(txn, None, &trees)).unwrap();
    let moved = |id, name: &str, place| store.transact(|txn| tree.move_as(txn, id, name, place));
    let names = || {
        let snapshot = store.snapshot().unwrap();
        assert_eq!(findings(&tree, &snapshot), [""; 0]);
        let visits = tree.descendants(&snapshot, None, ..).unwrap();
        let shown = visits.map(|visit| {
            let visit = visit?;
            Ok((visit.depth, visit.node.name()?.to_owned(), visit.node.value()?))
        });
        shown.collect::<Result<Vec<_>>>().unwrap()
    };
    let list = |all: &[(u32, &str, u32)]| {
        all.iter().map(|(depth, name, value)| (*depth, (*name).to_owned(), *value)).collect()
    };
    moved(11, "y", InsertAt::sorted(2)).unwrap();
    let after: Vec<(u32, String, u32)> = list(&[
        (1, "a", 1),
        (2, "y", 12),
        (1, "b", 2),
        (2, "x", 21),
        (2, "y", 11),
        (3, "below", 111),
    ]);
    assert_eq!(names(), after);
    // A refused move changes nothing.
    assert!(moved(2, "z", InsertAt::sorted(111)).is_err());
    assert!(moved(2, "z", InsertAt::sorted(2)).is_err());
    assert!(moved(99, "z", InsertAt::sorted(2)).is_err());
    let taken = outcome(moved(12, "x", InsertAt::sorted(2)));
    if !rules.unique_names {
        assert_eq!(taken, Ok(()));
    } else {
        let refused = TreeError::NameTaken { parent: Some(2), name: "x".into(), taken_by: 21 };
        assert_eq!(taken, Err(refused));
        assert_eq!(names(), after);
    }
    // Without another parent, the node is only renamed, and moves to the sorted position.
    moved(11, "w", InsertAt::sorted(2)).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(tree.names_to(&snapshot, 111).unwrap(), ["b", "w", "below"]);
    assert_eq!(tree.children(&snapshot, 2).unwrap().next().unwrap().unwrap().id(), 11);
}

/// The previous page ended with a node that was moved or deleted, or that belongs to another query.
pub fn pages_after_a_lost_node_are_refused<T: Tree<Value = u32>>(
    store: &impl Store,
    make: impl Fn(&Subspace) -> T,
    _rules: Rules,
) {
    clear(store);
    let tree = make(&Subspace::new("tree"));
    let child = |id: NodeId| NestedNode::new(id, format!("n{id}"), 0);
    let root = (11..14).map(child).fold(NestedNode::new(1, "root", 0), NestedNode::with);
    let trees = [root, NestedNode::new(2, "twig", 0)];
    store.transact(|txn| tree.import(txn, None, &trees)).unwrap();
    let page = |after: Option<&keyloom_tables::Continuation>| {
        let snapshot = store.snapshot().unwrap();
        let page = outcome(tree.children_page(&snapshot, 1, 1, after))?;
        let ids = page.items.iter().map(|node| node.id()).collect::<Vec<_>>();
        Ok::<_, TreeError>((ids, page.next))
    };
    let (ids, next) = page(None).unwrap();
    assert_eq!(ids, [11]);
    let snapshot = store.snapshot().unwrap();
    let other = tree.children_page(&snapshot, descending(1), 1, next.as_ref());
    assert!(matches!(other.map(drop), Err(keyloom::Error::InvalidArgument { .. })));
    let other = tree.descendants_page(&snapshot, 1, .., 1, next.as_ref());
    assert!(matches!(other.map(drop), Err(keyloom::Error::InvalidArgument { .. })));
    drop(snapshot);
    store.transact(|txn| tree.move_to(txn, 11, InsertAt::sorted(2))).unwrap();
    assert_eq!(page(next.as_ref()), Err(TreeError::NotBelow { node: 11, parent: Some(1) }));
    store.transact(|txn| tree.delete_subtree(txn, 2)).unwrap();
    let refused = page(next.as_ref()).unwrap_err();
    assert!(matches!(refused, TreeError::UnknownNode { node: 11, .. }), "{refused}");
}

/// Gets, ranges and keys read by a page of 20 children and a page of 20 descendants. The parent has
/// 100 children with 50 nodes below each. The costs are equal wherever the page begins.
fn costs_of_pages<T: Tree<Value = u32>>(make: impl Fn(&Subspace) -> T) -> [[u64; 3]; 2] {
    let store = Metered::new(Memory::new());
    let tree = make(&Subspace::new("tree"));
    let node = |id: NodeId| NestedNode::new(id, format!("{id:05}"), 0);
    let child =
        |n: NodeId| (1..=50).map(|m| node(100 * n + m)).fold(node(100 * n), NestedNode::with);
    let trees = [(1..=100).map(child).fold(node(1), NestedNode::with)];
    store.transact(|txn| tree.import(txn, None, &trees)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let of_children = |last: NodeId| {
        let rest = tree.children_after(&snapshot, 1, last).unwrap();
        assert!(rest.take(20).map(|node| node.unwrap().id()).eq((1..=20).map(|n| last + 100 * n)));
    };
    let of_descendants = |last: NodeId| {
        let rest = tree.descendants_after(&snapshot, 1, last, ..).unwrap();
        assert!(rest.take(20).map(|visit| visit.unwrap().node.id()).eq(last + 1..=last + 20));
    };
    let pages: [&dyn Fn(NodeId); 2] = [&of_children, &of_descendants];
    pages.map(|page| {
        let [early, late] = [500, 7_000].map(|last| {
            let (_, cost) = store.measure(|_| page(last));
            [cost.gets, cost.ranges, cost.keys_read]
        });
        assert_eq!(early, late);
        early
    })
}

#[test]
fn pages_cost_what_the_documentation_says() {
    let list = costs_of_pages(AdjacencyList::<u32>::new);
    let ids = costs_of_pages(MaterializedPath::<u32>::new);
    let names = costs_of_pages(|space| MaterializedPath::<u32>::new(space).of_names());
    let sets = costs_of_pages(NestedSets::<u32>::new);
    // A list finds out which nodes have children. In paths and in sets, each child has 50 keys
    // below, which a seek skips. In one of eight cases, 16 steps are tried before the seek.
    assert_eq!(list, [[1, 1, 21], [1, 4, 51]]);
    assert_eq!(ids, [[2, 20, 104], [3, 1, 22]]);
    assert_eq!(names, [[3, 20, 105], [3, 1, 22]]);
    assert_eq!(sets, [[5, 20, 107], [5, 1, 24]]);
}

/// Gets, ranges, keys read and keys written by a move of two nodes below another node, with and
/// without a rename.
fn costs_of_moves<T: Tree<Value = u32>>(make: impl Fn(&Subspace) -> T) -> [[u64; 4]; 2] {
    let node = |id: NodeId| NestedNode::new(id, format!("{id:05}"), 0);
    let trees = [node(1).with(node(11).with(node(111))).with(node(12)), node(2).with(node(21))];
    let tree = make(&Subspace::new("tree"));
    let cost = |name: Option<&str>| {
        let store = Metered::new(Memory::new());
        store.transact(|txn| tree.import(txn, None, &trees)).unwrap();
        writing(&store, |txn| match name {
            Some(name) => tree.move_as(txn, 11, name, InsertAt::sorted(2)),
            None => tree.move_to(txn, 11, InsertAt::sorted(2)),
        })
    };
    [cost(Some("00031")), cost(None)]
}

#[test]
fn moves_with_a_name_cost_what_the_documentation_says() {
    let list = costs_of_moves(AdjacencyList::<u32>::new);
    let ids = costs_of_moves(MaterializedPath::<u32>::new);
    let names = costs_of_moves(|space| MaterializedPath::<u32>::new(space).of_names());
    let sets = costs_of_moves(NestedSets::<u32>::new);
    assert_eq!(list, [[2, 1, 3, 5]; 2]);
    // If names are not in keys, the record is read and written once more.
    assert_eq!(ids, [[4, 3, 7, 5], [4, 3, 6, 5]]);
    assert_eq!(names, [[5, 1, 5, 5]; 2]);
    // A move followed by a rename.
    assert_eq!(sets, [[13, 3, 14, 6], [6, 2, 8, 5]]);
}
