//! All queries of a tree, on a model and on the oracle.

use std::fmt::Debug;
use std::ops::Bound;

use fastrand::Rng;
use keyloom::{Order, Reader, Result};
use keyloom_tables::in_order;
use keyloom_trees::{NodeId, Tree, TreeError};

use crate::operations::name;
use crate::oracle::{Node, Oracle};
use crate::pages::ask_for_pages;

/// The error of a model, or the number of nodes that an operation deleted.
pub fn outcome<T>(outcome: Result<T>) -> std::result::Result<T, TreeError> {
    outcome.map_err(|error| match error.downcast_ref::<TreeError>() {
        Some(refused) => refused.clone(),
        None => panic!("no refusal: {error} ({error:?})"),
    })
}

#[track_caller]
pub fn same<T: Debug + PartialEq>(
    what: impl Debug,
    found: Result<T>,
    wanted: std::result::Result<T, TreeError>,
) {
    assert_eq!(outcome(found), wanted, "{what:?}");
}

/// The findings of `check`, printed.
pub fn findings(model: &impl Tree, reader: &impl Reader) -> Vec<String> {
    let mut findings = Vec::new();
    let note = |found: keyloom_tables::Inconsistency| {
        findings.push(found.to_string());
        std::ops::ControlFlow::Continue(())
    };
    model.check_each(reader, note).unwrap();
    findings
}

/// Compares the whole tree, and checks its consistency.
pub fn compare_whole<T: Tree<Value = u32>>(model: &T, reader: &impl Reader, oracle: &Oracle) {
    assert_eq!(findings(model, reader), [""; 0]);
    assert_eq!(model.export(reader, None).unwrap(), oracle.forest());
}

type Shown = (NodeId, String, u32);
/// A range of depths. For large results, queries compare only the ids.
type Depths = (Bound<u32>, Bound<u32>);

pub const DEPTHS: [Depths; 7] = [
    (Bound::Unbounded, Bound::Unbounded),
    (Bound::Included(1), Bound::Unbounded),
    (Bound::Included(1), Bound::Included(2)),
    (Bound::Excluded(1), Bound::Excluded(3)),
    (Bound::Unbounded, Bound::Excluded(1)),
    (Bound::Included(3), Bound::Included(1)),
    (Bound::Included(0), Bound::Excluded(0)),
];

