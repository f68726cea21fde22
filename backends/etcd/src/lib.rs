//! A store in an etcd cluster.
//!
//! Use etcd for small data (at most some gigabytes) that must survive the loss of machines without
//! intervention, and that has many readers and few writes: settings, memberships, schedules. Each
//! commit waits until a quorum of the members has synced it, and a cluster executes some hundreds
//! or thousands of commits per second. For data on one machine use LMDB, which is a thousand times
//! as fast.
//!
//! ```no_run
//! use keyloom::{Reader, Store, Writer};
//! use keyloom_etcd::Etcd;
//! let store = Etcd::open("etcd://a:2379,b:2379,c:2379/settings")?;
//! store.transact(|txn| {
//!     let first = txn.get(b"owner")?.is_none();
//!     if first { txn.put(b"owner", b"Ada") } else { Ok(()) }
//! })?;
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! | key in etcd | contents |
//! |---|---|
//! | `<name>/<key>` | the key and its value, unchanged |
//! | `<name>.deleted` | the delete mark: empty, written by each transaction with deletes |
//!
//! Stores with other names have separate keys. A user of the cluster needs `readwrite` on the range
//! from `<name>/` to `<name>0` and on the key `<name>.deleted`.
//!
//! # Costs
//!
//! The table counts round trips ([`Store::round_trips`]), without attempts on other members:
//!
//! | operation | round trips |
//! |---|---|
//! | `snapshot` | 1 |
//! | `get`, `first`, `last`, `page`, `count` | 1; a `count` in a transaction fetches all keys of the range |
//! | `get_many` | 1, in up to 16 concurrent requests of 128 keys; 1 for each further 2,048 keys; for the first read of a transaction, 1 more if another writer commits between its requests |
//! | `range_many` | 1, in up to 16 concurrent requests of 128 ranges; 1 for each further 2,048 ranges; 1 more for all ranges with more entries than their share of 262,144; for the first read of a transaction, 1 more as for `get_many` |
//! | `range` | 1 for each page of 1,024, 4,096 and 16,384 entries; in a transaction, the first page has 128 |
//! | `begin` | 0 |
//! | a write | 0; writes are buffered until the commit |
//! | `commit` | 1, or 0 without writes |
//! | `add`, `min`, `max` | 1, since they read |
//!
//! A snapshot is a revision, and costs the cluster nothing while it is open. A single member can
//! answer the reads of a snapshot; only `snapshot` itself and the first read of a transaction
//! require the leader. Requests go to one member until it fails, and then to another.
//!
//! The cost of a round trip for the server varies:
//!
//! * **A descending range is sorted by the server**, which reads the whole range for each page. If
//!   the last entries are read often, wrap the field in [`Desc`](keyloom::Desc), so that they come
//!   first.
//! * For an ascending page, the server counts the rest of the range: a page of 10 entries took 15
//!   ms in a range of 100,000 entries, and 1 ms in a range of 1,000. Read narrow ranges:
//!   `range_many` of 1,000 ranges of 10 entries took 41 ms, but 1.1 s if the ranges had no end,
//!   among 30,000 entries.
//! * The commit reads each range of the transaction once more, on every member, while all other
//!   commits wait. Read narrow ranges in transactions that write.
//! * Pages are not limited in bytes, because etcd has no such limit. The first page fetches 1,024
//!   entries of any length (in a transaction 128), and only the size of the next page is adjusted.
//!   If values are long, use `page` with a limit of your own, and choose a low limit for
//!   `range_many`.
//!
//! # Limits of a transaction
//!
//! The table is for a store whose name has 7 characters. Each further character reduces the bytes
//! of a transaction by some 4 KB. From 28 characters on, it also reduces the number of writes.
//! [`limits`](Store::limits) returns the values.
//!
//! | limit | with the server's defaults | why |
//! |---|---|---|
//! | a key | 511 bytes | as in every store |
//! | a value | 1,370,625 bytes | together with the longest key in one transaction |
//! | writes of a transaction | 4,096 | half of `--max-txn-ops` (128), squared; nested in two or three levels |
//! | bytes of a transaction | 1,371,136 | `--max-request-bytes` (1.5 MiB) minus the space for the longest checks of all reads and for the frames of 4,096 writes |
//! | reads of a transaction that writes | 128 checks, 64 or 42 with many writes; more checks are merged | see below |
//! | a whole database | `--quota-backend-bytes`, 2 GiB | |
//!
//! The server accepts a transaction within these limits, with one exception: a put into a range
//! that the same transaction deletes takes two operations, because the range is deleted in pieces
//! around the key. A transaction that is too large is refused before it is sent. For a server with
//! other settings, set [`max_operations`](EtcdOptions::max_operations) and
//! [`max_request_bytes`](EtcdOptions::max_request_bytes).
//!
//! # Conflicts
//!
//! A transaction reads at the revision of its first read. Its commit is one request: *if* none of
//! its reads has changed since, apply all writes. Otherwise the commit fails with
//! [`Conflict`](keyloom::Error::Conflict), and [`transact`](keyloom::Store::transact) retries the
//! transaction. A transaction that only reads, or only writes, never conflicts.
//!
//! * A key has changed if it was deleted or written, even with the same value. Only the fetched
//!   part of a range is checked. `range` fetches page by page. `page` and `range_many` fetch the
//!   returned entries and one more; `first` and `last` fetch one entry. All of them fetch further
//!   if deletes of the transaction hide entries. `page` and `range_many` also do so if a page has
//!   more than 16,384 entries.
//! * **Hot keys**: if several transactions read and write the same key, only one of them succeeds
//!   at a time. `add`, `min` and `max` read and write: split a counter that all writers change into
//!   several keys.
//! * **Many reads**: the server takes up to 128 checks in one commit, 64 with more than 128 writes,
//!   and 42 with more than 4,033. A key that was read takes one check. A range takes one check, and
//!   one more for each key found in it. Beyond the limit, neighbours are merged into ranges,
//!   neighbours with the longest common prefix first. Then any write between the merged keys
//!   conflicts too, and so does **any transaction with deletes, anywhere in the store**: a range
//!   check cannot detect deletes, so the delete mark is checked. If another program deletes
//!   constantly, a transaction that scans more than 127 entries and writes may never succeed: scan
//!   in a snapshot, and let the transaction read only the keys that it changes. No real conflict is
//!   missed, as long as programs other than keyloom write the mark when they delete.
//! * **Every member reads merged ranges at the commit**, including the entries between the keys.
//!   500 keys scattered over 100,000 entries of 1 KB made a commit take half a second, and delayed
//!   all commits after it. Batches of adjacent keys, or of up to 100 keys, do not have this cost.
//!
//! # When the outcome is unknown
//!
//! If a connection breaks during a commit, a member dies, or no answer comes in time, the error is
//! [`CommitUnknown`](keyloom::Error::CommitUnknown): the writes may or may not be in the store, and
//! after a time-out they may still appear later. A commit is never sent twice. Make the transaction
//! idempotent: give the request a number, and write the number in the same transaction.
//!
//! ```no_run
//! use keyloom::{Reader, Result, Store, Writer, key::pack};
//! use keyloom_etcd::Etcd;
//! fn deposit(store: &Etcd, request: u64, amount: i64) -> Result<()> {
//!     let mut attempts_left = 5;
//!     loop {
//!         let done = store.transact(|txn| {
//!             let key = pack(&("done", request));
//!             if txn.get(&key)?.is_some() {
//!                 return Ok(());
//!             }
//!             txn.put(&key, b"")?;
//!             txn.add(&pack(&"account"), amount)
//!         });
//!         match done {
//!             // A cluster that is down may answer so each time, so not for ever.
//!             Err(error) if error.maybe_committed() && attempts_left > 0 => attempts_left -= 1,
//!             done => return done,
//!         }
//!     }
//! }
//! ```
//!
//! If the quota is used up, a commit fails with [`DiskFull`](StorageError::DiskFull) and writes
//! nothing; one more round trip verifies that the cluster's revision is unchanged. etcd executes
//! the write that uses up the quota, but returns the same error. That commit is `CommitUnknown`
//! with `DiskFull` as its source. So is a commit after a write of another program whose revision
//! this store has not seen yet. Afterwards etcd refuses deletes too, because they write the mark.
//! To recover, compact and defragment or raise the quota, and then disarm the alarm.
//!
//! # History
//!
//! Snapshots read the history that etcd keeps. A read of a compacted revision fails with
//! [`Compacted`](ServerError::Compacted). By default, etcd keeps all history until the quota is
//! used up. So run etcd with `--auto-compaction-mode=periodic --auto-compaction-retention=1h`; the
//! retention must be longer than the life of any snapshot.
//!
//! # Tests
//!
//! The conformance suite, the isolation campaign and the laws above ran on etcd 3.4.23, with three
//! members on one machine, and the leader killed 25 times under load. Other versions were not
//! tested. Do not use etcd 3.5 before 3.5.7, which can crash when a transaction with reads is
//! cancelled. A cluster that was restored from a backup has smaller revisions than its clients
//! remember: restart the clients, or restore with `--bump-revision --mark-compacted`. On the tested
//! cluster, without fsync, a read took 1 ms, a commit 2 ms, a commit of 4,096 writes 75 ms, and
//! 1,000 keys by `get_many` 24 ms.

