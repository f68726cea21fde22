//! Real servers for tests: each test starts its own, kills and restarts it on demand, and ends it
//! by its process ids when it goes out of scope.
//!
//! Tests without an available server are skipped, and the program's last line gives their number;
//! with `KEYLOOM_REQUIRE_SERVERS=1` this is a failure.

mod etcd;
mod foundationdb;
mod postgres;
mod process;
mod proxy;
mod skipped;
pub mod stores;

use std::env;
use std::path::{Path, PathBuf};

pub use etcd::EtcdCluster;
pub use foundationdb::FoundationDbCluster;
pub use postgres::Postgres;
pub use proxy::{Cut, Mode, Proxy};
pub use skipped::skip;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Postgres,
    Etcd,
    FoundationDb,
}

/// Whether the programs of a server are installed; the error says what is missing.
pub fn available(what: Server) -> Result<(), String> {
    let programs: &[&str] = match what {
        Server::Postgres => &["postgres", "initdb", "setpriv"],
        Server::Etcd => &["etcd"],
        Server::FoundationDb => &["fdbserver", "fdbcli"],
    };
    match programs.iter().find(|program| !is_installed(program)) {
        None => Ok(()),
        Some(missing) if what == Server::FoundationDb => {
            Err(format!("there is no `{missing}`; FoundationDB is in no package registry"))
        }
        Some(missing) => Err(format!("there is no `{missing}`; run tests/servers/install.sh")),
    }
}

/// The result of `start`, or `None` if the server is not installed.
pub fn or_skip<T>(what: Server, start: impl FnOnce() -> T) -> Option<T> {
    unless_missing(available(what)).map(|()| start())
}

/// The address of the server that this test run shares, given by `tests/servers/with.sh`.
pub fn shared(what: Server) -> Option<String> {
    let name = match what {
        Server::Postgres => "KEYLOOM_POSTGRES",
        Server::Etcd => "KEYLOOM_ETCD",
        Server::FoundationDb => "FDB_CLUSTER_FILE",
    };
    let remedy = match what {
        Server::Postgres | Server::Etcd => "use tests/servers/with.sh",
        Server::FoundationDb => "let it name the file of a cluster",
    };
    unless_missing(env::var(name).map_err(|_| format!("{name} is not set; {remedy}")))
}

fn unless_missing<T>(found: Result<T, String>) -> Option<T> {
    let is_required = env::var("KEYLOOM_REQUIRE_SERVERS").is_ok_and(|value| value == "1");
    match found {
        Ok(found) => Some(found),
        Err(why) if is_required => panic!("KEYLOOM_REQUIRE_SERVERS is set, but {why}"),
        Err(why) => {
            skipped::skip(&why);
            None
        }
    }
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    // On Debian, the server's programs are not in the path.
    let versions = Path::new("/usr/lib/postgresql").read_dir().into_iter().flatten().flatten();
    let of_debian = versions.map(|version| version.path().join("bin"));
    env::split_paths(&path).chain(of_debian).any(|directory| directory.join(program).exists())
}

fn script(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut servers = root.map(|root| root.join("tests/servers"));
    servers.find(|servers| servers.is_dir()).unwrap().join(name)
}
