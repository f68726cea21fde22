//! Adjacency list: a tree whose nodes refer to their parents, for trees in which subtrees move
//! often.
//!
//! Each node stores its parent, and the children of each parent are adjacent keys in sibling order.
//! So a move takes a few key writes, whatever the size of the subtree, and the children of a node
//! are one range. Ancestors and descendants are found step by step.
//!
//! # Key layout
//!
//! | key | value |
//! |---|---|
//! | `("node", id)` | format, parent, rank among the siblings; the node: its name and value |
//! | `("child", parent, rank, id)` | a second copy of the node, so that the children of a parent are read in one range |
//! | `("count", parent)` | a counter: the number of children |
//! | `("name", parent, name)` | with [unique names](AdjacencyList::with_unique_names): the id of the child |
//! | `("value", id)` | only with [derived data](super::tree::records): another copy of the name and the value |
//! | `("delete", id)` | only while a subtree is deleted in steps: marks a node of the subtree whose record is a tombstone |
//!
//! The parent of a root is null. The count of children has its own key, which is incremented
//! without a read. If the count were in the record of the parent, each insert would read and write
//! that record, and would conflict with a rename of the parent.
//!
//! On a store with atomic additions, such as [`Memory`](keyloom::Memory), inserts below one parent
//! conflict only if they go to the same place. All inserts at the end conflict, because each goes
//! after the last child. On PostgreSQL, etcd and fjall an addition reads the counter, so all
//! inserts and deletions below one parent conflict. On these stores each parent whose count changes
//! also costs one more round trip: two for a move between parents.
//!
//! A rank is a byte string between the ranks of the neighbours. Ranks at both ends are incremented
//! or decremented and stay short: 1,000,000 children appended one after the other, or each inserted
//! first, have ranks of up to 4 bytes. A rank between two neighbours may be longer than the ranks
//! of both. If a rank would grow past a multiple of 16 bytes, some siblings around it get new ranks
//! in the same transaction. The number of relabelled siblings starts at 32 and doubles until the
//! ranks are short, up to 1,024, and no more than half of a transaction of the store takes. More
//! siblings are relabelled only if ranks would exceed 100 bytes, which takes millions of inserts at
//! one place. If the store does not take them in one transaction, the insert is refused
//! ([`TreeError::NoRoom`](super::TreeError::NoRoom)), and [`make_room`](Tree::make_room) gives the
//! siblings short ranks in several.
//!
//! # Invariants
//!
//! 1. Each node has one child entry, with the parent and the rank of its record. The entry holds a
//!    copy of the node.
//! 2. The count of a parent is the number of its child entries. Without children it is 0 or absent.
//! 3. With unique names, each child has one name entry below its parent.
//! 4. The chain of parents of each node ends at a root.
//!
//! The records of nodes are authoritative. [`check`](Tree::check) compares all other keys with
//! these records, and finds missing parents and nodes that lie below themselves. The check keeps
//! the id, the parent and the rank of every node in memory.
//!
//! [`repair`](Tree::repair) derives the entries, the counts and the names again, and removes
//! entries, counts and names that belong to no record. A record that is lost, or does not decode,
//! is rewritten from the child entry, which holds the same data. If neither can be read, the node
//! becomes a [placeholder](Tree::repair) at the place in the key of its entry, or the last root. A
//! node whose parent is missing becomes the last root, and so does the node with the smallest id of
//! each cycle. With unique names, if two siblings have the same name, the id of the later sibling
//! is appended to its name. The check reports keys of other kinds; the repair leaves them alone.
//!
//! A walk down compares each inner node with its ancestors. If a child entry closes a cycle, the
//! walk fails with [`TreeError::Broken`](super::TreeError::Broken). [`repair`](Tree::repair)
//! removes the entry.
//!
//! Two concurrent moves that would put two nodes below each other conflict on every store. The
//! reason: a move reads the record of each ancestor of the new place, and writes the record of the
//! moved node.
//!
//! # Cost
//!
//! d: depth of the node. c: number of children. n: nodes of the subtree; i of them have children.
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
//! | [`delete_in_steps`](Tree::delete_in_steps) | 2 n + i | 3 i, n entries | 3 n + 3 i + 4 | about 5 for each of the i |
//! | [`delete_node`](Tree::delete_node) | 1 | 3 | 2 c + 5 | |
//! | [`import`](Tree::import) | n + 1 | 1 | 2 n + i, in the order of keys | 3; with unique names 4 |
//!
//! 100,000 inserts directly before one node cost 3.1 key writes each. The cost is the same if each
//! node is inserted directly after the previous one. The worst pattern alternates between both
//! sides of the last inserted node: 9 writes per insert over 3,000 inserts, 15 over 20,000, and
//! more over longer runs.
//!
//! Unique names cost one more get and write per added node, and one more write per removed node. An
//! [`import`](Tree::import) gets the names of the imported trees in one round trip, and writes n
//! names. If a rank would become long, add 3 writes for each sibling that gets a new rank;
//! [`make_room`](Tree::make_room) also reads a record and a range for each. This does not happen in
//! 100,000 inserts at random places below one parent. A walk down determines for many siblings at
//! once which of them have children, so a leaf costs no separate range.
//!
//! # When not to use it
//!
//! * When subtrees are large and read more often than changed: [materialized
//!   paths](super::MaterializedPath) or [nested sets](super::NestedSets) read a subtree in a single
//!   range.
//! * When values are large: each node is stored twice. Keep large values in a
//!   [`Table`](keyloom_tables::Table) under the same id.
//!
//! # Work in steps
//!
//! [`delete_in_steps`](Tree::delete_in_steps) detaches the subtree in its first transaction, so
//! that no walk from above reaches it. Then it deletes the subtree from the top, in transactions of
//! up to 500 nodes. Until the deletion reaches a node further down, the node can still be read by
//! its id, and moved out of the subtree. A walk from such a node to the root fails with
//! [`TreeError::Broken`](super::TreeError::Broken). Nodes inserted below such a node are deleted
//! with it. A move is five key writes and needs no steps.
//!
//! # Source
//!
//! The adjacency list of the catalogue of NoSQL data-modeling techniques (Katsov, 2012); the model
//! is also common in SQL. Ranks are fractional indexing (Greenspan, "Implementing Fractional
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
mod relabel;
mod relocate;
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

