//! The nodes of a tree as records of a table, from which indexes and other data are derived.
//!
//! A tree can also keep the name and the value of each node in a [`Table`] of [`NodeRecord`]s. It
//! does so if derived data is attached to the tree, or if a [schema](crate::DeclareTree::tree)
//! opens it. Every change that adds, renames or deletes a node, or sets its value, writes the table
//! in the same transaction. A move changes neither name nor value and does not write the table.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace of the table, id | the name and the value of the node, in the same bytes as the tree itself stores |
//!
//! Without a schema the table is at `("value")` in the subspace of the tree.
//!
//! # Invariants
//!
//! The table has a record for each node of the tree, in the same bytes, and no other record.
//! [`check`](super::Tree::check) compares the table with the tree, and
//! [`repair`](super::Tree::repair) rewrites the table from the tree. A node whose value cannot be
//! read keeps its previous record. A node being deleted in steps keeps its record until the step
//! that frees its id.
//!
//! # Cost
//!
//! Each node that is added, renamed, deleted or given a value costs 1 get and 1 key written, plus
//! the updates of the derived data. The gets of one call take one round trip. In a schema, each
//! transaction that changes the tree also reads the schema entry of the table, even for a move. A
//! check makes 3 gets or more for each node, in a pass over the nodes, and 1 get for each record,
//! in a pass over the records; it makes them one after the other. A tree without the table has no
//! additional cost.
//!
//! Derived data may refuse a change, for example a name that a unique index already has. The error
//! is returned after the tree has written its own keys, so the transaction [does not
//! commit](keyloom::Writer#a-failed-write).
//!
//! # When not to use it
//!
//! A [`TreeDocument`](super::super::TreeDocument) has no such table: its changes rewrite pieces of
//! many nodes, and finding a node requires reading the document.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use keyloom::value::shape::Shape;
use keyloom::value::{Codec, Postcard};
use keyloom::{Error, KeyBuf, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::derived::{Attach, is_undecodable, unless_undecodable};
use keyloom_kit::{Inconsistency, Rule, in_batches, page_behind};
use keyloom_tables::table::Table;

use super::Stages;
use super::node::NodeId;
use super::node::stored_name;
use super::{Findings, NestedNode, Tree, TreeNode, encode_node};

/// The number of ids that a check reads in one page.
// A smaller page adds round trips; a larger page takes more memory.
const BATCH: usize = 500;

/// The name and the value of a node: the input of an index on nodes.
pub struct NodeRecord<V> {
    /// Exactly the bytes that the tree stores, so that a check can compare both copies.
    stored: Vec<u8>,
    name: String,
    value: V,
}

impl<V> NodeRecord<V> {
    /// The name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of the node.
    pub fn value(&self) -> &V {
        &self.value
    }
}

impl<V: fmt::Debug> fmt::Debug for NodeRecord<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, .. } = self;
        f.debug_struct("NodeRecord").field("name", name).field("value", value).finish()
    }
}

/// The codec of a [`NodeRecord`]; `C` is the codec of its value.
pub struct NodeCodec<C>(PhantomData<fn() -> C>);

impl<C> fmt::Debug for NodeCodec<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeCodec").finish()
    }
}

impl<V, C: Codec<V>> Codec<NodeRecord<V>> for NodeCodec<C> {
    fn encode(node: &NodeRecord<V>, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&node.stored);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<NodeRecord<V>> {
        let node = TreeNode::<_, V, C>::new(0, bytes, 0);
        let decoded = stored_name(bytes).and_then(|name| Ok((name.to_owned(), node.value()?)));
        let (name, value) = decoded.map_err(damaged)?;
        Ok(NodeRecord { stored: bytes.to_vec(), name, value })
    }

    fn shape() -> Result<Shape> {
        C::shape()
    }
}

/// In this table, a newer format byte counts as damage: a repair can delete the record and write it
/// again.
fn damaged(error: Error) -> Error {
    match error {
        error @ Error::NewerFormat { .. } => {
            let source = error.to_string().into();
            Error::Value { codec: "a node of a tree", action: "decode", source }
        }
        error => error,
    }
}

/// The nodes of a tree as records, keyed by id.
pub(crate) type NodeTable<V, C = Postcard> = Table<NodeId, NodeRecord<V>, NodeCodec<C>>;

