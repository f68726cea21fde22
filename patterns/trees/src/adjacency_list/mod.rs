//! Adjacency list: what hangs from what, when subtrees move often?
//!
//! Each node knows its parent, and each parent has its children side by side, in their order. So a
//! move is a few key writes, whatever hangs from the node, and the children of a node are one
//! range. Ancestors and descendants are found step by step.
//!
//! # Key layout
//!
//! | key | value |
//! |---|---|
//! | `("node", id)` | format, parent, rank among the siblings; the node: its name and value |
//! | `("child", parent, rank, id)` | the node once more, so that the children of a parent are read in one range |
//! | `("count", parent)` | a counter: how many children there are |
//! | `("name", parent, name)` | with [unique names](AdjacencyList::with_unique_names): the id of the child |
//! | `("value", id)` | only with [derived data](super::tree::records): the name and the value once more |
//! | `("delete", id)` | only while a subtree is deleted in steps: one of its nodes, whose record is a tombstone then |
//!
//! The parent of a root is null. The count of children is a key of its own, which is added to and
//! not read: kept in the record of the parent, it would make each insert read and write that
//! record, and meet whoever renames the parent. On a store with atomic additions, which
//! [`Memory`](keyloom::Memory) is, inserts below one parent meet only where they go to the same
//! place; all of those that go to the end do, since each goes behind the last. On PostgreSQL and
//! etcd an addition reads, so all inserts and deletions below one parent conflict there, and each
//! costs a round trip more for every parent whose count changes: two for a move from one to the
//! other.
//!
//! A rank is a string of bytes between those of the neighbours. Ranks at both ends count on, and
//! stay short: 1,000,000 children one behind the other, or one before the other, have ranks of up
//! to 4 bytes. Between two neighbours a rank grows longer than theirs. When one would grow past a
//! multiple of 16 bytes, some siblings around it get new ranks in the same transaction: as few as
//! give short ones, at most 1,024 of them (more only where ranks would pass 100 bytes, which takes
//! millions of inserts at one place).
//!
//! # Invariants
//!
//! 1. A node has one child entry, below the parent and with the rank that its record names, and it
//!    holds the same node.
//! 2. The count of a parent is how many child entries it has. Without children it is 0 or absent.
//! 3. With unique names, each child has one name entry below its parent.
//! 4. Following parents leads to a root.
//!
//! Records of nodes are the truth. [`check`](Tree::check) compares all else with them, and finds
//! parents that are missing and nodes that lie below themselves; it keeps the id, the parent and
//! the rank of every node in memory. [`repair`](Tree::repair) derives the entries, the counts and
//! the names again, and removes those that no record asks for. A record that is lost, or does not
//! decode, is written again from the child entry, which holds all that it held. Where neither can
//! be read, the node becomes a [placeholder](Tree::repair) where its entry says that it is, or the
//! last root. A node whose parent is missing becomes the last root, and so does the node with the
//! smallest id of each cycle. With unique names, a child with the name of an earlier one gets its
//! id behind the name. Keys beside these kinds are reported by the check and left alone.
//!
//! A walk down compares each inner node with those above it, so a child entry that closes a circle
//! is the error [`TreeError::Broken`](super::TreeError::Broken); [`repair`](Tree::repair) removes
//! the entry.
//!
//! Two moves at the same time that would put two nodes below each other conflict on every store,
//! since a move reads the record of each node above its new place, and writes that of the node it
//! moves.
//!
//! # Cost
//!
//! d: depth of the node. c: children. n: nodes of the subtree, i of them with children.
//!
//! | operation | gets | ranges | keys written | round trips |
//! |---|---|---|---|---|
//! | [`get`](Tree::get), [`parent`](Tree::parent) | 1 | | | 1 |
//! | [`children`](Tree::children) | 1 | 1, c entries | | 2 |
//! | [`sibling`](Tree::sibling) | 1 | 1, one entry | | 2 |
//! | [`child_count`](Tree::child_count) | 2 | | | 1 |
//! | [`ancestors`](Tree::ancestors), [`depth`](Tree::depth) | d + 1 | | | d + 1 |
//! | [`is_ancestor`](Tree::is_ancestor) | d + 2 | | | d + 2 |
//! | [`lowest_common_ancestor`](Tree::lowest_common_ancestor) | d + 1 of each | | | as gets |
//! | [`descendants`](Tree::descendants), [`descendant_count`](Tree::descendant_count), [`leaves`](Tree::leaves), [`export`](Tree::export) | 1 | about 2 i + 1, n entries | | as ranges |
//! | [`child_named`](Tree::child_named) | 2 with unique names | 1 without, up to c entries | | 1 or 2 |
//! | [`node_at`](Tree::node_at) | `child_named` once per name | | | |
//! | [`insert`](Tree::insert), first or last | 2 | 1, one entry | 3 | 3 with the commit |
//! | [`insert`](Tree::insert) beside a sibling | 2 | 1, two entries | 3 | 3 |
//! | [`insert`](Tree::insert) at a position, sorted | 2 | 1, the entries before it | 3 | 3 |
//! | [`rename`](Tree::rename), [`set_value`](Tree::set_value) | 1 | | 2 | 2 |
//! | [`move_to`](Tree::move_to) below another parent | 2, and d of the new parent | 1 | 5 | |
//! | [`move_to`](Tree::move_to) among its siblings | 2 | 1 | 3 | |
//! | [`delete_subtree`](Tree::delete_subtree) | 1 | as descendants | 2 n + i + 2 | |
//! | [`delete_in_steps`](Tree::delete_in_steps) | 2 n + i | 3 i, n entries | 3 n + 3 i + 4 | some 5 for each of the i |
//! | [`delete_node`](Tree::delete_node) | 1 | 3 | 2 c + 5 | |
//! | [`import`](Tree::import) | n + 1 | 1 | 2 n + i, in the order of keys | 3; with unique names 4 |
//!
//! 100,000 inserts all directly before one node, or each behind the last one, cost 3.1 key writes
//! each. The worst place is on both sides of the last one in turn: 9 each over 3,000 of them, 15
//! over 20,000, and more from there.
//!
//! Unique names cost a get and a write more where a name comes, and a write where one goes; a
//! [`import`](Tree::import) gets the names of the trees that it adds in one round trip, and writes
//! n names. Where a rank would grow long, add 3 writes for each sibling that gets a new one: over
//! 100,000 inserts at random places below one parent that happens to none of them. The walk down
//! finds out in one step which of many siblings have children, so that leaves cost no range of
//! their own.
//!
//! # When not to use it
//!
//! * When subtrees are read more often than changed, and are large: [materialized
//!   paths](super::MaterializedPath) or [nested sets](super::NestedSets) read one in a single
//!   range.
//! * When values are large: each node is stored twice. Keep them in a
//!   [`Table`](keyloom_tables::Table) under the same id.
//!
//! # Work in steps
//!
//! [`delete_in_steps`](Tree::delete_in_steps) cuts the subtree off in its first transaction, so
//! that no walk comes to it, and then deletes it from the top in transactions of up to 500 nodes. A
//! node further down is still found by its own id until the deletion has reached it: its path ends
//! with [`TreeError::Broken`](super::TreeError::Broken), it can be moved out, and what is put below
//! it is deleted with it. A move is five key writes, and needs no steps.
//!
//! # Source
//!
//! The adjacency list of the catalogue of NoSQL data-modeling techniques (Katsov, 2012), and of SQL
//! since its beginnings. Ranks are fractional indexing (Greenspan, "Implementing Fractional
//! Indexing"), with windows relabelled as in order maintenance (Bender, Cole, Demaine,
//! Farach-Colton, Zito, 2002).

