//! Deletions of subtrees that are too large for one transaction.
//!
//! A node that is being deleted has a tombstone as its record, and a mark. Each transaction takes
//! the first mark and deletes child entries of its node. A child with children of its own gets a
//! tombstone and a mark in turn. So no state is kept in memory, and after a crash the deletion
//! continues from the marks.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result, Snapshots, Store, Writer};
use keyloom_kit::{BatchSize, Progress};

use super::AdjacencyList;
use super::descendants::{Sibling, find_leaves};
use super::link::{Link, TOMBSTONE};
use crate::{NodeId, TreeError};

/// The maximum number of nodes deleted in one transaction.
// With eight writes per node, a transaction stays below the 4,096 writes that etcd accepts.
const NODES_AT_ONCE: usize = 500;
/// The maximum number of writes per node.
const WRITES: usize = 8;

impl<V, C: Codec<V>> AdjacencyList<V, C> {
    pub(super) fn delete_step_by_step<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        store.transact(|txn| self.begin_deletion(txn, id))?;
        let done = Progress { written: 3, removed: 1, ..Progress::default() };
        match progress(&done) {
            ControlFlow::Break(()) => Ok(done),
            ControlFlow::Continue(()) => self.resume(store, done, progress),
        }
    }

    /// Detaches a node from its parent, and marks it.
    fn begin_deletion(&self, txn: &mut impl Writer, id: NodeId) -> Result<()> {
        txn.guarded(|txn| {
            self.records.expect_writable(txn)?;
            let (link, node) = self.known(txn, id)?;
            let name = node.name()?.to_owned();
            drop(node);
            self.remove_entry(txn, &link, id, &name)?;
            self.mark(txn, id)?;
            txn.add(&self.count_key(link.parent), -1)
        })
    }

    fn mark(&self, txn: &mut impl Writer, id: NodeId) -> Result<()> {
        txn.put(&self.node_key(id), &TOMBSTONE)?;
        txn.put(&self.marks.pack(&id), &[])
    }

    pub(super) fn resume<S: Store>(
        &self,
        store: &S,
        mut done: Progress,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let most = store.limits().max_transaction_operations.unwrap_or(usize::MAX);
        let mut size = BatchSize::new(NODES_AT_ONCE.min(most / WRITES));
        while !done.finished {
            let next = size.transact(store, |txn, nodes| {
                self.records.expect_writable(txn)?;
                self.step(txn, nodes)
            })?;
            done = done.followed_by(&next);
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    /// Deletes up to `nodes` nodes.
    fn step(&self, txn: &mut impl Writer, nodes: usize) -> Result<Progress> {
        let (mut left, mut done) = (nodes, Progress::default());
        while left > 0 {
            let mark = txn.first(self.marks.range())?.map(|(key, _)| KeyBuf::from_slice(&key));
            let Some(mark) = mark else { return Ok(Progress { finished: true, ..done }) };
            let (cleared, next) = match self.marks.unpack::<NodeId>(&mark) {
                Ok(id) if self.is_leaving(txn, id)? => self.clear(txn, id, left)?,
                // Ignore a mark on a node that exists.
                _ => (1, Progress::default()),
            };
            if cleared < left || next.removed == 0 {
                txn.delete(&mark)?;
                done.removed += 1;
            }
            done = done.followed_by(&next);
            left -= cleared.min(left);
        }
        Ok(done)
    }

    /// Deletes up to `nodes` children of a marked node. If no more children are left, deletes the
    /// node too. Returns the number of child entries (fewer than `nodes` if the node was deleted)
    /// and the progress.
    fn clear(&self, txn: &mut impl Writer, id: NodeId, nodes: usize) -> Result<(usize, Progress)> {
        let entries = self.entries_to_clear(txn, id, nodes)?;
        let (mut done, mut gone) = (Progress::default(), Vec::new());
        for (entry, child) in &entries {
            txn.delete(entry)?;
            done.removed += 1;
            match child {
                Child::Elsewhere => {}
                Child::Leaf(child) => {
                    self.remove_record(txn, *child, false)?;
                    gone.push(*child);
                    done.removed += 2;
                }
                Child::Inner(child) => {
                    self.mark(txn, *child)?;
                    done.written += 2;
                }
            }
        }
        if entries.len() < nodes {
            self.remove_record(txn, id, true)?;
            gone.push(id);
            done.removed += 2;
        }
        self.records.delete(txn, &gone)?;
        Ok((entries.len(), done))
    }

    fn entries_to_clear<W: Writer>(
        &self,
        txn: &W,
        id: NodeId,
        most: usize,
    ) -> Result<Vec<(KeyBuf, Child)>> {
        let (mut keys, mut children) = (Vec::new(), Vec::new());
        for entry in txn.range(self.entries_of(Some(id)), Order::Ascending)?.take(most) {
            let (key, _) = entry?;
            // Keys that are not entries are deleted too.
            let child = self.child_id(&key).ok();
            children.push(Sibling { id: child.unwrap_or(id), stored: (), is_inner: true });
            keys.push((KeyBuf::from_slice(&key), child));
        }
        find_leaves(self, txn, &mut children)?;
        let records: Vec<KeyBuf> = children.iter().map(|child| self.node_key(child.id)).collect();
        let records = txn.get_many(&records)?;
        let mut entries = Vec::with_capacity(keys.len());
        for (((key, child), sibling), record) in keys.into_iter().zip(&children).zip(records) {
            let link = record.and_then(|record| Link::decode(&record).ok());
            // A stray entry of a node that is elsewhere does not delete that node.
            let is_here = link.is_none_or(|(link, _)| link.parent == Some(id));
            let child = match child {
                Some(child) if is_here && sibling.is_inner => Child::Inner(child),
                Some(child) if is_here => Child::Leaf(child),
                _ => Child::Elsewhere,
            };
            entries.push((key, child));
        }
        Ok(entries)
    }

    /// Whether a node is being deleted in steps, so that readers do not see it.
    fn is_leaving(&self, reader: &impl Reader, id: NodeId) -> Result<bool> {
        Ok(reader.get(&self.node_key(id))?.is_some_and(|record| record[..] == TOMBSTONE))
    }

    /// Marks tombstones without a mark, so that they are deleted too.
    pub(super) fn mark_tombstones<S: Store>(&self, store: &S) -> Result<u64> {
        let mut without = Vec::new();
        for entry in Snapshots::lasting(store).range(self.nodes.range(), Order::Ascending)? {
            let (key, record) = entry?;
            if record[..] == TOMBSTONE {
                without.extend(self.nodes.unpack::<NodeId>(&key));
            }
        }
        let marked = self.leaving(&Snapshots::lasting(store))?;
        without.retain(|id| !marked.contains(id));
        for id in &without {
            store.transact(|txn| match self.is_leaving(txn, *id)? {
                true => self.mark(txn, *id),
                false => Ok(()),
            })?;
        }
        Ok(without.len() as u64)
    }

    /// The nodes marked for deletion.
    pub(super) fn leaving<R: Reader>(&self, reader: &R) -> Result<BTreeSet<NodeId>> {
        let mut marked: Vec<NodeId> = Vec::new();
        for entry in reader.range(self.marks.range(), Order::Ascending)? {
            marked.extend(self.marks.unpack::<NodeId>(&entry?.0));
        }
        let keys: Vec<KeyBuf> = marked.iter().map(|id| self.node_key(*id)).collect();
        let records = reader.get_many(&keys)?;
        let is_there = |record: &Option<_>| {
            record.as_ref().is_some_and(|record: &R::Bytes<'_>| record[..] == TOMBSTONE)
        };
        let leaving = marked.into_iter().zip(&records).filter(|(_, record)| is_there(record));
        Ok(leaving.map(|(id, _)| id).collect())
    }

    #[cold]
    pub(super) fn in_steps(&self, node: NodeId) -> keyloom::Error {
        TreeError::InSteps { tree: self.space.named(), node }.into()
    }
}

/// The target of a child entry of a node being deleted.
enum Child {
    /// A node without children.
    Leaf(NodeId),
    /// A node that may have children.
    Inner(NodeId),
    /// A node with another parent, or a key that is not a child entry.
    Elsewhere,
}
