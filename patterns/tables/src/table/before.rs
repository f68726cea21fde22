//! The reads before a write: the old records, and which derived data to maintain.

use std::ops::Deref;

use keyloom::value::Codec;
use keyloom::{DynWriter, Error, KeyRange, Reader, Result, Writer};
use keyloom_kit::derived::LostRecords;
use keyloom_kit::{RecordKey, get_many};
use smallvec::{SmallVec, smallvec};

use super::Table;
use super::changes::Change;
use super::followed::{EntryBytes, Follow, Followed};
use super::queue::{Queued, are_queued, queue_key};

impl<K: RecordKey, V, C: Codec<V>> Table<K, V, C> {
    /// Reads the old records of `changes`, and determines which derived data must be maintained, in
    /// one round trip. The list of old records is empty if there are none or if nothing depends on
    /// them. If an old record does not decode, the data derived from it is removed.
    pub(super) fn replaced_by(
        &self,
        txn: &mut impl Writer,
        changes: &[Change<'_, K, V>],
    ) -> Result<Before<Met<V>, K, V>> {
        let is_bare = self.upkeep.is_bare();
        let does_not_matter = is_bare && changes.iter().all(|c| c.new.is_some());
        // Another thread may meanwhile declare derived data that needs the old records.
        let refuse_declared = |followed: &[Follow<K, V>]| match is_bare && !followed.is_empty() {
            true => Err(Error::Conflict { what: "a declaration of derived data".into() }),
            false => Ok(()),
        };
        if does_not_matter || Self::is_free(txn, changes)? {
            let followed = self.follow(txn)?;
            refuse_declared(&followed)?;
            return Ok((SmallVec::new(), followed, Queued::new()));
        }
        let followed = self.remembered(txn).transpose()?;
        let is_read = followed.is_some();
        let (stored, entry, queued) = self.read_before(txn, changes, is_read)?;
        let (met, lost) = if is_bare {
            let met = |bytes: Option<_>| bytes.map_or(Met::Nothing, |_| Met::Unknown);
            (stored.into_iter().map(met).collect(), Vec::new())
        } else {
            Self::met(changes, stored)?
        };
        let followed = match followed {
            Some(followed) => followed,
            None => self.remember(txn, entry)?,
        };
        refuse_declared(&followed)?;
        self.forget(txn, lost, &followed, &queued)?;
        Ok((met, followed, queued))
    }

    /// The decoded old records of the changes, and the changes whose old record does not decode.
    fn met<'c, B: Deref<Target = [u8]>>(
        changes: &'c [Change<'c, K, V>],
        stored: Stored<B>,
    ) -> Result<(AllMet<V>, AllLost<'c, K, V>)> {
        let (mut met, mut lost) = (SmallVec::with_capacity(changes.len()), Vec::new());
        for (change, bytes) in changes.iter().zip(stored) {
            let record = bytes.map(|bytes| C::decode(&bytes)).transpose();
            met.push(match record {
                Ok(record) => Met::of(record),
                Err(error @ Error::Value { .. }) => {
                    lost.push((change, error));
                    Met::Unknown
                }
                Err(error) => return Err(error.at(change.packed)),
            });
        }
        Ok((met, lost))
    }

    /// Reads the bytes of the old records of the changes, and whether each record is queued. Also
    /// reads the bytes of the table's entry in the schema, unless `is_read` says that it was read
    /// before. Costs one round trip.
    fn read_before<'r, R: Reader>(
        &self,
        txn: &'r R,
        changes: &[Change<'_, K, V>],
        is_read: bool,
    ) -> Result<(Stored<R::Bytes<'r>>, Option<EntryBytes>, Queued)> {
        let entry = self.upkeep.entry().filter(|_| !is_read);
        let queue_keys = self.queue_keys(changes);
        if entry.is_none() && queue_keys.is_empty() {
            let stored = match changes {
                [one] => smallvec![txn.get(one.packed)?],
                many => get_many(txn, many)?.into(),
            };
            return Ok((stored, None, Queued::new()));
        }
        let mut keys: SmallVec<[&[u8]; 2]> = changes.iter().map(|change| change.packed).collect();
        keys.extend(queue_keys.iter().map(|key| &**key));
        keys.extend(entry.map(|key| &**key));
        let mut stored: Stored<R::Bytes<'r>> = txn.get_many(&keys)?.into();
        let entry = entry.and_then(|_| stored.pop().flatten());
        let entry = entry.map(|bytes| self.upkeep.entry_bytes(&bytes));
        let is_queued: Vec<bool> =
            stored.drain(changes.len()..).map(|queued| queued.is_some()).collect();
        std::mem::drop(keys);
        Ok((stored, entry, queue_keys.into_iter().zip(is_queued).collect()))
    }

    /// Removes the data derived from records that do not decode, or fails with the error of the
    /// first record whose derived data cannot be removed.
    ///
    /// Deferred data of a queued record is not removed here. Such data reflects the record as of
    /// the last drain, and the queue holds that old value, so the next drain can remove the data.
    fn forget(
        &self,
        txn: &mut impl Writer,
        mut lost: AllLost<'_, K, V>,
        followed: &[Follow<K, V>],
        queued: &Queued,
    ) -> Result<()> {
        if lost.is_empty() {
            return Ok(());
        }
        for follow in followed {
            let packed = lost.iter().map(|(change, _)| change.packed);
            let is_queued: Vec<bool> = match &follow.queue {
                None => vec![false; lost.len()],
                Some(queue) => {
                    let keys = packed.map(|key| queue_key(queue, &self.space, key));
                    are_queued(txn, &keys.collect::<Vec<_>>(), queued)?
                }
            };
            // A build has not added the records after its position.
            let visited = follow.visited();
            let is_added = |packed: &[u8]| visited.is_none_or(|last| *packed <= last[..]);
            let unknown = lost
                .iter()
                .enumerate()
                .zip(is_queued)
                .filter(|((_, (change, _)), is_queued)| !is_queued && is_added(change.packed));
            let (places, keys): (Vec<usize>, Vec<&K>) =
                unknown.map(|((place, (change, _)), _)| (place, change.key)).unzip();
            let Some(first) = places.first() else { continue };
            let keys = LostRecords::new(keys.into_iter());
            if !follow.derived.forget(&mut DynWriter::new(txn), &keys)? {
                let (change, source) = lost.swap_remove(*first);
                return Err(Error::other(Undecodable { source }).at(change.packed));
            }
        }
        Ok(())
    }

    /// Whether there is no old record between the first and the last key of a large batch. If so,
    /// this one read replaces the gets. Returns `false` for smaller batches without reading.
    fn is_free(txn: &impl Writer, changes: &[Change<'_, K, V>]) -> Result<bool> {
        let [first, .., last] = changes else { return Ok(false) };
        if changes.len() < MANY {
            return Ok(false);
        }
        let between = KeyRange::starting_at(first.packed).intersect(KeyRange::through(last.packed));
        Ok(txn.first(between)?.is_none())
    }
}

