//! Finds stored entries that no record explains.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use keyloom::value::Codec;
use keyloom::{Element, Entry, KeyBuf, Reader, Result, unpack};
use keyloom_kit::{Inconsistency, RecordKey, Rule, get_many};
use keyloom_tables::table::Table;

use super::fields::FieldKind;
use super::ids::Ids;
use super::span::{COMPARED_TOGETHER, Fault, encoded, sound};
use super::{Field, InvertedIndex};
use crate::bitmap::{id_at, place_of};
use crate::column::{Integers, Values, block_of, id_in_block};
use crate::{Container, DenseIds};

/// The result of examining some stored entries.
pub(super) struct Superfluous {
    pub(super) faults: Vec<Fault>,
    /// How many of the entries were examined.
    pub(super) entries: usize,
}

/// The kind of a stored entry.
enum Stored<'i, K, V> {
    /// A container of a chunk.
    Container(u64),
    /// A chunk of free ids.
    Free(u64),
    /// The column of a field for a block.
    Column(&'i Field<K, V>, u64),
    /// An entry about the record with this id.
    OfId(u64),
    /// An entry about the record with this packed key.
    OfKey(KeyBuf),
    /// One of the fixed entries of the index.
    Known,
    Foreign,
}

/// Entries whose records are to be looked up.
struct Suspects<'e, K, V> {
    /// The ids to look up.
    ids: Vec<u64>,
    /// Containers, each with the range of its ids in `ids`: the first id of each block.
    containers: Vec<(Suspect<'e>, Range<usize>)>,
    /// Columns, each with the range of its ids in `ids`: the first id of each block of ids compared
    /// together.
    columns: Vec<(SuspectColumn<'e, K, V>, Range<usize>)>,
    /// Entries about one id, each with the index of the id in `ids`.
    of_ids: Vec<(KeyBuf, usize)>,
    /// Entries about one record, each with the key of the record.
    of_records: Vec<(KeyBuf, KeyBuf)>,
}

/// A container that may have excess ids.
struct Suspect<'e> {
    entry: KeyBuf,
    chunk: u64,
    container: Container<'e>,
}

