//! Maps etcd's errors to errors of a transaction.

use std::error::Error as StdError;

use etcd_client::Error as EtcdError;
use tonic::Code;

use keyloom::{Error, HeldPages, ServerError, SharedError, StorageError};
use keyloom_remote::Link;

/// An error of etcd or of the connection to it, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Said(String);

/// An error of etcd that an operator must fix.
#[derive(Debug, thiserror::Error)]
#[error("{said}; {remedy}")]
struct Refused {
    said: Said,
    remedy: &'static str,
}

/// The outcome of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// There was no connection, so nothing was sent.
    NotSent,
    /// The server could not execute the request at this time, and changed nothing.
    NotNow,
    /// The login token was issued before the last change of the server's users or roles.
    StaleLogin,
    /// The member has not reached the revision yet.
    FutureRevision,
    /// The revision is compacted.
    Compacted,
    /// The quota is used up.
    Full,
    /// The server refused the login, and changed nothing.
    LoginRefused,
    /// The server refused the request permanently, and changed nothing.
    Refused(&'static str),
    /// The request may or may not have been committed.
    Unknown,
}

impl Failed {
    pub(super) fn why(error: &EtcdError) -> Self {
        match error {
            EtcdError::GRpcStatus(status) => Self::of_status(status),
            EtcdError::TransportError(error) if was_not_sent(error) => Self::NotSent,
            EtcdError::InvalidArgs(_)
            | EtcdError::InvalidUri(_)
            | EtcdError::InvalidMetadataValue(_) => Self::Refused("check the address"),
            _ => Self::Unknown,
        }
    }

    fn of_status(status: &tonic::Status) -> Self {
        if was_not_sent(status) {
            return Self::NotSent;
        }
        let message = status.message();
        let says = |text: &str| message.contains(text);
        let is_etcd = message.starts_with("etcdserver:") || message.starts_with("grpc:");
        match status.code() {
            // The server returns these errors only before it proposes the request.
            _ if says("etcdserver: no leader") || says("etcdserver: too many requests") => {
                Self::NotNow
            }
            _ if says("etcdserver: rpc not supported for learner") => Self::NotNow,
            _ if says("etcdserver: corrupt cluster") => Self::Refused(
                "the cluster has the alarm CORRUPT: members disagree, and an operator must repair it",
            ),
            Code::OutOfRange if says("future revision") => Self::FutureRevision,
            Code::OutOfRange if says("has been compacted") => Self::Compacted,
            Code::ResourceExhausted if says("database space exceeded") => Self::Full,
            Code::InvalidArgument if says("revision of auth store is old") => Self::StaleLogin,
            _ if is_etcd && (says("too large") || says("larger than max")) => Self::Refused(
                "`max_request_bytes` is more than the server takes (--max-request-bytes); set it to the same",
            ),
            _ if is_etcd && says("too many operations") => Self::Refused(
                "`max_operations` is more than the server takes (--max-txn-ops); set it to the same",
            ),
            Code::PermissionDenied => Self::Refused(
                "grant the user's role `readwrite` on the key `<name>.deleted` and on the range from `<name>/` to `<name>0`",
            ),
            Code::Unauthenticated => Self::LoginRefused,
            Code::InvalidArgument | Code::FailedPrecondition
                if is_etcd && (says("auth") || says("user name")) =>
            {
                Self::LoginRefused
            }
            Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::NotFound
            | Code::AlreadyExists
            | Code::Unimplemented
                if is_etcd =>
            {
                Self::Refused(
                    "the server refuses a request of keyloom; is it etcd 3.4.23, 3.5.7 or newer?",
                )
            }
            _ => Self::Unknown,
        }
    }

    /// Whether a read may succeed on another member, or later.
    pub(super) fn may_pass(self) -> bool {
        matches!(self, Self::NotSent | Self::NotNow | Self::StaleLogin | Self::Unknown)
    }
}

/// Whether the connection could not be opened.
fn was_not_sent(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(|error| error.is::<tonic::ConnectError>())
}

fn chain<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The message of an error, with the causes that etcd's client leaves out.
pub(super) fn said(error: &EtcdError) -> Said {
    let (mut text, source) = match error {
        EtcdError::GRpcStatus(status) => (status.message().to_owned(), status.source()),
        EtcdError::TransportError(error) => (error.to_string(), error.source()),
        other => (other.to_string(), None),
    };
    if text.is_empty()
        && let EtcdError::GRpcStatus(status) = error
    {
        text = status.code().description().to_owned();
    }
    for cause in source.into_iter().flat_map(chain).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    Said(text)
}

/// The error of a request that changes nothing.
pub(super) fn of_read(link: &Link, error: &EtcdError, revision: Option<i64>) -> Error {
    let failed = Failed::why(error);
    let said = said(error);
    match (failed, revision) {
        (Failed::Compacted, Some(revision)) => {
            Error::Server(ServerError::Compacted { revision, source: said.into() })
        }
        (Failed::Refused(remedy), _) => refused(said, remedy),
        (Failed::LoginRefused, _) => login_refused(link, said),
        _ if failed.may_pass() => link.lost(said),
        _ => Error::Backend(said.into()),
    }
}

/// The error of a commit. `is_unchanged` queries the cluster, and returns whether its revision is
/// still that from before the commit.
pub(super) fn of_commit(
    link: &Link,
    error: &EtcdError,
    is_unchanged: impl FnOnce() -> bool,
) -> Error {
    let said = said(error);
    match Failed::why(error) {
        Failed::NotSent | Failed::NotNow | Failed::StaleLogin => link.lost(said),
        // The request that uses up the quota is executed but returns this error. Later requests are
        // refused with the same error. Only the revision shows the difference.
        Failed::Full if is_unchanged() => full(link),
        Failed::Full => Error::CommitUnknown { source: full(link).into() },
        Failed::LoginRefused => login_refused(link, said),
        Failed::Refused(remedy) => refused(said, remedy),
        Failed::FutureRevision | Failed::Compacted => Error::Backend(said.into()),
        Failed::Unknown => Error::CommitUnknown { source: said.into() },
    }
}

fn full(link: &Link) -> Error {
    let why = "etcd's quota is used up: compact, defragment and disarm the alarm";
    let source = std::io::Error::other(why).into();
    Error::Storage(StorageError::DiskFull {
        path: link.place().into(),
        source,
        held: HeldPages::default(),
    })
}

fn login_refused(link: &Link, said: Said) -> Error {
    let remedy = "check whether authentication is enabled on the cluster";
    Error::Server(ServerError::LoginRefused {
        store: link.place().into(),
        source: Refused { said, remedy }.into(),
    })
}

fn refused(said: Said, remedy: &'static str) -> Error {
    let source: SharedError = Refused { said, remedy }.into();
    Error::Backend(source)
}
