//! The parameters of a process of this campaign.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use keyloom::lmdb::Durability;
use keyloom::{AnyStore, Lmdb, RetryPolicy};
use keyloom_fjall::Fjall;
use keyloom_redb::Redb;
use serde::{Deserialize, Serialize};

use crate::Mix;

/// A store, and the task of the process. It is passed as the argument of the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The engine of the store.
    pub engine: Engine,
    /// The directory of the store.
    pub store: PathBuf,
    /// An index into [`DURABILITIES`].
    pub durability: usize,
    /// The initial size of the map.
    pub map_bytes: usize,
    /// The seed of the history.
    pub history: u64,
    /// The workload, if there is only one.
    pub workload: Option<String>,
    /// The seed of the process's own choices.
    pub choices: u64,
    /// The task.
    pub task: Task,
    /// The flaw, for controls.
    pub habit: Habit,
}

/// An engine whose writers are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Engine {
    Lmdb,
    /// Only one process at a time has the file open, so there is never another writer. The judge
    /// closes the store before the next writer starts.
    Redb,
    /// Like redb. A crash of the program loses no commit, with any durability.
    Fjall,
}

/// The work of a writer until it is killed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Transactions of the history, starting at the progress in the store.
    History {
        /// One in this many commits combines several transactions of the history.
        unites_one_in: u64,
        /// Whether a backup is made meanwhile.
        copies: bool,
        /// Whether a snapshot stays open, so that a killed process leaves one behind.
        holds: bool,
    },
    /// Transactions of the history from several threads, through a `Batched` store.
    Batched { threads: usize },
    /// `BatchSize::transact_all` of the items, starting at a number.
    Load { from: u64, batch: usize },
    /// `Index::repair`, starting at a position.
    Repair { from: Option<Position>, batch: usize },
    /// Changes of the records that are being repaired.
    Disturb,
}

/// A position of a repair.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Position {
    /// Whether the records are done, and the repair is visiting the entries.
    pub in_entries: bool,
    /// The last visited key.
    pub last: Option<Vec<u8>>,
}

/// The behaviour of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Habit {
    /// The correct behaviour.
    Sound,
    /// Acknowledges before it commits.
    AcknowledgesFirst,
    /// Commits the changes of a transaction, and then its number.
    CommitsHalves,
    /// Acknowledges transactions that it buffers for a later commit.
    Buffers,
    /// Reads the number of its transaction before it holds the write lock.
    AsksTooEarly,
    /// Never ends a transaction.
    NeverEnds,
    /// Resumes after the reported position.
    ResumesTooFar,
    /// Opens redb without fsync.
    NeverFlushes,
    /// Opens the store through hard links in a private directory, so that the lock on the directory
    /// of the store excludes no other process.
    OpensAside,
}

/// The levels of durability. With each of them, a crash of only the program must lose nothing.
pub const DURABILITIES: [Durability; 3] =
    [Durability::Full, Durability::MayLoseLastCommit, Durability::MayLoseStore];

impl Job {
    /// The job of this process.
    pub fn of_this_process() -> Result<Self> {
        let text = std::env::args().nth(1).context("the job is missing")?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Opens the store.
    pub fn open(&self) -> Result<AnyStore> {
        match self.engine {
            Engine::Lmdb => Ok(self.open_lmdb()?.into()),
            Engine::Redb => Ok(AnyStore::other("redb:", self.open_redb()?)),
            Engine::Fjall => Ok(AnyStore::other("fjall:", self.open_fjall()?)),
        }
    }

    /// Opens redb. A commit without a sync is lost with its process, so only the control uses such
    /// commits.
    fn open_redb(&self) -> Result<Redb> {
        let durability = match self.habit {
            Habit::NeverFlushes => keyloom_redb::Durability::MayLoseCommits,
            _ => keyloom_redb::Durability::Full,
        };
        let options = Redb::options().durability(durability).quick_repair(self.durability > 0);
        Ok(options.cache_bytes(64 << 20).open(self.redb())?)
    }

    fn open_fjall(&self) -> Result<Fjall> {
        let durability = match self.durability {
            0 => keyloom_fjall::Durability::Full,
            _ => keyloom_fjall::Durability::MayLoseCommits,
        };
        let options = Fjall::options().durability(durability);
        Ok(options.cache_bytes(64 << 20).open(self.fjall())?)
    }

    /// The directory of a fjall store.
    pub fn fjall(&self) -> PathBuf {
        self.store.join("fjall")
    }

    /// The file of a redb store.
    pub fn redb(&self) -> PathBuf {
        self.store.join("store")
    }

    fn open_lmdb(&self) -> Result<Lmdb> {
        let store = match self.habit {
            Habit::OpensAside => self.aside()?,
            _ => self.store.clone(),
        };
        let options = Lmdb::options()
            .durability(DURABILITIES[self.durability])
            .map_bytes(self.map_bytes)
            // The map doubles once per attempt, and the smallest map may have to double often.
            .retry_policy(RetryPolicy { max_attempts: 20, ..RetryPolicy::default() });
        Ok(options.open(store)?)
    }

    /// The files of the store, linked into a private directory of this process. The engine's locks
    /// belong to the files; keyloom's lock belongs to the directory.
    fn aside(&self) -> Result<PathBuf> {
        let aside = self.store.with_extension(std::process::id().to_string());
        std::fs::create_dir_all(&aside)?;
        for file in ["data.mdb", "lock.mdb"] {
            let from = self.store.join(file);
            if from.exists() && !aside.join(file).exists() {
                std::fs::hard_link(from, aside.join(file))?;
            }
        }
        Ok(aside)
    }

    /// The workloads.
    pub fn mix(&self) -> Result<Mix> {
        Mix::new(self.workload.as_deref())
    }

    /// The target of backups.
    pub fn copy(&self) -> PathBuf {
        self.store.with_extension("copy")
    }
}
