//! Opening a store: the table, the engine, the pool.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    ClientWrapper, ConfigConnectImpl, Connect, Hook, HookError, Manager, ManagerConfig, Pool,
    RecyclingMethod, Runtime,
};
use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error as PgError, NoTls};

use super::address::Address;
use super::sql::{Engine, Sql};
use super::{Postgres, PostgresOptions, Shared, error};
use crate::remote::{Link, Outcome};
use crate::{Error, Result};

/// The idle time of a connection before the system sends a TCP keep-alive probe.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

impl PostgresOptions {
    /// Opens the store at `address`, a connection URL:
    /// `postgres://user:password@host:port/database?table=keyloom&sslmode=require`, or its
    /// `key=value` form, in which the options name the table. It must contain a host and a user;
    /// the environment and files are not read. In a URL, write an `@` or `?` within a password as
    /// `%40` or `%3F`. **Without `sslmode=require` nothing is encrypted**; with it, as with
    /// `verify-full`, the server's certificate and name are verified. Of several hosts the first
    /// one that accepts writes is used.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an address or a name that is not valid,
    /// [`Error::ConnectionLost`] without a server, [`Error::LoginRefused`], [`Error::MissingStore`]
    /// if the table does not exist and must not be created, [`Error::NotAStore`] for another kind
    /// of table, or the server's error. None of them contains the password.
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
        // The system detects a half-open connection, so that its users do not wait for the
        // time-out.
        config.tcp_user_timeout(options.timeout).keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any
    {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    let link = Link::new(&place, options.timeout)?;
    let connector = Connector::new(&config, &options)?;
    if connector.is_tls() {
        config.ssl_mode(SslMode::Require);
    }
    let (sql, engine) = prepare(&link, &connector, &config, options.create, &table)?;
    let sql = Arc::new(sql);
    let manager = Manager::from_connect(
        config.clone(),
        connector,
        // A connection returns to the pool only after its rollback.
        ManagerConfig { recycling_method: RecyclingMethod::Fast },
    );
    let statements = Arc::clone(&sql);
    let timeout = options.timeout;
    let pool = Pool::builder(manager)
        .max_size(options.max_connections.max(1))
        .wait_timeout(Some(options.patience))
        .create_timeout(Some(options.timeout))
        .runtime(Runtime::Tokio1)
        .post_create(Hook::async_fn(move |client: &mut ClientWrapper, _| {
            let statements = Arc::clone(&statements);
            Box::pin(async move {
                warm(client, &statements, engine, timeout).await.map_err(HookError::Backend)
            })
        }))
        .build()
        .map_err(|error| Error::Backend(error.into()))?;
    let shared = Shared {
        link,
        pool,
        sql,
        engine,
        max_connections: options.max_connections.max(1),
        patience: options.patience,
        retry_policy: options.retry_policy,
    };
    let store = Postgres { shared: Arc::new(shared) };
    // A table of another kind is detected when the statements are prepared.
    drop(store.connection()?);
    Ok(store)
}

/// Prepares every statement on a new connection, so that none costs a message later.
async fn warm(
    client: &ClientWrapper,
    sql: &Sql,
    engine: Engine,
    timeout: Duration,
) -> Result<(), PgError> {
    client.batch_execute(&engine.settings(timeout)).await?;
    let prepared = sql.prepared().map(|statement| client.prepare_cached(statement));
    futures_util::future::try_join_all(prepared).await.map(drop)
}

/// Determines the engine, and checks or creates the table.
fn prepare(
    link: &Link,
    connector: &Connector,
    config: &tokio_postgres::Config,
    create: bool,
    table: &str,
) -> Result<(Sql, Engine)> {
    let work = async {
        let (client, driver) = connector.connect(config).await?;
        let found = find_table(&client, table, create).await;
        drop(client);
        // It ends now, because its client was dropped.
        drop(driver);
        found
    };
    match link.wait_uncounted(link.timeout(), work) {
        Outcome::Refused(error) => Err(error),
        Outcome::TimedOut => Err(link.silent()),
        Outcome::Answered(Err(error)) => Err(error::of_statement(error, link)),
        Outcome::Answered(Ok((sql, engine, is_ours))) => match is_ours {
            true => Ok((sql, engine)),
            false => Err(Error::NotAStore {
                path: link.place().into(),
                why: "its columns are not `key bytea, value bytea`".into(),
            }),
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

/// Despite `IF NOT EXISTS`, two sessions that create a table concurrently may conflict.
fn was_made_meanwhile(error: &PgError) -> bool {
    [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT]
        .iter()
        .any(|code| error.code() == Some(code))
}

/// Connections with or without TLS.
pub(super) enum Connector {
    Plain(ConfigConnectImpl<NoTls>),
    #[cfg(feature = "tls")]
    Tls(ConfigConnectImpl<tokio_postgres_rustls::MakeRustlsConnect>),
}

type Connecting<'c> =
    Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), PgError>> + Send + 'c>>;

impl Connect for Connector {
    fn connect(&self, config: &tokio_postgres::Config) -> Connecting<'_> {
        match self {
            Self::Plain(plain) => plain.connect(config),
            #[cfg(feature = "tls")]
            Self::Tls(tls) => tls.connect(config),
        }
    }
}

impl Connector {
    fn is_tls(&self) -> bool {
        !matches!(self, Self::Plain(_))
    }

    fn new(config: &tokio_postgres::Config, options: &PostgresOptions) -> Result<Self> {
        #[cfg(feature = "tls")]
        if options.ca_certificate.is_some() || config.get_ssl_mode() == SslMode::Require {
            let tls = super::tls::connect(options.ca_certificate.as_deref())?;
            return Ok(Self::Tls(ConfigConnectImpl { tls }));
        }
        let _ = options;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(Error::InvalidArgument {
                what: "the address's",
                value: "sslmode=require".into(),
                why: "keyloom was built without the feature `tls`",
            });
        }
        Ok(Self::Plain(ConfigConnectImpl { tls: NoTls }))
    }
}
