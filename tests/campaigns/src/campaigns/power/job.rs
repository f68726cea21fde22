//! The instructions for the processes of the campaign.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use keyloom::lmdb::Durability;
use serde::{Deserialize, Serialize};

use crate::Mix;

/// A recording, and how it is judged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Where all files of the recording are.
    pub directory: PathBuf,
    /// Where the history comes from.
    pub seed: u64,
    /// One workload, or all.
    pub workload: Option<String>,
    /// How many transactions the store holds at the start.
    pub from: u64,
    /// How many are recorded.
    pub count: u64,
    /// How many threads write: one with [`transact`](keyloom::Store::transact), several with
    /// [`transact_batched`](keyloom::Store::transact_batched).
    #[serde(default = "one")]
    pub threads: usize,
    /// The address space at first: a small one has to grow on the way.
    pub map_bytes: usize,
    /// What the program writes.
    pub subject: Subject,
    /// What the program asked for.
    pub mode: Mode,
    /// What is judged.
    pub promise: Promise,
    /// What is broken on purpose.
    pub flaw: Flaw,
}

fn one() -> usize {
    1
}

/// What the program writes, in the directory that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A store, transaction by transaction.
    Store,
    /// One backup, of a store elsewhere.
    Backup { is_compacted: bool },
}

/// As [`Durability`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    Full,
    MayLoseLastCommit,
    MayLoseStore,
}

/// What must be there after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Promise {
    /// All that was acknowledged.
    All,
    /// All that was acknowledged but the last commit. This commit may be a batch, which is lost as
    /// a whole.
    AllButLast,
    /// Some state that the store once had.
    Whole,
    /// What was flushed, until something else is begun.
    Flushed,
}

/// What is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flaw {
    None,
    /// A store that forgets to wait for its data.
    DataNotSynced,
    /// A store that forgets to wait for its meta page.
    MetaNotSynced,
    /// A store that makes a state valid before it is on the disk.
    MetaBeforeData,
    /// A store that answers before the state is valid.
    EarlyAnswer,
    /// A program of several threads that acknowledges a transaction in its body, before the commit.
    AnswerInBody,
    /// A store that does not wait when it is flushed.
    FlushNotSynced,
    /// A store whose names are not on the disk.
    NamesNotSynced,
    /// A store that holds something else than it was given.
    OtherContents,
    /// A backup that has its final name while it is written.
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

    /// What its documentation promises. Besides, what was flushed is there in every mode.
    pub fn promise(self) -> Promise {
        match self {
            Self::Full => Promise::All,
            Self::MayLoseLastCommit => Promise::AllButLast,
            Self::MayLoseStore => Promise::Flushed,
        }
    }
}

impl Flaw {
    /// Whether the program itself is broken, so that it has a recording of its own.
    pub fn is_of_program(self) -> bool {
        self == Self::AnswerInBody
    }
}

impl Job {
    /// The job that this process was started with.
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

    /// The image that the recording went on from, when it did not begin with nothing.
    pub fn start(&self) -> PathBuf {
        self.directory.join("start.mdb")
    }

    pub fn trace(&self) -> PathBuf {
        self.directory.join("trace")
    }

    /// What the program says while it is traced.
    pub fn notes(&self) -> PathBuf {
        self.directory.join("notes")
    }

    /// The store of which a backup is made.
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
