//! Finding nodes by name.

use std::ops::Deref;

use keyloom::{Order, Reader, Result};

use super::{InsertAt, NodeId, Tree, TreeNode};

/// The first of the nodes with this name.
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

/// The place of a node that is to have another name: a sorted place becomes that before a sibling.
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
    for node in tree.children(reader, parent, Order::Ascending)? {
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

/// The node at a path of names; `child` returns the child with a name.
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
