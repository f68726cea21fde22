//! Making derived data what they should be, in transactions of a bounded size.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Page, Result, Store, Writer};

use super::check::{missing_or_wrong, page_behind, superfluous};
use super::{DerivedEntries, Inconsistency};
use crate::batch::BatchSize;
use crate::table::{RecordKey, Table};

/// How [`repair`] works.
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// How many records or entries one transaction visits at the most. Default: 1,000. Where a store
    /// finds that too much, a batch is halved until it fits; see [`BatchSize`].
    pub batch: usize,
    /// Where to go on after a repair that was stopped; `None` begins.
    pub resume: Option<RepairPosition>,
}

impl Default for RepairOptions {
    fn default() -> Self {
        Self { batch: 1_000, resume: None }
    }
}

/// What [`repair`] is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairPhase {
    /// Going through the records and writing entries that are missing or wrong.
    Records,
    /// Going through the entries and removing those that no record makes.
    Entries,
}

/// How far a repair has come: everything up to `last` in `phase` is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairPosition {
    /// What it was doing.
    pub phase: RepairPhase,
    /// The last key that it visited, `None` at the beginning of the phase.
    pub last: Option<KeyBuf>,
}

/// What a repair has done so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairProgress {
    /// Where it is.
    pub position: RepairPosition,
    /// Whether that is the end.
    pub finished: bool,
    /// Records visited.
    pub records: u64,
    /// Entries visited.
    pub entries: u64,
    /// Entries written because they were missing or wrong.
    pub written: u64,
    /// Entries removed because no record makes them.
    pub removed: u64,
    /// Entries left to another record that makes them too: see [`Inconsistency::Contested`].
    pub contested: u64,
    /// Records that do not decode, whose entries are left as they are: see
    /// [`Inconsistency::Undecodable`].
    pub undecodable: u64,
}

impl RepairProgress {
    /// Nothing done yet, and about to go on where the options say.
    pub(crate) fn beginning(options: &RepairOptions) -> Self {
        let beginning = RepairPosition { phase: RepairPhase::Records, last: None };
        Self::at(options.resume.clone().unwrap_or(beginning))
    }

    /// Nothing done yet, and about to go on at `position`.
    pub(crate) fn at(position: RepairPosition) -> Self {
        Self {
            position,
            finished: false,
            records: 0,
            entries: 0,
            written: 0,
            removed: 0,
            contested: 0,
            undecodable: 0,
        }
    }

    /// What this repair and a second one behind it have done together; it is where the second one is.
    pub(crate) fn followed_by(&self, second: &Self) -> Self {
        Self {
            position: second.position.clone(),
            finished: second.finished,
            records: self.records + second.records,
            entries: self.entries + second.entries,
            written: self.written + second.written,
            removed: self.removed + second.removed,
            contested: self.contested + second.contested,
            undecodable: self.undecodable + second.undecodable,
        }
    }
}

/// Brings what `derived` keeps of `table` in step, in bounded transactions, while others read and
/// write. Also the way to build an index over records that are there already.
///
/// `progress` is told after each transaction what was done; with `ControlFlow::Break` it stops the
/// repair. Every batch is committed when `progress` hears of it, so a repair that was stopped, or
/// died, can go on from the last position it told (see [`RepairOptions::resume`]). Starting anew is
/// always safe too: what is right is left alone.
///
/// Attach `derived` to the table that writers use *before* the repair begins, else records that
/// change behind it are missed.
///
/// An entry that two records claim, as in a unique index, is left to the one that has it, or given to the
/// first where none has, and the other is counted ([`RepairProgress::contested`]).
///
/// A transaction costs three round trips: a page, the other side of all that is on it, and the commit.
///
/// # Errors
/// What the store says, and as [`check`](super::check()).
pub fn repair<S: Store, K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    store: &S,
    options: &RepairOptions,
    progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
) -> Result<RepairProgress> {
    table.refuse_unless_attached(derived.space())?;
    repair_in_batches(store, options, progress, |txn, batch, next| {
        table.check_repair(txn)?;
        match next.position.phase {
            RepairPhase::Records => write_missing(derived, table, txn, batch, next),
            RepairPhase::Entries => remove_superfluous(derived, table, txn, batch, next),
        }
    })
}

/// The loop of every repair: `body` does some of the work in one transaction and notes how far it is.
pub(crate) fn repair_in_batches<S: Store>(
    store: &S,
    options: &RepairOptions,
    mut progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
    mut body: impl FnMut(&mut S::Transaction<'_>, usize, &mut RepairProgress) -> Result<()>,
) -> Result<RepairProgress> {
    let mut size = BatchSize::new(options.batch);
    let mut done = RepairProgress::beginning(options);
    while !done.finished {
        // The body may run more than once, so it starts each time from what is known to be done.
        done = size.transact(store, |txn, batch| {
            let mut next = done.clone();
            body(txn, batch, &mut next)?;
            Ok(next)
        })?;
        if progress(&done).is_break() {
            break;
        }
    }
    Ok(done)
}

fn write_missing<K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    txn: &mut impl Writer,
    batch: usize,
    done: &mut RepairProgress,
) -> Result<()> {
    let Page { entries, last } =
        page_behind(done.position.last.as_deref(), txn, table.space(), batch)?;
    done.records += entries.len() as u64;
    for (fault, value) in missing_or_wrong(derived, table, txn, entries)? {
        match fault {
            Inconsistency::Contested { .. } => done.contested += 1,
            Inconsistency::Undecodable { .. } => done.undecodable += 1,
            _ => {
                txn.put(fault.entry(), &value)?;
                done.written += 1;
            }
        }
    }
    done.position = match last {
        Some(last) => RepairPosition { phase: RepairPhase::Records, last: Some(last) },
        None => RepairPosition { phase: RepairPhase::Entries, last: None },
    };
    Ok(())
}

fn remove_superfluous<K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    txn: &mut impl Writer,
    batch: usize,
    done: &mut RepairProgress,
) -> Result<()> {
    let Page { entries, last } =
        page_behind(done.position.last.as_deref(), txn, derived.space(), batch)?;
    done.entries += entries.len() as u64;
    for fault in superfluous(derived, table, txn, entries)? {
        txn.delete(fault.entry())?;
        done.removed += 1;
    }
    done.finished = last.is_none();
    done.position.last = last.or_else(|| done.position.last.take());
    Ok(())
}
