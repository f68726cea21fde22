//! Repairs of listed faults, as parts of [`Stages`](keyloom_kit::Stages).

use std::ops::ControlFlow;

use keyloom::{Result, Store};
use keyloom_kit::{Progress, RepairOptions, in_batches};

/// The progress callback, called after each commit of a part.
pub(crate) type Report<'p> = dyn FnMut(&Progress) -> ControlFlow<()> + 'p;

/// The parts of a repair of a tree.
pub(crate) type Stages<'p> = keyloom_kit::Stages<&'p mut Report<'p>>;

/// Options for repairs that change many keys each: one repair per transaction.
pub(crate) const ONE: RepairOptions = RepairOptions { batch: 1, resume: None };

/// Runs the parts of a repair.
pub(crate) fn in_stages(
    options: &RepairOptions,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    parts: impl FnOnce(&mut Stages<'_>) -> Result<()>,
) -> Result<Progress> {
    let report: &mut Report<'_> = &mut progress;
    let mut stages = Stages::new(options, report);
    parts(&mut stages)?;
    stages.end()
}

/// Repairs items in batches, one transaction per batch; `repair` returns the number of keys that it
/// changed.
///
/// The next repair lists the remaining faults again, so there is no position to resume from. Only
/// batches that changed something are reported. Otherwise a repair that the callback stops each
/// time would never get past items that cannot be repaired.
pub(crate) fn repair_each<S: Store, I>(
    store: &S,
    options: &RepairOptions,
    report: &mut Report<'_>,
    items: &[I],
    mut repair: impl FnMut(&mut S::Transaction<'_>, &I) -> Result<u64>,
) -> Result<Progress> {
    if items.is_empty() {
        return Ok(Progress::complete());
    }
    let options = RepairOptions { batch: options.batch, resume: None };
    let mut told = 0;
    let report = |done: &Progress| {
        if done.changed() == told && !done.finished {
            return ControlFlow::Continue(());
        }
        told = done.changed();
        report(done)
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
