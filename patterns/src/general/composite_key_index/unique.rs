//! Values that only one record may have.

use std::collections::BTreeMap;

use keyloom::{DynWriter, KeyBuf, Reader, Result, Writer};

use super::error::NotUnique;
use super::maintain::{Header, pack_one};
use super::{Index, IndexEntries, IndexError};
use crate::derived::RecordChange;
use crate::table::{RecordKey, get_many};

/// What is stored under a key now, and what should be there in the end.
struct Place {
    there: Option<Vec<u8>>,
    wanted: Option<Vec<u8>>,
}

/// The places that some changes are about.
type Places = BTreeMap<KeyBuf, Place>;

/// How a record changes in the index.
struct Step {
    record_key: KeyBuf,
    old: IndexEntries,
    new: IndexEntries,
}

impl<K: RecordKey, V> Index<K, V> {
    /// Maintains a unique index: looks at every entry that appears or disappears, in this transaction,
    /// and writes when all of them may.
    pub(super) fn take_values(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
    ) -> Result<()> {
        let mut steps = Vec::new();
        for change in changes {
            let old = self.entries_of(change.key, change.old);
            let new = self.entries_of(change.key, change.new);
            if old != new {
                let record_key = pack_one(change.key);
                self.check_lengths(&new, &record_key)?;
                steps.push(Step { record_key, old, new });
            }
        }
        let mut places = self.places(txn, &steps)?;
        steps.iter().try_for_each(|step| self.take(step, &mut places))?;
        for (key, place) in places.iter().filter(|(_, place)| place.there != place.wanted) {
            match &place.wanted {
                Some(value) => txn.put(key, value)?,
                None => txn.delete(key)?,
            }
        }
        Ok(())
    }

    /// The places of the entries that appear or disappear. Costs one round trip.
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

    /// Takes the step in mind; the places say what it comes to.
    fn take(&self, step: &Step, places: &mut Places) -> Result<()> {
        self.difference(&step.record_key, &step.old, &step.new, |key, value| {
            let Some(place) = places.get_mut(key) else { return Ok(()) };
            let other = self.other_holder(key, place.wanted.as_deref(), &step.record_key)?;
            match (value, other) {
                (Some(_), Some(holder)) => {
                    let taken = self.not_unique(key, &step.record_key, holder);
                    return Err(IndexError::NotUnique(Box::new(taken)).into());
                }
                (Some(value), None) => place.wanted = Some(value.to_vec()),
                (None, None) => place.wanted = None,
                // What belongs to another record stays, whatever this one thinks that it had.
                (None, Some(_)) => {}
            }
            Ok(())
        })
    }

    /// The packed key of the record that has an entry, if there is one and it is another than this.
    pub(crate) fn other_holder<'v>(
        &self,
        key: &'v [u8],
        there: Option<&'v [u8]>,
        record_key: &[u8],
    ) -> Result<Option<&'v [u8]>> {
        let Some(value) = there else { return Ok(None) };
        let header = Header::read(&self.space, key, value)?;
        let holder = header.map(|header| header.record_key(key, value));
        Ok(holder.filter(|holder| *holder != record_key))
    }

    #[cold]
    pub(crate) fn not_unique(&self, key: &[u8], record: &[u8], holder: &[u8]) -> NotUnique {
        NotUnique {
            index: self.space.clone(),
            parts: KeyBuf::from_slice(key.get(self.space.prefix().len()..).unwrap_or_default()),
            record: KeyBuf::from_slice(record),
            holder: KeyBuf::from_slice(holder),
        }
    }
}
