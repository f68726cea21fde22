//! How derived data come and go while others read and write.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{DynWriter, KeyBuf, Page, Result, Store, Writer};

use super::attached::Attached;
use super::error::SchemaError;
use super::maintained::Maintained;
use super::owned::Declared;
use super::stored::{State, StoredDerived, StoredTable, space_of};
use crate::batch::BatchSize;
use crate::derived::{RecordChange, SortedWrites, page_behind};
use crate::table::record;

/// How many records or keys a batch visits.
const BATCH: usize = 1_000;

/// How far a [build](Attached::build) or [drop](Attached::drop_data) has come, in this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The state after the last transaction.
    pub state: State,
    /// Records visited.
    pub records: u64,
    /// Keys cleared, of another definition or of disabled data.
    pub cleared: u64,
    /// Whether nothing is left to do.
    pub finished: bool,
}

impl Progress {
    const NOTHING: Self = Self { state: State::Disabled, records: 0, cleared: 0, finished: false };
}

impl<D: Maintained, C: Codec<D::Value>> Attached<D, C> {
    /// Makes it readable: visits all records, in bounded transactions while others read and write. What is
    /// readable already by this definition costs one get.
    ///
    /// What the store has by another definition is disabled and cleared first, and so is what was disabled.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_patterns::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let prices = schema.table::<u32, u32>("prices")?;
    /// store.transact(|txn| prices.put(txn, &1, &250))?;
    ///
    /// // The next version of the program has an index more.
    /// let by_price = schema.index(&prices, "by_price", 1, |_, cents| entry(cents))?;
    /// assert!(by_price.at(&store.snapshot()?).is_err());
    /// by_price.build(&store)?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(by_price.at(&snapshot)?.count(&snapshot, 250)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`build_with`](Attached::build_with).
    pub fn build(&self, store: &impl Store) -> Result<Progress> {
        self.build_with(store, BATCH, |_| ControlFlow::Continue(()))
    }

    /// [`build`](Attached::build) with at most `batch` records or keys in a transaction, fewer where the store
    /// takes fewer, telling `progress` after each transaction how far it is.
    ///
    /// With `ControlFlow::Break` it stops. The position is in the store: the next call goes on there, in
    /// whichever program. Several at once take turns.
    ///
    /// # Errors
    /// [`SchemaError::Changed`] when the store has a newer version; what the kind refuses, such as two
    /// records with one value of a unique index, after which the build goes on where it was as soon as one of
    /// them is changed; a record that does not decode; any error of the store.
    pub fn build_with<S: Store>(
        &self,
        store: &S,
        batch: usize,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let snapshot = store.snapshot()?;
        let stored = self.owned()?.read(&snapshot)?;
        let Self { declared, .. } = self;
        let is_whole = |one: &StoredDerived| declared.is(one) && one.state == State::Readable;
        if stored.get(&declared.name).is_some_and(is_whole) {
            return Ok(Progress { state: State::Readable, finished: true, ..Progress::NOTHING });
        }
        std::mem::drop(snapshot);
        self.in_batches(store, batch, progress, |txn, batch| self.build_batch(txn, batch))
    }

    /// Disables it, removes all of it in bounded transactions, and takes it out of the schema.
    ///
    /// # Errors
    /// As [`drop_with`](Attached::drop_with).
    pub fn drop_data(&self, store: &impl Store) -> Result<Progress> {
        self.drop_with(store, BATCH, |_| ControlFlow::Continue(()))
    }

    /// [`drop_data`](Attached::drop_data) with at most `batch` keys in a transaction, telling `progress` after
    /// each. It can be stopped and called again.
    ///
    /// # Errors
    /// [`SchemaError::Gone`] when the store does not have the table any more; any error of the store.
    pub fn drop_with<S: Store>(
        &self,
        store: &S,
        batch: usize,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.in_batches(store, batch, progress, |txn, batch| self.drop_batch(txn, batch))
    }