mod address;
mod commit;
mod error;
mod keyspace;
mod members;
mod options;
mod reading;
mod room;
mod session;
mod validation;
mod watch;

#[cfg(doc)]
use keyloom::{ServerError, StorageError};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

pub use options::EtcdOptions;

/// The parts of an address, without the password. Opens no connection.
// Hidden: only for the fuzz targets of this repository.
#[cfg(feature = "_fuzz")]
#[doc(hidden)]
pub fn shown_address(address: &str) -> keyloom::Result<String> {
    address::Address::parse(address).map(|address| format!("{address:?}"))
}

use keyspace::Keyspace;
use members::Members;
use options::Plan;
use room::Room;
use session::{SnapshotSession, TransactionSession};

use keyloom::backend::ChangeListener;
use keyloom::{AnyStore, Limits, Result, RetryPolicy, Store, check_key};
use keyloom_remote::{Link, RemoteSnapshot, RemoteTransaction};

/// A store in an etcd cluster. Clones are cheap and share the store, and all threads may use it.
///
/// ```no_run
/// use keyloom::{Reader, Store, Writer};
/// use keyloom_etcd::Etcd;
/// let store = Etcd::open("etcd://a:2379,b:2379,c:2379/keyloom")?;
/// store.transact(|txn| txn.put(b"greeting", b"hello"))?;
/// assert_eq!(store.snapshot()?.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone)]
pub struct Etcd {
    shared: Arc<Shared>,
}

