//! The parts of a repair of a tree, and other long work.

use std::ops::ControlFlow;

use keyloom::Result;
use keyloom_kit::{Progress, RepairOptions};

/// The progress callback, called after each commit of a part.
pub(crate) type Report<'p> = dyn FnMut(&Progress) -> ControlFlow<()> + 'p;

/// The parts of a repair of a tree.
pub(crate) type Stages<'p> = keyloom_kit::Stages<&'p mut Report<'p>>;

/// Options for repairs that change many keys each: one repair per transaction.
pub(crate) const ONE: RepairOptions = RepairOptions { batch: 1, resume: None };

/// The maximum number of consecutive times that relabelling in steps is planned again because of
/// other writers. After that, the operation fails with a conflict.
// Each plan reads the siblings again. A lower limit gives up even if there are few other writers; a
// higher limit delays the conflict if other writers never pause.
pub(crate) const REPLANS: u32 = 16;

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
