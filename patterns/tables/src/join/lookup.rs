//! The lookup join, which reads the records of many rows in few round trips.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, Reader, Result};
use keyloom_kit::{RecordKey, until_error};

use crate::table::Table;

/// The right side of a lookup join: a table with the options for reading it. A reference to a table
/// converts to a lookup with the default options.
///
/// ```
/// use keyloom::Subspace;
/// use keyloom_tables::Table;
/// use keyloom_tables::join::Lookup;
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
    /// A lookup with the default options: 1,000 rows per batch, and no records cached between
    /// batches.
    pub fn new(table: &Table<K, V, C>) -> Self {
        Self { table: table.clone(), batch: 1_000, remember: 0 }
    }

    /// Sets the number of rows per batch, at least 1. The records of a batch are read together.
    #[must_use]
    pub fn batch(self, rows: usize) -> Self {
        Self { batch: rows.max(1), ..self }
    }

    /// Caches the records of up to `keys` keys between batches, and also which keys have no record.
    /// Intended for a small right side: if the limit is exceeded, the cache is cleared.
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

/// Pairs each row with the record of its key, or with `None`.
pub(super) fn lookup_join<T, K: RecordKey, V, C: Codec<V>, O: Into<Option<K>>>(
    mut rows: impl Iterator<Item = Result<T>>,
    reader: &impl Reader,
    lookup: Lookup<K, V, C>,
    mut key: impl FnMut(&T) -> O,
) -> impl Iterator<Item = Result<(T, Option<Arc<V>>)>> {
    // The records of this batch and the cached records.
    let mut known = HashMap::new();
    let mut joined = Vec::new().into_iter();
    let mut ended = false;
    until_error(move || {
        while joined.as_slice().is_empty() && !ended {
            let batch = rows.by_ref().take(lookup.batch).collect::<Result<Vec<T>>>()?;
            ended = batch.len() < lookup.batch;
            let space = lookup.table.space();
            let pack = |row: &T| key(row).into().map(|key| space.pack(&key));
            let keys: Vec<Option<KeyBuf>> = batch.iter().map(pack).collect();
            lookup.read(reader, &keys, &mut known)?;
            let record = |key: Option<KeyBuf>| known.get(&key?).cloned().flatten();
            let pair = |(row, key)| (row, record(key));
            joined = batch.into_iter().zip(keys).map(pair).collect::<Vec<_>>().into_iter();
            if known.len() > lookup.remember {
                known.clear();
            }
        }
        Ok(joined.next())
    })
}

impl<K: RecordKey, V, C: Codec<V>> Lookup<K, V, C> {
    /// Reads the records of the keys that are not cached. Each key is read once, and in key order,
    /// so that the store visits its pages in order.
    fn read(
        &self,
        reader: &impl Reader,
        keys: &[Option<KeyBuf>],
        known: &mut HashMap<KeyBuf, Option<Arc<V>>>,
    ) -> Result<()> {
        let mut unknown: Vec<&KeyBuf> =
            keys.iter().flatten().filter(|key| !known.contains_key(*key)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        let records = Table::<K, V, C>::read_many(reader, &unknown)?;
        let records = records.into_iter().map(|record| record.map(Arc::new));
        known.extend(unknown.into_iter().cloned().zip(records));
        Ok(())
    }
}
