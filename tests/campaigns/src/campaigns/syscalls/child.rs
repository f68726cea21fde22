//! The program under test: it uses a store in every way, and continues after an error as a user
//! would.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use keyloom::lmdb::{Compaction, LmdbOptions};
use keyloom::{Error, KeyRange, Lmdb, Reader, Store, Subspace, Writer};
use serde::{Deserialize, Serialize};

use crate::campaigns::task;
use crate::{Mix, Oracle};

/// The parameters of the process.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) directory: PathBuf,
    pub(super) seed: u64,
    pub(super) workload: Option<String>,
    pub(super) flaw: Flaw,
    /// Whether the call fails permanently, so that not every step can succeed.
    pub(super) is_lasting: bool,
}

/// A flaw of the program, as a negative control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Flaw {
    None,
    /// A failed commit counts as a successful one.
    AcksAnyway,
    /// A transaction consists of two commits: first its number, then its changes.
    TwoCommits,
    /// An error ends the process.
    Dies,
    /// Errors lose their variants.
    Mumbles,
    /// An unknown outcome is treated as a failure.
    HidesDoubt,
    /// A handle that must be reopened is not reopened.
    NeverReopens,
    /// A transaction is acknowledged before it is committed.
    AcksEarly,
}

impl Flaw {
    /// Whether the flaw shows only if the write that makes a transaction valid fails.
    pub(super) fn is_late(self) -> bool {
        matches!(self, Self::HidesDoubt | Self::NeverReopens)
    }
}

/// The observations of the process.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// The number of acknowledged transactions.
    pub(super) acked: u64,
    /// Whether a commit had an unknown outcome, so that one more transaction may be stored.
    pub(super) is_open: bool,
    pub(super) errors: Vec<Told>,
    pub(super) wrong: Vec<String>,
}

/// An error as the user gets it.
#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) step: String,
    pub(super) variant: String,
    pub(super) text: String,
}

/// Paths that are looked up to mark the beginning and the end of the work; no other call uses them.
pub(super) const MARKS: [&str; 2] = ["/keyloom-begins", "/keyloom-ends"];
/// A path that is looked up at each acknowledgement, in case there is no report.
pub(super) const ACKED: &str = "/keyloom-acked";
pub(super) const REPORT: &str = "report.json";
const TRANSACTIONS: u64 = 3;
/// More calls of `write` than a copy of the store makes.
const WRITES_OF_A_COPY: usize = 64;
/// One fault causes one error, and another one if the handle must be opened again.
pub(super) const MOST_TRIES: usize = 3;

/// The end of the report on a step that failed this often.
pub(super) const GAVE_UP: &str = "does not go on";

pub(super) fn store_path(directory: &Path) -> PathBuf {
    directory.join("store")
}

/// Options with such a small map that it must grow.
pub(super) fn options() -> LmdbOptions {
    Lmdb::options().map_bytes(64 << 10)
}

pub(in crate::campaigns) fn play() -> Result<()> {
    let task: Task = task::own()?;
    let report = task.directory.join(REPORT);
    let mix = Mix::new(task.workload.as_deref())?;
    let oracle = mix.oracle();
    let mut script = Script { task, mix, oracle, store: None, report: Report::default() };
    drop(fs::metadata(MARKS[0]));
    let outcome = script.run();
    drop(fs::metadata(MARKS[1]));
    // Threads that copy count their writes from 1. The writes of the report must not have these
    // numbers.
    for _ in 0..WRITES_OF_A_COPY {
        drop(fs::write("/dev/null", b"-"));
    }
    if let (Err(error), false) = (outcome, script.task.is_lasting) {
        script.report.wrong.push(format!("{error:#}"));
    }
    fs::write(report, serde_json::to_string(&script.report)?)?;
    Ok(())
}

struct Script {
    task: Task,
    mix: Mix,
    oracle: Oracle,
    store: Option<Lmdb>,
    report: Report,
}

impl Script {
    fn run(&mut self) -> Result<()> {
        for round in 0..2 {
            for _ in 0..TRANSACTIONS {
                self.transaction()?;
            }
            // A value for which the map must grow, and which is removed again.
            let large = vec![0; 100_000 << (2 * round)];
            self.attempt("growing", |store| {
                store.transact(|txn| {
                    txn.put(b"large", &large)?;
                    txn.delete(b"large")
                })
            })?;
            self.attempt("reading", |store| store.snapshot()?.count(KeyRange::all()))?;
            self.attempt("statistics", Lmdb::statistics)?;
            self.attempt("flush", Lmdb::flush)?;
            for compaction in [Compaction::Off, Compaction::On] {
                self.backup(&format!("backup {round} {compaction:?}"), compaction)?;
            }
            // The second round starts with opening the existing store.
            self.store = None;
        }
        let path = store_path(&self.task.directory);
        self.attempt_alone("verify", || Lmdb::verify(&path, |_, _| ()))?;
        self.attempt_alone("opening to read", || {
            options().read_only(true).open(&path)?.snapshot()?.count(KeyRange::all())
        })?;
        Ok(())
    }

