//! Nested sets: how is a subtree one contiguous range, whatever the order of siblings?
//!
//! Every node is an interval: it has a *left* and a *right* label, and the labels of all below it
//! lie between them. Rows lie in the order of their left labels, which is the depth-first order of
//! the tree. So what lies below a node is one scan, in order, and whether a node lies below another
//! is a comparison of numbers.
//!
//! Labels are numbers of 128 bits with gaps between them. A new node takes labels from the gap
//! where it goes. At an end of the parent a node takes 3b/4 bits of a gap of b bits, so 2 to the
//! power of b/4 nodes follow each other without more writes: all that the tree takes below a root
//! that is alone, 2²⁴ below one of many roots, 2¹⁸ below one of its children. When a gap is used
//! up, the smallest *window* around it that is not too full is relabelled: of a window of 16ⁿ
//! labels at most 2ⁿ may be in use. That is the maintenance of an order of Bender and others. The
//! gap gets half of the window, so it takes about as many nodes more as the window holds, and each
//! node pays for a few relabelled ones.
//!
//! Where a window is too large for one transaction of the store, the change is refused
//! ([`TreeError::NoRoom`]), and [`make_room`](NestedSets::make_room) relabels the window in steps.
//! No label passes another one on its way, so between the steps the tree is the same, takes
//! changes, and nothing is stored about the steps.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, `"left"`, left label | right label (16 bytes), id (8 bytes), name and value of the node |
//! | subspace, `"node"`, id | format, number of places, left label (16 bytes), and the id of the parent, if it has one |
//! | subspace, `"move"` | what is moved or deleted in steps, while it lasts |
//!
//! All integers in values are big-endian. In the first format labels had 64 bits, and took 8 bytes
//! of a value. Trees of this format are read and changed: a row whose left label has at most 64
//! bits is of the first format (its right label, when it has more, follows 8 bytes of `FF`), and
//! relabelling brings rows to the new one. A program that knows only the first format does not find
//! the new rows: update all programs before one writes.
//!
//! A depth is not stored: a walk keeps the right labels of the nodes it is in on a stack, and how
//! many they are is the depth. Nor are counts: they are scans.
//!
//! # Invariants
//!
//! * Two intervals lie apart or one inside the other; no label is given twice.
//! * The parent of a node is the innermost interval around its own.
//! * Rows are the truth; positions (`"node"`) are derived from them, and [`repair`](Tree::repair)
//!   writes them again. A row whose name cannot be read becomes a [placeholder](Tree::repair) where
//!   it is. One that has no place, because its header is cut off or its interval crosses that of an
//!   earlier row, becomes the last root, and the rows that it enclosed move up; it is deleted where
//!   not even its id is known. Of two rows of one id, the one that the position names keeps it, and
//!   the other gets back its own or a new one.
//! * The label space holds 2³¹ nodes, wherever they come: the window of all 2¹²⁸ labels may hold
//!   2³². Beyond, an insert that finds no gap is refused ([`TreeError::TooManyNodes`]).
//!
//! # Cost
//!
//! For a node with d ancestors, c children and n nodes below it. The gets of one line that do not
//! depend on each other are one round trip. Every operation asks with its first get whether a move
//! in steps is under way: one get more, counted here, and no round trip.
//!
//! | operation | reads | keys written | round trips |
//! |---|---|---|---|
//! | [`get`](Tree::get) | 3 gets | | 2 |
//! | [`parent`](Tree::parent) | 2 gets | | 1 |
//! | [`descendants`](Tree::descendants), [`leaves`](Tree::leaves), [`export`](Tree::export) | 3 gets, 1 range of n + 1 keys | | 3 |
//! | [`descendants`](Tree::descendants) down to a depth, [`children`](Tree::children) | 3 gets, 1 range; below what is too deep it steps, or begins another range behind | | 3, and 1 per subtree left out by a new range |
//! | [`children`](Tree::children), from the last to the first | per child 1 range of 1 key, and 1 get for each level that its last descendant lies deeper | | as many |
//! | [`ancestors`](Tree::ancestors) | 2 + 2 d gets | | 2 + d |
//! | [`depth`](Tree::depth) | 2 + d gets | | 1 + d |
//! | [`is_ancestor`](Tree::is_ancestor) | 4 gets | | 2 |
//! | [`lowest_common_ancestor`](Tree::lowest_common_ancestor) | 4 gets, and 3 for each level it lies above the first of the two | | 2, and 3 per level |
//! | [`sibling`](Tree::sibling), the next | 4 gets, 1 range of 1 key | | 4 |
//! | [`child_count`](Tree::child_count), [`child_named`](Tree::child_named) | as [`children`](Tree::children) | | |
//! | [`descendant_count`](Tree::descendant_count) | 3 gets, counts n + 1 keys | | 3 |
//! | [`insert`](Tree::insert) beside a sibling, first or last | some 5 gets and 1 range of 1 key; last: 1 get more for each level that the last descendant lies deeper | 2, and what gives way | 5 |
//! | [`insert`](Tree::insert) at a position, sorted | and the children before it | 2, and what gives way | |
//! | [`rename`](Tree::rename), [`set_value`](Tree::set_value) | 3 gets | 1 | 2 |
//! | [`move_to`](Tree::move_to) | the subtree | 1 range deletion, 2 (n + 1), and what gives way | |
//! | [`delete_subtree`](Tree::delete_subtree) | the subtree | 1 range deletion, n + 1 | 3 |
//! | [`delete_node`](Tree::delete_node), children adopted | the children | 2 + c | |
//! | [`delete_node`](Tree::delete_node), children rooted | the subtree | as a move | |
//! | [`import`](Tree::import) of n nodes | n gets | 2 n, and what gives way | 5 |
//! | [`move_in_steps`](Tree::move_in_steps) | the subtree, three times | 5 n, in transactions of some 1,000 rows; before that, what gives way | |
//! | [`make_room`](NestedSets::make_room) | the window, twice | what gives way, in transactions of some 1,000 labels of up to 3 keys | |
//! | [`delete_in_steps`](Tree::delete_in_steps) | the subtree | 2 n | |
//!
//! What gives way is written with 1 range deletion and 2 keys per node whose left label lies in the
//! window, and 1 key per node of which only the right one does. Counted over 100,000 inserts (a
//! chain: 2,000; loads: 10,000), where a deleted range counts as one key:
//!
//! | where nodes come | keys written per insert | by the worst insert |
//! |---|---|---|
//! | anywhere | 2.19 | 2,306 |
//! | after the last child of a node, before its first one, after the last root | 2.00 | 2 |
//! | 1,000,000 after the last child of a root | 2.00 | 2 |
//! | trees of 200 nodes, loaded one by one as the last root | 400 per tree | 400 |
//! | always before the same node | 10.92 | 106,583 |
//! | in turns before and after the same node | 9.52 | 41,360 |
//! | each below the one before | 6.84 | 1,467 |
//!
//! The worst case is one spot between two siblings, again and again, from either side: amortized a
//! few nodes per level of windows, of which there are as many as the logarithm of the number of
//! nodes; and one insert may relabel a window of all nodes around the spot, 2 keys each. Where the
//! [limits](keyloom::Limits) of a store bound a transaction, what gives way takes at most half of
//! the operations and a quarter of the bytes: a larger window is refused, and relabelled by
//! [`make_room`](NestedSets::make_room).
//!
//! # Errors and transactions
//!
//! An operation that fails may have made part of its writes *in the transaction*, which then
//! [does not commit](keyloom::Writer#a-failed-write).
//!
//! While a subtree is moved or deleted in steps, changes in it, moves and deletions of what it lies
//! in, and nodes that would go where hidden rows lie are refused ([`TreeError::InSteps`]), and so
//! is an insert elsewhere for which a window would have to give way that reaches into the subtree;
//! the rest of the tree takes changes. Room for a subtree that is moved in steps is made in steps,
//! too, before the move begins ([`MoveStep::Relabelling`](super::MoveStep)).
//!
//! # When not to use it
//!
//! When subtrees are moved often: a move writes the subtree twice over, where an adjacency list
//! writes some five keys. When many writers insert at one spot: a window that is relabelled
//! conflicts with every change in it. When the parent is asked for more than the subtree.
//!
//! # Source
//!
//! "Nested Sets" in Ilya Katsov, *NoSQL Data Modeling Techniques* (2012), after Joe Celko, *Trees
//! and Hierarchies in SQL*. Gaps: Michael Bender, Richard Cole, Erik Demaine, Martin Farach-Colton,
//! Jack Zito, "Two simplified algorithms for maintaining order in a list" (ESA 2002).

