//! Moves and deletions that are longer than a transaction.

use std::ops::ControlFlow;

/// What a move or a deletion in steps is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveStep {
    /// Making room where it goes, before anything of it is written. A move that stops here has not
    /// begun: call it again.
    Relabelling,
    /// Writing the subtree to where it goes.
    Copying,
    /// Removing it from where it was.
    Clearing,
    /// Nothing any more.
    Finished,
}

/// How far a move or a deletion in steps has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveProgress {
    /// What it is doing.
    pub step: MoveStep,
    /// Keys written or removed so far, the first transaction counted; 0 where the model needs no
    /// steps and did it in one.
    pub keys: u64,
}

/// What was done in one transaction.
pub(crate) fn at_once(mut progress: impl FnMut(&MoveProgress) -> ControlFlow<()>) -> MoveProgress {
    let finished = MoveProgress { step: MoveStep::Finished, keys: 0 };
    // It has ended, so there is nothing to stop.
    let _ = progress(&finished);
    finished
}
