//! Where a node goes.

use super::NodeId;

/// Where a node goes, or is moved to. `None` as the parent stands for the roots of the forest.
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
    /// Behind all other children of the parent.
    Last(Option<NodeId>),
    /// So that this many of the other children stand before it.
    At(Option<NodeId>, u64),
    /// Before the first of the other children whose name is greater, byte by byte: children that
    /// were all placed so stand in the order of their names.
    Sorted(Option<NodeId>),
    /// Directly before this sibling ("left" of it). To move a node directly before or after itself
    /// changes nothing.
    Before(NodeId),
    /// Directly behind this sibling ("right" of it).
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

    /// Whether it is directly before or after this node: of a move there it is where it stands.
    pub(crate) fn is_beside(self, id: NodeId) -> bool {
        matches!(self, Self::Before(sibling) | Self::After(sibling) if sibling == id)
    }

    /// The parent or the sibling that it names, `None` for the roots.
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

/// What becomes of the children of a node that is [deleted alone](super::Tree::delete_node).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDelete {
    /// They take the place of the deleted node, in their order.
    Reparent,
    /// They become roots, behind the other roots, in their order.
    Promote,
}