mod change;
mod check;
mod contract;
mod descend;
mod labels;
mod layout;
mod place;
mod relabel;
mod restore;
mod room;
mod steps;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
mod view;

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use keyloom::value::{Codec, Postcard};
use keyloom::{Limits, Reader, Result, Store, Subspace, Writer};

use change::Change;
use descend::Descend;
use labels::Span;
use layout::{Keys, Position};
use place::Placed;
use relabel::Wanted;
use view::{View, between};

use super::tree::NodeRecords;
use super::tree::NodeTable;
use super::{InsertAt, MoveProgress, NodeId, TreeModel, TreeNode};
#[cfg(doc)]
use super::{Tree, TreeError};

/// A tree in which each node is an interval; see the [module](self).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_trees::{NestedSets, InsertAt, Tree};
/// let tree = NestedSets::<()>::new(&Subspace::new("places"));
/// let store = Memory::new();
/// store.transact(|txn| {
///     tree.insert(txn, 1, "France", &(), InsertAt::last(None))?;
///     tree.insert(txn, 2, "Lyon", &(), InsertAt::last(1))?;
///     tree.insert(txn, 3, "Paris", &(), InsertAt::Before(2))
/// })?;
///
/// let snapshot = store.snapshot()?;
/// assert!(tree.is_ancestor(&snapshot, 1, 3)?);
/// let mut names = Vec::new();
/// for visit in tree.descendants(&snapshot, 1, ..)? {
///     let visit = visit?;
///     names.push((visit.depth, visit.node.name()?.to_string()));
/// }
/// assert_eq!(names, [(0, "France".into()), (1, "Paris".into()), (1, "Lyon".into())]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct NestedSets<V, C = Postcard> {
    keys: Keys,
    records: NodeRecords<V, C>,
    types: PhantomData<fn() -> (V, C)>,
}

