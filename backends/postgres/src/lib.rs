//! The store on PostgreSQL, and on distributed engines with the same protocol.
//!
//! Use a server if programs on several machines write the data, if the data must survive the loss
//! of one machine, or if a PostgreSQL with backups exists already. Only the line that opens the
//! store changes:
//!
//! ```no_run
//! use keyloom::{Reader, Store, Writer};
//! use keyloom_postgres::Postgres;
//! let store = Postgres::open("postgres://ada@db.example.org/geo")?;
//! store.transact(|txn| txn.put(b"greeting", b"hello"))?;
//! assert_eq!(store.snapshot()?.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! | column | type | |
//! |---|---|---|
//! | `key` | `bytea`, primary key | compares as unsigned bytes, which is the order of keys |
//! | `value` | `bytea` | |
//!
//! One table (`keyloom`, or [another](PostgresOptions::table)) is one store. To create the table,
//! the user needs `CREATE` on the schema. Alternatively, an administrator runs `CREATE TABLE
//! keyloom (key bytea PRIMARY KEY, value bytea NOT NULL)` and grants `SELECT, INSERT, UPDATE,
//! DELETE` on it.
//!
//! # Supported engines
//!
//! *Tested: PostgreSQL 15*, with the whole conformance suite, kills under load, and the isolation
//! campaign. **CockroachDB** and **YugabyteDB** accept the same statements: `SELECT` by key, by `=
//! ANY` and by range with `ORDER BY … LIMIT`, `INSERT … ON CONFLICT DO UPDATE`, `DELETE`, `BEGIN …
//! SERIALIZABLE`. On YugabyteDB the key column is declared `ASC`, so that keys are sharded by range
//! and not by hash; CockroachDB always shards by range. Therefore keyloom should work on both
//! engines, but this *was not tested*: first run `KEYLOOM_POSTGRES=<address> cargo test -p
//! keyloom-on-servers --features postgres --test postgres` against your engine.
//!
//! # Transactions
//!
//! A transaction is `SERIALIZABLE`. If the engine cannot serialize it (SQLSTATE 40001) or aborts it
//! to resolve a deadlock (40P01), the error is [`Error::Conflict`], and
//! [`transact`](Store::transact) retries the transaction. If the connection breaks before the
//! commit, the error is [`ServerError::ConnectionLost`], which is retried too. If the connection
//! breaks *during* the commit of writes, the error is [`Error::CommitUnknown`]: retry only if the
//! same transaction first checks whether its writes exist. The server cancels a statement that
//! takes longer than seven eighths of the [`timeout`](PostgresOptions::timeout)
//! ([`ServerError::StatementCancelled`], not retried).
//!
//! **Keep transactions short.** PostgreSQL tracks a committed transaction individually as long as
//! older transactions are open, for up to about ten times `max_connections` transactions. Beyond
//! that number it summarizes the oldest ones, which loses conflicts: a transaction that stays open
//! while some thousand others commit may commit although it should be refused.
//! `tests/on_servers/tests/postgres/forgotten_conflict.sh` shows this on PostgreSQL 15.18 without
//! keyloom; with `max_connections = 1000` the same transaction is refused. The isolation campaign
//! found the problem in 2 of 31 runs.
//!
//! A snapshot is a `REPEATABLE READ, READ ONLY` transaction: it shows everything committed before
//! it was opened and nothing after, and (on a primary) never conflicts. It shows commits in commit
//! order, which in rare cases differs from the serial order (Fekete, O'Neil and O'Neil, *A
//! read-only transaction anomaly under snapshot isolation*, 2004). To exclude this anomaly, read in
//! [`transact`](Store::transact). A `SERIALIZABLE` snapshot would not help: the reads of such a
//! transaction are valid only after its commit, and a snapshot has no commit that could be refused.
//!
//! # Cost
//!
//! | operation | round trips |
//! |---|---|
//! | snapshot | 1 |
//! | begin | 0: the transaction begins with its first statement, in the same message |
//! | get, get_many, first, last, count, page | 1 |
//! | count, first, last, page, range in a transaction with writes of its own | as for `range` |
//! | range_many in a transaction with deletes of its own | 1 more, for all ranges that the deletes shorten |
//! | range_many | 1 for each 1,024 ranges, and for each 16,384 entries or some 4 MiB |
//! | range | 1 per page; pages grow from 1,024 entries (in a transaction from 128) to 16,384, or some 4 MiB |
//! | put, delete, delete_range | 0; 1 when more than 1 MiB or 10,000 writes are buffered, which are then sent |
//! | commit of a transaction with reads | 1, including its writes |
//! | commit of a transaction without reads | 2: the transaction must have begun before it writes |
//! | the second and each further deleted range of a transaction | 1 |
//!
//! A thread that waits for an answer drives its connection itself. With one thread for all
//! connections, a get took 3.7 context switches instead of 1.0, and 41 µs of CPU instead of 28 µs.
//!
//! # Waits for changes
//!
//! While a thread or task of the process [waits for a change](Store::wait_for_change), one thread
//! of the store `LISTEN`s on one additional connection, and holds an advisory lock in shared mode.
//! Every store finds by this lock whether a session listens: at most ten commits per second are
//! followed by a statement that checks it. If there is a listener, each commit is followed by a
//! `NOTIFY` with the hashes of its keys, whose answer the commit does not wait for. A `NOTIFY`
//! within the transaction would make commits wait for each other. Notifications are missing behind
//! a proxy, on a replica, and for the commits of programs other than keyloom. So a wait also polls:
//! once a second while the store listens, otherwise after pauses of at most 50 ms.
//!
//! # Limits
//!
//! Values of up to 64 MiB. Each open snapshot or transaction holds one connection
//! ([`max_connections`](PostgresOptions::max_connections)); if all are in use, a caller waits, and
//! then fails with [`ServerError::ConnectionsBusy`]. Like any open transaction, a long-lived
//! snapshot prevents `VACUUM` from removing dead rows.
//!
//! `add`, `min` and `max` read and write on this store, so transactions on one hot counter
//! conflict: split the counter into several keys.
//!
//! A thread that takes a snapshot while it has a transaction open needs two connections. If as many
//! threads as there are connections do this concurrently, all of them wait until
//! [`patience`](PostgresOptions::patience) is over.
//!
//! # Settings of the session
//!
//! On PostgreSQL each connection runs with `enable_seqscan`, `enable_bitmapscan` and `jit` off, so
//! that every statement uses the one index. PostgreSQL records the reads of a serializable
//! transaction as index pages. After many pages (`max_pred_locks_per_relation`, by default 32) it
//! records the whole table, and the transaction conflicts with every writer. For transactions that
//! read a lot *and* write, raise `max_pred_locks_per_transaction`, `max_pred_locks_per_relation`
//! and `max_pred_locks_per_page`. Serializability holds among serializable transactions: changes by
//! other programs at a weaker isolation level are not detected.
//!
//! Statements are prepared when a connection opens, and settings belong to the session. So a pooler
//! (PgBouncer) works in *session* mode, but not in *transaction* mode.

