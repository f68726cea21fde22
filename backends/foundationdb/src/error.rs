//! Maps FoundationDB's errors to keyloom's errors.

use std::time::Duration;

use foundationdb::FdbError;

use super::address::ClusterFile;
use keyloom::{Error, Limits, ServerError};
use keyloom_remote::Link;

/// Error codes with a mapping of their own. The client classifies all other codes.
mod code {
    pub(super) const TRANSACTION_TOO_OLD: i32 = 1007;
    pub(super) const NOT_COMMITTED: i32 = 1020;
    pub(super) const TRANSACTION_TIMED_OUT: i32 = 1031;
    pub(super) const ACCESSED_UNREADABLE: i32 = 1036;
    pub(super) const NETWORK_NOT_SETUP: i32 = 2008;
    pub(super) const TRANSACTION_TOO_LARGE: i32 = 2101;
    pub(super) const CONNECTION_STRING_INVALID: i32 = 2104;
    pub(super) const API_VERSION_UNSET: i32 = 2200;
}

/// The client's message and its code.
#[derive(Debug, thiserror::Error)]
#[error("{error} ({})", error.code())]
struct Said {
    error: FdbError,
}

/// The error of a read in the range into which a versionstamped key may fall.
#[derive(Debug, thiserror::Error)]
#[error(
    "this transaction has written a versionstamped key, so it cannot read the range into which that key may fall: {0}; read first, or in another transaction"
)]
struct Unreadable(Said);

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Read,
    Commit,
}

/// Converts an error of a read or a commit, in a transaction of this age.
pub(super) fn of(error: FdbError, asked: Asked, age: Duration, link: &Link) -> Error {
    let said = Said { error };
    match (error.code(), asked) {
        (code::NOT_COMMITTED, _) => Error::Conflict { what: "a key that it read".into() },
        (code::TRANSACTION_TOO_OLD, _) if has_aged(age) => {
            let limit_ms = Limits::foundationdb().max_age_ms.unwrap_or_default();
            Error::TooOld { age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX), limit_ms }
        }
        (code::TRANSACTION_TOO_LARGE, _) => {
            let limit = Limits::foundationdb().max_transaction_bytes.unwrap_or_default();
            // Reads count too, but the client does not report the size.
            let unit = "bytes or more, reads included";
            Error::TransactionTooLarge { unit, actual: limit + 1, limit }
        }
        (code::ACCESSED_UNREADABLE, _) => Error::Backend(Unreadable(said).into()),
        (code::TRANSACTION_TIMED_OUT, Asked::Commit) => {
            Error::CommitUnknown { source: said.into() }
        }
        (code::TRANSACTION_TIMED_OUT, Asked::Read) => link.lost(said),
        (_, Asked::Commit) if error.is_maybe_committed() => {
            Error::CommitUnknown { source: said.into() }
        }
        _ if error.is_retryable() => {
            Error::Server(ServerError::Busy { store: link.place().into(), source: said.into() })
        }
        _ => Error::Backend(said.into()),
    }
}

/// Whether a transaction is too old because it took too long. Otherwise the version of the cluster
/// jumped ahead, as in a recovery, and a retry can succeed.
fn has_aged(age: Duration) -> bool {
    // The cluster ends a transaction after 5 s. A lower threshold would refuse work that can
    // succeed; a higher one would retry work that takes too long each time.
    const MOST_OF_THE_LIMIT: Duration = Duration::from_millis(4_500);
    age >= MOST_OF_THE_LIMIT
}

/// Converts an error of an option, or of a new transaction.
pub(super) fn of_setup(error: FdbError) -> Error {
    Error::Backend(Said { error }.into())
}

/// Converts an error of opening a database, which may concern its cluster file.
pub(super) fn of_opening(error: FdbError, file: &ClusterFile) -> Error {
    match error.code() {
        code::CONNECTION_STRING_INVALID => file.refused(
            "it is not a cluster file: its one line must be like description:id@10.0.0.1:4500,10.0.0.2:4500",
        ),
        code::API_VERSION_UNSET | code::NETWORK_NOT_SETUP => Error::InvalidArgument {
            what: "the option `network_runs`",
            value: "true".into(),
            why: "the program has not started FoundationDB's network; start it, or leave it out",
        },
        _ => of_setup(error),
    }
}

/// Converts an error of the first answer of a database as [`of_opening`] does: the client reads the
/// cluster file only then, in its own thread.
pub(super) fn about_file(error: Error, file: &ClusterFile) -> Error {
    match &error {
        Error::Backend(source) => match source.downcast_ref() {
            Some(Said { error }) => of_opening(*error, file),
            None => error,
        },
        _ => error,
    }
}
