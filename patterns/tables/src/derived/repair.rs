//! Repair of derived data in transactions of a bounded size.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{EntryPage, Result, Store, Writer};
use keyloom_kit::{
    Progress, RecordKey, RepairOptions, RepairPosition, Rule, in_batches, page_behind,
};

use super::DerivedEntries;
use super::check::{Claims, missing_or_wrong, superfluous};
use crate::table::Table;

/// Makes the entries of `derived` consistent with the records of `table`, in bounded transactions,
/// while other transactions read and write. Also builds an index over existing records.
///
/// `progress` is called after each commit with the work done so far. If it returns
/// `ControlFlow::Break`, the repair stops. After a stop or a crash, a repair can resume from the
/// last position that `progress` received (see [`RepairOptions::resume`]). Starting from the
/// beginning is also safe: correct entries are left unchanged.
///
/// Attach `derived` to the table that writers use *before* the repair begins. Otherwise the repair
/// misses records that change after it has visited them.
///
/// Two records may claim the same entry, for example in a unique index. The record that has the
/// entry keeps it; if neither record has it, the first one gets it. The other record is counted in
/// [`Progress::contested`].
///
/// A transaction costs three round trips: a page, the matching entries or records, and the commit.
///
/// # Errors
/// Any error of the store; the errors of [`check`](super::check());
/// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if the position to resume at belongs
/// to other data.
pub fn repair<S: Store, K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    store: &S,
    options: &RepairOptions,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress> {
    table.refuse_unless_attached(derived.space())?;
    in_batches(store, options, progress, |txn, batch, next| {
        table.check_repair(txn)?;
        match next.position.entries {
            false => write_missing(derived, table, txn, batch, next),
            true => remove_superfluous(derived, table, txn, batch, next),
        }
    })
}

fn write_missing<K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    txn: &mut impl Writer,
    batch: usize,
    done: &mut Progress,
) -> Result<()> {
    let EntryPage { entries, last } =
        page_behind(done.position.last.as_deref(), txn, table.space(), batch)?;
    done.records += entries.len() as u64;
    for (fault, value) in missing_or_wrong(derived, table, txn, entries, &mut Claims::new())? {
        match fault.rule {
            Rule::Contested => done.contested += 1,
            Rule::Undecodable => done.undecodable += 1,
            _ => {
                txn.put(&fault.key, &value)?;
                done.written += 1;
            }
        }
    }
    done.position = RepairPosition { entries: last.is_none(), last, ..RepairPosition::default() };
    Ok(())
}

fn remove_superfluous<K: RecordKey, V, C: Codec<V>>(
    derived: &impl DerivedEntries<K, V>,
    table: &Table<K, V, C>,
    txn: &mut impl Writer,
    batch: usize,
    done: &mut Progress,
) -> Result<()> {
    let EntryPage { entries, last } =
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