/// A column that may have excess ids.
struct SuspectColumn<'e, K, V> {
    entry: KeyBuf,
    field: &'e Field<K, V>,
    block: u64,
    bytes: &'e [u8],
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    fn stored(&self, key: &[u8], value: &[u8]) -> Stored<'_, K, V> {
        let part = self.space.leading(key, 1).ok();
        let part = part.and_then(|part| self.space.unpack::<&str>(part).ok());
        let stored = match part {
            Some("all") => self.all.space().unpack(key).ok().map(Stored::Container),
            // A name with a NUL is escaped in the key, so it cannot be borrowed from there.
            Some("terms") => {
                let parts = self.space.unpack::<(&str, Cow<'_, str>, Element, u64)>(key);
                parts.ok().map(|parts| Stored::Container(parts.3))
            }
            Some("integers") => {
                let parts = self.space.unpack::<(&str, Cow<'_, str>, u64, u8)>(key);
                parts.ok().map(|parts| Stored::Container(parts.2))
            }
            Some("direct") => self.fields.iter().find_map(|field| {
                let block = field.column.unpack::<u64>(key).ok()?;
                Some(Stored::Column(field, block))
            }),
            Some("containers") => {
                self.counted().any(|field| field.counter[..] == *key).then_some(Stored::Known)
            }
            Some("ids") => match &self.ids {
                Ids::Dense(ids) => stored_id(ids, key, value),
                Ids::Same(_) => None,
            },
            _ => None,
        };
        stored.unwrap_or(Stored::Foreign)
    }

    /// The stored entries that no record explains. Examines the first of `entries`, at least one.
    /// Stops as soon as more ids must be looked up than there are entries. Ids from `end` on were
    /// never assigned.
    pub(super) fn superfluous<C: Codec<V>, R: Reader>(
        &self,
        table: &Table<K, V, C>,
        reader: &R,
        entries: &[Entry<R::Bytes<'_>>],
        end: u64,
    ) -> Result<Superfluous> {
        let mut found = Superfluous { faults: Vec::new(), entries: 0 };
        let mut suspects = Suspects::new();
        for (key, value) in entries {
            if suspects.ids.len() > entries.len() {
                break;
            }
            found.entries += 1;
            let entry = KeyBuf::from_slice(key);
            match self.stored(key, value) {
                Stored::Container(chunk) => match sound(value) {
                    Some(container) if ends_with_an_id(chunk, container) => {
                        suspects.add(Suspect { entry, chunk, container });
                    }
                    _ => found.faults.push(foreign(entry)),
                },
                Stored::Free(chunk) => match sound(value) {
                    Some(_) if id_at(chunk, 0).is_some_and(|first| first < end) => {}
                    Some(_) => found.faults.push(dangling(entry)),
                    None => found.faults.push(foreign(entry)),
                },
                Stored::Column(field, block) => {
                    let is_column = field.function.kind().is_column(value);
                    let column = SuspectColumn { entry, field, block, bytes: value };
                    match is_column && column.has_ids() {
                        true => suspects.add_column(column),
                        false => found.faults.push(foreign(column.entry)),
                    }
                }
                Stored::OfId(id) => {
                    suspects.of_ids.push((entry, suspects.ids.len()));
                    suspects.ids.push(id);
                }
                Stored::OfKey(key) => {
                    let record = table.space().prefix().iter().chain(&key).copied().collect();
                    suspects.of_records.push((entry, record));
                }
                Stored::Known => {}
                Stored::Foreign => found.faults.push(foreign(entry)),
            }
        }
        self.judge(table, reader, suspects, &mut found.faults)?;
        Ok(found)
    }

    fn judge<C: Codec<V>>(
        &self,
        table: &Table<K, V, C>,
        reader: &impl Reader,
        suspects: Suspects<'_, K, V>,
        faults: &mut Vec<Fault>,
    ) -> Result<()> {
        let records = self.records_of(table, reader, &suspects.ids)?;
        for (entry, place) in suspects.of_ids {
            if !matches!(records.get(place), Some(Some(_))) {
                faults.push(dangling(entry));
            }
        }
        let asked: Vec<&KeyBuf> = suspects.of_records.iter().map(|(_, record)| record).collect();
        for ((entry, _), record) in suspects.of_records.iter().zip(get_many(reader, &asked)?) {
            if record.is_none() {
                faults.push(dangling(entry.clone()));
            }
        }
        for (suspect, firsts) in suspects.columns {
            let ids = suspects.ids.get(firsts.clone()).unwrap_or_default().iter();
            let unexplained = ids.zip(records.get(firsts).unwrap_or_default());
            let unexplained =
                unexplained.filter(|(_, record)| !suspect.field.explains(record.as_ref()));
            let blocks: BTreeSet<u64> = unexplained.map(|(id, _)| block(*id)).collect();
            if !blocks.is_empty() {
                faults.extend(self.column_without_strays(table, reader, suspect, &blocks)?);
            }
        }
        for (suspect, firsts) in suspects.containers {
            let ids = suspects.ids.get(firsts.clone()).unwrap_or_default();
            let records = records.get(firsts).unwrap_or_default();
            let blocks: BTreeSet<u64> = ids
                .iter()
                .zip(records)
                .filter(|(id, record)| !self.explains(**id, record.as_ref(), &suspect.entry))
                .map(|(id, _)| block(*id))
                .collect();
            if !blocks.is_empty() {
                faults.extend(self.without_strays(table, reader, suspect, &blocks)?);
            }
        }
        Ok(())
    }

    /// Whether the record of an id explains why it is in a container.
    fn explains(&self, id: u64, record: Option<&(K, V)>, container: &KeyBuf) -> bool {
        let Some((key, value)) = record else { return false };
        let mut is_in = false;
        self.containers_of(id, &self.held(key, value), |key| is_in |= key == *container);
        is_in
    }

    /// The fault of a container that contains, in some blocks, ids that no record explains. Its
    /// value is the container without these ids.
    fn without_strays<C: Codec<V>>(
        &self,
        table: &Table<K, V, C>,
        reader: &impl Reader,
        suspect: Suspect<'_>,
        blocks: &BTreeSet<u64>,
    ) -> Result<Option<Fault>> {
        let Suspect { entry, chunk, container } = suspect;
        let mut words = container.words();
        let ids = words.iter().filter_map(|offset| id_at(chunk, offset));
        let ids: Vec<u64> = ids.filter(|id| blocks.contains(&block(*id))).collect();
        let records = self.records_of(table, reader, &ids)?;
        let strays = ids.iter().zip(&records);
        let strays = strays.filter(|(id, record)| !self.explains(**id, record.as_ref(), &entry));
        let is_clean = strays.fold(true, |_, (id, _)| {
            words.remove(place_of(*id).1);
            false
        });
        Ok(match encoded(&words) {
            _ if is_clean => None,
            None => Some(dangling(entry)),
            value => Some(Fault { what: Inconsistency::new(entry, Rule::Wrong), value }),
        })
    }

    /// The fault of a column that contains, in some blocks, ids that no record explains. Its value
    /// is the column without these ids.
    fn column_without_strays<C: Codec<V>>(
        &self,
        table: &Table<K, V, C>,
        reader: &impl Reader,
        suspect: SuspectColumn<'_, K, V>,
        blocks: &BTreeSet<u64>,
    ) -> Result<Option<Fault>> {
        let ids: Vec<u64> =
            suspect.ids()?.into_iter().filter(|id| blocks.contains(&block(*id))).collect();
        let records = self.records_of(table, reader, &ids)?;
        let strays = ids.iter().zip(&records);
        let strays = strays.filter(|(_, record)| !suspect.field.explains(record.as_ref()));
        let (mut changes, mut is_clean) = (suspect.field.function.kind().no_changes(), true);
        for (id, _) in strays {
            changes.clear(block_of(*id).1);
            is_clean = false;
        }
        let SuspectColumn { entry, bytes, .. } = suspect;
        if is_clean {
            return Ok(None);
        }
        let value = changes.make(Some(bytes)).map_err(|error| error.at(&entry))?;
        Ok(Some(match value.is_empty() {
            true => dangling(entry),
            false => Fault { what: Inconsistency::new(entry, Rule::Wrong), value: Some(value) },
        }))
    }

    /// The records of ids. Costs two round trips.
    fn records_of<C: Codec<V>>(
        &self,
        table: &Table<K, V, C>,
        reader: &impl Reader,
        ids: &[u64],
    ) -> Result<Vec<Option<(K, V)>>> {
        match &self.ids {
            Ids::Dense(dense) => {
                let at: Vec<KeyBuf> = ids.iter().map(|id| dense.keys.pack(id)).collect();
                let keys = get_many(reader, &at)?.into_iter();
                let keys = keys.map(|key| key.and_then(|key| unpack::<K>(&key).ok()));
                let holders = ids.iter().zip(keys).map(|(id, key)| Some((*id, key?)));
                dense.records_of(table, reader, holders.collect())
            }
            Ids::Same(same) => {
                let key = |id: &u64| (same.key)(*id).filter(|_| same.has(*id));
                let keys: Vec<Option<K>> = ids.iter().map(key).collect();
                let mut records = table.get_many(reader, keys.iter().flatten())?.into_iter();
                let record = |key: Option<K>| {
                    let key = key?;
                    Some((key, records.next().flatten()?))
                };
                Ok(keys.into_iter().map(record).collect())
            }
        }
    }
}

impl<K, V> Field<K, V> {
    /// Whether the record of an id explains why it is in a column.
    fn explains(&self, record: Option<&(K, V)>) -> bool {
        record.is_some_and(|(key, value)| self.function.held(key, value).is_something())
    }
}

impl<K, V> SuspectColumn<'_, K, V> {
    /// The places of the ids with values.
    fn places(&self) -> Result<Vec<u16>> {
        Ok(match self.field.function.kind() {
            FieldKind::Values => Values::parse(self.bytes)?.places().collect(),
            FieldKind::Integers => Integers::parse(self.bytes)?.places().collect(),
        })
    }

    fn ids(&self) -> Result<Vec<u64>> {
        let places = self.places()?;
        Ok(places.into_iter().filter_map(|place| id_in_block(self.block, place)).collect())
    }

    /// Whether some ids have values, and none is beyond the largest possible id.
    fn has_ids(&self) -> bool {
        let last = self.places().ok().and_then(|places| places.last().copied());
        last.and_then(|last| id_in_block(self.block, last)).is_some()
    }
}

