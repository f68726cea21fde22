//! Opening a store: the table, the engine, the pool.

#[cfg(doc)]
use keyloom::ServerError;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error as PgError};

use super::address::Address;
use super::connect::Connector;
use super::connection::Connection;
use super::pool::Pool;
use super::sql::{Engine, Sql};
use super::watch::Notices;
use super::{Postgres, PostgresOptions, Shared, error};
use keyloom::backend::CommitSignal;
use keyloom::{Error, Result, StorageError};
use keyloom_remote::Link;

/// The idle time of a connection before the system sends a TCP keep-alive probe.
// A shorter time sends more probes on idle connections; a longer one detects a lost peer later.
// Without this setting, Linux waits for two hours.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

impl PostgresOptions {
    /// Opens the store at `address`, a connection URL:
    /// `postgres://user:password@host:port/database?table=keyloom&sslmode=require`, or a
    /// `key=value` string, for which the options name the table. The address must contain a host
    /// and a user; the environment and files are not read. In a URL, write an `@` or `?` within a
    /// password as `%40` or `%3F`. **Without `sslmode=require` nothing is encrypted**; with
    /// `require`, as with `verify-full`, the server's certificate and name are verified. If there
    /// are several hosts, the first host that accepts writes is used.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an address or a name that is not valid,
    /// [`ServerError::ConnectionLost`] if no server can be reached, [`ServerError::LoginRefused`],
    /// [`StorageError::MissingStore`] if the table does not exist and must not be created,
    /// [`StorageError::NotAStore`] for another kind of table, or the server's error. No error
    /// contains the password.
    pub fn open(self, address: &str) -> Result<Postgres> {
        open(Address::parse(address)?, self)
    }
}

fn open(address: Address, options: PostgresOptions) -> Result<Postgres> {
    let table = address.table(options.table.as_deref())?;
    let place = format!("{address}, table {table}");
    let mut config = address.config;
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(options.timeout);
    }
    if config.get_tcp_user_timeout().is_none() {
        // The system then detects a half-open connection, so that its users do not wait for the
        // time-out.
        config.tcp_user_timeout(options.timeout).keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any
    {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    let link = Link::new(&place, options.timeout);
    let signal = CommitSignal::default();
    let connector = Connector::new(config, &options, signal.clone())?;
    let connection = connector.connect(&link)?;
    let (sql, engine) = prepare(&link, &connection, options.create, &table)?;
    let pool = Pool::new(options.max_connections, options.patience);
    let notices = Notices::new(&table, engine, signal);
    let retry_policy = options.retry_policy;
    let shared = Shared { link, connector, pool, sql, engine, notices, retry_policy };
    // A table of another kind is detected when the statements are prepared.
    let connection = shared.warm(connection)?;
    drop(shared.pool.take(|| Ok(connection)).map(|connection| shared.pool.give_back(connection)));
    Ok(Postgres { shared: Arc::new(shared) })
}

impl Shared {
    /// A connection of the pool.
    pub(super) fn connection(&self) -> Result<Connection> {
        self.link.refuse_fork()?;
        self.pool.take(|| self.warm(self.connector.connect(&self.link)?))
    }

    /// Applies the settings of the session to a new connection, and prepares all statements.
    fn warm(&self, mut connection: Connection) -> Result<Connection> {
        let deadline = self.link.deadline();
        let settings = self.engine.settings(self.link.timeout());
        let set = connection.wait(deadline, connection.client().batch_execute(&settings));
        let prepared = match set {
            Some(Ok(())) => connection.prepare(&self.sql, deadline),
            other => other,
        };
        match prepared {
            Some(Ok(())) => Ok(connection),
            Some(Err(error)) => Err(error::of_statement(error, &self.link)),
            None => Err(self.link.silent()),
        }
    }
}

/// Determines the engine, and checks or creates the table.
fn prepare(
    link: &Link,
    connection: &Connection,
    create: bool,
    table: &str,
) -> Result<(Sql, Engine)> {
    let deadline = link.deadline();
    match connection.wait(deadline, find_table(connection.client(), table, create)) {
        None => Err(link.silent()),
        Some(Err(error)) => Err(error::of_statement(error, link)),
        Some(Ok((sql, engine, is_ours))) => match is_ours {
            true => Ok((sql, engine)),
            false => Err(Error::Storage(StorageError::NotAStore {
                path: link.place().into(),
                why: "its columns are not `key bytea, value bytea`".into(),
            })),
        },
    }
}

async fn find_table(
    client: &Client,
    table: &str,
    create: bool,
) -> Result<(Sql, Engine, bool), PgError> {
    let version: String = client.query_one("SELECT version()", &[]).await?.try_get(0)?;
    let engine = Engine::of(&version);
    let sql = Sql::new(table, engine);
    let mut look = client.prepare(&sql.look).await;
    if create && look.as_ref().is_err_and(|error| error.code() == Some(&SqlState::UNDEFINED_TABLE))
    {
        if let Err(error) = client.batch_execute(&sql.create).await
            && !was_made_meanwhile(&error)
        {
            return Err(error);
        }
        look = client.prepare(&sql.look).await;
    }
    let look = look?;
    let is_ours = look.columns().iter().all(|column| *column.type_() == Type::BYTEA);
    Ok((sql, engine, is_ours))
}

/// Whether the error means that another session created the table concurrently. `IF NOT EXISTS`
/// does not prevent this error.
fn was_made_meanwhile(error: &PgError) -> bool {
    [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT]
        .iter()
        .any(|code| error.code() == Some(code))
}