impl<V: 'static, C: Codec<V>> TreeModel for NestedSets<V, C> {
    fn definition(&self) -> String {
        "nested sets".into()
    }

    fn with_nodes(self, nodes: NodeTable<V, C>) -> Self {
        Self { records: NodeRecords::new(nodes), ..self }
    }

    fn nodes(&self) -> Result<&NodeTable<V, C>> {
        self.records.table(&self.keys.space)
    }
}

impl<V, C> Clone for NestedSets<V, C> {
    fn clone(&self) -> Self {
        let (keys, records) = (self.keys.clone(), self.records.clone());
        Self { keys, records, types: PhantomData }
    }
}

impl<V, C> fmt::Debug for NestedSets<V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NestedSets").field("space", &self.keys.space).finish_non_exhaustive()
    }
}

impl<V> NestedSets<V> {
    /// A tree in `space`, where nothing else may be. Values are written with [`Postcard`].
    ///
    /// ```
    /// use keyloom::Subspace;
    /// use keyloom_trees::{NestedSets, Tree};
    /// let places = NestedSets::<u32>::new(&Subspace::new("places"));
    /// assert_eq!(places.space(), &Subspace::new("places"));
    /// ```
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<V, C> NestedSets<V, C> {
    /// A tree in `space`, whose values are written with the codec `C`.
    ///
    /// ```
    /// use keyloom::{Subspace, value::Json};
    /// use keyloom_trees::NestedSets;
    /// let places = NestedSets::<Vec<String>, Json>::with_codec(&Subspace::new("places"));
    /// ```
    pub fn with_codec(space: &Subspace) -> Self {
        Self { keys: Keys::new(space), records: NodeRecords::NONE, types: PhantomData }
    }
}

impl<V: 'static, C: Codec<V>> NestedSets<V, C> {
    /// Makes room for `nodes` new nodes at a place, where `name` is the name of the first of them,
    /// in transactions as large as the store takes. For a change that was refused with
    /// [`TreeError::NoRoom`]: the same change is taken afterwards.
    ///
    /// Between the transactions the tree is the same tree as before, and it takes changes
    /// everywhere. `progress` is called after each of them. Where it breaks, or the program dies,
    /// the next call goes on from the labels as they are. Where there is room already, nothing is
    /// written.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use keyloom::{Limits, Memory, Store, Subspace};
    /// use keyloom_trees::{MoveStep, NestedSets, InsertAt, Tree, TreeError};
    /// let tree = NestedSets::<()>::new(&Subspace::new("places"));
    /// let store = Memory::builder().limits(Limits::etcd()).build();
    /// store.transact(|txn| tree.insert(txn, 0, "first", &(), InsertAt::last(None)))?;
    /// let insert = |id| {
    ///     let place = InsertAt::Before(0);
    ///     match store.transact(|txn| tree.insert(txn, id, "new", &(), place)) {
    ///         Err(error) if matches!(error.downcast_ref(), Some(TreeError::NoRoom { .. })) => {
    ///             let made = tree.make_room(&store, "new", place, 1, |_| ControlFlow::Continue(()))?;
    ///             assert_eq!(made.step, MoveStep::Finished);
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
    /// [`TreeError::UnknownNode`] where the place names a node that is not there;
    /// [`TreeError::InSteps`] where labels of a subtree would change that is moved or deleted in
    /// steps; [`TreeError::TooManyNodes`]; [`Conflict`](keyloom::Error::Conflict) where other
    /// writers change the labels each time before a step.
    pub fn make_room<S: Store>(
        &self,
        store: &S,
        name: &str,
        place: InsertAt,
        nodes: u64,
        progress: impl FnMut(&MoveProgress) -> ControlFlow<()>,
    ) -> Result<MoveProgress> {
        let wanted = Wanted::New { name, place, nodes };
        relabel::make_room(&self.keys, store, wanted, 0, progress)
    }

