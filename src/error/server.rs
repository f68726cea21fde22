//! The part of the error type that stores on servers need.

use super::SharedError;

/// Errors of a server or a cluster that refuses the work or does not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The server has compacted the revision that this snapshot or transaction reads. Read long
    /// ranges in [pages](crate::Reader::page), each from a new snapshot, and divide long writes into
    /// several transactions; or let the server keep its history longer.
    #[error(
        "revision {revision} has been compacted; read page by page from new snapshots, or let the server keep its history longer (etcd: --auto-compaction-retention)"
    )]
    Compacted {
        /// The revision that was read.
        revision: i64,
        /// The error of the server.
        source: SharedError,
    },
    /// Every connection of the pool is in use: each open snapshot and each open transaction holds
    /// one. Drop snapshots and transactions earlier, or open the store with more connections.
    #[error(
        "all {max_connections} connections were in use for {waited_ms} ms; drop snapshots earlier or open the store with more connections"
    )]
    ConnectionsBusy {
        /// The size of the pool.
        max_connections: usize,
        /// The length of the wait.
        waited_ms: u64,
    },
    /// The connection to the server broke, or the server does not answer, and nothing was
    /// committed. Run the transaction again, as [`Store::transact`](crate::Store::transact) does:
    /// its retries bridge the restart of a server or the election of a leader.
    #[error("the connection to {store} was lost: {source}; nothing was committed, run it again")]
    ConnectionLost {
        /// The server, without a password.
        store: Box<str>,
        /// The error of the connection.
        source: SharedError,
    },
    /// The server refused the login. Check the user, the password, and the access rules of the
    /// server (`pg_hba.conf` on PostgreSQL).
    #[error(
        "{store} refused the login: {source}; check the user, the password, and the access rules of the server"
    )]
    LoginRefused {
        /// The server, without a password.
        store: Box<str>,
        /// The error of the server.
        source: SharedError,
    },
    /// The server cancelled a statement: it took longer than the options of the store allow, or an
    /// operator ended it. Nothing of the transaction was kept. Not retryable, because the same work
    /// would take as long again.
    #[error(
        "{store} cancelled a statement: {source}; nothing was committed; do less in one transaction, find the one that holds a lock, or raise `timeout` (a statement may take {limit_ms} ms)"
    )]
    StatementCancelled {
        /// The server, without a password.
        store: Box<str>,
        /// The time-out of a statement.
        limit_ms: u64,
        /// The error of the server.
        source: SharedError,
    },
    /// The server or cluster did not answer when the store was opened. Check that the server runs,
    /// and that the address or the cluster file names it.
    #[error("{store} does not answer: {source}; check that it runs and that the address names it")]
    Unreachable {
        /// The server, without a password.
        store: Box<str>,
        /// The time-out, or the error of the system.
        source: SharedError,
    },
    /// The cluster cannot run the transaction now: the cluster is recovering, lags behind, or
    /// throttles the load. Nothing was committed; [`Store::transact`](crate::Store::transact)
    /// retries the transaction.
    #[error(
        "{store} cannot run the transaction now: {source}; nothing was committed, run it again"
    )]
    Busy {
        /// The cluster.
        store: Box<str>,
        /// The error of the cluster.
        source: SharedError,
    },
}

impl ServerError {
    pub(super) fn calls_for_another_run(&self) -> bool {
        matches!(self, Self::ConnectionLost { .. } | Self::Busy { .. })
    }
}
