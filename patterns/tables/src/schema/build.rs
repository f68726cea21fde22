//! Builds, disables and drops derived data while other transactions read and write.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{DynWriter, EntryPage, KeyBuf, Result, Store, Writer};
use keyloom_kit::derived::{RecordChange, SortedWrites};
use keyloom_kit::{Progress, page_behind};

use super::attached::Attached;
use super::batches::{BATCH, delete_some, in_batches};
#[cfg(doc)]
use super::error::SchemaError;
use super::fence::{self, Batches};
use super::new_id;
use super::owned::Declared;
use super::state::State;
use super::stored::{Id, StoredDerived, StoredTable, repair_key, space_of, write_entry};
use crate::derived::Maintained;
use crate::table::record;

impl<D: Maintained, C: Codec<D::Value>> Attached<D, C> {
    /// Visits all records in bounded transactions, concurrently with readers and writers, and makes
    /// the derived data readable in the last transaction. Costs one get if the data is already
    /// readable.
    ///
    /// Disabled data, and data of an older definition, is cleared first.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let prices = schema.table::<u32, u32>("prices")?;
    /// store.transact(|txn| prices.put(txn, &1, &250))?;
    ///
    /// // The next version of the program adds an index.
    /// let by_price = schema.index(&prices, "by_price", 1, |_, cents| entry(cents))?;
    /// assert!(by_price.at(&store.snapshot()?).is_err());
    /// by_price.build(&store)?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(by_price.at(&snapshot)?.count(&snapshot, 250)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// See [`build_with`](Attached::build_with).
    pub fn build(&self, store: &impl Store) -> Result<Progress> {
        self.build_with(store, BATCH, |_| ControlFlow::Continue(()))
    }

