//! Functions shared by all changes of nodes.

use keyloom::value::Codec;
use keyloom::{KeyBuf, MAX_KEY_BYTES, Order, Reader, Result, Writer};

use super::AdjacencyList;
use super::link::{Link, TOMBSTONE};
use super::place::{Gap, Sibling};
use crate::tree::{TreeError, unknown};
use crate::{InsertAt, NodeId, OnDelete};

/// A node as stored.
pub(super) struct Node {
    pub(super) link: Link,
    pub(super) stored: Vec<u8>,
}

impl<V, C: Codec<V>> AdjacencyList<V, C> {
    /// The gap that receives the children of a deleted node.
    pub(super) fn gap_for_orphans(
        &self,
        reader: &impl Reader,
        id: NodeId,
        link: &Link,
        orphans: OnDelete,
    ) -> Result<Gap> {
        if orphans == OnDelete::Promote {
            return self.gap(reader, Some(id), "", InsertAt::Last(None), None);
        }
        let itself = Sibling { rank: link.rank.clone(), id };
        let beside = |order| {
            let mut walk = self.siblings(reader, link.parent, Some(&itself), order, Some(id))?;
            Ok::<_, keyloom::Error>(walk.next().transpose()?.map(|(sibling, _)| sibling))
        };
        let (low, high) = (beside(Order::Descending)?, beside(Order::Ascending)?);
        Ok(Gap { parent: link.parent, low, high })
    }

    /// Adds to the counts of two parents, which may be the same.
    pub(super) fn count_up(
        &self,
        txn: &mut impl Writer,
        one: Option<NodeId>,
        by: i64,
        other: Option<NodeId>,
        other_by: i64,
    ) -> Result<()> {
        if one == other {
            return txn.add(&self.count_key(one), by + other_by);
        }
        txn.add(&self.count_key(one), by)?;
        match other_by {
            0 => Ok(()),
            _ => txn.add(&self.count_key(other), other_by),
        }
    }

    /// Deletes the child entry of a node, and its name entry.
    pub(super) fn remove_entry(
        &self,
        txn: &mut impl Writer,
        link: &Link,
        id: NodeId,
        name: &str,
    ) -> Result<()> {
        txn.delete(&self.child_key(link, id))?;
        match self.unique_names {
            true => txn.delete(&self.name_key(link.parent, name)),
            false => Ok(()),
        }
    }

    /// Deletes the record of a node and the entries of its children.
    pub(super) fn remove_record(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        has_children: bool,
    ) -> Result<()> {
        txn.delete(&self.node_key(id))?;
        // A node that once had children may have a count of 0.
        txn.delete(&self.count_key(Some(id)))?;
        if has_children {
            txn.delete_range(self.entries_of(Some(id)))?;
            if self.unique_names {
                txn.delete_range(self.names.range_of(&(Some(id),)))?;
            }
        }
        Ok(())
    }

    /// Reads a node, and the link of the node that a place names, in one round trip.
    pub(super) fn with_target(
        &self,
        reader: &impl Reader,
        id: NodeId,
        target: Option<NodeId>,
    ) -> Result<(Option<Node>, Option<Link>)> {
        let keys: Vec<KeyBuf> =
            std::iter::once(id).chain(target).map(|id| self.node_key(id)).collect();
        let mut records = reader.get_many(&keys)?.into_iter();
        let node = match records.next().flatten() {
            Some(record) if record[..] == TOMBSTONE => return Err(self.in_steps(id)),
            Some(record) => {
                let (link, from) =
                    Link::decode(&record).map_err(|error| error.at(&self.node_key(id)))?;
                Some(Node { link, stored: record.get(from..).unwrap_or_default().to_vec() })
            }
            None => None,
        };
        let target = match (target, records.next().flatten()) {
            (Some(target), Some(record)) if record[..] != TOMBSTONE => {
                Some(self.linked(target, record)?.0)
            }
            _ => None,
        };
        Ok((node, target))
    }

    pub(super) fn expect_target(
        &self,
        target: Option<NodeId>,
        link: Option<Link>,
    ) -> Result<Option<Link>> {
        match (target, link) {
            (Some(target), None) => Err(unknown(&self.space, target)),
            (_, link) => Ok(link),
        }
    }

    pub(super) fn name_in(&self, id: NodeId, stored: &[u8]) -> Result<String> {
        let node = crate::TreeNode::<_, V, C>::new(id, stored, 0);
        Ok(node.name().map_err(|error| error.at(&self.node_key(id)))?.to_owned())
    }

    /// Returns the key of a name; `None` if names need not be unique; an error if another child has
    /// the name. Ignores the children in `leaving`, which are being removed.
    pub(super) fn free_name(
        &self,
        reader: &impl Reader,
        parent: Option<NodeId>,
        name: &str,
        id: NodeId,
        leaving: &[NodeId],
    ) -> Result<Option<KeyBuf>> {
        if !self.unique_names {
            return Ok(None);
        }
        let key = self.fitting_name_key(parent, name, id)?;
        match self.named(reader, &key)? {
            Some(taken_by) if taken_by != id && !leaving.contains(&taken_by) => {
                Err(TreeError::NameTaken { parent, name: name.into(), taken_by }.into())
            }
            _ => Ok(Some(key)),
        }
    }

    /// The key of a name, or an error if it is too long for a key.
    pub(super) fn fitting_name_key(
        &self,
        parent: Option<NodeId>,
        name: &str,
        id: NodeId,
    ) -> Result<KeyBuf> {
        let key = self.name_key(parent, name);
        if key.len() > MAX_KEY_BYTES {
            let (bytes, limit) = (key.len(), MAX_KEY_BYTES);
            return Err(TreeError::NameTooLong { node: id, bytes, limit }.into());
        }
        Ok(key)
    }

    pub(super) fn put_name(
        &self,
        txn: &mut impl Writer,
        key: Option<KeyBuf>,
        id: NodeId,
    ) -> Result<()> {
        key.map_or(Ok(()), |key| txn.put(&key, &keyloom::pack(&id)))
    }
}
