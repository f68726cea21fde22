//! Maintenance of unique indexes.

use std::collections::BTreeMap;

use keyloom::{KeyBuf, Reader, Result};
use keyloom_kit::derived::{RecordChange, SortedWrites};
use keyloom_kit::parts::AnyParts;
use keyloom_kit::{RecordKey, get_many, pack_one};

use super::error::NotUnique;
use super::found::no_entry;
use super::maintain::Header;
use super::{Index, IndexEntries, IndexError};

/// The current value of a key, and its value after the changes.
struct Place {
    there: Option<Vec<u8>>,
    wanted: Option<Vec<u8>>,
}

/// The keys that some changes affect.
type Places = BTreeMap<KeyBuf, Place>;

/// The change of the entries of one record.
struct Step {
    record_key: KeyBuf,
    old: IndexEntries<AnyParts>,
    new: IndexEntries<AnyParts>,
}

impl<K: RecordKey, V> Index<K, V, AnyParts> {
    /// Maintains a unique index: reads every entry that these changes add or remove, and writes
    /// only if all changes are allowed.
    pub(super) fn take_values(
        &self,
        txn: &impl Reader,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let mut steps = Vec::new();
        for change in changes {
            let old = self.entries_of(change.key, change.old);
            let new = self.new_entries(change)?;
            if old != new {
                let record_key = pack_one(change.key);
                self.check_lengths(&new, &record_key)?;
                steps.push(Step { record_key, old, new });
            }
        }
        let mut places = self.places(txn, &steps)?;
        // A record may take a value that another record gives up in the same call, in any order.
        steps.iter().try_for_each(|step| self.give_up(step, &mut places))?;
        steps.iter().try_for_each(|step| self.take(step, &mut places))?;
        let changed = places.iter().filter(|(_, place)| place.there != place.wanted);
        changed.into_iter().try_for_each(|(key, place)| writes.push(key, place.wanted.as_deref()))
    }

    /// The current values of the entries that are added or removed. Costs one round trip.
    fn places(&self, reader: &impl Reader, steps: &[Step]) -> Result<Places> {
        let mut keys = Vec::new();
        for Step { record_key, old, new } in steps {
            self.difference(record_key, old, new, |key, _| {
                keys.push(KeyBuf::from_slice(key));
                Ok(())
            })?;
        }
        keys.sort_unstable();
        keys.dedup();
        let there = get_many(reader, &keys)?;
        let there = there.into_iter().map(|value| value.map(|value| value.to_vec()));
        let places = there.map(|value| Place { wanted: value.clone(), there: value });
        Ok(keys.into_iter().zip(places).collect())
    }

    /// Plans the removal of old entries.
    fn give_up(&self, step: &Step, places: &mut Places) -> Result<()> {
        self.difference(&step.record_key, &step.old, &step.new, |key, value| {
            let Some(place) = places.get_mut(key).filter(|_| value.is_none()) else {
                return Ok(());
            };
            let other = self.other_holder(key, place.wanted.as_deref(), &step.record_key)?;
            // An entry of another record stays, even if the old value of this record has the same
            // parts.
            if other.is_none() {
                place.wanted = None;
            }
            Ok(())
        })
    }

    /// Plans the writes of new entries.
    fn take(&self, step: &Step, places: &mut Places) -> Result<()> {
        self.difference(&step.record_key, &step.old, &step.new, |key, value| {
            let (Some(place), Some(value)) = (places.get_mut(key), value) else { return Ok(()) };
            match self.other_holder(key, place.wanted.as_deref(), &step.record_key)? {
                None => place.wanted = Some(value.to_vec()),
                Some(holder) => {
                    let parts = key.get(self.space.prefix().len()..).unwrap_or_default();
                    let taken = self.not_unique(parts, &step.record_key, holder);
                    return Err(IndexError::NotUnique(Box::new(taken)).into());
                }
            }
            Ok(())
        })
    }

    /// The packed key of the record that holds an entry. `None` if there is no entry, or
    /// `record_key` holds the entry.
    ///
    /// # Errors
    /// [`Error::At`](keyloom::Error::At) if the entry cannot be read: no record may replace such an
    /// entry before a repair.
    fn other_holder<'v>(
        &self,
        key: &'v [u8],
        there: Option<&'v [u8]>,
        record_key: &[u8],
    ) -> Result<Option<&'v [u8]>> {
        let Some(value) = there else { return Ok(None) };
        let header = Header::read(&self.space, key, value).ok_or_else(|| no_entry(key))?;
        Ok(Some(header.record_key(key, value)).filter(|holder| *holder != record_key))
    }

    #[cold]
    pub(crate) fn not_unique(&self, parts: &[u8], record: &[u8], holder: &[u8]) -> NotUnique {
        NotUnique {
            name: self.space.named(),
            index: self.space.clone(),
            parts: KeyBuf::from_slice(parts),
            record: KeyBuf::from_slice(record),
            holder: KeyBuf::from_slice(holder),
        }
    }
}
