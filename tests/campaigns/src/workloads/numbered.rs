//! Records with the ids that an index assigns.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use keyloom::{DynWriter, Reader, Result};
use keyloom_patterns::Table;
use keyloom_patterns::bitmaps::InvertedIndex;
use keyloom_patterns::table::RecordKey;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The records of a table, and their ids in an index: the smallest free id, or the next one.
#[derive(Clone)]
pub struct Numbered<K, V> {
    pub records: BTreeMap<K, V>,
    pub ids: BTreeMap<K, u64>,
    free: BTreeSet<u64>,
    next: u64,
}

impl<K, V> Default for Numbered<K, V> {
    fn default() -> Self {
        let (records, ids) = (BTreeMap::new(), BTreeMap::new());
        Self { records, ids, free: BTreeSet::new(), next: 0 }
    }
}

impl<K: Ord + Copy, V> Numbered<K, V> {
    pub fn put(&mut self, key: K, value: V) {
        if !self.ids.contains_key(&key) {
            let id = self.free.pop_first().unwrap_or(self.next);
            self.next = self.next.max(id + 1);
            self.ids.insert(key, id);
        }
        self.records.insert(key, value);
    }

    pub fn delete(&mut self, key: &K) -> Option<V> {
        self.free.extend(self.ids.remove(key));
        self.records.remove(key)
    }
}

impl<K: RecordKey + Ord + Copy + Debug, V: Clone + Serialize + DeserializeOwned> Numbered<K, V> {
    /// Adds the records that have another id in an index.
    pub fn judge_ids<W>(
        &self,
        wrong: &mut Vec<String>,
        index: &InvertedIndex<K, W>,
        reader: &impl Reader,
    ) -> Result<()> {
        for (key, id) in &self.ids {
            super::compare(wrong, "an id", index.id_of(reader, key)?, Some(*id));
        }
        Ok(())
    }

    /// Writes the records into an empty table, so that each gets its id. A free id is first
    /// assigned to an unused key with the value `empty`, and then released.
    pub fn rebuild(
        &self,
        table: &Table<K, V>,
        txn: &mut DynWriter<'_>,
        unused: impl Fn(u64) -> K,
        empty: &V,
    ) -> Result<()> {
        let holders: BTreeMap<u64, K> = self.ids.iter().map(|(key, id)| (*id, *key)).collect();
        let of_id = |id: u64| {
            let key = holders.get(&id).copied().unwrap_or_else(|| unused(id));
            (key, self.records.get(&key).unwrap_or(empty).clone())
        };
        let all: Vec<(K, V)> = (0..self.next).map(of_id).collect();
        // In a batch, ids are assigned in key order.
        for ascending in all.chunk_by(|(one, _), (next, _)| one < next) {
            table.put_many(txn, ascending)?;
        }
        let free: Vec<K> = self.free.iter().map(|id| unused(*id)).collect();
        table.delete_many(txn, &free).map(drop)
    }
}
