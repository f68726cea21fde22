//! The program that fills its disk, and continues.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use fastrand::Rng;
use keyloom::lmdb::{Compaction, Durability, LmdbOptions};
use keyloom::{
    Error, KeyRange, Lmdb, Memory, Order, Reader, StorageError, Store, Subspace, Writer,
};
use serde::{Deserialize, Serialize};

use crate::campaigns::task;
use crate::{Mix, Oracle};

/// The parameters of the process.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Task {
    /// The directory of the store, on the small disk.
    pub(super) directory: PathBuf,
    /// The file of the report, on another disk.
    pub(super) report: PathBuf,
    pub(super) seed: u64,
    pub(super) workload: Option<String>,
    pub(super) kind: Kind,
    pub(super) flaw: Flaw,
}

/// What runs out of space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// A separate small file system: a file beside the store can be shrunk to make space.
    FileSystem,
    /// A limit on the size of files.
    Limit,
}

/// A flaw of the program, as a negative control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Flaw {
    None,
    /// A full disk is treated as success.
    AcksAnyway,
    /// A full disk is reported as an unspecific error.
    Mumbles,
    /// A full disk is reported as an error whose source is a disk failure.
    BlamesTheDisk,
    /// A transaction consists of two commits: first its number, then its changes.
    TwoCommits,
}

/// The observations of the process.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Report {
    /// How often the disk was full, by step.
    pub(super) full: BTreeMap<String, u64>,
    pub(super) acked: u64,
    pub(super) wrong: Vec<String>,
    /// The step that begins next.
    pub(super) step: String,
}

/// A file that takes space beside the store, and is shrunk later.
const CUSHION: &str = "cushion";
const CUSHION_BYTES: u64 = 768 << 10;
/// How often the disk is filled. In each round the cushion gives up a part of its space.
const ROUNDS: u64 = 3;
/// More transactions than fit on any disk of the campaign.
const MOST_TRANSACTIONS: u64 = 10_000;

/// Options with such a small map that it must grow.
fn options(kind: Kind) -> LmdbOptions {
    // A file system in memory does not wait. Elsewhere, waiting would make no difference.
    let durability = match kind {
        Kind::FileSystem => Durability::Full,
        Kind::Limit => Durability::MayLoseStore,
    };
    Lmdb::options().map_bytes(64 << 10).durability(durability)
}

pub(in crate::campaigns) fn play() -> Result<()> {
    let task: Task = task::own()?;
    let mix = Mix::new(task.workload.as_deref())?;
    let mut report = Report::default();
    save(&task, &report)?;
    if task.kind == Kind::FileSystem {
        fs::write(task.directory.join(CUSHION), vec![1; CUSHION_BYTES as usize])?;
    }
    let store = match options(task.kind).open(task.directory.join("store")) {
        Ok(store) => Some(store),
        Err(error) => {
            report.wrong.push(format!("opening on an empty disk: {error}"));
            None
        }
    };
    let rng = Rng::with_seed(task.seed);
    let oracle = mix.oracle();
    let mut filler = Filler { task, mix, oracle, rng, store, ballast: BTreeMap::new(), report };
    if filler.store.is_some() {
        filler.run()?;
    }
    filler.report.acked = filler.oracle.done();
    save(&filler.task, &filler.report)
}

fn save(task: &Task, report: &Report) -> Result<()> {
    Ok(fs::write(&task.report, serde_json::to_string(report)?)?)
}

/// Fills a store with transactions of the mix, and with ballast.
struct Filler {
    task: Task,
    mix: Mix,
    oracle: Oracle,
    rng: Rng,
    store: Option<Lmdb>,
    /// Number and size of the ballast entries that fill the disk.
    ballast: BTreeMap<u32, usize>,
    report: Report,
}

fn ballast() -> Subspace {
    Subspace::new("ballast")
}

