//! A store in an etcd cluster.
//!
//! When etcd? When what is kept is small (some gigabytes at most), must survive the loss of
//! machines without anybody doing anything, and is read by many and written at a human pace:
//! settings, memberships, schedules. Each commit waits until most members have it on their
//! disks, and a cluster carries some hundreds or thousands of them in a second. For data of one
//! machine take LMDB, which is a thousand times as fast.
//!
//! ```no_run
//! use keyloom::{Etcd, Reader, Store, Writer};
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
//! | key in etcd | what it is |
//! |---|---|
//! | `<name>/<key>` | the key and its value, unchanged |
//! | `<name>.deleted` | the delete mark: empty, written by each transaction that deletes something |
//!
//! Stores with other names lie apart. A user of the cluster needs `readwrite` on the range from
//! `<name>/` to `<name>0` and on the key `<name>.deleted`.
//!
//! # What it costs
//!
//! Counted in round trips ([`Store::round_trips`]); attempts on another member come on top:
//!
//! | operation | round trips |
//! |---|---|
//! | `snapshot` | 1 |
//! | `get`, `first`, `last`, `page`, `count` | 1; a `count` in a transaction brings all keys of the range |
//! | `get_many` | 1, in up to 16 requests of 128 keys at once; 1 for each further 2,048 keys; as the first read of a transaction 1 more if another writer commits between its requests |
//! | `range_many` | 1, in up to 16 requests of 128 ranges at once; 1 for each further 2,048 ranges; 1 more for all ranges with more entries than their share of 262,144; as the first read of a transaction 1 more, as for `get_many` |
//! | `range` | 1 for each page of 1,024, 4,096 and 16,384 entries; in a transaction the first has 128 |
//! | `begin` | 0 |
//! | a write | 0; writes wait for the commit |
//! | `commit` | 1, or 0 without writes |
//! | `add`, `min`, `max` | 1: they read |
//!
//! A snapshot is a revision, and costs the cluster nothing while it is open. Reads at it are
//! answered by whichever member is asked, alone; only `snapshot` and the first read of a
//! transaction ask the leader. Requests go to one member as long as it answers, and then to
//! another.
//!
//! What a round trip costs the server is another matter:
//!
//! * **A descending range is sorted by the server**, which reads all of it for each page. Where the
//!   last entries are wanted often, make them the first: wrap the field in [`Desc`](crate::Desc).
//! * An ascending page makes the server count what is left of the range: 10 entries of a range of
//!   100,000 took 15 ms where 10 of 1,000 took 1 ms. Read narrow ranges: `range_many` of 1,000
//!   ranges of 10 entries took 41 ms, and 1.1 s where they had no end among 30,000 entries.
//! * The commit reads each range that the transaction read once more, on every member, while all
//!   other commits wait. Read narrow ranges in transactions that write.
//! * Pages have no bound in bytes: etcd has none to ask for. The first page brings its 1,024
//!   entries however long they are, and only the next is shorter. Take a `page` with a limit of
//!   your own where values are long. The same holds for the limit of `range_many`.
//!
//! # What fits
//!
//! For a store whose name has up to 7 characters; each further one takes some 4 KB of a
//! transaction's bytes, and from 28 on some of its writes. [`limits`](Store::limits) says it.
//!
//! | limit | with the server's defaults | why |
//! |---|---|---|
//! | a key | 511 bytes | as everywhere |
//! | a value | 1,370,625 bytes | beside the longest key in one transaction |
//! | writes of a transaction | 4,096 | half of `--max-txn-ops` (128), squared; nested in two or three levels |
//! | bytes of a transaction | 1,371,136 | `--max-request-bytes` (1.5 MiB) without what the longest checks of all reads and the frames of 4,096 writes take |
//! | reads of a transaction that writes | 128 checks, 64 or 42 beside many writes; more are merged | see below |
//! | a whole database | `--quota-backend-bytes`, 2 GiB | |
//!
//! What keeps within these limits the server takes, with one exception: a key that is put into a
//! range which the same transaction deletes counts three times, because the range is deleted in
//! pieces around it. What is too large is refused before it is sent. A server with other settings
//! needs [`max_operations`](EtcdOptions::max_operations) and
//! [`max_request_bytes`](EtcdOptions::max_request_bytes).
//!
//! # What conflicts
//!
//! A transaction reads at one revision, that of its first read. Its commit is one request: *if*
//! nothing that it read has changed since, write everything. Otherwise it is
//! [`Conflict`](crate::Error::Conflict), and [`transact`](crate::Store::transact) runs it again. A
//! transaction that only reads never conflicts, and neither does one that only writes.
//!
//! * A key counts as changed when it was written, with the same value too, or deleted. A range
//!   counts as far as it was fetched: page by page, and `page`, `range_many`, `first` and `last` as
//!   much as they return and one entry more.
//! * **Hot keys**: of many transactions that read and write the same key one at a time succeeds.
//!   `add`, `min` and `max` read and write; spread a counter that all touch over some keys.
//! * **Many reads**: the server takes up to 128 checks in one commit, 64 beside more than 128
//!   writes, and 42 beside more than 4,033. A key that was read is one check, and a range is one
//!   and one for each key that was found in it. Beyond that, neighbours are merged into ranges,
//!   those that have the longest common prefix first; then any write between them conflicts too,
//!   and so does **any transaction that deletes something, wherever in the store**: deletes leave
//!   no trace in a range, and are found by the delete mark. So beside a program that deletes all
//!   the time, a transaction that scans more than 127 entries and writes may never come through:
//!   scan in a snapshot, and let the transaction read again only what it changes. No true conflict
//!   is missed, unless a program that is not keyloom deletes without writing the mark.
//! * **Merged ranges are read by every member at the commit**, with what lies between the keys. 500
//!   keys scattered over 100,000 entries of 1 KB made a commit take half a second, and
//!   delayed all commits after it. Batches of adjacent keys, or of 100 keys, do not have this cost.
//!
//! # When the outcome is unknown
//!
//! A connection that breaks during a commit, a member that dies, or no answer in time is
//! [`CommitUnknown`](crate::Error::CommitUnknown): the writes are there, or not, or (after no
//! answer) come later. A commit is never sent twice. Make the transaction idempotent: give the
//! request a number, and put it with the writes.
//!
//! ```no_run
//! use keyloom::{Etcd, Reader, Result, Store, Writer, key::pack};
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
//! Where the quota is used up a commit is [`DiskFull`](crate::Error::DiskFull), and wrote nothing:
//! that the revision of the cluster is still the one before the commit shows it, for one round trip
//! more. etcd carries out the write that uses up the quota and answers with the same error; that
//! one commit, and one beside which another program writes, is `CommitUnknown` with `DiskFull` as
//! its source. From then on etcd takes no deletes either, because they write the mark. Compact and
//! defragment, or raise the quota, and disarm the alarm.
//!
//! # The history
//!
//! Snapshots read the history that etcd keeps. A read of a compacted revision fails with
//! [`Compacted`](crate::Error::Compacted). By default etcd keeps all history until the quota is used
//! up, so run it with `--auto-compaction-mode=periodic --auto-compaction-retention=1h`; choose a
//! retention that is longer than any snapshot lives.
//!
//! # What was tested
//!
//! The conformance suite, the isolation campaign and the laws above on etcd 3.4.23, three members
//! on one machine, the leader killed 25 times under load. Other versions were not run; do not use
//! etcd 3.5 before 3.5.7, which can crash when a transaction that reads is called off. A cluster
//! that was restored from a backup has smaller revisions than its clients remember: restart them,
//! or restore with `--bump-revision --mark-compacted`. There, and without waiting for disks, a read
//! took 1 ms, a commit 2 ms, a commit of 4,096 writes 75 ms, and 1,000 keys by `get_many` 24 ms.

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

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

