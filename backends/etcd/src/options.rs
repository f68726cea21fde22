//! The options of a store.

#[cfg(doc)]
use keyloom::ServerError;
use std::fmt;
use std::time::Duration;

use etcd_client::ConnectOptions;

use super::Etcd;
use super::address::Address;
use super::room::Room;
use keyloom::{Error, Result, RetryPolicy};
use keyloom_remote::checked_name;

/// Options of an [`Etcd`] store.
///
/// ```no_run
/// use std::time::Duration;
/// use keyloom_etcd::Etcd;
/// let store = Etcd::options()
///     .timeout(Duration::from_secs(10))
///     .user("ada", "secret")
///     .open("etcd://a:2379,b:2379,c:2379/keyloom")?;
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone)]
pub struct EtcdOptions {
    name: String,
    timeout: Duration,
    max_operations: usize,
    max_request_bytes: usize,
    user: Option<(String, String)>,
    retry_policy: RetryPolicy,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

#[cfg(feature = "tls")]
#[derive(Clone, Default)]
struct Tls {
    ca_certificate: Option<Vec<u8>>,
}

/// The parts from which a store is built.
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) place: String,
    pub(super) urls: Vec<String>,
    pub(super) connect: ConnectOptions,
    pub(super) timeout: Duration,
    pub(super) max_operations: usize,
    pub(super) max_request_bytes: usize,
    pub(super) retry_policy: RetryPolicy,
}

/// The time-out for opening a connection.
// A shorter time-out gives up on members that are only slow. A longer one delays the attempt on the
// next member, and the whole request has only 30 s by default.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The interval of keep-alive pings while a request waits for a silent member. Not less than the
/// server allows (`--grpc-keepalive-min-time`, 5 s).
const KEEP_ALIVE: Duration = Duration::from_secs(6);
/// The time-out for the answer to a ping.
// So a silent member is abandoned after 10 s, a third of the default time-out of a request. A
// shorter time-out abandons members that only pause; a longer one leaves less time for the other
// members.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(4);

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            name: "keyloom".into(),
            timeout: Duration::from_secs(30),
            max_operations: 128,
            max_request_bytes: 1_572_864,
            user: None,
            retry_policy: RetryPolicy::remote(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl fmt::Debug for EtcdOptions {
    /// Omits the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .field("max_operations", &self.max_operations)
            .field("max_request_bytes", &self.max_request_bytes)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("retry_policy", &self.retry_policy)
            .finish_non_exhaustive()
    }
}

impl EtcdOptions {
    /// The name of the store in the cluster: 1 to 64 ASCII letters, digits, dots, underscores and
    /// hyphens. All keys of the store begin with the name and a slash. A name in the address takes
    /// precedence. Default: `keyloom`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How long to wait for the answer to one request, including attempts on other members.
    /// Default: 30 seconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The server's limit of operations in one request: its `--max-txn-ops`. At least 16. Default:
    /// 128, the server's default.
    ///
    /// The limit of writes in a transaction is at most the square of half this number; see [the
    /// limits](crate#limits-of-a-transaction).
    #[must_use]
    pub fn max_operations(mut self, operations: usize) -> Self {
        self.max_operations = operations;
        self
    }

    /// The server's limit of bytes of one request: its `--max-request-bytes`. At least 64 KiB.
    /// Default: 1.5 MiB, the server's default.
    #[must_use]
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.max_request_bytes = bytes;
        self
    }

    /// The user and password. A user in the address takes precedence. Default: none, for a cluster
    /// without authentication.
    ///
    /// The user's role needs `readwrite` on the range from `<name>/` to `<name>0` and on
    /// the key `<name>.deleted`.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = Some((name.into(), password.into()));
        self
    }

    /// How many times [`transact`](keyloom::Store::transact) retries a transaction, and after which
    /// pauses.
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// Uses TLS, and trusts the root certificates of the system.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls.get_or_insert_default();
        self
    }

    /// Encrypts the connections, and trusts only servers whose certificates are signed by this
    /// authority (PEM).
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn ca_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.tls.get_or_insert_default().ca_certificate = Some(pem.into());
        self
    }

    /// Opens the store at `address`: `etcd://user:password@host:port,host:port/name`. Only
    /// `etcd://` and one host are required. List all members of the cluster, so that a member may
    /// be down. In the user name and the password, escape special characters, for example `@` as
    /// `%40`.
    ///
    /// Sends one request to verify that the cluster answers.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an invalid address or option; [`ServerError::ConnectionLost`]
    /// if no member answers; or the cluster's error, for example about a wrong password.
    pub fn open(self, address: &str) -> Result<Etcd> {
        Etcd::from_plan(self.plan(address)?)
    }

    fn plan(self, address: &str) -> Result<Plan> {
        let Address { members, user, name } = Address::parse(address)?;
        let name = checked_name(&name.unwrap_or(self.name))?;
        let bad = |what, value: String, why| Err(Error::InvalidArgument { what, value, why });
        if self.max_operations < Room::LEAST_OPERATIONS {
            let value = self.max_operations.to_string();
            return bad("max_operations", value, "16 is the least");
        }
        if self.max_request_bytes < Room::LEAST_REQUEST_BYTES {
            let value = self.max_request_bytes.to_string();
            return bad("max_request_bytes", value, "64 KiB is the least");
        }
        let mut connect = ConnectOptions::new()
            .with_connect_timeout(CONNECT_TIMEOUT.min(self.timeout))
            .with_keep_alive(KEEP_ALIVE, KEEP_ALIVE_TIMEOUT)
            .with_keep_alive_while_idle(false)
            // A server refuses an expired token before it executes anything.
            .with_auto_token_refresh(true);
        if let Some((name, password)) = user.or(self.user) {
            connect = connect.with_user(name, password);
        }
        let scheme;
        #[cfg(feature = "tls")]
        {
            scheme = if self.tls.is_some() { "https" } else { "http" };
            if let Some(tls) = self.tls {
                connect = connect.with_tls(tls.options());
            }
        }
        #[cfg(not(feature = "tls"))]
        {
            scheme = "http";
        }
        Ok(Plan {
            place: format!("etcd://{}/{name}", members.join(",")),
            urls: members.iter().map(|member| format!("{scheme}://{member}")).collect(),
            name,
            connect,
            timeout: self.timeout,
            max_operations: self.max_operations,
            max_request_bytes: self.max_request_bytes,
            retry_policy: self.retry_policy,
        })
    }
}

#[cfg(feature = "tls")]
impl Tls {
    fn options(self) -> etcd_client::TlsOptions {
        let options = etcd_client::TlsOptions::new();
        match self.ca_certificate {
            Some(pem) => options.ca_certificate(etcd_client::Certificate::from_pem(pem)),
            None => options.with_native_roots(),
        }
    }
}
