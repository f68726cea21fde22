//! What is not as it should be between records and what is derived from them.

use std::fmt;

use keyloom::key::display;
use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result};

use super::{DerivedEntries, entries_of, newer_format, refuse_overlap};
use crate::table::{RecordKey, Table};

/// One thing that is not as it should be: which entry, and which rule it breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Inconsistency {
    /// A record should have made this entry, and it is not there.
    Missing {
        /// The key of the entry.
        entry: KeyBuf,
    },
    /// The entry is there with another value than its record makes.
    Wrong {
        /// The key of the entry.
        entry: KeyBuf,
    },
    /// The entry is there, and no record makes it.
    Dangling {
        /// The key of the entry.
        entry: KeyBuf,
    },
    /// What lies in the subspace is no entry of this kind at all.
    Foreign {
        /// The key.
        entry: KeyBuf,
    },
}

impl Inconsistency {
    /// The key of the entry.
    pub fn entry(&self) -> &[u8] {
        match self {
            Self::Missing { entry }
            | Self::Wrong { entry }
            | Self::Dangling { entry }
            | Self::Foreign { entry } => entry,
        }
    }
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, entry) = match self {
            Self::Missing { entry } => ("is missing: its record asks for it", entry),
            Self::Wrong { entry } => ("has another value than its record makes", entry),
            Self::Dangling { entry } => ("dangles: no record makes it", entry),
            Self::Foreign { entry } => ("is no entry of this kind", entry),
        };
        write!(f, "the entry {} {what}", display(entry))
    }
}

/// Tells `report` everything that is not as it should be between the records of `table` and what
/// `derived` keeps of them. Clean data are silent.
///
/// Reads one snapshot, and never more than one record at a time.
///
/// # Errors
/// What the store says; records that do not decode, which are no matter of derived data;
/// [`Error::NewerFormat`](keyloom::Error::NewerFormat) for entries of a newer program;
/// [`Error::BadOption`](keyloom::Error::BadOption) when the subspaces lie inside each other.
pub fn check<K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &impl Reader,
    mut report: impl FnMut(Inconsistency),
) -> Result<()> {
    refuse_overlap(derived.space(), table.space())?;
    for record in table.range(reader, (), Order::Ascending)? {
        let (key, value) = record?;
        for (entry, value) in entries_of(derived, &key, &value) {
            missing_or_wrong(derived, reader, entry, &value)?.into_iter().for_each(&mut report);
        }
    }
    for entry in reader.range(derived.space().self_and_children(), Order::Ascending)? {
        let (key, value) = entry?;
        if let Some(inconsistency) = superfluous(derived, table, reader, &key, &value)? {
            report(inconsistency);
        }
    }
    Ok(())
}

/// What is wrong with an entry that a record asks for, if anything.
pub(super) fn missing_or_wrong<K, V>(
    derived: &impl DerivedEntries<K, V>,
    reader: &impl Reader,
    entry: KeyBuf,
    value: &[u8],
) -> Result<Option<Inconsistency>> {
    match reader.get(&entry)? {
        None => Ok(Some(Inconsistency::Missing { entry })),
        Some(found) if &*found == value => Ok(None),
        Some(found) => {
            newer_format(derived.record_key(&entry, &found))?;
            Ok(Some(Inconsistency::Wrong { entry }))
        }
    }
}

/// Why an entry should not be there, if it should not. An entry with a wrong value should: the pass
/// over the records reports it.
pub(super) fn superfluous<K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &impl Reader,
    entry: &[u8],
    value: &[u8],
) -> Result<Option<Inconsistency>> {
    let key = KeyBuf::from_slice(entry);
    let Some(record_key) = newer_format(derived.record_key(entry, value))? else {
        return Ok(Some(Inconsistency::Foreign { entry: key }));
    };
    let made = match table.get(reader, &record_key)? {
        Some(record) => entries_of(derived, &record_key, &record),
        None => Vec::new(),
    };
    let is_made = made.iter().any(|(made, _)| made == &key);
    Ok((!is_made).then_some(Inconsistency::Dangling { entry: key }))
}