pub use options::EtcdOptions;

/// What an address says, without the password; connects to nothing.
#[cfg(feature = "_fuzz")]
#[doc(hidden)]
pub fn shown_address(address: &str) -> crate::Result<String> {
    address::Address::parse(address).map(|address| format!("{address:?}"))
}

use keyspace::Keyspace;
use members::Members;
use options::Plan;
use room::Room;
use session::{SnapshotSession, TransactionSession};

use crate::remote::{Link, RemoteEntries, RemoteSnapshot, RemoteTransaction};
use crate::{Limits, Result, RetryPolicy, Store};

/// A view of an [`Etcd`] store that never changes: a revision.
pub type EtcdSnapshot = RemoteSnapshot<SnapshotSession>;

/// A transaction of an [`Etcd`] store.
pub type EtcdTransaction = RemoteTransaction<TransactionSession>;

/// The entries of a range of an [`EtcdSnapshot`].
pub type EtcdEntries<'r> = RemoteEntries<'r, SnapshotSession>;

/// The entries of a range of an [`EtcdTransaction`], which records them as read.
pub type EtcdTrackedEntries<'r> = RemoteEntries<'r, TransactionSession>;

/// A store in an etcd cluster. A handle: cheap to clone, and safe to use from many threads.
///
/// ```no_run
/// use keyloom::{Etcd, Reader, Store, Writer};
/// let store = Etcd::open("etcd://a:2379,b:2379,c:2379/keyloom")?;
/// store.transact(|txn| txn.put(b"greeting", b"hello"))?;
/// assert_eq!(store.snapshot()?.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone)]
pub struct Etcd {
    shared: Arc<Shared>,
}

/// What all handles and readers of a store share.
#[derive(Debug)]
struct Shared {
    // Dropped first: the connections are driven by the link.
    members: Members,
    link: Link,
    keys: Keyspace,
    room: Room,
    retry_policy: RetryPolicy,
    /// The newest revision that an answer had.
    newest_seen: AtomicI64,
}

impl Etcd {
    /// Opens the store at `address` with the default [`options`](Etcd::options):
    /// `etcd://host:port,host:port/name`.
    ///
    /// # Errors
    /// As [`EtcdOptions::open`].
    pub fn open(address: &str) -> Result<Self> {
        Self::options().open(address)
    }

    /// The options to open a store with.
    pub fn options() -> EtcdOptions {
        EtcdOptions::default()
    }

    /// Where the store is: `etcd://host:port,host:port/name`, without user and password.
    pub fn place(&self) -> &str {
        self.shared.link.place()
    }

    fn from_plan(plan: Plan) -> Result<Self> {
        let keys = Keyspace::new(&plan.name);
        let room = Room::new(plan.max_operations, plan.max_request_bytes, keys.prefix_bytes());
        let shared = Shared {
            members: Members::new(plan.urls, plan.connect),
            link: Link::new(&plan.place, plan.timeout)?,
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

impl Store for Etcd {
    type Snapshot<'s> = EtcdSnapshot;
    type Transaction<'s> = EtcdTransaction;

    fn snapshot(&self) -> Result<EtcdSnapshot> {
        let revision = self.shared.revision()?;
        Ok(RemoteSnapshot::new(SnapshotSession::new(Arc::clone(&self.shared), revision)))
    }

    fn begin(&self) -> Result<EtcdTransaction> {
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
}
