//! Records by an index of a catalog, also by one that is behind.

use keyloom::value::Codec;
use keyloom::{Order, Reader, Result};

use super::IndexCatalog;
use crate::continuation::{Continuation, Page};
use crate::general::composite_key_index::{Index, pack_one};
use crate::select::Select;
use crate::table::{RecordKey, Table};

impl<K: RecordKey, V> IndexCatalog<K, V> {
    /// The records of one page of the readable index `name`, as [`Index::records`] gives them, and of a
    /// deferred one those that are right: an entry whose record is gone by now, or has no such entry any more,
    /// is left out. Such a page may have fewer records than `limit`, even none, and be followed by others:
    /// only `next` tells. Not found are changes that wait for a [`drain`](IndexCatalog::drain) to bring them under these parts.
    ///
    /// Costs one get, and the two round trips of [`Index::records`].
    ///
    /// ```
    /// use keyloom::{Memory, Order, Store, Subspace};
    /// use keyloom_patterns::{Index, IndexCatalog, Table, entry};
    /// let space = Subspace::new("shop");
    /// let by_price = Index::new(&space.child("by_price"), |_id, cents: &u32| entry(cents));
    /// let catalog = IndexCatalog::new(&space.child("indexes")).with_deferred("by_price", 1, &by_price);
    /// let prices = Table::<u32, u32>::new(&space.child("prices")).with(&catalog);
    /// let store = Memory::new();
    /// store.transact(|txn| catalog.open(txn, &prices))?;
    /// store.transact(|txn| prices.put_many(txn, [(1, 250), (2, 250), (3, 250)]))?;
    /// catalog.drain(&store, &prices, "by_price", 100, |_| std::ops::ControlFlow::Continue(()))?;
    ///
    /// store.transact(|txn| {
    ///     prices.put(txn, &1, &300)?;
    ///     prices.delete(txn, &2).map(drop)
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let of_250 = catalog.records(&snapshot, &prices, "by_price", 250, Order::Ascending, 10, None)?;
    /// assert_eq!(of_250.items, [(3, 250)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`readable`](IndexCatalog::readable) and [`Index::page`]; of an index that is not deferred, as
    /// [`Index::records`].
    #[allow(clippy::too_many_arguments)]
    pub fn records<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
        name: &str,
        select: impl Select,
        order: Order,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<(K, V)>> {
        let declared = self.readable_index(reader, name)?;
        let index = &declared.index;
        if !declared.definition.is_deferred {
            return index.records(reader, table, select, order, limit, after);
        }
        let query = select.key_range(index.space());
        index.records_of(reader, table, &query, order, limit, after, |key, value, entry| {
            Ok(value.filter(|value| has_entry(index, &key, value, entry)).map(|value| (key, value)))
        })
    }
}

/// Whether a record, as it is, has the entry with this key.
fn has_entry<K: RecordKey, V>(index: &Index<K, V>, key: &K, value: &V, entry: &[u8]) -> bool {
    let record_key = pack_one(key);
    let entries = index.entries_of(key, Some(value));
    entries.iter().any(|made| *index.stored(made, &record_key).0 == *entry)
}
