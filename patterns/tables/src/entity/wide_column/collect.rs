//! Removing versions that are no longer wanted.

use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Deref};

use keyloom::{Entry, Error, KeyBuf, Order, Page, Reader, Result, Store, Subspace, Writer};

use super::WideColumns;
use super::cells::{DELETED, Found};
use crate::batch::BatchSize;
use crate::table::RecordKey;

/// Which versions of each column stay. To keep to both rules, collect twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The newest so many, deletions among them.
    Versions(NonZeroUsize),
    /// What can be read as of this time or later: everything since, and the version that was
    /// current then.
    Since(u64),
}

/// How [`WideColumns::collect`] works.
#[derive(Clone, Debug)]
pub struct CollectOptions {
    /// How many versions one transaction visits at most. Default: 1,000. Where a store finds that
    /// too much, a batch is halved until it fits; see [`BatchSize`].
    pub batch: usize,
    /// Where to go on after a collection that was stopped; `None` begins.
    pub resume: Option<CollectPosition>,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self { batch: 1_000, resume: None }
    }
}

/// How far a collection has come: everything up to `last` is done. Store its fields to go on in
/// another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectPosition {
    /// The last key that was visited.
    pub last: KeyBuf,
    /// What was kept of its column.
    pub column: CollectedColumn,
}

/// What a collection has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectProgress {
    /// Where it is, `None` at the beginning.
    pub position: Option<CollectPosition>,
    /// Whether that is the end.
    pub finished: bool,
    /// Versions visited.
    pub visited: u64,
    /// Versions removed.
    pub removed: u64,
}

/// What a collection has kept so far of the column that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectedColumn {
    /// What the keys of the column begin with.
    pub prefix: KeyBuf,
    /// How many of its versions stay.
    pub kept: usize,
    /// Whether the version that was current at the moment of [`Keep::Since`] was met.
    pub settled: bool,
    /// The last one that stays, where it is a deletion: it goes when nothing is left behind it.
    pub deletion: Option<KeyBuf>,
}

impl CollectedColumn {
    /// Whether this version stays.
    fn keeps(&mut self, keep: Keep, timestamp: u64) -> bool {
        let stays = match keep {
            Keep::Versions(most) => self.kept < most.get(),
            Keep::Since(moment) => {
                timestamp > moment || !std::mem::replace(&mut self.settled, true)
            }
        };
        self.kept += usize::from(stays);
        stays
    }

    /// What a column ends with, when that is a deletion: the column and the deletion.
    fn end(&mut self) -> Option<(KeyBuf, KeyBuf)> {
        let deletion = self.deletion.take()?;
        Some((std::mem::take(&mut self.prefix), deletion))
    }
}

impl<R: RecordKey> WideColumns<R> {
    /// Removes the versions that `keep` does not keep, in bounded transactions, while others read
    /// and write. A deletion goes as well when it hides nothing any more.
    ///
    /// `progress` is told after each transaction what was done; with `ControlFlow::Break` it stops.
    /// Every batch is committed when `progress` receives of it, so what was stopped, or died, can
    /// go on from the last position that it told ([`CollectOptions::resume`]). Starting again is
    /// always safe too.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::entity::wide_column::{CollectOptions, Keep, WideColumns};
    /// use std::ops::ControlFlow;
    /// let readings = WideColumns::<u32>::new(&Subspace::new("readings"));
    /// let store = Memory::new();
    /// store.transact(|txn| (0..50).try_for_each(|t| readings.put(txn, &7, "roof", "°C", t, b"21")))?;
    /// let options = CollectOptions::default();
    /// let done = readings.collect(&store, Keep::Since(40), &options, |_| ControlFlow::Continue(()))?;
    /// assert_eq!((done.visited, done.removed), (50, 40));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a position of another collection; [`Error::At`] for what is
    /// no cell; what the store says.
    pub fn collect<S: Store>(
        &self,
        store: &S,
        keep: Keep,
        options: &CollectOptions,
        mut progress: impl FnMut(&CollectProgress) -> ControlFlow<()>,
    ) -> Result<CollectProgress> {
        let mut size = BatchSize::new(options.batch);
        let mut done =
            CollectProgress { position: options.resume.clone(), ..CollectProgress::default() };
        while !done.finished {
            // The body may run more than once, so it starts each time from what is known to be
            // done.
            done = size.transact(store, |txn, batch| {
                let mut next = done.clone();
                self.collect_batch(txn, keep, batch, &mut next)?;
                Ok(next)
            })?;
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    fn collect_batch(
        &self,
        txn: &mut impl Writer,
        keep: Keep,
        batch: usize,
        done: &mut CollectProgress,
    ) -> Result<()> {
        let (last, mut column) = match done.position.take() {
            Some(CollectPosition { last, column }) => (Some(last), column),
            None => (None, CollectedColumn::default()),
        };
        let Page { entries, last } = self.page_behind(txn, last.as_deref(), batch)?;
        done.visited += entries.len() as u64;
        let mut gone: Vec<KeyBuf> = Vec::new();
        let mut ended: Vec<(KeyBuf, KeyBuf)> = Vec::new();
        for entry in entries {
            self.visit(keep, entry, &mut column, &mut gone, &mut ended)?;
        }
        if last.is_none() {
            ended.extend(column.end());
        }
        gone.iter().try_for_each(|key| txn.delete(key))?;
        done.removed += gone.len() as u64;
        for deletion in ended {
            done.removed += u64::from(Self::remove_last(txn, &deletion)?);
        }
        done.finished = last.is_none();
        done.position = last.map(|last| CollectPosition { last, column });
        Ok(())
    }

    /// Decides about one version.
    fn visit<B: Deref<Target = [u8]>>(
        &self,
        keep: Keep,
        entry: Entry<B>,
        column: &mut CollectedColumn,
        gone: &mut Vec<KeyBuf>,
        ended: &mut Vec<(KeyBuf, KeyBuf)>,
    ) -> Result<()> {
        let found = Found::<R, _>::new(self.space(), entry)?;
        if found.column_prefix() != &column.prefix[..] {
            let prefix = KeyBuf::from_slice(found.column_prefix());
            let mut before =
                std::mem::replace(column, CollectedColumn { prefix, ..CollectedColumn::default() });
            ended.extend(before.end());
        }
        let key = KeyBuf::from_slice(found.key());
        if column.keeps(keep, found.timestamp) {
            column.deletion = found.value().is_none().then_some(key);
        } else {
            gone.push(key);
        }
        Ok(())
    }

    /// Removes a deletion, if by now nothing is behind it that it hides.
    fn remove_last(txn: &mut impl Writer, (column, deletion): &(KeyBuf, KeyBuf)) -> Result<bool> {
        // Somebody may have put a value at the same time, since it was seen.
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

    fn page_behind<'r, T: Reader>(
        &self,
        reader: &'r T,
        last: Option<&[u8]>,
        batch: usize,
    ) -> Result<Page<T::Bytes<'r>>> {
        let all = self.space().range();
        let rest = match last {
            None => all,
            Some(last) if all.contains(last) => all.resume(Order::Ascending, last),
            Some(last) => {
                return Err(Error::InvalidArgument {
                    what: "the position to resume at",
                    value: keyloom::key::display(last).to_string(),
                    why: "it belongs to another collection; begin this one anew",
                });
            }
        };
        reader.page(rest, Order::Ascending, batch)
    }
}
