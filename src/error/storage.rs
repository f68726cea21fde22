//! The part of the error type that concerns the files or the table of a store.

use std::path::PathBuf;

use super::{HeldPages, Shared};

/// A fault of the files or the table that contain a store.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The disk is full, or the file has the largest size that the system allows. Earlier commits
    /// are kept; free some space and run the transaction again. On LMDB,
    /// [`Store::transact`](crate::Store::transact) retries the transaction if readers of dead
    /// processes were cleared.
    #[error("no room on the disk for {path}: {source}; {}", held.remedy("free some space and try again"))]
    DiskFull {
        /// The store.
        path: PathBuf,
        /// The error of the system.
        source: Shared<std::io::Error>,
        /// The readers that keep freed pages from being reused, on LMDB.
        held: HeldPages,
    },
    /// The directory of the store does not exist.
    #[error("there is no directory {path}; create it, or check the path")]
    MissingDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The directory contains no store, and the options do not allow creating one.
    #[error("there is no store in {path}; open it with `create(true)` to make one")]
    MissingStore {
        /// The directory.
        path: PathBuf,
    },
    /// The system refuses access to a file or a directory.
    #[error(
        "no permission to {action} {path}; {}",
        if *action == "read" { "change its permissions" } else { "change its permissions, or open the store with `read_only(true)` to read only" }
    )]
    PermissionDenied {
        /// `read` or `write`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
    },
    /// The file exists but is not a keyloom store.
    #[error("{path} is not a keyloom store: {why}")]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file is a store but is damaged. Restore the store from a copy.
    #[error("the store {path} is damaged: {why}; restore it from a copy")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// A description of the damage.
        why: String,
    },
    /// A system call failed within an operation that cannot be rolled back, and the engine now
    /// refuses every operation. Earlier commits are kept. Drop every handle of the store and open
    /// it again.
    #[error(
        "a failed system call left this handle of {path} unusable{}; drop all handles and open the store again",
        cause_text(source.as_ref())
    )]
    Unusable {
        /// The store.
        path: PathBuf,
        /// The error of the system call, if it is known.
        source: Option<Shared<std::io::Error>>,
    },
    /// A system call on a file of the store failed, for example because the disk has a fault or too
    /// many files are open. Earlier commits are kept. Fix the cause, and try again.
    #[error("a system call failed at {path}: {source}; fix the cause and try again")]
    Io {
        /// The store, or the file.
        path: PathBuf,
        /// The error of the system.
        source: Shared<std::io::Error>,
    },
    /// Another handle, in this process or in another one, has the file open, and the engine allows
    /// only one handle. Clone the handle of this process, or end the other process.
    #[error(
        "{path} is already open, in this process or in another one, and its engine allows one handle at a time; clone that handle, or end that process"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

impl StorageError {
    pub(super) fn calls_for_another_run(&self) -> bool {
        matches!(self, Self::DiskFull { held, .. } if held.dead_readers > 0)
    }
}

/// The error of the system for a message, if it is known.
fn cause_text(source: Option<&Shared<std::io::Error>>) -> String {
    source.map(|source| format!(": {source}")).unwrap_or_default()
}
