//! The store on FoundationDB. keyloom uses FoundationDB's key encoding.
//!
//! Use FoundationDB if data must survive the loss of any machine, if one machine cannot hold the
//! data, or if one server is the bottleneck for its writers. FoundationDB is an ordered, strictly
//! serializable store over many machines, and its tuples are keyloom's keys:
//!
//! ```no_run
//! use keyloom::{Reader, Store, Writer};
//! use keyloom_foundationdb::FoundationDb;
//! let store = FoundationDb::open("fdb:/etc/foundationdb/fdb.cluster?name=geo")?;
//! let greeting = keyloom::pack(&("greeting",));
//! store.transact(|txn| txn.put(&greeting, b"hello"))?;
//! assert_eq!(store.snapshot()?.get(&greeting)?.as_deref(), Some(&b"hello"[..]));
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! A store consists of all keys with one prefix: the tuple of its
//! [name](FoundationDbOptions::name), or [bytes](FoundationDbOptions::prefix) such as the prefix of
//! a directory. The rest of a key, and the value, have the same bytes as in every other store. So
//! other bindings can read the keys of [`Subspace`](keyloom::Subspace), [`pack`](keyloom::pack) and
//! the patterns:
//!
//! ```python
//! space = fdb.Subspace(("geo",))          # a store opened with name=geo
//! for key, value in db[space.range()]:
//!     print(space.unpack(key), value)     # ("greeting",), ("cities", 2988507) ...
//! ```
//!
//! A key that is not a tuple, such as `b"greeting"`, is valid too, but `unpack` refuses it.
//!
//! [`Desc`](keyloom::Desc) is an extension of keyloom: other bindings refuse a key that contains a
//! `Desc`.
//!
//! # Requirements
//!
//! Linking and running require the client library `libfdb_c`, 7.3 or newer; the build also requires
//! libclang. The library must have the version of the cluster. For an older cluster, also install
//! that version's library as FoundationDB's [multi-version
//! client](https://apple.github.io/foundationdb/api-general.html#multi-version-client-api)
//! requires. If the library is not on a default path, `LIBRARY_PATH` names its directory for the
//! build and `LD_LIBRARY_PATH` for the run.
//!
//! *Tested: FoundationDB 7.3.79*, client and cluster, on one machine: the conformance suite, every
//! pattern, the isolation campaign, the tour, the Python binding of the same version, and kills of
//! the processes of a four-process cluster, one after the other. *Not tested*: clusters of several
//! machines, TLS, tenants, other versions.
//!
//! # Transactions
//!
//! A transaction is a FoundationDB transaction. A snapshot is a FoundationDB transaction that only
//! reads, at the version at which it was opened. At commit, the reads of a transaction are compared
//! with the writes of others. An overlap is an [`Error::Conflict`], which names the key or the
//! beginning of the range that was read, and [`transact`](Store::transact) retries the transaction.
//! Only the fetched part of a range counts as read. A snapshot does not conflict.
//!
//! After a retryable error (a conflict, a recovery, a limit of the cluster's load:
//! [`ServerError::Busy`]) the next transaction or snapshot of this thread waits for the client's
//! back-off, which grows with each failure. So the [retry
//! policy](FoundationDbOptions::retry_policy) adds hardly any pauses. The wait also affects an
//! unrelated transaction that begins within a second. A commit without an answer is an
//! [`Error::CommitUnknown`]: retry it only if the transaction first checks whether its writes
//! exist.
//!
//! [`add`](keyloom::Writer::add), [`min`](keyloom::Writer::min), [`max`](keyloom::Writer::max),
//! [`append_if_fits`](keyloom::Writer::append_if_fits) and
//! [`compare_and_clear`](keyloom::Writer::compare_and_clear) are the cluster's atomic operations.
//! They read nothing, so a counter that all writers change never conflicts. They do not validate
//! the old value either: a value that is not a counter is truncated or zero-extended, not refused
//! ([`apply`](keyloom::Writer::apply)). [`put_versionstamped`](keyloom::Writer::put_versionstamped)
//! writes the version of the commit into the key. **Do all reads first**: after the write,
//! FoundationDB refuses to read the range into which the new key may fall. That range begins at the
//! transaction's read version, or covers all stamps of the prefix if the transaction has read
//! nothing. The error is not retryable. Other stores allow the read, so tests in memory do not find
//! the mistake.
//!
//! Of these operations, only `min` and `max` can be repeated safely. A repeated `compare_and_clear`
//! may clear a value that another writer has put in the meantime. After a
//! [`CommitUnknown`](keyloom::Error::CommitUnknown), retry the others only together with a read
//! that shows whether they were executed. Read a key that only this request writes: such a read
//! does not conflict.
//!
//! # Cost
//!
//! | operation | round trips |
//! |---|---|
//! | snapshot | 1 |
//! | begin | 0; if the last transaction of the thread failed, waits for its back-off, at most for the time-out |
//! | the first read of a transaction, or the commit of a transaction without reads | 1 more, for a version |
//! | get, get_many, first, last, page | 1 |
//! | range_many | 1 for each 1,024 ranges; 1 more for all ranges with more than 80 kB of results |
//! | range | 1 per page; pages grow from 1,024 entries (in a transaction from 128) to 16,384, and end at 80 kB, the most that a server sends at once |
//! | count | as for `range`: the servers do not count |
//! | put, delete, delete_range, atomic operations | 0 |
//! | commit | 1; 0 without writes |
//!
//! # Limits
//!
//! | | limit | beyond it |
//! |---|---|---|
//! | age, from the first read on | 5 s | [`Error::TooOld`]: read in pages, write in several transactions |
//! | transaction | 10,000,000 bytes | [`Error::TransactionTooLarge`], at the write that exceeds the limit; reads count too, but only at the commit |
//! | value | 100,000 bytes | [`Error::ValueTooLong`] |
//!
//! The client counts a put as three times its key (the write and its conflict range), its value,
//! and 69 bytes. It counts a delete as four times its key and 70 bytes. The prefix of the store is
//! part of the key. Work in steps, such as a build, a repair or a load with `BatchSize`, adapts its
//! batches to the limit. FoundationDB recommends transactions below 1 MB. With
//! [`batch_priority`](FoundationDbOptions::batch_priority), transactions yield to other load.
//!
//! # Unsupported features
//!
//! Not supported are: tenants, tags, cached read versions and causal-read-risky reads, watches,
//! options of single transactions, manual conflict ranges, the versionstamp of a commit and
//! versionstamps in values, atomic operations on bits, and the minimum and maximum of byte strings.
//! TLS and multi-version clients are configured by environment variables of FoundationDB's client
//! (`FDB_TLS_CERTIFICATE_FILE`, `FDB_NETWORK_OPTION_EXTERNAL_CLIENT_DIRECTORY` and so on); neither
//! was tested. Automatic idempotency is not used: the documentation of FoundationDB 7.3 calls this
//! feature not ready for general use.
//!
//! # The network thread
//!
//! The client runs one network thread per process. The thread is started with the first store and
//! stopped when the process exits: when `main` returns, or by [`std::process::exit`], even if
//! stores are still open in statics or on other threads. The thread cannot be started twice. So a
//! program that starts the network itself must set
//! [`network_runs`](FoundationDbOptions::network_runs), and must also stop it. After a `fork`, the
//! child can neither use the store ([`Error::Forked`]) nor open it again: let the child `exec`, or
//! let the parent fork before it opens the store.
//!
//! # A silent cluster
//!
//! Every wait ends after the [time-out](FoundationDbOptions::timeout): opening a store with
//! [`ServerError::Unreachable`], a read with [`ServerError::ConnectionLost`], a commit with
//! [`Error::CommitUnknown`]. With the default retry policy, `transact` starts no new attempt after
//! that time.

