//! Compares the entries that the records of a range of ids require with the stored entries.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, Order, Reader, Result, unpack};
use keyloom_kit::{Inconsistency, RecordKey, Rule, get_many, untyped, within};
use keyloom_tables::table::Table;

use super::InvertedIndex;
use super::fields::Held;
use super::ids::{Ids, SameIds};
use crate::bitmap::place_of;
use crate::dense_ids::read_id;
use crate::{CHUNK_IDS, Container, DenseIds, Words};

/// The minimum number of ids compared together; it divides the number of ids in a chunk. If a
/// record explains one id of a block in a container, the whole block has already been compared.
pub(super) const COMPARED_TOGETHER: u64 = 256;

/// A fault, and the value that should be stored instead.
pub(super) struct Fault {
    pub(super) what: Inconsistency,
    pub(super) value: Option<Vec<u8>>,
}

/// Ids of one chunk that are compared together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span(RangeInclusive<u64>);

impl Span {
    /// Whole blocks of one chunk, at least one: at most `ids` ids from `first` on. `first` must
    /// begin a block.
    pub(super) fn from(first: u64, ids: usize) -> Self {
        let in_chunk = CHUNK_IDS - first % CHUNK_IDS;
        let blocks = (ids as u64 / COMPARED_TOGETHER).max(1) * COMPARED_TOGETHER;
        Self(first..=first.saturating_add(blocks.min(in_chunk) - 1))
    }

    pub(super) fn last(&self) -> u64 {
        *self.0.end()
    }

    fn chunk(&self) -> u64 {
        place_of(*self.0.start()).0
    }

    fn offsets(&self) -> RangeInclusive<u16> {
        place_of(*self.0.start()).1..=place_of(*self.0.end()).1
    }
}

/// The container, if the bytes are entirely valid. Unreadable bytes are one fault, whatever their
/// format: the container is rebuilt from its records.
pub(super) fn sound(bytes: &[u8]) -> Option<Container<'_>> {
    let container = Container::parse(bytes).ok()?;
    container.verify().ok()?;
    Some(container)
}

/// The entries that the records of a span require.
#[derive(Default)]
struct Expected {
    containers: BTreeMap<KeyBuf, Vec<u16>>,
    /// The values of the fields, by id.
    direct: Vec<(u64, Vec<Held>)>,
    records: u64,
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// The start of the next span of `ids` ids to compare, at or after `from`, if there is one. If
    /// keys are ids, ids without records are skipped. If the index assigns ids, there is no span at
    /// or after `end`, because these ids were never assigned.
    pub(super) fn next_span<C: Codec<V>>(
        &self,
        table: &Table<K, V, C>,
        reader: &impl Reader,
        ids: usize,
        from: u64,
        end: u64,
    ) -> Result<Option<u64>> {
        match &self.ids {
            Ids::Dense(_) => Ok((from < end).then_some(from)),
            Ids::Same(ids_of) => {
                // From id 0, begin at the start of the table, to include keys that are not packed
                // as their ids.
                let rest = match from {
                    0 => table.space().range(),
                    _ => within(from..).key_range(table.space()),
                };
                let Some((at, _)) = reader.first(rest)? else { return Ok(None) };
                let key = table.space().unpack::<K>(&at);
                let key = key.map_err(|error| Error::from(error).at(&at))?;
                let id = ids_of.id_of(&key)?;
                let of_span = if ids as u64 >= CHUNK_IDS { CHUNK_IDS } else { COMPARED_TOGETHER };
                Ok(Some(from.max(id - id % CHUNK_IDS % of_span)))
            }
        }
    }

    /// The missing or wrong entries of a span, and the number of records of the span. Another pass
    /// handles entries that no record explains, except for free ids.
    pub(super) fn compare<C: Codec<V>>(
        &self,
        table: &Table<K, V, C>,
        reader: &impl Reader,
        span: &Span,
        end: u64,
    ) -> Result<(Vec<Fault>, u64)> {
        let records = match &self.ids {
            Ids::Dense(ids) => dense_records(ids, table, reader, span)?,
            Ids::Same(ids) => same_records(ids, table, reader, span)?,
        };
        let mut expected = self.expected(&records, span)?;
        let free = self.expect_free(&records, span, end, &mut expected);
        let mut faults = Vec::new();
        let keys: Vec<&KeyBuf> = expected.containers.keys().collect();
        let stored = get_many(reader, &keys)?;
        for ((key, offsets), stored) in expected.containers.iter().zip(stored) {
            let fault = compare_container(key, offsets, span, stored.as_deref());
            let is_free = free.as_ref() == Some(key);
            faults.extend(fault.filter(|fault| is_free || fault.what.rule != Rule::Dangling));
        }
        self.compare_columns(reader, &span.0, &expected.direct, &mut faults)?;
        Ok((faults, expected.records))
    }

    fn expected(&self, records: &[(u64, K, V)], span: &Span) -> Result<Expected> {
        let mut expected = Expected { records: records.len() as u64, ..Expected::default() };
        // Ids are grouped by the distinguishing part of the container's key. Full keys would share
        // long prefixes, and a key would be built for every id.
        let mut parts: Vec<BTreeMap<KeyBuf, Vec<u16>>> = vec![BTreeMap::new(); self.fields.len()];
        for (id, key, value) in records {
            let held = self.held(key, value);
            self.check_lengths(&held)?;
            let offset = place_of(*id).1;
            for ((field, held), parts) in self.fields.iter().zip(&held).zip(&mut parts) {
                field.parts(held, |part| match parts.get_mut(part) {
                    Some(offsets) => offsets.push(offset),
                    None => drop(parts.insert(KeyBuf::from_slice(part), vec![offset])),
                });
            }
            expected.direct.push((*id, held));
        }
        if !records.is_empty() {
            let all = records.iter().map(|(id, ..)| place_of(*id).1).collect();
            expected.containers.insert(self.all.key(span.chunk()), all);
        }
        for (field, parts) in self.fields.iter().zip(parts) {
            let parts = parts.into_iter();
            let containers =
                parts.map(|(part, offsets)| (field.container(&part, span.chunk()), offsets));
            expected.containers.extend(containers);
        }
        Ok(expected)
    }

