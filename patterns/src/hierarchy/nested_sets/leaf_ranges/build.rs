//! How leaf ranges come to be: from nodes in depth-first order.

use std::collections::HashSet;

use keyloom::value::Codec;
use keyloom::{Error, KeyRange, Order, Reader, Result, Store, Writer};

use super::{LeafRanges, Record};
use crate::batch::BatchSize;
use crate::derived::SortedWrites;
#[cfg(doc)]
use crate::hierarchy::TreeError;
use crate::hierarchy::tree::{encode_node, exists};
use crate::hierarchy::{Nested, NodeId, Tree, Visit};

/// How many rows one transaction takes, where the store takes as much.
const BATCH: usize = 10_000;

impl<V, C: Codec<V>> LeafRanges<V, C> {
    /// Builds the whole from trees in memory, in one transaction.
    ///
    /// # Errors
    /// [`Error::BadOption`] when there is something in the subspace already; [`TreeError::NodeExists`] for an id that
    /// comes twice; what the store says.
    pub fn load(&self, txn: &mut impl Writer, trees: &[Nested<V>]) -> Result<()> {
        txn.guarded(|txn| {
            self.refuse_unless_empty(txn)?;
            let mut numbering = Numbering::new(self);
            let mut writes = SortedWrites::default();
            for (depth, node) in trees.iter().flat_map(Nested::preorder) {
                numbering.push(depth + 1, node, &mut writes)?;
            }
            numbering.close(0, &mut writes)?;
            writes.apply(txn)
        })
    }

    /// Builds the whole from a tree of any model that lies in the same store, in one transaction.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_patterns::hierarchy::{LeafRanges, NestedSets, Place, Tree};
    /// let tree = NestedSets::<()>::new(&Subspace::new("tree"));
    /// let catalogue = LeafRanges::<()>::new(&Subspace::new("catalogue"));
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     tree.insert(txn, 1, "fruit", &(), Place::last(None))?;
    ///     tree.insert(txn, 2, "apple", &(), Place::last(1))?;
    ///     catalogue.copy_from(txn, &tree)
    /// })?;
    /// assert_eq!(catalogue.leaf_count(&store.snapshot()?, 1)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`load`](LeafRanges::load).
    pub fn copy_from(&self, txn: &mut impl Writer, tree: &impl Tree<Value = V>) -> Result<()> {
        txn.guarded(|txn| {
            self.refuse_unless_empty(txn)?;
            let mut numbering = Numbering::new(self);
            let mut writes = SortedWrites::default();
            for visit in tree.descendants(txn, None, ..)? {
                let Visit { depth, node } = visit?;
                let node = Nested::new(node.id(), node.name()?, node.value()?);
                numbering.push(depth, &node, &mut writes)?;
            }
            numbering.close(0, &mut writes)?;
            writes.apply(txn)
        })
    }

    /// Builds the whole from rows in depth-first order, in transactions of a bounded size: trees of any size. A row is a
    /// node and its depth, 1 for roots; what children it has in memory is not asked.
    ///
    /// Who reads meanwhile sees a part of it: make it known when it is whole. When it fails, take another
    /// subspace, or empty this one.
    ///
    /// ```
    /// use keyloom::{Limits, Memory, Store, Subspace};
    /// use keyloom_patterns::hierarchy::{LeafRanges, Nested};
    /// let catalogue = LeafRanges::<()>::new(&Subspace::new("catalogue"));
    /// let store = Memory::builder().limits(Limits::etcd()).build(); // 4,096 writes in a transaction
    /// let leaves = (1..10_000).map(|id| (2, Nested::new(id, format!("leaf {id}"), ())));
    /// catalogue.load_rows(&store, std::iter::once((1, Nested::new(0, "root", ()))).chain(leaves))?;
    /// assert_eq!(catalogue.leaf_count(&store.snapshot()?, 0)?, 9_999);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`load`](LeafRanges::load); [`Error::BadOption`] for a row that lies more than one level below the one before it.
    pub fn load_rows<S: Store>(
        &self,
        store: &S,
        rows: impl IntoIterator<Item = (u32, Nested<V>)>,
    ) -> Result<()> {
        self.refuse_unless_empty(&store.snapshot()?)?;
        let mut size = BatchSize::new(BATCH);
        let mut numbering = Numbering::new(self);
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let mut entries = Entries::default();
            for (depth, node) in rows.by_ref().take(BATCH) {
                numbering.push(depth, &node, &mut entries)?;
            }
            if rows.peek().is_none() {
                numbering.close(0, &mut entries)?;
            }
            entries.0.sort_unstable();
            size.transact_all(store, &entries.0, |txn, entries| {
                entries.iter().try_for_each(|(key, value)| txn.put(key, value))
            })?;
        }
        Ok(())
    }

    fn refuse_unless_empty(&self, reader: &impl Reader) -> Result<()> {
        let all: KeyRange<'static> = self.space.self_and_children();
        match reader.range(all, Order::Ascending)?.next().transpose()? {
            None => Ok(()),
            Some(_) => Err(Error::BadOption {
                what: "the subspace",
                value: self.space.to_string(),
                why: "something is in it already; leaf ranges are built whole, give them a fresh one",
            }),
        }
    }
}

