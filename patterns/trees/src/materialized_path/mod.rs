//! Materialized path: a tree whose keys are the paths of its nodes.
//!
//! The key of a node is the path from the root to the node. So a node and its descendants are one
//! contiguous range in depth-first order, and a key alone contains all ancestors. The drawback is
//! that a move rewrites the whole subtree.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_trees::{MaterializedPath, NestedNode, InsertAt, Tree};
//!
//! let parts = MaterializedPath::<u32>::new(&Subspace::new("parts")); // the value: grams
//! let wheel = [NestedNode::new(2, "wheel", 900)
//!     .with(NestedNode::new(3, "spoke", 7))
//!     .with(NestedNode::new(4, "rim", 500))];
//! let store = Memory::new();
//! store.transact(|txn| {
//!     parts.insert(txn, 1, "bicycle", &11_000, InsertAt::last(None))?;
//!     parts.import(txn, 1, &wheel)?;
//!     parts.rename(txn, 1, "tricycle") // one write: the path is made of ids
//! })?;
//! let snapshot = store.snapshot()?;
//! let mut names = Vec::new();
//! for visit in parts.descendants(&snapshot, 1, ..)? {
//!     let visit = visit?;
//!     names.push((visit.depth, visit.node.name()?.to_owned()));
//! }
//! let names: Vec<_> = names.iter().map(|(depth, name)| (*depth, name.as_str())).collect();
//! assert_eq!(names, [(0, "tricycle"), (1, "wheel"), (2, "spoke"), (2, "rim")]);
//! assert!(parts.is_ancestor(&snapshot, 1, 3)?);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! Paths consist of *ids* or of *names* ([`of_names`](MaterializedPath::of_names)). Ids never
//! change, so a rename is one write, and siblings can be in any order. Keys of names read like file
//! paths, and one `get` finds a node by its path. But names are unique among siblings, siblings are
//! ordered by name, and a rename rewrites the subtree.
//!
//! So paths of names cannot replace another model without changes to the program. Every
//! [`InsertAt`] except [`Sorted`](InsertAt::Sorted) is refused
//! ([`TreeError::OrderedByName`](super::TreeError::OrderedByName)). [`import`](Tree::import) and
//! [`copy_from`](Tree::copy_from) refuse two siblings with the same name
//! ([`TreeError::NameTaken`](super::TreeError::NameTaken)).
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | `("path", rank, id, rank, id, …)` | paths of ids: the node (format, name, value) |
//! | `("path", name, name, …)` | paths of names: the id in 8 bytes, big-endian; the node |
//! | `("node", id)` | the packed path, without the key prefix |
//! | `("move")` | only while a subtree is moved or deleted in steps: a format byte, then packed: the root of the subtree, whether the old place is being cleared, the old path, the new path (null for a deletion) |
//!
//! A segment of a path is one or two elements of the [tuple](keyloom::key), so it is escaped and
//! terminated. Therefore the order is depth-first, and no segment is mistaken for a prefix of
//! another: the nodes below `a` precede `a-b` and `a.b`. If names were joined by `/` or `.` into
//! one string, the nodes below `a` would sort after or among such siblings.
//!
//! Ranks are numbers with a fraction, so that another rank fits between any two. Ranks are short:
//! one or two bytes if nodes are imported, added at an end, or inserted at scattered places. Many
//! inserts at one place make the ranks there longer. Before a rank exceeds 16 bytes, the siblings
//! around it get new ranks in the same transaction, which rewrites their subtrees. If this would
//! rewrite more than 1,000 nodes, or more than half of what the store accepts, the ranks keep
//! growing instead, up to 64 bytes. Then an insert is refused
//! ([`TreeError::NoRoom`](super::TreeError::NoRoom)), and [`make_room`](Tree::make_room) gives the
//! siblings short ranks in several transactions.
//!
//! # Invariants
//!
//! * Each node except the roots has a parent: the node whose path lacks only the last segment.
//! * `("node", id)` contains the path of the record with this id. Each record has such an entry.
//! * In a tree of names, the last segment of a path is the name in its record.
//! * During a move in steps, readers see either the old place or the new place, never both. A
//!   single write switches from the old to the new place.
//!
//! # Cost
//!
//! n: nodes in the subtree. d: depth. Round trips are those of a networked store. Each operation
//! also reads the record of work in steps together with its first read: this is one more get, but
//! no additional round trip.
//!
//! | operation | reads | keys written | round trips |
//! |---|---|---|---|
//! | `get` | 3 gets | | 2 |
//! | `parent`, `depth`, `is_ancestor`, lowest common ancestor | 2 or 3 gets (of names: 1 more if an id is returned) | | 1 (2) |
//! | `ancestors` | 2 + d gets | | 2 |
//! | `descendants` without a greatest depth | 2 gets, one range of n keys | | 2 |
//! | `descendant_count` | 2 gets, a count of n keys | | 2 |
//! | `children`, `sibling`, `descendants` to a depth | 2 gets; the walk skips deeper subtrees by reading past them (up to 16 keys) or by a new range, whichever costs less: up to two ranges and a few keys per child | | 1 and those of the ranges |
//! | `child_named`, `node_at` of names | 3, 2 gets | | 2 |
//! | `matching` of names | 1 get, 1 range of the matches, and 1 more for a long gap | | 2, and 1 for each further range |
//! | `insert` | 3 gets, the neighbours: 1 or 2 ranges of one key; [`At`](InsertAt::At) and [`Sorted`](InsertAt::Sorted) walk over the children. Of names: 4 gets | 2, and relabelled nodes | 2 or 3, and the commit; more if ranks are relabelled |
//! | `set_value`, `rename` by id | 3 gets | 1 | 2, and the commit |
//! | `move_to`, `rename` by name | as `insert`, the subtree | 1 + 2 n | as `insert`, 1 more |
//! | `delete_subtree` | 2 gets, the subtree | 1 + n | 2, and the commit |
//! | `delete_node` | the children, one by one, and the subtree | 2 n | 2 per child and more |
//! | `import` | 2 + n gets; of names 1 more for each imported root | 2 n | 2, and the commit |
//! | in steps | the subtree twice | 4 n, and 4 | 2 to 3 and the commit, per 1,000 nodes |
//! | [`make_room`](Tree::make_room) by ids | the siblings with long ranks, with their subtrees | for each 1 range deletion and 2 n | 4 for each sibling, and the commit per 100 |
//!
//! A deleted range counts as one key. Relabelling adds a range deletion for each sibling that gets
//! a new rank, and 2 keys for each node of its subtree, including the sibling itself: up to 1,000
//! nodes in one insert. Reading such a sibling takes three ranges or more. PostgreSQL waits for
//! each deleted range except the first of a transaction. Over many inserts this cost is small. In
//! the worst case (1,500 nodes, each inserted beside the previous one), the cost is a few keys per
//! insert.
//!
//! # Work in steps
//!
//! [`move_in_steps`](Tree::move_in_steps) copies a subtree to its destination in transactions of up
//! to 1,000 nodes, while readers still see the subtree at its old place. Then one write makes the
//! new place visible, and the old place is cleared. If the program dies, the record `("move")`
//! remains, and [`resume`](Tree::resume) continues from this record.
//!
//! Until the work ends, changes in the subtree, at both places, are refused
//! ([`TreeError::InSteps`](super::TreeError::InSteps)). Moves and deletions of its ancestors, at
//! both places, are refused too, and in a tree of names their renames. Setting the value of an
//! ancestor is accepted. The rest of the tree can be changed. Only one subtree can be moved or
//! deleted in steps at a time.
//!
//! # When not to use it
//!
//! * Large subtrees move often: the [adjacency list](super::AdjacencyList) moves them with a few
//!   writes.
//! * Children with large subtrees are listed often: a listing costs a range per child.
//! * The tree is deep. A key has at most 511 bytes. This is enough for about eighty levels of ids
//!   below 65,536, or forty levels of 64-bit ids (fewer if ranks are long), or fifteen levels of
//!   names of 30 bytes. A longer path is refused
//!   ([`TreeError::PathTooLong`](super::TreeError::PathTooLong)) before anything is written.
//!
//! # Check and repair
//!
//! The records at the paths are authoritative; `("node", id)` is derived from them.
//! [`repair`](Tree::repair) works in this order:
//!
//! * It finishes work in steps, or deletes the record of that work if the record cannot be read.
//! * A record that cannot be read becomes a [placeholder](Tree::repair) at its path, and keeps its
//!   children. In a tree of names, a record without a readable id gets the id whose entry contains
//!   its path, or a new id.
//! * Nodes whose parent does not exist become roots, with their descendants. In a tree of names,
//!   the id is appended to the name if another root has that name.
//! * Missing or wrong id entries are written, and dangling entries are removed.
//!
//! If two records have the same id, the record that the id maps to keeps the id, and the other
//! record gets a new id. If the other record is a copy, delete it. Foreign keys are left alone.
//!
//! # Source
//!
//! Joe Celko, *Trees and Hierarchies in SQL* (path enumeration); "materialized paths" in the
//! catalogue of Ilya Katsov, *NoSQL Data Modeling Techniques*, and in MongoDB's manual. Ranks
//! between neighbours: David Greenspan, *Implementing Fractional Indexing*.

