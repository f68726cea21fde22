//! Reads of a table on several threads.

use keyloom::value::Codec;
use keyloom::{Order, Reader, Result, Store};
use keyloom_kit::{RecordKey, Select};

use super::{Table, record};

impl<K: RecordKey, V, C: Codec<V>> Table<K, V, C> {
    /// Calls `work` with the selected records, in disjoint parts in the order of their keys, on up
    /// to `threads` threads. Returns the results of the parts in the order of the keys.
    ///
    /// All parts are read in one snapshot. Use this for work on many records, such as counts,
    /// groups and exports: a part has thousands of records, and dividing the table costs as much as
    /// reading some thousands. [`in_parallel`](keyloom_kit::in_parallel) has the details. A
    /// descending `select` is read in ascending order.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// let words = Table::<u32, String>::new(&Subspace::new("words"));
    /// let store = Memory::new();
    /// let word = |n: u32| (n, ["tea", "milk", "tea"][n as usize % 3].to_owned());
    /// store.transact(|txn| words.put_many(txn, (0..30_000).map(word)))?;
    ///
    /// // How often does each word occur?
    /// let parts = words.in_parallel(&store, .., 2, |records| {
    ///     let mut counts = BTreeMap::<String, u64>::new();
    ///     for record in records {
    ///         *counts.entry(record?.1).or_default() += 1;
    ///     }
    ///     Ok(counts)
    /// })?;
    /// let mut counts = BTreeMap::new();
    /// for (word, count) in parts.into_iter().flatten() {
    ///     *counts.entry(word).or_insert(0) += count;
    /// }
    /// assert_eq!((counts["milk"], counts["tea"]), (10_000, 20_000));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of `work` in the order of the keys. The iterator reports keys and records
    /// that do not decode.
    pub fn in_parallel<S: Store, T: Send>(
        &self,
        store: &S,
        select: impl Select<K>,
        threads: usize,
        work: impl Fn(&mut dyn Iterator<Item = Result<(K, V)>>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let range = select.key_range(&self.space);
        keyloom_kit::in_parallel(store, range, threads, |snapshot, part| {
            let entries = snapshot.range(part, Order::Ascending)?;
            work(&mut entries.map(|entry| record::<_, K, V, C>(&self.space, entry?)))
        })
    }
}
