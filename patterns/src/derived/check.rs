//! What is not as it should be between records and what is derived from them.

use std::fmt;

use keyloom::key::display;
use keyloom::value::Codec;
use keyloom::{Entry, Error, KeyBuf, Order, Page, Reader, Result, Subspace};

use super::{DerivedEntries, EntryValue, entries_of, newer_format, refuse_overlap};
use crate::table::{RecordKey, Table, get_many, record};

/// How many records or entries [`check`] looks at together.
const CHUNK: usize = 1_000;

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
/// Reads one snapshot, 1,000 records or entries at a time, each time in two round trips: a page, and
/// the other side of all that is on it. Keeps no more than that in memory.
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
    walk(reader, table.space(), |records| {
        let faults = missing_or_wrong(derived, table, reader, records)?;
        faults.into_iter().for_each(|(fault, _)| report(fault));
        Ok(())
    })?;
    walk(reader, derived.space(), |entries| {
        superfluous(derived, table, reader, entries)?.into_iter().for_each(&mut report);
        Ok(())
    })
}

/// Visits all that is in `space`, some of it at a time.
fn walk<'r, R: Reader>(
    reader: &'r R,
    space: &Subspace,
    mut visit: impl FnMut(Vec<Entry<R::Bytes<'r>>>) -> Result<()>,
) -> Result<()> {
    let mut last = None;
    loop {
        let page = page_behind(last.as_deref(), reader, space, CHUNK)?;
        visit(page.entries)?;
        let Some(key) = page.last else { return Ok(()) };
        last = Some(key);
    }
}

/// At most `limit` entries of `space` behind `last`, which must lie in it.
pub(crate) fn page_behind<'r, R: Reader>(
    last: Option<&[u8]>,
    reader: &'r R,
    space: &Subspace,
    limit: usize,
) -> Result<Page<R::Bytes<'r>>> {
    let all = space.self_and_children();
    let rest = match last {
        None => all,
        Some(last) if all.contains(last) => all.resume(Order::Ascending, last),
        Some(last) => {
            return Err(Error::BadOption {
                what: "the position to resume at",
                value: display(last).to_string(),
                why: "it belongs to another repair; begin this one anew",
            });
        }
    };
    reader.page(rest, Order::Ascending, limit)
}

/// What is wrong with the entries that some records ask for, and the values that they should have.
/// Costs one round trip.
pub(super) fn missing_or_wrong<R: Reader, K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &R,
    records: Vec<Entry<R::Bytes<'_>>>,
) -> Result<Vec<(Inconsistency, EntryValue)>> {
    let mut asked_for = Vec::new();
    for entry in records {
        let (key, value) = record::<_, K, V, C>(table.space(), entry)?;
        asked_for.extend(entries_of(derived, &key, &value));
    }
    let keys: Vec<&KeyBuf> = asked_for.iter().map(|(key, _)| key).collect();
    let there = get_many(reader, &keys)?;
    let mut faults = Vec::new();
    for ((entry, value), there) in asked_for.into_iter().zip(there) {
        let fault = match there {
            None => Inconsistency::Missing { entry },
            Some(there) if *there == *value => continue,
            Some(there) => {
                newer_format(derived.record_key(&entry, &there))?;
                Inconsistency::Wrong { entry }
            }
        };
        faults.push((fault, value));
    }
    Ok(faults)
}

/// Those of some entries that should not be there. An entry with a wrong value should: the pass over
/// the records reports it. Costs one round trip.
pub(super) fn superfluous<R: Reader, K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &R,
    entries: Vec<Entry<R::Bytes<'_>>>,
) -> Result<Vec<Inconsistency>> {
    let record_keys =
        entries.iter().map(|(key, value)| newer_format(derived.record_key(key, value)));
    let record_keys = record_keys.collect::<Result<Vec<Option<K>>>>()?;
    let mut records = table.get_many(reader, record_keys.iter().flatten())?.into_iter();
    let mut faults = Vec::new();
    for ((entry, _), record_key) in entries.iter().zip(&record_keys) {
        let entry = KeyBuf::from_slice(entry);
        let Some(record_key) = record_key else {
            faults.push(Inconsistency::Foreign { entry });
            continue;
        };
        let made = records.next().flatten().map(|record| entries_of(derived, record_key, &record));
        if !made.iter().flatten().any(|(made, _)| *made == entry) {
            faults.push(Inconsistency::Dangling { entry });
        }
    }
    Ok(faults)
}