mod ancestors;
mod change;
mod check;
mod contract;
mod descendants;
mod link;
mod load;
mod place;
mod read;
mod repair;
mod room;
mod steps;

use std::fmt;
use std::marker::PhantomData;

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, Result, Subspace};

#[cfg(doc)]
use super::Tree;
use super::tree::NodeRecords;
use super::tree::NodeTable;
use super::{NodeId, TreeModel};
use link::Link;

/// A tree whose nodes name their parents.
///
/// ```
/// use keyloom::{Memory, Order, Store, Subspace};
/// use keyloom_trees::{AdjacencyList, Nested, InsertAt, Tree};
///
/// let tree = AdjacencyList::<u32>::new(&Subspace::new("goods"));
/// let store = Memory::new();
/// store.transact(|txn| {
///     tree.insert(txn, 1, "fruit", &0, InsertAt::last(None))?;
///     tree.insert(txn, 2, "pears", &40, InsertAt::last(1))?;
///     tree.insert(txn, 3, "apples", &70, InsertAt::Before(2))?;
///     tree.insert(txn, 4, "boskop", &30, InsertAt::first(3))
/// })?;
///
/// let snapshot = store.snapshot()?;
/// let fruit: Vec<String> = tree
///     .children(&snapshot, 1, Order::Ascending)?
///     .map(|node| Ok(node?.name()?.to_owned()))
///     .collect::<keyloom::Result<_>>()?;
/// assert_eq!(fruit, ["apples", "pears"]);
/// let above: Vec<u64> = tree.ancestors(&snapshot, 4)?.iter().map(|node| node.id()).collect();
/// assert_eq!(above, [3, 1]);
/// # drop(snapshot);
///
/// // Apples with all below them become a root: five key writes, whatever hangs from them.
/// store.transact(|txn| tree.move_to(txn, 3, InsertAt::first(None)))?;
/// let roots = tree.export(&store.snapshot()?, None)?;
/// assert_eq!(roots[0], Nested::new(3, "apples", 70).with(Nested::new(4, "boskop", 30)));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct AdjacencyList<V, C = Postcard> {
    space: Subspace,
    nodes: Subspace,
    children: Subspace,
    counts: Subspace,
    names: Subspace,
    marks: Subspace,
    unique_names: bool,
    records: NodeRecords<V, C>,
    types: PhantomData<fn() -> (V, C)>,
}

