//! The check of a tree.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Entry, Order, Reader, Result};
use keyloom_kit::{Inconsistency, Rule};

use super::AdjacencyList;
use super::link::{Link, TOMBSTONE};
use crate::rank::Rank;
use crate::tree::Findings;
use crate::{NodeId, TreeNode};

/// The number of records that are compared per round trip.
// Fewer records add round trips; more need more memory.
pub(super) const AT_ONCE: usize = 1_000;

/// The links of all nodes.
pub(super) type Links = BTreeMap<NodeId, Link>;

impl<V, C: Codec<V>> AdjacencyList<V, C> {
    pub(super) fn report_faults(
        &self,
        reader: &impl Reader,
        found: impl FnMut(Inconsistency) -> ControlFlow<()>,
    ) -> Result<u64> {
        let mut findings = Findings::new(found);
        let leaving = self.leaving(reader)?;
        let (mut keys, mut links) = (0, Links::new());
        let mut records = reader.range(self.nodes.range(), Order::Ascending)?;
        while !findings.has_stopped() {
            let some = records.by_ref().take(AT_ONCE).collect::<Result<Vec<_>>>()?;
            if some.is_empty() {
                break;
            }
            keys += some.len() as u64;
            self.look_at_nodes(reader, &some, (&mut links, &leaving), &mut findings)?;
        }
        self.look_at_parents(&links, &leaving, &mut findings);
        let counts = counts(&links);
        for (parent, _) in counts.iter().filter(|(_, count)| **count > 0) {
            let key = self.count_key(*parent);
            let is_known = parent.is_none_or(|parent| links.contains_key(&parent));
            if !findings.has_stopped() && is_known && reader.get(&key)?.is_none() {
                findings.report(&key, Rule::Missing);
            }
        }
        for entry in reader.range(self.space.self_and_children(), Order::Ascending)? {
            if findings.has_stopped() {
                break;
            }
            let (key, value) = entry?;
            if self.nodes.range().contains(&key) {
                continue;
            }
            keys += 1;
            if let Some(rule) = self.fault_of(reader, &key, &value, (&links, &leaving), &counts)? {
                findings.report(&key, rule);
            }
        }
        Ok(keys)
    }

    /// The links of all nodes that decode.
    pub(super) fn links(&self, reader: &impl Reader) -> Result<Links> {
        let mut links = Links::new();
        for entry in reader.range(self.nodes.range(), Order::Ascending)? {
            let (key, record) = entry?;
            if let Some((id, link, _)) = self.decode(&key, &record) {
                links.insert(id, link);
            }
        }
        Ok(links)
    }

    /// The nodes that break the path to a root: one node of each cycle, and the nodes whose parent
    /// does not exist. A parent that is being deleted counts as existing.
    pub(super) fn without_way_up(
        &self,
        links: &Links,
        leaving: &BTreeSet<NodeId>,
    ) -> Vec<(NodeId, Rule)> {
        let mut without = Vec::new();
        // Nodes whose path has been walked, with the start of that walk.
        let mut walked: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for start in links.keys() {
            let mut at = *start;
            while let (Some(link), false) = (links.get(&at), walked.contains_key(&at)) {
                walked.insert(at, *start);
                match link.parent {
                    Some(parent) if leaving.contains(&parent) => {}
                    Some(parent) if !links.contains_key(&parent) => {
                        without.push((at, Rule::NoParent));
                    }
                    Some(parent) => at = parent,
                    None => {}
                }
            }
            // The walk reached a node that it had already visited, and not a root: there is a
            // cycle.
            let has_parent = links
                .get(&at)
                .is_some_and(|link| link.parent.is_some_and(|p| links.contains_key(&p)));
            if has_parent && walked.get(&at) == Some(start) {
                without.push((smallest_of_cycle(links, at), Rule::Cycle));
            }
        }
        without
    }

    fn look_at_parents(
        &self,
        links: &Links,
        leaving: &BTreeSet<NodeId>,
        findings: &mut Findings<impl FnMut(Inconsistency) -> ControlFlow<()>>,
    ) {
        for (id, rule) in self.without_way_up(links, leaving) {
            findings.report(&self.node_key(id), rule);
        }
    }

