//! Work of several parts, as one.

use std::ops::ControlFlow;

use keyloom::{Error, Result};

use crate::{Progress, RepairOptions, RepairPosition};

/// Runs works in bounded transactions one after the other, as one work: a repair of a pattern that
/// consists of several indexes and tables. Its progress is that of all parts together, and its
/// position names the part, so it resumes in the part at which it was stopped.
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
    /// The place of the next part.
    next: u32,
    /// The part to resume in, and the position in it.
    from: RepairPosition,
    done: Progress,
    /// Whether `progress` has broken.
    is_broken: bool,
    /// Whether a part is not finished, or was not begun.
    is_stopped: bool,
}

impl<F: FnMut(&Progress) -> ControlFlow<()>> Stages<F> {
    /// No work done yet. `progress` is called after each commit of each part, and once at the end;
    /// if it breaks, no other part begins.
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

    /// Runs the next part, unless the work was stopped before it or resumes after it. `part` gets
    /// the options for it, calls its second argument after each commit, and returns what it did.
    ///
    /// # Errors
    /// Those of the part.
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

    /// What all parts did; finished if each of them is. The position of a finished work
    /// is the beginning.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the work was to resume in a part that it does not have.
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
