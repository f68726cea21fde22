//! The instructions for a process of this campaign.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use keyloom::lmdb::Durability;
use keyloom::{AnyStore, Lmdb, RetryPolicy};
use keyloom_fjall::Fjall;
use keyloom_redb::Redb;
use serde::{Deserialize, Serialize};

use crate::Mix;

/// A store, and what to do with it. It travels as the argument of the process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The engine of the store.
    pub engine: Engine,
    /// The directory of the store.
    pub store: PathBuf,
    /// Which of [`DURABILITIES`].
    pub durability: usize,
    /// How large the map is at first.
    pub map_bytes: usize,
    /// The seed of the history.
    pub history: u64,
    /// The workload, where there is only one.
    pub workload: Option<String>,
    /// The seed of what the process decides by itself.
    pub choices: u64,
    /// What to do.
    pub task: Task,
    /// What is broken on purpose.
    pub habit: Habit,
}

/// An engine whose writers are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Engine {
    Lmdb,
    /// One process at a time has the file open, so there is never another writer, and the judge
    /// closes the store before the next one starts.
    Redb,
    /// As with redb. A crash of the program loses no commit, whatever they wait for.
    Fjall,
}

/// What a writer does until it is killed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Transactions of the history, from where the store's progress says.
    History {
        /// In so many, one transaction does some of the history's at once.
        unites_one_in: u64,
        /// A backup is made on the way.
        copies: bool,
        /// A snapshot stays open, so that the dead leave one behind.
        holds: bool,
    },
    /// Transactions of the history by several threads, through a `Batched` store.
    Batched { threads: usize },
    /// `BatchSize::transact_all` of the items from a number on.
    Load { from: u64, batch: usize },
    /// `Index::repair` from a position on.
    Repair { from: Option<Position>, batch: usize },
    /// Changes of the records that are repaired meanwhile.
    Disturb,
}

/// A position of a repair.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Position {
    /// Whether the records are done, and it goes through the entries.
    pub in_entries: bool,
    /// The last key that it visited.
    pub last: Option<Vec<u8>>,
}

/// How a writer works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Habit {
    /// As it should.
    Sound,
    /// It acknowledges, then commits.
    AcknowledgesFirst,
    /// It commits what a transaction does, then that it was done.
    CommitsHalves,
    /// It acknowledges transactions that it keeps for a later commit.
    Buffers,
    /// It reads the number of its transaction before it is the only writer.
    AsksTooEarly,
    /// It never ends a transaction.
    NeverEnds,
    /// It resumes after the position that was reported.
    ResumesTooFar,
    /// It opens redb without fsync.
    NeverFlushes,
    /// It opens the files of the store by other names, where no other process waits until it has
    /// opened.
    OpensAside,
}

/// What a commit may wait for. A crash of the program alone must lose nothing in any of them.
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

    /// A commit that does not wait for the disk is lost with its process: only the control makes
    /// such.
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

    /// The directory of a store of fjall.
    pub fn fjall(&self) -> PathBuf {
        self.store.join("fjall")
    }

    /// The file of a store of redb.
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
            // One doubling per attempt, and the least map may have to double often.
            .retry_policy(RetryPolicy { max_attempts: 20, ..RetryPolicy::default() });
        Ok(options.open(store)?)
    }

    /// The files of the store in a directory of this process's own. The engine's locks are those of
    /// the files, keyloom's is that of the directory.
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

    /// Where the store is copied to.
    pub fn copy(&self) -> PathBuf {
        self.store.with_extension("copy")
    }
}
