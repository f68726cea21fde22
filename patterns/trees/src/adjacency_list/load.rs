//! Import of whole trees.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::value::Codec;
use keyloom::{KeyBuf, Reader, Result, Writer};
use keyloom_kit::derived::SortedWrites;

use super::AdjacencyList;
use super::link::{Link, TOMBSTONE};
use super::room::Room;
use crate::rank::{self, Rank};
use crate::tree::{TreeError, encode_node, exists, unknown};
use crate::{InsertAt, NestedNode, NodeId};

impl<V, C: Codec<V>> AdjacencyList<V, C> {
    pub(super) fn add_all(
        &self,
        txn: &mut impl Writer,
        parent: Option<NodeId>,
        trees: &[NestedNode<V>],
    ) -> Result<()> {
        if trees.is_empty() {
            return Ok(());
        }
        self.refuse_nodes(txn, parent, trees)?;
        self.refuse_names(txn, parent, trees)?;
        let gap = self.gap(txn, None, "", InsertAt::Last(parent), None)?;
        let room = self.room(txn, &gap, trees.len(), None, &txn.limits())?;
        let mut writes = SortedWrites::default();
        self.collect(parent, trees, &room, &mut writes)?;
        self.write_again(txn, parent, &room)?;
        writes.apply(txn)?;
        self.records.put_all(txn, trees)?;
        txn.add(&self.count_key(parent), trees.len() as i64)
    }

    /// Refuses ids that exist or occur twice, and a parent that does not exist.
    fn refuse_nodes<R: Reader>(
        &self,
        reader: &R,
        parent: Option<NodeId>,
        trees: &[NestedNode<V>],
    ) -> Result<()> {
        let ids: Vec<NodeId> = parent.into_iter().chain(nodes(trees).map(|node| node.id)).collect();
        let keys: Vec<KeyBuf> = ids.iter().map(|id| self.node_key(*id)).collect();
        let records = reader.get_many(&keys)?;
        let leaving = |record: &Option<_>| {
            record.as_ref().is_some_and(|record: &R::Bytes<'_>| record[..] == TOMBSTONE)
        };
        if let Some((id, _)) = ids.iter().zip(&records).find(|(_, record)| leaving(record)) {
            return Err(self.in_steps(*id));
        }
        let found: Vec<bool> = records.iter().map(Option::is_some).collect();
        let (above, within) = found.split_at(parent.iter().len());
        let mut seen = BTreeSet::new();
        for (n, (node, is_there)) in nodes(trees).zip(within).enumerate() {
            if *is_there || !seen.insert(node.id) {
                return Err(exists(&self.space, node.id));
            }
            // Check in the order of single inserts: the first node, then its place.
            if n == 0
                && let (Some(parent), [false]) = (parent, above)
            {
                return Err(unknown(&self.space, parent));
            }
        }
        Ok(())
    }

    /// Refuses names that siblings already have, if names are unique.
    fn refuse_names(
        &self,
        reader: &impl Reader,
        parent: Option<NodeId>,
        trees: &[NestedNode<V>],
    ) -> Result<()> {
        if !self.unique_names {
            return Ok(());
        }
        let fitting = |tree: &NestedNode<V>| self.fitting_name_key(parent, &tree.name, tree.id);
        let keys = trees.iter().map(fitting).collect::<Result<Vec<KeyBuf>>>()?;
        // Read all names in one round trip.
        for ((tree, key), named) in trees.iter().zip(&keys).zip(reader.get_many(&keys)?) {
            if let Some(value) = named {
                let (name, taken_by) = (tree.name.clone(), self.decode_name(key, &value)?);
                return Err(TreeError::NameTaken { parent, name, taken_by }.into());
            }
        }
        let above = nodes(trees).map(|node| (Some(node.id), node.children.as_slice()));
        for (parent, children) in std::iter::once((parent, trees)).chain(above) {
            let mut names: BTreeMap<&str, NodeId> = BTreeMap::new();
            for child in children {
                self.fitting_name_key(parent, &child.name, child.id)?;
                if let Some(taken_by) = names.insert(&child.name, child.id) {
                    let name = child.name.clone();
                    return Err(TreeError::NameTaken { parent, name, taken_by }.into());
                }
            }
        }
        Ok(())
    }

    /// Collects the writes for nodes that do not exist yet.
    fn collect(
        &self,
        parent: Option<NodeId>,
        trees: &[NestedNode<V>],
        room: &Room,
        writes: &mut SortedWrites,
    ) -> Result<()> {
        self.collect_children(parent, trees, &room.ranks, writes)?;
        for node in nodes(trees).filter(|node| !node.children.is_empty()) {
            let ranks = rank::spread(None, None, node.children.len()).unwrap_or_default();
            self.collect_children(Some(node.id), &node.children, &ranks, writes)?;
            let count = (node.children.len() as i64).to_le_bytes();
            writes.put(&self.count_key(Some(node.id)), &count)?;
        }
        Ok(())
    }

    fn collect_children(
        &self,
        parent: Option<NodeId>,
        children: &[NestedNode<V>],
        ranks: &[Rank],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let mut stored = Vec::new();
        for (child, rank) in children.iter().zip(ranks) {
            let link = Link { parent, rank: rank.clone() };
            stored.clear();
            encode_node::<V, C>(&child.name, &child.value, &mut stored)?;
            writes.put(&self.node_key(child.id), &link.record(&stored))?;
            writes.put(&self.child_key(&link, child.id), &stored)?;
            if self.unique_names {
                writes.put(&self.name_key(parent, &child.name), &keyloom::pack(&child.id))?;
            }
        }
        Ok(())
    }
}

fn nodes<V>(trees: &[NestedNode<V>]) -> impl Iterator<Item = &NestedNode<V>> {
    trees.iter().flat_map(|tree| tree.preorder().map(|(_, node)| node))
}
