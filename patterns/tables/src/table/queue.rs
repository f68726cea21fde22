//! The queues of deferred data.

use std::collections::BTreeMap;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Reader, Result, Subspace};
use keyloom_kit::derived::{RecordChange, SortedWrites};
use keyloom_kit::{RecordKey, get_many};

use super::Table;
use super::changes::Change;
use super::upkeep::Upkeep;

/// The keys in queues that were read, and whether each key exists.
pub(super) type Queued = BTreeMap<KeyBuf, bool>;

/// Whether each record is queued. Reads the keys only if one of them is not in `known`.
pub(super) fn are_queued(
    reader: &impl Reader,
    keys: &[KeyBuf],
    known: &Queued,
) -> Result<Vec<bool>> {
    match keys.iter().map(|key| known.get(key).copied()).collect() {
        Some(all) => Ok(all),
        None => Ok(get_many(reader, keys)?.iter().map(Option::is_some).collect()),
    }
}

impl<K: RecordKey, V, C: Codec<V>> Table<K, V, C> {
    /// The keys of the changed records in the queues of the deferred data that the program
    /// declares.
    pub(super) fn queue_keys(&self, changes: &[Change<'_, K, V>]) -> Vec<KeyBuf> {
        let Upkeep::Owned(owned) = &self.upkeep else { return Vec::new() };
        let keys = |queue: Subspace| {
            changes.iter().map(move |change| queue_key(&queue, &self.space, change.packed))
        };
        owned.queues().into_iter().flat_map(keys).collect()
    }

    /// Queues the old values of the changed records, except for records that are already queued.
    pub(super) fn queue(
        &self,
        txn: &impl Reader,
        queue: &Subspace,
        changes: &[RecordChange<'_, K, V>],
        queued: &Queued,
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let keys = changes.iter().map(|change| queue_key(queue, &self.space, change.stored_key));
        let keys: Vec<KeyBuf> = keys.collect();
        for ((key, change), is_queued) in
            keys.iter().zip(changes).zip(are_queued(txn, &keys, queued)?)
        {
            if !is_queued {
                writes.put_with(key, |bytes| {
                    let encode =
                        |old: &V, bytes: &mut Vec<u8>| Self::encode(change.stored_key, old, bytes);
                    write_queued(change.old, encode, bytes)
                })?;
            }
        }
        Ok(())
    }
}

/// The format of the entries of a queue: format, whether there was a record (0 or 1), the record.
pub(crate) const QUEUE_FORMAT: u8 = 1;

/// The key of a record in a queue.
pub(crate) fn queue_key(queue: &Subspace, table: &Subspace, record: &[u8]) -> KeyBuf {
    let mut key = KeyBuf::from_slice(queue.prefix());
    key.extend_from_slice(record.get(table.prefix().len()..).unwrap_or_default());
    key
}

/// Encodes the value of an entry of a queue.
pub(crate) fn write_queued<V>(
    record: Option<&V>,
    encode: impl FnOnce(&V, &mut Vec<u8>) -> Result<()>,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    bytes.extend_from_slice(&[QUEUE_FORMAT, u8::from(record.is_some())]);
    record.map_or(Ok(()), |record| encode(record, bytes))
}
