//! How to open a store on PostgreSQL.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::sql::check_table;
use super::{Postgres, open};
use crate::{Error, Result, RetryPolicy};

/// Options of a [`Postgres`] store.
///
/// ```no_run
/// use keyloom::Postgres;
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
            retry_policy: RetryPolicy::of_a_server(),
            #[cfg(feature = "tls")]
            ca_certificate: None,
        }
    }
}

impl PostgresOptions {
    /// The table that holds the store: 1 to 63 of `a-z`, `0-9` and `_`. Default: what the address
    /// says (`?table=…`), else `keyloom`. Another schema is chosen by the user's `search_path`.
    #[must_use]
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = Some(table.into());
        self
    }

    /// Whether to make the table when it is not there. Default: `true`.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// How many connections there are at the most. Each open snapshot and each open transaction holds
    /// one. Default: 16.
    #[must_use]
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// How long to wait for a connection while all of them are in use. Default: 5 seconds, after
    /// which there is an [`Error::ConnectionsBusy`].
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How long the server may take to answer one message, or to accept a connection. Default: 30
    /// seconds. The server is told to give up a statement a little before that, which is an
    /// [`Error::Backend`] and not run again; a server that says nothing is an
    /// [`Error::ConnectionLost`], or for a commit an [`Error::CommitUnknown`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often and after which pauses [`transact`](crate::Store::transact) runs a transaction again.
    /// Default: [`RetryPolicy::of_a_server`].
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// Speaks TLS, and trusts servers whose certificates are signed by this authority (PEM) and by no
    /// other. Without it, `sslmode=require` in the address speaks TLS and trusts the authorities of
    /// the system. Certificates and host names are always verified.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn ca_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_certificate = Some(pem.into());
        self
    }

    /// Opens the store at `address`, a connection URL:
    /// `postgres://user:password@host:port/database?table=keyloom&sslmode=require`, or the
    /// `key=value` form of the same. It names a host and a user; nothing is read from the environment
    /// or from files. **Without `sslmode=require` nothing is encrypted**; with it, as with
    /// `verify-full`, the server's certificate and name are verified. Of several hosts the first that
    /// takes writes is used.
    ///
    /// # Errors
    /// [`Error::BadOption`] for an address or a name that cannot be used, [`Error::ConnectionLost`]
    /// when there is no server, [`Error::MissingStore`] when the table is not there and must not be
    /// made, [`Error::NotAStore`] for another kind of table, or what the server says. None of them
    /// holds the password.
    pub fn open(self, address: &str) -> Result<Postgres> {
        open::open(Address::parse(address)?, self)
    }
}

/// An address, taken apart.
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) table: Option<String>,
}

impl Address {
    pub(super) fn parse(address: &str) -> Result<Self> {
        let (address, table) = take_table(address);
        // Certificates are always verified in full.
        let address = ["sslmode=verify-full", "sslmode=verify-ca"]
            .iter()
            .fold(address, |address, mode| address.replace(mode, "sslmode=require"));
        let refused = |why| Error::refused_address(&address, why);
        let mut config = Config::from_str(&address)
            .map_err(|_| refused("it is like postgres://user@host:5432/database?table=keyloom"))?;
        if config.get_hosts().is_empty() {
            return Err(refused("it names no host"));
        }
        if config.get_user().is_none_or(str::is_empty) {
            return Err(refused("it names no user"));
        }
        if config.get_ssl_mode() == SslMode::Prefer {
            // TLS that is given up when the server has none protects nothing.
            config.ssl_mode(SslMode::Disable);
        }
        if config.get_application_name().is_none() {
            config.application_name("keyloom");
        }
        Ok(Self { config, table })
    }

    /// The table's name, checked.
    pub(super) fn table(&self, options: &PostgresOptions) -> Result<String> {
        let table = options.table.as_ref().or(self.table.as_ref());
        let table = table.map_or("keyloom", String::as_str);
        check_table(table)?;
        Ok(table.into())
    }
}

impl fmt::Display for Address {
    /// Where the server is, without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        let ports = self.config.get_ports();
        for (position, host) in self.config.get_hosts().iter().enumerate() {
            let separator = if position > 0 { "," } else { "" };
            let port = ports.get(position).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(host) => write!(f, "{separator}{host}:{port}")?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{separator}{}:{port}", path.display())?,
            }
        }
        match self.config.get_dbname() {
            Some(database) => write!(f, "/{database}"),
            None => Ok(()),
        }
    }
}

/// The address without its `table=…`, which is ours, and that table.
fn take_table(address: &str) -> (String, Option<String>) {
    let Some((place, parameters)) = address.split_once('?') else {
        return (address.into(), None);
    };
    let (ours, others): (Vec<&str>, Vec<&str>) =
        parameters.split('&').partition(|parameter| parameter.starts_with("table="));
    let table = ours.last().and_then(|parameter| parameter.strip_prefix("table="));
    let separator = if others.is_empty() { "" } else { "?" };
    (format!("{place}{separator}{}", others.join("&")), table.map(String::from))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let address =
            Address::parse("postgres://ada:secret@h1:1,h2:2/geo?table=t&sslmode=require").unwrap();
        assert_eq!(address.to_string(), "postgres://h1:1,h2:2/geo");
        assert_eq!(address.table.as_deref(), Some("t"));
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(address.config.get_password(), Some(&b"secret"[..]));
        let plain = Address::parse("postgres://ada@host/geo?table=t").unwrap();
        assert_eq!(plain.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(plain.to_string(), "postgres://host:5432/geo");
        let pairs = Address::parse("host=h user=ada password=secret dbname=geo").unwrap();
        assert_eq!(pairs.to_string(), "postgres://h:5432/geo");
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_without_its_password() {
        for address in [
            "postgres://ada:secret@host:port/geo",
            "postgres://ada:secret@host/geo?wrong=1",
            "postgres://ada:sec@secret@host/geo?wrong=1",
            "postgres://:secret@host/geo",
            "postgres://ada:secret@/geo",
            "postgres://ada:secret/geo?password=secret",
            "host=h password=secret wrong=1",
            "postgres:ada:secret@host",
            "postgres://ada:secret/geo",
            "postgres://ada:sec?secret@host:port/geo",
        ] {
            let error = Address::parse(address).err().map(|error| format!("{error} {error:?}"));
            let error = error.unwrap_or_else(|| panic!("{address} was taken"));
            assert!(!error.contains("secret"), "{error}");
        }
        let options = format!("{:?}", Postgres::options().table("t"));
        assert!(options.contains("\"t\""), "{options}");
    }

    #[test]
    fn the_options_win_over_the_address() {
        let address = Address::parse("postgres://ada@host/geo?table=there").unwrap();
        assert_eq!(address.table(&Postgres::options()).unwrap(), "there");
        assert_eq!(address.table(&Postgres::options().table("here")).unwrap(), "here");
        assert!(address.table(&Postgres::options().table("no table")).is_err());
        let without = Address::parse("postgres://ada@host/geo").unwrap();
        assert_eq!(without.table(&Postgres::options()).unwrap(), "keyloom");
    }
}