/// The state that all handles and readers of a store share.
#[derive(Debug)]
struct Shared {
    // Dropped first: the link drives the connections.
    members: Members,
    link: Link,
    keys: Keyspace,
    room: Room,
    retry_policy: RetryPolicy,
    /// The newest revision in any answer.
    newest_seen: AtomicI64,
}

impl Etcd {
    /// Opens the store at `address` with the default [`options`](Etcd::options):
    /// `etcd://host:port,host:port/name`.
    ///
    /// # Errors
    /// The errors of [`EtcdOptions::open`].
    pub fn open(address: &str) -> Result<Self> {
        Self::options().open(address)
    }

    /// Opens the store at the address for [`AnyStore::open_with`].
    ///
    /// ```no_run
    /// use keyloom::AnyStore;
    /// use keyloom_etcd::Etcd;
    /// let address = "etcd://a:2379,b:2379,c:2379/settings";
    /// let store = AnyStore::open_with(address, &[("etcd", Etcd::open_address)])?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`EtcdOptions::open`].
    pub fn open_address(address: &str) -> Result<AnyStore> {
        let store = Self::open(address)?;
        Ok(AnyStore::other(store.place(), store.clone()))
    }

    /// The options of a store.
    pub fn options() -> EtcdOptions {
        EtcdOptions::default()
    }

    /// The address of the store: `etcd://host:port,host:port/name`, without user and password.
    pub fn place(&self) -> &str {
        self.shared.link.place()
    }

    fn from_plan(plan: Plan) -> Result<Self> {
        let keys = Keyspace::new(&plan.name);
        let room = Room::new(plan.max_operations, plan.max_request_bytes, keys.prefix_bytes());
        let shared = Shared {
            members: Members::new(plan.urls, plan.connect),
            link: Link::with_runtime(&plan.place, plan.timeout)?,
            keys,
            room,
            retry_policy: plan.retry_policy,
            newest_seen: AtomicI64::default(),
        };
        shared.first_revision()?;
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Etcd").field(&self.shared.link.place()).finish()
    }
}

impl Etcd {
    fn snapshot_at(&self, revision: i64) -> RemoteSnapshot<SnapshotSession> {
        RemoteSnapshot::new(SnapshotSession::new(Arc::clone(&self.shared), revision))
    }
}

impl Store for Etcd {
    /// A revision.
    type Snapshot<'s> = RemoteSnapshot<SnapshotSession>;
    /// Reads at the revision of its first read, and buffers its writes until the commit.
    type Transaction<'s> = RemoteTransaction<TransactionSession>;

    fn snapshot(&self) -> Result<Self::Snapshot<'_>> {
        let revision = self.shared.revision()?;
        Ok(self.snapshot_at(revision))
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<Self::Snapshot<'_>>> {
        let revision = self.shared.revision()?;
        Ok((0..count.max(1)).map(|_| self.snapshot_at(revision)).collect())
    }

    fn begin(&self) -> Result<Self::Transaction<'_>> {
        let session = TransactionSession::new(Arc::clone(&self.shared));
        Ok(RemoteTransaction::new(session, self.limits()))
    }

    fn limits(&self) -> Limits {
        self.shared.room.limits()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.shared.retry_policy
    }

    fn round_trips(&self) -> Option<u64> {
        Some(self.shared.link.round_trips())
    }

    // Does not use `listen`: a read of one key takes one round trip, but a snapshot and a get take
    // two. Also, a watch from the revision of the read needs no second read after it has begun.
    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool> {
        check_key(key)?;
        self.shared.wait_for_change(key, seen, timeout)
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        watch::listen(&self.shared, key)
    }
}