mod address;
mod again;
mod at_exit;
mod error;
mod keyspace;
mod network;
mod options;
mod session;
mod user;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use foundationdb::{Database, Transaction};

pub use options::FoundationDbOptions;

use address::ClusterFile;
use again::Again;
use keyloom::backend::{ChangeListener, CommitSignal};
use keyloom::{AnyStore, Error, Limits, Result, RetryPolicy, ServerError, Store};
use keyloom_remote::{Link, Outcome, RemoteSnapshot, RemoteTransaction};
use keyspace::Keyspace;
use session::{FoundationDbSession, Kind};

/// A store on FoundationDB. Clones are cheap and share the store, and all threads may use it; see
/// the [module](self).
#[derive(Clone)]
pub struct FoundationDb {
    shared: Arc<Shared>,
}

/// The state that all handles and readers of a store share.
struct Shared {
    // Dropped first, since its transactions belong to the database.
    again: Again,
    database: Database,
    link: Link,
    keys: Keyspace,
    retry_policy: RetryPolicy,
    batch_priority: bool,
    conflict_keys: bool,
    /// Counts the waits for changes, each of which polls. The more waits there are, the longer are
    /// the pauses between their polls.
    signal: CommitSignal,
    // Dropped last: all other fields may use it.
    network: Option<user::User>,
}

