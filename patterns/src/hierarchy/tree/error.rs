//! What trees refuse, and what is not as it should be in one.

use std::fmt;
use std::ops::ControlFlow;

use keyloom::key::display;
use keyloom::{Error, KeyBuf, Result, Subspace};

use super::NodeId;

/// What a tree refuses. It comes as an [`Error::Other`]; get it back with [`Error::downcast_ref`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// There is no node of this id. Insert it first, or take another.
    #[error("the tree {tree} has no node {node}; insert it first, or name another")]
    UnknownNode {
        /// The subspace of the tree.
        tree: String,
        /// The id asked for.
        node: NodeId,
    },
    /// There is a node of this id already. Take another id, or move the node.
    #[error("the tree {tree} has a node {node} already; take another id, or move that node")]
    NodeExists {
        /// The subspace of the tree.
        tree: String,
        /// The id that was given.
        node: NodeId,
    },
    /// A node can not be placed below or beside itself, or below what lies below it. Move that one out first.
    #[error(
        "node {node} cannot go to {target}, which is itself or lies below it; move {target} out of it first"
    )]
    BelowItself {
        /// The node to be moved.
        node: NodeId,
        /// The node below or beside which it should go.
        target: NodeId,
    },
    /// The parent has fewer other children than should stand before the node. Take [`Place::Last`](super::Place::Last).
    #[error("position {position} does not fit: there are {children} other children of {parent}; take a smaller one, or the last place", parent = parent_name(*.parent))]
    NoSuchPosition {
        /// The parent, `None` for the roots.
        parent: Option<NodeId>,
        /// The position that was asked for.
        position: u64,
        /// How many children there are, without the one that is moved.
        children: u64,
    },
    /// A sibling has this name, in a tree whose names are unique among siblings. Take another name.
    #[error("the name {name:?} below {parent} belongs to node {taken_by}; take another name", parent = parent_name(*.parent))]
    NameTaken {
        /// The parent, `None` for the roots.
        parent: Option<NodeId>,
        /// The name.
        name: String,
        /// Who has it.
        taken_by: NodeId,
    },
    /// In this tree siblings stand in the order of their names. Ask for [`Place::Sorted`](super::Place::Sorted).
    #[error(
        "siblings of the tree {tree} stand in the order of their names; ask for a sorted place"
    )]
    OrderedByName {
        /// The subspace of the tree.
        tree: String,
    },
    /// The path of a node makes a key longer than a key may be. Shorten names, or use ids as the segments.
    #[error(
        "the path of node {node} makes a key of {bytes} bytes, the limit is {limit}; shorten names or the tree, or let ids be the segments"
    )]
    PathTooLong {
        /// The node whose path it is.
        node: NodeId,
        /// How long the key would be.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The tree has no room for more nodes. Keep what lies below some of them in trees of their own.
    #[error(
        "the tree {tree} takes no more than {limit} nodes; keep parts of it as trees of their own"
    )]
    TooManyNodes {
        /// The subspace of the tree.
        tree: String,
        /// How many nodes it takes.
        limit: u64,
    },
    /// A node lies below itself, or below a node that is not there. See [`check`](super::Tree::check) and
    /// [`repair`](super::Tree::repair).
    #[error(
        "node {node} of the tree {tree} lies below itself, or is not there though others lie below it; run repair"
    )]
    Broken {
        /// The subspace of the tree.
        tree: String,
        /// The node at which the way ends.
        node: NodeId,
    },
    /// A move or a deletion in steps has not ended, and the change would meet it. Finish it with
    /// [`finish_steps`](super::Tree::finish_steps).
    #[error(
        "node {node} of the tree {tree} is being moved or deleted in steps; finish that first (finish_steps)"
    )]
    InSteps {
        /// The subspace of the tree.
        tree: String,
        /// The root of the subtree that is moved or deleted.
        node: NodeId,
    },
}

fn parent_name(parent: Option<NodeId>) -> String {
    parent.map_or_else(|| "no node (a root)".into(), |parent| format!("node {parent}"))
}

/// The error for a node that is not there.
#[cold]
pub(crate) fn unknown(tree: &Subspace, node: NodeId) -> Error {
    TreeError::UnknownNode { tree: tree.to_string(), node }.into()
}

/// The error for a node that is there already.
#[cold]
pub(crate) fn exists(tree: &Subspace, node: NodeId) -> Error {
    TreeError::NodeExists { tree: tree.to_string(), node }.into()
}

impl From<TreeError> for Error {
    fn from(error: TreeError) -> Self {
        Self::other(error)
    }
}

/// Which rule of a tree is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeRule {
    /// What should be at the key is not there.
    Missing,
    /// What is at the key does not agree with the rest of the tree.
    Wrong,
    /// Nothing in the tree asks for what is at the key.
    Dangling,
    /// The key or its value is nothing of this tree.
    Foreign,
    /// The node names a parent that is not there.
    NoParent,
    /// The node lies below itself.
    Cycle,
}

/// One thing that is not as it should be: where, and which rule it breaks. Where it stops an operation it is the error,
/// as an [`Error::Other`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TreeInconsistency {
    /// The key.
    pub key: KeyBuf,
    /// The rule.
    pub rule: TreeRule,
}

impl fmt::Display for TreeInconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = match self.rule {
            TreeRule::Missing => "is missing",
            TreeRule::Wrong => "does not agree with the rest of the tree",
            TreeRule::Dangling => "dangles: nothing in the tree asks for it",
            TreeRule::Foreign => "is nothing of this tree",
            TreeRule::NoParent => "names a parent that is not there",
            TreeRule::Cycle => "lies below itself",
        };
        write!(f, "the key {} {rule}", display(&self.key))
    }
}

/// Tells what a check finds, until nobody wants to hear more.
pub(crate) struct Findings<F> {
    found: F,
    stopped: bool,
}

impl<F: FnMut(TreeInconsistency) -> ControlFlow<()>> Findings<F> {
    pub(crate) fn new(found: F) -> Self {
        Self { found, stopped: false }
    }

    pub(crate) fn tell(&mut self, key: &[u8], rule: TreeRule) {
        self.pass_on(TreeInconsistency { key: KeyBuf::from_slice(key), rule });
    }

    pub(crate) fn pass_on(&mut self, fault: TreeInconsistency) {
        self.stopped = self.stopped || (self.found)(fault).is_break();
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped
    }
}

/// What decodes, `None` where it does not. What a newer program has written is neither right nor wrong: nothing that this one
/// may judge, or mend.
pub(crate) fn unless_newer<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error @ Error::NewerFormat { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}
