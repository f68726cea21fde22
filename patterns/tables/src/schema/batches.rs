//! Work in batches, each in one transaction.

use std::ops::ControlFlow;

use keyloom::{EntryPage, KeyBuf, Result, Store, Subspace, Writer};
use keyloom_kit::{Progress, RepairOptions, page_behind};

/// Default number of records or keys of a batch.
// Smaller batches add commits. Larger batches block other writers of LMDB for longer, and lose more
// work in a conflict.
pub(super) const BATCH: usize = 1_000;

/// Runs `step` in one transaction after another until it has finished or `progress` breaks.
pub(super) fn in_batches<S: Store>(
    store: &S,
    batch: usize,
    progress: impl FnMut(&Progress) -> ControlFlow<()>,
    mut step: impl FnMut(&mut S::Transaction<'_>, usize) -> Result<Progress>,
) -> Result<Progress> {
    let options = RepairOptions { batch, ..RepairOptions::default() };
    keyloom_kit::in_batches(store, &options, progress, |txn, batch, done| {
        *done = done.followed_by(&step(txn, batch)?);
        Ok(())
    })
}

/// Removes some keys of a subspace. Returns how many were removed, and whether none are left.
pub(super) fn delete_some<W: Writer>(
    txn: &mut W,
    space: &Subspace,
    batch: usize,
) -> Result<(u64, bool)> {
    let EntryPage { entries, last } = page_behind(None, txn, space, batch)?;
    let keys: Vec<_> = entries.iter().map(|(key, _)| KeyBuf::from_slice(key)).collect();
    drop(entries);
    keys.iter().try_for_each(|key| txn.delete(key))?;
    Ok((keys.len() as u64, last.is_none()))
}
