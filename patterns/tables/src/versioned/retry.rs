//! Changes that are decided outside of a transaction, and decided again after a conflict.

use keyloom::value::Codec;
use keyloom::{Error, Result, Store};
use keyloom_kit::RecordKey;

use super::{RecordConflict, VersionedRecord, VersionedTable};

impl<K: RecordKey, V: Send + Sync + 'static, C: Codec<V>> VersionedTable<K, V, C> {
    /// Reads a record, calls `decide` for the new record, and writes the new record if the stored
    /// record still has the version that was read. Otherwise it tries again, with at most
    /// `max_attempts` attempts, after the pauses of the [policy](keyloom::RetryPolicy::pause) of
    /// the store. `None` means no record, in arguments and in results. Returns the new version.
    ///
    /// `decide` runs outside of a transaction, so it may take a long time and may call another
    /// service. If it does neither, [`modify`](VersionedTable::modify) is simpler and cheaper.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::VersionedTable;
    /// let scores = VersionedTable::<String, u32>::new(&Subspace::new("scores"));
    /// let (store, ada) = (Memory::new(), "Ada".to_owned());
    /// let version = scores.modify_retrying(&store, &ada, 5, |score| {
    ///     Ok(Some(score.copied().unwrap_or(0) + 10))
    /// })?;
    /// assert_eq!(version, Some(1));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of `decide`, and the last [`RecordConflict`] if all attempts conflict; in both
    /// cases nothing was written. [`Error::InvalidArgument`] for `max_attempts` of 0; the errors of
    /// [`Store::transact`]. A commit of [unknown outcome](Error::maybe_committed) is not retried.
    pub fn modify_retrying(
        &self,
        store: &impl Store,
        key: &K,
        max_attempts: u32,
        mut decide: impl FnMut(Option<&V>) -> Result<Option<V>>,
    ) -> Result<Option<u64>>
    where
        V: Clone,
    {
        if max_attempts == 0 {
            return Err(Error::InvalidArgument {
                what: "the number of attempts",
                value: "0".into(),
                why: "it is at least 1",
            });
        }
        let mut attempt = 1;
        loop {
            let seen = self.get(&store.snapshot()?, key)?;
            let new = decide(seen.as_deref())?;
            match self.write_if_seen(store, key, seen.as_ref(), new) {
                Err(error) if attempt < max_attempts && is_conflict::<V>(&error) => attempt += 1,
                outcome => return outcome,
            }
            std::thread::sleep(store.retry_policy().pause(attempt));
        }
    }

    /// Replaces the record if it still has the version that was read.
    fn write_if_seen(
        &self,
        store: &impl Store,
        key: &K,
        seen: Option<&VersionedRecord<V>>,
        new: Option<V>,
    ) -> Result<Option<u64>>
    where
        V: Clone,
    {
        store.transact(|txn| match (seen, new.clone()) {
            (Some(seen), Some(new)) => self.update(txn, key, seen.version, new).map(Some),
            (Some(seen), None) => self.delete(txn, key, seen.version).map(|()| None),
            (None, Some(new)) => self.create(txn, key, new).map(Some),
            (None, None) => Ok(None),
        })
    }
}

fn is_conflict<V: 'static>(error: &Error) -> bool {
    error.downcast_ref::<RecordConflict<V>>().is_some()
}