/// Where entries are collected.
trait Collect {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
}

impl Collect for SortedWrites {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Self::put(self, key, value)
    }
}

/// Entries for several transactions.
#[derive(Default)]
struct Entries(Vec<(Vec<u8>, Vec<u8>)>);

impl Collect for Entries {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.push((key.to_vec(), value.to_vec()));
        Ok(())
    }
}

/// Nodes come in depth-first order, and leaves get their numbers.
struct Numbering<'t, V, C> {
    tree: &'t LeafRanges<V, C>,
    /// The path to the last node that came.
    open: Vec<Opened>,
    ids: HashSet<NodeId>,
    /// The number of the next leaf.
    next: u64,
}

struct Opened {
    id: NodeId,
    /// What all models store of it.
    node: Vec<u8>,
    /// The number of its first leaf.
    first: u64,
    is_leaf: bool,
}

impl<'t, V, C: Codec<V>> Numbering<'t, V, C> {
    fn new(tree: &'t LeafRanges<V, C>) -> Self {
        Self { tree, open: Vec::new(), ids: HashSet::new(), next: 0 }
    }

    fn push(&mut self, depth: u32, node: &Nested<V>, out: &mut impl Collect) -> Result<()> {
        if depth == 0 || depth as usize > self.open.len() + 1 {
            return Err(Error::BadOption {
                what: "the depth of a row",
                value: format!("{depth} (node {})", node.id),
                why: "a row lies at most one level below the one before it, and roots have depth 1",
            });
        }
        if !self.ids.insert(node.id) {
            return Err(exists(&self.tree.space, node.id));
        }
        let mut bytes = Vec::new();
        encode_node::<V, C>(&node.name, &node.value, &mut bytes)?;
        self.close(depth as usize - 1, out)?;
        if let Some(parent) = self.open.last_mut() {
            parent.is_leaf = false;
        }
        let first = self.next;
        self.open.push(Opened { id: node.id, node: bytes, first, is_leaf: true });
        Ok(())
    }

    /// Ends all nodes but the first `depth` of the path.
    fn close(&mut self, depth: usize, out: &mut impl Collect) -> Result<()> {
        while self.open.len() > depth {
            let Some(Opened { id, node, first, is_leaf }) = self.open.pop() else { break };
            self.next += u64::from(is_leaf);
            let above = self.open.iter().rev().map(|above| above.id).collect();
            let record = Record { first, last: self.next - 1, is_leaf, above, bytes: 0 };
            let mut bytes = record.encode();
            if is_leaf {
                let leaf = [&id.to_be_bytes()[..], &node].concat();
                out.put(&self.tree.leaves.pack(&first), &leaf)?;
            } else {
                bytes.extend_from_slice(&node);
            }
            out.put(&self.tree.nodes.pack(&id), &bytes)?;
        }
        Ok(())
    }
}
