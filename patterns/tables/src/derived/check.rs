//! Check for inconsistencies between records and the entries derived from them.

use std::collections::HashMap;

use keyloom::value::Codec;
use keyloom::{Entry, KeyBuf, KeyRange, Order, Reader, Result, Store, pack};
use keyloom_kit::derived::{DerivedEntries, EntryValue, entries_of, unless_undecodable};
use keyloom_kit::{Inconsistency, RecordKey, Rule, get_many, in_parallel_each};

use crate::table::{Table, record};

/// The number of records or entries that [`check`] reads at a time.
// Smaller chunks add round trips; larger chunks need more memory.
const CHUNK: usize = 1_000;

/// Reports every inconsistency between the records of `table` and the entries of `derived`.
/// `report` is not called for consistent data.
///
/// Reads 1,000 records or entries at a time, each time in two round trips: a page, and the matching
/// entries or records. Holds no more than one such chunk in memory.
///
/// # Errors
/// Any error of the store; [`Error::NewerFormat`](keyloom::Error::NewerFormat) for records of a
/// newer program; [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if the table does not
/// maintain the data.
pub fn check<K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &impl Reader,
    mut report: impl FnMut(Inconsistency),
) -> Result<()> {
    table.refuse_unless_attached(derived.space())?;
    Side::ALL.into_iter().try_for_each(|side| {
        let part = side.range(derived, table);
        check_part(derived, table, reader, side, part, &mut report)
    })
}

/// Like [`check`], but checks disjoint parts of the records, and then disjoint parts of the
/// entries, on up to `threads` threads. All parts are read in one state of the store; see
/// [`in_parallel`](keyloom_kit::in_parallel). `guard` is called with a snapshot of this state
/// before each part.
///
/// # Errors
/// The errors of [`check`] and of `guard`.
pub fn check_in_parallel<S: Store, K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    store: &S,
    threads: usize,
    guard: impl Fn(&S::Snapshot<'_>) -> Result<()> + Sync,
) -> Result<Vec<Inconsistency>> {
    table.refuse_unless_attached(derived.space())?;
    let ranges = Side::ALL.map(|side| side.range(derived, table));
    let found = in_parallel_each(store, &ranges, threads, |snapshot, of, part| {
        guard(snapshot)?;
        let (side, mut found) = (if of == 0 { Side::Records } else { Side::Entries }, Vec::new());
        check_part(derived, table, snapshot, side, part, |fault| found.push(fault))?;
        Ok(found)
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// The side that a check reads page by page and compares with the other side.
#[derive(Clone, Copy)]
enum Side {
    Records,
    Entries,
}

impl Side {
    const ALL: [Self; 2] = [Self::Records, Self::Entries];

    fn range<K: RecordKey, V, C: Codec<V>>(
        self,
        derived: &impl DerivedEntries<K, V>,
        table: &Table<K, V, C>,
    ) -> KeyRange<'static> {
        match self {
            Self::Records => table.space().self_and_children(),
            Self::Entries => derived.space().self_and_children(),
        }
    }
}

/// The missing and wrong entries, with the value that the first record which claims one gives it.
pub(super) type Claims = HashMap<KeyBuf, EntryValue>;

/// Checks the records or entries of `part`, one page at a time.
fn check_part<K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &impl Reader,
    side: Side,
    part: KeyRange<'_>,
    mut report: impl FnMut(Inconsistency),
) -> Result<()> {
    let (mut rest, mut claims) = (part.clone(), Claims::new());
    loop {
        let page = reader.page(rest, Order::Ascending, CHUNK)?;
        match side {
            Side::Records => {
                let faults = missing_or_wrong(derived, table, reader, page.entries, &mut claims)?;
                faults.into_iter().for_each(|(fault, _)| report(fault));
            }
            Side::Entries => {
                superfluous(derived, table, reader, page.entries)?
                    .into_iter()
                    .for_each(&mut report);
            }
        }
        let Some(last) = page.last else { return Ok(()) };
        rest = part.clone().resume(Order::Ascending, &last).into_owned();
    }
}

/// The faults in the entries of some records, and the values that these entries should have. Costs
/// one round trip, and one more for each entry that another record may claim. `claims` are those of
/// the records before; a check that forgot them would report the second record of a lost unique
/// entry as one without an entry.
pub(super) fn missing_or_wrong<R: Reader, K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    reader: &R,
    records: Vec<Entry<R::Bytes<'_>>>,
    claims: &mut Claims,
) -> Result<Vec<(Inconsistency, EntryValue)>> {
    let (mut asked_for, mut faults) = (Vec::new(), Vec::new());
    for entry in records {
        let stored_at = KeyBuf::from_slice(&entry.0);
        let Some((key, value)) = unless_undecodable(record::<_, K, V, C>(table.space(), entry))?
        else {
            faults.push((Inconsistency::new(stored_at, Rule::Undecodable), EntryValue::new()));
            continue;
        };
        let entries = entries_of(derived, &key, &value);
        let maker = if entries.is_empty() { KeyBuf::new() } else { pack(&key) };
        asked_for.extend(entries.into_iter().map(|(key, value)| (key, value, maker.clone())));
    }
    let keys: Vec<&KeyBuf> = asked_for.iter().map(|(key, ..)| key).collect();
    let there = get_many(reader, &keys)?;
    // A missing or wrong entry goes to the first record that claims it.
    for ((entry, value, record), there) in asked_for.iter().zip(there) {
        let (entry, record) = (entry.clone(), record.clone());
        if let Some(first) = claims.get(&entry) {
            if first != value {
                faults.push((Inconsistency::contested(entry, record), value.clone()));
            }
            continue;
        }
        let fault = match there {
            None => Inconsistency::new(entry, Rule::Missing),
            Some(there) if *there == **value => continue,
            Some(there) => match derived.record_key(&entry, &there).ok() {
                Some(holder)
                    if pack(&holder) != record
                        && makes(derived, table, reader, &holder, (&entry, &there))? =>
                {
                    Inconsistency::contested(entry, record)
                }
                _ => Inconsistency::new(entry, Rule::Wrong),
            },
        };
        if fault.rule != Rule::Contested {
            claims.insert(fault.key.clone(), value.clone());
        }
        faults.push((fault, value.clone()));
    }
    Ok(faults)
}

/// Whether the record of `key` exists and has exactly this entry. Also `true` if the record does
/// not decode, since it may have the entry.
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

/// The entries that belong to no record. Entries with a wrong value are not included: the pass over
/// the records reports them. Costs one round trip.
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
            faults.push(Inconsistency::new(entry, Rule::Foreign));
            continue;
        };
        // The entries of a record that does not decode are unknown: the record itself is the fault.
        let Some(found) = records.next().and_then(|found| unless_undecodable(found).transpose())
        else {
            continue;
        };
        let made = found?.map(|record| entries_of(derived, record_key, &record));
        if !made.iter().flatten().any(|(made, _)| *made == entry) {
            faults.push(Inconsistency::new(entry, Rule::Dangling));
        }
    }
    Ok(faults)
}