    /// Expects the ids of a span without a record to be free. Returns the key of their chunk, or
    /// `None` if the index does not assign ids.
    fn expect_free(
        &self,
        records: &[(u64, K, V)],
        span: &Span,
        end: u64,
        expected: &mut Expected,
    ) -> Option<KeyBuf> {
        let Ids::Dense(ids) = &self.ids else { return None };
        let key = ids.free.key(span.chunk());
        let used = records.iter().map(|(id, ..)| *id);
        let mut used = used.peekable();
        let free = span.0.clone().take_while(|id| *id < end);
        let free = free.filter(|id| used.next_if_eq(id).is_none());
        let free = free.map(|id| place_of(id).1).collect();
        expected.containers.insert(key.clone(), free);
        Some(key)
    }
}

/// The records of the ids of a span, found by the keys of these ids.
fn dense_records<K: RecordKey, V, C: Codec<V>>(
    ids: &DenseIds<K>,
    table: &Table<K, V, C>,
    reader: &impl Reader,
    span: &Span,
) -> Result<Vec<(u64, K, V)>> {
    let mut holders = Vec::new();
    for entry in reader.range(within(span.0.clone()).key_range(&ids.keys), Order::Ascending)? {
        let (entry, key) = entry?;
        // The pass over stored entries reports entries that do not decode.
        if let (Ok(id), Ok(key)) = (ids.keys.unpack::<u64>(&entry), unpack::<K>(&key)) {
            holders.push((id, key));
        }
    }
    let ids_of: Vec<u64> = holders.iter().map(|(id, _)| *id).collect();
    let records = ids.records_of(table, reader, holders.into_iter().map(Some).collect())?;
    let found = ids_of.into_iter().zip(records);
    Ok(found.filter_map(|(id, record)| record.map(|(key, value)| (id, key, value))).collect())
}

impl<K: RecordKey> DenseIds<K> {
    /// The records of keys that have these ids, if the keys map back to the ids. Costs one round
    /// trip.
    pub(super) fn records_of<V, C: Codec<V>>(
        &self,
        table: &Table<K, V, C>,
        reader: &impl Reader,
        holders: Vec<Option<(u64, K)>>,
    ) -> Result<Vec<Option<(K, V)>>> {
        let keys = || holders.iter().flatten().map(|(_, key)| key);
        let mut asked: Vec<KeyBuf> = keys().map(|key| self.ids.pack(key)).collect();
        let known = asked.len();
        asked.extend(keys().map(|key| table.space().pack(key)));
        let mut given = get_many(reader, &asked)?;
        let mut records = given.split_off(known).into_iter();
        let (mut given, mut at) = (given.into_iter(), asked.iter().skip(known));
        let mut found = Vec::with_capacity(holders.len());
        for holder in holders {
            let Some((id, key)) = holder else {
                found.push(None);
                continue;
            };
            let (given, record, at) = (given.next().flatten(), records.next().flatten(), at.next());
            let at = at.map_or(&[][..], |at| at);
            let is_its = read_id(at, given).ok().flatten() == Some(id);
            let record = record.filter(|_| is_its).map(|record| C::decode(&record)).transpose();
            found.push(record.map_err(|error| error.at(at))?.map(|record| (key, record)));
        }
        Ok(found)
    }
}

/// The records whose keys are the ids of a span.
fn same_records<K: RecordKey, V, C: Codec<V>>(
    ids: &SameIds<K>,
    table: &Table<K, V, C>,
    reader: &impl Reader,
    span: &Span,
) -> Result<Vec<(u64, K, V)>> {
    let records = table.range(reader, untyped(within(span.0.clone())))?;
    let records = records.map(|record| record.map(|(key, value)| ((ids.id)(&key), key, value)));
    records.filter(|record| !matches!(record, Ok((id, ..)) if !ids.has(*id))).collect()
}

/// The fault of a container, limited to a span.
fn compare_container(
    key: &KeyBuf,
    offsets: &[u16],
    span: &Span,
    stored: Option<&[u8]>,
) -> Option<Fault> {
    let mut old = Words::new();
    let container = stored.map(sound);
    if let Some(Some(container)) = container {
        old.set(container);
    }
    let mut new = Words::new();
    for offset in offsets {
        new.insert(*offset);
    }
    let mut others = old.clone();
    let mut mine = old.clone();
    mine.keep(span.offsets());
    others.and_not_words(&mine);
    new.or_words(&others);
    let entry = key.clone();
    let what = match container {
        None if new.is_empty() => return None,
        None => Inconsistency::new(entry, Rule::Missing),
        Some(None) => Inconsistency::new(entry, Rule::Foreign),
        Some(Some(_)) if new == old => return None,
        Some(Some(_)) if new.is_empty() => Inconsistency::new(entry, Rule::Dangling),
        Some(Some(_)) => Inconsistency::new(entry, Rule::Wrong),
    };
    Some(Fault { what, value: encoded(&new) })
}

/// The bytes of a container; `None` if it has no ids.
pub(super) fn encoded(words: &Words) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    words.encode(&mut bytes);
    (!bytes.is_empty()).then_some(bytes)
}
