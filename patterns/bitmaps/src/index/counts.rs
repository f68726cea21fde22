//! The counts of containers: one counter per field of values.

use keyloom::{KeyBuf, Reader, Result, Writer};
use keyloom_kit::{Inconsistency, Rule};

use super::fields::Function;
use super::{Field, InvertedIndex};

/// The stored and the actual number of containers of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    counter: KeyBuf,
    /// `None` if nothing is stored; `Some(None)` if the stored bytes are not a counter.
    stored: Option<Option<i64>>,
    containers: i64,
}

impl<K, V> InvertedIndex<K, V> {
    /// The fields whose containers are counted.
    pub(super) fn counted(&self) -> impl Iterator<Item = &Field<K, V>> {
        self.fields.iter().filter(|field| matches!(field.function, Function::Values(_)))
    }
}

impl Counted {
    /// Counts all containers of the field.
    pub(super) fn of<K, V>(field: &Field<K, V>, reader: &impl Reader) -> Result<Self> {
        let containers = reader.count(field.space.range())?;
        let stored = reader.get(&field.counter)?;
        Ok(Self {
            counter: field.counter.clone(),
            stored: stored.map(|stored| Some(i64::from_le_bytes(stored[..].try_into().ok()?))),
            containers: i64::try_from(containers).unwrap_or(i64::MAX),
        })
    }

    /// The fault of the counter, if there is one. A counter of 0 may be stored or missing.
    pub(super) fn fault(&self) -> Option<Inconsistency> {
        let entry = self.counter.clone();
        match self.stored {
            Some(None) => Some(Inconsistency::new(entry, Rule::Foreign)),
            Some(Some(stored)) if stored != self.containers => {
                Some(Inconsistency::new(entry, Rule::Wrong))
            }
            None if self.containers > 0 => Some(Inconsistency::new(entry, Rule::Missing)),
            _ => None,
        }
    }

    /// Adds the difference, so that concurrent additions of other writers are kept.
    pub(super) fn fix(&self, txn: &mut impl Writer) -> Result<()> {
        let stored = match self.stored {
            // No other writer can have added to this counter: an addition to bytes that are not a
            // counter fails.
            Some(None) => {
                txn.delete(&self.counter)?;
                0
            }
            stored => stored.flatten().unwrap_or(0),
        };
        txn.add(&self.counter, self.containers.wrapping_sub(stored))
    }
}