mod address;
mod connect;
mod connection;
mod error;
mod open;
mod options;
mod pool;
mod session;
mod socket;
mod sql;
#[cfg(feature = "tls")]
mod tls;
mod watch;

use std::sync::Arc;
use std::time::Duration;

pub use options::PostgresOptions;
pub use sql::Engine;

/// The parts of an address, without user and password. Opens no connection.
// Hidden: only for the fuzz targets of this repository.
#[cfg(feature = "_fuzz")]
#[doc(hidden)]
pub fn shown_address(address: &str) -> Result<String> {
    let address = address::Address::parse(address)?;
    Ok(format!("{address}, table {}", address.table(None)?))
}

use connect::Connector;
use keyloom::backend::ChangeListener;
use keyloom::{AnyStore, Error, Limits, Result, RetryPolicy, ServerError, Store};
use keyloom_remote::{Link, RemoteSnapshot, RemoteTransaction};
use pool::Pool;
use session::{Kind, PostgresSession};
use sql::Sql;
use watch::Notices;

/// The greatest length of a value. A server and a client hold several copies of each message, so
/// this is far below the 1 GB that PostgreSQL's format allows.
const MAX_VALUE_BYTES: usize = 64 << 20;

/// The longest pause between two polls of a wait for a change, without notifications.
// A poll is two round trips. Longer pauses cost fewer polls, and add to the latency of a change.
const POLL: Duration = Duration::from_millis(50);

