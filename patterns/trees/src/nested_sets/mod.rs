//! Nested sets: a tree of intervals, in which each subtree is one contiguous range. Siblings can be
//! in any order.
//!
//! Every node is an interval: it has a *left* and a *right* label, and the labels of all its
//! descendants are between them. Rows are ordered by left label, which is the depth-first order of
//! the tree. So one scan reads a subtree in order, and a comparison of labels tests whether one
//! node is below another.
//!
//! Labels are 128-bit numbers with gaps between them. A new node takes labels from the gap at its
//! place. At an end of the parent, a node takes 3b/4 bits of a gap of b bits, so 2 to the power of
//! b/4 nodes can follow without relabelling. Below a single root, this is as many nodes as the tree
//! can hold. Below one of many roots it is 2²⁴ nodes, and below a child of such a root 2¹⁸.
//!
//! When a gap is used up, the smallest *window* around it that is not too full is relabelled. In a
//! window of 16ⁿ labels at most 2ⁿ may be in use. This is the order-maintenance algorithm of Bender
//! and others. The gap gets half of the window, so it can take about as many new nodes as the
//! window holds. Amortized, each insert relabels a few nodes.
//!
//! If a window is too large for one transaction of the store, the change is refused
//! ([`TreeError::NoRoom`]), and [`make_room`](Tree::make_room) relabels the window in steps.
//! No label moves past another one, so the tree is unchanged between the steps and accepts changes.
//! The steps store no state.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, `"left"`, left label | right label (16 bytes), id (8 bytes), name and value of the node |
//! | subspace, `"node"`, id | format, number of places, left label (16 bytes), and the id of the parent, if it has one |
//! | subspace, `"move"` | the record of a move or a deletion in steps, until the work ends |
//!
//! All integers in values are big-endian. In the first format labels had 64 bits and took 8 bytes
//! of a value. Trees in this format can be read and changed. A row whose left label has at most 64
//! bits is in the first format. If the right label of such a row is longer, it follows 8 bytes of
//! `FF`. Relabelling converts rows to the new format. A program that supports only the first format
//! does not find rows in the new format: update all programs before any of them writes.
//!
//! Depths are not stored. A walk keeps the right labels of the open nodes on a stack, and the size
//! of the stack is the depth. Counts are not stored either; each count is a scan.
//!
//! # Invariants
//!
//! * Two intervals are nested or disjoint; no label is used twice.
//! * The parent of a node is the node with the innermost interval that encloses the interval of the
//!   node.
//! * Rows are authoritative; positions (`"node"`) are derived from the rows, and
//!   [`repair`](Tree::repair) rewrites the positions. A row whose name cannot be read becomes a
//!   [placeholder](Tree::repair) at its place. A row has no place if its header is truncated, or if
//!   its interval crosses the interval of an earlier row. Such a row becomes the last root, and the
//!   rows that it enclosed move up. If the id of the row is unknown, the row is deleted. If two
//!   rows have the same id, the row that the position of this id points to keeps the id. The other
//!   row gets its own id back, or a new id.
//! * The label space holds 2³¹ nodes, wherever they are inserted: the window of all 2¹²⁸ labels may
//!   hold 2³² labels in use. Beyond that, an insert that finds no gap is refused
//!   ([`TreeError::TooManyNodes`]).
//!
//! # Cost
//!
//! In the table, the node has d ancestors, c children and n descendants. Independent gets in one
//! line of the table take one round trip. Every operation also reads the record of a move in steps
//! with its first get. This is one more get, included in the table, but no additional round trip.
//!
//! | operation | reads | keys written | round trips |
//! |---|---|---|---|
//! | [`get`](Tree::get) | 3 gets | | 2 |
//! | [`parent`](Tree::parent) | 2 gets | | 1 |
//! | [`descendants`](Tree::descendants), [`leaves`](Tree::leaves), [`export`](Tree::export) | 3 gets, 1 range of n + 1 keys | | 3 |
//! | [`descendants`](Tree::descendants) down to a depth, [`children`](Tree::children) | 3 gets, 1 range; the walk skips deeper subtrees by reading past them, or by a new range after them | | 3, and 1 per subtree skipped by a new range |
//! | [`children`](Tree::children) in descending order | per child 1 range of 1 key, and 1 get for each level from the child down to its last descendant | | as many |
//! | [`ancestors`](Tree::ancestors) | 2 + 2 d gets | | 2 + d |
//! | [`depth`](Tree::depth) | 2 + d gets | | 1 + d |
//! | [`is_ancestor`](Tree::is_ancestor) | 4 gets | | 2 |
//! | [`lowest_common_ancestor`](Tree::lowest_common_ancestor) | 4 gets, and 3 for each level from the first of the two nodes up to the common ancestor | | 2, and 3 per level |
//! | [`sibling`](Tree::sibling), the next | 4 gets, 1 range of 1 key | | 4 |
//! | [`child_count`](Tree::child_count), [`child_named`](Tree::child_named) | as [`children`](Tree::children) | | |
//! | [`descendant_count`](Tree::descendant_count) | 3 gets, counts n + 1 keys | | 3 |
//! | [`insert`](Tree::insert) beside a sibling, first or last | about 5 gets and 1 range of 1 key; last: 1 more get for each level down to the last descendant | 2, and relabelling | 5 |
//! | [`insert`](Tree::insert) at a position, sorted | as above, and the children before the place | 2, and relabelling | |
//! | [`rename`](Tree::rename), [`set_value`](Tree::set_value) | 3 gets | 1 | 2 |
//! | [`move_to`](Tree::move_to) | the subtree | 1 range deletion, 2 (n + 1), and relabelling | |
//! | [`delete_subtree`](Tree::delete_subtree) | the subtree | 1 range deletion, n + 1 | 3 |
//! | [`delete_node`](Tree::delete_node), children reparented | the children | 2 + c | |
//! | [`delete_node`](Tree::delete_node), children promoted | the subtree | as a move | |
//! | [`import`](Tree::import) of n nodes | n gets | 2 n, and relabelling | 5 |
//! | [`move_in_steps`](Tree::move_in_steps) | the subtree, three times | 5 n, in transactions of about 1,000 rows; before that, relabelling | |
//! | [`make_room`](Tree::make_room) | the window, twice | relabelling, in transactions of about 1,000 labels of up to 3 keys | |
//! | [`delete_in_steps`](Tree::delete_in_steps) | the subtree | 2 n | |
//!
//! Relabelling writes 1 range deletion, 2 keys per node whose left label is in the window, and 1
//! key per node of which only the right label is in the window. The following numbers were measured
//! over 100,000 inserts (a chain: 2,000; imports: 10,000). A deleted range counts as one key.
//!
//! | place of the inserts | keys written per insert | keys written by the worst insert |
//! |---|---|---|
//! | anywhere | 2.19 | 2,306 |
//! | after the last child of a node, before its first child, after the last root | 2.00 | 2 |
//! | 1,000,000 after the last child of a root | 2.00 | 2 |
//! | trees of 200 nodes, imported one by one as the last root | 400 per tree | 400 |
//! | always before the same node | 10.92 | 106,583 |
//! | alternately before and after the same node | 9.52 | 41,360 |
//! | each below the previous one | 6.84 | 1,467 |
//!
//! The worst case is repeated inserts at one place between two siblings, from either side. The
//! amortized cost is a few relabelled nodes per level of windows; the number of levels is
//! logarithmic in the number of nodes. A single insert may relabel a window with all nodes around
//! the place, at 2 keys per node. If the [limits](keyloom::Limits) of a store bound a transaction,
//! relabelling takes at most half of the operations and a quarter of the bytes. If a window needs
//! more, the change is refused, and [`make_room`](Tree::make_room) relabels the window.
//!
//! # Errors and transactions
//!
//! An operation that fails may have written part of its changes *in the transaction*, which then
//! [does not commit](keyloom::Writer#a-failed-write).
//!
//! While a subtree is moved or deleted in steps, these changes are refused
//! ([`TreeError::InSteps`]):
//!
//! * changes in the subtree,
//! * moves and deletions of its ancestors,
//! * nodes that would be placed among hidden rows,
//! * inserts that would relabel a window reaching into the subtree.
//!
//! The rest of the tree accepts changes. A move in steps also relabels in steps, before the move
//! begins ([`move_in_steps`](Tree::move_in_steps)).
//!
//! # When not to use it
//!
//! * When subtrees move often: a move writes two keys per node of the subtree, while an adjacency
//!   list writes about five keys per move.
//! * When many writers insert at one place: relabelling a window conflicts with every change in it.
//! * When the parent is read more often than the subtree.
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
mod in_steps;
mod labels;
mod layout;
mod place;
mod relabel;
mod repair;
mod restore;
mod room;
mod steps;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
mod view;

use std::fmt;
use std::marker::PhantomData;

use keyloom::value::{Codec, Postcard};
use keyloom::{Limits, Reader, Result, Subspace, Writer};

use change::Change;
use descend::Descend;
use labels::Span;
use layout::{Keys, Position};
use place::Placed;
use view::{View, between};

use super::tree::NodeRecords;
use super::tree::NodeTable;
use super::{InsertAt, NodeId, TreeModel, TreeNode};
#[cfg(doc)]
use super::{Tree, TreeError};

/// A tree whose nodes are intervals; see the [module](self).
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
    /// Creates a tree in `space`, which must hold nothing else. Values are encoded with
    /// [`Postcard`].
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
    /// Creates a tree in `space`, with values encoded by the codec `C`.
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
    /// Sets the name of a node, its value, or both.
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

    /// The change that deletes a node and gives its children to its parent.
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

    /// The change that deletes a node and makes its children the last roots.
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
