//! The store on PostgreSQL, and on the distributed engines that speak its protocol.
//!
//! Data need a server if programs on several machines write them, if they must survive the loss of
//! one machine, or if a PostgreSQL with backups exists already. One line of the program changes,
//! and the same patterns work:
//!
//! ```no_run
//! use keyloom::{Postgres, Reader, Store, Writer};
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
//! One table (`keyloom`, or [another](PostgresOptions::table)) is one store. To create it the user
//! needs `CREATE` on the schema. Alternatively, an administrator runs `CREATE TABLE keyloom (key
//! bytea PRIMARY KEY, value bytea NOT NULL)` and grants `SELECT, INSERT, UPDATE, DELETE` on it.
//!
//! # Which engines
//!
//! *Tested: PostgreSQL 15*, with the whole conformance suite, kills under load, and the isolation
//! campaign. The statements are those that **CockroachDB** and **YugabyteDB** also take: `SELECT`
//! by key, by `= ANY` and by range with `ORDER BY … LIMIT`, `INSERT … ON CONFLICT DO UPDATE`,
//! `DELETE`, `BEGIN … SERIALIZABLE`. On YugabyteDB the key column is declared `ASC`, so that keys
//! are sharded by range and not by hash; CockroachDB does so anyway. That keyloom works there
//! follows from this, but *was not run*: run `KEYLOOM_POSTGRES=<address> cargo test -p
//! keyloom-on-servers --features postgres --test postgres` against yours first.
//!
//! # Transactions
//!
//! A transaction is `SERIALIZABLE`. When the engine cannot keep it so (SQLSTATE 40001) or ends a
//! deadlock (40P01), that is an [`Error::Conflict`], and [`transact`](Store::transact) runs it
//! again. A connection that breaks before the commit is an [`Error::ConnectionLost`], which is run
//! again too. One that breaks *during* the commit is an [`Error::CommitUnknown`]: run it again only
//! if it looks first, in the same transaction, whether it has happened. A statement that takes
//! longer than [`timeout`](PostgresOptions::timeout) is cancelled by the server, for good
//! ([`Error::StatementCancelled`]).
//!
//! **Keep transactions short.** PostgreSQL remembers committed transactions one by one as long as
//! others that began before are open, up to about ten times `max_connections` of them, and older
//! ones in a summary, which loses conflicts: a transaction that stays open while some thousand
//! others commit can commit although it should be refused.
//! `tests/on_servers/tests/postgres/forgotten_conflict.sh` shows it on PostgreSQL 15.18 without
//! keyloom; with `max_connections = 1000` the same transaction is refused. The isolation campaign
//! met it in 2 of 31 runs.
//!
//! A snapshot is a `REPEATABLE READ, READ ONLY` transaction: everything committed before the moment
//! it was opened and nothing after, and (on a PostgreSQL that takes writes) never a conflict. It
//! shows commits in the order in which they happened, which in rare cases is not yet an order in
//! which they could have run one after the other (Fekete, O'Neil and O'Neil, *A read-only
//! transaction anomaly under snapshot isolation*, 2004). A report that must exclude that reads in
//! [`transact`](Store::transact). A `SERIALIZABLE` snapshot would not help: what such a transaction
//! reads is valid only once it has committed, and a snapshot has no commit that could refuse it.
//!
//! # Cost
//!
//! | operation | waits for the server |
//! |---|---|
//! | snapshot | 1 |
//! | begin | 0: the transaction begins with its first statement, in the same message |
//! | get, get_many, first, last, count, page | 1 |
//! | count, first, last, page, range where the transaction has itself written | as the range |
//! | range_many where the transaction has itself deleted entries | 1 more, for all ranges that are cut by that |
//! | range_many | 1 for each 1,024 ranges, and for each 16,384 entries or some 4 MiB |
//! | range | 1 per page; pages grow from 1,024 entries (in a transaction from 128) to 16,384, or some 4 MiB |
//! | put, delete, delete_range | 0; more than 1 MiB or 10,000 of them that wait are sent, for 1 |
//! | commit of a transaction that read | 1, its writes included |
//! | commit of a transaction that only wrote | 2: it must have begun before it writes |
//! | a second deleted range in one transaction, and each further one | 1 |
//!
//! # Limits
//!
//! Values up to 64 MiB. Each open snapshot or transaction holds one connection
//! ([`max_connections`](PostgresOptions::max_connections)); more wait, and fail with
//! [`Error::ConnectionsBusy`]. A snapshot that stays open for long keeps the server from cleaning
//! up behind updates (`VACUUM`), as any open transaction does.
//!
//! `add`, `min` and `max` read and write here, so transactions on one hot counter conflict: spread
//! it over several keys.
//!
//! A thread that has a transaction open and takes a snapshot needs two connections. If as many
//! threads as there are connections do that at once, all of them wait until the time-out.
//!
//! # How it is run
//!
//! On PostgreSQL each connection runs with `enable_seqscan`, `enable_bitmapscan` and `jit` off:
//! every statement is served by the one index. PostgreSQL records the reads of a serializable
//! transaction as index pages. After many pages (`max_pred_locks_per_relation`, by default 32) it
//! records the whole table, and the transaction conflicts with every writer.
//! For transactions that read much *and* write, raise `max_pred_locks_per_transaction`,
//! `max_pred_locks_per_relation` and `max_pred_locks_per_page`. Serializability holds among
//! serializable transactions: changes by other programs at a weaker isolation level are not
//! detected.
//!
//! Statements are prepared when a connection opens, and settings belong to the session, so a pooler
//! in *transaction* mode (PgBouncer) cannot stand in between; in session mode it can.