    /// Like [`build`](Attached::build), with at most `batch` records or keys in a transaction; a
    /// batch that exceeds a limit of the store is halved. Calls `progress` after each transaction
    /// and stops if `progress` breaks.
    ///
    /// The position is stored: the next call, in any program, resumes there. Concurrent builds take
    /// turns. To limit the load on a server, or to let writers of other processes write to the same
    /// LMDB file, sleep in `progress`.
    ///
    /// On a store with concurrent writers, a batch that conflicts with a writer and took more than
    /// half a second is made smaller. After two conflicts, the writers of the table wait during
    /// each of the next batches. Such a batch takes about half a second, and the build pauses for
    /// as long after it. The writers wait only if the clocks of the programs differ by less than
    /// two seconds.
    ///
    /// # Errors
    /// [`SchemaError::Changed`] if the store has a newer version; [`SchemaError::Gone`]; errors of
    /// the kind, such as [`IndexError::NotUnique`](crate::IndexError::NotUnique): change one of the
    /// two records and call `build` again ([`violations`](Attached::violations) lists all such
    /// records); [`Error::At`](keyloom::Error::At) for a record that does not decode; any error of
    /// the store.
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
            return Ok(Progress::complete());
        }
        std::mem::drop(snapshot);
        let mut batches = Batches::new(batch);
        let raise = || store.transact(|txn| self.raise_fence(txn));
        repeated(progress, || batches.next(store, raise, |txn, batch| self.build_batch(txn, batch)))
    }

    /// One transaction of [`build`](Attached::build): the next `batch` records or keys.
    ///
    /// # Errors
    /// See [`build_with`](Attached::build_with).
    pub fn build_batch(&self, txn: &mut impl Writer, batch: usize) -> Result<Progress> {
        txn.guarded(|txn| self.build_next(txn, batch.max(1)))
    }

    /// Disables the derived data, removes its keys in bounded transactions, and then removes its
    /// definition.
    ///
    /// # Errors
    /// [`SchemaError::Gone`] if the table no longer exists; any error of the store.
    pub fn drop_data(&self, store: &impl Store) -> Result<Progress> {
        self.drop_with(store, BATCH, |_| ControlFlow::Continue(()))
    }

    /// Like [`drop_data`](Attached::drop_data), with at most `batch` keys in a transaction. Calls
    /// `progress` after each transaction and stops if `progress` breaks; the next call resumes.
    ///
    /// # Errors
    /// [`SchemaError::Gone`] if the table no longer exists; any error of the store.
    pub fn drop_with<S: Store>(
        &self,
        store: &S,
        batch: usize,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_batches(store, batch, progress, |txn, batch| self.drop_batch(txn, batch))
    }

    /// One transaction of [`drop_data`](Attached::drop_data): the next `batch` keys.
    ///
    /// # Errors
    /// [`SchemaError::Gone`] if the table no longer exists; any error of the store.
    pub fn drop_batch(&self, txn: &mut impl Writer, batch: usize) -> Result<Progress> {
        txn.guarded(|txn| {
            let owned = self.owned()?;
            let mut stored = owned.read(txn)?;
            // The data has already been dropped.
            if owned.find(&mut stored, &self.declared).is_err() {
                return Ok(Progress::complete());
            }
            drop_some(txn, &owned.entry, stored, &self.declared.name, batch.max(1))
        })
    }

    /// Stops maintenance and refuses queries until the next [`build`](Attached::build). Costs one
    /// get and one key written.
    ///
    /// # Errors
    /// [`SchemaError::Gone`]; any error of the store.
    pub fn disable(&self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| {
            let owned = self.owned()?;
            let mut stored = owned.read(txn)?;
            owned.find(&mut stored, &self.declared)?.disable();
            owned.write(txn, &stored)
        })
    }

    fn build_next(&self, txn: &mut impl Writer, batch: usize) -> Result<Progress> {
        let owned = self.owned()?;
        let declared = &*self.declared;
        let mut stored = owned.read(txn)?;
        let one = owned.find(&mut stored, declared)?;
        if one.definition.version > declared.definition.version {
            owned.refuse_change(declared, one)?;
        }
        one.fenced_until = None;
        // Two programs may have declared different variants of a key before either program has
        // built the data.
        let widened = one.definition.widened(&declared.definition);
        let is_widened = widened.is_some();
        one.definition = widened.unwrap_or_else(|| one.definition.clone());
        let done = match one.state {
            State::Readable if declared.is(one) => {
                if is_widened {
                    owned.write(txn, &stored)?;
                }
                return Ok(Progress::complete());
            }
            State::Building if declared.is(one) && one.all_visited => {
                self.finish(txn, one, batch)?
            }
            State::Building if declared.is(one) => self.visit(txn, one, batch)?,
            _ => clear(txn, declared, one, batch)?,
        };
        owned.write(txn, &stored)?;
        Ok(done)
    }

    /// Raises the fence, so that the next batch runs without concurrent writers; see [`fence`].
    pub(super) fn raise_fence(&self, txn: &mut impl Writer) -> Result<()> {
        let owned = self.owned()?;
        let mut stored = owned.read(txn)?;
        let one = owned.find(&mut stored, &self.declared)?;
        if one.state != State::Building {
            return Ok(());
        }
        one.fenced_until = Some(fence::end());
        owned.write(txn, &stored)
    }

    /// Visits the next records.
    fn visit(
        &self,
        txn: &mut impl Writer,
        one: &mut StoredDerived,
        batch: usize,
    ) -> Result<Progress> {
        let space = self.table.space();
        let EntryPage { entries, last } = page_behind(one.built_to.as_deref(), txn, space, batch)?;
        let keys: Vec<_> = entries.iter().map(|(key, _)| KeyBuf::from_slice(key)).collect();
        let records = entries.into_iter().map(|entry| record::<_, _, _, C>(space, entry));
        let records = records.collect::<Result<Vec<_>>>()?;
        let of_each = records.iter().zip(&keys);
        let changes: Vec<_> = of_each
            .map(|((key, new), at)| RecordChange { key, stored_key: at, old: None, new: Some(new) })
            .collect();
        if !changes.is_empty() {
            let mut writes = SortedWrites::default();
            let derived = self.declared.derived();
            derived.update_in_build(None, &mut DynWriter::new(txn), &changes, &mut writes)?;
            writes.apply(txn)?;
        }
        let records = changes.len() as u64;
        one.all_visited = last.is_none();
        one.built_to = last;
        match one.all_visited {
            true => Ok(Progress { records, ..self.finish(txn, one, batch)? }),
            false => Ok(Progress { records, ..Progress::default() }),
        }
    }

    /// Runs the next step of the final phase, which comes after the last record.
    fn finish(
        &self,
        txn: &mut impl Writer,
        one: &mut StoredDerived,
        batch: usize,
    ) -> Result<Progress> {
        let (derived, reached) = (self.declared.derived(), one.built_to.take());
        one.built_to = derived.finish_build(&mut DynWriter::new(txn), reached.as_deref(), batch)?;
        one.all_visited = one.built_to.is_some();
        one.state = if one.all_visited { State::Building } else { State::Readable };
        Ok(Progress { finished: !one.all_visited, ..Progress::default() })
    }
}