/// A model of a tree that supports data derived from its nodes.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_trees::{NestedSets, NodeRecord, InsertAt, Tree, TreeModel};
/// use keyloom_tables::{Index, entry};
/// let by_name =
///     Index::new(&Subspace::new("by_name"), |_, node: &NodeRecord<u32>| entry(node.name()));
/// let dirs = NestedSets::<u32>::new(&Subspace::new("dirs")).with(&by_name);
/// let store = Memory::new();
/// store.transact(|txn| {
///     dirs.insert(txn, 1, "etc", &0, InsertAt::last(None))?;
///     dirs.insert(txn, 2, "hosts", &220, InsertAt::last(1))?;
///     dirs.rename(txn, 2, "hosts.old")
/// })?;
/// let snapshot = store.snapshot()?;
/// assert_eq!(by_name.count(&snapshot, "hosts")?, 0);
/// assert_eq!(by_name.count(&snapshot, "hosts.old")?, 1);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub trait TreeModel: Tree {
    /// The name of the model and its options: everything that determines the keys, except for the
    /// value type and its codec. A [schema](crate::DeclareTree::tree) stores this text.
    fn definition(&self) -> String;

    /// Returns the same tree, extended to keep its nodes in this table too. The table must be
    /// outside the subspace of any other data, and only this tree may write it.
    ///
    /// Call [`repair`](Tree::repair) to write the records of existing nodes.
    #[must_use]
    fn with_nodes(self, nodes: NodeTable<Self::Value, Self::Codec>) -> Self;

    /// The table of the nodes. Only the tree may write it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the tree keeps no table. A tree has a table only if it was
    /// created by a [schema](crate::DeclareTree::tree), by [`with`](TreeModel::with) or by
    /// [`with_nodes`](TreeModel::with_nodes).
    fn nodes(&self) -> Result<&NodeTable<Self::Value, Self::Codec>>;

    /// Returns the same tree with `derived` attached. Changes made through the returned tree
    /// maintain `derived`, as with [`Table::with`]. For existing nodes, call
    /// [`repair`](Tree::repair).
    ///
    /// The tree refuses every change that would write `derived` in three cases: the subspace of
    /// `derived` is inside the subspace of the tree, `derived` overlaps other attached data, or a
    /// [schema](keyloom_tables::Schema) owns the tree.
    #[must_use]
    fn with<const HOW: u8>(
        self,
        derived: &impl Attach<NodeId, NodeRecord<Self::Value>, HOW>,
    ) -> Self {
        let nodes = match self.nodes() {
            Ok(nodes) => nodes.clone(),
            Err(_) => Table::with_codec(&self.space().child("value")),
        };
        let nodes = nodes.with_outside(derived, self.space());
        self.with_nodes(nodes)
    }
}

/// The table of the nodes of a tree, if the tree keeps one.
pub(crate) struct NodeRecords<V, C>(Option<NodeTable<V, C>>);

impl<V, C> Clone for NodeRecords<V, C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<V, C> NodeRecords<V, C> {
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn new(table: NodeTable<V, C>) -> Self {
        Self(Some(table))
    }

    /// Refuses writes after an option was set on a tree of a schema: the schema has already stored
    /// the options.
    pub(crate) fn refuse_option(&mut self, option: &str) {
        self.0 = self.0.take().map(|table| match table.is_owned() {
            false => table,
            true => table.refusing(Error::InvalidArgument {
                what: "an option of a tree",
                value: option.into(),
                why: "the schema stored the options before; set it in the function that `schema.tree` takes",
            }),
        });
    }

    pub(crate) fn table(&self, tree: &Subspace) -> Result<&NodeTable<V, C>> {
        self.0.as_ref().ok_or_else(|| Error::InvalidArgument {
            what: "the table of the nodes",
            value: tree.named(),
            why: "the tree keeps none; open it with `schema.tree`, or attach derived data with `with`",
        })
    }
}

