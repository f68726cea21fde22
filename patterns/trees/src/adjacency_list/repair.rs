//! Repair: derives entries, counts and names from the records of nodes, and lost records from child
//! entries.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, MAX_KEY_BYTES, Order, Reader, Result, Snapshots, Store, Writer};
use keyloom_kit::{Inconsistency, Progress, Rule, repair_each};

use super::AdjacencyList;
use super::check::AT_ONCE;
use super::link::{Link, TOMBSTONE};
use crate::rank::Rank;
use crate::tree::{ONE, Stages, placeholder};
use crate::{InsertAt, NodeId, TreeError, TreeNode};

/// The number of characters of a name that are kept when its id is appended, so that the key fits.
const SHORT_CHARS: usize = 60;

/// A node whose record cannot be read; its link and the offset of its stored bytes, if the link can
/// be read.
type Damaged = (NodeId, Option<(Link, usize)>);
/// A child: its parent, its name, its rank, its id.
type Named = (Option<NodeId>, String, Rank, NodeId);

impl<V: 'static, C: Codec<V>> AdjacencyList<V, C> {
    /// Repairs in this order: deletions in steps, which are completed; unreadable records, from
    /// their child entries or by placeholders; paths that do not lead to a root; names that two
    /// siblings share; entries and names, derived from the records; counts, derived from the
    /// entries. Each fault is checked again in the transaction that repairs it, so other writers
    /// may run concurrently.
    pub(super) fn fix<S: Store>(&self, store: &S, stages: &mut Stages<'_>) -> Result<()> {
        stages.run(|_, report| {
            let written = self.mark_tombstones(store)?;
            self.resume(store, Progress { written, ..Progress::default() }, report)
        })?;
        stages.run(|options, report| {
            let lost = self.entries_to_restore(&Snapshots::lasting(store))?;
            repair_each(store, options, report, &lost, |txn, key| {
                self.restore_from_entry(txn, key).map(u64::from)
            })
        })?;
        stages.run(|options, report| {
            let lost = self.records_to_replace(&Snapshots::lasting(store))?;
            repair_each(store, options, report, &lost, |txn, key| {
                self.write_placeholder(txn, key).map(u64::from)
            })
        })?;
        stages.run(|_, report| {
            let lost = {
                let snapshot = Snapshots::lasting(store);
                self.without_way_up(&self.links(&snapshot)?, &self.leaving(&snapshot)?)
            };
            repair_each(store, &ONE, report, &lost, |txn, (id, _)| self.make_a_root(txn, *id))
        })?;
        stages.run(|options, report| {
            let twice = self.twice_named(&Snapshots::lasting(store))?;
            repair_each(store, options, report, &twice, |txn, id| self.make_distinct(txn, *id))
        })?;
        // Repair entries before names, because names are looked up in the entries; then repair
        // counts.
        [false, true].into_iter().try_for_each(|of_counts| {
            stages.run(|options, report| {
                let faults = self.faults_to_fix(&Snapshots::lasting(store), of_counts)?;
                repair_each(store, options, report, &faults, |txn, key| {
                    self.fix_one(txn, key).map(u64::from)
                })
            })
        })
    }

    /// The keys of the faults of counts, or of all other faults.
    fn faults_to_fix(&self, reader: &impl Reader, of_counts: bool) -> Result<Vec<KeyBuf>> {
        let mut keys: Vec<KeyBuf> = Vec::new();
        self.report_faults(reader, |found: Inconsistency| {
            if self.counts.contains(&found.key) == of_counts {
                keys.push(found.key);
            }
            ControlFlow::Continue(())
        })?;
        keys.sort();
        Ok(keys)
    }

    /// The child entries of nodes whose record is missing or cannot be read, and keys that are not
    /// entries.
    fn entries_to_restore(&self, reader: &impl Reader) -> Result<Vec<KeyBuf>> {
        let mut lost = Vec::new();
        let mut entries = reader.range(self.children.range(), Order::Ascending)?;
        loop {
            let some = entries.by_ref().take(AT_ONCE).collect::<Result<Vec<_>>>()?;
            if some.is_empty() {
                return Ok(lost);
            }
            let mut parsed = Vec::new();
            for (key, stored) in &some {
                match self.parse_child(key) {
                    Some((_, id)) => parsed.push((key, stored, id)),
                    None => lost.push(KeyBuf::from_slice(key)),
                }
            }
            let keys: Vec<KeyBuf> = parsed.iter().map(|(.., id)| self.node_key(*id)).collect();
            for ((key, stored, id), record) in parsed.into_iter().zip(reader.get_many(&keys)?) {
                if self.is_better(id, stored, record.as_deref()) {
                    lost.push(KeyBuf::from_slice(key));
                }
            }
        }
    }

    /// Writes a lost or damaged record from the child entry, which holds the same data. If the
    /// value of the entry cannot be read, its key still contains the place of the node: a
    /// placeholder is written there.
    fn restore_from_entry(&self, txn: &mut impl Writer, entry: &[u8]) -> Result<bool> {
        let Some(stored) = txn.get(entry)?.map(|stored| stored.to_vec()) else { return Ok(false) };
        let Some((link, id)) = self.parse_child(entry).filter(|(link, _)| link.fits()) else {
            txn.delete(entry)?;
            return Ok(true);
        };
        let key = self.node_key(id);
        let record = txn.get(&key)?.map(|record| record.to_vec());
        let is_named = TreeNode::<_, V, C>::new(id, &stored[..], 0).is_named();
        // Without a record and a readable entry, a node exists only if the id has children.
        if record.is_none() && !is_named && txn.first(self.entries_of(Some(id)))?.is_none() {
            return Ok(false);
        }
        let is_better = self.is_better(id, &stored, record.as_deref());
        if is_better {
            let stored = if is_named { stored } else { placeholder(id, &stored) };
            txn.put(&key, &link.record(&stored))?;
        }
        Ok(is_better)
    }

    /// Whether the child entry of a node is more readable than its record. The key of the entry
    /// always contains the place of the node.
    fn is_better(&self, id: NodeId, stored: &[u8], record: Option<&[u8]>) -> bool {
        let fault = |stored: &[u8]| TreeNode::<_, V, C>::new(id, stored, 0).fault();
        let Some(record) = record else { return true };
        let Some((_, _, from)) = self.decode(&self.node_key(id), record) else { return true };
        match fault(record.get(from..).unwrap_or_default()) {
            None => false,
            Some(Rule::Undecodable) => fault(stored).is_none(),
            Some(_) => fault(stored) != Some(Rule::Foreign),
        }
    }

    /// Records that cannot be read and have no readable child entry. Placeholders replace such
    /// records.
    fn records_to_replace(&self, reader: &impl Reader) -> Result<Vec<KeyBuf>> {
        let mut lost = Vec::new();
        for entry in reader.range(self.nodes.range(), Order::Ascending)? {
            let (key, record) = entry?;
            if self.needs_placeholder(&key, &record).is_some() {
                lost.push(KeyBuf::from_slice(&key));
            }
        }
        Ok(lost)
    }

    /// The node of a record whose name cannot be read, and its place if the place can be read.
    fn needs_placeholder(&self, key: &[u8], record: &[u8]) -> Option<Damaged> {
        let id = self.nodes.unpack(key).ok()?;
        if *record == TOMBSTONE {
            return None;
        }
        let Some((_, link, from)) = self.decode(key, record) else { return Some((id, None)) };
        let stored = record.get(from..).unwrap_or_default();
        let is_named = TreeNode::<_, V, C>::new(id, stored, 0).is_named();
        (!is_named).then_some((id, Some((link, from))))
    }

    fn write_placeholder(&self, txn: &mut impl Writer, key: &[u8]) -> Result<bool> {
        let Some(record) = txn.get(key)?.map(|record| record.to_vec()) else { return Ok(false) };
        let Some((id, place)) = self.needs_placeholder(key, &record) else { return Ok(false) };
        match place {
            Some((link, from)) => {
                let stored = placeholder(id, record.get(from..).unwrap_or_default());
                txn.put(key, &link.record(&stored))?;
            }
            // The old place of the node is unknown.
            None => self.write_last_root(txn, id, &placeholder(id, &record))?,
        }
        Ok(true)
    }

    /// The children whose name another sibling keeps, if names are unique.
    fn twice_named(&self, reader: &impl Reader) -> Result<Vec<NodeId>> {
        if !self.unique_names {
            return Ok(Vec::new());
        }
        let mut nodes: Vec<Named> = Vec::new();
        for entry in reader.range(self.nodes.range(), Order::Ascending)? {
            let (key, record) = entry?;
            let Some((id, link, from)) = self.decode(&key, &record) else { continue };
            let node = TreeNode::<_, V, C>::new(id, record.get(from..).unwrap_or_default(), 0);
            if let Ok(name) = node.name() {
                nodes.push((link.parent, name.to_owned(), link.rank, id));
            }
        }
        nodes.sort_unstable();
        let mut twice = Vec::new();
        for same in nodes.chunk_by(|one, other| (one.0, &one.1) == (other.0, &other.1)) {
            let keeper = self.keeper_of_name(reader, same)?;
            twice.extend(same.iter().map(|(.., id)| *id).filter(|id| Some(*id) != keeper));
        }
        Ok(twice)
    }

    /// Appends the id to the name of a child.
    fn make_distinct(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
        let Some((link, node)) = self.find(txn, id)? else { return Ok(0) };
        let short: String = node.name()?.chars().take(SHORT_CHARS).collect();
        let stored = node.renamed(&format!("{short} ({id})"))?;
        drop(node);
        self.write(txn, id, &link, &stored)?;
        Ok(1)
    }

    /// Returns which of the children with the same name keeps the name: the first child whose child
    /// entry is at the place in its record, since the records of the other children are damaged.
    /// Returns `None` if the name makes a key that is too long.
    fn keeper_of_name(&self, reader: &impl Reader, same: &[Named]) -> Result<Option<NodeId>> {
        let Some((parent, name, _, first)) = same.first() else { return Ok(None) };
        if self.name_key(*parent, name).len() > MAX_KEY_BYTES {
            return Ok(None);
        }
        if same.len() > 1 {
            for (parent, _, rank, id) in same {
                let link = Link { parent: *parent, rank: rank.clone() };
                if reader.get(&self.child_key(&link, *id))?.is_some() {
                    return Ok(Some(*id));
                }
            }
        }
        Ok(Some(*first))
    }

    /// Makes a node the last root, unless its path now leads to a root.
    fn make_a_root(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
        let Some((old, node)) = self.find(txn, id)? else { return Ok(0) };
        let stored = node.stored().to_vec();
        drop(node);
        match self.walk_up(txn, id) {
            Ok(_) => return Ok(0),
            Err(error) if is_broken(&error) => {}
            Err(error) => return Err(error),
        }
        txn.delete(&self.child_key(&old, id))?;
        self.write_last_root(txn, id, &stored)?;
        // Names and counts are repaired afterwards.
        Ok(3)
    }

    fn write_last_root(&self, txn: &mut impl Writer, id: NodeId, stored: &[u8]) -> Result<()> {
        let gap = self.gap(txn, Some(id), "", InsertAt::Last(None), None)?;
        let mut room = self.room(txn, &gap, 1, Some(id), &txn.limits())?;
        let link = Link { parent: None, rank: room.ranks.pop().unwrap_or_default() };
        self.write(txn, id, &link, stored)?;
        self.write_again(txn, None, &room)
    }

    /// Sets one key to its expected value. Returns false if the value of the key cannot be derived.
    fn fix_one(&self, txn: &mut impl Writer, key: &[u8]) -> Result<bool> {
        // Other keys cannot be derived: a record that does not decode, or foreign data.
        if ![&self.children, &self.counts, &self.names].iter().any(|space| space.contains(key)) {
            return Ok(false);
        }
        let value = match self.parse_child(key) {
            Some((link, id)) => self.entry_of(txn, &link, id)?,
            None if self.counts.contains(key) => self.count_of(txn, key)?,
            None => self.name_of(txn, key)?,
        };
        match value {
            Some(value) => txn.put(key, &value)?,
            None => txn.delete(key)?,
        }
        Ok(true)
    }

    fn entry_of(&self, reader: &impl Reader, link: &Link, id: NodeId) -> Result<Option<Vec<u8>>> {
        let key = self.node_key(id);
        let Some(record) = reader.get(&key)? else { return Ok(None) };
        let found = self.decode(&key, &record).filter(|(_, found, _)| found == link);
        Ok(found.map(|(_, _, from)| record.get(from..).unwrap_or_default().to_vec()))
    }

    fn count_of(&self, reader: &impl Reader, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Ok((parent,)) = self.counts.unpack::<(Option<NodeId>,)>(key) else { return Ok(None) };
        let is_known = match parent {
            Some(parent) => {
                let key = self.node_key(parent);
                match reader.get(&key)? {
                    Some(record) => self.decode(&key, &record).is_some(),
                    None => false,
                }
            }
            None => true,
        };
        let count = reader.count(self.entries_of(parent))?;
        Ok((is_known && count > 0).then(|| count.to_le_bytes().to_vec()))
    }

    /// The first child with the name; if two children have the name, the first one owns the entry.
    fn name_of(&self, reader: &impl Reader, key: &[u8]) -> Result<Option<Vec<u8>>> {
        type Name<'k> = (Option<NodeId>, std::borrow::Cow<'k, str>);
        let Ok((parent, name)) = self.names.unpack::<Name<'_>>(key) else { return Ok(None) };
        if !self.unique_names {
            return Ok(None);
        }
        let children = self.siblings(reader, parent, None, Order::Ascending, None)?;
        for child in children {
            let (sibling, stored) = child?;
            let node = TreeNode::<_, V, C>::new(sibling.id, stored, 0);
            if node.name().is_ok_and(|own| own == name) {
                return Ok(Some(keyloom::pack(&sibling.id).to_vec()));
            }
        }
        Ok(None)
    }
}

/// Whether a path ended because of a fault in the tree, not in the store.
fn is_broken(error: &Error) -> bool {
    let does_not_decode = |error: &Error| matches!(error, Error::At { source, .. } if matches!(**source, Error::Value { .. }));
    error.downcast_ref::<TreeError>().is_some() || does_not_decode(error)
}
