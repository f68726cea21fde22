//! Removes versions that are no longer needed.

use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Deref};

#[cfg(doc)]
use keyloom::Error;
use keyloom::{EntryPage, KeyBuf, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::{BatchSize, Progress, RecordKey, RepairOptions, refuse_foreign};

use super::WideColumns;
use super::cells::{DELETED, Found};

/// The rule for which versions of each column to keep. To apply both rules, sweep twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// This number of newest versions, counting deletions.
    Versions(NonZeroUsize),
    /// All versions needed for reads as of this time or later: the versions after this time,
    /// deletions included, and the version that was current at this time.
    Since(u64),
}

/// The state of a sweep within one column.
#[derive(Clone, Default)]
struct Column {
    /// The common prefix of the keys of the column.
    prefix: KeyBuf,
    /// The number of further versions to keep. For [`Keep::Since`], this number counts only
    /// versions with this time or older.
    room: usize,
    /// The last kept version, if it is a deletion that may be removed. It is removed if no older
    /// version remains.
    deletion: Option<KeyBuf>,
}

impl Column {
    fn new(keep: Keep, prefix: &[u8]) -> Self {
        let room = match keep {
            Keep::Versions(most) => most.get(),
            Keep::Since(_) => 1,
        };
        Self { prefix: KeyBuf::from_slice(prefix), room, deletion: None }
    }

    /// Decides whether to keep this version.
    fn keeps<R: RecordKey, B: Deref<Target = [u8]>>(
        &mut self,
        keep: Keep,
        found: &Found<R, B>,
    ) -> bool {
        if matches!(keep, Keep::Since(moment) if found.timestamp > moment) {
            self.deletion = None;
            return true;
        }
        if self.room == 0 {
            return false;
        }
        self.room -= 1;
        self.deletion = found.deletion();
        true
    }

    /// Ends the column. If a deletion may have to be removed, returns the column and the deletion.
    fn end(self) -> Option<(KeyBuf, KeyBuf)> {
        Some((self.prefix, self.deletion?))
    }
}

impl<R: RecordKey> WideColumns<R> {
    /// Removes the versions that `keep` does not keep, in bounded transactions, concurrently with
    /// readers and writers. Also removes deletions (tombstones) that hide no older version.
    /// Deletions after the time of [`Keep::Since`] stay, because they hide writes that arrive late.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::entity::wide_column::{Keep, WideColumns};
    /// let readings = WideColumns::<u32>::new(&Subspace::new("readings"));
    /// let store = Memory::new();
    /// store.transact(|txn| (0..50).try_for_each(|t| readings.put(txn, &7, "roof", "°C", t, b"21")))?;
    /// let done = readings.sweep(&store, Keep::Since(40))?;
    /// assert_eq!((done.entries, done.removed), (50, 40));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`] for a position outside the subspace;
    /// [`Error::At`] for an entry or a position that is not a cell; [`Error::NewerFormat`] for a
    /// cell of a newer program.
    pub fn sweep(&self, store: &impl Store, keep: Keep) -> Result<Progress> {
        self.sweep_with(store, keep, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`sweep`](WideColumns::sweep) with options.
    ///
    /// Calls `progress` after each commit, and stops if `progress` returns `ControlFlow::Break`. A
    /// sweep that was stopped, or whose process died, can resume at the last reported
    /// [`Progress::position`] ([`RepairOptions::resume`]). Resuming costs one more range, which
    /// reads at most the kept versions of one column. It is also safe to begin again.
    /// [`Progress::entries`] counts the versions visited.
    ///
    /// # Errors
    /// The errors of [`sweep`](WideColumns::sweep).
    pub fn sweep_with<S: Store>(
        &self,
        store: &S,
        keep: Keep,
        options: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut size = BatchSize::new(options.batch);
        let mut done = Progress::beginning(options);
        refuse_foreign(self.space(), done.position.last.as_deref())?;
        let mut column = match &done.position.last {
            None => Column::default(),
            Some(last) => self.column_up_to(&store.snapshot()?, keep, last)?,
        };
        while !done.finished {
            // The body may run more than once per commit, so each run starts from the committed
            // progress.
            (done, column) = size.transact(store, |txn, batch| {
                let (mut next, mut column) = (done.clone(), column.clone());
                self.sweep_batch(txn, keep, batch, &mut column, &mut next)?;
                Ok((next, column))
            })?;
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    fn sweep_batch(
        &self,
        txn: &mut impl Writer,
        keep: Keep,
        batch: usize,
        column: &mut Column,
        done: &mut Progress,
    ) -> Result<()> {
        let before = done.position.last.take();
        let all = self.space().range();
        let rest = match &before {
            None => all,
            Some(last) => all.resume(Order::Ascending, last),
        };
        let EntryPage { entries, last } = txn.page(rest, Order::Ascending, batch)?;
        done.entries += entries.len() as u64;
        let mut gone: Vec<KeyBuf> = Vec::new();
        let mut ended: Vec<(KeyBuf, KeyBuf)> = Vec::new();
        for entry in entries {
            let found = Found::<R, _>::new(self.space(), entry)?;
            if found.column_prefix() != &column.prefix[..] {
                let next = Column::new(keep, found.column_prefix());
                ended.extend(std::mem::replace(column, next).end());
            }
            if !column.keeps(keep, &found) {
                gone.push(KeyBuf::from_slice(found.key()));
            }
        }
        if last.is_none() {
            ended.extend(std::mem::take(column).end());
        }
        gone.iter().try_for_each(|key| txn.delete(key))?;
        done.removed += gone.len() as u64;
        for deletion in ended {
            done.removed += u64::from(Self::remove_last(txn, &deletion)?);
        }
        done.finished = last.is_none();
        done.position.last = last;
        Ok(())
    }

    /// The state after the versions up to `last`, computed from the versions that are still stored.
    /// Versions up to `last` that are not kept were removed already.
    fn column_up_to(&self, reader: &impl Reader, keep: Keep, last: &KeyBuf) -> Result<Column> {
        let prefix = Found::<R, &[u8]>::column_of(self.space(), last)?;
        let mut column = Column::new(keep, prefix);
        let range = Subspace::from_bytes(prefix).range().up_to(Order::Ascending, last);
        let kept = reader.range(range, Order::Descending)?.take(column.room);
        let kept = kept.collect::<Result<Vec<_>>>()?;
        for entry in kept.into_iter().rev() {
            column.keeps(keep, &Found::<R, _>::new(self.space(), entry)?);
        }
        Ok(column)
    }

    /// Removes a deletion if it no longer hides an older version.
    fn remove_last(txn: &mut impl Writer, (column, deletion): &(KeyBuf, KeyBuf)) -> Result<bool> {
        // Another writer may have put a value at this timestamp in the meantime.
        if txn.get(deletion)?.is_none_or(|value| *value != *DELETED) {
            return Ok(false);
        }
        let column = Subspace::from_bytes(column);
        let hides = txn.first(column.range().after(deletion))?.is_some();
        if !hides {
            txn.delete(deletion)?;
        }
        Ok(!hides)
    }
}
