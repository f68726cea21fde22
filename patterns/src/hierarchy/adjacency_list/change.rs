//! Nodes that come, change, move and go.

use keyloom::value::{Codec, Raw};
use keyloom::{KeyBuf, MAX_KEY_BYTES, Order, Reader, Result, Writer, check_key};

use super::AdjacencyList;
use super::link::Link;
use super::place::{self, Gap, Sibling};
use crate::hierarchy::tree::{TreeError, encode_node, exists, unknown};
use crate::hierarchy::{NodeId, Orphans, Place};

/// A node as it is stored.
pub(super) struct Node {
    pub(super) link: Link,
    pub(super) stored: Vec<u8>,
}

impl<V, C: Codec<V>> AdjacencyList<V, C> {
    pub(super) fn add(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        value: &V,
        place: Place,
    ) -> Result<()> {
        let target = place.named();
        let (node, target_link) = self.with_target(txn, id, target)?;
        if node.is_some() {
            return Err(exists(&self.space, id));
        }
        let target_link = self.expect_target(target, target_link)?;
        let gap = self.gap(txn, None, name, place, target_link.as_ref())?;
        let name_key = self.free_name(txn, gap.parent, name, id, &[])?;
        let mut stored = Vec::new();
        encode_node::<V, C>(name, value, &mut stored)?;
        let mut room = self.room(txn, &gap, 1, None)?;
        let link = Link { parent: gap.parent, rank: room.ranks.pop().unwrap_or_default() };
        check_key(&self.child_key(&link, id))?;
        self.write(txn, id, &link, &stored)?;
        self.write_anew(txn, gap.parent, &room)?;
        self.put_name(txn, name_key, id)?;
        txn.add(&self.count_key(gap.parent), 1)
    }

    pub(super) fn change_name(&self, txn: &mut impl Writer, id: NodeId, name: &str) -> Result<()> {
        let (link, node) = self.known(txn, id)?;
        let old_name = node.name()?.to_owned();
        let mut stored = Vec::new();
        encode_node::<Vec<u8>, Raw>(name, &node.value_bytes()?.to_vec(), &mut stored)?;
        drop(node);
        let name_key = self.free_name(txn, link.parent, name, id, &[])?;
        self.write(txn, id, &link, &stored)?;
        if let Some(key) = name_key
            && old_name != name
        {
            txn.delete(&self.name_key(link.parent, &old_name))?;
            self.put_name(txn, Some(key), id)?;
        }
        Ok(())
    }

    pub(super) fn change_value(&self, txn: &mut impl Writer, id: NodeId, value: &V) -> Result<()> {
        let (link, node) = self.known(txn, id)?;
        let mut stored = Vec::new();
        encode_node::<V, C>(node.name()?, value, &mut stored)?;
        drop(node);
        self.write(txn, id, &link, &stored)
    }

    pub(super) fn relocate(&self, txn: &mut impl Writer, id: NodeId, place: Place) -> Result<()> {
        let target = place.named();
        let (node, target_link) = self.with_target(txn, id, target)?;
        let Node { link: old, stored } = node.ok_or_else(|| unknown(&self.space, id))?;
        let target_link = self.expect_target(target, target_link)?;
        let parent = place::parent(place, target_link.as_ref());
        if let (Some(target), Some(link)) = (target, &target_link) {
            let above = || self.is_at_or_above(txn, id, link.parent);
            // Among its siblings it comes below nothing new.
            if target == id || (parent != old.parent && above()?) {
                return Err(TreeError::BelowItself { node: id, target }.into());
            }
        }
        let name = self.name_in(id, &stored)?;
        let gap = self.gap(txn, Some(id), &name, place, target_link.as_ref())?;
        if gap.holds(&old, id) {
            return Ok(());
        }
        let moves_out = parent != old.parent;
        let name_key = match moves_out {
            true => self.free_name(txn, parent, &name, id, &[])?,
            false => None,
        };
        let mut room = self.room(txn, &gap, 1, Some(id))?;
        let link = Link { parent, rank: room.ranks.pop().unwrap_or_default() };
        check_key(&self.child_key(&link, id))?;
        txn.delete(&self.child_key(&old, id))?;
        self.write(txn, id, &link, &stored)?;
        self.write_anew(txn, parent, &room)?;
        if moves_out {
            txn.add(&self.count_key(old.parent), -1)?;
            txn.add(&self.count_key(parent), 1)?;
        }
        if name_key.is_some() {
            txn.delete(&self.name_key(old.parent, &name))?;
            self.put_name(txn, name_key, id)?;
        }
        Ok(())
    }

