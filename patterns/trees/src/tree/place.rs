//! Places of nodes among their siblings.

use super::node::NodeId;

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
    /// At a position: this many of the other children precede the node.
    At(Option<NodeId>, u64),
    /// Before the first of the other children whose name is greater, compared byte by byte.
    /// Children that were all placed this way are ordered by name.
    Sorted(Option<NodeId>),
    /// Directly before this sibling (to its left). Moving a node directly before or after itself
    /// changes nothing.
    Before(NodeId),
    /// Directly after this sibling (to its right).
    After(NodeId),
}

impl InsertAt {
    /// [`InsertAt::First`].
    pub fn first(parent: impl Into<Option<NodeId>>) -> Self {
        Self::First(parent.into())
    }

    /// [`InsertAt::Last`].
    pub fn last(parent: impl Into<Option<NodeId>>) -> Self {
        Self::Last(parent.into())
    }

    /// [`InsertAt::At`].
    pub fn at(parent: impl Into<Option<NodeId>>, position: u64) -> Self {
        Self::At(parent.into(), position)
    }

    /// [`InsertAt::Sorted`].
    pub fn sorted(parent: impl Into<Option<NodeId>>) -> Self {
        Self::Sorted(parent.into())
    }

    /// Whether it is directly before or after this node; moving the node itself there changes
    /// nothing.
    pub(crate) fn is_beside(self, id: NodeId) -> bool {
        matches!(self, Self::Before(sibling) | Self::After(sibling) if sibling == id)
    }

    /// The parent or the sibling in this place; `None` for the roots.
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

/// What happens to the children of a node that is [deleted on its own](super::Tree::delete_node).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// They take the place of the deleted node, in their order.
    Reparent,
    /// They become roots, after the other roots, in their order.
    Promote,
}