/// A tree whose nodes store their parents.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_trees::{AdjacencyList, NestedNode, InsertAt, Tree};
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
///     .children(&snapshot, 1)?
///     .map(|node| Ok(node?.name()?.to_owned()))
///     .collect::<keyloom::Result<_>>()?;
/// assert_eq!(fruit, ["apples", "pears"]);
/// let above: Vec<u64> = tree.ancestors(&snapshot, 4)?.iter().map(|node| node.id()).collect();
/// assert_eq!(above, [3, 1]);
/// # drop(snapshot);
///
/// // Apples and their descendants become a root: five key writes, whatever their number.
/// store.transact(|txn| tree.move_to(txn, 3, InsertAt::first(None)))?;
/// let roots = tree.export(&store.snapshot()?, None)?;
/// assert_eq!(roots[0], NestedNode::new(3, "apples", 70).with(NestedNode::new(4, "boskop", 30)));
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
    /// Creates a tree in this subspace, which must hold nothing else. Values are stored as
    /// [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<V, C> AdjacencyList<V, C> {
    /// Creates a tree in this subspace, with values stored by the codec `C`.
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

    /// Returns the same tree with names that are unique among siblings. A change that would give
    /// two siblings the same name is refused with
    /// [`TreeError::NameTaken`](super::TreeError::NameTaken), and a lookup of a child by its name
    /// takes one round trip.
    ///
    /// Set this option before the first insert. For existing nodes, [`repair`](Tree::repair) writes
    /// the name entries.
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
