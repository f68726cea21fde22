//! The process that is killed.

use std::os::unix::process::parent_id;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use fastrand::Rng;
use keyloom::lmdb::Compaction;
use keyloom::{AnyStore, Batched, Error, LmdbError, Store, Writer};

use super::job::{Habit, Job, Task};
use super::mark::{Kind, Pen};
use super::work;
use crate::Mix;
use crate::campaigns::batches::Commits;

/// Works until the process is killed, the work is finished, or the pipe is closed.
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
                // A snapshot that stayed open forever would let the file grow without bound.
                if holds && number.is_multiple_of(100) {
                    drop(held.take());
                    held = Some(store.snapshot()?);
                }
                if copy_at == Some(number) {
                    writer.copy(&mut rng)?;
                }
                // So many that one transaction writes a large part of the pages.
                let many = if rng.u64(..*unites_one_in) == 0 { rng.u64(2..60) } else { 1 };
                writer.transact(many)?;
            }
        }
        Task::Batched { threads } => {
            let (mix, commits, is_over) = (job.mix()?, Commits::default(), AtomicBool::new(false));
            let store = &Batched::new(store.clone());
            Threads { mix, job: &job, pen: &pen, store, commits, is_over }.write(*threads)?;
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
    /// Runs the next transactions of the history as a single one.
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

    /// Broken on purpose: acknowledges each transaction, but commits several of them together,
    /// later.
    fn buffer(&self) -> Result<()> {
        const KEPT: u64 = 8;
        let from = Mix::progress(&self.store.snapshot()?)?;
        for number in from..from + KEPT {
            self.pen.mark(Kind::Committing, number + 1)?;
            self.pen.mark(Kind::Acknowledged, number + 1)?;
        }
        Ok(self.store.transact(|txn| self.perform(from, KEPT, txn))?)
    }

    /// Broken on purpose: the changes of a transaction and its number are two commits.
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

/// Several threads that write through one [`Batched`] store.
struct Threads<'a> {
    mix: Mix,
    job: &'a Job,
    pen: &'a Pen,
    store: &'a Batched<AnyStore>,
    commits: Commits,
    is_over: AtomicBool,
}

impl Threads<'_> {
    /// Writes until a thread fails.
    fn write(&self, threads: usize) -> Result<()> {
        thread::scope(|scope| {
            let writers: Vec<_> = (0..threads as u64)
                .map(|number| scope.spawn(move || self.write_alone(number)))
                .collect();
            writers.into_iter().try_for_each(|writer| {
                writer.join().map_err(|_panic| anyhow!("a thread panicked"))?
            })
        })
    }

    /// Writes on one thread.
    fn write_alone(&self, thread: u64) -> Result<()> {
        const ALONE_ONE_IN: u64 = 16;
        let mut rng = Rng::with_seed(self.job.choices.wrapping_add(thread));
        while !self.is_over.load(Ordering::Relaxed) {
            let caller = thread::current().id();
            // Other transactions run between the batches.
            let done = if rng.u64(..ALONE_ONE_IN) == 0 {
                self.store.transact(|txn| self.perform(caller, txn))
            } else {
                self.store.transact_batched(|txn| self.perform(caller, txn))
            };
            let done = done.and_then(|reached| match self.job.habit {
                Habit::AcknowledgesFirst => Ok(()),
                _ => self.pen.mark(Kind::Acknowledged, reached),
            });
            if let Err(error) = done {
                self.is_over.store(true, Ordering::Relaxed);
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Runs the next transaction of the history. Returns the number of transactions of the history
    /// that have then run.
    fn perform(&self, caller: thread::ThreadId, txn: &mut impl Writer) -> keyloom::Result<u64> {
        let number = Mix::progress(txn)?;
        let committed = self.commits.before(caller, number);
        self.pen.mark(Kind::Begun, number)?;
        let done = self.mix.perform(Mix::nth(self.job.history, number), number, txn);
        if let Err(Error::Lmdb(LmdbError::MapFull { .. })) = done {
            self.pen.mark(Kind::Full, number)?;
        }
        done?;
        self.pen.mark_key(Kind::Committing, number + 1, &committed.to_le_bytes())?;
        if self.job.habit == Habit::AcknowledgesFirst {
            self.pen.mark(Kind::Acknowledged, number + 1)?;
        }
        Ok(number + 1)
    }
}

/// Broken on purpose: sleeps for longer than the campaign runs.
fn outlast_parent() {
    let parent = parent_id();
    while parent_id() == parent {
        thread::sleep(Duration::from_millis(50));
    }
}