    /// Writers leave it alone from now on, and queries are refused, until it is [built](Attached::build).
    /// Costs one get and one key written.
    ///
    /// # Errors
    /// [`SchemaError::Gone`]; any error of the store.
    pub fn disable(&self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| {
            let owned = self.owned()?;
            let mut stored = owned.read(txn)?;
            let name = &self.declared.name;
            let Some(one) = stored.get_mut(name) else {
                return Err(SchemaError::Gone { name: owned.name_of(name) }.into());
            };
            (one.state, one.built_to) = (State::Disabled, None);
            txn.put(&owned.entry, &stored.encode())
        })
    }

    fn in_batches<S: Store>(
        &self,
        store: &S,
        batch: usize,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
        mut step: impl FnMut(&mut S::Transaction<'_>, usize) -> Result<Progress>,
    ) -> Result<Progress> {
        let mut done = Progress::NOTHING;
        let mut size = BatchSize::new(batch);
        while !done.finished {
            let step = size.transact(store, |txn, batch| txn.guarded(|txn| step(txn, batch)))?;
            let (records, cleared) = (done.records + step.records, done.cleared + step.cleared);
            done = Progress { records, cleared, ..step };
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    fn build_batch(&self, txn: &mut impl Writer, batch: usize) -> Result<Progress> {
        let owned = self.owned()?;
        let declared = &*self.declared;
        let mut stored = owned.read(txn)?;
        let Some(one) = stored.get_mut(&declared.name) else {
            return Err(SchemaError::Gone { name: owned.name_of(&declared.name) }.into());
        };
        if one.definition.version > declared.definition.version || one.id != declared.id {
            owned.refuse_change(declared, one)?;
        }
        let done = match one.state {
            State::Readable if declared.is(one) => {
                return Ok(Progress {
                    state: State::Readable,
                    finished: true,
                    ..Progress::NOTHING
                });
            }
            State::Building if declared.is(one) => self.visit(txn, one, batch)?,
            _ => clear(txn, declared, one, batch)?,
        };
        txn.put(&owned.entry, &stored.encode())?;
        Ok(done)
    }

    /// Maintains it for the records behind those that were visited.
    fn visit(
        &self,
        txn: &mut impl Writer,
        one: &mut StoredDerived,
        batch: usize,
    ) -> Result<Progress> {
        let space = self.table.space();
        let Page { entries, last } = page_behind(one.built_to.as_deref(), txn, space, batch)?;
        let keys: Vec<_> = entries.iter().map(|(key, _)| KeyBuf::from_slice(key)).collect();
        let records = entries.into_iter().map(|entry| record::<_, _, _, C>(space, entry));
        let records = records.collect::<Result<Vec<_>>>()?;
        let of_each = records.iter().zip(&keys);
        let changes: Vec<_> = of_each
            .map(|((key, new), at)| RecordChange { key, stored_key: at, old: None, new: Some(new) })
            .collect();
        if !changes.is_empty() {
            let mut writes = SortedWrites::default();
            self.declared.derived().update(&mut DynWriter::new(txn), &changes, &mut writes)?;
            writes.apply(txn)?;
        }
        let finished = last.is_none();
        one.built_to = last;
        one.state = if finished { State::Readable } else { State::Building };
        let records = changes.len() as u64;
        Ok(Progress { state: one.state, records, finished, ..Progress::NOTHING })
    }

    fn drop_batch(&self, txn: &mut impl Writer, batch: usize) -> Result<Progress> {
        let owned = self.owned()?;
        let mut stored: StoredTable = owned.read(txn)?;
        let Some(one) = stored.get_mut(&self.declared.name) else {
            return Ok(Progress { finished: true, ..Progress::NOTHING });
        };
        let (cleared, is_empty) = clear_some(txn, one, batch)?;
        if is_empty {
            stored.derived.retain(|one| *one.name != *self.declared.name);
        }
        txn.put(&owned.entry, &stored.encode())?;
        Ok(Progress { cleared, finished: is_empty, ..Progress::NOTHING })
    }
}

/// Clears what there is by another definition or was disabled, and begins the build in the transaction that
/// finds nothing left.
fn clear<K, V>(
    txn: &mut impl Writer,
    declared: &Declared<K, V>,
    one: &mut StoredDerived,
    batch: usize,
) -> Result<Progress> {
    let (cleared, is_empty) = clear_some(txn, one, batch)?;
    if is_empty {
        one.definition = declared.definition.clone();
        one.state = State::Building;
    }
    Ok(Progress { state: one.state, cleared, ..Progress::NOTHING })
}

/// Disables derived data and removes some keys of them; tells how many, and whether these were the last.
fn clear_some<W: Writer>(
    txn: &mut W,
    one: &mut StoredDerived,
    batch: usize,
) -> Result<(u64, bool)> {
    (one.state, one.built_to) = (State::Disabled, None);
    let page = page_behind(None, txn, &space_of(one.id), batch)?;
    let keys: Vec<_> = page.entries.iter().map(|(key, _)| KeyBuf::from_slice(key)).collect();
    let is_empty = page.last.is_none();
    drop(page);
    keys.iter().try_for_each(|key| txn.delete(key))?;
    Ok((keys.len() as u64, is_empty))
}
