//! How to open a store on FoundationDB.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use foundationdb::Database;

use super::address::Address;
use super::again::Again;
use super::keyspace::Keyspace;
use super::network::User;
use super::{FoundationDb, Shared, error};
use crate::remote::{Link, checked_name};
use crate::{Error, Result, RetryPolicy, pack};

/// Options of a [`FoundationDb`] store.
///
/// ```no_run
/// use std::time::Duration;
/// use keyloom::FoundationDb;
/// let store = FoundationDb::options()
///     .name("cities")
///     .timeout(Duration::from_secs(10))
///     .open("fdb:/etc/foundationdb/fdb.cluster")?;
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FoundationDbOptions {
    name: Option<String>,
    prefix: Option<Vec<u8>>,
    timeout: Duration,
    retry_policy: RetryPolicy,
    network_runs: bool,
    batch_priority: bool,
}

impl Default for FoundationDbOptions {
    fn default() -> Self {
        // The pauses that matter are the cluster's.
        let (first_pause, max_pause) = (Duration::from_millis(1), Duration::from_millis(10));
        let retry_policy = RetryPolicy { first_pause, max_pause, ..RetryPolicy::of_a_server() };
        let timeout = Duration::from_secs(30);
        Self {
            name: None,
            prefix: None,
            timeout,
            retry_policy,
            network_runs: false,
            batch_priority: false,
        }
    }
}

impl FoundationDbOptions {
    /// The name of the store among those of the cluster: 1 to 64 ASCII letters, digits, dots, underscores and hyphens. Its
    /// keys begin with the tuple of this one string, so `fdb.Subspace((name,))` holds them in every binding.
    /// A name in the address comes before this one. Default: `keyloom`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The bytes that all keys of the store begin with, instead of a [name](FoundationDbOptions::name), also the one of the options: the prefix of a directory
    /// of FoundationDB's directory layer, for example. One byte at least and 1,024 at the most; not `FF` first, for such keys are
    /// the cluster's own.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<Vec<u8>>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// How long to wait for one answer of the cluster. Default: 30 seconds; then there is an
    /// [`Error::ConnectionLost`](crate::Error::ConnectionLost), or for a commit an [`Error::CommitUnknown`](crate::Error::CommitUnknown).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often [`transact`](crate::Store::transact) runs a transaction again, and after which pauses *beside* those that the
    /// cluster asks for. Default: [`RetryPolicy::of_a_server`], with pauses of 1 to 10 ms.
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// Whether the program has started FoundationDB's network itself, with the crate `foundationdb` and its API version
    /// 730. It can be started once in a process. Default: `false`; then it is started with the first store,
    /// and stopped when the process exits.
    #[must_use]
    pub fn network_runs(mut self, runs: bool) -> Self {
        self.network_runs = runs;
        self
    }

    /// Whether the cluster may let the transactions of this handle wait while others have work for it: for loads, backfills and
    /// repairs. Default: `false`.
    #[must_use]
    pub fn batch_priority(mut self, batch: bool) -> Self {
        self.batch_priority = batch;
        self
    }

    /// Opens the store at `address`, `fdb:CLUSTER_FILE?name=NAME`. Without a file it is the one that all clients take:
    /// `FDB_CLUSTER_FILE`, else `/etc/foundationdb/fdb.cluster`.
    ///
    /// # Errors
    /// [`Error::BadOption`](crate::Error::BadOption), [`Error::ConnectionLost`](crate::Error::ConnectionLost) when nobody answers, or what the client
    /// says.
    pub fn open(self, address: &str) -> Result<FoundationDb> {
        let address = Address::parse(address)?;
        if let (Some(_), Some(name)) = (&self.prefix, &address.name) {
            let why =
                "a store has a name or a prefix; leave out the name of the address, or the prefix";
            return Err(Error::BadOption { what: "the name", value: name.clone(), why });
        }
        let name = match (address.name.clone(), &self.name) {
            (Some(name), _) => name,
            (None, name) => checked_name(name.as_deref().unwrap_or("keyloom"))?,
        };
        let prefix = match &self.prefix {
            Some(prefix) => checked_prefix(prefix)?.to_vec(),
            None => pack(&(&*name,)).to_vec(),
        };
        let file = address.existing_file()?;
        let path = file.map(utf8).transpose()?;
        let place = format!("fdb:{}, {}", path.unwrap_or_default(), crate::key::display(&prefix));
        let network = if self.network_runs { None } else { Some(User::start()?) };
        let shared = Shared {
            database: Database::new(path).map_err(error::of_setup)?,
            link: Link::new(&place, self.timeout)?,
            keys: Keyspace::new(&prefix),
            again: Again::default(),
            retry_policy: self.retry_policy,
            batch_priority: self.batch_priority,
            _network: network,
        };
        let store = FoundationDb { shared: Arc::new(shared) };
        store.look()?;
        Ok(store)
    }
}

fn checked_prefix(prefix: &[u8]) -> Result<&[u8]> {
    const MOST_BYTES: usize = 1_024;
    match prefix.first() {
        Some(first) if *first < 0xFF && prefix.len() <= MOST_BYTES => Ok(prefix),
        _ => Err(Error::BadOption {
            what: "the prefix",
            value: crate::key::display(prefix).to_string(),
            why: "it has 1 to 1,024 bytes, of which the first is not FF",
        }),
    }
}

fn utf8(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::BadOption {
        what: "the cluster file",
        value: path.display().to_string(),
        why: "its path is not UTF-8, as the client wants it",
    })
}
