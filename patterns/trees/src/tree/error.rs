//! Errors of trees, and utilities for checks.

use std::ops::ControlFlow;

use keyloom::{Error, KeyBuf, Result, Subspace};
use keyloom_kit::{Inconsistency, Rule};

use super::node::NodeId;

/// An error of a tree. Methods return it as an [`Error::Other`]; get it with
/// [`Error::downcast_ref`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// There is no node with this id. Insert the node first, or use another id.
    #[error("the tree {tree} has no node {node}; insert it first, or name another")]
    UnknownNode {
        /// The subspace of the tree.
        tree: String,
        /// The unknown id.
        node: NodeId,
    },
    /// A node with this id exists already. Use another id, or move that node.
    #[error("the tree {tree} already has a node {node}; use another id, or move that node")]
    NodeExists {
        /// The subspace of the tree.
        tree: String,
        /// The id.
        node: NodeId,
    },
    /// A node cannot be placed below itself, or below or beside one of its descendants. Move that
    /// descendant out first.
    #[error(
        "node {node} cannot go to {target}, which is the node itself or below it; move {target} out of it first"
    )]
    BelowItself {
        /// The node to be moved.
        node: NodeId,
        /// The node below or beside which it would go.
        target: NodeId,
    },
    /// A walk cannot continue after this node, because the node is not below the start of the walk.
    /// Another transaction may have moved the node. Start again from the first page.
    #[error("node {node} is not below {parent}, or not any more; begin the pages again", parent = parent_name(*.parent))]
    NotBelow {
        /// The node after which the walk would continue.
        node: NodeId,
        /// The start of the walk, or the parent of the children; `None` for the roots.
        parent: Option<NodeId>,
    },
    /// The node has children, so it is not deleted as a leaf. Delete the children first, or the
    /// whole subtree.
    #[error("node {node} has children, such as {child}; delete them first, or the whole subtree")]
    HasChildren {
        /// The node.
        node: NodeId,
        /// The first child of the node.
        child: NodeId,
    },
    /// The parent has fewer other children than the position requires. Use
    /// [`InsertAt::Last`](super::InsertAt::Last).
    #[error("position {position} does not fit: there are {children} other children of {parent}; use a smaller one, or the last place", parent = parent_name(*.parent))]
    NoSuchPosition {
        /// The parent; `None` for the roots.
        parent: Option<NodeId>,
        /// The requested position.
        position: u64,
        /// The number of children, without the node being moved.
        children: u64,
    },
    /// A sibling has this name, and the tree requires unique names among siblings. Use another
    /// name.
    #[error("the name {name:?} below {parent} belongs to node {taken_by}; use another name", parent = parent_name(*.parent))]
    NameTaken {
        /// The parent; `None` for the roots.
        parent: Option<NodeId>,
        /// The name.
        name: String,
        /// The sibling with this name.
        taken_by: NodeId,
    },
    /// This tree orders siblings by name. Use [`InsertAt::Sorted`](super::InsertAt::Sorted).
    #[error("siblings of the tree {tree} are sorted by name; use a sorted place")]
    OrderedByName {
        /// The subspace of the tree.
        tree: String,
    },
    /// A key with the path of the node exceeds the maximum length of a key. Shorten names, or use
    /// ids as the segments.
    #[error(
        "the path of node {node} makes a key of {bytes} bytes, the limit is {limit}; shorten names or the tree, or let ids be the segments"
    )]
    PathTooLong {
        /// The node with this path.
        node: NodeId,
        /// The length of the key.
        bytes: usize,
        /// The maximum length of a key.
        limit: usize,
    },
    /// In a tree with unique names, the name is part of a key. With this name the key exceeds the
    /// maximum length. Shorten the name.
    #[error(
        "the name of node {node} makes a key of {bytes} bytes, the limit is {limit}; shorten the name"
    )]
    NameTooLong {
        /// The node with this name.
        node: NodeId,
        /// The length of the key.
        bytes: usize,
        /// The maximum length of a key.
        limit: usize,
    },
    /// The tree has its maximum number of nodes. Store some subtrees as separate trees.
    #[error("the tree {tree} may have at most {limit} nodes; store parts of it as separate trees")]
    TooManyNodes {
        /// The subspace of the tree.
        tree: String,
        /// The maximum number of nodes.
        limit: u64,
    },
    /// There is no free label at this place of [nested sets](crate::NestedSets), or no short rank
    /// at this place of a list or of paths, and relabelling would write too many keys for one
    /// transaction. Call [`make_room`](super::Tree::make_room) and repeat the change. In nested
    /// sets, a move can also be repeated by [`move_in_steps`](super::Tree::move_in_steps), which
    /// makes room itself.
    #[error(
        "the tree {tree} has no room there, and relabelling writes at least {keys} keys, too many for a transaction of this store; call make_room and run the change again"
    )]
    NoRoom {
        /// The subspace of the tree.
        tree: String,
        /// The number of keys to be written in addition to the change, at least.
        keys: u64,
    },
    /// A node lies below itself, or below a node that does not exist. See
    /// [`check`](super::Tree::check) and [`repair`](super::Tree::repair).
    #[error(
        "node {node} of the tree {tree} is below itself, or does not exist but has descendants; run repair"
    )]
    Broken {
        /// The subspace of the tree.
        tree: String,
        /// The node at which the path to the root ends.
        node: NodeId,
    },
    /// A move or a deletion in steps has not finished, and the change would affect the same nodes.
    /// Finish the work in steps with [`resume`](super::Tree::resume).
    #[error(
        "node {node} of the tree {tree} is being moved or deleted in steps; finish that first with resume"
    )]
    InSteps {
        /// The subspace of the tree.
        tree: String,
        /// The root of the subtree being moved or deleted.
        node: NodeId,
    },
}

