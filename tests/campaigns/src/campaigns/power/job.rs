//! The parameters of the processes of the campaign.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use keyloom::lmdb::Durability;
use serde::{Deserialize, Serialize};

use crate::Mix;

/// A recording, and the way it is judged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The directory of all files of the recording.
    pub directory: PathBuf,
    /// The seed of the history.
    pub seed: u64,
    /// One workload, or all if `None`.
    pub workload: Option<String>,
    /// The number of transactions in the store at the start.
    pub from: u64,
    /// The number of recorded transactions.
    pub count: u64,
    /// The number of writer threads: one uses [`transact`](keyloom::Store::transact), several use
    /// [`transact_batched`](keyloom::Store::transact_batched).
    #[serde(default = "one")]
    pub threads: usize,
    /// The initial address space: a small one has to grow during the recording.
    pub map_bytes: usize,
    /// The data that the program writes.
    pub subject: Subject,
    /// The durability of the store.
    pub mode: Mode,
    /// The promise that is judged.
    pub promise: Promise,
    /// The flaw, for controls.
    pub flaw: Flaw,
}

fn one() -> usize {
    1
}

/// The data that the program writes to the replayed directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A store, transaction by transaction.
    Store,
    /// One backup, of a store elsewhere.
    Backup { is_compacted: bool },
}

/// Corresponds to [`Durability`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    Full,
    MayLoseLastCommit,
    MayLoseStore,
}

/// The data that must survive a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Promise {
    /// All acknowledged transactions.
    All,
    /// All acknowledged transactions except those of the last commit. This commit may be a batch,
    /// which is lost as a whole.
    AllButLast,
    /// Any earlier state of the store.
    Whole,
    /// The flushed transactions, until another transaction begins.
    Flushed,
}

/// A flaw, as a negative control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flaw {
    None,
    /// A store that does not sync its data.
    DataNotSynced,
    /// A store that does not sync its meta page.
    MetaNotSynced,
    /// A store that makes a state valid before its data is on the disk.
    MetaBeforeData,
    /// A store that acknowledges before the state is valid.
    EarlyAnswer,
    /// A program with several threads that acknowledges a transaction in its body, before the
    /// commit.
    AnswerInBody,
    /// A store whose flush does not sync.
    FlushNotSynced,
    /// A store that does not sync the names of its files.
    NamesNotSynced,
    /// A store that contains other data than was written.
    OtherContents,
    /// A backup that has its final name while it is being written.
    NamedEarly,
}

impl Mode {
    pub fn durability(self) -> Durability {
        match self {
            Self::Full => Durability::Full,
            Self::MayLoseLastCommit => Durability::MayLoseLastCommit,
            Self::MayLoseStore => Durability::MayLoseStore,
        }
    }

    /// The documented promise of the mode. In addition, flushed data must survive in every mode.
    pub fn promise(self) -> Promise {
        match self {
            Self::Full => Promise::All,
            Self::MayLoseLastCommit => Promise::AllButLast,
            Self::MayLoseStore => Promise::Flushed,
        }
    }
}

impl Flaw {
    /// Whether the program itself is flawed, so that it needs a separate recording.
    pub fn is_of_program(self) -> bool {
        self == Self::AnswerInBody
    }
}

impl Job {
    /// The job that was passed to this process.
    pub fn of_this_process() -> Result<Self> {
        let text = std::env::args().nth(1).context("a process without a job")?;
        Ok(serde_json::from_str(&text)?)
    }

    pub fn store(&self) -> PathBuf {
        self.directory.join("store")
    }

    pub fn data(&self) -> PathBuf {
        self.store().join("data.mdb")
    }

    /// The image at which the recording started, if it did not start with an empty store.
    pub fn start(&self) -> PathBuf {
        self.directory.join("start.mdb")
    }

    pub fn trace(&self) -> PathBuf {
        self.directory.join("trace")
    }

    /// The notes that the program writes while it is traced.
    pub fn notes(&self) -> PathBuf {
        self.directory.join("notes")
    }

    /// The store that is backed up.
    pub fn source(&self) -> PathBuf {
        self.directory.join("source")
    }

    pub fn is_backup(&self) -> bool {
        self.subject != Subject::Store
    }

    pub fn mix(&self) -> Result<Mix> {
        Mix::new(self.workload.as_deref())
    }
}
