//! Tree: the contract that all models of a hierarchy keep.
//!
//! A tree is a forest of nodes. A node has an *id*, a number that the program gives it and that
//! never changes, a *name*, and a *value*. Siblings stand in an order; where a node goes is said by
//! a [`InsertAt`]. The models differ in where they put the nodes on the keys of the store, so in
//! what each operation costs, but not in what it does. One form takes less than the others: [paths
//! of names](super::MaterializedPath::of_names) have no places but sorted ones, and no two siblings
//! of one name.
//!
//! Depth-first order, a node before its children, is the order of every walk.

mod children;
mod error;
mod names;
mod nested;
mod node;
mod place;
pub mod records;
mod steps;

use std::ops::{Deref, RangeBounds};

#[cfg(doc)]
use keyloom::Error;
use keyloom::value::Codec;
use keyloom::{Order, Reader, Result, Store, Subspace, Writer};
use keyloom_tables::Inconsistency;

pub use children::Children;
pub use error::TreeError;
pub(crate) use error::{Findings, exists, stoppable, unknown, unless_newer};
pub(crate) use names::{first_named, follow, follow_names};
pub use nested::Nested;
pub use node::{TreeNode, Visit};
pub(crate) use node::{depth_bounds, encode_node, fresh_id, named_placeholder, placeholder};
pub use place::{InsertAt, OnDelete};
pub(crate) use records::NodeRecords;
pub(crate) use records::NodeTable;
pub use records::{NodeCodec, NodeRecord, TreeModel};
pub use steps::{MoveProgress, MoveStep};

pub(crate) use nested::{dot_of, dump_of};

/// The id of a node. For keys of another kind see `DenseIds` of keyloom-bitmaps, for fresh numbers
/// [`Sequence`](keyloom_tables::Sequence).
pub type NodeId = u64;

pub(crate) type NodeOf<'r, T, R> =
    TreeNode<<T as Tree>::Bytes<'r, R>, <T as Tree>::Value, <T as Tree>::Codec>;
pub(crate) type VisitOf<'r, T, R> =
    Visit<<T as Tree>::Bytes<'r, R>, <T as Tree>::Value, <T as Tree>::Codec>;

