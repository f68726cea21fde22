//! Making derived data what they should be, in transactions of a bounded size.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Page, Result, Store, Writer};

use super::DerivedEntries;
use super::check::{missing_or_wrong, page_behind, superfluous};
use crate::batch::BatchSize;
use crate::inconsistency::Rule;
use crate::progress::{Progress, RepairOptions, RepairPhase, RepairPosition};
use crate::table::{RecordKey, Table};

/// Brings what `derived` keeps of `table` in step, in bounded transactions, while others read and
/// write. Also the way to build an index over records that are there already.
///
/// `progress` is told after each transaction what was done; with `ControlFlow::Break` it stops the
/// repair. Every batch is committed when `progress` receives of it, so a repair that was stopped,
/// or died, can go on from the last position it told (see [`RepairOptions::resume`]). Starting
/// again is always safe too: what is right is left alone.
///
/// Attach `derived` to the table that writers use *before* the repair begins, else records that
/// change behind it are missed.
///
/// An entry that two records claim, as in a unique index, is left to the one that has it, or given
/// to the first where none has, and the other is counted ([`Progress::contested`]).
///
/// A transaction costs three round trips: a page, the other side of all that is on it, and the
/// commit.
///
/// # Errors
/// What the store says, and as [`check`](super::check()).
pub fn repair<S: Store, K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    store: &S,
    options: &RepairOptions,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress> {
    table.refuse_unless_attached(derived.space())?;
    repair_in_batches(store, options, progress, |txn, batch, next| {
        table.check_repair(txn)?;
        match next.position.phase {
            RepairPhase::Records => write_missing(derived, table, txn, batch, next),
            RepairPhase::Entries => remove_superfluous(derived, table, txn, batch, next),
        }
    })
}

/// The loop of every repair: `body` does some of the work in one transaction and notes how far it
/// is.
pub fn repair_in_batches<S: Store>(
    store: &S,
    options: &RepairOptions,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    mut body: impl FnMut(&mut S::Transaction<'_>, usize, &mut Progress) -> Result<()>,
) -> Result<Progress> {
    let mut size = BatchSize::new(options.batch);
    let mut done = Progress::beginning(options);
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
    done: &mut Progress,
) -> Result<()> {
    let Page { entries, last } =
        page_behind(done.position.last.as_deref(), txn, table.space(), batch)?;
    done.records += entries.len() as u64;
    for (fault, value) in missing_or_wrong(derived, table, txn, entries)? {
        match fault.rule {
            Rule::Contested => done.contested += 1,
            Rule::Undecodable => done.undecodable += 1,
            _ => {
                txn.put(&fault.key, &value)?;
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
    done: &mut Progress,
) -> Result<()> {
    let Page { entries, last } =
        page_behind(done.position.last.as_deref(), txn, derived.space(), batch)?;
    done.entries += entries.len() as u64;
    for fault in superfluous(derived, table, txn, entries)? {
        txn.delete(&fault.key)?;
        done.removed += 1;
    }
    done.finished = last.is_none();
    done.position.last = last.or_else(|| done.position.last.take());
    Ok(())
}
