//! Maps the server's errors to keyloom's errors.

use std::error::Error as StdError;

use tokio_postgres::Error as PgError;
use tokio_postgres::error::{DbError, Severity, SqlState};

use super::sql::statement_timeout;
use keyloom::{Error, HeldPages, ServerError, StorageError};
use keyloom_remote::Link;

/// The complete message of the server: the client's error alone displays as "db error".
#[derive(Debug, thiserror::Error)]
#[error("{words}")]
struct Said {
    words: String,
    source: PgError,
}

impl Said {
    /// Whether the login failed on the client's side: the server requires a password and the client
    /// has none, or the server did not prove its knowledge of the password.
    fn is_about_login(&self) -> bool {
        ["password missing", "authentication"].iter().any(|words| self.words.contains(words))
    }
}

/// An error that an administrator of the server can fix.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {said}; {remedy}")]
struct Refused {
    place: Box<str>,
    said: Said,
    remedy: &'static str,
}

fn refused(error: PgError, link: &Link, remedy: &'static str) -> Error {
    let (place, said) = (link.place().into(), said(error));
    Error::Backend(Refused { place, said, remedy }.into())
}

fn said(error: PgError) -> Said {
    let mut words = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        words = format!("{words}: {source}");
        next = source.source();
    }
    Said { words, source: error }
}

/// Converts an error of a statement before the commit: the outcome is not decided yet.
pub(super) fn of_statement(error: PgError, link: &Link) -> Error {
    let place = || link.place().into();
    let Some(answer) = error.as_db_error() else {
        let is_lost = is_lost(&error);
        let said = said(error);
        return match () {
            () if is_lost => link.lost(said),
            () if said.is_about_login() => login_refused(said, link),
            () => Error::Backend(said.into()),
        };
    };
    match answer.code() {
        &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => {
            Error::Conflict {
                what: format!("a key that it read or wrote ({})", answer.message()).into(),
            }
        }
        &SqlState::READ_ONLY_SQL_TRANSACTION => Error::ReadOnly,
        &SqlState::FEATURE_NOT_SUPPORTED if answer.message().contains("hot standby") => {
            Error::ReadOnly
        }
        &SqlState::DISK_FULL => Error::Storage(StorageError::DiskFull {
            path: place(),
            source: std::io::Error::new(std::io::ErrorKind::StorageFull, said(error)).into(),
            held: HeldPages::default(),
        }),
        &SqlState::UNDEFINED_TABLE => Error::Storage(StorageError::MissingStore { path: place() }),
        &SqlState::UNDEFINED_COLUMN | &SqlState::INVALID_COLUMN_REFERENCE => {
            Error::Storage(StorageError::NotAStore { path: place(), why: said(error).words })
        }
        &SqlState::INSUFFICIENT_PRIVILEGE => refused(
            error,
            link,
            "grant SELECT, INSERT, UPDATE and DELETE on the table, and CREATE on its schema if it must be created",
        ),
        // An unknown database.
        &SqlState::INVALID_CATALOG_NAME => {
            refused(error, link, "create the database, or name another one in the address")
        }
        &SqlState::QUERY_CANCELED => Error::Server(ServerError::StatementCancelled {
            store: link.place().into(),
            limit_ms: u64::try_from(statement_timeout(link.timeout()).as_millis())
                .unwrap_or(u64::MAX),
            source: said(error).into(),
        }),
        // An unknown user, a wrong password, a host that the server does not admit.
        code if code.code().starts_with("28") => login_refused(said(error), link),
        code if is_going_away(code) => link.lost(said(error)),
        _ => Error::Backend(said(error).into()),
    }
}

fn login_refused(said: Said, link: &Link) -> Error {
    Error::Server(ServerError::LoginRefused { store: link.place().into(), source: said.into() })
}

/// Converts an error of a commit. The outcome is certain only if the server reports a rollback
/// explicitly.
pub(super) fn of_commit(error: PgError, link: &Link) -> Error {
    match error.as_db_error().is_some_and(is_refusal) {
        true => of_statement(error, link),
        false => Error::CommitUnknown { source: said(error).into() },
    }
}

/// Whether the error means that the server has rolled the transaction back and the session
/// continues: an integrity violation, an invalid transaction state, a conflict, a lack of
/// resources, or a cancellation. Any other error may be reported after the commit was decided.
fn is_refusal(answer: &DbError) -> bool {
    let code = answer.code();
    !is_fatal(answer)
        && *code != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
        && (["23", "25", "40", "53"].iter().any(|class| code.code().starts_with(class))
            || *code == SqlState::QUERY_CANCELED)
}

/// Whether the server ends the connection with this error.
pub(super) fn is_fatal(answer: &DbError) -> bool {
    !matches!(answer.parsed_severity(), Some(Severity::Error))
}

/// Whether the connection broke or could not be opened. Otherwise the request was invalid.
fn is_lost(error: &PgError) -> bool {
    if error.is_closed() {
        return true;
    }
    // An untrusted certificate is reported as an I/O error too, but the error is permanent.
    if error.to_string().contains("TLS") {
        return false;
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

/// Whether the server ends the connection, or accepts no connections at present.
fn is_going_away(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::TOO_MANY_CONNECTIONS,
    ]
    .contains(code)
        // A protocol violation is permanent.
        || (code.code().starts_with("08") && *code != SqlState::PROTOCOL_VIOLATION)
}