/// A hierarchy on ordered keys.
///
/// What every method says of errors: a node that is not there is a [`TreeError::UnknownNode`], and
/// whatever is refused is refused before anything is written. A parent `None` stands for the roots,
/// and walks from `None` go through the whole forest. Costs are told by the models.
///
/// ```
/// use keyloom::{Memory, Reader, Result, Store, Subspace, Writer};
/// use keyloom_trees::{AdjacencyList, NestedSets, InsertAt, Tree};
///
/// /// Works with every model: which one it is, is said where it is made.
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
    /// What a node holds beside its name.
    type Value;
    /// How values are stored.
    type Codec: Codec<Self::Value>;
    /// The stored bytes of a node, as a reader lends them.
    type Bytes<'r, R: Reader + 'r>: Deref<Target = [u8]>;

    /// Where the tree is.
    fn space(&self) -> &Subspace;

    // ---- what there is
    // ------------------------------------------------------------------------------------------

    /// A node, `None` where there is none of this id.
    ///
    /// # Errors
    /// What the store says; a node that does not decode.
    fn get<'r, R: Reader>(&self, reader: &'r R, id: NodeId) -> Result<Option<NodeOf<'r, Self, R>>>;

    /// The parent of a node, `None` of a root.
    ///
    /// # Errors
    /// As all of the [contract](Tree).
    fn parent(&self, reader: &impl Reader, id: NodeId) -> Result<Option<NodeId>>;

    /// The children of a node, or the roots, from the first to the last or the other way round.
    ///
    /// # Errors
    /// As all of the [contract](Tree); the iterator what the store says.
    fn children<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<Option<NodeId>>,
        order: Order,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>>;

    /// What lies below a node, depth-first, as far as `depths` say: `1..` leaves the node itself
    /// out, `..` takes it in, `1..=2` are its children and theirs. Of the whole forest the roots
    /// have depth 1.
    ///
    /// # Errors
    /// As [`children`](Tree::children).
    fn descendants<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>>;

    /// The parent of a node, its parent, and so on up to the root.
    ///
    /// # Errors
    /// As all of the [contract](Tree).
    fn ancestors<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Vec<NodeOf<'r, Self, R>>>;

    /// The sibling behind a node ([`Order::Ascending`]) or before it.
    ///
    /// # Errors
    /// As all of the [contract](Tree).
    fn sibling<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
        order: Order,
    ) -> Result<Option<NodeOf<'r, Self, R>>>;

    /// How many children a node has, or how many roots there are.
    ///
    /// # Errors
    /// As all of the [contract](Tree).
    fn child_count(&self, reader: &impl Reader, parent: impl Into<Option<NodeId>>) -> Result<u64> {
        let children = self.children(reader, parent, Order::Ascending)?;
        children.map(|child| child.map(|_| 1)).sum()
    }

    /// How many nodes lie below a node, itself not counted, or how many there are.
    ///
    /// # Errors
    /// As all of the [contract](Tree).
    fn descendant_count(
        &self,
        reader: &impl Reader,
        from: impl Into<Option<NodeId>>,
    ) -> Result<u64> {
        self.descendants(reader, from, 1..)?.map(|visit| visit.map(|_| 1)).sum()
    }

    /// How many ancestors a node has: 0 of a root.
    ///
    /// # Errors
    /// As all of the [contract](Tree).
    fn depth(&self, reader: &impl Reader, id: NodeId) -> Result<u32> {
        Ok(u32::try_from(self.ancestors(reader, id)?.len()).unwrap_or(u32::MAX))
    }

    /// Whether `node` lies below `ancestor`; no node lies below itself.
    ///
    /// # Errors
    /// As all of the [contract](Tree), of both nodes.
    fn is_ancestor(&self, reader: &impl Reader, ancestor: NodeId, node: NodeId) -> Result<bool> {
        self.expect(reader, ancestor)?;
        Ok(self.ancestors(reader, node)?.iter().any(|found| found.id() == ancestor))
    }

    /// The lowest node that has both nodes in its subtree, which may be one of them; `None` where
    /// they have different roots.
    ///
    /// # Errors
    /// As all of the [contract](Tree), of both nodes.
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

    /// The nodes without children below a node, or of the forest; a node without children is its
    /// own leaf.
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
                    // Nobody knows what comes behind this one: the error does.
                    Some(Err(_)) => {}
                    _ => return Some(Ok(visit.node)),
                }
            }
        }))
    }

    /// The first child that has this name, or the first root.
    ///
    /// # Errors
    /// As all of the [contract](Tree).
    fn child_named(
        &self,
        reader: &impl Reader,
        parent: impl Into<Option<NodeId>>,
        name: &str,
    ) -> Result<Option<NodeId>> {
        first_named(self.children(reader, parent, Order::Ascending)?, name)
    }

    /// The node that these names lead to, beginning with the name of a root.
    ///
    /// # Errors
    /// What the store says.
    fn node_at<'n>(
        &self,
        reader: &impl Reader,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Option<NodeId>> {
        follow(self, reader, names)
    }

    /// An error unless the node is there.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`]; what the store says.
    fn expect(&self, reader: &impl Reader, id: NodeId) -> Result<()> {
        match self.get(reader, id)? {
            Some(_) => Ok(()),
            None => Err(unknown(self.space(), id)),
        }
    }

    // ---- changes
    // ------------------------------------------------------------------------------------------------

    /// Adds a node. Below a node of an [adjacency list](super::AdjacencyList) that is deleted in
    /// steps, a later step may delete it too; see [`delete_in_steps`](Tree::delete_in_steps).
    ///
    /// # Errors
    /// [`TreeError`]: the node is there already, the place is not, a path or a name is too long.
    fn insert(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        value: &Self::Value,
        place: InsertAt,
    ) -> Result<()>;

    /// Gives a node another name. It stays where it is, also where it had been
    /// [sorted](InsertAt::Sorted) in, unless the model orders siblings by name.
    ///
    /// # Errors
    /// As all of the [contract](Tree).
    fn rename(&self, txn: &mut impl Writer, id: NodeId, name: &str) -> Result<()>;

    /// Gives a node another value.
    ///
    /// # Errors
    /// As all of the [contract](Tree).
    fn set_value(&self, txn: &mut impl Writer, id: NodeId, value: &Self::Value) -> Result<()>;

    /// Moves a node, with all below it. Where it stands there already, also directly before or
    /// after itself, nothing is written.
    ///
    /// # Errors
    /// [`TreeError::BelowItself`], and as [`insert`](Tree::insert). When a model writes more than
    /// the store takes in a transaction, [what is too much at once](Error::is_batch_too_large): see
    /// [`move_in_steps`](Tree::move_in_steps).
    fn move_to(&self, txn: &mut impl Writer, id: NodeId, place: InsertAt) -> Result<()>;

    /// Deletes a node and all below it, and tells how many nodes that were.
    ///
    /// # Errors
    /// As all of the [contract](Tree). When it is too much at once, see
    /// [`delete_in_steps`](Tree::delete_in_steps).
    fn delete_subtree(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64>;

    /// Deletes a node alone. Its children take its place, or become roots.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, Nested, OnDelete, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let trees = [Nested::new(1, "one", ()).with(Nested::new(2, "two", ()).with(Nested::new(3, "three", ())))];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// store.transact(|txn| tree.delete_node(txn, 2, OnDelete::Reparent))?;
    /// assert_eq!(tree.parent(&store.snapshot()?, 3)?, Some(1));
    /// store.transact(|txn| tree.delete_node(txn, 1, OnDelete::Promote))?;
    /// assert_eq!(tree.parent(&store.snapshot()?, 3)?, None);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As all of the [contract](Tree); a name that is taken where its children go.
    fn delete_node(&self, txn: &mut impl Writer, id: NodeId, orphans: OnDelete) -> Result<()>;

    /// Adds whole trees, as the last children of `parent`. Below a node that is deleted in steps as
    /// with [`insert`](Tree::insert).
    ///
    /// # Errors
    /// As [`insert`](Tree::insert).
    fn import(
        &self,
        txn: &mut impl Writer,
        parent: impl Into<Option<NodeId>>,
        trees: &[Nested<Self::Value>],
    ) -> Result<()>;

    // ---- the whole
    // ----------------------------------------------------------------------------------------------

    /// A node and all below it in memory, or the whole forest.
    ///
    /// # Errors
    /// As [`descendants`](Tree::descendants); a value that does not decode.
    fn export(
        &self,
        reader: &impl Reader,
        from: impl Into<Option<NodeId>>,
    ) -> Result<Vec<Nested<Self::Value>>> {
        dump_of(self.descendants(reader, from, ..)?)
    }

    /// A node and all below it, or the whole forest, as a graph in the DOT language of Graphviz.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, Nested, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let trees = [Nested::new(1, "one", ()).with(Nested::new(2, "two", ()).with(Nested::new(3, "three", ())))];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// let dot = tree.dot(&store.snapshot()?, 2)?;
    /// assert_eq!(dot, "digraph tree {\n    2 [label=\"two\"];\n    3 [label=\"three\"];\n    2 -> 3;\n}\n");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`descendants`](Tree::descendants).
    fn dot(&self, reader: &impl Reader, from: impl Into<Option<NodeId>>) -> Result<String> {
        dot_of(self.descendants(reader, from, ..)?)
    }

    /// Adds all that another tree holds to this one, as the last roots: how one model is turned
    /// into another.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, Nested, NestedSets, Tree};
    /// let space = Subspace::new("tree");
    /// let old = AdjacencyList::<()>::new(&space.child("old"));
    /// let new = NestedSets::<()>::new(&space.child("new"));
    /// let store = Memory::new();
    /// let trees = [Nested::new(1, "one", ()).with(Nested::new(2, "two", ()))];
    /// store.transact(|txn| old.import(txn, None, &trees))?;
    /// store.transact(|txn| new.copy_from(txn, &old))?;
    /// assert_eq!(new.export(&store.snapshot()?, None)?, trees);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// The other tree is in memory meanwhile, and this one is written in one transaction. Where a
    /// store does not take [so much at once](Error::is_batch_too_large), do it in parts:
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

    // ---- work that is longer than a transaction
    // -----------------------------------------------------------------

    /// [`move_to`](Tree::move_to) of a subtree that is too large for one transaction. Readers see
    /// the old tree or the new one, never half of either. `progress` is told after each
    /// transaction; where it stops the work, or the program dies, [`resume`](Tree::resume) goes on.
    /// Models in which a move is a few writes do it in one.
    ///
    /// # Errors
    /// As [`move_to`](Tree::move_to).
    fn move_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        place: InsertAt,
        progress: impl FnMut(&MoveProgress) -> std::ops::ControlFlow<()>,
    ) -> Result<MoveProgress> {
        store.transact(|txn| self.move_to(txn, id, place))?;
        Ok(steps::at_once(progress))
    }

    /// [`delete_subtree`](Tree::delete_subtree) of one that is too large for one transaction, as
    /// [`move_in_steps`](Tree::move_in_steps). From the first transaction on no walk from above
    /// comes to the nodes, and in all models but the [adjacency list](super::AdjacencyList) no
    /// reader finds them by their ids either; the ids are free again when the deletion has ended,
    /// and refused until then ([`TreeError::InSteps`]).
    ///
    /// An adjacency list refuses changes only at nodes that a step has come to. A change below a
    /// node of the subtree that none has come to is taken, and a later step deletes what it wrote:
    /// add and move nothing below the subtree after the first transaction.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, MoveStep, Nested, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let trees = [Nested::new(1, "one", ()).with(Nested::new(2, "two", ()).with(Nested::new(3, "three", ())))];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// let done = tree.delete_in_steps(&store, 2, |progress| {
    ///     println!("{:?}: {} keys", progress.step, progress.keys);
    ///     std::ops::ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(done.step, MoveStep::Finished);
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
        progress: impl FnMut(&MoveProgress) -> std::ops::ControlFlow<()>,
    ) -> Result<MoveProgress> {
        store.transact(|txn| self.delete_subtree(txn, id))?;
        Ok(steps::at_once(progress))
    }

    /// Goes on with what was begun in steps and did not end; does nothing where all has ended. A
    /// program that moves or deletes in steps calls it when it starts.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{Nested, NestedSets, Tree};
    /// let tree = NestedSets::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let trees = [Nested::new(1, "one", ()).with(Nested::new(2, "two", ()))];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// // It stops after the first transaction, as a program that is killed.
    /// tree.delete_in_steps(&store, 1, |_| ControlFlow::Break(()))?;
    /// assert!(store.transact(|txn| tree.import(txn, None, &trees)).is_err());
    /// tree.resume(&store, |_| ControlFlow::Continue(()))?;
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the store says.
    fn resume<S: Store>(
        &self,
        _store: &S,
        progress: impl FnMut(&MoveProgress) -> std::ops::ControlFlow<()>,
    ) -> Result<MoveProgress> {
        Ok(steps::at_once(progress))
    }

    /// Everything that is not as it should be, told to `found` until it stops; returns how many
    /// keys were looked at.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Rule;
    /// use keyloom_trees::{AdjacencyList, Nested, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let trees = [Nested::new(1, "one", ()).with(Nested::new(2, "two", ()).with(Nested::new(3, "three", ())))];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// use std::ops::ControlFlow;
    /// use keyloom::Writer;
    /// store.transact(|txn| txn.put(&tree.space().pack("other"), b"of somebody else"))?;
    /// let mut found = Vec::new();
    /// tree.check(&store.snapshot()?, |fault| {
    ///     found.push((fault.to_string(), fault.rule));
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(found, [(r#"the key ("tree", "other") is of another kind of data"#.into(), Rule::Foreign)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NewerFormat`] where a definition has a newer format: the head of a document, or the
    /// record of work in steps. It says how all other keys are read. Any other entry that does not
    /// decode is a fault, whatever its format byte says.
    fn check(
        &self,
        reader: &impl Reader,
        found: impl FnMut(Inconsistency) -> std::ops::ControlFlow<()>,
    ) -> Result<u64>;

    /// Makes what can be derived what it should be, and returns how many keys were written or
    /// removed. The module of the model says what it takes for the truth and what it derives. Keys
    /// that are nothing of the tree stay where they are.
    ///
    /// After it the tree can be walked and changed, and another check finds [lost
    /// values](keyloom_tables::Rule::Undecodable) at most. Of a node that cannot be read every
    /// model makes the same:
    ///
    /// | what cannot be read | after a repair |
    /// |---|---|
    /// | the value | the node is as it was; check reports [`Rule::Undecodable`](keyloom_tables::Rule::Undecodable) until [`set_value`](Tree::set_value) or a deletion |
    /// | the name too | a *placeholder*: the node has its id, its place and its children, the name `lost` and its id (where paths are of names: the name of the path), and no value. The damaged bytes stay in the store until it has a value |
    /// | also where it was | as before, but it is the last root; its children stay below it, or where intervals say where they are, move up |
    ///
    /// A node whose id another one has gets its own id back where that is known, or a new one.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, Nested, Tree};
    /// let tree = AdjacencyList::<()>::new(&Subspace::new("tree"));
    /// let store = Memory::new();
    /// let trees = [Nested::new(1, "one", ()).with(Nested::new(2, "two", ()).with(Nested::new(3, "three", ())))];
    /// store.transact(|txn| tree.import(txn, None, &trees))?;
    /// use keyloom::Writer;
    /// store.transact(|txn| txn.delete(&tree.space().pack(&("node", 2))))?;
    /// assert_eq!(tree.repair(&store)?, 1);
    /// assert_eq!(tree.export(&store.snapshot()?, None)?, trees);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the store says.
    fn repair<S: Store>(&self, store: &S) -> Result<u64>;
}

/// The ids from the root down to a node.
fn path_to<B, V, C>(ancestors: &[TreeNode<B, V, C>], node: NodeId) -> Vec<NodeId> {
    let mut path: Vec<NodeId> = ancestors.iter().rev().map(TreeNode::id).collect();
    path.push(node);
    path
}
