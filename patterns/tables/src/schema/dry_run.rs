//! Dry runs: declarations whose writes stay in memory.

use std::sync::{Mutex, PoisonError};

use keyloom::backend::{Overlaid, Overlay, OverlayEntries};
use keyloom::{
    DynWriter, Error, KeyRange, Limits, Order, Reader, Result, Store, TransactionState, Writer,
    check_key, check_value, pack,
};

use super::Schema;

/// The first id that a dry run assigns. No store has keys with such ids. So a handle that is kept
/// after a dry run reads nothing, rather than another table.
const FIRST_ID: i64 = i64::MAX / 2;

/// The writes of a dry run.
#[derive(Debug)]
pub(super) struct DryRun(Mutex<Overlay>);

impl DryRun {
    pub(super) fn new() -> Self {
        let mut overlay = Overlay::default();
        overlay.put(&pack(&("keyloom", "next id")), FIRST_ID.to_le_bytes().to_vec());
        Self(Mutex::new(overlay))
    }

    /// Runs `body` on the snapshot overlaid with all writes of the dry run.
    pub(super) fn run<R: Reader, T>(
        &self,
        snapshot: R,
        limits: Limits,
        body: impl FnOnce(&mut Dry<'_, R>) -> Result<T>,
    ) -> Result<T> {
        let overlay = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        body(&mut Dry { snapshot, overlay, limits, state: TransactionState::default() })
    }
}

/// A transaction of a dry run.
pub(super) struct Dry<'o, R> {
    snapshot: R,
    overlay: &'o mut Overlay,
    limits: Limits,
    state: TransactionState,
}

impl<R: Reader> Reader for Dry<'_, R> {
    type Bytes<'r>
        = Overlaid<'r, R::Bytes<'r>>
    where
        Self: 'r;
    type Entries<'r>
        = OverlayEntries<'r, R::Entries<'r>>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        match self.overlay.get(key) {
            Some(written) => Ok(written.map(|value| Overlaid::Written(value))),
            None => Ok(self.snapshot.get(key)?.map(Overlaid::Below)),
        }
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        let below = self.snapshot.range(range.clone(), order)?;
        Ok(self.overlay.entries(&range, order, below))
    }
}

impl<R: Reader> Writer for Dry<'_, R> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        check_value(key, value, self.limits.max_value_bytes)?;
        self.overlay.put(key, value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.overlay.delete(key);
        Ok(())
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.overlay.delete_range(&range);
        Ok(())
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }
}

impl<S: Store> Schema<'_, S> {
    /// Runs `body` in a transaction; in a dry run, the writes are kept in memory.
    pub(super) fn enter<T>(
        &self,
        mut body: impl FnMut(&mut DynWriter<'_>) -> Result<T>,
    ) -> Result<T> {
        match &self.dry_run {
            Some(dry) => dry.run(self.store.snapshot()?, self.store.limits(), |txn| {
                body(&mut DynWriter::new(txn))
            }),
            None => self.store.transact(|txn| txn.guarded(|txn| body(&mut DynWriter::new(txn)))),
        }
    }

    /// The store, for operations that a dry run does not support.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] in a dry run.
    pub(super) fn not_dry(&self) -> Result<&S> {
        match self.dry_run {
            None => Ok(self.store),
            Some(_) => Err(Error::InvalidArgument {
                what: "the schema",
                value: self.name.to_string(),
                why: "this is a dry run, which takes declarations and renames only; use `Schema::open` to write",
            }),
        }
    }
}
