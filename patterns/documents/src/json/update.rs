//! Changes of all documents that satisfy a condition.

use std::ops::ControlFlow;

use keyloom::{Error, KeyBuf, Result, Snapshots, Store};
use keyloom_kit::{
    Progress, RecordKey, RepairOptions, UnreadableEntry, in_batches, refuse_foreign,
};
use serde_json::Value;

use super::change::refuse_deep;
use super::collection::Collection;
use super::condition::Condition;

impl<K: RecordKey> Collection<K> {
    /// Changes all documents that satisfy a condition, in bounded transactions. `change` returns
    /// the new document, or `None` to delete the document. `change` may run more than once for a
    /// document; only one of its results is stored.
    ///
    /// The keys of the documents are found first, and kept in memory; each transaction then reads
    /// its documents again. So a document is changed once, even if its new value satisfies the
    /// condition too. A document that another writer has changed since, so that it no longer
    /// satisfies the condition, is not changed. A document that another writer adds or changes
    /// while the keys are read may be left out.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_documents::json::{Collection, Condition};
    /// use keyloom_tables::Schema;
    /// use serde_json::json;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let teas = Collection::<u32>::open(&schema, "teas")?.with_index(&schema, ["price"])?;
    /// let prices = [(1, json!({ "price": 4 })), (2, json!({ "price": 7 }))];
    /// store.transact(|txn| teas.put_many(txn, prices.clone()))?;
    ///
    /// let cheap = Condition::range("price", ..json!(5))?;
    /// let done = teas.update_where(&store, &cheap, |_, mut tea| {
    ///     tea["price"] = json!(tea["price"].as_i64().unwrap_or(0) + 1);
    ///     Ok(Some(tea))
    /// })?;
    /// assert_eq!(done.written, 1);
    /// assert_eq!(teas.get(&store.snapshot()?, &1)?, Some(json!({ "price": 5 })));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of `change`, of [`find_where`](Collection::find_where) and of
    /// [`put`](Collection::put). Earlier transactions stay committed, and the next update may
    /// change their documents again: make `change` idempotent, or make it change the document so
    /// that the condition no longer holds.
    pub fn update_where<S: Store>(
        &self,
        store: &S,
        condition: &Condition,
        change: impl FnMut(&K, Value) -> Result<Option<Value>>,
    ) -> Result<Progress> {
        let options = RepairOptions::default();
        let go_on = |_: &Progress| ControlFlow::Continue(());
        self.update_where_with(store, condition, change, &options, go_on)
    }

    /// [`update_where`](Collection::update_where) with options. Calls `progress` after each
    /// transaction and stops if `progress` breaks. To resume, pass the position of the returned
    /// progress in `options`. Without a position, documents that were already changed and still
    /// satisfy the condition are changed again.
    ///
    /// [`Progress::records`] counts the documents visited, [`Progress::written`] those changed, and
    /// [`Progress::removed`] those deleted. [`Progress::undecodable`] counts documents that do not
    /// decode; they are not changed.
    ///
    /// # Errors
    /// The errors of [`update_where`](Collection::update_where).
    pub fn update_where_with<S: Store>(
        &self,
        store: &S,
        condition: &Condition,
        mut change: impl FnMut(&K, Value) -> Result<Option<Value>>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        if let Some(position) = &options.resume {
            refuse_foreign(self.table.space(), position.last.as_deref())?;
            // A position with a later stage, or in the entries, comes from a repair of this
            // collection.
            if position.stage > 0 || position.entries {
                return Err(Error::InvalidArgument {
                    what: "the position to resume at",
                    value: format!("part {} of a repair", position.stage),
                    why: "it is not one of an update; begin the update again",
                });
            }
        }
        let from = options.resume.as_ref().and_then(|position| position.last.clone());
        let (found, undecodable) = self.keys_where(store, condition, from.as_ref())?;
        in_batches(store, options, progress, |txn, batch, done| {
            let visited = |key: &KeyBuf| Some(key) <= done.position.last.as_ref();
            let rest = found.get(found.partition_point(visited)..).unwrap_or_default();
            let some = rest.get(..batch.min(rest.len())).unwrap_or_default();
            let keys = some.iter().map(|key| self.table.space().unpack(key));
            let keys: Vec<K> = keys.collect::<Result<_, _>>()?;
            let documents = self.table.get_many(txn, &keys)?;
            let mut changed = Vec::new();
            for (key, document) in keys.iter().zip(documents) {
                done.records += 1;
                let Some(old) = document.filter(|document| condition.matches(document)) else {
                    continue;
                };
                let new = change(key, old.clone())?;
                new.iter().try_for_each(|new| refuse_deep(key, new))?;
                let count = if new.is_some() { &mut done.written } else { &mut done.removed };
                *count += 1;
                changed.push((key, old, new));
            }
            let changed = changed.iter().map(|(key, old, new)| (*key, Some(old), new.as_ref()));
            self.table.replace_many(txn, changed)?;
            done.finished = some.len() == rest.len();
            done.position.last = some.last().filter(|_| !done.finished).cloned();
            if done.finished {
                done.undecodable += undecodable;
            }
            Ok(())
        })
    }

    /// The packed keys of the documents after `from` that satisfy a condition, in order, and the
    /// number of documents that do not decode.
    fn keys_where<S: Store>(
        &self,
        store: &S,
        condition: &Condition,
        from: Option<&KeyBuf>,
    ) -> Result<(Vec<KeyBuf>, u64)> {
        // Reads from one snapshot for as long as the store keeps it, so a document that moves in
        // the index is found once.
        let snapshots = Snapshots::lasting(store);
        let (mut keys, mut undecodable) = (Vec::new(), 0);
        for found in self.find_where(&snapshots, condition)? {
            match found {
                Ok((key, _)) => keys.push(self.table.space().pack(&key)),
                Err(error) if error.downcast_ref::<UnreadableEntry>().is_some() => undecodable += 1,
                Err(error) => return Err(error),
            }
        }
        keys.retain(|key| Some(key) > from);
        keys.sort_unstable();
        // If several snapshots were used, a document that moved in the index may be found twice.
        keys.dedup();
        Ok((keys, undecodable))
    }
}