    fn transaction(&mut self) -> Result<()> {
        let number = self.report.acked;
        let transaction = Mix::nth(self.task.seed, number);
        self.report.is_open = false;
        for _ in 0..MOST_TRIES {
            let Some(store) = self.store()? else { continue };
            if self.task.flaw == Flaw::AcksEarly {
                drop(fs::metadata(ACKED));
            }
            let outcome = self.perform(&store, transaction, number);
            drop(store);
            let is_done = match outcome {
                Ok(()) => true,
                Err(error) => {
                    self.report.is_open |= error.maybe_committed();
                    self.hear("a transaction", error);
                    self.task.flaw == Flaw::AcksAnyway || self.came_through(number)?
                }
            };
            if is_done {
                if self.task.flaw != Flaw::AcksEarly {
                    drop(fs::metadata(ACKED));
                }
                self.report.acked += 1;
                self.oracle.imitate(transaction);
                return Ok(());
            }
        }
        bail!("transaction {number} {GAVE_UP}")
    }

    fn perform(&self, store: &Lmdb, transaction: u64, number: u64) -> keyloom::Result<()> {
        if self.task.flaw == Flaw::TwoCommits {
            let key = Subspace::new("campaign").pack("transactions");
            store.transact(|txn| txn.put(&key, &(number + 1).to_be_bytes()))?;
        }
        store.transact(|txn| self.mix.perform(transaction, number, txn))
    }

    /// After an error, checks that the store contains all acknowledged transactions and nothing
    /// else, except as the error says. Returns whether the transaction was committed nevertheless.
    fn came_through(&mut self, number: u64) -> Result<bool> {
        let there =
            self.attempt("looking after an error", |store| Mix::progress(&store.snapshot()?))?;
        let is_there = self.report.is_open && there == number + 1;
        let mut oracle = self.oracle.clone();
        if is_there {
            oracle.advance(self.task.seed, there);
        }
        // The failing call may be made here.
        let wrong = self.attempt("comparing after an error", |store| {
            oracle.judge_within(&mut store.begin()?)
        })?;
        self.report.wrong.extend(wrong.into_iter().map(|what| format!("after an error: {what}")));
        Ok(is_there)
    }

    /// A failed copy must leave nothing under its name; a successful copy must be equal to the
    /// store.
    fn backup(&mut self, name: &str, compaction: Compaction) -> Result<()> {
        let copy = self.task.directory.join(name);
        for _ in 0..MOST_TRIES {
            let Some(store) = self.store()? else { continue };
            match store.backup(&copy, compaction) {
                Ok(()) => return self.compare(&copy),
                Err(error) => self.hear(name, error),
            }
            // A copy that is complete except for the last sync may exist.
            if copy.join("data.mdb").exists() {
                self.compare(&copy)?;
                fs::remove_dir_all(&copy)?;
            }
        }
        bail!("{name} {GAVE_UP}")
    }

    fn compare(&mut self, copy: &Path) -> Result<()> {
        let copy = self.attempt_alone("opening a copy", || options().create(false).open(copy))?;
        let oracle = self.oracle.clone();
        let compare = || oracle.judge_within(&mut copy.begin()?);
        let wrong = self.attempt_alone("comparing a copy", compare)?;
        self.report.wrong.extend(wrong.into_iter().map(|what| format!("in a copy: {what}")));
        Ok(())
    }

    /// Runs a step with the store, and repeats it after an error.
    fn attempt<T>(&mut self, step: &str, work: impl Fn(&Lmdb) -> keyloom::Result<T>) -> Result<T> {
        for _ in 0..MOST_TRIES {
            let Some(store) = self.store()? else { continue };
            match work(&store) {
                Ok(done) => return Ok(done),
                Err(error) => self.hear(step, error),
            }
        }
        bail!("{step} {GAVE_UP}")
    }

    /// Runs a step without the store, and repeats it after an error.
    fn attempt_alone<T>(&mut self, step: &str, work: impl Fn() -> keyloom::Result<T>) -> Result<T> {
        for _ in 0..MOST_TRIES {
            match work() {
                Ok(done) => return Ok(done),
                Err(error) => self.hear(step, error),
            }
        }
        bail!("{step} {GAVE_UP}")
    }

    /// Returns the handle; opens it if there is none.
    fn store(&mut self) -> Result<Option<Lmdb>> {
        if self.store.is_none() {
            let path = store_path(&self.task.directory);
            self.store = Some(self.attempt_alone("opening", || options().open(&path))?);
        }
        Ok(self.store.clone())
    }

    /// Records an error, and applies its remedy.
    fn hear(&mut self, step: &str, error: Error) {
        let error = match self.task.flaw {
            Flaw::Dies => std::process::abort(),
            Flaw::Mumbles => Error::Backend(error.to_string().into()),
            Flaw::HidesDoubt if error.maybe_committed() => Error::ReadOnly,
            _ => error,
        };
        let variant = keyloom_testing::errors::variant(&error);
        let text = error.to_string();
        if text.contains("open the store again") && self.task.flaw != Flaw::NeverReopens {
            self.store = None;
        }
        self.report.errors.push(Told { step: step.into(), variant, text });
    }
}
