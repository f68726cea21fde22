//! Runs work in bounded transactions.

use std::ops::ControlFlow;

use keyloom::{Result, Store};

#[cfg(doc)]
use crate::page_behind;
use crate::{BatchSize, Progress, RepairOptions};

/// Runs `body` in one transaction after another until the progress is finished. Repairs, sweeps and
/// migrations run this way. `body` receives the number of keys to visit and the progress of the
/// committed transactions. `body` updates this progress, including the position at which the next
/// transaction continues.
///
/// `body` must advance the position, remove the entries that it visits, or set `finished`;
/// otherwise it is called forever. It may run more than once for one commit, each time from the
/// committed progress. It should refuse a position of other data, as [`page_behind`] does.
///
/// Calls `progress` after each commit, and stops if `progress` breaks. A transaction that is too
/// large for the store, or that conflicts with other writers, runs again with fewer keys; see
/// [`BatchSize`].
///
/// ```
/// use keyloom::{KeyBuf, Memory, Store, Subspace, Writer};
/// use keyloom_kit::{RepairOptions, in_batches, page_behind};
/// use std::ops::ControlFlow;
/// let space = Subspace::new("log");
/// let store = Memory::new();
/// store.transact(|txn| (0..250).try_for_each(|n| txn.put(&space.pack(&n), b"line")))?;
///
/// // Removes all entries, 100 in a transaction.
/// let options = RepairOptions { batch: 100, ..RepairOptions::default() };
/// let mut commits = 0;
/// let on_commit = |_: &_| {
///     commits += 1;
///     ControlFlow::Continue(())
/// };
/// let done = in_batches(&store, &options, on_commit, |txn, batch, done| {
///     let page = page_behind(done.position.last.as_deref(), txn, &space, batch)?;
///     let keys: Vec<_> = page.entries.iter().map(|(key, _)| KeyBuf::from_slice(key)).collect();
///     done.position.last = page.last;
///     done.finished = done.position.last.is_none();
///     done.removed += keys.len() as u64;
///     keys.iter().try_for_each(|key| txn.delete(key))
/// })?;
/// assert_eq!((done.removed, commits), (250, 3));
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// The errors of `body` and of [`BatchSize::transact`]. Earlier transactions stay committed.
pub fn in_batches<S: Store>(
    store: &S,
    options: &RepairOptions,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    mut body: impl FnMut(&mut S::Transaction<'_>, usize, &mut Progress) -> Result<()>,
) -> Result<Progress> {
    let mut size = BatchSize::new(options.batch);
    let mut done = Progress::beginning(options);
    while !done.finished {
        // The body may run more than once, so each run starts from the last committed progress.
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

/// Repairs a list of items in batches, one transaction per batch. `repair` returns the number of
/// keys that it changed.
///
/// The next repair lists the remaining faults again, so there is no position to resume from. Only
/// batches that changed something are reported. Otherwise a repair that `progress` stops each time
/// would never get past items that cannot be repaired.
///
/// ```
/// use keyloom::{Memory, Store, Writer};
/// use keyloom_kit::{RepairOptions, repair_each};
/// use std::ops::ControlFlow;
/// let store = Memory::new();
/// let lost: Vec<[u8; 1]> = (0..250).map(|n| [n]).collect();
/// let options = RepairOptions { batch: 100, ..RepairOptions::default() };
/// let mut commits = 0;
/// let on_commit = |_: &_| {
///     commits += 1;
///     ControlFlow::Continue(())
/// };
/// let done = repair_each(&store, &options, on_commit, &lost, |txn, key| {
///     txn.put(key, b"found")?;
///     Ok(1)
/// })?;
/// assert_eq!((done.written, commits), (250, 3));
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// The errors of `repair` and of [`BatchSize::transact`]. Earlier transactions stay committed.
pub fn repair_each<S: Store, I>(
    store: &S,
    options: &RepairOptions,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    items: &[I],
    mut repair: impl FnMut(&mut S::Transaction<'_>, &I) -> Result<u64>,
) -> Result<Progress> {
    if items.is_empty() {
        return Ok(Progress::complete());
    }
    let options = RepairOptions { batch: options.batch, resume: None };
    let mut reported = 0;
    let report = |done: &Progress| {
        if done.changed() == reported && !done.finished {
            return ControlFlow::Continue(());
        }
        reported = done.changed();
        progress(done)
    };
    in_batches(store, &options, report, |txn, batch, done| {
        let rest = items.iter().skip(usize::try_from(done.records).unwrap_or(usize::MAX));
        for item in rest.take(batch) {
            done.written += repair(txn, item)?;
            done.records += 1;
        }
        done.finished = done.records >= items.len() as u64;
        Ok(())
    })
}
