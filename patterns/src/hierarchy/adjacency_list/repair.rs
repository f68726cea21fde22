//! Making what can be derived what the records of the nodes say, and records that are lost what their child entries say.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, Order, Reader, Result, Store, Writer};

use super::AdjacencyList;
use super::check::AT_ONCE;
use super::link::Link;
use crate::BatchSize;
use crate::hierarchy::{NodeId, Place, TreeError, TreeInconsistency, TreeNode, TreeRule};

/// How many findings are mended in one transaction.
const BATCH: usize = 500;

impl<V: 'static, C: Codec<V>> AdjacencyList<V, C> {
    /// First records of which only the child entry is left, then ways up that lead nowhere, then entries and names, which
    /// follow from the records, then counts, which follow from the entries. Each finding is looked at again in the
    /// transaction that mends it, so others may write meanwhile.
    pub(super) fn mend<S: Store>(&self, store: &S) -> Result<u64> {
        let mut size = BatchSize::new(BATCH);
        let mut written = self.restore_records(store, &mut size)?;
        let lost: Vec<(NodeId, TreeRule)> = {
            let snapshot = store.snapshot()?;
            self.without_way_up(&self.links(&snapshot)?)
        };
        for (id, _) in lost {
            written += store.transact(|txn| self.make_a_root(txn, id))?;
        }
        for of_counts in [false, true] {
            let mut keys: Vec<KeyBuf> = Vec::new();
            let note = |found: TreeInconsistency| {
                if self.counts.contains(&found.key) == of_counts {
                    keys.push(found.key);
                }
                ControlFlow::Continue(())
            };
            self.look_through(&store.snapshot()?, note)?;
            // Entries before names, which are looked for among them.
            keys.sort();
            let mut rest = keys.as_slice();
            while !rest.is_empty() {
                let (behind, done) = size.transact(store, |txn, batch| {
                    let (some, behind) = rest.split_at(batch.min(rest.len()));
                    let mut done = 0;
                    for key in some {
                        done += u64::from(self.mend_one(txn, key)?);
                    }
                    Ok((behind, done))
                })?;
                rest = behind;
                written += done;
            }
        }
        Ok(written)
    }

    /// Writes the records that are lost or damaged from the child entries, which hold all that they held.
    fn restore_records<S: Store>(&self, store: &S, size: &mut BatchSize) -> Result<u64> {
        let lost = self.entries_without_record(&store.snapshot()?)?;
        let mut restored = 0;
        let mut rest = lost.as_slice();
        while !rest.is_empty() {
            let (behind, done) = size.transact(store, |txn, batch| {
                let (some, behind) = rest.split_at(batch.min(rest.len()));
                let mut done = 0;
                for (entry, link, id) in some {
                    done += u64::from(self.restore_record(txn, entry, link, *id)?);
                }
                Ok((behind, done))
            })?;
            rest = behind;
            restored += done;
        }
        Ok(restored)
    }

    /// The child entries of nodes whose records are not there, or can not be read.
    fn entries_without_record(&self, reader: &impl Reader) -> Result<Vec<(KeyBuf, Link, NodeId)>> {
        let mut lost = Vec::new();
        let mut entries = reader.range(self.children.range(), Order::Ascending)?;
        loop {
            let some = entries.by_ref().take(AT_ONCE).collect::<Result<Vec<_>>>()?;
            if some.is_empty() {
                return Ok(lost);
            }
            let parsed = some.iter().filter_map(|(key, stored)| {
                let (link, id) = self.parse_child(key)?;
                Some((KeyBuf::from_slice(key), link, id, stored))
            });
            let parsed: Vec<_> = parsed.collect();
            let keys: Vec<KeyBuf> = parsed.iter().map(|(.., id, _)| self.node_key(*id)).collect();
            for ((entry, link, id, stored), record) in
                parsed.into_iter().zip(reader.get_many(&keys)?)
            {
                if self.is_lost(id, record.as_deref(), stored)? {
                    lost.push((entry, link, id));
                }
            }
        }
    }

    fn restore_record(
        &self,
        txn: &mut impl Writer,
        entry: &[u8],
        link: &Link,
        id: NodeId,
    ) -> Result<bool> {
        let key = self.node_key(id);
        let Some(stored) = txn.get(entry)?.map(|stored| stored.to_vec()) else { return Ok(false) };
        let is_lost = self.is_lost(id, txn.get(&key)?.as_deref(), &stored)? && link.fits();
        if is_lost {
            txn.put(&key, &link.record(&stored))?;
        }
        Ok(is_lost)
    }

    /// Whether a record can not be read, and what its child entry holds can.
    fn is_lost(&self, id: NodeId, record: Option<&[u8]>, stored: &[u8]) -> Result<bool> {
        let key = self.node_key(id);
        let is_whole = |stored: &[u8]| {
            let node = TreeNode::<_, V, C>::new(id, stored, 0);
            node.is_readable().map_err(|error| error.at(&key))
        };
        if let Some(record) = record
            && let Some((_, _, from)) = self.decode(&key, record)?
            && is_whole(record.get(from..).unwrap_or_default())?
        {
            return Ok(false);
        }
        is_whole(stored)
    }

    /// Makes a node the last root, unless its way up has come to lead to one.
    fn make_a_root(&self, txn: &mut impl Writer, id: NodeId) -> Result<u64> {
        let Some((old, node)) = self.find(txn, id)? else { return Ok(0) };
        let stored = node.stored().to_vec();
        drop(node);
        match self.walk_up(txn, id) {
            Ok(_) => return Ok(0),
            Err(error) if is_broken(&error) => {}
            Err(error) => return Err(error),
        }
        let gap = self.gap(txn, Some(id), "", Place::Last(None), None)?;
        let mut room = self.room(txn, &gap, 1, Some(id))?;
        let link = Link { parent: None, rank: room.ranks.pop().unwrap_or_default() };
        txn.delete(&self.child_key(&old, id))?;
        self.write(txn, id, &link, &stored)?;
        self.write_anew(txn, None, &room)?;
        // Names and counts are looked at behind this.
        Ok(3)
    }

    /// Makes one key what it should be; whether that was a write.
    fn mend_one(&self, txn: &mut impl Writer, key: &[u8]) -> Result<bool> {
        // Else it is a record that does not decode, and nobody has what it held; or it is somebody else's.
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
        let found = self.decode(&key, &record)?.filter(|(_, found, _)| found == link);
        Ok(found.map(|(_, _, from)| record.get(from..).unwrap_or_default().to_vec()))
    }

    fn count_of(&self, reader: &impl Reader, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Ok((parent,)) = self.counts.unpack::<(Option<NodeId>,)>(key) else { return Ok(None) };
        let is_known = match parent {
            Some(parent) => {
                let key = self.node_key(parent);
                match reader.get(&key)? {
                    Some(record) => self.decode(&key, &record)?.is_some(),
                    None => false,
                }
            }
            None => true,
        };
        let count = reader.count(self.entries_of(parent))?;
        Ok((is_known && count > 0).then(|| count.to_le_bytes().to_vec()))
    }

    /// The first child of the name, which has it where two do.
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

/// Whether a way up ended for something that is wrong in the tree, and not in the store.
fn is_broken(error: &Error) -> bool {
    let does_not_decode = |error: &Error| matches!(error, Error::At { source, .. } if matches!(**source, Error::Value { .. }));
    error.downcast_ref::<TreeError>().is_some() || does_not_decode(error)
}
