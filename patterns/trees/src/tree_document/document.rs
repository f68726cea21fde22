//! A document in memory.

use std::fmt;
use std::ops::RangeBounds;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, Order, Result};
use keyloom_kit::InOrder;

use super::TreeDocument;
use super::head::Head;
use super::preorder::{DocumentBytes, Preorder, owned, visits};
use crate::tree::{dot_of, dump_of, first_named, follow_names, unknown};
use crate::{NestedNode, NodeId, TreeNode, VisitedNode};

/// A whole tree in memory, as of one version. Reads, searches and changes of the document do not
/// access the store. [Writing the document back](TreeDocument::write) fails if another writer has
/// written in the meantime.
///
/// The methods behave like the methods of the same name in [`Tree`](crate::Tree), and return the
/// same errors.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_trees::{InsertAt, TreeDocument};
/// let comments = TreeDocument::<String>::new(&Subspace::new("comments on post 7"));
/// let store = Memory::new();
///
/// let mut document = comments.read(&store.snapshot()?)?;
/// document.insert(1, "Ada", &"What a post!".into(), InsertAt::Last(None))?;
/// document.insert(2, "Bob", &"Indeed.".into(), InsertAt::last(1))?;
/// let version = store.transact(|txn| comments.write(txn, &document))?;
///
/// let document = comments.read(&store.snapshot()?)?;
/// assert_eq!(document.version(), version);
/// assert_eq!(document.parent(2)?, Some(1));
/// for path in document.find(|node| Ok(node.value()?.contains("Indeed"))) {
///     let names: Vec<String> =
///         path?.iter().map(|node| Ok(node.name()?.to_owned())).collect::<keyloom::Result<_>>()?;
///     assert_eq!(names, ["Ada", "Bob"]);
/// }
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Document<V, C = Postcard> {
    pub(super) tree: TreeDocument<V, C>,
    /// The head that was read, with its version and its pieces. The text that was read is the
    /// beginning of the text of `rows`.
    pub(super) head: Head,
    pub(super) text_bytes: usize,
    pub(super) rows: Preorder,
}

impl<V, C> Clone for Document<V, C> {
    fn clone(&self) -> Self {
        Self {
            tree: self.tree.clone(),
            head: self.head.clone(),
            text_bytes: self.text_bytes,
            rows: self.rows.clone(),
        }
    }
}

impl<V, C> fmt::Debug for Document<V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document")
            .field("tree", &self.tree)
            .field("version", &self.head.version)
            .field("nodes", &self.len())
            .finish_non_exhaustive()
    }
}

impl<V, C> Document<V, C> {
    /// The version that was read; 0 if nothing was ever written.
    pub fn version(&self) -> u64 {
        self.head.version
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.rows.rows().len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.rows.rows().is_empty()
    }

    /// The text that was read.
    pub(super) fn text_read(&self) -> &[u8] {
        self.rows.text().get(..self.text_bytes).unwrap_or_default()
    }

    pub(super) fn position(&self, id: NodeId) -> Result<usize> {
        self.rows.position(id).ok_or_else(|| self.unknown(id))
    }

    pub(super) fn position_of_parent(&self, parent: Option<NodeId>) -> Result<Option<usize>> {
        parent.map(|parent| self.position(parent)).transpose()
    }

    #[cold]
    pub(super) fn unknown(&self, id: NodeId) -> Error {
        unknown(&self.tree.space, id)
    }
}

impl<V, C: Codec<V>> Document<V, C> {
    /// Returns a node, or `None` if there is no node with this id.
    pub fn get(&self, id: NodeId) -> Option<TreeNode<DocumentBytes, V, C>> {
        Some(self.rows.node(self.rows.position(id)?))
    }

    /// Returns the parent of a node, or `None` for a root.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode).
    pub fn parent(&self, id: NodeId) -> Result<Option<NodeId>> {
        let parent = self.rows.parent(self.position(id)?);
        Ok(parent.map(|parent| self.rows.id(parent)))
    }

    /// Returns the children of a node, or the roots.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode).
    pub fn children(
        &self,
        parent: impl Into<InOrder<Option<NodeId>>>,
    ) -> Result<impl Iterator<Item = TreeNode<DocumentBytes, V, C>>> {
        let children = self.positions_of_children(parent.into())?;
        Ok(children.into_iter().map(|child| self.rows.node(child)))
    }

    pub(super) fn positions_of_children(
        &self,
        InOrder { of: parent, order }: InOrder<Option<NodeId>>,
    ) -> Result<Vec<usize>> {
        let parent = self.position_of_parent(parent)?;
        let mut children: Vec<usize> = self.rows.children(parent).collect();
        if order == Order::Descending {
            children.reverse();
        }
        Ok(children)
    }

