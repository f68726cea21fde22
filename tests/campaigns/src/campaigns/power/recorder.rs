//! A program that runs transactions, and the trace of its system calls.

use std::fs::File;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Result, anyhow, ensure};
use fastrand::Rng;
use keyloom::lmdb::Compaction;
use keyloom::{Batched, Lmdb, Store};

use super::job::{Flaw, Job, Mode, Subject};
use super::trace;
use crate::Mix;
use crate::campaigns::batches::Commits;

pub const ROLE: &str = "power: record";

/// The longest string that strace prints: longer than the largest write of a transaction.
const STRING_BYTES: &str = "4194304";

/// In a mode that may lose commits, the store is flushed after one in this many transactions.
const FLUSHES_ONE_IN: u64 = 4;

/// The reason why nothing can be recorded here, if there is one.
pub fn obstacle() -> Option<String> {
    let tried = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-e", "trace=write", "-o", "/dev/null", "true"])
        .stdin(Stdio::null())
        .output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Some(format!("strace may not trace: {}", said.trim()))
        }
        Err(error) => Some(format!("strace: {error}; tests/campaigns/install.sh installs it")),
    }
}

/// Runs the job's transactions in a process under strace.
pub fn record(job: &Job) -> Result<()> {
    let program = super::super::process(ROLE)?;
    let mut strace = Command::new("strace");
    // Strings and paths in hexadecimal, paths beside descriptors, one order of calls for all
    // threads.
    strace.args(["-f", "--seccomp-bpf", "-y", "-xx", "-s", STRING_BYTES]);
    strace.args(["-e", "signal=none", "-e", &format!("trace={}", trace::CALLS), "-o"]);
    strace.arg(job.trace()).arg(program.get_program()).arg(serde_json::to_string(job)?);
    for (name, value) in program.get_envs() {
        value.map(|value| strace.env(name, value));
    }
    let output = strace.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the recording failed: {}", said.trim());
    Ok(())
}

/// The main function of the traced program.
pub fn play() -> Result<()> {
    let job = Job::of_this_process()?;
    let mix = job.mix()?;
    let mut notes = File::create(job.notes())?;
    if let Subject::Backup { is_compacted } = job.subject {
        back_up(&job, &mix, is_compacted)?;
        notes.write_all(b"opened 0\n")?;
        return Ok(());
    }
    let store = Lmdb::options()
        .durability(job.mode.durability())
        .map_bytes(job.map_bytes)
        .open(job.store())?;
    // Each note is one write call, so the trace contains it between the store's own calls.
    notes.write_all(b"opened 0\n")?;
    if job.threads > 1 {
        let store = Batched::new(store);
        return Threads { job: &job, mix, store, notes, commits: Commits::default() }.write();
    }
    for number in job.from..job.from + job.count {
        notes.write_all(format!("begun {} {number}\n", number + 1).as_bytes())?;
        let transaction = Mix::nth(job.seed, number);
        store.transact(|txn| mix.perform(transaction, number, txn))?;
        notes.write_all(format!("acknowledged {}\n", number + 1).as_bytes())?;
        // Sometimes, and at the end, a flush makes all commits durable.
        let is_last = number + 1 == job.from + job.count;
        if job.mode != Mode::Full && (is_last || transaction.is_multiple_of(FLUSHES_ONE_IN)) {
            store.flush()?;
            notes.write_all(format!("flushed {}\n", number + 1).as_bytes())?;
        }
    }
    Ok(())
}

/// Several threads that write through one [`Batched`] store.
struct Threads<'j> {
    job: &'j Job,
    mix: Mix,
    store: Batched<Lmdb>,
    notes: File,
    commits: Commits,
}

impl Threads<'_> {
    /// Writes the transactions of the job in rounds. Between two rounds no thread writes, and the
    /// store may be flushed.
    fn write(&self) -> Result<()> {
        let job = self.job;
        let mut rng = Rng::with_seed(job.seed);
        let mut done = 0;
        while done < job.count {
            let count = rng.u64(4..=16).min(job.count - done);
            self.write_side_by_side(count)?;
            done += count;
            if job.mode != Mode::Full && (done == job.count || rng.bool()) {
                self.store.inner().flush()?;
                self.note(&format!("flushed {}\n", job.from + done))?;
            }
        }
        Ok(())
    }

    fn write_side_by_side(&self, count: u64) -> Result<()> {
        let left = AtomicU64::new(count);
        let (one_less, order) = (|left: u64| left.checked_sub(1), Ordering::Relaxed);
        let write = || -> Result<()> {
            while left.fetch_update(order, order, one_less).is_ok() {
                self.write_one()?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let writers: Vec<_> = (0..self.job.threads).map(|_| scope.spawn(write)).collect();
            writers.into_iter().try_for_each(|writer| {
                writer.join().map_err(|_panic| anyhow!("a thread panicked"))?
            })
        })
    }

    /// Performs the next transaction. A thread reads the number of the transaction from the store,
    /// in the body.
    fn write_one(&self) -> Result<()> {
        let caller = thread::current().id();
        let number = self.store.transact_batched(|txn| {
            let number = Mix::progress(txn)?;
            let committed = self.commits.before(caller, number);
            self.note(&format!("begun {} {committed}\n", number + 1))?;
            self.mix.perform(Mix::nth(self.job.seed, number), number, txn)?;
            if self.job.flaw == Flaw::AnswerInBody {
                self.acknowledge(number)?;
            }
            Ok(number)
        })?;
        if self.job.flaw != Flaw::AnswerInBody {
            self.acknowledge(number)?;
        }
        Ok(())
    }

    fn acknowledge(&self, number: u64) -> keyloom::Result<()> {
        self.note(&format!("acknowledged {}\n", number + 1))
    }

    fn note(&self, line: &str) -> keyloom::Result<()> {
        let written = (&self.notes).write_all(line.as_bytes());
        written.map_err(|error| keyloom::Error::Backend(error.into()))
    }
}

/// Makes a backup of a store with the initial number of transactions.
fn back_up(job: &Job, mix: &Mix, is_compacted: bool) -> Result<()> {
    let store = Lmdb::options()
        .durability(job.mode.durability())
        .map_bytes(job.map_bytes)
        .open(job.source())?;
    for number in 0..job.from {
        store.transact(|txn| mix.perform(Mix::nth(job.seed, number), number, txn))?;
    }
    let compaction = if is_compacted { Compaction::On } else { Compaction::Off };
    Ok(store.backup(job.store(), compaction)?)
}