mod change;
mod check;
mod in_steps;
mod layout;
mod load;
mod matching;
mod path;
mod place;
mod read;
mod relabel;
mod repair;
mod steps;
mod walk;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, RangeBounds};

use keyloom::value::{Codec, Postcard};
use keyloom::{Order, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::{InOrder, Inconsistency, Progress, RepairOptions, get_many};

use super::tree::{
    NodeOf, NodeRecords, NodeTable, VisitOf, first_named, follow, not_below, stoppable,
};
use super::{InsertAt, NestedNode, NodeId, OnDelete, Tree, TreeModel, TreeNode};
use crate::tree::in_stages;
use layout::Layout;
use path::{Path, Segments, by_name, is_below, is_within};
use steps::Steps;
use walk::{BoundedWalk, Descendants, Origin};

/// A tree whose keys are the paths of its nodes; see the [module](self).
///
/// A value is cheap to clone. Two values with the same subspace must agree on the kind of paths:
/// reading a tree of ids as a tree of names fails at the first key.
pub struct MaterializedPath<V, C = Postcard> {
    layout: Layout,
    records: NodeRecords<V, C>,
    types: PhantomData<fn() -> (V, C)>,
}

impl<V: 'static, C: Codec<V>> TreeModel for MaterializedPath<V, C> {
    fn definition(&self) -> String {
        let segments = if self.layout.names() { "names" } else { "ids" };
        format!("materialized paths of {segments}")
    }

    fn with_nodes(self, nodes: NodeTable<V, C>) -> Self {
        Self { records: NodeRecords::new(nodes), ..self }
    }

    fn nodes(&self) -> Result<&NodeTable<V, C>> {
        self.records.table(&self.layout.space)
    }
}

