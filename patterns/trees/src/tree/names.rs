//! Finding nodes by name.

use std::ops::Deref;

use keyloom::{Reader, Result, Writer};

use super::node::NodeId;
use super::{InsertAt, Tree, TreeNode, unknown};

/// Returns the first node with this name.
pub(crate) fn first_named<B: Deref<Target = [u8]>, V, C>(
    nodes: impl Iterator<Item = Result<TreeNode<B, V, C>>>,
    name: &str,
) -> Result<Option<NodeId>> {
    for node in nodes {
        let node = node?;
        if node.name()? == name {
            return Ok(Some(node.id()));
        }
    }
    Ok(None)
}

/// Resolves a sorted place for a node that will be renamed to `name`: returns the place before the
/// first sibling with a greater name. Returns any other place unchanged.
pub(super) fn unsorted(
    tree: &impl Tree,
    reader: &impl Reader,
    id: NodeId,
    name: &str,
    place: InsertAt,
) -> Result<InsertAt> {
    let InsertAt::Sorted(parent) = place else { return Ok(place) };
    if parent == Some(id) {
        return Ok(place);
    }
    for node in tree.children(reader, parent)? {
        let node = node?;
        if node.id() != id && node.name()? > name {
            return Ok(InsertAt::Before(node.id()));
        }
    }
    Ok(InsertAt::Last(parent))
}

/// The node at a path of names.
pub(crate) fn follow<'n>(
    tree: &impl Tree,
    reader: &impl Reader,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<Option<NodeId>> {
    follow_names(names, |parent, name| tree.child_named(reader, parent, name))
}

/// The node at a path of names; `child` returns the child of a node with a given name.
pub(crate) fn follow_names<'n>(
    names: impl IntoIterator<Item = &'n str>,
    mut child: impl FnMut(Option<NodeId>, &str) -> Result<Option<NodeId>>,
) -> Result<Option<NodeId>> {
    let mut node = None;
    for name in names {
        node = child(node, name)?;
        if node.is_none() {
            break;
        }
    }
    Ok(node)
}

/// The names on the path from the root to a node.
pub(super) fn names_to(tree: &impl Tree, reader: &impl Reader, id: NodeId) -> Result<Vec<String>> {
    let node = tree.get(reader, id)?.ok_or_else(|| unknown(tree.space(), id))?;
    let mut names = vec![node.name()?.to_owned()];
    for above in tree.ancestors(reader, id)? {
        names.push(above.name()?.to_owned());
    }
    names.reverse();
    Ok(names)
}

/// The node at a path of names; adds the nodes of the path that do not exist.
pub(super) fn create_path<'n, T: Tree, W: Writer>(
    tree: &T,
    txn: &mut W,
    names: impl IntoIterator<Item = &'n str>,
    value: &T::Value,
    place: impl Fn(Option<NodeId>) -> InsertAt,
    mut new_id: impl FnMut(&mut W) -> Result<NodeId>,
) -> Result<Option<NodeId>> {
    let mut node = None;
    for name in names {
        let child = match tree.child_named(txn, node, name)? {
            Some(child) => child,
            None => {
                let id = new_id(txn)?;
                tree.insert(txn, id, name, value, place(node))?;
                id
            }
        };
        node = Some(child);
    }
    Ok(node)
}
