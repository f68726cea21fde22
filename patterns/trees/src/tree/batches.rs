//! Repairs in bounded transactions.

use std::ops::ControlFlow;

use keyloom::{Error, KeyBuf, Result, Store};
use keyloom_kit::{BatchSize, Progress, RepairOptions, RepairPosition};

/// A repair that runs: it counts what its transactions change, reports them, and knows where it is.
///
/// It consists of stages. Most list the faults of a kind and repair them in batches; the next
/// repair lists what is left. So that a repair that is stopped again and again ends, these report
/// only what they have changed. Others visit a range page by page, and continue after the last one.
pub(crate) struct Repair<'p, S> {
    pub(crate) store: &'p S,
    size: BatchSize,
    done: Progress,
    progress: &'p mut dyn FnMut(&Progress) -> ControlFlow<()>,
    stage: u32,
}

/// Ends a repair whose caller has stopped it. It is an error so that `?` leaves all loops.
#[derive(Debug, thiserror::Error)]
#[error("the repair was stopped")]
struct Stopped;

impl<S: Store> Repair<'_, S> {
    /// Runs `repair` until it ends or is stopped.
    pub(crate) fn run(
        store: &S,
        options: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
        repair: impl FnOnce(&mut Repair<'_, S>) -> Result<()>,
    ) -> Result<Progress> {
        let size = BatchSize::new(options.batch);
        let (done, progress) = (Progress::beginning(options), &mut progress);
        let first = done.position.stage;
        let mut run = Repair { store, size, done, progress, stage: 0 };
        match repair(&mut run) {
            Ok(()) if first > 0 && first >= run.stage => {
                return Err(Error::InvalidArgument {
                    what: "the position to resume at",
                    value: format!("stage {first} of {}", run.stage),
                    why: "it belongs to another repair; begin this one again",
                });
            }
            Ok(()) => {
                run.done.finished = true;
                run.done.position = RepairPosition::default();
                let _ = (run.progress)(&run.done);
            }
            Err(error) if error.downcast_ref::<Stopped>().is_some() => {}
            Err(error) => return Err(error),
        }
        Ok(run.done)
    }

    /// Does one stage, unless it was done before the position at which the repair resumes.
    pub(crate) fn stage(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.done.position.stage <= self.stage {
            work(self)?;
            self.done.position = RepairPosition { stage: self.stage + 1, ..Default::default() };
        }
        self.stage += 1;
        Ok(())
    }

    /// Visits pages in a stage. `body` visits a page after a key, and returns how many keys it has
    /// changed, and the last key of the page unless it is the last one.
    pub(crate) fn pages(
        &mut self,
        mut body: impl FnMut(
            &mut S::Transaction<'_>,
            Option<&[u8]>,
            usize,
        ) -> Result<(u64, Option<KeyBuf>)>,
    ) -> Result<()> {
        loop {
            let last = self.last();
            let (changed, next) =
                self.size.transact(self.store, |txn, batch| body(txn, last.as_deref(), batch))?;
            let Some(next) = next else { return self.add(changed) };
            self.done.written += changed;
            self.reach(next)?;
        }
    }

    /// The last key that this stage has visited.
    pub(crate) fn last(&self) -> Option<KeyBuf> {
        self.done.position.last.clone()
    }

    /// Reports that this stage has visited everything up to `last`.
    pub(crate) fn reach(&mut self, last: KeyBuf) -> Result<()> {
        self.done.position =
            RepairPosition { stage: self.stage, last: Some(last), ..Default::default() };
        self.report()
    }

    /// Runs one transaction. `body` gets the number of keys to visit, and returns how many it has
    /// changed, with a result.
    pub(crate) fn transact<T>(
        &mut self,
        body: impl FnMut(&mut S::Transaction<'_>, usize) -> Result<(u64, T)>,
    ) -> Result<T> {
        let (changed, result) = self.size.transact(self.store, body)?;
        self.add(changed)?;
        Ok(result)
    }

    /// Runs one transaction of a single repair, which returns how many keys it has changed.
    pub(crate) fn once(
        &mut self,
        body: impl FnMut(&mut S::Transaction<'_>) -> Result<u64>,
    ) -> Result<u64> {
        let changed = self.store.transact(body)?;
        self.add(changed)?;
        Ok(changed)
    }

    /// Repairs items in batches, one transaction each.
    pub(crate) fn each<I>(
        &mut self,
        mut rest: &[I],
        mut repair: impl FnMut(&mut S::Transaction<'_>, &I) -> Result<u64>,
    ) -> Result<()> {
        while !rest.is_empty() {
            rest = self.transact(|txn, batch| {
                let (some, next) = rest.split_at(batch.min(rest.len()));
                let mut changed = 0;
                for item in some {
                    changed += repair(txn, item)?;
                }
                Ok((changed, next))
            })?;
        }
        Ok(())
    }

    /// Does other work in bounded transactions, and reports it as part of the repair.
    pub(crate) fn include(
        &mut self,
        work: impl FnOnce(&S, &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<Progress>,
    ) -> Result<()> {
        let (before, mut is_stopped) = (self.done.written, false);
        let mut report = |now: &Progress| {
            // Without work there is nothing to report.
            if now.finished && now.changed() == 0 {
                return ControlFlow::Continue(());
            }
            self.done.written = before + now.changed();
            let next = (self.progress)(&self.done);
            is_stopped = next.is_break();
            next
        };
        let done = work(self.store, &mut report)?;
        self.done.written = before + done.changed();
        if is_stopped { Err(Error::other(Stopped)) } else { Ok(()) }
    }

    /// Counts changed keys, and reports the commit if there are any.
    pub(crate) fn add(&mut self, changed: u64) -> Result<()> {
        self.done.written += changed;
        if changed > 0 { self.report() } else { Ok(()) }
    }

    fn report(&mut self) -> Result<()> {
        match (self.progress)(&self.done) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::other(Stopped)),
        }
    }
}