impl<V> MaterializedPath<V> {
    /// Creates a tree in `space` with paths of ids. Values are stored by [`Postcard`].
    ///
    /// ```
    /// use keyloom::Subspace;
    /// use keyloom_trees::MaterializedPath;
    /// let parts = MaterializedPath::<u32>::new(&Subspace::new("parts"));
    /// ```
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<V, C> MaterializedPath<V, C> {
    /// Like [`new`](MaterializedPath::new), with values stored by another codec.
    ///
    /// ```
    /// use keyloom::{Subspace, value::Raw};
    /// use keyloom_trees::MaterializedPath;
    /// let parts = MaterializedPath::<Vec<u8>, Raw>::with_codec(&Subspace::new("parts"));
    /// ```
    pub fn with_codec(space: &Subspace) -> Self {
        Self { layout: Layout::new(space), records: NodeRecords::NONE, types: PhantomData }
    }

    /// Returns the same tree with paths of names: names are unique among siblings, and siblings are
    /// ordered by name.
    ///
    /// Such a tree accepts only the place [`InsertAt::Sorted`], and refuses two siblings with the
    /// same name, including in an [`import`](Tree::import) or [`copy_from`](Tree::copy_from). So a
    /// program written for another model, or for paths of ids, may have to change.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{MaterializedPath, NestedNode, InsertAt, Tree};
    /// // The value of a node is its size in bytes.
    /// let files = MaterializedPath::<u64>::new(&Subspace::new("files")).of_names();
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     files.import(
    ///         txn,
    ///         None,
    ///         &[NestedNode::new(1, "src", 0).with(NestedNode::new(2, "lib.rs", 812))],
    ///     )?;
    ///     files.insert(txn, 3, "main.rs", &97, InsertAt::sorted(1))
    /// })?;
    /// assert_eq!(files.node_at(&store.snapshot()?, ["src", "main.rs"])?, Some(3));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn of_names(mut self) -> Self {
        self.layout.segments = Segments::Names;
        self.records.refuse_option("of_names");
        self
    }
}

impl<V, C> Clone for MaterializedPath<V, C> {
    fn clone(&self) -> Self {
        let (layout, records) = (self.layout.clone(), self.records.clone());
        Self { layout, records, types: PhantomData }
    }
}

impl<V, C> fmt::Debug for MaterializedPath<V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaterializedPath")
            .field("space", &self.layout.space)
            .field("segments", &self.layout.segments)
            .finish()
    }
}