fn parent_name(parent: Option<NodeId>) -> String {
    parent.map_or_else(|| "no node (a root)".into(), |parent| format!("node {parent}"))
}

/// The error for a node that does not exist.
#[cold]
pub(crate) fn unknown(tree: &Subspace, node: NodeId) -> Error {
    TreeError::UnknownNode { tree: tree.named(), node }.into()
}

/// The error for a walk that cannot continue after `node`.
#[cold]
pub(crate) fn not_below(node: NodeId, parent: Option<NodeId>) -> Error {
    TreeError::NotBelow { node, parent }.into()
}

/// The error for a node that exists already.
#[cold]
pub(crate) fn exists(tree: &Subspace, node: NodeId) -> Error {
    TreeError::NodeExists { tree: tree.named(), node }.into()
}

impl From<TreeError> for Error {
    fn from(error: TreeError) -> Self {
        Self::other(error)
    }
}

/// Passes faults to a callback until the callback breaks.
pub(crate) struct Findings<F> {
    found: F,
    stopped: bool,
}

impl<F: FnMut(Inconsistency) -> ControlFlow<()>> Findings<F> {
    pub(crate) fn new(found: F) -> Self {
        Self { found, stopped: false }
    }

    pub(crate) fn report(&mut self, key: &[u8], rule: Rule) {
        self.pass_on(Inconsistency::new(KeyBuf::from_slice(key), rule));
    }

    pub(crate) fn pass_on(&mut self, fault: Inconsistency) {
        self.stopped = self.stopped || (self.found)(fault).is_break();
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped
    }
}

