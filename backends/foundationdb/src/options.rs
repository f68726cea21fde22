//! The options of a store on FoundationDB.

#[cfg(doc)]
use keyloom::ServerError;
use std::sync::Arc;
use std::time::Duration;

use foundationdb::Database;

use super::address::Address;
use super::again::Again;
use super::keyspace::Keyspace;
use super::user::User;
use super::{AFTER_FORK, FoundationDb, Shared, at_exit, error};
use keyloom::backend::CommitSignal;
use keyloom::{Error, Result, RetryPolicy, pack};
use keyloom_remote::{Link, checked_name};

/// Options of a [`FoundationDb`] store.
///
/// ```no_run
/// use std::time::Duration;
/// use keyloom_foundationdb::FoundationDb;
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
    retry_policy: Option<RetryPolicy>,
    network_runs: bool,
    batch_priority: bool,
    conflict_keys: bool,
}

impl Default for FoundationDbOptions {
    fn default() -> Self {
        Self {
            name: None,
            prefix: None,
            timeout: Duration::from_secs(30),
            retry_policy: None,
            network_runs: false,
            batch_priority: false,
            conflict_keys: true,
        }
    }
}

impl FoundationDbOptions {
    /// The name of the store in the cluster: 1 to 64 ASCII letters, digits, dots, underscores and
    /// hyphens. The keys begin with the tuple of this one string, so every binding can access them
    /// with `fdb.Subspace((name,))`. A name in the address takes precedence. Default: `keyloom`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The prefix of all keys of the store, in place of a [name](FoundationDbOptions::name): for
    /// example the prefix of a directory of FoundationDB's directory layer. The prefix has 1 to
    /// 1,024 bytes and does not begin with `FF`, because such keys belong to the cluster. It
    /// overrides the option `name`; a name in the address is then refused.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<Vec<u8>>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// How long to wait for one answer of the cluster. Default: 30 seconds. After that, a read
    /// returns [`ServerError::ConnectionLost`], a commit [`Error::CommitUnknown`], and `open`
    /// [`ServerError::Unreachable`].
    ///
    /// `begin` waits at most once, and `snapshot` at most twice: for the back-off of a failed
    /// transaction, and for its version. If no [retry policy](FoundationDbOptions::retry_policy) is
    /// set, [`transact`](keyloom::Store::transact) starts no attempt after this time. So on a
    /// silent cluster, `transact` returns after one time-out. An attempt that began in time still
    /// runs to its end.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many times [`transact`](keyloom::Store::transact) retries a transaction, and after which
    /// pauses. These pauses are added to the client's back-off. Default: [`RetryPolicy::remote`]
    /// with pauses of 1 to 10 ms, and no new attempt after the
    /// [time-out](FoundationDbOptions::timeout).
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = Some(policy);
        self
    }

    /// Whether the program itself has already started FoundationDB's network, with the crate
    /// `foundationdb` and its API version 730. The network can be started only once per process.
    /// Default: `false`; then the network is started with the first store, and stopped when the
    /// process exits.
    #[must_use]
    pub fn network_runs(mut self, runs: bool) -> Self {
        self.network_runs = runs;
        self
    }

    /// Whether the cluster may delay the transactions of this handle when it is busy: for bulk
    /// loads, backfills and repairs. Default: `false`.
    #[must_use]
    pub fn batch_priority(mut self, batch: bool) -> Self {
        self.batch_priority = batch;
        self
    }

    /// Whether an [`Error::Conflict`] names the conflicting key. Default: `true`. The client
    /// requests that key with each commit. Set `false` to save this request if there are many
    /// conflicts and their keys are not used.
    ///
    /// In a build with debug assertions, the key is not reported if the transaction read many or
    /// long keys, because the binding would panic (`foundationdb` 0.11).
    #[must_use]
    pub fn conflict_keys(mut self, named: bool) -> Self {
        self.conflict_keys = named;
        self
    }

    /// Opens the store at `address`, `fdb:CLUSTER_FILE?name=NAME`. Without a file in the address,
    /// the default of all clients applies: `FDB_CLUSTER_FILE`, otherwise `fdb.cluster` in the
    /// current directory, otherwise `/etc/foundationdb/fdb.cluster`.
    ///
    /// The program must be able to read the cluster file. It should also be able to write the file
    /// and its directory, because the client rewrites the file when the coordinators change. If it
    /// cannot, a later start may connect to old coordinators.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an address, a name, a prefix or a cluster file that is not
    /// valid, [`ServerError::Unreachable`] if the cluster does not answer in time, or the client's
    /// error.
    pub fn open(self, address: &str) -> Result<FoundationDb> {
        let address = Address::parse(address)?;
        if let (Some(_), Some(name)) = (&self.prefix, &address.name) {
            let why =
                "a store has a name or a prefix; leave out the name of the address, or the prefix";
            return Err(Error::InvalidArgument { what: "the name", value: name.clone(), why });
        }
        let name = match (address.name.clone(), &self.name) {
            (Some(name), _) => name,
            (None, name) => checked_name(name.as_deref().unwrap_or("keyloom"))?,
        };
        let prefix = match &self.prefix {
            Some(prefix) => checked_prefix(prefix)?.to_vec(),
            None => pack(&(&*name,)).to_vec(),
        };
        let file = address.cluster_file();
        let path = file.checked()?;
        let place = format!("fdb:{path}, {}", keyloom::key::display(&prefix));
        let network = if self.network_runs { None } else { Some(User::start()?) };
        let link = Link::with_runtime(&place, self.timeout)?.after_fork(AFTER_FORK);
        if network.is_some() {
            link.spawn(at_exit::keep_last());
        }
        let shared = Shared {
            database: Database::new(Some(path)).map_err(|error| error::of_opening(error, &file))?,
            link,
            keys: Keyspace::new(&prefix),
            again: Again::default(),
            retry_policy: self.retry_policy.unwrap_or_else(|| patient_for(self.timeout)),
            batch_priority: self.batch_priority,
            conflict_keys: self.conflict_keys,
            signal: CommitSignal::default(),
            network,
        };
        let store = FoundationDb { shared: Arc::new(shared) };
        store.check(&file)?;
        Ok(store)
    }
}

/// A policy with very short pauses: the client adds its own back-off.
fn patient_for(timeout: Duration) -> RetryPolicy {
    RetryPolicy {
        first_pause: Duration::from_millis(1),
        max_pause: Duration::from_millis(10),
        max_elapsed: Some(timeout),
        ..RetryPolicy::remote()
    }
}

fn checked_prefix(prefix: &[u8]) -> Result<&[u8]> {
    // A key of FoundationDB has at most 10,000 bytes, so a key of 511 bytes fits after the prefix.
    // The prefix is sent and stored with each key.
    const MOST_BYTES: usize = 1_024;
    match prefix.first() {
        Some(first) if *first < 0xFF && prefix.len() <= MOST_BYTES => Ok(prefix),
        _ => Err(Error::InvalidArgument {
            what: "the prefix",
            value: keyloom::key::display(prefix).to_string(),
            why: "it has 1 to 1,024 bytes, of which the first is not FF",
        }),
    }
}