/// Clears disabled data, and begins the build in the transaction that removes the last key.
fn clear<K, V>(
    txn: &mut impl Writer,
    declared: &Declared<K, V>,
    one: &mut StoredDerived,
    batch: usize,
) -> Result<Progress> {
    let (cleared, is_empty) = clear_some(txn, one, batch)?;
    if is_empty {
        if !one.definition.covers(&declared.definition) {
            one.definition = declared.definition.clone();
        }
        one.state = State::Building;
        one.queue = match one.queue.filter(|_| one.definition.is_deferred) {
            None if one.definition.is_deferred => Some(new_id(txn)?),
            queue => queue,
        };
    }
    Ok(Progress { removed: cleared, ..Progress::default() })
}

/// Disables derived data and removes some of its keys. Returns how many were removed, and whether
/// none are left.
fn clear_some(txn: &mut impl Writer, one: &mut StoredDerived, batch: usize) -> Result<(u64, bool)> {
    one.disable();
    let mut cleared = 0;
    for id in one.ids() {
        let left = batch.saturating_sub(usize::try_from(cleared).unwrap_or(usize::MAX));
        let (removed, is_empty) = match left {
            0 => (0, txn.first(space_of(id).self_and_children())?.is_none()),
            left => delete_some(txn, &space_of(id), left)?,
        };
        cleared += removed;
        if !is_empty {
            return Ok((cleared, false));
        }
    }
    Ok((cleared, true))
}

/// Removes some keys of derived data, and also its definition if none are left.
pub(super) fn drop_some(
    txn: &mut impl Writer,
    entry: &[u8],
    mut stored: StoredTable,
    name: &str,
    batch: usize,
) -> Result<Progress> {
    let Some(one) = stored.get_mut(name) else {
        return Ok(Progress::complete());
    };
    let (cleared, is_empty) = clear_some(txn, one, batch)?;
    if is_empty {
        forget_repairs(txn, one.id)?;
        stored.derived.retain(|one| one.name != name);
    }
    write_entry(txn, entry, &stored)?;
    Ok(Progress { removed: cleared, finished: is_empty, ..Progress::default() })
}

/// Removes the counter of the repairs of the data with this id.
pub(super) fn forget_repairs(txn: &mut impl Writer, id: Id) -> Result<()> {
    let key = repair_key(id);
    if txn.get(&key)?.is_some() { txn.delete(&key) } else { Ok(()) }
}

/// Runs `step` until it has finished or `progress` breaks.
fn repeated(
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    mut step: impl FnMut() -> Result<Progress>,
) -> Result<Progress> {
    let mut done = Progress::default();
    while !done.finished {
        done = done.followed_by(&step()?);
        if progress(&done).is_break() {
            break;
        }
    }
    Ok(done)
}