/// Wraps a callback so that it is not called again after it has broken.
pub(crate) fn stoppable(
    mut found: impl FnMut(Inconsistency) -> ControlFlow<()>,
) -> impl FnMut(Inconsistency) -> ControlFlow<()> {
    let mut stopped = false;
    move |fault| {
        stopped = stopped || found(fault).is_break();
        if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Returns the decoded value, `None` if the value does not decode, or an error if its format is
/// newer.
///
/// Use this function only for a definition: the entry that determines how all other entries of the
/// tree are read. With a newer definition this program can neither check nor repair the other
/// entries. Any other entry that does not decode is a single fault, whatever its format byte.
pub(crate) fn unless_newer<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error @ Error::NewerFormat { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The match is exhaustive, so a new variant must be added to the test below.
    fn kind(error: &TreeError) -> usize {
        match error {
            TreeError::UnknownNode { .. } => 0,
            TreeError::NodeExists { .. } => 1,
            TreeError::BelowItself { .. } => 2,
            TreeError::NoSuchPosition { .. } => 3,
            TreeError::NameTaken { .. } => 4,
            TreeError::OrderedByName { .. } => 5,
            TreeError::PathTooLong { .. } => 6,
            TreeError::NameTooLong { .. } => 7,
            TreeError::TooManyNodes { .. } => 8,
            TreeError::Broken { .. } => 9,
            TreeError::InSteps { .. } => 10,
            TreeError::NoRoom { .. } => 11,
            TreeError::NotBelow { .. } => 12,
            TreeError::HasChildren { .. } => 13,
        }
    }

    #[test]
    fn each_message_names_what_it_is_about_the_limit_and_what_to_do() {
        let tree = || "(\"goods\")".to_owned();
        let (node, parent) = (7, Some(3));
        let name = "pears".to_owned();
        let cases = [
            (
                TreeError::UnknownNode { tree: tree(), node },
                "the tree (\"goods\") has no node 7; insert it first, or name another",
            ),
            (
                TreeError::NodeExists { tree: tree(), node },
                "the tree (\"goods\") already has a node 7; use another id, or move that node",
            ),
            (
                TreeError::BelowItself { node, target: 9 },
                "node 7 cannot go to 9, which is the node itself or below it; move 9 out of it first",
            ),
            (
                TreeError::NoSuchPosition { parent: None, position: 5, children: 2 },
                "position 5 does not fit: there are 2 other children of no node (a root); use a smaller one, or the last place",
            ),
            (
                TreeError::NameTaken { parent, name, taken_by: 8 },
                "the name \"pears\" below node 3 belongs to node 8; use another name",
            ),
            (
                TreeError::OrderedByName { tree: tree() },
                "siblings of the tree (\"goods\") are sorted by name; use a sorted place",
            ),
            (
                TreeError::PathTooLong { node, bytes: 600, limit: 511 },
                "the path of node 7 makes a key of 600 bytes, the limit is 511; shorten names or the tree, or let ids be the segments",
            ),
            (
                TreeError::NameTooLong { node, bytes: 600, limit: 511 },
                "the name of node 7 makes a key of 600 bytes, the limit is 511; shorten the name",
            ),
            (
                TreeError::TooManyNodes { tree: tree(), limit: 32 },
                "the tree (\"goods\") may have at most 32 nodes; store parts of it as separate trees",
            ),
            (
                TreeError::Broken { tree: tree(), node },
                "node 7 of the tree (\"goods\") is below itself, or does not exist but has descendants; run repair",
            ),
            (
                TreeError::InSteps { tree: tree(), node },
                "node 7 of the tree (\"goods\") is being moved or deleted in steps; finish that first with resume",
            ),
            (
                TreeError::NoRoom { tree: tree(), keys: 9_000 },
                "the tree (\"goods\") has no room there, and relabelling writes at least 9000 keys, too many for a transaction of this store; call make_room and run the change again",
            ),
            (
                TreeError::NotBelow { node, parent },
                "node 7 is not below node 3, or not any more; begin the pages again",
            ),
            (
                TreeError::HasChildren { node, child: 9 },
                "node 7 has children, such as 9; delete them first, or the whole subtree",
            ),
        ];
        let kinds: BTreeSet<usize> = cases.iter().map(|(error, _)| kind(error)).collect();
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), (0..=13).collect::<Vec<_>>());
        for (error, message) in cases {
            assert_eq!(error.to_string(), message);
            assert_eq!(Error::from(error.clone()).downcast_ref(), Some(&error));
        }
    }
}
