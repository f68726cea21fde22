//! How many containers the fields have.

use keyloom::{KeyBuf, Reader, Result, Writer};

use super::fields::Function;
use super::{Field, InvertedIndex};
use keyloom_tables::{Inconsistency, Rule};

/// What is stored of the number of containers of a field, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    counter: KeyBuf,
    /// `None` where nothing is stored, and `Some(None)` where that is no counter.
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
    /// Goes through all containers of the field.
    pub(super) fn of<K, V>(field: &Field<K, V>, reader: &impl Reader) -> Result<Self> {
        let containers = reader.count(field.space.range())?;
        let stored = reader.get(&field.counter)?;
        Ok(Self {
            counter: field.counter.clone(),
            stored: stored.map(|stored| Some(i64::from_le_bytes(stored[..].try_into().ok()?))),
            containers: i64::try_from(containers).unwrap_or(i64::MAX),
        })
    }

    /// What is wrong with it. A counter that is 0 may be there or not.
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

    /// Adds what it lacks, so that what others have added meanwhile stays.
    pub(super) fn mend(&self, txn: &mut impl Writer) -> Result<()> {
        let stored = match self.stored {
            // Nobody could add to it meanwhile: who tried got an error.
            Some(None) => {
                txn.delete(&self.counter)?;
                0
            }
            stored => stored.flatten().unwrap_or(0),
        };
        txn.add(&self.counter, self.containers.wrapping_sub(stored))
    }
}