impl<'e, K, V> Suspects<'e, K, V> {
    fn new() -> Self {
        Self {
            ids: Vec::new(),
            containers: Vec::new(),
            columns: Vec::new(),
            of_ids: Vec::new(),
            of_records: Vec::new(),
        }
    }

    fn add_column(&mut self, suspect: SuspectColumn<'e, K, V>) {
        let from = self.ids.len();
        let mut last = None;
        for id in suspect.ids().into_iter().flatten() {
            let this = Some(block(id));
            if this != last {
                self.ids.push(id);
                last = this;
            }
        }
        self.columns.push((suspect, from..self.ids.len()));
    }

    fn add(&mut self, suspect: Suspect<'e>) {
        let (from, chunk) = (self.ids.len(), suspect.chunk);
        let mut last = None;
        for offset in suspect.container.words().iter() {
            let this = Some(u64::from(offset) / COMPARED_TOGETHER);
            if this != last {
                self.ids.extend(id_at(chunk, offset));
                last = this;
            }
        }
        self.containers.push((suspect, from..self.ids.len()));
    }
}

/// Whether the last place in a container of this chunk is an id. In the last chunk, a damaged
/// container can have places beyond `u64::MAX`.
fn ends_with_an_id(chunk: u64, container: Container<'_>) -> bool {
    let last = container.words().iter().next_back();
    last.and_then(|last| id_at(chunk, last)).is_some()
}

/// The block of an id, within its chunk.
fn block(id: u64) -> u64 {
    u64::from(place_of(id).1) / COMPARED_TOGETHER
}

fn stored_id<'i, K: RecordKey, V>(
    ids: &DenseIds<K>,
    key: &[u8],
    value: &[u8],
) -> Option<Stored<'i, K, V>> {
    if ids.free.space().contains(key) {
        return ids.free.space().unpack(key).ok().map(Stored::Free);
    }
    if ids.keys.contains(key) {
        let id = ids.keys.unpack(key).ok()?;
        return unpack::<K>(value).ok().map(|_| Stored::OfId(id));
    }
    if ids.ids.contains(key) {
        let of = ids.ids.unpack::<K>(key).ok()?;
        return Some(Stored::OfKey(keyloom::pack(&of)));
    }
    (ids.state_key()[..] == *key).then_some(Stored::Known)
}

fn foreign(entry: KeyBuf) -> Fault {
    Fault { what: Inconsistency::new(entry, Rule::Foreign), value: None }
}

fn dangling(entry: KeyBuf) -> Fault {
    Fault { what: Inconsistency::new(entry, Rule::Dangling), value: None }
}
