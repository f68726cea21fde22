//! The options of a store on PostgreSQL.

#[cfg(doc)]
use keyloom::ServerError;
use std::time::Duration;

use keyloom::RetryPolicy;

/// Options of a [`Postgres`](super::Postgres) store.
///
/// ```no_run
/// use keyloom_postgres::Postgres;
/// let store = Postgres::options()
///     .table("cities")
///     .max_connections(32)
///     .open("postgres://ada@db.example.org/geo")?;
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    pub(super) table: Option<String>,
    pub(super) create: bool,
    pub(super) max_connections: usize,
    pub(super) patience: Duration,
    pub(super) timeout: Duration,
    pub(super) retry_policy: RetryPolicy,
    #[cfg(feature = "tls")]
    pub(super) ca_certificate: Option<Vec<u8>>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            table: None,
            create: true,
            max_connections: 16,
            patience: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            retry_policy: RetryPolicy::remote(),
            #[cfg(feature = "tls")]
            ca_certificate: None,
        }
    }
}

impl PostgresOptions {
    /// The table of the store: 1 to 63 of `a-z`, `0-9` and `_`, of which the first is not a digit.
    /// A table in the address (`?table=…`) takes precedence. Default: `keyloom`. The user's
    /// `search_path` determines the schema.
    #[must_use]
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = Some(table.into());
        self
    }

    /// Whether to create a missing table. Default: `true`.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// The largest number of connections for snapshots and transactions. Each open snapshot and
    /// each open transaction holds one connection. The thread that listens for changes opens one
    /// more. Default: 16.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// How long to wait for a connection while all are in use. After that, the error is
    /// [`ServerError::ConnectionsBusy`]. Default: 5 seconds.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How long the server may take to answer one message, or to accept a connection. Default: 30
    /// seconds. The server's `statement_timeout` is set to seven eighths of this time. The server
    /// cancels a longer statement with [`ServerError::StatementCancelled`], which is not retried.
    /// If the server does not answer at all, the error is [`ServerError::ConnectionLost`], or for a
    /// commit [`Error::CommitUnknown`](keyloom::Error::CommitUnknown).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many times [`transact`](keyloom::Store::transact) retries a transaction, and after which
    /// pauses. Default: [`RetryPolicy::remote`].
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// Uses TLS, and trusts only servers whose certificates are signed by this authority (PEM).
    /// Without this option, `sslmode=require` in the address uses TLS and trusts the authorities of
    /// the system. Certificates and host names are always verified.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn ca_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_certificate = Some(pem.into());
        self
    }
}