/// Minimum batch size for the emptiness probe, which costs a round trip.
const MANY: usize = 4_096;

/// The bytes of the old records of some changes.
pub(super) type Stored<B> = SmallVec<[Option<B>; 1]>;

/// The old records of some changes.
pub(super) type AllMet<V> = SmallVec<[Met<V>; 1]>;

/// The changes whose old record does not decode, each with the error.
pub(super) type AllLost<'c, K, V> = Vec<(&'c Change<'c, K, V>, Error)>;

/// The old record of each change (or an empty list if there are none), the derived data to
/// maintain, and which records are queued.
pub(super) type Before<T, K, V> = (SmallVec<[T; 1]>, Followed<K, V>, Queued);

/// The old record of a change.
#[derive(Clone, Copy)]
pub(super) enum Met<V> {
    Nothing,
    Record(V),
    /// The record does not decode, or was not decoded.
    Unknown,
}

impl<V> Met<V> {
    pub(super) fn of(record: Option<V>) -> Self {
        record.map_or(Self::Nothing, Self::Record)
    }

    pub(super) fn as_ref(&self) -> Met<&V> {
        match self {
            Self::Nothing => Met::Nothing,
            Self::Record(record) => Met::Record(record),
            Self::Unknown => Met::Unknown,
        }
    }

    pub(super) fn record(self) -> Option<V> {
        match self {
            Self::Record(record) => Some(record),
            Self::Nothing | Self::Unknown => None,
        }
    }
}

/// The old record does not decode, so the data derived from the record cannot be updated.
///
/// Remove the record with [`Table::delete_without_derived`], and repair the derived data.
#[derive(Debug, thiserror::Error)]
#[error(
    "{source}; the derived data of the table cannot be updated without the old record: \
     remove it with `delete_without_derived`, and repair the derived data"
)]
pub struct Undecodable {
    source: Error,
}