impl<V, C: Codec<V>> NodeRecords<V, C> {
    /// Checks a change that writes no record: fails if the schema refuses writes, for example after
    /// the tree was dropped.
    pub(crate) fn expect_writable(&self, txn: &mut impl Writer) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |table| table.expect_writable(txn))
    }

    /// Sets the record of a node to `stored`, which [`encode_node`] wrote. A node whose value is
    /// lost has no record.
    pub(crate) fn put(&self, txn: &mut impl Writer, id: NodeId, stored: &[u8]) -> Result<()> {
        let Some(table) = &self.0 else { return Ok(()) };
        match unless_undecodable(NodeCodec::<C>::decode(stored))? {
            Some(node) => table.put(txn, &id, &node),
            None => table.delete(txn, &id).map(drop),
        }
    }

    /// Sets the records of whole trees.
    pub(crate) fn put_all(&self, txn: &mut impl Writer, trees: &[NestedNode<V>]) -> Result<()> {
        let Some(table) = &self.0 else { return Ok(()) };
        let nodes = trees.iter().flat_map(|tree| tree.preorder().map(|(_, node)| node));
        let record = |node: &NestedNode<V>| {
            let mut stored = Vec::new();
            encode_node::<V, C>(&node.name, &node.value, &mut stored)?;
            Ok((node.id, NodeCodec::<C>::decode(&stored)?))
        };
        table.put_many(txn, nodes.map(record).collect::<Result<Vec<_>>>()?)
    }

    /// Deletes the records of deleted nodes.
    pub(crate) fn delete(&self, txn: &mut impl Writer, ids: &[NodeId]) -> Result<()> {
        let Some(table) = self.0.as_ref().filter(|_| !ids.is_empty()) else { return Ok(()) };
        table.delete_many(txn, ids).map(drop)
    }

    /// Filters the faults in keys of the table out of a check of the tree; the table is checked
    /// separately.
    pub(crate) fn outside<'f>(
        &'f self,
        mut found: impl FnMut(Inconsistency) -> ControlFlow<()> + 'f,
    ) -> impl FnMut(Inconsistency) -> ControlFlow<()> + 'f {
        let space = self.0.as_ref().map(Table::space);
        move |fault| match space.is_some_and(|space| space.contains(&fault.key)) {
            true => ControlFlow::Continue(()),
            false => found(fault),
        }
    }

    /// Compares the table with a tree whose node keys are in `nodes`.
    pub(crate) fn check<T: Tree<Value = V, Codec = C>>(
        &self,
        tree: &T,
        nodes: &Subspace,
        reader: &impl Reader,
        found: impl FnMut(Inconsistency) -> ControlFlow<()>,
    ) -> Result<u64> {
        let Some(table) = &self.0 else { return Ok(0) };
        let (mut findings, mut keys) = (Findings::new(found), 0);
        for space in [nodes, table.space()] {
            let mut from = None;
            while !findings.has_stopped() {
                let (ids, last) = ids_of(reader, space, from.as_deref(), BATCH)?;
                for id in ids {
                    keys += 1;
                    // The pass over `nodes` has compared the records of nodes that exist.
                    let fault = match space == nodes {
                        true => fault_of(tree, nodes, table, reader, id)?,
                        false => reader.get(&nodes.pack(&id))?.is_none().then_some(Rule::Dangling),
                    };
                    if let Some(rule) = fault {
                        findings.report(&table.space().pack(&id), rule);
                    }
                }
                let Some(last) = last else { break };
                from = Some(last);
            }
        }
        Ok(keys)
    }

    /// Rewrites the table from the tree in transactions of bounded size.
    pub(crate) fn repair<T: Tree<Value = V, Codec = C>, S: Store>(
        &self,
        tree: &T,
        nodes: &Subspace,
        store: &S,
        stages: &mut Stages<'_>,
    ) -> Result<()> {
        let Some(table) = &self.0 else { return Ok(()) };
        [nodes, table.space()].into_iter().try_for_each(|space| {
            stages.run(|options, report| {
                in_batches(store, options, report, |txn, batch, done| {
                    let (ids, last) = ids_of(txn, space, done.position.last.as_deref(), batch)?;
                    for id in ids {
                        done.written += u64::from(self.repair_one(tree, nodes, table, txn, id)?);
                    }
                    done.finished = last.is_none();
                    done.position.last = last;
                    Ok(())
                })
            })
        })
    }

    fn repair_one<T: Tree<Value = V, Codec = C>>(
        &self,
        tree: &T,
        nodes: &Subspace,
        table: &NodeTable<V, C>,
        txn: &mut impl Writer,
        id: NodeId,
    ) -> Result<bool> {
        match fault_of(tree, nodes, table, txn, id)? {
            None => return Ok(false),
            Some(Rule::Dangling) => table.delete(txn, &id).map(drop)?,
            Some(_) => {
                let stored = tree.get(txn, id)?.map(|node| node.stored().to_vec());
                stored.map_or(Ok(()), |stored| self.put(txn, id, &stored))?;
            }
        }
        Ok(true)
    }
}

/// The rule that the record of a node violates.
fn fault_of<T: Tree>(
    tree: &T,
    nodes: &Subspace,
    table: &NodeTable<T::Value, T::Codec>,
    reader: &impl Reader,
    id: NodeId,
) -> Result<Option<Rule>> {
    let record = reader.get(&table.space().pack(&id))?;
    if reader.get(&nodes.pack(&id))?.is_none() {
        return Ok(record.map(|_| Rule::Dangling));
    }
    // Skip nodes that the check of the tree itself reports.
    let node = match tree.get(reader, id) {
        Ok(Some(node)) if node.is_readable() => node,
        Ok(_) => return Ok(None),
        Err(error) if is_damage(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(match record {
        None => Some(Rule::Missing),
        Some(record) => (record[..] != *node.stored()).then_some(Rule::Wrong),
    })
}

/// Whether the error means that a node does not decode. A newer format byte counts as damage too:
/// the check of the tree has already refused newer formats of the definition.
fn is_damage(error: &Error) -> bool {
    match error {
        Error::At { source, .. } => is_damage(source),
        Error::NewerFormat { .. } => true,
        error => is_undecodable(error),
    }
}

/// Returns a page of the ids after the key `from` of a subspace, and the last key of the page if
/// more keys follow. Skips keys that do not hold an id.
fn ids_of(
    reader: &impl Reader,
    space: &Subspace,
    from: Option<&[u8]>,
    most: usize,
) -> Result<(Vec<NodeId>, Option<KeyBuf>)> {
    let page = page_behind(from, reader, space, most)?;
    let ids = page.entries.iter().filter_map(|(key, _)| space.unpack(key).ok()).collect();
    Ok((ids, page.last))
}