    fn look_at_nodes<B: std::ops::Deref<Target = [u8]>>(
        &self,
        reader: &impl Reader,
        records: &[Entry<B>],
        (links, leaving): (&mut Links, &BTreeSet<NodeId>),
        findings: &mut Findings<impl FnMut(Inconsistency) -> ControlFlow<()>>,
    ) -> Result<()> {
        // The other keys and values that should exist for each record.
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (key, record) in records {
            if record[..] == TOMBSTONE
                && let Ok(id) = self.nodes.unpack::<NodeId>(key)
            {
                keys.push(self.marks.pack(&id));
                values.push(Cow::Borrowed(&[][..]));
                continue;
            }
            let Some((id, link, from)) = self.decode(key, record) else {
                findings.report(key, Rule::Foreign);
                continue;
            };
            let stored = record.get(from..).unwrap_or_default();
            let node = TreeNode::<_, V, C>::new(id, stored, 0);
            if let Some(rule) = node.fault() {
                findings.report(key, rule);
            }
            let Ok(name) = node.name() else {
                // Do not compare the child entry: it may be the only readable copy.
                links.insert(id, link);
                continue;
            };
            keys.push(self.child_key(&link, id));
            values.push(Cow::Borrowed(stored));
            let name_key = self.name_key(link.parent, name);
            let is_leaving = link.parent.is_some_and(|parent| leaving.contains(&parent));
            if self.unique_names && !is_leaving && name_key.len() <= keyloom::MAX_KEY_BYTES {
                keys.push(name_key);
                values.push(Cow::Owned(keyloom::pack(&id).to_vec()));
            }
            links.insert(id, link);
        }
        let found = reader.get_many(&keys)?;
        for ((key, wanted), found) in keys.iter().zip(&values).zip(&found) {
            match found {
                None => findings.report(key, Rule::Missing),
                Some(found) if found[..] != wanted[..] => findings.report(key, Rule::Wrong),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// The rule violated by a key that is not a node record. The check of the records finds wrong
    /// values.
    fn fault_of(
        &self,
        reader: &impl Reader,
        key: &[u8],
        value: &[u8],
        (links, leaving): (&Links, &BTreeSet<NodeId>),
        counts: &BTreeMap<Option<NodeId>, u64>,
    ) -> Result<Option<Rule>> {
        if let Some((link, id)) = self.parse_child(key) {
            let agrees = links.get(&id) == Some(&link);
            return Ok((!agrees).then_some(Rule::Dangling));
        }
        if let Ok(id) = self.marks.unpack::<NodeId>(key) {
            return Ok((!leaving.contains(&id)).then_some(Rule::Dangling));
        }
        let leaves = |parent: Option<NodeId>| parent.is_some_and(|id| leaving.contains(&id));
        if let Ok((parent,)) = self.counts.unpack::<(Option<NodeId>,)>(key) {
            if leaves(parent) {
                return Ok(None);
            }
            let wanted = counts.get(&parent).copied().unwrap_or(0);
            let is_known = parent.is_none_or(|parent| links.contains_key(&parent));
            return Ok(match self.decode_count(key, value) {
                _ if !is_known => Some(Rule::Dangling),
                Ok(count) if count == wanted => None,
                _ => Some(Rule::Wrong),
            });
        }
        if let Ok((parent, name)) = self.names.unpack::<(Option<NodeId>, Cow<'_, str>)>(key) {
            if leaves(parent) {
                return Ok(None);
            }
            let is_asked_for = self.is_named(reader, parent, &name, key, value)?;
            return Ok((!is_asked_for).then_some(Rule::Dangling));
        }
        Ok(Some(Rule::Foreign))
    }

    /// Whether the node that a name entry refers to has this parent and this name.
    fn is_named(
        &self,
        reader: &impl Reader,
        parent: Option<NodeId>,
        name: &str,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool> {
        let Ok(id) = self.decode_name(key, value) else { return Ok(false) };
        let Some(record) = reader.get(&self.node_key(id))? else { return Ok(false) };
        let Some((_, link, from)) = self.decode(&self.node_key(id), &record) else {
            return Ok(false);
        };
        let node = TreeNode::<_, V, C>::new(id, record.get(from..).unwrap_or_default(), 0);
        Ok(self.unique_names && link.parent == parent && node.name().is_ok_and(|own| own == name))
    }

    /// The id, the link, and the offset of the node in its record, if the record can be read.
    pub(super) fn decode(&self, key: &[u8], record: &[u8]) -> Option<(NodeId, Link, usize)> {
        let id = self.nodes.unpack(key).ok()?;
        let (link, from) = Link::decode(record).ok()?;
        Some((id, link, from))
    }

    /// The link and the id in the key of a child entry.
    pub(super) fn parse_child(&self, key: &[u8]) -> Option<(Link, NodeId)> {
        let (parent, rank, id): (_, Cow<'_, [u8]>, _) = self.children.unpack(key).ok()?;
        Some((Link { parent, rank: Rank::from_slice(&rank) }, id))
    }
}

/// The number of children of each parent, counted from the records.
fn counts(links: &Links) -> BTreeMap<Option<NodeId>, u64> {
    let mut counts = BTreeMap::new();
    for link in links.values() {
        *counts.entry(link.parent).or_default() += 1;
    }
    counts
}

fn smallest_of_cycle(links: &Links, from: NodeId) -> NodeId {
    let (mut smallest, mut at) = (from, from);
    while let Some(parent) = links.get(&at).and_then(|link| link.parent) {
        if parent == from {
            break;
        }
        at = parent;
        smallest = smallest.min(at);
    }
    smallest
}
