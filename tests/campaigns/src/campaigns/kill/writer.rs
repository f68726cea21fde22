//! The process that is killed.

use std::os::unix::process::parent_id;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use keyloom::lmdb::Compaction;
use keyloom::{AnyStore, Error, LmdbError, Store};

use super::job::{Habit, Job, Task};
use super::mark::{Kind, Pen};
use super::work;
use crate::Mix;

/// Works until it is killed, its work is done, or its pipe is closed.
pub fn write() -> Result<()> {
    let job = Job::of_this_process()?;
    let pen = Pen::new()?;
    pen.mark(Kind::Opening, 0)?;
    let store = job.open()?;
    let holds = matches!(job.task, Task::History { holds: true, .. });
    let mut held = holds.then(|| store.snapshot()).transpose()?;
    pen.mark(Kind::Opened, u64::from(holds))?;
    match &job.task {
        Task::History { unites_one_in, copies, .. } => {
            let mut rng = Rng::with_seed(job.choices);
            let copy_at = copies.then(|| rng.u64(..8));
            let writer = Historian { mix: job.mix()?, job: &job, pen: &pen, store: &store };
            for number in 0u64.. {
                // One that stayed for ever would let the file grow without a bound.
                if holds && number.is_multiple_of(100) {
                    drop(held.take());
                    held = Some(store.snapshot()?);
                }
                if copy_at == Some(number) {
                    writer.copy(&mut rng)?;
                }
                // Enough that one transaction writes a good part of the pages.
                let many = if rng.u64(..*unites_one_in) == 0 { rng.u64(2..60) } else { 1 };
                writer.transact(many)?;
            }
        }
        Task::Load { from, batch } => work::load(&job, &store, &pen, *from, *batch)?,
        Task::Disturb => work::disturb(&job, &store, &pen)?,
        Task::Repair { from, batch } => work::repair(&job, &store, &pen, from.as_ref(), *batch)?,
    }
    pen.mark(Kind::Finished, 0)?;
    Ok(())
}

struct Historian<'a> {
    mix: Mix,
    job: &'a Job,
    pen: &'a Pen,
    store: &'a AnyStore,
}

type Txn<'s> = <AnyStore as Store>::Transaction<'s>;

impl Historian<'_> {
    /// The next transactions of the history, as a single one.
    fn transact(&self, many: u64) -> Result<()> {
        match self.job.habit {
            Habit::Buffers => return self.buffer(),
            Habit::CommitsHalves => return self.commit_halves(),
            _ => {}
        }
        let early = Mix::progress(&self.store.snapshot()?)?;
        let reached = self.store.transact(|txn| {
            let from = match self.job.habit {
                Habit::AsksTooEarly => early,
                _ => Mix::progress(txn)?,
            };
            self.pen.mark(Kind::Begun, from)?;
            self.perform(from, many, txn)?;
            self.pen.mark(Kind::Committing, from + many)?;
            match self.job.habit {
                Habit::AcknowledgesFirst => self.pen.mark(Kind::Acknowledged, from + many)?,
                Habit::NeverEnds => outlast_parent(),
                _ => {}
            }
            Ok(from + many)
        })?;
        if self.job.habit != Habit::AcknowledgesFirst {
            self.pen.mark(Kind::Acknowledged, reached)?;
        }
        Ok(())
    }

    fn perform(&self, from: u64, many: u64, txn: &mut Txn<'_>) -> keyloom::Result<()> {
        (from..from + many).try_for_each(|number| {
            let transaction = Mix::nth(self.job.history, number);
            let done = self.mix.perform(transaction, number, txn);
            if let Err(Error::Lmdb(LmdbError::MapFull { .. })) = done {
                self.pen.mark(Kind::Full, number)?;
            }
            done
        })
    }

    /// Broken: says of each transaction that it is done, and does some of them together.
    fn buffer(&self) -> Result<()> {
        const KEPT: u64 = 8;
        let from = Mix::progress(&self.store.snapshot()?)?;
        for number in from..from + KEPT {
            self.pen.mark(Kind::Committing, number + 1)?;
            self.pen.mark(Kind::Acknowledged, number + 1)?;
        }
        Ok(self.store.transact(|txn| self.perform(from, KEPT, txn))?)
    }

    /// Broken: what a transaction does and that it was done are two commits.
    fn commit_halves(&self) -> Result<()> {
        let from = Mix::progress(&self.store.snapshot()?)?;
        self.pen.mark(Kind::Begun, from)?;
        self.store.transact(|txn| {
            self.perform(from, 1, txn)?;
            Mix::note_progress(from, txn)
        })?;
        self.pen.mark(Kind::Committing, from + 1)?;
        self.store.transact(|txn| Mix::note_progress(from + 1, txn))?;
        Ok(self.pen.mark(Kind::Acknowledged, from + 1)?)
    }

    fn copy(&self, rng: &mut Rng) -> Result<()> {
        let compaction = if rng.bool() { Compaction::On } else { Compaction::Off };
        self.pen.mark(Kind::Copying, Mix::progress(&self.store.snapshot()?)?)?;
        if let AnyStore::Lmdb(lmdb) = self.store {
            lmdb.backup(self.job.copy(), compaction)?;
        }
        Ok(self.pen.mark(Kind::Copied, 0)?)
    }
}

/// Broken: does nothing for as long as the campaign runs.
fn outlast_parent() {
    let parent = parent_id();
    while parent_id() == parent {
        std::thread::sleep(Duration::from_millis(50));
    }
}
