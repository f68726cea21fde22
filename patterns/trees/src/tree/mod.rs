//! Tree: the contract that all models of a hierarchy implement.
//!
//! A tree is a forest of nodes. A node has an *id*, a *name* and a *value*. The program assigns the
//! id, a number that never changes. Siblings are ordered; an [`InsertAt`] says where a node goes.
//! The models differ in their key layout and therefore in the cost of each operation, but not in
//! its result. One form is more restricted than the others: [paths of
//! names](super::MaterializedPath::of_names) accept only sorted places, and no two siblings with
//! the same name.
//!
//! Every walk is in depth-first preorder: a node before its children.

mod batches;
mod children;
mod error;
mod names;
mod nested;
mod node;
mod pages;
mod place;
pub mod records;

use std::ops::{ControlFlow, Deref, RangeBounds};

#[cfg(doc)]
use keyloom::Error;
use keyloom::value::Codec;
use keyloom::{Order, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::{Continuation, InOrder, Inconsistency, Page, Progress, RepairOptions};

pub(crate) use batches::{ONE, Report, Stages, in_stages, repair_each};
pub use children::NestedNodes;
pub use error::TreeError;
pub(crate) use error::{Findings, exists, not_below, stoppable, unknown, unless_newer};
pub(crate) use names::{first_named, follow, follow_names};
pub use nested::NestedNode;
pub use node::{NodeId, TreeNode, VisitedNode};
pub(crate) use node::{depth_bounds, encode_node, fresh_id, named_placeholder, placeholder};
pub use place::{InsertAt, OnDelete};
pub(crate) use records::NodeRecords;
pub(crate) use records::NodeTable;
pub use records::{NodeCodec, NodeRecord, TreeModel};

pub(crate) use nested::{dot_of, dump_of};

pub(crate) type NodeOf<'r, T, R> =
    TreeNode<<T as Tree>::Bytes<'r, R>, <T as Tree>::Value, <T as Tree>::Codec>;
pub(crate) type VisitOf<'r, T, R> =
    VisitedNode<<T as Tree>::Bytes<'r, R>, <T as Tree>::Value, <T as Tree>::Codec>;

/// Reports work that was done in one transaction.
fn at_once(mut progress: impl FnMut(&Progress) -> ControlFlow<()>) -> Progress {
    let finished = Progress::complete();
    // The work has ended, so there is nothing to stop.
    let _ = progress(&finished);
    finished
}

/// A hierarchy on ordered keys.
///
/// A parent of `None` stands for the roots, and a walk from `None` visits the whole forest. The
/// documentation of each model lists the costs.
///
/// Methods return [`TreeError::UnknownNode`] for a node that does not exist; [`get`](Tree::get)
/// returns `None`. Every method can also return any error of the store, and an error for an entry
/// that does not decode. A change that is refused is refused before anything is written.
///
/// ```
/// use keyloom::{Memory, Reader, Result, Store, Subspace, Writer};
/// use keyloom_trees::{AdjacencyList, NestedSets, InsertAt, Tree};
///
/// /// Works with every model: only the constructor names the model.
/// fn goods(tree: &impl Tree<Value = u32>, txn: &mut impl Writer) -> Result<()> {
///     tree.insert(txn, 1, "fruit", &0, InsertAt::last(None))?;
///     tree.insert(txn, 2, "pears", &40, InsertAt::last(1))?;
///     tree.insert(txn, 3, "apples", &70, InsertAt::Before(2))
/// }
///
/// fn pieces(tree: &impl Tree<Value = u32>, reader: &impl Reader) -> Result<u32> {
///     tree.descendants(reader, 1, ..)?.map(|visit| visit?.node.value()).sum()
/// }
///
/// let (one, other) = (Subspace::new("one"), Subspace::new("other"));
/// let (list, sets) = (AdjacencyList::<u32>::new(&one), NestedSets::<u32>::new(&other));
/// let store = Memory::new();
/// store.transact(|txn| goods(&list, txn))?;
/// store.transact(|txn| goods(&sets, txn))?;
/// let snapshot = store.snapshot()?;
/// assert_eq!((pieces(&list, &snapshot)?, pieces(&sets, &snapshot)?), (110, 110));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub trait Tree: Clone + Send + Sync + 'static {
    /// The type of the value of a node.
    type Value;
    /// The codec of the values.
    type Codec: Codec<Self::Value>;
    /// The stored bytes of a node, borrowed from the reader if the store allows it.
    type Bytes<'r, R: Reader + 'r>: Deref<Target = [u8]>;

    /// The subspace of the tree.
    fn space(&self) -> &Subspace;

    // ---- reads
    // ------------------------------------------------------------------------------------------

    /// Returns a node, or `None` if there is no node with this id.
    ///
    /// # Errors
    /// Any error of the store; an error if the node does not decode.
    fn get<'r, R: Reader>(&self, reader: &'r R, id: NodeId) -> Result<Option<NodeOf<'r, Self, R>>>;

    /// Returns the parent of a node, or `None` for a root.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    fn parent(&self, reader: &impl Reader, id: NodeId) -> Result<Option<NodeId>>;

    /// Returns the children of a node, or the roots: the last one first with
    /// [`descending`](keyloom_kit::descending)`(parent)`.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]. The iterator returns any error of the store.
    fn children<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>>;

    /// Returns the children of a node, or the roots, that follow the child `last` in this order.
    /// Begins at `last`: the cost does not depend on the children before it.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`] if `last` does not exist; [`TreeError::NotBelow`] if it is a
    /// child of another node.
    fn children_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
        last: NodeId,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>>;

    /// Returns a page of the children of a node, or of the roots: at most `limit` of them, at least
    /// one if there is one, after the previous page. Reads one child more than it returns, and
    /// begins at the last child of the previous page.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, NestedNode, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let trees: Vec<_> = (1..=5).map(|id| NestedNode::new(id, "node", ())).collect();
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// let snapshot = store.snapshot()?;
    /// let first = tree.children_page(&snapshot, None, 2, None)?;
    /// let second =
    ///     tree.children_page(&snapshot, None, 2, first.next.as_ref())?;
    /// let ids: Vec<u64> = second.items.iter().map(|node| node.id()).collect();
    /// assert_eq!(ids, [3, 4]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; also, and [`TreeError::NotBelow`], if the last child of the
    /// previous page was deleted or moved to another parent; [`Error::InvalidArgument`] for a
    /// continuation of another query.
    fn children_page<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<NodeOf<'r, Self, R>>> {
        pages::children(self, reader, parent.into(), limit, after)
    }

    /// Returns the nodes below a node in depth-first order, limited to `depths`: `1..` excludes the
    /// node itself, `..` includes it, `1..=2` selects its children and grandchildren. From `None`,
    /// the roots have depth 1.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]. The iterator returns any error of the store.
    fn descendants<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>>;

    /// Returns the visits of [`descendants`](Tree::descendants) that follow the node `last`, which
    /// is `from` itself or below it, at any depth. Begins at `last`: the cost does not depend on
    /// the nodes before it.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`] if `last` does not exist; [`TreeError::NotBelow`] if it is not
    /// below `from`.
    fn descendants_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        last: NodeId,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>>;

    /// Returns a page of [`descendants`](Tree::descendants): at most `limit` visits, at least one
    /// if there is one, after the previous page, which must have had the same `depths`.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{MaterializedPath, NestedNode, Tree};
    /// let tree = MaterializedPath::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let two = NestedNode::new(2, "two", ()).with(NestedNode::new(3, "three", ()));
    /// let trees = [NestedNode::new(1, "one", ()).with(two), NestedNode::new(4, "four", ())];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// let snapshot = store.snapshot()?;
    /// let (mut ids, mut after) = (Vec::new(), None);
    /// loop {
    ///     let page = tree.descendants_page(&snapshot, None, .., 2, after.as_ref())?;
    ///     ids.extend(page.items.iter().map(|visit| (visit.depth, visit.node.id())));
    ///     after = page.next;
    ///     if after.is_none() {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(ids, [(1, 1), (2, 2), (3, 3), (1, 4)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`children_page`](Tree::children_page).
    fn descendants_page<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        depths: impl RangeBounds<u32>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<VisitOf<'r, Self, R>>> {
        pages::descendants(self, reader, from.into(), depths, limit, after)
    }

    /// Returns the ancestors of a node: its parent, then the parent's parent, and so on up to the
    /// root.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    fn ancestors<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Vec<NodeOf<'r, Self, R>>>;

    /// Returns the next sibling of a node ([`Order::Ascending`]) or the previous one.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    fn sibling<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
        order: Order,
    ) -> Result<Option<NodeOf<'r, Self, R>>>;

    /// Returns the number of children of a node, or of roots.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    fn child_count(&self, reader: &impl Reader, parent: impl Into<Option<NodeId>>) -> Result<u64> {
        let children = self.children(reader, parent.into())?;
        children.map(|child| child.map(|_| 1)).sum()
    }

    /// Returns the number of nodes below a node, not counting itself, or of all nodes.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    fn descendant_count(
        &self,
        reader: &impl Reader,
        from: impl Into<Option<NodeId>>,
    ) -> Result<u64> {
        self.descendants(reader, from, 1..)?.map(|visit| visit.map(|_| 1)).sum()
    }

    /// Returns the number of ancestors of a node; 0 for a root.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    fn depth(&self, reader: &impl Reader, id: NodeId) -> Result<u32> {
        Ok(u32::try_from(self.ancestors(reader, id)?.len()).unwrap_or(u32::MAX))
    }

    /// Returns whether `node` lies below `ancestor`; no node lies below itself.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`] if either node does not exist.
    fn is_ancestor(&self, reader: &impl Reader, ancestor: NodeId, node: NodeId) -> Result<bool> {
        self.expect(reader, ancestor)?;
        Ok(self.ancestors(reader, node)?.iter().any(|found| found.id() == ancestor))
    }

    /// Returns the lowest node whose subtree contains both nodes; it may be one of them. Returns
    /// `None` if they have different roots.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`] if either node does not exist.
    fn lowest_common_ancestor(
        &self,
        reader: &impl Reader,
        one: NodeId,
        other: NodeId,
    ) -> Result<Option<NodeId>> {
        let of_one = path_to(&self.ancestors(reader, one)?, one);
        let of_other = path_to(&self.ancestors(reader, other)?, other);
        let common = of_one.iter().zip(&of_other).take_while(|(one, other)| one == other).last();
        Ok(common.map(|(common, _)| *common))
    }

    /// Returns the nodes without children in the subtree of a node, or in the forest. A node
    /// without children is its own leaf.
    ///
    /// # Errors
    /// As [`children`](Tree::children).
    fn leaves<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>> {
        let mut visits = self.descendants(reader, from, ..)?.peekable();
        Ok(std::iter::from_fn(move || {
            loop {
                let visit = match visits.next()? {
                    Ok(visit) => visit,
                    Err(error) => return Some(Err(error)),
                };
                match visits.peek() {
                    Some(Ok(next)) if next.depth > visit.depth => {}
                    // The next visit failed, so whether this node is a leaf is unknown: return the
                    // error.
                    Some(Err(_)) => {}
                    _ => return Some(Ok(visit.node)),
                }
            }
        }))
    }

    /// Returns the first child, or the first root, with this name.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    fn child_named(
        &self,
        reader: &impl Reader,
        parent: impl Into<Option<NodeId>>,
        name: &str,
    ) -> Result<Option<NodeId>> {
        first_named(self.children(reader, parent.into())?, name)
    }

    /// Returns the node at a path of names, which begins with the name of a root.
    ///
    /// # Errors
    /// Any error of the store.
    fn node_at<'n>(
        &self,
        reader: &impl Reader,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Option<NodeId>> {
        follow(self, reader, names)
    }

    /// Returns the names on the path from the root to a node, its own name last: the path for
    /// [`node_at`](Tree::node_at).
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; an error if a node does not decode.
    fn names_to(&self, reader: &impl Reader, id: NodeId) -> Result<Vec<String>> {
        names::names_to(self, reader, id)
    }

    /// Returns an error unless the node exists.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; any error of the store.
    fn expect(&self, reader: &impl Reader, id: NodeId) -> Result<()> {
        match self.get(reader, id)? {
            Some(_) => Ok(()),
            None => Err(unknown(self.space(), id)),
        }
    }

    // ---- changes

    /// Adds a node. In an [adjacency list](super::AdjacencyList), if the parent is being deleted in
    /// steps, a later step may delete the new node too; see
    /// [`delete_in_steps`](Tree::delete_in_steps).
    ///
    /// # Errors
    /// [`TreeError::NodeExists`]; [`TreeError::UnknownNode`] if the place names a node that does
    /// not exist; [`TreeError::NoSuchPosition`]; any other [`TreeError`] of the model, such as
    /// [`TreeError::PathTooLong`] or [`TreeError::NameTooLong`].
    fn insert(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        value: &Self::Value,
        place: InsertAt,
    ) -> Result<()>;

    /// Returns the node at a path of names, and adds the nodes of the path that do not exist, as
    /// `mkdir -p` does. Returns `None` for an empty path.
    ///
    /// `place` is where a new node goes below its parent, such as [`InsertAt::last`], and `new_id`
    /// returns its id, for example from a [`Sequence`](keyloom_tables::Sequence). New nodes have
    /// this value.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Sequence;
    /// use keyloom_trees::{InsertAt, MaterializedPath, Tree};
    /// let tree = MaterializedPath::<u32>::new(&Subspace::new("files")).of_names();
    /// let ids = Sequence::<()>::new(&Subspace::new("ids"));
    /// let store = Memory::new();
    /// let make = |path: [&'static str; 3]| {
    ///     store.transact(|txn| {
    ///         tree.create_path(txn, path, &0, InsertAt::sorted, |txn| ids.next(txn, &()))
    ///     })
    /// };
    /// let (main, lib) = (make(["usr", "src", "main.rs"])?, make(["usr", "src", "lib.rs"])?);
    /// assert_ne!(main, lib);
    /// assert_eq!(main, make(["usr", "src", "main.rs"])?);
    /// assert_eq!(tree.descendant_count(&store.snapshot()?, None)?, 4);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`insert`](Tree::insert) and of `new_id`.
    fn create_path<'n, W: Writer>(
        &self,
        txn: &mut W,
        names: impl IntoIterator<Item = &'n str>,
        value: &Self::Value,
        place: impl Fn(Option<NodeId>) -> InsertAt,
        new_id: impl FnMut(&mut W) -> Result<NodeId>,
    ) -> Result<Option<NodeId>> {
        names::create_path(self, txn, names, value, place, new_id)
    }

    /// Renames a node. It stays where it is, even if it was [sorted](InsertAt::Sorted) in by name,
    /// unless the model orders siblings by name.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; [`TreeError::NameTaken`], [`TreeError::NameTooLong`] or
    /// [`TreeError::PathTooLong`] if the model uses names in keys.
    fn rename(&self, txn: &mut impl Writer, id: NodeId, name: &str) -> Result<()>;

    /// Sets the value of a node.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    fn set_value(&self, txn: &mut impl Writer, id: NodeId, value: &Self::Value) -> Result<()>;

    /// Moves a node with all its descendants. If it is already at that place, or `place` is
    /// directly before or after itself, nothing is written.
    ///
    /// # Errors
    /// [`TreeError::BelowItself`], and as [`insert`](Tree::insert). If the model writes more than
    /// the store accepts in one transaction, the error is a [batch that is too
    /// large](Error::is_batch_too_large): see [`move_in_steps`](Tree::move_in_steps).
    fn move_to(&self, txn: &mut impl Writer, id: NodeId, place: InsertAt) -> Result<()>;

    /// Moves a node with all its descendants and gives it another name, as `mv` does: neither the
    /// old name at the new place nor the new name at the old place needs to be free. Costs as
    /// [`move_to`](Tree::move_to), and in nested sets also as [`rename`](Tree::rename).
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{InsertAt, MaterializedPath, NestedNode, Tree};
    /// let tree = MaterializedPath::<()>::new(&Subspace::new("files")).of_names();
    /// let store = Memory::new();
    /// let drafts = NestedNode::new(1, "drafts", ()).with(NestedNode::new(2, "letter", ()));
    /// let sent = NestedNode::new(3, "sent", ()).with(NestedNode::new(4, "letter", ()));
    /// let trees = [drafts, sent];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// store.transact(|txn| tree.move_as(txn, 2, "letter 2", InsertAt::sorted(3)))?;
    /// assert_eq!(tree.names_to(&store.snapshot()?, 2)?, ["sent", "letter 2"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`move_to`](Tree::move_to) and [`rename`](Tree::rename).
    fn move_as(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        place: InsertAt,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let place = names::unsorted(self, txn, id, name, place)?;
            self.move_to(txn, id, place)?;
            self.rename(txn, id, name)
        })
    }

    /// Deletes a node and all its descendants, and returns the number of deleted nodes.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]. If the [batch is too large](Error::is_batch_too_large), use
    /// [`delete_in_steps`](Tree::delete_in_steps).
    fn delete_subtree(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64>;

    /// Deletes a node that has no children; with a child it is refused.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; [`TreeError::HasChildren`].
    fn delete_leaf(&self, txn: &mut impl Writer, id: NodeId) -> Result<()> {
        txn.guarded(|txn| {
            let child = self.children(txn, id)?.next().transpose()?.map(|child| child.id());
            match child {
                Some(child) => Err(TreeError::HasChildren { node: id, child }.into()),
                None => self.delete_subtree(txn, id).map(drop),
            }
        })
    }

    /// Deletes a single node. Its children take its place, or become roots.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, NestedNode, OnDelete, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let two = NestedNode::new(2, "two", ()).with(NestedNode::new(3, "three", ()));
    /// let trees = [NestedNode::new(1, "one", ()).with(two)];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// store.transact(|txn| tree.delete_node(txn, 2, OnDelete::Reparent))?;
    /// assert_eq!(tree.parent(&store.snapshot()?, 3)?, Some(1));
    /// store.transact(|txn| tree.delete_node(txn, 1, OnDelete::Promote))?;
    /// assert_eq!(tree.parent(&store.snapshot()?, 3)?, None);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; [`TreeError::NameTaken`] if a child's name is taken at its new
    /// place.
    fn delete_node(&self, txn: &mut impl Writer, id: NodeId, orphans: OnDelete) -> Result<()>;

    /// Adds whole trees as the last children of `parent`. The note on deletions in steps of
    /// [`insert`](Tree::insert) applies.
    ///
    /// # Errors
    /// As [`insert`](Tree::insert).
    fn import(
        &self,
        txn: &mut impl Writer,
        parent: impl Into<Option<NodeId>>,
        trees: &[NestedNode<Self::Value>],
    ) -> Result<()>;

    // ---- whole trees

    /// Returns a node with all its descendants in memory, or the whole forest.
    ///
    /// # Errors
    /// As [`descendants`](Tree::descendants); an error if a value does not decode.
    fn export(
        &self,
        reader: &impl Reader,
        from: impl Into<Option<NodeId>>,
    ) -> Result<Vec<NestedNode<Self::Value>>> {
        dump_of(self.descendants(reader, from, ..)?)
    }

    /// [`export`](Tree::export) down to a depth: 0 is the node alone, 1 adds its children. In the
    /// whole forest the roots have depth 1. Nodes that are deeper are not read.
    ///
    /// # Errors
    /// As [`export`](Tree::export).
    fn export_to_depth(
        &self,
        reader: &impl Reader,
        from: impl Into<Option<NodeId>>,
        depth: u32,
    ) -> Result<Vec<NestedNode<Self::Value>>> {
        dump_of(self.descendants(reader, from, ..=depth)?)
    }

    /// Returns a node with all its descendants, or the whole forest, as a graph in Graphviz's DOT
    /// language.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, NestedNode, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let two = NestedNode::new(2, "two", ()).with(NestedNode::new(3, "three", ()));
    /// let trees = [NestedNode::new(1, "one", ()).with(two)];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// let dot = tree.dot(&store.snapshot()?, 2)?;
    /// assert_eq!(
    ///     dot,
    ///     "digraph tree {\n    2 [label=\"two\"];\n    3 [label=\"three\"];\n    2 -> 3;\n}\n"
    /// );
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`descendants`](Tree::descendants).
    fn dot(&self, reader: &impl Reader, from: impl Into<Option<NodeId>>) -> Result<String> {
        dot_of(self.descendants(reader, from, ..)?)
    }

    /// Adds all nodes of another tree to this one, as the last roots. Use it to convert one model
    /// into another.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, NestedNode, NestedSets, Tree};
    /// let space = Subspace::new("tree");
    /// let old = AdjacencyList::<()>::new(&space.child("old"));
    /// let new = NestedSets::<()>::new(&space.child("new"));
    /// let store = Memory::new();
    /// let trees = [NestedNode::new(1, "one", ()).with(NestedNode::new(2, "two", ()))];
    /// store.transact(|txn| old.import(txn, None, &trees))?;
    /// store.transact(|txn| new.copy_from(txn, &old))?;
    /// assert_eq!(new.export(&store.snapshot()?, None)?, trees);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// The other tree is held in memory, and this one is written in one transaction. If the store
    /// refuses a [batch that large](Error::is_batch_too_large), copy in parts:
    /// [`export`](Tree::export) one root, or one node and its children, at a time, and
    /// [`import`](Tree::import) each in a transaction of its own.
    ///
    /// # Errors
    /// As [`export`](Tree::export) and [`import`](Tree::import).
    fn copy_from(
        &self,
        txn: &mut impl Writer,
        other: &impl Tree<Value = Self::Value>,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let trees = other.export(txn, None)?;
            self.import(txn, None, &trees)
        })
    }

    // ---- work that spans several transactions

    /// [`move_to`](Tree::move_to) for a subtree that is too large for one transaction. Readers see
    /// either the old tree or the new one, never half of each. `progress` is called after each
    /// transaction. If it stops the work, or the program dies, [`resume`](Tree::resume) continues
    /// it. Models in which a move is a few writes do it in one transaction, and report no keys.
    ///
    /// Nested sets may relabel other nodes first. A move that stops during that has not begun:
    /// [`resume`](Tree::resume) then writes and removes nothing. Call the move again.
    ///
    /// # Errors
    /// As [`move_to`](Tree::move_to).
    fn move_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        place: InsertAt,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        store.transact(|txn| self.move_to(txn, id, place))?;
        Ok(at_once(progress))
    }

    /// [`delete_subtree`](Tree::delete_subtree) for a subtree that is too large for one
    /// transaction; it runs like [`move_in_steps`](Tree::move_in_steps). From the first transaction
    /// on, no walk from above reaches the nodes. In all models but the [adjacency
    /// list](super::AdjacencyList), no reader finds them by their ids either. The ids can be used
    /// again when the deletion has ended; until then they are refused ([`TreeError::InSteps`]).
    ///
    /// An adjacency list refuses changes only at nodes that a step has already reached. It accepts
    /// a change below any other node of the subtree, and a later step deletes what that change
    /// wrote. So do not add or move nodes into the subtree after the first transaction.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, NestedNode, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let two = NestedNode::new(2, "two", ()).with(NestedNode::new(3, "three", ()));
    /// let trees = [NestedNode::new(1, "one", ()).with(two)];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// let done = tree.delete_in_steps(&store, 2, |progress| {
    ///     println!("{} keys written, {} removed", progress.written, progress.removed);
    ///     std::ops::ControlFlow::Continue(())
    /// })?;
    /// assert!(done.finished);
    /// assert_eq!(tree.descendant_count(&store.snapshot()?, None)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`delete_subtree`](Tree::delete_subtree).
    fn delete_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        store.transact(|txn| self.delete_subtree(txn, id))?;
        Ok(at_once(progress))
    }

    /// Continues moves and deletions in steps that did not finish; does nothing if there are none.
    /// A program that moves or deletes in steps should call it at startup.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{NestedNode, NestedSets, Tree};
    /// let tree = NestedSets::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let trees = [NestedNode::new(1, "one", ()).with(NestedNode::new(2, "two", ()))];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// // Stop after the first transaction, as if the program were killed.
    /// tree.delete_in_steps(&store, 1, |_| ControlFlow::Break(()))?;
    /// assert!(store.transact(|txn| tree.import(txn, None, &trees)).is_err());
    /// tree.resume(&store, |_| ControlFlow::Continue(()))?;
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store.
    fn resume<S: Store>(
        &self,
        _store: &S,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        Ok(at_once(progress))
    }

    /// Reports every inconsistency of the tree.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_tables::Rule;
    /// use keyloom_trees::{AdjacencyList, NestedNode, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let two = NestedNode::new(2, "two", ()).with(NestedNode::new(3, "three", ()));
    /// let trees = [NestedNode::new(1, "one", ()).with(two)];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// store.transact(|txn| txn.put(&tree.space().pack("other"), b"foreign"))?;
    /// let found = tree.check(&store.snapshot()?)?;
    /// assert_eq!(found[0].to_string(), r#"the key ("tree", "other") is of another kind of data"#);
    /// assert_eq!(found[0].rule, Rule::Foreign);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NewerFormat`] if a definition has a newer format. Definitions are the head of a
    /// document and the record of work in steps; all other keys are read according to them. Any
    /// other entry that does not decode is a fault, whatever its format byte.
    fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut found = Vec::new();
        self.check_each(reader, |fault| {
            found.push(fault);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// [`check`](Tree::check) that calls `found` for each fault until it breaks, and returns the
    /// number of keys read.
    ///
    /// # Errors
    /// The errors of [`check`](Tree::check).
    fn check_each(
        &self,
        reader: &impl Reader,
        found: impl FnMut(Inconsistency) -> ControlFlow<()>,
    ) -> Result<u64>;

    /// Rewrites all data that can be derived. The module of each model documents which keys it
    /// trusts and which it derives. Keys that do not belong to the tree are left alone.
    ///
    /// After a repair the tree can be read and changed, and another check finds at most [lost
    /// values](keyloom_tables::Rule::Undecodable). All models treat a node that cannot be read the
    /// same way:
    ///
    /// | unreadable part | after a repair |
    /// |---|---|
    /// | the value | the node is unchanged; check reports [`Rule::Undecodable`](keyloom_tables::Rule::Undecodable) until [`set_value`](Tree::set_value) or a deletion |
    /// | the name too | a *placeholder*: the node has its id, place and children, the name `lost` followed by its id (in paths of names: the name in the path), and no value. The damaged bytes stay in the store until a value is set |
    /// | the place too | a placeholder as above, but it becomes the last root. Its children stay below it; in a model that locates them by intervals they move up |
    ///
    /// If two nodes have the same id, one of them gets its original id back if that is known, or a
    /// new one.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, NestedNode, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let two = NestedNode::new(2, "two", ()).with(NestedNode::new(3, "three", ()));
    /// let trees = [NestedNode::new(1, "one", ()).with(two)];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// use keyloom::Writer;
    /// store.transact(|txn| txn.delete(&tree.space().pack(&("node", 2))))?;
    /// assert_eq!(tree.repair(&store)?.changed(), 1);
    /// assert_eq!(tree.export(&store.snapshot()?, None)?, trees);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store.
    fn repair<S: Store>(&self, store: &S) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](Tree::repair) with options. Calls `progress` after each commit that changed
    /// something or ends a page, and at the end of each part, and stops if it breaks.
    /// [`Progress::written`] counts the keys that were written or removed.
    ///
    /// Most of its [parts](keyloom_kit::Stages) list faults, and begin with what is left when they
    /// resume.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a position of other data; otherwise as
    /// [`repair`](Tree::repair).
    fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress>;
}

/// The ids on the path from the root to a node.
fn path_to<B, V, C>(ancestors: &[TreeNode<B, V, C>], node: NodeId) -> Vec<NodeId> {
    let mut path: Vec<NodeId> = ancestors.iter().rev().map(TreeNode::id).collect();
    path.push(node);
    path
}
