//! Compares the columns that the records of a span require with the stored columns.

use std::ops::RangeInclusive;

use keyloom::{KeyBuf, Reader, Result};
use keyloom_kit::{Inconsistency, RecordKey, Rule, get_many};

use super::columns::OfColumn;
use super::fields::{FieldKind, Held};
use super::span::Fault;
use super::{Field, InvertedIndex};
use crate::column::{BLOCK_IDS, block_of, id_in_block};

impl FieldKind {
    /// Empty changes for a column of this kind of field.
    pub(super) fn no_changes<'h>(self) -> OfColumn<'h> {
        match self {
            Self::Values => OfColumn::Values(Vec::new()),
            Self::Integers => OfColumn::Integers(Vec::new()),
        }
    }

    /// Whether the bytes are a valid column of this kind of field.
    pub(super) fn is_column(self, bytes: &[u8]) -> bool {
        self.no_changes().make(Some(bytes)).is_ok()
    }
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// Collects the missing or wrong columns of some ids. `records` contains the ids that have
    /// records, with their values. The pass over stored entries handles columns that are to become
    /// empty.
    pub(super) fn compare_columns(
        &self,
        reader: &impl Reader,
        ids: &RangeInclusive<u64>,
        records: &[(u64, Vec<Held>)],
        faults: &mut Vec<Fault>,
    ) -> Result<()> {
        let blocks = || block_of(*ids.start()).0..=block_of(*ids.end()).0;
        let keys = self.fields.iter().flat_map(|f| blocks().map(|block| f.column.pack(&block)));
        let keys: Vec<KeyBuf> = keys.collect();
        let mut stored = keys.iter().zip(get_many(reader, &keys)?);
        for (n, field) in self.fields.iter().enumerate() {
            let held = records.iter().filter_map(|(id, held)| Some((*id, held.get(n)?)));
            let mut held = held.peekable();
            for (block, (key, stored)) in blocks().zip(stored.by_ref()) {
                let mut of_block = Vec::new();
                while let Some((id, held)) = held.next_if(|(id, _)| block_of(*id).0 == block) {
                    of_block.push((block_of(id).1, held));
                }
                let fault = field.compare_column(block, ids, &of_block, stored.as_deref());
                faults.extend(fault.map_err(|error| error.at(key))?);
            }
        }
        Ok(())
    }
}

impl<K, V> Field<K, V> {
    /// Compares the column of a block, limited to some ids. `held` contains the places of the ids
    /// that have records, each with the values of its record in this field.
    fn compare_column(
        &self,
        block: u64,
        ids: &RangeInclusive<u64>,
        held: &[(u16, &Held)],
        stored: Option<&[u8]>,
    ) -> Result<Option<Fault>> {
        if held.is_empty() && stored.is_none() {
            return Ok(None);
        }
        let kind = self.function.kind();
        let (mut changes, mut due) = (kind.no_changes(), held.iter().peekable());
        let is_in = |place| id_in_block(block, place).is_some_and(|id| ids.contains(&id));
        let places = 0..BLOCK_IDS as u16;
        let is_whole = [places.start, places.end - 1].into_iter().all(is_in);
        for place in places.filter(|place| is_in(*place)) {
            match due.next_if(|(at, _)| *at == place) {
                Some((_, held)) => changes.push(place, held),
                // If the whole column is compared, none of the old values are kept.
                None if is_whole => {}
                None => changes.clear(place),
            }
        }
        let others = stored.filter(|_| !is_whole);
        let made = match changes.make(others) {
            Ok(made) => made,
            Err(_) => changes.make(None)?,
        };
        if made == stored.unwrap_or_default() {
            return Ok(None);
        }
        let is_column = stored.map(|stored| kind.is_column(stored));
        let entry: KeyBuf = self.column.pack(&block);
        let what = match is_column {
            _ if made.is_empty() => return Ok(None),
            None => Inconsistency::new(entry, Rule::Missing),
            Some(true) => Inconsistency::new(entry, Rule::Wrong),
            Some(false) => Inconsistency::new(entry, Rule::Foreign),
        };
        Ok(Some(Fault { what, value: Some(made) }))
    }
}
