//! Opening connections: hosts, addresses, TLS.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Instant;

#[cfg(unix)]
use socket2::{Domain, SockAddr, Type};
use socket2::{SockRef, TcpKeepalive};
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, SimpleQueryMessage};

use super::connection::{Connection, Driver, wait};
use super::socket::{Bytes, Kind, Socket};
use super::watch::Notices;
use super::{PostgresOptions, error};
use keyloom::backend::CommitSignal;
use keyloom::{Error, Result, SharedError};
use keyloom_remote::Link;

/// Opens connections, with or without TLS.
#[derive(Debug)]
pub(super) struct Connector {
    config: Config,
    tls: Tls,
    /// Notified of the commits that the server announces.
    signal: CommitSignal,
}

enum Tls {
    Plain,
    #[cfg(feature = "tls")]
    Rustls(tokio_postgres_rustls::MakeRustlsConnect),
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::Plain) { "Plain" } else { "Rustls" })
    }
}

/// A server named in the address.
#[derive(Clone, Debug)]
struct Target {
    /// The host or address to connect to.
    host: Host,
    port: u16,
    /// The name in its certificate.
    name: String,
}

impl Connector {
    pub(super) fn new(
        mut config: Config,
        options: &PostgresOptions,
        signal: CommitSignal,
    ) -> Result<Self> {
        #[cfg(feature = "tls")]
        if options.ca_certificate.is_some() || config.get_ssl_mode() == SslMode::Require {
            config.ssl_mode(SslMode::Require);
            let tls = Tls::Rustls(super::tls::connect(options.ca_certificate.as_deref())?);
            return Ok(Self { config, tls, signal });
        }
        let _ = options;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(Error::InvalidArgument {
                what: "the address's",
                value: "sslmode=require".into(),
                why: "`keyloom-postgres` was built without the feature `tls`",
            });
        }
        config.ssl_mode(SslMode::Disable);
        Ok(Self { config, tls: Tls::Plain, signal })
    }

    /// Connects to the first server that accepts a connection.
    pub(super) fn connect(&self, link: &Link) -> Result<Connection> {
        link.refuse_fork()?;
        let deadline = link.deadline();
        let nothing = io::Error::new(ErrorKind::NotFound, "the host has no address");
        let mut failed = link.lost(nothing);
        let mut all = Vec::new();
        for target in self.targets() {
            match target.places(self.is_random()) {
                Ok(places) => all.extend(places.into_iter().map(|place| (target.clone(), place))),
                Err(error) => failed = link.lost(error),
            }
        }
        let mut untried = all.len();
        for (target, place) in all {
            // Each server gets a share of the time, so that a silent server leaves time for the
            // others.
            let now = Instant::now();
            let share =
                deadline.saturating_duration_since(now) / u32::try_from(untried).unwrap_or(1);
            let own = self.config.get_connect_timeout().copied().unwrap_or(share);
            untried -= 1;
            match self.connect_to(&place, &target, link, now + share.min(own)) {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    fn is_random(&self) -> bool {
        self.config.get_load_balance_hosts() == LoadBalanceHosts::Random
    }

    fn targets(&self) -> Vec<Target> {
        let Self { config, .. } = self;
        let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
        let ports = config.get_ports();
        let target = |(n, named): (usize, &Host)| {
            let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
            let name = match named {
                Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                Host::Unix(_) => String::new(),
            };
            let host = addresses.get(n).map(|address| Host::Tcp(address.to_string()));
            Target { host: host.unwrap_or_else(|| named.clone()), port, name }
        };
        let mut targets: Vec<Target> = hosts.iter().enumerate().map(target).collect();
        if self.is_random() {
            fastrand::shuffle(&mut targets);
        }
        targets
    }

    fn connect_to(
        &self,
        place: &Place,
        target: &Target,
        link: &Link,
        deadline: Instant,
    ) -> Result<Connection> {
        let socket = self.socket(place, deadline).map_err(|error| link.lost(error))?;
        let socket = Arc::new(socket);
        let bytes = Bytes(Arc::clone(&socket));
        let login = async {
            match &self.tls {
                Tls::Plain => self.log_in(bytes, NoTls, target, link).await,
                #[cfg(feature = "tls")]
                Tls::Rustls(tls) => self.log_in(bytes, tls.clone(), target, link).await,
            }
        };
        let logged_in = wait(&socket, deadline, login, |_| {});
        let (client, driver) = logged_in.ok_or_else(|| link.silent())??;
        let connection = Connection::new(client, driver, socket);
        self.expect_wanted(&connection, link, deadline)?;
        Ok(connection)
    }

    async fn log_in<T>(
        &self,
        bytes: Bytes,
        mut tls: T,
        target: &Target,
        link: &Link,
    ) -> Result<(Client, Driver)>
    where
        T: MakeTlsConnect<Bytes>,
        T::Stream: Send + 'static,
    {
        let tls =
            tls.make_tls_connect(&target.name).map_err(|e| Error::Backend(SharedError::from(e)))?;
        let connected = self.config.connect_raw(bytes, tls).await;
        let (client, mut connection) =
            connected.map_err(|error| error::of_statement(error, link))?;
        let signal = self.signal.clone();
        let driver = poll_fn(move |context| {
            while let Some(message) = ready!(connection.poll_message(context)) {
                if let AsyncMessage::Notification(notice) = message? {
                    Notices::receive(&signal, notice.payload());
                }
            }
            Poll::Ready(Ok(()))
        });
        Ok((client, Box::pin(driver)))
    }

    fn socket(&self, place: &Place, deadline: Instant) -> io::Result<Socket> {
        let Self { config, .. } = self;
        let timeout = deadline.saturating_duration_since(Instant::now());
        let kind = match place {
            _ if timeout.is_zero() => return Err(ErrorKind::TimedOut.into()),
            Place::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, timeout)?;
                stream.set_nodelay(true)?;
                let socket = SockRef::from(&stream);
                #[cfg(target_os = "linux")]
                if let Some(timeout) = config.get_tcp_user_timeout() {
                    socket.set_tcp_user_timeout(Some(*timeout))?;
                }
                if config.get_keepalives() {
                    socket.set_tcp_keepalive(&keepalive(config))?;
                }
                Kind::Tcp(stream)
            }
            #[cfg(unix)]
            Place::Unix(path) => {
                // If the accept queue of the server is full, a connect blocks for the write
                // time-out.
                let socket = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
                socket.set_write_timeout(Some(timeout))?;
                socket.connect(&SockAddr::unix(path)?)?;
                Kind::Unix(UnixStream::from(std::os::fd::OwnedFd::from(socket)))
            }
        };
        Socket::new(kind)
    }

    /// Refuses a read-only server if the address requires a writable one, and vice versa.
    fn expect_wanted(&self, connection: &Connection, link: &Link, deadline: Instant) -> Result<()> {
        let (unwanted, why) = match self.config.get_target_session_attrs() {
            TargetSessionAttrs::ReadWrite => ("on", "the database does not accept writes"),
            TargetSessionAttrs::ReadOnly => ("off", "the database is not read-only"),
            _ => return Ok(()),
        };
        let show = connection.client().simple_query("SHOW transaction_read_only");
        let answer = match connection.wait(deadline, show) {
            None => return Err(link.silent()),
            Some(answer) => answer.map_err(|error| error::of_statement(error, link))?,
        };
        let is_unwanted = answer.iter().any(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0) == Some(unwanted),
            _ => false,
        });
        match is_unwanted {
            true => Err(link.lost(io::Error::new(ErrorKind::PermissionDenied, why))),
            false => Ok(()),
        }
    }
}

/// An address of a server.
enum Place {
    Tcp(SocketAddr),
    #[cfg(unix)]
    Unix(std::path::PathBuf),
}

impl Target {
    /// The addresses of the server. The system's resolver has time-outs of its own.
    fn places(&self, is_random: bool) -> io::Result<Vec<Place>> {
        match &self.host {
            Host::Tcp(host) => {
                let mut addresses: Vec<_> = (&**host, self.port).to_socket_addrs()?.collect();
                if is_random {
                    fastrand::shuffle(&mut addresses);
                }
                Ok(addresses.into_iter().map(Place::Tcp).collect())
            }
            #[cfg(unix)]
            Host::Unix(directory) => {
                Ok(vec![Place::Unix(directory.join(format!(".s.PGSQL.{}", self.port)))])
            }
        }
    }
}

fn keepalive(config: &Config) -> TcpKeepalive {
    let mut keepalive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
    #[cfg(not(target_os = "windows"))]
    if let Some(retries) = config.get_keepalives_retries() {
        keepalive = keepalive.with_retries(retries);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        keepalive = keepalive.with_interval(interval);
    }
    keepalive
}