impl Filler {
    fn run(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            self.step("filling")?;
            if !self.fill() {
                self.report.wrong.push("the disk is never full".into());
            }
            self.judge("when the disk is full");
            self.plug();
            self.step("reading with many snapshots")?;
            self.read();
            self.step("a copy onto the full disk")?;
            self.copy()?;
            self.step("a new store on the full disk")?;
            self.open_another()?;
            self.step("opening the store on the full disk")?;
            self.reopen();
            self.step("deleting")?;
            self.delete()?;
            self.judge("when there is room again");
        }
        self.step("the end")
    }

    /// Reports the next step, in case the process hangs or dies in it.
    fn step(&mut self, step: &str) -> Result<()> {
        self.report.step = step.into();
        save(&self.task, &self.report)
    }

    /// Writes until the disk is full, and a few times more. Returns whether the disk became full.
    fn fill(&mut self) -> bool {
        let mut full = 0;
        for _ in 0..MOST_TRANSACTIONS {
            let bytes = self.rng.usize(..40_000) >> self.rng.u32(..8);
            full += u32::from(!self.transaction(bytes));
            if full == 4 {
                return true;
            }
        }
        false
    }

    /// Runs a transaction. Returns whether there was space for it.
    fn transaction(&mut self, bytes: usize) -> bool {
        let number = self.oracle.done();
        let transaction = Mix::nth(self.task.seed, number);
        let next = self.ballast.last_key_value().map_or(0, |(number, _)| number + 1);
        let Some(store) = &self.store else { return false };
        let mut outcome = Ok(());
        if self.task.flaw == Flaw::TwoCommits {
            let key = Subspace::new("campaign").pack("transactions");
            outcome = store.transact(|txn| txn.put(&key, &(number + 1).to_be_bytes()));
        }
        let outcome = outcome.and_then(|()| {
            store.transact(|txn| {
                self.mix.perform(transaction, number, txn)?;
                txn.put(&ballast().pack(&next), &vec![next as u8; bytes])
            })
        });
        let is_done = outcome.is_ok() || self.task.flaw == Flaw::AcksAnyway;
        let had_room = self.heard("a commit", outcome).is_some();
        if is_done {
            self.oracle.imitate(transaction);
            self.ballast.insert(next, bytes);
        }
        had_room
    }

    /// Records the outcome of a step. A full disk may make it fail, but only with the expected
    /// error.
    fn heard<T>(&mut self, step: &str, outcome: keyloom::Result<T>) -> Option<T> {
        let error = match outcome {
            Ok(done) => return Some(done),
            Err(error) if self.task.flaw == Flaw::Mumbles => {
                Error::Backend(error.to_string().into())
            }
            Err(Error::Storage(StorageError::DiskFull { path, held, .. }))
                if self.task.flaw == Flaw::BlamesTheDisk =>
            {
                let source = std::io::Error::from_raw_os_error(libc::EIO);
                Error::Storage(StorageError::DiskFull { path, source: source.into(), held })
            }
            Err(error) => error,
        };
        *self.report.full.entry(step.into()).or_default() += 1;
        let is_clear = match &error {
            Error::Storage(StorageError::DiskFull { source, .. }) => {
                source.raw_os_error() != Some(libc::EIO)
            }
            _ => false,
        };
        if !is_clear || !error.to_string().contains("free some space") {
            self.report.wrong.push(format!("{step} on a full disk: {error}"));
        }
        None
    }

    /// Checks that the store contains all acknowledged transactions and nothing else.
    fn judge(&mut self, when: &str) {
        let Some(store) = &self.store else { return };
        let found = compare(store, &self.oracle, &self.ballast);
        let wrong = found.unwrap_or_else(|error| vec![format!("it cannot be read: {error}")]);
        self.report.wrong.extend(wrong.into_iter().map(|what| format!("{when}: {what}")));
    }

    /// Lets the cushion take the remaining space, to the last page.
    fn plug(&self) {
        if self.task.kind == Kind::FileSystem {
            let path = self.task.directory.join(CUSHION);
            let cushion = fs::File::options().append(true).open(path);
            let mut page = cushion.map(|mut cushion| move || cushion.write_all(&[1; 4096]));
            while page.as_mut().is_ok_and(|page| page().is_ok()) {}
        }
    }

    /// Opens more snapshots than one page of the lock file has slots for.
    fn read(&mut self) {
        let Some(store) = &self.store else { return };
        let snapshots = (0..500).map(|_| store.snapshot()).collect::<keyloom::Result<Vec<_>>>();
        if let Err(error) = snapshots {
            self.report.wrong.push(format!("a snapshot on a full disk: {error}"));
        }
    }

    /// A copy that does not fit must leave nothing behind.
    fn copy(&mut self) -> Result<()> {
        let copy = self.task.directory.join("copy");
        for compaction in [Compaction::On, Compaction::Off] {
            let Some(store) = &self.store else { return Ok(()) };
            let outcome = store.backup(&copy, compaction);
            if self.heard("a copy", outcome).is_some() {
                // Under a limit on file sizes, there is space for a second file.
                let copied = options(self.task.kind).create(false).open(&copy);
                let found = copied.and_then(|copy| compare(&copy, &self.oracle, &self.ballast));
                let wrong = found.unwrap_or_else(|error| vec![error.to_string()]);
                self.report
                    .wrong
                    .extend(wrong.into_iter().map(|what| format!("in a copy: {what}")));
                fs::remove_dir_all(&copy)?;
            }
            if copy.exists() {
                self.report.wrong.push("a copy that does not fit leaves something behind".into());
                fs::remove_dir_all(&copy)?;
            }
        }
        Ok(())
    }

    fn open_another(&mut self) -> Result<()> {
        let other = self.task.directory.join("other");
        let outcome = options(self.task.kind).open(&other).map(drop);
        self.heard("a new store", outcome);
        if other.exists() {
            // A store that was begun can be opened when there is space, and is empty.
            fs::remove_dir_all(&other)?;
        }
        Ok(())
    }

    /// Opens the store again. This needs no space, as nothing is written.
    fn reopen(&mut self) {
        self.store = None;
        match options(self.task.kind).create(false).open(self.task.directory.join("store")) {
            Ok(store) => self.store = Some(store),
            Err(error) => self.report.wrong.push(format!("opening again: {error}")),
        }
    }

    /// Makes space in the store, and uses it. The engine writes new pages before it frees the old
    /// ones, which only the transaction after the next one can use. So deleting may itself need
    /// space: then the cushion is shrunk.
    fn delete(&mut self) -> Result<()> {
        let all: Vec<u32> = self.ballast.keys().copied().collect();
        let doomed: Vec<u32> = all.into_iter().filter(|_| self.rng.u8(..4) > 0).collect();
        let mut may_give_way = self.task.kind == Kind::FileSystem;
        let part_keys = if self.rng.bool() { 10 } else { 100 };
        for part in doomed.chunks(part_keys) {
            self.with_room(&mut may_give_way, |filler| filler.delete_ballast(part))?;
        }
        self.with_room(&mut may_give_way, |filler| filler.transaction(1_000))
    }

    /// Repeats a step until there is space for it. On a file system, the step must succeed in the
    /// end.
    fn with_room(
        &mut self,
        may_give_way: &mut bool,
        mut work: impl FnMut(&mut Self) -> bool,
    ) -> Result<()> {
        if work(self) {
            return Ok(());
        }
        if std::mem::take(may_give_way) {
            let path = self.task.directory.join(CUSHION);
            let cushion = fs::File::options().write(true).open(path)?;
            let left = cushion.metadata()?.len().saturating_sub(CUSHION_BYTES / ROUNDS);
            cushion.set_len(left)?;
            if work(self) {
                return Ok(());
            }
        }
        match self.task.kind {
            Kind::FileSystem => {
                self.report.wrong.push("it does not go on when there is room".into())
            }
            Kind::Limit => {
                *self.report.full.entry("deleting under a limit, in vain".into()).or_default() += 1
            }
        }
        Ok(())
    }

    fn delete_ballast(&mut self, doomed: &[u32]) -> bool {
        let Some(store) = &self.store else { return false };
        let outcome =
            store.transact(|txn| doomed.iter().try_for_each(|n| txn.delete(&ballast().pack(n))));
        let is_done = self.heard("deleting", outcome).is_some();
        if is_done {
            self.ballast.retain(|number, _| !doomed.contains(number));
        }
        is_done
    }
}

/// The faults of a store: first without its ballast, then of the ballast.
fn compare(
    store: &Lmdb,
    oracle: &Oracle,
    wanted: &BTreeMap<u32, usize>,
) -> keyloom::Result<Vec<String>> {
    let snapshot = store.snapshot()?;
    let mut found = BTreeMap::new();
    let rest = Memory::new();
    rest.transact(|txn| {
        for entry in snapshot.range(KeyRange::all(), Order::Ascending)? {
            let (key, value) = entry?;
            match ballast().unpack::<u32>(key) {
                Ok(number) if value.iter().all(|byte| *byte == number as u8) => {
                    found.insert(number, value.len());
                }
                _ => txn.put(key, value)?,
            }
        }
        Ok(())
    })?;
    let mut wrong = oracle.judge(&rest);
    if found != *wanted {
        wrong.push(format!("{} pieces of ballast instead of {}", found.len(), wanted.len()));
    }
    Ok(wrong)
}
