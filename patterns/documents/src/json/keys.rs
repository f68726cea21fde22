//! Queries for the keys and the number of documents.

use std::collections::HashSet;

use keyloom::{KeyBuf, Reader, Result};
use keyloom_kit::{Page, RecordKey};

use super::query::JsonQuery;

impl<K: RecordKey> JsonQuery<'_, K> {
    /// The keys of the documents of [`page`](JsonQuery::page), in the same order. If no path has
    /// `[]`, each document has one entry and only entries are read. The documents are read if a
    /// path has `[]`, or if a bound of the range is a [long string](super#long-values), an array or
    /// an object.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_documents::Collection;
    /// use keyloom_tables::Schema;
    /// use serde_json::json;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let orders = Collection::<u32>::open(&schema, "orders")?.with_index(&schema, ["city"])?;
    /// store.transact(|txn| {
    ///     orders.put(txn, &1, &json!({"city": "Oslo"}))?;
    ///     orders.put(txn, &2, &json!({"city": "Rome"}))?;
    ///     orders.put(txn, &3, &json!({"city": "Oslo"}))
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let in_oslo = orders.find(["city"])?.equal("Oslo");
    /// assert_eq!(in_oslo.keys(&snapshot)?.items, [1, 3]);
    /// assert_eq!(in_oslo.count(&snapshot)?, 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`page`](JsonQuery::page).
    pub fn keys(&self, reader: &impl Reader) -> Result<Page<K>> {
        if self.has_one_entry_each()
            && let Some(entries) = self.exact_entries()?
        {
            return entries.limit(self.limit).after(self.after.as_ref()).keys(reader);
        }
        let Page { items, next } = self.page(reader)?;
        Ok(Page { items: items.into_iter().map(|(key, _)| key).collect(), next })
    }

    /// The number of documents on all pages after the continuation. If a bound of the range is a
    /// [long string](super#long-values), an array or an object, the documents are read. Otherwise
    /// only entries are counted. If no path has `[]`, a store may count the entries without reading
    /// them. If a path has `[]`, the entries are read, and the key of each document is kept in
    /// memory; after a continuation, the documents are read.
    ///
    /// # Errors
    /// The errors of [`page`](JsonQuery::page).
    pub fn count(&self, reader: &impl Reader) -> Result<u64> {
        let Some(entries) = self.exact_entries()? else { return self.count_of_pages(reader) };
        let entries = entries.after(self.after.as_ref());
        if self.has_one_entry_each() {
            return entries.limit(usize::MAX).count(reader);
        }
        if self.after.is_some() {
            return self.count_of_pages(reader);
        }
        let mut keys = HashSet::<KeyBuf>::new();
        for found in entries.limit(usize::MAX).entries(reader)? {
            keys.insert(keyloom::pack(&found?.record_key()?));
        }
        Ok(keys.len() as u64)
    }

    /// Counts page by page: a document with an entry before the continuation is on an earlier page,
    /// and is not counted again.
    fn count_of_pages(&self, reader: &impl Reader) -> Result<u64> {
        let (mut count, mut query) = (0, self.clone().limit(1_024));
        loop {
            let page = query.page(reader)?;
            count += page.items.len() as u64;
            let Some(next) = page.next else { return Ok(count) };
            query = query.after(next);
        }
    }
}
