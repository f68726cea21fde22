//! Places of nodes among their siblings.

use std::cmp::Ordering;

use keyloom::{Reader, Result};
use keyloom_kit::descending;

use super::node::NodeId;
use super::{NodeOf, Tree};

/// The place where a node is inserted, or to which it is moved. The parent `None` stands for the
/// roots.
///
/// ```
/// use keyloom_trees::InsertAt;
/// let place = InsertAt::last(7);
/// assert_eq!(place, InsertAt::Last(Some(7)));
/// assert_eq!(InsertAt::first(None), InsertAt::First(None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertAt {
    /// Before all other children of the parent.
    First(Option<NodeId>),
    /// After all other children of the parent.
    Last(Option<NodeId>),
    /// At a position: the number of other children that precede the node.
    At(Option<NodeId>, u64),
    /// Before the first other child with a greater name; names are compared byte by byte. If all
    /// children were placed this way, they are ordered by name. For another order, see
    /// [`sorted_place`](super::Tree::sorted_place).
    Sorted(Option<NodeId>),
    /// Directly before this sibling (to its left). Moving a node directly before or after itself
    /// changes nothing.
    Before(NodeId),
    /// Directly after this sibling (to its right).
    After(NodeId),
}

impl InsertAt {
    /// Returns [`InsertAt::First`] for this parent.
    pub fn first(parent: impl Into<Option<NodeId>>) -> Self {
        Self::First(parent.into())
    }

    /// Returns [`InsertAt::Last`] for this parent.
    pub fn last(parent: impl Into<Option<NodeId>>) -> Self {
        Self::Last(parent.into())
    }

    /// Returns [`InsertAt::At`] for this parent and position.
    pub fn at(parent: impl Into<Option<NodeId>>, position: u64) -> Self {
        Self::At(parent.into(), position)
    }

    /// Returns [`InsertAt::Sorted`] for this parent.
    pub fn sorted(parent: impl Into<Option<NodeId>>) -> Self {
        Self::Sorted(parent.into())
    }

    /// Whether the place is directly before or after the node `id`; moving that node there changes
    /// nothing.
    pub(crate) fn is_beside(self, id: NodeId) -> bool {
        matches!(self, Self::Before(sibling) | Self::After(sibling) if sibling == id)
    }

    /// The parent or the sibling that the place refers to; `None` for the roots.
    pub(crate) fn named(self) -> Option<NodeId> {
        match self {
            Self::First(parent)
            | Self::Last(parent)
            | Self::At(parent, _)
            | Self::Sorted(parent) => parent,
            Self::Before(sibling) | Self::After(sibling) => Some(sibling),
        }
    }
}

/// See [`Tree::sorted_place`].
pub(super) fn sorted_place<'r, T: Tree, R: Reader>(
    tree: &T,
    reader: &'r R,
    parent: Option<NodeId>,
    moved: Option<NodeId>,
    mut compare: impl FnMut(&NodeOf<'r, T, R>) -> Result<Ordering>,
) -> Result<InsertAt> {
    let is_other = |node: &Result<NodeOf<'r, T, R>>| {
        node.as_ref().map_or(true, |node| Some(node.id()) != moved)
    };
    let mut first = tree.children(reader, parent)?.filter(is_other);
    let mut last = tree.children(reader, descending(parent))?.filter(is_other);
    loop {
        // The last child comes first, since most new nodes are the last ones.
        let Some(node) = last.next().transpose()? else { return Ok(InsertAt::Last(parent)) };
        if compare(&node)?.is_le() {
            return Ok(InsertAt::After(node.id()));
        }
        // There is a first child, since there was a last one.
        let Some(node) = first.next().transpose()? else { return Ok(InsertAt::First(parent)) };
        if compare(&node)?.is_gt() {
            return Ok(InsertAt::Before(node.id()));
        }
    }
}

/// How [`delete_node`](super::Tree::delete_node) treats the children of the deleted node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// The children take the place of the deleted node, in their order.
    Reparent,
    /// The children become roots, after the other roots, in their order.
    Promote,
}