    /// Returns the nodes of the subtree of a node in depth-first order, limited to `depths`.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode).
    pub fn descendants(
        &self,
        from: impl Into<Option<NodeId>>,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = VisitedNode<DocumentBytes, V, C>>> {
        let from = self.position_of_parent(from.into())?;
        Ok(visits(&self.rows, from, owned(&depths)))
    }

    /// Returns the ancestors of a node: its parent, then the parent's parent, and so on up to the
    /// root.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode).
    pub fn ancestors(&self, id: NodeId) -> Result<Vec<TreeNode<DocumentBytes, V, C>>> {
        let position = self.position(id)?;
        Ok(self.rows.ancestors(position).map(|above| self.rows.node(above)).collect())
    }

    /// Returns the next sibling of a node ([`Order::Ascending`]) or the previous sibling.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode).
    pub fn sibling(
        &self,
        id: NodeId,
        order: Order,
    ) -> Result<Option<TreeNode<DocumentBytes, V, C>>> {
        let position = self.position(id)?;
        let mut siblings = self.rows.children(self.rows.parent(position));
        let found = match order {
            Order::Ascending => siblings.find(|&sibling| sibling > position),
            Order::Descending => siblings.take_while(|&sibling| sibling < position).last(),
        };
        Ok(found.map(|sibling| self.rows.node(sibling)))
    }

    /// Returns the number of children of a node, or the number of roots.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode).
    pub fn child_count(&self, parent: impl Into<Option<NodeId>>) -> Result<u64> {
        let parent = self.position_of_parent(parent.into())?;
        Ok(self.rows.children(parent).count() as u64)
    }

    /// Returns the number of descendants of a node, without the node itself. From `None`, returns
    /// the number of all nodes.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode).
    pub fn descendant_count(&self, from: impl Into<Option<NodeId>>) -> Result<u64> {
        let from = self.position_of_parent(from.into())?;
        Ok(self.rows.below(from).len() as u64)
    }

    /// Returns the number of ancestors of a node; 0 for a root.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode).
    pub fn depth(&self, id: NodeId) -> Result<u32> {
        Ok(self.rows.depth(self.position(id)?))
    }

    /// Returns whether `node` is a descendant of `ancestor`. A node is not a descendant of itself.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode) if either node does not exist.
    pub fn is_ancestor(&self, ancestor: NodeId, node: NodeId) -> Result<bool> {
        let ancestor = self.position(ancestor)?;
        let node = self.position(node)?;
        Ok(self.rows.below(Some(ancestor)).contains(&node))
    }

    /// Returns the lowest node whose subtree contains both nodes; this may be one of the two nodes.
    /// Returns `None` if the nodes have different roots.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode) if either node does not exist.
    pub fn lowest_common_ancestor(&self, one: NodeId, other: NodeId) -> Result<Option<NodeId>> {
        let one = self.position(one)?;
        let other = self.position(other)?;
        let mut path = [one].into_iter().chain(self.rows.ancestors(one));
        let common = path.find(|&above| self.rows.subtree(above).contains(&other));
        Ok(common.map(|common| self.rows.id(common)))
    }

    /// Returns the leaves (nodes without children) in the subtree of a node, or in the forest. If
    /// the node itself has no children, it is the only leaf.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode).
    pub fn leaves(
        &self,
        from: impl Into<Option<NodeId>>,
    ) -> Result<impl Iterator<Item = TreeNode<DocumentBytes, V, C>>> {
        let from = self.position_of_parent(from.into())?;
        let mut rows = match from {
            Some(from) => self.rows.subtree(from),
            None => self.rows.below(None),
        };
        Ok(std::iter::from_fn(move || {
            let leaf = rows.find(|&position| self.rows.subtree(position).len() == 1)?;
            Some(self.rows.node(leaf))
        }))
    }

    /// Returns the first child, or the first root, with this name.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode); [`Error::Value`] or
    /// [`Error::NewerFormat`] if a node does not decode.
    pub fn child_named(
        &self,
        parent: impl Into<Option<NodeId>>,
        name: &str,
    ) -> Result<Option<NodeId>> {
        first_named(self.children(parent.into())?.map(Ok), name)
    }

    /// Returns the node at a path of names. The first name is the name of a root.
    ///
    /// # Errors
    /// [`Error::Value`] or [`Error::NewerFormat`] if a node does not decode.
    pub fn node_at<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Option<NodeId>> {
        follow_names(names, |parent, name| self.child_named(parent, name))
    }

    /// Calls `is_meant` with each node in preorder. For each node for which `is_meant` returns
    /// true, returns the nodes on the path from the root to that node. A name or value is decoded
    /// only if `is_meant` reads it.
    ///
    /// The iterator returns the errors of `is_meant` and continues after them.
    pub fn find(
        &self,
        mut is_meant: impl FnMut(&TreeNode<DocumentBytes, V, C>) -> Result<bool>,
    ) -> impl Iterator<Item = Result<Vec<TreeNode<DocumentBytes, V, C>>>> {
        (0..self.len()).filter_map(move |position| match is_meant(&self.rows.node(position)) {
            Ok(true) => Some(Ok(self.path(position))),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        })
    }

    fn path(&self, position: usize) -> Vec<TreeNode<DocumentBytes, V, C>> {
        let upwards = [position].into_iter().chain(self.rows.ancestors(position));
        let mut path: Vec<_> = upwards.map(|above| self.rows.node(above)).collect();
        path.reverse();
        path
    }

    /// Returns a node with all its descendants, or the whole forest, in nested form.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode); [`Error::Value`] or
    /// [`Error::NewerFormat`] if a node does not decode.
    pub fn export(&self, from: impl Into<Option<NodeId>>) -> Result<Vec<NestedNode<V>>> {
        dump_of(self.descendants(from, ..)?.map(Ok))
    }

    /// Returns a node with all its descendants, or the whole forest, as a graph in Graphviz's DOT
    /// language.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::TreeError::UnknownNode); [`Error::Value`] or
    /// [`Error::NewerFormat`] if a node does not decode.
    pub fn dot(&self, from: impl Into<Option<NodeId>>) -> Result<String> {
        dot_of(self.descendants(from, ..)?.map(Ok))
    }
}