mod address;
mod error;
mod open;
mod options;
mod session;
mod sql;
#[cfg(feature = "tls")]
mod tls;

use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Pool};

pub use options::PostgresOptions;
pub use sql::Engine;

/// What an address says, without user and password; connects to nothing.
#[cfg(feature = "_fuzz")]
#[doc(hidden)]
pub fn shown_address(address: &str) -> crate::Result<String> {
    let address = address::Address::parse(address)?;
    Ok(format!("{address}, table {}", address.table(None)?))
}

use crate::remote::{Link, Outcome, RemoteEntries, RemoteSnapshot, RemoteTransaction};
use crate::{Error, Limits, Result, RetryPolicy, Store};
use session::{Kind, PostgresSession};
use sql::Sql;

/// The longest value: a server and a client hold several copies of what goes over the wire, so this
/// stays far below the 1 GB that PostgreSQL's format allows.
const MAX_VALUE_BYTES: usize = 64 << 20;

/// A view of a [`Postgres`] store that never changes.
pub type PostgresSnapshot = RemoteSnapshot<PostgresSession>;

/// A transaction of a [`Postgres`] store.
pub type PostgresTransaction = RemoteTransaction<PostgresSession>;

/// The entries of a range of a [`Postgres`] store.
pub type PostgresEntries<'r> = RemoteEntries<'r, PostgresSession>;

/// A store on PostgreSQL. Clones are handles of the same pool of connections; see the
/// [module](self).
#[derive(Clone, Debug)]
pub struct Postgres {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pool: Pool,
    sql: Arc<Sql>,
    engine: Engine,
    max_connections: usize,
    patience: Duration,
    retry_policy: RetryPolicy,
    // Last, so that it drives the connections until they are gone.
    link: Link,
}

impl Postgres {
    /// Opens the store at `address`, such as `postgres://user:password@host:port/database`, with
    /// the default options. Its table is made if it is not there.
    ///
    /// # Errors
    /// As [`PostgresOptions::open`].
    pub fn open(address: &str) -> Result<Self> {
        Self::options().open(address)
    }

    /// Options for a store.
    pub fn options() -> PostgresOptions {
        PostgresOptions::default()
    }

    /// Which engine answered.
    pub fn engine(&self) -> Engine {
        self.shared.engine
    }

    /// Where the store is: `postgres://host:port/database, table name`, without user and password.
    pub fn place(&self) -> &str {
        self.shared.link.place()
    }

    fn connection(&self) -> Result<Object> {
        let shared = &self.shared;
        let started = Instant::now();
        // The pool's own time-out ends first.
        let timeout = shared.link.timeout() + shared.patience;
        match shared.link.wait_uncounted(timeout, shared.pool.get()) {
            Outcome::Answered(Ok(client)) => Ok(client),
            Outcome::Answered(Err(error)) => {
                let waited_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                Err(error::of_pool(error, &shared.link, shared.max_connections, waited_ms))
            }
            Outcome::Refused(error) => Err(error),
            Outcome::TimedOut => Err(shared.link.silent()),
        }
    }

    fn session(&self, kind: Kind) -> Result<PostgresSession> {
        Ok(PostgresSession::new(Arc::clone(&self.shared), self.connection()?, kind))
    }

    fn look(&self) -> Result<PostgresSession> {
        let session = self.session(Kind::Snapshot)?;
        session.look()?;
        Ok(session)
    }
}

impl Store for Postgres {
    type Snapshot<'s> = PostgresSnapshot;
    type Transaction<'s> = PostgresTransaction;

    fn snapshot(&self) -> Result<PostgresSnapshot> {
        let session = match self.look() {
            // A connection that lay in the pool while its server was started again: try another
            // one.
            Err(Error::ConnectionLost { .. }) => self.look()?,
            looked => looked?,
        };
        Ok(PostgresSnapshot::new(session))
    }

    fn begin(&self) -> Result<PostgresTransaction> {
        Ok(PostgresTransaction::new(self.session(Kind::Transaction)?, self.limits()))
    }

    fn limits(&self) -> Limits {
        Limits { max_value_bytes: MAX_VALUE_BYTES, ..Limits::default() }
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.shared.retry_policy
    }

    fn round_trips(&self) -> Option<u64> {
        Some(self.shared.link.round_trips())
    }
}
