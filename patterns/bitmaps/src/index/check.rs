//! The check of an index against its table.
//!
//! A check makes four passes: over the records, to check their ids; over the ids, span by span, to
//! check the entries that their records require; over all stored entries, to find entries that no
//! record explains; and over the counts. A repair makes the same passes.

use std::ops::Deref;

use keyloom::value::Codec;
use keyloom::{Entry, Error, KeyBuf, Reader, Result};
use keyloom_kit::{Inconsistency, RecordKey, Rule, page_behind};
use keyloom_tables::table::Table;

use super::InvertedIndex;
use super::counts::Counted;
use super::given::Lack;
use super::ids::Ids;
use super::span::Span;
use crate::CHUNK_IDS;
use crate::dense_ids::State;

/// How many stored entries a check reads together.
// A container has up to 4 KiB, so a page of containers takes up to 4 MiB. Fewer entries add round
// trips.
const ENTRIES: usize = 1_000;

pub(super) fn check<K: RecordKey, V, C: Codec<V>>(
    index: &InvertedIndex<K, V>,
    reader: &impl Reader,
    table: &Table<K, V, C>,
) -> Result<Vec<Inconsistency>> {
    table.refuse_unless_attached(index.space())?;
    let mut found = Vec::new();
    check_ids(index, reader, table, &mut found)?;
    let (ids, end) = (CHUNK_IDS as usize, index.end(reader)?);
    let mut from = Some(0);
    while let Some(start) =
        from.map(|from| index.next_span(table, reader, ids, from, end)).transpose()?.flatten()
    {
        let span = Span::from(start, ids);
        let (faults, _) = index.compare(table, reader, &span, end)?;
        // Stored bytes that are not containers are reported by the pass over stored entries.
        let faults = faults.into_iter().map(|fault| fault.what);
        found.extend(faults.filter(|what| what.rule != Rule::Foreign));
        from = span.last().checked_add(1);
    }
    check_stored(index, reader, table, end, &mut found)?;
    for field in index.counted() {
        found.extend(Counted::of(field, reader)?.fault());
    }
    Ok(found)
}

fn check_ids<K: RecordKey, V, C: Codec<V>>(
    index: &InvertedIndex<K, V>,
    reader: &impl Reader,
    table: &Table<K, V, C>,
    found: &mut Vec<Inconsistency>,
) -> Result<()> {
    let Ids::Dense(ids) = &index.ids else { return Ok(()) };
    let (stored, state) = (ids.stored_state(reader)?, ids.true_state(reader)?);
    let free = ids.count_free(reader)?;
    if stored != Some(State { free, ..state }) && (stored, state.next) != (None, 0) {
        found.push(match reader.get(&ids.state_key())? {
            None => Inconsistency::new(ids.state_key(), Rule::Missing),
            Some(_) => Inconsistency::new(ids.state_key(), Rule::Wrong),
        });
    }
    let mut last: Option<KeyBuf> = None;
    loop {
        let page = page_behind(last.as_deref(), reader, table.space(), CHUNK_IDS as usize)?;
        let keys = record_keys(table, &page.entries)?;
        for (key, lack) in ids.lacking(reader, &keys, state.next)? {
            found.push(match lack {
                Lack::Id(is_wrong) => match is_wrong {
                    true => Inconsistency::new(ids.ids.pack(key), Rule::Wrong),
                    false => Inconsistency::new(ids.ids.pack(key), Rule::Missing),
                },
                Lack::Key(id) => Inconsistency::new(ids.keys.pack(&id), Rule::Missing),
            });
        }
        last = page.last;
        if last.is_none() {
            return Ok(());
        }
    }
}

fn check_stored<K: RecordKey, V, C: Codec<V>>(
    index: &InvertedIndex<K, V>,
    reader: &impl Reader,
    table: &Table<K, V, C>,
    end: u64,
    found: &mut Vec<Inconsistency>,
) -> Result<()> {
    let mut last: Option<KeyBuf> = None;
    loop {
        let page = page_behind(last.as_deref(), reader, index.space(), ENTRIES)?;
        let stored = index.superfluous(table, reader, &page.entries, end)?;
        // A container with excess ids was already compared with its chunk.
        let faults = stored.faults.into_iter().map(|fault| fault.what);
        found.extend(faults.filter(|what| what.rule != Rule::Wrong));
        last = match page.entries.get(stored.entries.wrapping_sub(1)) {
            Some((key, _)) if stored.entries < page.entries.len() => Some(KeyBuf::from_slice(key)),
            _ => page.last,
        };
        if last.is_none() {
            return Ok(());
        }
    }
}

/// The keys of some records.
pub(super) fn record_keys<B: Deref<Target = [u8]>, K: RecordKey, V, C>(
    table: &Table<K, V, C>,
    entries: &[Entry<B>],
) -> Result<Vec<K>> {
    let key =
        |(key, _): &Entry<B>| table.space().unpack(key).map_err(|error| Error::from(error).at(key));
    entries.iter().map(key).collect()
}
