//! Indexes that go.

use std::ops::ControlFlow;

use keyloom::{Order, Page, Result, Store, Subspace, Writer};

use super::states::States;
use super::{IndexCatalog, IndexInfo, IndexState};
use crate::batch::BatchSize;
use crate::general::composite_key_index::IndexError;
use crate::table::RecordKey;

/// How far a [`drop_index`](IndexCatalog::drop_index) has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropProgress {
    /// Keys removed by this call.
    pub removed: u64,
    /// Whether nothing is left of the index.
    pub finished: bool,
}

impl<K: RecordKey, V> IndexCatalog<K, V> {
    /// Takes an index out of use at once: from this transaction on nobody maintains or asks it. Its
    /// entries stay until it is built anew or dropped.
    ///
    /// The way out when an index gets in the way of writers, also one that this program does not declare.
    ///
    /// # Errors
    /// [`IndexError::Unknown`] when the store has no index of this name; what the store says.
    pub fn disable(&self, txn: &mut impl Writer, name: &str) -> Result<()> {
        txn.guarded(|txn| {
            let mut states = States(self.states(txn)?);
            if states.get(name).is_none() {
                return Err(unknown(&states, name));
            }
            self.disable_in(txn, &mut states, name)
        })
    }

    fn disable_in(&self, txn: &mut impl Writer, states: &mut States, name: &str) -> Result<()> {
        let followed = states.get(name).filter(|info| info.state != IndexState::Disabled);
        let Some(info) = followed.cloned() else { return Ok(()) };
        states.set(IndexInfo { state: IndexState::Disabled, ..info });
        txn.delete(&self.build_key(name))?;
        self.write_states(txn, states)
    }

    /// Removes an index, `batch` keys to a transaction: disables it, clears it, and forgets it. One that
    /// was interrupted goes on when it is called again.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_patterns::{Index, IndexCatalog, Table, entry};
    /// use std::ops::ControlFlow;
    /// let space = Subspace::new("shop");
    /// let by_price = Index::new(&space.child("by_price"), |_id: &u32, cents: &u32| entry(cents));
    /// let catalog = IndexCatalog::new(&space.child("indexes")).with("by_price", 1, &by_price);
    /// let prices = Table::new(&space.child("prices")).with(&catalog);
    /// let store = Memory::new();
    /// store.transact(|txn| catalog.open(txn, &prices))?;
    /// store.transact(|txn| prices.put_many(txn, (0..10).map(|n| (n, 250))))?;
    /// store.transact(|txn| catalog.disable(txn, "by_price"))?; // nobody maintains or asks it from here on
    /// let mut batches = 0;
    /// let done = catalog.drop_index(&store, "by_price", 4, |_| {
    ///     batches += 1;
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!((done.removed, batches), (10, 3));
    /// assert_eq!(catalog.states(&store.snapshot()?)?, []);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`disable`](IndexCatalog::disable); dropping what is declared and not in the store is no error.
    pub fn drop_index<S: Store>(
        &self,
        store: &S,
        name: &str,
        batch: usize,
        mut progress: impl FnMut(&DropProgress) -> ControlFlow<()>,
    ) -> Result<DropProgress> {
        let mut size = BatchSize::new(batch);
        let mut done = DropProgress::default();
        while !done.finished {
            let step = size.transact(store, |txn, batch| self.drop_batch(txn, name, batch))?;
            done = DropProgress { removed: done.removed + step.removed, ..step };
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    /// One batch of [`drop_index`](IndexCatalog::drop_index), in a transaction of the caller.
    ///
    /// # Errors
    /// As [`drop_index`](IndexCatalog::drop_index).
    pub fn drop_batch(
        &self,
        txn: &mut impl Writer,
        name: &str,
        batch: usize,
    ) -> Result<DropProgress> {
        txn.guarded(|txn| {
            let mut states = States(self.states(txn)?);
            let Some(info) = states.get(name) else {
                return match self.declared(name) {
                    Ok(_) => Ok(DropProgress { removed: 0, finished: true }),
                    Err(_) => Err(unknown(&states, name)),
                };
            };
            let entries = info.definition.space.clone();
            self.disable_in(txn, &mut states, name)?;
            let (removed, finished) = self.clear(txn, name, &[&entries], batch)?;
            if finished {
                states.remove(name);
                txn.delete(&self.build_key(name))?;
                self.write_states(txn, &states)?;
            }
            Ok(DropProgress { removed, finished })
        })
    }

    /// Removes some of what there is of an index, and tells how many keys, and whether nothing is left.
    pub(super) fn clear(
        &self,
        txn: &mut impl Writer,
        name: &str,
        entries: &[&Subspace],
        batch: usize,
    ) -> Result<(u64, bool)> {
        let rooms = [self.room("queue", name), self.room("violations", name)];
        let mut room_left = batch.max(1);
        let mut removed = 0;
        for space in entries.iter().copied().chain(&rooms) {
            let all = space.self_and_children();
            let Page { entries, last } = txn.page(all.clone(), Order::Ascending, room_left)?;
            let found = entries.len();
            drop(entries);
            match &last {
                Some(last) => txn.delete_range(all.up_to(Order::Ascending, last))?,
                None if found > 0 => txn.delete_range(all)?,
                None => {}
            }
            removed += found as u64;
            room_left -= found;
            if last.is_some() || room_left == 0 {
                return Ok((removed, false));
            }
        }
        Ok((removed, true))
    }
}

fn unknown(states: &States, name: &str) -> keyloom::Error {
    let known = states.0.iter().map(|info| info.name.as_str()).collect::<Vec<_>>().join(", ");
    IndexError::Unknown { index: name.into(), known }.into()
}
