//! Combines several jobs in bounded transactions into one job.

use std::ops::ControlFlow;

use keyloom::{Error, Result};

use crate::{Progress, RepairOptions, RepairPosition};

/// Runs several jobs in bounded transactions one after another, as parts of one job. An example is
/// the repair of a pattern with several indexes and tables. The progress is the sum over all parts.
/// The position names the part, so the job resumes in the part where it was stopped.
///
/// ```
/// use keyloom_kit::{Progress, RepairOptions, Stages};
/// use std::ops::ControlFlow;
/// let work = |options: &RepairOptions| -> keyloom::Result<Progress> {
///     // Stops after three keys.
///     let mut stages = Stages::new(options, |done: &Progress| match done.removed < 3 {
///         true => ControlFlow::Continue(()),
///         false => ControlFlow::Break(()),
///     });
///     for removed in [2, 1, 7] {
///         stages.run(|_, progress| {
///             let done = Progress { removed, ..Progress::complete() };
///             let _ = progress(&done);
///             Ok(done)
///         })?;
///     }
///     stages.end()
/// };
/// let stopped = work(&RepairOptions::default())?;
/// assert_eq!((stopped.removed, stopped.finished), (3, false));
/// let resumed = RepairOptions { resume: Some(stopped.position), ..RepairOptions::default() };
/// let done = work(&resumed)?;
/// assert_eq!((done.removed, done.finished), (7, true), "the third part alone");
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Debug)]
pub struct Stages<F> {
    batch: usize,
    progress: F,
    /// The index of the next part.
    next: u32,
    /// The part in which to resume, and the position in that part.
    from: RepairPosition,
    done: Progress,
    /// Whether `progress` has returned `Break`.
    is_broken: bool,
    /// Whether a part did not finish or did not begin.
    is_stopped: bool,
}

impl<F: FnMut(&Progress) -> ControlFlow<()>> Stages<F> {
    /// Begins before the first part. `progress` is called after each commit of each part, and once
    /// more if all parts have finished. After it has returned `Break`, no other part begins.
    pub fn new(options: &RepairOptions, progress: F) -> Self {
        Self {
            batch: options.batch,
            progress,
            next: 0,
            from: options.resume.clone().unwrap_or_default(),
            done: Progress::default(),
            is_broken: false,
            is_stopped: false,
        }
    }

    /// Runs the next part. Skips the part if the job was stopped before this part or resumes after
    /// it. `part` receives its options, calls its second argument after each commit, and returns
    /// its progress.
    ///
    /// # Errors
    /// The errors of `part`.
    pub fn run(
        &mut self,
        part: impl FnOnce(
            &RepairOptions,
            &mut dyn FnMut(&Progress) -> ControlFlow<()>,
        ) -> Result<Progress>,
    ) -> Result<()> {
        let stage = self.next;
        self.next += 1;
        if stage < self.from.stage || self.is_stopped {
            return Ok(());
        }
        if self.is_broken {
            self.is_stopped = true;
            self.done.position = RepairPosition { stage, ..RepairPosition::default() };
            return Ok(());
        }
        let is_resumed = stage == self.from.stage;
        let resume = is_resumed.then(|| RepairPosition { stage: 0, ..self.from.clone() });
        let options = RepairOptions { batch: self.batch, resume };
        let Self { done, progress, is_broken, .. } = self;
        let of_all = |part: &Progress| {
            let position = RepairPosition { stage, ..part.position.clone() };
            Progress { finished: false, position, ..done.followed_by(part) }
        };
        let part = part(&options, &mut |part| {
            let flow = progress(&of_all(part));
            *is_broken |= flow.is_break();
            flow
        })?;
        let all = of_all(&part);
        self.is_stopped = !part.finished;
        self.done = all;
        Ok(())
    }

    /// Returns the progress of all parts together, which is finished if all parts are. The position
    /// of a finished job is the beginning.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the position to resume at names a part that does not exist.
    pub fn end(mut self) -> Result<Progress> {
        if self.from.stage > 0 && self.from.stage >= self.next {
            return Err(Error::InvalidArgument {
                what: "the position to resume at",
                value: format!("part {} of {}", self.from.stage, self.next),
                why: "it belongs to another repair; begin this one again",
            });
        }
        if !self.is_stopped {
            let position = RepairPosition::default();
            self.done = Progress { finished: true, position, ..self.done };
            let _ = (self.progress)(&self.done);
        }
        Ok(self.done)
    }
}
