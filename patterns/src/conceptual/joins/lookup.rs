//! The lookup join: the records of many rows in few round trips.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::vec;

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, Reader, Result};

use crate::table::{RecordKey, Table};

/// The right side of a lookup join: a table, and how it is asked. A reference to a table is one
/// with the defaults.
///
/// ```
/// use keyloom::Subspace;
/// use keyloom_patterns::Table;
/// use keyloom_patterns::conceptual::joins::Lookup;
/// let countries = Table::<String, String>::new(&Subspace::new("countries"));
/// // Some 250 countries: each is read once, however many cities there are.
/// let lookup = Lookup::new(&countries).batch(500).remember(300);
/// ```
pub struct Lookup<K, V, C = Postcard> {
    table: Table<K, V, C>,
    batch: usize,
    remember: usize,
}

impl<K: RecordKey, V, C> Lookup<K, V, C> {
    /// 1,000 rows in a batch, and nothing remembered from batch to batch.
    pub fn new(table: &Table<K, V, C>) -> Self {
        Self { table: table.clone(), batch: 1_000, remember: 0 }
    }

    /// How many rows are read before their records are asked for: at least one.
    #[must_use]
    pub fn batch(self, rows: usize) -> Self {
        Self { batch: rows.max(1), ..self }
    }

    /// Remembers the records, and the absence of records, of up to so many keys from batch to
    /// batch. For a small right side: when there would be more, all are forgotten.
    #[must_use]
    pub fn remember(self, keys: usize) -> Self {
        Self { remember: keys, ..self }
    }
}

impl<K, V, C> Clone for Lookup<K, V, C> {
    fn clone(&self) -> Self {
        Self { table: self.table.clone(), ..*self }
    }
}

impl<K: RecordKey, V, C> From<&Table<K, V, C>> for Lookup<K, V, C> {
    fn from(table: &Table<K, V, C>) -> Self {
        Self::new(table)
    }
}

impl<K, V, C> fmt::Debug for Lookup<K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookup")
            .field("table", &self.table)
            .field("batch", &self.batch)
            .field("remember", &self.remember)
            .finish()
    }
}

/// Each row with the record of its key; see [`Joins::lookup_join`](super::Joins::lookup_join).
pub struct LookupJoin<'r, I, T, R, K, V, C, F> {
    rows: I,
    reader: &'r R,
    lookup: Lookup<K, V, C>,
    key: F,
    /// What is known of the table: what this batch asked for, and what is remembered.
    known: HashMap<KeyBuf, Option<Arc<V>>>,
    joined: vec::IntoIter<(T, Option<Arc<V>>)>,
    ended: bool,
}

impl<'r, I, T, R, K, V, C, F, O> LookupJoin<'r, I, T, R, K, V, C, F>
where
    I: Iterator<Item = Result<T>>,
    R: Reader,
    K: RecordKey,
    C: Codec<V>,
    F: FnMut(&T) -> O,
    O: Into<Option<K>>,
{
    pub(super) fn new(rows: I, reader: &'r R, lookup: Lookup<K, V, C>, key: F) -> Self {
        let joined = Vec::new().into_iter();
        Self { rows, reader, lookup, key, known: HashMap::new(), joined, ended: false }
    }

    fn join_batch(&mut self) -> Result<()> {
        let rows = self.rows.by_ref().take(self.lookup.batch).collect::<Result<Vec<T>>>()?;
        self.ended = rows.len() < self.lookup.batch;
        let space = self.lookup.table.space();
        let pack = |row: &T| (self.key)(row).into().map(|key| space.pack(&key));
        let keys: Vec<Option<KeyBuf>> = rows.iter().map(pack).collect();
        self.learn(&keys)?;
        let record = |key: Option<KeyBuf>| self.known.get(&key?).cloned().flatten();
        let joined: Vec<_> =
            rows.into_iter().zip(keys).map(|(row, key)| (row, record(key))).collect();
        self.joined = joined.into_iter();
        if self.known.len() > self.lookup.remember {
            self.known.clear();
        }
        Ok(())
    }

    /// Reads the records of those keys that are not known, each once and in the order of the store,
    /// whose pages are then visited in order too.
    fn learn(&mut self, keys: &[Option<KeyBuf>]) -> Result<()> {
        let mut unknown: Vec<&KeyBuf> =
            keys.iter().flatten().filter(|key| !self.known.contains_key(*key)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        let records = Table::<K, V, C>::read_many(self.reader, &unknown)?;
        let records = records.into_iter().map(|record| record.map(Arc::new));
        self.known.extend(unknown.into_iter().cloned().zip(records));
        Ok(())
    }
}

impl<I, T, R, K, V, C, F, O> Iterator for LookupJoin<'_, I, T, R, K, V, C, F>
where
    I: Iterator<Item = Result<T>>,
    R: Reader,
    K: RecordKey,
    C: Codec<V>,
    F: FnMut(&T) -> O,
    O: Into<Option<K>>,
{
    type Item = Result<(T, Option<Arc<V>>)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.joined.next() {
                return Some(Ok(row));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.join_batch() {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }
}

impl<I, T, R, K, V, C, F> fmt::Debug for LookupJoin<'_, I, T, R, K, V, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LookupJoin").field("lookup", &self.lookup).finish_non_exhaustive()
    }
}