/// Some queries on two nodes, which may or may not be in the tree.
pub fn ask<T: Tree<Value = u32>>(
    model: &T,
    reader: &impl Reader,
    oracle: &Oracle,
    [one, other]: [NodeId; 2],
    rng: &mut Rng,
) {
    let shown = |id: &NodeId| -> Shown {
        let Node { name, value, .. } = oracle.find(*id).unwrap();
        (*id, name.clone(), *value)
    };
    let all = |ids: &[NodeId]| ids.iter().map(shown).collect::<Vec<Shown>>();
    macro_rules! show {
        ($node:expr) => {{
            let node = $node;
            (node.id(), node.name()?.to_owned(), node.value()?)
        }};
    }
    let get = || {
        Ok(match model.get(reader, one)? {
            Some(node) => Some(show!(node)),
            None => None,
        })
    };
    same(("get", one), get(), Ok(oracle.find(one).map(|_| shown(&one))));
    same(("parent", one), model.parent(reader, one), oracle.node(one).map(|node| node.parent));
    let ancestors = || model.ancestors(reader, one)?.iter().map(|node| Ok(show!(node))).collect();
    same(("ancestors", one), ancestors(), oracle.ancestors(one).map(|ids| all(&ids)));
    let depth = oracle.ancestors(one).map(|ids| ids.len() as u32);
    same(("depth", one), model.depth(reader, one), depth);

    for order in [Order::Ascending, Order::Descending] {
        let beside = || {
            Ok(match model.sibling(reader, one, order)? {
                Some(node) => Some(show!(node)),
                None => None,
            })
        };
        let wanted = oracle.node(one).map(|node| {
            let siblings = oracle.siblings_of(node.parent).unwrap();
            let at = siblings.iter().position(|sibling| *sibling == one).unwrap();
            let at = match order {
                Order::Ascending => at.checked_add(1),
                Order::Descending => at.checked_sub(1),
            };
            at.and_then(|at| siblings.get(at)).map(shown)
        });
        same(("sibling", one, order), beside(), wanted);
    }
    for parent in [Some(one), None] {
        for order in [Order::Ascending, Order::Descending] {
            let children = || {
                let children = model.children(reader, in_order(parent, order))?;
                children.map(|node| Ok(show!(node?))).collect::<Result<Vec<Shown>>>()
            };
            let wanted = oracle.siblings_of(parent).map(|ids| {
                let mut ids = ids.to_vec();
                if order == Order::Descending {
                    ids.reverse();
                }
                all(&ids)
            });
            same(("children", parent, order), children(), wanted);
        }
        let count = oracle.siblings_of(parent).map(|ids| ids.len() as u64);
        same(("child_count", parent), model.child_count(reader, parent), count);
        let name = name(rng);
        let named = oracle
            .siblings_of(parent)
            .map(|ids| ids.iter().copied().find(|id| oracle.find(*id).unwrap().name == name));
        same(("child_named", parent, &name), model.child_named(reader, parent, &name), named);

        for depths in DEPTHS {
            let found = || {
                let visits = model.descendants(reader, parent, depths)?;
                let shown = visits.map(|visit| {
                    let visit = visit?;
                    Ok((visit.depth, show!(&visit.node)))
                });
                shown.collect::<Result<Vec<(u32, Shown)>>>()
            };
            let wanted = oracle.descendants(parent).map(|visits| {
                let within = visits
                    .iter()
                    .filter(|(depth, _)| std::ops::RangeBounds::contains(&depths, depth));
                within.map(|(depth, id)| (*depth, shown(id))).collect::<Vec<_>>()
            });
            same(("descendants", parent, depths), found(), wanted);
        }
        let below = oracle.descendants(parent);
        let count =
            below.clone().map(|visits| visits.iter().filter(|(d, _)| *d > 0).count() as u64);
        same(("descendant_count", parent), model.descendant_count(reader, parent), count);
        let leaves = || {
            let leaves = model.leaves(reader, parent)?;
            leaves.map(|node| Ok(show!(node?))).collect::<Result<Vec<Shown>>>()
        };
        let wanted = below.map(|visits| {
            let ids = visits.iter().map(|(_, id)| *id);
            let leaves = ids.filter(|id| oracle.find(*id).unwrap().children.is_empty());
            all(&leaves.collect::<Vec<_>>())
        });
        same(("leaves", parent), leaves(), wanted);
    }
    // These queries read as much as all others together.
    if rng.u8(..4) == 0 {
        ask_for_pages(model, reader, oracle, [one, other], rng);
    }
    ask_of_two(model, reader, oracle, [one, other]);
    ask_for_names(model, reader, oracle, one);
}

fn ask_of_two<T: Tree<Value = u32>>(
    model: &T,
    reader: &impl Reader,
    oracle: &Oracle,
    [one, other]: [NodeId; 2],
) {
    let path = |id| {
        oracle.ancestors(id).map(|mut path| {
            path.reverse();
            path.push(id);
            path
        })
    };
    let above = oracle.node(one).and_then(|_| Ok(oracle.ancestors(other)?.contains(&one)));
    same(("is_ancestor", one, other), model.is_ancestor(reader, one, other), above);
    let common = path(one).and_then(|of_one| {
        let of_other = path(other)?;
        let shared = of_one.iter().zip(&of_other).take_while(|(a, b)| a == b);
        Ok(shared.last().map(|(id, _)| *id))
    });
    let found = model.lowest_common_ancestor(reader, one, other);
    same(("lowest_common_ancestor", one, other), found, common);
}

fn ask_for_names<T: Tree<Value = u32>>(
    model: &T,
    reader: &impl Reader,
    oracle: &Oracle,
    node: NodeId,
) {
    let Ok(mut path) = oracle.ancestors(node) else { return };
    path.reverse();
    path.push(node);
    let names: Vec<&str> = path.iter().map(|id| &*oracle.find(*id).unwrap().name).collect();
    let mut wanted = None;
    for name in &names {
        let children = oracle.siblings_of(wanted).unwrap();
        wanted = children.iter().copied().find(|id| oracle.find(*id).unwrap().name == *name);
        if wanted.is_none() {
            break;
        }
    }
    same(("node_at", &names), model.node_at(reader, names.iter().copied()), Ok(wanted));
}
