//! The nodes of a tree: the children of a node, and its ancestors.

use keyloom::{AnySnapshot, Order, Store};
use keyloom_trees::{NodeId, Tree, TreeNode};
use serde_json::{Value, json};

use super::params::{Params, id};
use super::site::Site;
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Result};
use crate::models::{KIND, OnTree, on_tree};
use crate::shown;

/// The children of a page. In nested sets each costs 4 keys, so that no subtree is read.
const MOST_CHILDREN: usize = 14;
/// The ancestors that are listed. In nested sets each costs 5 keys.
const MOST_ANCESTORS: usize = 6;

/// The children of a node, or the roots, with the ancestors of the node.
pub fn tree(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let part = catalog.require(&params.name)?;
    if part.kind != KIND {
        return Err(Failure::new(format!("{:?} is not a tree", params.name)));
    }
    let snapshot = site.store.snapshot()?;
    on_tree(part, None, View { snapshot: &snapshot, catalog: &catalog, part, params })
}

/// A tree in a snapshot.
struct View<'v> {
    snapshot: &'v AnySnapshot<'v>,
    catalog: &'v Catalog,
    part: &'v Part,
    params: &'v Params,
}

impl OnTree for View<'_> {
    type Output = Value;

    fn run<T: Tree>(self, tree: &T) -> Result<Value> {
        let parent = node_id("node", &self.params.node)?;
        let last = node_id("last", &self.params.last)?;
        let (ancestors, has_more_above) = self.ancestors(tree, parent)?;
        let (children, has_more) = self.children(tree, parent, last)?;
        Ok(json!({
            "name": id(self.part), "model": self.part.options, "table": self.catalog.table_of(self.part).map(id),
            "ancestors": ancestors, "more_above": has_more_above, "children": children,
            "more": has_more,
        }))
    }
}

impl View<'_> {
    /// The path to a node, with the node at its end, and whether it has more ancestors.
    fn ancestors<T: Tree>(&self, tree: &T, node: Option<NodeId>) -> Result<(Vec<Value>, bool)> {
        let (mut path, mut next) = (Vec::new(), node);
        while let Some(id) = next.filter(|_| path.len() <= MOST_ANCESTORS) {
            let node = tree.get(self.snapshot, id)?;
            let node = node.ok_or_else(|| Failure::new(format!("there is no node {id}")))?;
            path.push(self.shown(&node));
            next = tree.parent(self.snapshot, id)?;
        }
        path.reverse();
        Ok((path, next.is_some()))
    }

    /// The children after `last`, one seek for each: a walk through all children could read whole
    /// subtrees.
    fn children<T: Tree>(
        &self,
        tree: &T,
        parent: Option<NodeId>,
        last: Option<NodeId>,
    ) -> Result<(Vec<Value>, bool)> {
        let mut next = match last {
            None => tree.children(self.snapshot, parent)?.next().transpose()?,
            Some(last) => tree.sibling(self.snapshot, last, Order::Ascending)?,
        };
        let mut children = Vec::new();
        while let Some(child) = next.take_if(|_| children.len() < MOST_CHILDREN) {
            children.push(self.shown(&child));
            next = tree.sibling(self.snapshot, child.id(), Order::Ascending)?;
        }
        Ok((children, next.is_some()))
    }

    fn shown<B: std::ops::Deref<Target = [u8]>, V, C>(&self, node: &TreeNode<B, V, C>) -> Value {
        let name = match node.name() {
            Ok(name) => name.escape_debug().to_string(),
            Err(error) => format!("(not readable: {error})"),
        };
        let record = self.catalog.table_of(self.part).map(|table| table.space.pack(&node.id()));
        // As text, because a number of JavaScript holds only 53 bits of an integer.
        let id = node.id().to_string();
        json!({"id": id, "name": name, "key_hex": record.map(|key| shown::hex(&key))})
    }
}

/// The id of a node in a parameter.
fn node_id(name: &str, text: &str) -> Result<Option<NodeId>> {
    let failed = |_| Failure::new(format!("{name} is the number of a node"));
    (!text.is_empty()).then(|| text.trim().parse().map_err(failed)).transpose()
}
