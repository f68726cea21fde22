//! Errors of the tool, and its exit codes.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// The result of a step of a command.
pub type Result<T = ()> = std::result::Result<T, Failure>;

/// The outcome of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is as expected: status 0.
    Fine,
    /// The command has found a difference, a fault or remaining work, the key is not there, or
    /// there were too few changes: status 1.
    Different,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::Different => Self::from(1),
        }
    }
}

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// An error, for the user: status 2.
    Message(String),
    /// The store failed, so the same command may succeed later: status 2.
    Store(String),
    /// The reader of the output has closed the pipe, as `head` does: status 0. `export` turns this
    /// into an error.
    Closed,
}

impl Failure {
    /// A failure with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) | Self::Store(message) => f.write_str(message),
            Self::Closed => f.write_str("the output was closed"),
        }
    }
}

impl From<keyloom::Error> for Failure {
    fn from(error: keyloom::Error) -> Self {
        use keyloom::Error;
        let has_failed = error.is_retryable()
            || error.maybe_committed()
            || matches!(
                error,
                Error::Storage(_)
                    | Error::Lmdb(_)
                    | Error::Server(_)
                    | Error::RetriesExhausted { .. }
                    | Error::WriterBusy { .. }
            );
        let message = of_command(&error);
        if has_failed { Self::Store(message) } else { Self::Message(message) }
    }
}

/// The text of an error. A remedy that is a method of the library is replaced by one of the
/// command.
fn of_command(error: &keyloom::Error) -> String {
    use keyloom::{Error, LmdbError, StorageError};
    match error {
        Error::Storage(StorageError::MissingStore { path }) => format!(
            "there is no store in {}; check the address, or make a store with --create of copy or import",
            path.display()
        ),
        Error::Storage(StorageError::MissingDirectory { path }) => {
            format!("there is no directory {}; check the address", path.display())
        }
        Error::Lmdb(LmdbError::LockFileNotWritable { path, source }) => format!(
            "the lock file {} cannot be opened for writing: {source}; a snapshot takes a reader slot there, so make it writable, or look into a copy of the directory",
            path.display()
        ),
        other => other.to_string(),
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Message(format!("the output cannot be written: {error}")),
        }
    }
}
