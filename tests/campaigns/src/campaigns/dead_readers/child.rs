//! The process that writes, and the processes that read concurrently.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use fastrand::Rng;
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use keyloom::lmdb::{Durability, LmdbOptions};
use keyloom::{Error, KeyRange, Lmdb, LmdbError, Order, Reader, StorageError, Store, Writer};
use serde::{Deserialize, Serialize};

use super::READER;
use crate::campaigns::task::{self, Child};

/// The parameters of the process.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Task {
    /// The directory of the store, on the small disk if there is one.
    pub(super) directory: PathBuf,
    /// The file of the report, on another disk.
    pub(super) report: PathBuf,
    pub(super) seed: u64,
    pub(super) kills: u64,
    pub(super) room: Room,
    pub(super) flaw: Flaw,
}

/// The limit on the size of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Room {
    /// No limit: the file itself must stay small.
    File,
    /// `max_map_bytes`.
    Map,
    /// The size of a separate file system.
    FileSystem,
    /// A limit on the size of files.
    Limit,
}

/// A flaw of the writer, as a negative control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Flaw {
    None,
    /// The writer uses the engine without keyloom, and clears no dead readers.
    NeverClears,
    /// An acknowledged commit is not made.
    LosesACommit,
    /// The error beside a live reader does not contain the remedy.
    Mumbles,
}

/// The observations of the process.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) counts: BTreeMap<String, u64>,
    pub(super) wrong: Vec<String>,
    /// The step that begins next.
    pub(super) step: String,
}

/// The parameters of a reader.
#[derive(Serialize, Deserialize)]
struct Reading {
    directory: PathBuf,
    snapshots: usize,
}

const KEYS: u64 = 500;
const MAP_BYTES: usize = 4 << 20;
/// The number of commits after each kill. Each commit writes at least four pages, so without reuse
/// of pages they take 12 MiB.
const COMMITS: u64 = 800;
/// The maximum number of commits while a reader lives, before it is killed.
const MOST_BESIDE: u64 = 50;
/// The maximum total growth of the file: as much as is written within some milliseconds. With a map
/// or a disk of 4 MiB, failed commits reveal excessive growth.
const MOST_GROWTH_BYTES: u64 = 4 << 20;
/// Enough commits to fill any of these limits beside a live reader.
const MOST_COMMITS: u64 = 20_000;
const PATIENCE: Duration = Duration::from_secs(60);
const HELD: &str = "held";

fn options(room: Room) -> LmdbOptions {
    let options = Lmdb::options().durability(Durability::MayLoseStore).max_readers(16);
    match room {
        Room::Map => options.map_bytes(MAP_BYTES).max_map_bytes(MAP_BYTES),
        _ => options.map_bytes(64 << 20),
    }
}

/// Opens the store, holds snapshots and waits to be killed.
pub(in crate::campaigns) fn read() -> Result<()> {
    let Reading { directory, snapshots } = task::own()?;
    // The reader has as much address space as any writer, so that only the writer is limited.
    let store = options(Room::File).open(directory)?;
    let held = (0..snapshots).map(|_| store.snapshot()).collect::<keyloom::Result<Vec<_>>>()?;
    println!("{HELD}");
    std::io::stdin().read_line(&mut String::new())?;
    drop(held);
    Ok(())
}

pub(in crate::campaigns) fn write() -> Result<()> {
    let task: Task = task::own()?;
    let directory = task.directory.join("store");
    save(&task, &Report::default())?;
    drop(options(task.room).open(&directory)?);
    let store = match task.flaw {
        Flaw::NeverClears => Target::Engine(open_engine(&directory, task.room)?),
        _ => Target::Keyloom(options(task.room).open(&directory)?),
    };
    let rng = Rng::with_seed(task.seed);
    let (model, report) = (BTreeMap::new(), Report::default());
    let mut scribe = Scribe { task, directory, store, rng, model, report, commits: 0 };
    scribe.run()?;
    save(&scribe.task, &scribe.report)
}

fn save(task: &Task, report: &Report) -> Result<()> {
    Ok(std::fs::write(&task.report, serde_json::to_string(report)?)?)
}

