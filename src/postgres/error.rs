//! What the server's errors mean to a program.

use std::error::Error as StdError;

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tokio_postgres::Error as PgError;
use tokio_postgres::error::{DbError, SqlState};

use crate::Error;
use crate::remote::Link;

/// The server's own words, all of them: the client's error alone says "db error".
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
struct Said {
    words: String,
    source: PgError,
}

fn said(error: PgError) -> Said {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        words = format!("{words}: {source}");
        next = source.source();
    }
    if let Some(hint) = error.as_db_error().and_then(DbError::hint) {
        words = format!("{words} ({hint})");
    }
    Said { words, source: error }
}

/// An error of a statement that was not the commit: nothing is decided yet.
pub(super) fn of_statement(error: PgError, link: &Link) -> Error {
    let Some(told) = error.as_db_error() else {
        return if is_lost(&error) {
            link.lost(said(error))
        } else {
            Error::Backend(said(error).into())
        };
    };
    let place = || link.place().into();
    match told.code() {
        &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => {
            Error::Conflict { what: format!("what it read or wrote ({})", told.message()).into() }
        }
        &SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly,
        &SqlState::DISK_FULL => Error::DiskFull {
            path: place(),
            source: std::io::Error::new(std::io::ErrorKind::StorageFull, said(error)),
        },
        &SqlState::UNDEFINED_TABLE => Error::MissingStore { path: place() },
        &SqlState::UNDEFINED_COLUMN | &SqlState::INVALID_COLUMN_REFERENCE => {
            Error::NotAStore { path: place(), why: said(error).words }
        }
        code if is_going_away(code) => link.lost(said(error)),
        _ => Error::Backend(said(error).into()),
    }
}

/// An error of a commit.
pub(super) fn of_commit(error: PgError, link: &Link) -> Error {
    let is_unknown = match error.as_db_error() {
        Some(told) => {
            told.code() == &SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN || is_going_away(told.code())
        }
        None => is_lost(&error),
    };
    if is_unknown {
        return Error::CommitUnknown { source: said(error).into() };
    }
    of_statement(error, link)
}

/// An error of taking a connection out of the pool.
pub(super) fn of_pool(
    error: PoolError,
    link: &Link,
    max_connections: usize,
    waited_ms: u64,
) -> Error {
    match error {
        PoolError::Timeout(TimeoutType::Wait) => {
            Error::ConnectionsBusy { max_connections, waited_ms }
        }
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            of_statement(error, link)
        }
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => link.silent(),
        other => Error::Backend(other.into()),
    }
}

/// The connection is gone, or could not be made: as opposed to a mistake in what was sent.
fn is_lost(error: &PgError) -> bool {
    if error.is_closed() {
        return true;
    }
    let mut next = error.source();
    while let Some(source) = next {
        if source.is::<std::io::Error>() {
            return true;
        }
        next = source.source();
    }
    false
}

/// The server ends the connection, or does not take one now.
fn is_going_away(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
    ]
    .contains(code)
        || code.code().starts_with("08")
}