    /// Gives a node another name, another value, or both.
    fn change_node(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        encode: impl FnOnce(&TreeNode<&[u8], V, C>, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let (left, header, bytes) = {
            let (view, row) = View::of_row(&self.keys, &*txn, id)?;
            view.refuse_in_steps(Span { first: row.left, last: row.left })?;
            let mut bytes = row.header().to_vec();
            encode(&TreeNode::new(id, row.node(), 0), &mut bytes)?;
            (row.left, row.header().len(), bytes)
        };
        txn.put(&self.keys.left(left), &bytes)?;
        self.records.put(txn, id, bytes.get(header..).unwrap_or_default())
    }

    /// What deletes a node and gives its children to its parent.
    fn adopt(
        &self,
        view: &View<'_, '_, impl Reader>,
        id: NodeId,
        span: Span,
        at: Position,
    ) -> Result<Change> {
        let mut change = Change::default();
        change.writes.delete(&self.keys.left(span.first))?;
        change.writes.delete(&self.keys.node(id))?;
        let mut children = Descend::open(view, between(span.first, span.last), 1, Some((1, 1)))?;
        while let Some(child) = children.next_row()? {
            let now = Position { left: child.left, parent: at.parent };
            change.put_position(&self.keys, child.id, now.into())?;
        }
        Ok(change)
    }

    /// What deletes a node and makes its children the last roots.
    fn uproot(
        &self,
        view: &View<'_, '_, impl Reader>,
        id: NodeId,
        span: Span,
        limits: &Limits,
    ) -> Result<Change> {
        let placed = Placed { id, name: "", span: Some(span) };
        let gap = view.gap(placed, InsertAt::Last(None))?;
        let below = match between(span.first, span.last) {
            Some(below) => view.going(below)?,
            None => Vec::new(),
        };
        let mut change = view.without(span).place(&gap, &below, limits)?;
        change.cleared.push(span);
        change.writes.delete(&self.keys.node(id))?;
        Ok(change)
    }
}