impl<V> AdjacencyList<V> {
    /// A tree in this subspace, where nothing else may be. Values are stored as [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<V, C> AdjacencyList<V, C> {
    /// A tree in this subspace, its values stored by the codec `C`.
    ///
    /// ```
    /// use keyloom::{Subspace, value::Json};
    /// use keyloom_trees::AdjacencyList;
    /// let tree = AdjacencyList::<Vec<String>, Json>::with_codec(&Subspace::new("tree"));
    /// ```
    pub fn with_codec(space: &Subspace) -> Self {
        Self {
            space: space.clone(),
            nodes: space.child("node"),
            children: space.child("child"),
            counts: space.child("count"),
            names: space.child("name"),
            marks: space.child("delete"),
            unique_names: false,
            records: NodeRecords::NONE,
            types: PhantomData,
        }
    }

    /// The same tree with names that are unique among siblings: what would give two of them one
    /// name is refused with [`TreeError::NameTaken`](super::TreeError::NameTaken), and a child is
    /// found by its name in one step.
    ///
    /// To be decided before the first insert. For nodes that are there already,
    /// [`repair`](Tree::repair) writes the names.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{AdjacencyList, InsertAt, Tree};
    /// let files = AdjacencyList::<()>::new(&Subspace::new("files")).with_unique_names();
    /// let store = Memory::new();
    /// store.transact(|txn| files.insert(txn, 1, "etc", &(), InsertAt::last(None)))?;
    /// assert!(store.transact(|txn| files.insert(txn, 2, "etc", &(), InsertAt::last(None))).is_err());
    /// assert_eq!(files.child_named(&store.snapshot()?, None, "etc")?, Some(1));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn with_unique_names(mut self) -> Self {
        self.unique_names = true;
        self.records.refuse_option("with_unique_names");
        self
    }

    fn node_key(&self, id: NodeId) -> KeyBuf {
        self.nodes.pack(&id)
    }

    fn child_key(&self, link: &Link, id: NodeId) -> KeyBuf {
        self.children.pack(&(link.parent, link.rank.as_slice(), id))
    }

    fn count_key(&self, parent: Option<NodeId>) -> KeyBuf {
        self.counts.pack(&(parent,))
    }

    fn name_key(&self, parent: Option<NodeId>, name: &str) -> KeyBuf {
        self.names.pack(&(parent, name))
    }
}

impl<V: 'static, C: Codec<V>> TreeModel for AdjacencyList<V, C> {
    fn definition(&self) -> String {
        let names = if self.unique_names { " of unique names" } else { "" };
        format!("adjacency list{names}")
    }

    fn with_nodes(self, nodes: NodeTable<V, C>) -> Self {
        Self { records: NodeRecords::new(nodes), ..self }
    }

    fn nodes(&self) -> Result<&NodeTable<V, C>> {
        self.records.table(&self.space)
    }
}

impl<V, C> Clone for AdjacencyList<V, C> {
    fn clone(&self) -> Self {
        let Self { space, nodes, children, counts, names, marks, unique_names, records, types } =
            self;
        Self {
            space: space.clone(),
            nodes: nodes.clone(),
            children: children.clone(),
            counts: counts.clone(),
            names: names.clone(),
            marks: marks.clone(),
            unique_names: *unique_names,
            records: records.clone(),
            types: *types,
        }
    }
}

impl<V, C> fmt::Debug for AdjacencyList<V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdjacencyList")
            .field("space", &self.space)
            .field("unique_names", &self.unique_names)
            .finish_non_exhaustive()
    }
}