/// The target of the writes.
enum Target {
    Keyloom(Lmdb),
    Engine(Engine),
}

/// The engine and the database of the program in it.
type Engine = (Env<WithoutTls>, Database<'static, Bytes, Bytes>);

fn open_engine(directory: &Path, room: Room) -> Result<Engine> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    let map_bytes = if room == Room::Map { MAP_BYTES } else { 64 << 20 };
    options.map_size(map_bytes).max_readers(16).max_dbs(2);
    // SAFETY: the store is open only once in this process. The flag disables no locks and no
    // checks.
    let env = unsafe { options.flags(EnvFlags::NO_SYNC).open(directory) }?;
    let opened = env.open_databases_and_commit(env.read_txn()?, |opener, txn| {
        let mut options = opener.database_options().types::<Bytes, Bytes>();
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((options.name("keyloom").open(txn)?,)))
    })?;
    let CommitOrAbort::Commit((Some(database),)) = opened else { bail!("there is no database") };
    Ok((env, database))
}

impl Target {
    fn put(&self, key: &[u8], value: &[u8], runs: &mut u32) -> Result<(), PutError> {
        match self {
            Self::Keyloom(store) => {
                let put = store.transact(|txn| {
                    *runs += 1;
                    txn.put(key, value)
                });
                put.map_err(PutError::Keyloom)
            }
            Self::Engine(engine) => put_in_engine(engine, key, value).map_err(PutError::Engine),
        }
    }

    fn file_bytes(&self) -> Result<u64> {
        Ok(match self {
            Self::Keyloom(store) => store.statistics()?.file_bytes,
            Self::Engine((env, _)) => env.real_disk_size()?,
        })
    }
}

enum PutError {
    Keyloom(Error),
    Engine(heed::Error),
}

impl std::fmt::Display for PutError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Keyloom(error) => error.fmt(f),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

fn put_in_engine((env, database): &Engine, key: &[u8], value: &[u8]) -> heed::Result<()> {
    let mut txn = env.write_txn()?;
    database.put(&mut txn, key, value)?;
    txn.commit()
}

/// Writes to a store while readers exist.
struct Scribe {
    task: Task,
    directory: PathBuf,
    store: Target,
    rng: Rng,
    model: BTreeMap<[u8; 8], Vec<u8>>,
    report: Report,
    commits: u64,
}

impl Scribe {
    fn run(&mut self) -> Result<()> {
        self.step("the first commits")?;
        self.commit_many(2 * KEYS);
        let at_first = self.store.file_bytes()?;
        for number in 1..=self.task.kills {
            if !self.report.wrong.is_empty() {
                return Ok(());
            }
            self.step(&format!("reader {number}"))?;
            if self.rng.bool() {
                self.kill_with_snapshots()?
            } else {
                self.kill_at_any_moment()?
            }
            self.step(&format!("after the kill of reader {number}"))?;
            self.commit_many(COMMITS);
        }
        let bytes = self.store.file_bytes()?;
        if bytes > at_first + MOST_GROWTH_BYTES {
            let grown = format!("{bytes} bytes of a file that had {at_first} before the readers");
            self.report.wrong.push(grown);
        }
        if self.task.room != Room::File && self.report.wrong.is_empty() {
            self.step("a reader that lives")?;
            self.fill_beside_a_live_reader()?;
        }
        self.judge()
    }

    /// Reports the next step, in case the process hangs or dies in it.
    fn step(&mut self, step: &str) -> Result<()> {
        self.report.step = step.into();
        save(&self.task, &self.report)
    }

    fn count(&mut self, what: &str, more: u64) {
        *self.report.counts.entry(what.into()).or_default() += more;
    }

    fn start_reader(&mut self) -> Result<(Child, u32)> {
        let reading =
            Reading { directory: self.directory.clone(), snapshots: self.rng.usize(1..4) };
        let mut command: Command = task::process(READER, &reading)?;
        let child = Child::start(&mut command)?;
        let id = child.id();
        Ok((child, id))
    }