impl<V: 'static, C: Codec<V>> Tree for MaterializedPath<V, C> {
    type Value = V;
    type Codec = C;
    type Bytes<'r, R: Reader + 'r> = R::Bytes<'r>;

    fn space(&self) -> &Subspace {
        &self.layout.space
    }

    fn get<'r, R: Reader>(&self, reader: &'r R, id: NodeId) -> Result<Option<NodeOf<'r, Self, R>>> {
        let Some(path) = self.layout.locate(reader, &[id])?.path(0) else { return Ok(None) };
        let record = reader.get(&self.layout.key(&path))?;
        Ok(record.map(|record| TreeNode::new(id, record, self.layout.header())))
    }

    fn expect(&self, reader: &impl Reader, id: NodeId) -> Result<()> {
        self.layout.expect(reader, id).map(drop)
    }

    fn parent(&self, reader: &impl Reader, id: NodeId) -> Result<Option<NodeId>> {
        let (path, _) = self.layout.expect(reader, id)?;
        self.parent_id(reader, &path)
    }

    fn children<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>> {
        let InOrder { of: parent, order } = parent.into();
        let (path, steps) = self.layout.expect_parent(reader, parent)?;
        let origin = Origin::new(&self.layout, (parent, &path), &(1..=1));
        let range = origin.range();
        let hidden = steps.as_ref().and_then(Steps::hidden).map(|path| &path[..]);
        let mut walk = BoundedWalk::open(reader, origin, range, order, hidden)?;
        Ok(std::iter::from_fn(move || Some(walk.next()?.map(|visit| visit.node))))
    }

    fn children_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
        last: NodeId,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>> {
        let InOrder { of: parent, order } = parent.into();
        let (path, steps) = self.layout.expect(reader, last)?;
        if self.parent_id(reader, &path)? != parent {
            return Err(not_below(last, parent));
        }
        let mut walk = self.siblings_after(reader, &path, steps.as_ref(), order)?;
        Ok(std::iter::from_fn(move || Some(walk.next()?.map(|visit| visit.node))))
    }

    fn descendants<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>> {
        let from = from.into();
        let (path, steps) = self.layout.expect_parent(reader, from)?;
        let origin = Origin::new(&self.layout, (from, &path), &depths);
        let hidden = steps.as_ref().and_then(Steps::hidden).map(|path| &path[..]);
        Descendants::<R, V, C>::open(reader, origin, None, hidden)
    }

    fn descendants_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        last: NodeId,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>> {
        let from = from.into();
        let located = self.layout.locate(reader, &[last, from.unwrap_or(last)])?;
        let path = self.layout.there(&located, 0, last)?;
        let start = match from {
            None => Path::new(),
            Some(_) => located
                .path(1)
                .filter(|start| is_within(&path, start))
                .ok_or_else(|| not_below(last, from))?,
        };
        let origin = Origin::new(&self.layout, (from, &start), &depths);
        let hidden = located.steps.as_ref().and_then(Steps::hidden).map(|path| &path[..]);
        let after = self.layout.key(&path);
        Descendants::<R, V, C>::open(reader, origin, Some(&after), hidden)
    }

    fn ancestors<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Vec<NodeOf<'r, Self, R>>> {
        let layout = &self.layout;
        let (path, _) = layout.expect(reader, id)?;
        let key = layout.key(&path);
        let mut keys = layout.segments.ancestors_from(&key, key.len() - path.len());
        keys.reverse();
        let mut ancestors = Vec::with_capacity(keys.len());
        for (key, record) in keys.iter().zip(get_many(reader, &keys)?) {
            let record = record.ok_or_else(|| layout::foreign(key))?;
            let id = layout.id_at(key, &record)?;
            ancestors.push(TreeNode::new(id, record, layout.header()));
        }
        Ok(ancestors)
    }

    fn sibling<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
        order: Order,
    ) -> Result<Option<NodeOf<'r, Self, R>>> {
        let (path, steps) = self.layout.expect(reader, id)?;
        let mut walk = self.siblings_after(reader, &path, steps.as_ref(), order)?;
        Ok(walk.next().transpose()?.map(|visit| visit.node))
    }

    fn descendant_count(
        &self,
        reader: &impl Reader,
        from: impl Into<Option<NodeId>>,
    ) -> Result<u64> {
        let (path, steps) = self.layout.expect_parent(reader, from.into())?;
        let all = reader.count(self.layout.below(&path))?;
        match steps.as_ref().and_then(Steps::hidden).filter(|hidden| is_below(hidden, &path)) {
            Some(hidden) => Ok(all - reader.count(self.layout.subtree(hidden))?),
            None => Ok(all),
        }
    }

    fn depth(&self, reader: &impl Reader, id: NodeId) -> Result<u32> {
        let (path, _) = self.layout.expect(reader, id)?;
        Ok(self.layout.segments.ancestors(&path).len() as u32)
    }

    fn is_ancestor(&self, reader: &impl Reader, ancestor: NodeId, node: NodeId) -> Result<bool> {
        let [ancestor, node] = self.two_paths(reader, ancestor, node)?;
        Ok(is_below(&node, &ancestor))
    }

    fn lowest_common_ancestor(
        &self,
        reader: &impl Reader,
        one: NodeId,
        other: NodeId,
    ) -> Result<Option<NodeId>> {
        let [one, other] = self.two_paths(reader, one, other)?;
        let segments = self.layout.segments;
        let depth = segments.measure(&one).map_or(0, |measured| measured.depth);
        let common = (1..=depth)
            .take_while(|depth| segments.cut(&one, *depth) == segments.cut(&other, *depth));
        match common.last().and_then(|depth| segments.cut(&one, depth)) {
            Some(path) => self.id_of(reader, path).map(Some),
            None => Ok(None),
        }
    }

    fn child_named(
        &self,
        reader: &impl Reader,
        parent: impl Into<Option<NodeId>>,
        name: &str,
    ) -> Result<Option<NodeId>> {
        let parent = parent.into();
        if self.layout.names() {
            let (path, steps) = self.layout.expect_parent(reader, parent)?;
            return self.at_path(reader, &by_name(&path, name), steps.as_ref());
        }
        first_named(self.children(reader, parent)?, name)
    }

    fn node_at<'n>(
        &self,
        reader: &impl Reader,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Option<NodeId>> {
        if self.layout.names() {
            let path = names.into_iter().fold(Path::new(), |path, name| by_name(&path, name));
            let steps = self.layout.locate(reader, &[])?.steps;
            return self.at_path(reader, &path, steps.as_ref());
        }
        follow(self, reader, names)
    }

    fn insert(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        value: &V,
        place: InsertAt,
    ) -> Result<()> {
        txn.guarded(|txn| self.insert_at(txn, (id, name, value), place))
    }

    fn rename(&self, txn: &mut impl Writer, id: NodeId, name: &str) -> Result<()> {
        txn.guarded(|txn| self.rename_to(txn, id, name))
    }

    fn set_value(&self, txn: &mut impl Writer, id: NodeId, value: &V) -> Result<()> {
        txn.guarded(|txn| self.put_value(txn, id, value))
    }

    fn move_to(&self, txn: &mut impl Writer, id: NodeId, place: InsertAt) -> Result<()> {
        txn.guarded(|txn| self.move_at_once(txn, id, None, place))
    }

    fn move_as(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        place: InsertAt,
    ) -> Result<()> {
        txn.guarded(|txn| self.move_at_once(txn, id, Some(name), place))
    }

    fn delete_subtree(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
        txn.guarded(|txn| self.delete_at_once(txn, id))
    }

    fn delete_node(&self, txn: &mut impl Writer, id: NodeId, orphans: OnDelete) -> Result<()> {
        txn.guarded(|txn| self.delete_alone(txn, id, orphans))
    }

    fn import(
        &self,
        txn: &mut impl Writer,
        parent: impl Into<Option<NodeId>>,
        trees: &[NestedNode<V>],
    ) -> Result<()> {
        txn.guarded(|txn| self.load_below(txn, parent.into(), trees))
    }

    fn move_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        place: InsertAt,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.move_step_by_step(store, id, place, progress)
    }

    fn delete_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.delete_step_by_step(store, id, progress)
    }

    fn make_room<S: Store>(
        &self,
        store: &S,
        name: &str,
        place: InsertAt,
        nodes: u64,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.make_room_at(store, (name, place, nodes), progress)
    }

    fn resume<S: Store>(
        &self,
        store: &S,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.resume(store, Progress::default(), progress)
    }

    fn check_each(
        &self,
        reader: &impl Reader,
        found: impl FnMut(Inconsistency) -> ControlFlow<()>,
    ) -> Result<u64> {
        let mut found = stoppable(found);
        let keys = self.check_all(reader, self.records.outside(&mut found))?;
        Ok(keys + self.records.check(self, &self.layout.nodes, reader, found)?)
    }

    fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_stages(options, progress, |stages| {
            self.repair_all(store, stages)?;
            self.records.repair(self, &self.layout.nodes, store, stages)
        })
    }
}