    pub(super) fn remove_subtree(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
        let (link, node) = self.known(txn, id)?;
        let name = node.name()?.to_owned();
        drop(node);
        // Each node, and whether it has children.
        let mut nodes: Vec<(NodeId, bool)> = vec![(id, false)];
        let mut depth = 0;
        for visit in self.walk_down(txn, Some(id), &(1..))? {
            let visit = visit?;
            if let Some((_, has_children)) = nodes.last_mut() {
                *has_children = visit.depth > depth;
            }
            depth = visit.depth;
            nodes.push((visit.node.id(), false));
        }
        self.remove_entry(txn, &link, id, &name)?;
        for (id, has_children) in &nodes {
            self.remove_record(txn, *id, *has_children)?;
        }
        txn.add(&self.count_key(link.parent), -1)?;
        Ok(nodes.len() as u64)
    }

    pub(super) fn remove_node(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        orphans: Orphans,
    ) -> Result<()> {
        let (link, node) = self.known(txn, id)?;
        let name = node.name()?.to_owned();
        drop(node);
        let mut children: Vec<(Sibling, Vec<u8>)> = Vec::new();
        for child in self.siblings(txn, Some(id), None, Order::Ascending, None)? {
            let (sibling, stored) = child?;
            children.push((sibling, stored.to_vec()));
        }
        let gap = self.gap_for_orphans(txn, id, &link, orphans)?;
        let leaves_gap = (gap.parent == link.parent).then_some(id);
        let mut names = Vec::new();
        for (child, stored) in &children {
            let name = self.name_in(child.id, stored)?;
            let key = self.free_name(txn, gap.parent, &name, child.id, &[id])?;
            names.push((key, child.id));
        }
        let room = self.room(txn, &gap, children.len(), leaves_gap)?;
        self.remove_entry(txn, &link, id, &name)?;
        self.remove_record(txn, id, !children.is_empty())?;
        self.write_anew(txn, gap.parent, &room)?;
        for ((child, stored), rank) in children.iter().zip(&room.ranks) {
            let link = Link { parent: gap.parent, rank: rank.clone() };
            self.write(txn, child.id, &link, stored)?;
        }
        for (key, child) in names {
            self.put_name(txn, key, child)?;
        }
        self.count_up(txn, link.parent, -1, gap.parent, children.len() as i64)
    }

    /// Where the children of a node go that is deleted.
    fn gap_for_orphans(
        &self,
        reader: &impl Reader,
        id: NodeId,
        link: &Link,
        orphans: Orphans,
    ) -> Result<Gap> {
        if orphans == Orphans::Rooted {
            return self.gap(reader, Some(id), "", Place::Last(None), None);
        }
        let itself = Sibling { rank: link.rank.clone(), id };
        let beside = |order| {
            let mut walk = self.siblings(reader, link.parent, Some(&itself), order, Some(id))?;
            Ok::<_, keyloom::Error>(walk.next().transpose()?.map(|(sibling, _)| sibling))
        };
        let (low, high) = (beside(Order::Descending)?, beside(Order::Ascending)?);
        Ok(Gap { parent: link.parent, low, high })
    }

    /// Adds to the counts of two parents, which may be one.
    fn count_up(
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

    /// Deletes what the parent has of a node.
    fn remove_entry(
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

    /// Deletes the record of a node, and what it has of its children.
    fn remove_record(&self, txn: &mut impl Writer, id: NodeId, has_children: bool) -> Result<()> {
        txn.delete(&self.node_key(id))?;
        // A node that had children once may have a count of 0.
        txn.delete(&self.count_key(Some(id)))?;
        if has_children {
            txn.delete_range(self.entries_of(Some(id)))?;
            if self.unique_names {
                txn.delete_range(self.names.range_of(&(Some(id),)))?;
            }
        }
        Ok(())
    }

    /// A node, and the link of the node that a place names, in one round trip.
    fn with_target(
        &self,
        reader: &impl Reader,
        id: NodeId,
        target: Option<NodeId>,
    ) -> Result<(Option<Node>, Option<Link>)> {
        let keys: Vec<KeyBuf> =
            std::iter::once(id).chain(target).map(|id| self.node_key(id)).collect();
        let mut records = reader.get_many(&keys)?.into_iter();
        let node = match records.next().flatten() {
            Some(record) => {
                let (link, from) =
                    Link::decode(&record).map_err(|error| error.at(&self.node_key(id)))?;
                Some(Node { link, stored: record.get(from..).unwrap_or_default().to_vec() })
            }
            None => None,
        };
        let target = match (target, records.next().flatten()) {
            (Some(target), Some(record)) => Some(self.linked(target, record)?.0),
            _ => None,
        };
        Ok((node, target))
    }

    fn expect_target(&self, target: Option<NodeId>, link: Option<Link>) -> Result<Option<Link>> {
        match (target, link) {
            (Some(target), None) => Err(unknown(&self.space, target)),
            (_, link) => Ok(link),
        }
    }

    fn name_in(&self, id: NodeId, stored: &[u8]) -> Result<String> {
        let node = crate::hierarchy::TreeNode::<_, V, C>::new(id, stored, 0);
        Ok(node.name().map_err(|error| error.at(&self.node_key(id)))?.to_owned())
    }

    /// The key of a name that no other child has, where names are unique. `leaving` are children that go.
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

    /// The key of a name, unless it is too long for one.
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
