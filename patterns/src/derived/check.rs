//! What is not as it should be between records and what is derived from them.

use std::collections::HashMap;
use std::fmt;

use keyloom::key::display;
use keyloom::value::Codec;
use keyloom::{Entry, Error, KeyBuf, Order, Page, Reader, Result, Subspace, pack};

use super::{DerivedEntries, EntryValue, entries_of, unless_undecodable};
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
    /// Two records make this entry, where there is room for one, as in a unique index: it belongs to
    /// one of them. Change one of the records; this is no fault that a repair can mend.
    ///
    /// While the entry is missing it belongs to the first of them, and is reported as missing as well. (A
    /// [`check`] that does not look at both together, being 1,000 records apart or more, reports it as
    /// missing twice; after a [repair](super::repair()) the second one is contested.)
    Contested {
        /// The key of the entry.
        entry: KeyBuf,
        /// The key of the record that it does not belong to, packed.
        record: KeyBuf,
    },
    /// A record does not decode, so what follows from it is not known: its entries are not checked, and a
    /// repair leaves them. [Delete](crate::Table::delete) or replace it.
    Undecodable {
        /// The key of the record, as it is in the store.
        record: KeyBuf,
    },
}

impl Inconsistency {
    /// The key of the entry; of a record that does not decode, its own.
    pub fn entry(&self) -> &[u8] {
        match self {
            Self::Missing { entry }
            | Self::Wrong { entry }
            | Self::Dangling { entry }
            | Self::Foreign { entry }
            | Self::Contested { entry, .. }
            | Self::Undecodable { record: entry } => entry,
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
            Self::Undecodable { record } => {
                let record = display(record);
                return write!(f, "the record {record} does not decode; delete or replace it");
            }
            Self::Contested { entry, record } => {
                let (entry, record) = (display(entry), display(record));
                return write!(
                    f,
                    "the entry {entry} belongs to another record than {record}, which makes it too"
                );
            }
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
/// Any error of the store; [`Error::NewerFormat`](keyloom::Error::NewerFormat) for records of a newer program;
/// [`Error::BadOption`](keyloom::Error::BadOption) if the table does not maintain the data.
pub fn check<K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &impl Reader,
    mut report: impl FnMut(Inconsistency),
) -> Result<()> {
    table.refuse_unless_attached(derived.space())?;
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
    refuse_foreign(space, last)?;
    let all = space.self_and_children();
    let rest = match last {
        None => all,
        Some(last) => all.resume(Order::Ascending, last),
    };
    reader.page(rest, Order::Ascending, limit)
}

/// Refuses a position that lies outside of what is repaired.
pub(crate) fn refuse_foreign(space: &Subspace, last: Option<&[u8]>) -> Result<()> {
    match last.filter(|last| !space.self_and_children().contains(last)) {
        None => Ok(()),
        Some(last) => Err(Error::BadOption {
            what: "the position to resume at",
            value: display(last).to_string(),
            why: "it belongs to another repair; begin this one anew",
        }),
    }
}

/// What is wrong with the entries that some records ask for, and the values that they should have.
/// Costs one round trip, and one for each entry that another record claims.
pub(super) fn missing_or_wrong<R: Reader, K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &R,
    records: Vec<Entry<R::Bytes<'_>>>,
) -> Result<Vec<(Inconsistency, EntryValue)>> {
    let (mut asked_for, mut faults) = (Vec::new(), Vec::new());
    for entry in records {
        let stored_at = KeyBuf::from_slice(&entry.0);
        let Some((key, value)) = unless_undecodable(record::<_, K, V, C>(table.space(), entry))?
        else {
            faults.push((Inconsistency::Undecodable { record: stored_at }, EntryValue::new()));
            continue;
        };
        let entries = entries_of(derived, &key, &value);
        let maker = if entries.is_empty() { KeyBuf::new() } else { pack(&key) };
        asked_for.extend(entries.into_iter().map(|(key, value)| (key, value, maker.clone())));
    }
    let keys: Vec<&KeyBuf> = asked_for.iter().map(|(key, ..)| key).collect();
    let there = get_many(reader, &keys)?;
    // Entries that are missing or wrong belong to the first record that asks for them.
    let mut claimed = HashMap::new();
    for ((entry, value, record), there) in asked_for.iter().zip(there) {
        let (entry, record) = (entry.clone(), record.clone());
        if let Some(first) = claimed.get(&entry) {
            if *first != value {
                faults.push((Inconsistency::Contested { entry, record }, value.clone()));
            }
            continue;
        }
        let fault = match there {
            None => Inconsistency::Missing { entry },
            Some(there) if *there == **value => continue,
            Some(there) => match derived.record_key(&entry, &there).ok() {
                Some(holder)
                    if pack(&holder) != record
                        && makes(derived, table, reader, &holder, (&entry, &there))? =>
                {
                    Inconsistency::Contested { entry, record }
                }
                _ => Inconsistency::Wrong { entry },
            },
        };
        if !matches!(fault, Inconsistency::Contested { .. }) {
            claimed.insert(KeyBuf::from_slice(fault.entry()), value);
        }
        faults.push((fault, value.clone()));
    }
    Ok(faults)
}

/// Whether the record of `key` is there and makes exactly this entry, or may have: it does not decode.
fn makes<K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &impl Reader,
    key: &K,
    (entry, value): (&[u8], &[u8]),
) -> Result<bool> {
    let Some(found) = unless_undecodable(table.get(reader, key))? else { return Ok(true) };
    let Some(record) = found else { return Ok(false) };
    Ok(entries_of(derived, key, &record).iter().any(|made| *made.0 == *entry && *made.1 == *value))
}

/// Those of some entries that should not be there. An entry with a wrong value should: the pass over
/// the records reports it. Costs one round trip.
pub(super) fn superfluous<R: Reader, K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &R,
    entries: Vec<Entry<R::Bytes<'_>>>,
) -> Result<Vec<Inconsistency>> {
    let record_keys: Vec<Option<K>> =
        entries.iter().map(|(key, value)| derived.record_key(key, value).ok()).collect();
    let mut records = table.find_many(reader, record_keys.iter().flatten())?.into_iter();
    let mut faults = Vec::new();
    for ((entry, _), record_key) in entries.iter().zip(&record_keys) {
        let entry = KeyBuf::from_slice(entry);
        let Some(record_key) = record_key else {
            faults.push(Inconsistency::Foreign { entry });
            continue;
        };
        // What a record makes that does not decode is not known: the record is the fault.
        let Some(found) = records.next().and_then(|found| unless_undecodable(found).transpose())
        else {
            continue;
        };
        let made = found?.map(|record| entries_of(derived, record_key, &record));
        if !made.iter().flatten().any(|(made, _)| *made == entry) {
            faults.push(Inconsistency::Dangling { entry });
        }
    }
    Ok(faults)
}