/// The longest pause between two polls of a wait for a change.
// A poll is two round trips. Longer pauses cost fewer polls, and add to the latency of a change.
const POLL: Duration = Duration::from_millis(50);

/// The remedy for a forked child, which has no network thread and cannot start one.
const AFTER_FORK: &str = "FoundationDB's client does not work after a fork; fork before the first store is opened, or exec";

impl FoundationDb {
    /// Opens the store at `address` with the default [`options`](FoundationDb::options):
    /// `fdb:CLUSTER_FILE?name=NAME`.
    ///
    /// # Errors
    /// The errors of [`FoundationDbOptions::open`].
    pub fn open(address: &str) -> Result<Self> {
        Self::options().open(address)
    }

    /// Opens the store at the address for [`AnyStore::open_with`].
    ///
    /// ```no_run
    /// use keyloom::AnyStore;
    /// use keyloom_foundationdb::FoundationDb;
    /// let address = "fdb:?name=geo";
    /// let store = AnyStore::open_with(address, &[("fdb", FoundationDb::open_address)])?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`FoundationDbOptions::open`].
    pub fn open_address(address: &str) -> Result<AnyStore> {
        let store = Self::open(address)?;
        Ok(AnyStore::other(store.place(), store.clone()))
    }

    /// The options of a store.
    pub fn options() -> FoundationDbOptions {
        FoundationDbOptions::default()
    }

    /// The address of the store: the cluster file, and the prefix of all keys.
    pub fn place(&self) -> &str {
        self.shared.link.place()
    }

    fn session(&self, kind: Kind) -> Result<FoundationDbSession> {
        self.shared.link.refuse_fork()?;
        FoundationDbSession::new(Arc::clone(&self.shared), self.transaction()?, kind)
    }

    fn look(&self) -> Result<FoundationDbSession> {
        let session = self.session(Kind::Snapshot)?;
        session.look()?;
        Ok(session)
    }

    /// Waits for one answer of the cluster, so that `open` reports a fault of `file`.
    fn check(&self, file: &ClusterFile) -> Result<()> {
        let looked = self.look();
        // By now the client has created most of its statics.
        if self.shared.network.is_some() {
            at_exit::move_last();
        }
        match looked {
            Ok(_) => Ok(()),
            Err(Error::Server(ServerError::ConnectionLost { store, source })) => {
                Err(Error::Server(ServerError::Unreachable { store, source }))
            }
            Err(error) => Err(error::about_file(error, file)),
        }
    }

    /// The transaction that failed last on this thread, reset after its back-off, or a new
    /// transaction.
    fn transaction(&self) -> Result<Transaction> {
        let Shared { link, again, database, network, .. } = &*self.shared;
        if network.is_some() {
            network::refuse_exit()?;
            at_exit::watch_this_thread();
        }
        if let Some(failed) = again.take()
            && let Outcome::Answered(Ok(txn)) = link.wait_uncounted(link.timeout(), failed.again())
        {
            return Ok(txn);
        }
        database.create_trx().map_err(error::of_setup)
    }
}

impl fmt::Debug for FoundationDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FoundationDb").field(&self.place()).finish()
    }
}

impl Store for FoundationDb {
    /// A read version, valid for five seconds.
    type Snapshot<'s> = RemoteSnapshot<FoundationDbSession>;
    type Transaction<'s> = RemoteTransaction<FoundationDbSession>;

    fn snapshot(&self) -> Result<Self::Snapshot<'_>> {
        Ok(RemoteSnapshot::new(self.look()?))
    }

    fn begin(&self) -> Result<Self::Transaction<'_>> {
        Ok(RemoteTransaction::new(self.session(Kind::Transaction)?, self.limits()))
    }

    fn limits(&self) -> Limits {
        Limits::foundationdb()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.shared.retry_policy
    }

    fn round_trips(&self) -> Option<u64> {
        Some(self.shared.link.round_trips())
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        self.shared.signal.listen(key).unnotified().polling(POLL)
    }
}
