//! Work of several parts, as one.

use std::ops::ControlFlow;

use keyloom::Result;

use crate::{Progress, RepairPosition};

/// Runs works in bounded transactions one after the other, with the progress of all of them
/// together: a repair of a pattern that consists of several indexes and tables.
///
/// Such a work resumes from the beginning: a position would be one of some part. What is done is
/// found done, and only read again.
///
/// ```
/// use keyloom_kit::{Progress, Stages};
/// use std::ops::ControlFlow;
/// let part = |removed| Progress { removed, ..Progress::complete() };
/// let mut stages = Stages::new(|done: &Progress| match done.removed > 4 {
///     true => ControlFlow::Break(()),
///     false => ControlFlow::Continue(()),
/// });
/// for removed in [2, 3, 7] {
///     stages.run(|progress| {
///         let _ = progress(&part(removed));
///         Ok(part(removed))
///     })?;
/// }
/// let done = stages.end();
/// assert_eq!((done.removed, done.finished), (5, false), "stopped after the second part");
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Debug)]
pub struct Stages<F> {
    done: Progress,
    progress: F,
    is_stopped: bool,
}

impl<F: FnMut(&Progress) -> ControlFlow<()>> Stages<F> {
    /// No work done yet; `progress` is called after each commit of each part, and stops all of them
    /// if it breaks.
    pub fn new(progress: F) -> Self {
        Self { done: Progress::complete(), progress, is_stopped: false }
    }

    /// Runs a part, unless an earlier one was stopped. It calls its argument after each commit, and
    /// returns what it did.
    ///
    /// # Errors
    /// Those of the part.
    pub fn run(
        &mut self,
        part: impl FnOnce(&mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<Progress>,
    ) -> Result<()> {
        if self.is_stopped {
            return Ok(());
        }
        let Self { done, progress, is_stopped } = self;
        let of_all = |part: &Progress| {
            let position = RepairPosition::default();
            Progress { finished: false, position, ..done.followed_by(part) }
        };
        let part = part(&mut |part| {
            let flow = progress(&of_all(part));
            *is_stopped |= flow.is_break();
            flow
        })?;
        *is_stopped |= !part.finished;
        *done = of_all(&part);
        Ok(())
    }

    /// What all parts did; finished unless one of them was stopped.
    pub fn end(self) -> Progress {
        Progress { finished: !self.is_stopped, ..self.done }
    }
}
