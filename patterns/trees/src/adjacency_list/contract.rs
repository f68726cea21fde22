//! Implements [`Tree`] for an adjacency list.

use std::ops::{ControlFlow, RangeBounds};

use keyloom::value::Codec;
use keyloom::{MAX_KEY_BYTES, Order, Reader, Result, Store, Subspace, Writer, check_key};
use keyloom_kit::{InOrder, Inconsistency, Progress, RepairOptions};

use super::AdjacencyList;
use super::link::{Link, TOMBSTONE};
use super::place::Sibling;
use crate::tree::{
    NodeOf, VisitOf, encode_node, exists, first_named, in_stages, not_below, stoppable, unknown,
};
use crate::{InsertAt, NestedNode, NodeId, OnDelete, Tree, TreeNode};

impl<V: 'static, C: Codec<V>> Tree for AdjacencyList<V, C> {
    type Value = V;
    type Codec = C;
    type Bytes<'r, R: Reader + 'r> = R::Bytes<'r>;

    fn space(&self) -> &Subspace {
        &self.space
    }

    fn get<'r, R: Reader>(&self, reader: &'r R, id: NodeId) -> Result<Option<NodeOf<'r, Self, R>>> {
        Ok(self.find(reader, id)?.map(|(_, node)| node))
    }

    fn parent(&self, reader: &impl Reader, id: NodeId) -> Result<Option<NodeId>> {
        Ok(self.known(reader, id)?.0.parent)
    }

    fn children<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>> {
        self.children_of(reader, parent.into())
    }

    fn children_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: impl Into<InOrder<Option<NodeId>>>,
        last: NodeId,
    ) -> Result<impl Iterator<Item = Result<NodeOf<'r, Self, R>>>> {
        let InOrder { of: parent, order } = parent.into();
        let (link, _) = self.known(reader, last)?;
        if link.parent != parent {
            return Err(not_below(last, parent));
        }
        self.children_in(reader, self.entries_after(&link, last, order), order)
    }

    fn descendants<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>> {
        self.walk_down(reader, from.into(), &depths)
    }

    fn descendants_after<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: impl Into<Option<NodeId>>,
        last: NodeId,
        depths: impl RangeBounds<u32>,
    ) -> Result<impl Iterator<Item = Result<VisitOf<'r, Self, R>>>> {
        self.walk_on(reader, from.into(), last, &depths)
    }

    fn ancestors<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Vec<NodeOf<'r, Self, R>>> {
        self.walk_up(reader, id)
    }

    fn sibling<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
        order: Order,
    ) -> Result<Option<NodeOf<'r, Self, R>>> {
        let (link, _) = self.known(reader, id)?;
        let range = self.entries_after(&link, id, order);
        let entry = match order {
            Order::Ascending => reader.first(range)?,
            Order::Descending => reader.last(range)?,
        };
        let node =
            |(key, stored): (R::Bytes<'r>, _)| Ok(TreeNode::new(self.child_id(&key)?, stored, 0));
        entry.map(node).transpose()
    }

    fn child_count(&self, reader: &impl Reader, parent: impl Into<Option<NodeId>>) -> Result<u64> {
        let parent = parent.into();
        let key = self.count_key(parent);
        let Some(id) = parent else { return Ok(reader.counter(&key)?.cast_unsigned()) };
        let mut values = reader.get_many(&[&self.node_key(id), &key])?;
        let count = values.pop().flatten();
        if values.pop().flatten().is_none_or(|record| record[..] == TOMBSTONE) {
            return Err(unknown(&self.space, id));
        }
        count.map_or(Ok(0), |count| self.decode_count(&key, &count))
    }

    fn child_named(
        &self,
        reader: &impl Reader,
        parent: impl Into<Option<NodeId>>,
        name: &str,
    ) -> Result<Option<NodeId>> {
        let parent = parent.into();
        if !self.unique_names {
            return first_named(self.children_of(reader, parent.into())?, name);
        }
        let key = self.name_key(parent, name);
        let Some(id) = parent else { return self.named(reader, &key) };
        // No child has a name whose key exceeds the maximum length.
        if key.len() > MAX_KEY_BYTES {
            return self.known(reader, id).map(|_| None);
        }
        let mut values = reader.get_many(&[&self.node_key(id), &key])?;
        let named = values.pop().flatten();
        if values.pop().flatten().is_none_or(|record| record[..] == TOMBSTONE) {
            return Err(unknown(&self.space, id));
        }
        named.map(|value| self.decode_name(&key, &value)).transpose()
    }

    fn insert(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        value: &V,
        place: InsertAt,
    ) -> Result<()> {
        txn.guarded(|txn| {
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
            let mut room = self.room(txn, &gap, 1, None, &txn.limits())?;
            let link = Link { parent: gap.parent, rank: room.ranks.pop().unwrap_or_default() };
            check_key(&self.child_key(&link, id))?;
            self.write(txn, id, &link, &stored)?;
            self.records.put(txn, id, &stored)?;
            self.write_again(txn, gap.parent, &room)?;
            self.put_name(txn, name_key, id)?;
            txn.add(&self.count_key(gap.parent), 1)
        })
    }

    fn rename(&self, txn: &mut impl Writer, id: NodeId, name: &str) -> Result<()> {
        txn.guarded(|txn| {
            let (link, node) = self.known(txn, id)?;
            let old_name = node.name()?.to_owned();
            let stored = node.renamed(name)?;
            drop(node);
            let name_key = self.free_name(txn, link.parent, name, id, &[])?;
            self.write(txn, id, &link, &stored)?;
            self.records.put(txn, id, &stored)?;
            if let Some(key) = name_key
                && old_name != name
            {
                txn.delete(&self.name_key(link.parent, &old_name))?;
                self.put_name(txn, Some(key), id)?;
            }
            Ok(())
        })
    }

    fn set_value(&self, txn: &mut impl Writer, id: NodeId, value: &V) -> Result<()> {
        txn.guarded(|txn| {
            let (link, node) = self.known(txn, id)?;
            let mut stored = Vec::new();
            encode_node::<V, C>(node.name()?, value, &mut stored)?;
            drop(node);
            self.records.put(txn, id, &stored)?;
            self.write(txn, id, &link, &stored)
        })
    }

    fn move_to(&self, txn: &mut impl Writer, id: NodeId, place: InsertAt) -> Result<()> {
        txn.guarded(|txn| match place.is_beside(id) {
            true => self.known(txn, id).map(drop),
            false => self.relocate(txn, id, None, place),
        })
    }

    fn move_as(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        name: &str,
        place: InsertAt,
    ) -> Result<()> {
        txn.guarded(|txn| match place.is_beside(id) {
            true => self.rename(txn, id, name),
            false => self.relocate(txn, id, Some(name), place),
        })
    }

    fn delete_subtree(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
        txn.guarded(|txn| {
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
            let ids: Vec<NodeId> = nodes.iter().map(|(id, _)| *id).collect();
            self.records.delete(txn, &ids)?;
            txn.add(&self.count_key(link.parent), -1)?;
            Ok(nodes.len() as u64)
        })
    }

    fn delete_node(&self, txn: &mut impl Writer, id: NodeId, orphans: OnDelete) -> Result<()> {
        txn.guarded(|txn| {
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
            let room = self.room(txn, &gap, children.len(), leaves_gap, &txn.limits())?;
            self.remove_entry(txn, &link, id, &name)?;
            self.remove_record(txn, id, !children.is_empty())?;
            self.records.delete(txn, &[id])?;
            self.write_again(txn, gap.parent, &room)?;
            for ((child, stored), rank) in children.iter().zip(&room.ranks) {
                let link = Link { parent: gap.parent, rank: rank.clone() };
                self.write(txn, child.id, &link, stored)?;
            }
            for (key, child) in names {
                self.put_name(txn, key, child)?;
            }
            self.count_up(txn, link.parent, -1, gap.parent, children.len() as i64)
        })
    }

    fn import(
        &self,
        txn: &mut impl Writer,
        parent: impl Into<Option<NodeId>>,
        trees: &[NestedNode<V>],
    ) -> Result<()> {
        txn.guarded(|txn| self.add_all(txn, parent.into(), trees))
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
        let keys = self.report_faults(reader, self.records.outside(&mut found))?;
        Ok(keys + self.records.check(self, &self.nodes, reader, found)?)
    }

    fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_stages(options, progress, |stages| {
            self.fix(store, stages)?;
            self.records.repair(self, &self.nodes, store, stages)
        })
    }
}
