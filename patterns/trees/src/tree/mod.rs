//! Tree: the contract that all models of a hierarchy implement.
//!
//! A tree is a forest of nodes. A node has an *id*, a *name* and a *value*. The program assigns the
//! id, a number that never changes. Siblings are ordered; an [`InsertAt`] specifies the place of a
//! node among its siblings. The models differ in key layout, and therefore in the cost of each
//! operation. The results are the same. [Paths of names](super::MaterializedPath::of_names) are
//! more restricted: they accept only sorted places, and names must be unique among siblings.
//!
//! Every walk is in depth-first preorder: a node precedes its children.

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

pub(crate) use batches::{ONE, REPLANS, Report, Stages, in_stages};
pub(crate) use children::NestedNodes;
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
/// Methods fail with [`TreeError::UnknownNode`] if a node does not exist; only [`get`](Tree::get)
/// returns `None` instead. Every method can also return any error of the store, and an error if an
/// entry does not decode. The tree validates its arguments before it writes. If a change fails
/// later, for example because derived data refuses it, the transaction does not commit.
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

    /// Returns the children of a node, or the roots, in order. With
    /// [`descending`](keyloom_kit::descending)`(parent)`, the order is reversed.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]. The iterator returns any error of the store.
    fn children<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>>;

    /// Returns the children of a node, or the roots, that follow the child `last` in the requested
    /// order. The scan starts at `last`, so its cost does not depend on the children before `last`.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`] if `last` does not exist; [`TreeError::NotBelow`] if `last` is a
    /// child of another node.
    fn children_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
        last: NodeId,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>>;

    /// Returns a page of the children of a node, or of the roots: at most `limit` children after
    /// the previous page. A `limit` of 0 counts as 1. The scan starts at the last child of the
    /// previous page, and reads one child more than the page returns.
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
    /// [`TreeError::UnknownNode`] if the parent does not exist, or if the last child of the
    /// previous page was deleted; [`TreeError::NotBelow`] if that child was moved to another
    /// parent; [`Error::InvalidArgument`] if the continuation belongs to another query.
    fn children_page<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<NodeOf<'r, Self, R>>> {
        pages::children(self, reader, parent.into(), limit, after)
    }

    /// Returns the nodes of the subtree of a node in depth-first order, limited to `depths`: `1..`
    /// excludes the node itself, `..` includes the node, `1..=2` selects its children and
    /// grandchildren. From `None`, the roots have depth 1.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]. The iterator returns any error of the store.
    fn descendants<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>>;

    /// Returns the visits of [`descendants`](Tree::descendants) that follow the node `last`. `last`
    /// is `from` itself or a node below `from`, even at a depth outside `depths`. The walk starts
    /// at `last`, so its cost does not depend on the nodes before `last`.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`] if `last` does not exist; [`TreeError::NotBelow`] if `last` is
    /// not below `from`.
    fn descendants_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        last: NodeId,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>>;

    /// Returns a page of [`descendants`](Tree::descendants): at most `limit` visits after the
    /// previous page. A `limit` of 0 counts as 1. Pass the same `depths` for every page.
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
    /// [`TreeError::UnknownNode`] if `from` does not exist, or if the last node of the previous
    /// page was deleted; [`TreeError::NotBelow`] if that node was moved out of the subtree;
    /// [`Error::InvalidArgument`] if the continuation belongs to another query.
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

    /// Returns the next sibling of a node ([`Order::Ascending`]) or the previous sibling.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    fn sibling<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
        order: Order,
    ) -> Result<Option<NodeOf<'r, Self, R>>>;

    /// Returns the number of children of a node, or the number of roots.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`].
    fn child_count(&self, reader: &impl Reader, parent: impl Into<Option<NodeId>>) -> Result<u64> {
        let children = self.children(reader, parent.into())?;
        children.map(|child| child.map(|_| 1)).sum()
    }

    /// Returns the number of descendants of a node, without the node itself. From `None`, returns
    /// the number of all nodes.
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

    /// Returns whether `node` is a descendant of `ancestor`. A node is not a descendant of itself.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`] if either node does not exist.
    fn is_ancestor(&self, reader: &impl Reader, ancestor: NodeId, node: NodeId) -> Result<bool> {
        self.expect(reader, ancestor)?;
        Ok(self.ancestors(reader, node)?.iter().any(|found| found.id() == ancestor))
    }

    /// Returns the lowest node whose subtree contains both nodes; this may be one of the two nodes.
    /// Returns `None` if the nodes have different roots.
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

    /// Returns the leaves (nodes without children) in the subtree of a node, or in the forest. If
    /// the node itself has no children, it is the only leaf.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]. The iterator returns any error of the store.
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

    /// Returns the place of a node among children in any order, such as that of dates, or of names
    /// without case. `compare` compares a child with the node: the place is between the children
    /// that are less or equal and those that are greater. So equal children stay in the order of
    /// their inserts. If all children are placed this way, they are in this order. `moved` is the
    /// node itself, if it is a child of `parent` already.
    ///
    /// Reads children from the last and from the first one in turns: one child if the node becomes
    /// the last, two if it becomes the first, all of them in the middle. Read the place in the
    /// transaction that writes the node. [Paths of names](super::MaterializedPath::of_names) order
    /// children by name and refuse the place.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_trees::{NestedSets, Tree};
    /// // The value of a comment is its time.
    /// let thread = NestedSets::<u64>::new(&Subspace::new("thread"));
    /// let store = Memory::new();
    /// for (id, time) in [(1, 900), (2, 1_700), (3, 1_200)] {
    ///     store.transact(|txn| {
    ///         let place =
    ///             thread.sorted_place(&*txn, None, None, |node| Ok(node.value()?.cmp(&time)))?;
    ///         thread.insert(txn, id, "comment", &time, place)
    ///     })?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let ids = thread.children(&snapshot, None)?.map(|node| Ok(node?.id()));
    /// assert_eq!(ids.collect::<Result<Vec<u64>>>()?, [1, 3, 2]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`children`](Tree::children) and of `compare`.
    fn sorted_place<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<Option<NodeId>>,
        moved: impl Into<Option<NodeId>>,
        compare: impl FnMut(&NodeOf<'r, Self, R>) -> Result<std::cmp::Ordering>,
    ) -> Result<InsertAt> {
        place::sorted_place(self, reader, parent.into(), moved.into(), compare)
    }

    /// Returns the node at a path of names. The first name is the name of a root.
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

    /// Returns the names on the path from the root to a node, including the node itself.
    /// [`node_at`](Tree::node_at) accepts this path.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; an error if a node does not decode.
    fn names_to(&self, reader: &impl Reader, id: NodeId) -> Result<Vec<String>> {
        names::names_to(self, reader, id)
    }

    /// Returns an error if the node does not exist.
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

    /// Returns the node at a path of names. Adds the nodes of the path that do not exist, like
    /// `mkdir -p`. Returns `None` for an empty path.
    ///
    /// `place` returns the place of a new node below its parent, for example [`InsertAt::last`].
    /// `new_id` returns the id of a new node, for example from a
    /// [`Sequence`](keyloom_tables::Sequence). New nodes get `value`.
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

    /// Renames a node. The node keeps its place among its siblings, even if it was inserted at a
    /// [sorted](InsertAt::Sorted) place. The node moves only in a model that orders siblings by
    /// name.
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

    /// Moves a node with all its descendants. Writes nothing if the node is already at that place,
    /// or if `place` is directly before or after the node itself.
    ///
    /// # Errors
    /// [`TreeError::BelowItself`]; [`TreeError::UnknownNode`]; [`TreeError::NoSuchPosition`]; any
    /// other [`TreeError`] of the model. If the move writes more than the store accepts in one
    /// transaction, the error is a [batch that is too large](Error::is_batch_too_large); use
    /// [`move_in_steps`](Tree::move_in_steps).
    fn move_to(&self, txn: &mut impl Writer, id: NodeId, place: InsertAt) -> Result<()>;

    /// Moves a node with all its descendants and renames the node, like `mv`. In a tree with unique
    /// names, neither the old name at the new place nor the new name at the old place needs to be
    /// free. Costs as much as [`move_to`](Tree::move_to), and in nested sets also as much as
    /// [`rename`](Tree::rename).
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
    /// The errors of [`move_to`](Tree::move_to) and [`rename`](Tree::rename).
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

    /// Deletes a node, which must have no children.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; [`TreeError::HasChildren`] if the node has a child.
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

    /// Adds whole trees as the last children of `parent`. The note of [`insert`](Tree::insert) on
    /// deletions in steps applies here too.
    ///
    /// # Errors
    /// [`TreeError::NodeExists`]; [`TreeError::UnknownNode`] if `parent` does not exist; any other
    /// [`TreeError`] of the model, such as [`TreeError::NameTaken`] or [`TreeError::PathTooLong`].
    fn import(
        &self,
        txn: &mut impl Writer,
        parent: impl Into<Option<NodeId>>,
        trees: &[NestedNode<Self::Value>],
    ) -> Result<()>;

    // ---- whole trees

    /// Returns a node with all its descendants, or the whole forest, as trees in memory.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; any error of the store; an error if a name or value does not
    /// decode.
    fn export(
        &self,
        reader: &impl Reader,
        from: impl Into<Option<NodeId>>,
    ) -> Result<Vec<NestedNode<Self::Value>>> {
        dump_of(self.descendants(reader, from, ..)?)
    }

    /// Like [`export`](Tree::export), but only down to `depth`: 0 is the node alone, 1 adds its
    /// children. In the whole forest the roots have depth 1. Deeper nodes are not read.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; any error of the store; an error if a name or value does not
    /// decode.
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
    /// [`TreeError::UnknownNode`]; any error of the store; an error if a name does not decode.
    fn dot(&self, reader: &impl Reader, from: impl Into<Option<NodeId>>) -> Result<String> {
        dot_of(self.descendants(reader, from, ..)?)
    }

    /// Adds all nodes of another tree to this tree, as the last roots. Use this method to convert
    /// one model into another.
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
    /// The method holds the other tree in memory and writes this tree in one transaction. If the
    /// [batch is too large](Error::is_batch_too_large) for the store, copy in parts:
    /// [`export`](Tree::export) one root, or one node and its children, at a time, and
    /// [`import`](Tree::import) each part in its own transaction.
    ///
    /// # Errors
    /// [`TreeError::NodeExists`] if both trees have a node with the same id; the other errors of
    /// [`export`](Tree::export) and [`import`](Tree::import).
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

    /// Like [`move_to`](Tree::move_to), for a subtree that is too large for one transaction.
    /// Readers see either the old tree or the new tree, never a mix of both. `progress` is called
    /// after each transaction. If `progress` stops the work, or the program dies,
    /// [`resume`](Tree::resume) continues the move. Models that need only a few writes for a move
    /// use one transaction, and report no keys.
    ///
    /// Nested sets may relabel other nodes first. If the work stops during the relabelling, the
    /// move itself has not begun: [`resume`](Tree::resume) then writes and removes nothing. Call
    /// `move_in_steps` again.
    ///
    /// # Errors
    /// The errors of [`move_to`](Tree::move_to).
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

    /// Like [`delete_subtree`](Tree::delete_subtree), for a subtree that is too large for one
    /// transaction. Runs in steps like [`move_in_steps`](Tree::move_in_steps). After the first
    /// transaction, no walk from a node above the subtree reaches its nodes. In all models except
    /// the [adjacency list](super::AdjacencyList), readers cannot find these nodes by id either.
    /// The ids can be reused after the deletion has ended. Until then they are refused with
    /// [`TreeError::InSteps`], or with [`TreeError::NodeExists`] for a node that an adjacency list
    /// has not reached yet.
    ///
    /// An adjacency list refuses changes only at nodes that a step has already reached. It accepts
    /// a change below any other node of the subtree, and a later step deletes the data that the
    /// change wrote. So do not add or move nodes into the subtree after the first transaction.
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
    /// The errors of [`delete_subtree`](Tree::delete_subtree).
    fn delete_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        store.transact(|txn| self.delete_subtree(txn, id))?;
        Ok(at_once(progress))
    }

    /// Makes room for `nodes` new nodes at a place, in transactions as large as the store accepts;
    /// `name` is the name of the first new node. Call this method if a change was refused with
    /// [`TreeError::NoRoom`]; the same change is accepted afterwards. If there is room already,
    /// nothing is written. Paths of names and documents always have room.
    ///
    /// For a refused move, pass the place as [`InsertAt::Before`] or [`InsertAt::After`].
    /// [`InsertAt::At`] and [`InsertAt::Sorted`] count the node that moves among the children, so
    /// within one parent they mean another gap here than in the move.
    ///
    /// Nested sets give new labels to a window around the place. Lists and paths of ids give new
    /// ranks to the siblings around the place whose ranks are long; a path moves their subtrees,
    /// too.
    ///
    /// Between the transactions the order of the nodes is unchanged, and the tree accepts changes
    /// everywhere, except in a subtree of a path that is moved in steps. `progress` is called after
    /// each transaction. If `progress` breaks, or the program dies, the next call continues from
    /// the current labels or ranks.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use keyloom::{Limits, Memory, Store, Subspace};
    /// use keyloom_trees::{NestedSets, InsertAt, Tree, TreeError};
    /// let tree = NestedSets::<()>::new(&Subspace::new("places"));
    /// let store = Memory::builder().limits(Limits::etcd()).build();
    /// store.transact(|txn| tree.insert(txn, 0, "first", &(), InsertAt::last(None)))?;
    /// let insert = |id| {
    ///     let place = InsertAt::Before(0);
    ///     match store.transact(|txn| tree.insert(txn, id, "new", &(), place)) {
    ///         Err(error) if matches!(error.downcast_ref(), Some(TreeError::NoRoom { .. })) => {
    ///             let made = tree.make_room(&store, "new", place, 1, |_| ControlFlow::Continue(()))?;
    ///             assert!(made.finished);
    ///             store.transact(|txn| tree.insert(txn, id, "new", &(), place))
    ///         }
    ///         inserted => inserted,
    ///     }
    /// };
    /// (1..5_000).try_for_each(insert)?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`] if the place names a node that does not exist;
    /// [`TreeError::InSteps`] if a subtree whose labels or ranks would change is moved or deleted
    /// in steps, and on paths, if any is and a sibling has too many descendants for one
    /// transaction; [`TreeError::TooManyNodes`]; [`Conflict`](keyloom::Error::Conflict) if other
    /// writers change the siblings during every attempt of a step.
    fn make_room<S: Store>(
        &self,
        _store: &S,
        _name: &str,
        _place: InsertAt,
        _nodes: u64,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        Ok(at_once(progress))
    }

    /// Continues moves and deletions in steps that did not finish; does nothing if there are none.
    /// A program that moves or deletes in steps should call `resume` at startup.
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
    /// [`Error::NewerFormat`] if a definition has a newer format. The definitions are the head of a
    /// document and the record of work in steps: they determine how all other keys are read. Any
    /// other entry that does not decode is a fault, whatever its format byte.
    fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut found = Vec::new();
        self.check_each(reader, |fault| {
            found.push(fault);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Like [`check`](Tree::check), but calls `found` for each fault until `found` breaks. Returns
    /// the number of keys read.
    ///
    /// # Errors
    /// The errors of [`check`](Tree::check).
    fn check_each(
        &self,
        reader: &impl Reader,
        found: impl FnMut(Inconsistency) -> ControlFlow<()>,
    ) -> Result<u64>;

    /// Rewrites all data that can be derived. The module of each model documents the keys that a
    /// repair trusts and the keys that it derives. Keys that do not belong to the tree are left
    /// alone.
    ///
    /// After a repair the tree can be read and changed, and another check finds at most [lost
    /// values](keyloom_tables::Rule::Undecodable). All models treat a node that cannot be read the
    /// same way:
    ///
    /// | unreadable part | after a repair |
    /// |---|---|
    /// | the value | the node is unchanged; check reports [`Rule::Undecodable`](keyloom_tables::Rule::Undecodable) until [`set_value`](Tree::set_value) or a deletion |
    /// | the value and the name | a *placeholder*: the node has its id, place and children, the name `lost` followed by its id (in paths of names: the name in the path), and no value. The damaged bytes stay in the store until a value is set |
    /// | the value, the name and the place | a placeholder as above, but as the last root. Its children stay below the placeholder; in a model that locates children by intervals, they move up |
    ///
    /// If two nodes have the same id, one of them gets its original id if that id is known, and
    /// otherwise a new id.
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

    /// Like [`repair`](Tree::repair), with options. Calls `progress` after each commit that changed
    /// something or ended a page, and at the end of each part. Stops if `progress` breaks.
    /// [`Progress::written`] counts the keys written or removed.
    ///
    /// Most [parts](keyloom_kit::Stages) of a repair list faults. If such a part resumes, it lists
    /// the remaining faults again.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the position to resume from belongs to other data; any error
    /// of the store.
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