    /// Kills a reader some commits after its snapshots began.
    fn kill_with_snapshots(&mut self) -> Result<()> {
        let (mut reader, _) = self.start_reader()?;
        let said = reader.hear(PATIENCE).ok().context("a reader opens no snapshot")?;
        ensure!(said == HELD, "a reader says {said}");
        let beside = self.rng.u64(..MOST_BESIDE);
        self.commit_many(beside);
        reader.kill()?;
        self.count("killed with snapshots", 1);
        Ok(())
    }

    /// Kills a reader some time after its start, while commits continue.
    fn kill_at_any_moment(&mut self) -> Result<()> {
        let (mut reader, _) = self.start_reader()?;
        std::thread::sleep(Duration::from_micros(self.rng.u64(..8_000)));
        reader.kill()?;
        self.count("killed at any moment", 1);
        Ok(())
    }

    /// Makes commits, which must all succeed.
    fn commit_many(&mut self, count: u64) {
        for _ in 0..count {
            if let Err((error, _)) = self.commit() {
                self.report.wrong.push(format!("a commit beside dead readers: {error}"));
                return;
            }
        }
        self.count("commits", count);
    }

    /// Makes one commit. An error includes how often the transaction ran.
    fn commit(&mut self) -> Result<(), (PutError, u32)> {
        let key = self.rng.u64(..KEYS).to_be_bytes();
        let value = vec![self.rng.u8(..); self.rng.usize(..200)];
        self.commits += 1;
        let mut runs = 0;
        // One of the commits after the last kill.
        let is_lost = self.task.flaw == Flaw::LosesACommit
            && self.commits == 2 * KEYS + COMMITS * self.task.kills;
        if !is_lost {
            self.store.put(&key, &value, &mut runs).map_err(|error| (error, runs))?;
        }
        let value = if is_lost { vec![0; 300] } else { value };
        self.model.insert(key, value);
        Ok(())
    }

    /// Fills the store beside a live reader: the error must name the reader, and after its end
    /// there must be space again.
    fn fill_beside_a_live_reader(&mut self) -> Result<()> {
        let (mut reader, id) = self.start_reader()?;
        let said = reader.hear(PATIENCE).ok().context("a reader opens no snapshot")?;
        ensure!(said == HELD, "a reader says {said}");
        let full = (0..MOST_COMMITS).find_map(|_| self.commit().err());
        let Some((error, runs)) = full else {
            self.report.wrong.push("a live reader keeps no pages".into());
            return Ok(());
        };
        let text = match self.task.flaw {
            Flaw::Mumbles => "there is no room".into(),
            _ => error.to_string(),
        };
        let is_full = matches!(
            error,
            PutError::Keyloom(
                Error::Lmdb(LmdbError::MapFull { .. })
                    | Error::Storage(StorageError::DiskFull { .. })
            )
        );
        if !is_full || !text.contains(&format!("process {id} ")) {
            self.report
                .wrong
                .push(format!("beside a live reader: does not name the reader: {text}"));
        }
        // The first run clears the remains of the reader that was killed last.
        if runs > 2 {
            self.report.wrong.push(format!("beside a live reader: {runs} runs in vain"));
        }
        self.count("live readers named", 1);
        reader.kill()?;
        self.step("after the end of the reader that lived")?;
        self.commit_many(COMMITS);
        Ok(())
    }

    /// Checks that the store contains all acknowledged transactions and nothing else.
    fn judge(&mut self) -> Result<()> {
        let Target::Keyloom(store) = &self.store else { return Ok(()) };
        let cleared = store.statistics()?.dead_readers;
        let snapshot = store.snapshot()?;
        let mut found = BTreeMap::new();
        for entry in snapshot.range(KeyRange::all(), Order::Ascending)? {
            let (key, value) = entry?;
            found.insert(key.to_vec(), value.to_vec());
        }
        let is_there = |(key, value): (&[u8; 8], &Vec<u8>)| found.get(&key[..]) == Some(value);
        let there = self.model.iter().filter(|entry| is_there(*entry)).count();
        if there != self.model.len() || there != found.len() {
            let wrong =
                format!("{there} of {} entries instead of {}", found.len(), self.model.len());
            self.report.wrong.push(wrong);
        }
        drop(snapshot);
        self.count("dead readers cleared", cleared);
        Ok(())
    }
}