/// A store on PostgreSQL. Clones are handles of the same pool of connections; see the
/// [module](self).
#[derive(Clone, Debug)]
pub struct Postgres {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    link: Link,
    connector: Connector,
    pool: Pool,
    sql: Sql,
    engine: Engine,
    notices: Notices,
    retry_policy: RetryPolicy,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // In a forked child, the connections are those of the parent.
        if self.link.refuse_fork().is_ok() {
            self.pool.close_idle();
        }
    }
}

impl Postgres {
    /// Opens the store at `address`, such as `postgres://user:password@host:port/database`, with
    /// the default options. A missing table is created.
    ///
    /// # Errors
    /// The errors of [`PostgresOptions::open`].
    pub fn open(address: &str) -> Result<Self> {
        Self::options().open(address)
    }

    /// Opens the store at the address for [`AnyStore::open_with`].
    ///
    /// ```no_run
    /// use keyloom::AnyStore;
    /// use keyloom_postgres::Postgres;
    /// let address = "postgres://ada@db.example.org/geo";
    /// let store = AnyStore::open_with(address, &[("postgres", Postgres::open_address)])?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`PostgresOptions::open`].
    pub fn open_address(address: &str) -> Result<AnyStore> {
        let store = Self::open(address)?;
        Ok(AnyStore::other(store.place(), store.clone()))
    }

    /// The options of a store.
    pub fn options() -> PostgresOptions {
        PostgresOptions::default()
    }

    /// The engine of the server.
    pub fn engine(&self) -> Engine {
        self.shared.engine
    }

    /// The address of the store: `postgres://host:port/database, table name`, without user and
    /// password.
    pub fn place(&self) -> &str {
        self.shared.link.place()
    }

    fn session(&self, kind: Kind) -> Result<PostgresSession> {
        Ok(PostgresSession::new(Arc::clone(&self.shared), self.shared.connection()?, kind))
    }

    fn look(&self) -> Result<PostgresSession> {
        let session = self.session(Kind::Snapshot)?;
        session.look()?;
        Ok(session)
    }
}

impl Store for Postgres {
    type Snapshot<'s> = RemoteSnapshot<PostgresSession>;
    type Transaction<'s> = RemoteTransaction<PostgresSession>;

    fn snapshot(&self) -> Result<Self::Snapshot<'_>> {
        let session = match self.look() {
            // The server was restarted while the connection was in the pool: try another
            // connection.
            Err(Error::Server(ServerError::ConnectionLost { .. })) => self.look()?,
            looked => looked?,
        };
        Ok(RemoteSnapshot::new(session))
    }

    fn begin(&self) -> Result<Self::Transaction<'_>> {
        Ok(RemoteTransaction::new(self.session(Kind::Transaction)?, self.limits()))
    }

    fn limits(&self) -> Limits {
        Limits::default().with_max_value_bytes(MAX_VALUE_BYTES)
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.shared.retry_policy
    }

    fn round_trips(&self) -> Option<u64> {
        Some(self.shared.link.round_trips())
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        let listener = self.shared.notices.signal.listen(key).polling(POLL);
        Notices::listen(&self.shared);
        listener
    }
}
