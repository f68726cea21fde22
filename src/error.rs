//! The one error type of the crate, grouped by who can do something about it.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::key::DecodeError;

/// The result of every fallible operation of keyloom.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of another library, or of the program.
pub type BoxedError = Box<dyn StdError + Send + Sync + 'static>;

/// An error of another library, or of the program, that clones of an [`Error`] share.
pub type SharedError = Shared<dyn StdError + Send + Sync + 'static>;

/// An error that clones of an [`Error`] share, since it cannot be cloned itself. Dereferences to
/// it.
///
/// ```
/// use keyloom::SharedError;
/// let error = SharedError::from("the disk is on fire");
/// assert_eq!(error.clone().to_string(), "the disk is on fire");
/// ```
pub struct Shared<T: ?Sized>(Arc<T>);

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: fmt::Display + ?Sized> fmt::Display for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<E: Into<BoxedError>> From<E> for SharedError {
    fn from(error: E) -> Self {
        Self(error.into().into())
    }
}

impl From<std::io::Error> for Shared<std::io::Error> {
    fn from(error: std::io::Error) -> Self {
        Self(error.into())
    }
}

/// Every failure of an operation on a store.
///
/// Each message contains what happened, the key or file, and the remedy. Two questions matter to a
/// program more than the variant, and have methods: can the transaction run again unchanged
/// ([`Error::is_retryable`]), and may its writes be in the store although it returned an error
/// ([`Error::maybe_committed`])? Both search [`Error::Other`] and the chain of sources, so an error
/// that a program wrapped in one of its own keeps its meaning.
///
/// ```
/// use keyloom::Error;
/// let wrapped = Error::other(Error::Conflict { what: "key (\"seat\", 7)".into() });
/// assert!(wrapped.is_retryable());
/// assert!(!wrapped.maybe_committed());
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // ---- mistakes of the caller: repair the call
    // --------------------------------------------------
    /// The empty byte string is not a key. Give the key at least one element or byte.
    #[error("the key is empty; a key has 1 to {} bytes", crate::MAX_KEY_BYTES)]
    EmptyKey,
    /// The key is longer than any backend may store. Shorten a field, or store a hash or a prefix
    /// of it.
    #[error(
        "the key {key} has {bytes} bytes, the limit is {limit}; shorten a field, or store a hash of it"
    )]
    KeyTooLong {
        /// The beginning of the key, printable.
        key: Box<str>,
        /// The length of the key.
        bytes: usize,
        /// The greatest length allowed.
        limit: usize,
    },
    /// The value is longer than this store takes ([`Limits::max_value_bytes`](crate::Limits)).
    /// Split it over several keys.
    #[error(
        "the value of key {key} has {bytes} bytes, the limit of this store is {limit}; split it over several keys"
    )]
    ValueTooLong {
        /// The key, printable.
        key: Box<str>,
        /// The length of the value.
        bytes: usize,
        /// The greatest length allowed.
        limit: usize,
    },
    /// Stored bytes are not the key that was expected there.
    #[error("a key does not decode: {0}; is another kind of data in this subspace?")]
    Key(#[from] DecodeError),
    /// A value could not be encoded or decoded by its codec.
    #[error("a value does not {action} as {codec}: {source}")]
    Value {
        /// The codec's name.
        codec: &'static str,
        /// `encode` or `decode`.
        action: &'static str,
        /// The error of the codec.
        source: SharedError,
    },
    /// An error, with the key at which it happened.
    #[error("at key {key}: {source}")]
    At {
        /// The key, printable.
        key: Box<str>,
        /// The error.
        source: Box<Error>,
    },
    /// The value of a counter does not have 8 bytes.
    #[error(
        "the value of key {key} has {bytes} bytes and is not a counter (8 bytes, little-endian)"
    )]
    NotACounter {
        /// The key, printable.
        key: Box<str>,
        /// The length of the value.
        bytes: usize,
    },
    /// A write to a store that was opened for reading only. Open it without `read_only`.
    #[error("the store was opened for reading only; open it for writing to change it")]
    ReadOnly,
    /// This thread already has an open transaction on this store, and would wait for itself. Use
    /// that transaction, or end it first.
    #[error("this thread already has an open transaction on this store; use it, or end it first")]
    NestedTransaction,
    /// A name or an option that is not valid.
    #[error("{what}{} is not usable: {why}", quoted(.value))]
    InvalidArgument {
        /// The option.
        what: &'static str,
        /// The value that was given.
        value: String,
        /// The reason, or the values that are valid.
        why: &'static str,
    },
    /// A stored format is newer than this version of keyloom. Upgrade the program.
    #[error(
        "{what} has format {found}, this program reads formats up to {supported}; upgrade the program"
    )]
    NewerFormat {
        /// The data that have this format.
        what: String,
        /// The format found.
        found: u32,
        /// The newest format that this program reads.
        supported: u32,
    },

    // ---- limits: change the plan or give more room ----------------------------------------------
    /// The transaction exceeds the size limit of the store and can no longer be committed. Nothing
    /// was committed; do the work in several smaller transactions.
    #[error(
        "the transaction is too large: {actual} {unit}, the limit of this store is {limit}; split the work into smaller transactions"
    )]
    TransactionTooLarge {
        /// The unit of the numbers: `bytes` or `operations`.
        unit: &'static str,
        /// The size when it was refused.
        actual: usize,
        /// The limit of the store.
        limit: usize,
    },
    /// The memory map of an LMDB store is full. [`Store::transact`](crate::Store::transact) retries
    /// the transaction if readers of dead processes were cleared, or if the map may still grow.
    /// Otherwise end the oldest reader, delete something, or open the store with a larger
    /// `max_map_bytes`.
    #[error("the memory map of {map_bytes} bytes is full; {}", held.remedy(&map_remedy(*map_bytes, *max_map_bytes)))]
    MapFull {
        /// The size of the map.
        map_bytes: usize,
        /// The size up to which it grows by itself.
        max_map_bytes: usize,
        /// The readers that keep freed pages from being reused.
        held: HeldPages,
    },
    /// The memory map of an LMDB store must grow, which is possible only without open snapshots,
    /// but some stayed open. Drop them before writing; read long ranges in pages.
    #[error(
        "the memory map must grow but {open} snapshots or transactions stayed open for {waited_ms} ms; drop them before writing"
    )]
    MapHeld {
        /// The number of snapshots and transactions open at the end of the wait.
        open: usize,
        /// The length of the wait.
        waited_ms: u64,
    },
    /// The write lock was not free within `begin_patience`. End the transaction that holds it, or
    /// wait longer. Not retryable, because the operation has already waited.
    #[error(
        "waited {waited_ms} ms for the write lock, now held by {}; end that transaction, or open the store with a larger `begin_patience`", writer(*holder)
    )]
    WriterBusy {
        /// The process that holds the lock, this one or another one, if the system reports it.
        holder: Option<u32>,
        /// The length of the wait.
        waited_ms: u64,
    },
    /// Another process has been opening the store for too long, has it open with
    /// `LmdbOptions::assume_no_writer`, or holds a lock (`flock`) on its
    /// directory for another reason. End that process, and open the store again.
    #[error(
        "another process has held a lock on {path} for {waited_ms} ms: it opens the store, or has it open with `assume_no_writer(true)`; end that process and try again"
    )]
    OpeningHeld {
        /// The directory of the store.
        path: PathBuf,
        /// The length of the wait.
        waited_ms: u64,
    },
    /// The system cannot reserve the address space for the memory map of a store that is opened, or
    /// for a larger map. The store and its map are unchanged. Raise the limit (`ulimit -v`), or set
    /// a smaller `map_bytes` or `max_map_bytes`.
    #[error(
        "the system cannot reserve {wanted_bytes} bytes of address space for the memory map: {source}; raise the limit (`ulimit -v`) or set a smaller `map_bytes` or `max_map_bytes`"
    )]
    AddressSpace {
        /// The size requested.
        wanted_bytes: usize,
        /// The error of the system.
        source: Shared<std::io::Error>,
    },
    /// A snapshot or a transaction lived longer than the store allows. Read long ranges in
    /// [pages](crate::Reader::page), each from a new snapshot, and divide long writes into several
    /// transactions. Not retryable, because the same work would take as long again.
    #[error(
        "the snapshot is {age_ms} ms old, the limit of this store is {limit_ms} ms; read page by page from new snapshots"
    )]
    TooOld {
        /// Its age.
        age_ms: u64,
        /// The limit.
        limit_ms: u64,
    },
    /// The server has compacted the revision that this snapshot or transaction reads. Read long
    /// ranges in [pages](crate::Reader::page), each from a new snapshot, and divide long writes into
    /// several transactions; or let the server keep its history longer.
    #[error(
        "revision {revision} has been compacted; read page by page from new snapshots, or let the server keep its history longer (etcd: --auto-compaction-retention)"
    )]
    Compacted {
        /// The revision that was read.
        revision: i64,
        /// The error of the server.
        source: SharedError,
    },
    /// The disk is full, or the file reached the size that the system allows. Earlier commits are
    /// kept; free some space and run the transaction again. On LMDB,
    /// [`Store::transact`](crate::Store::transact) retries it if readers of dead processes were
    /// cleared.
    #[error("no room on the disk for {path}: {source}; {}", held.remedy("free some space and try again"))]
    DiskFull {
        /// The store.
        path: PathBuf,
        /// The error of the system.
        source: Shared<std::io::Error>,
        /// The readers that keep freed pages from being reused, on LMDB.
        held: HeldPages,
    },
    /// Every reader slot is taken by a live snapshot. Drop snapshots earlier, or open the store
    /// with more slots. The first process that opens a store decides how many there are: close the
    /// store everywhere to get more.
    #[error(
        "all {max_readers} reader slots are taken; drop snapshots earlier, or close the store in all processes and open it with a larger `max_readers`"
    )]
    ReadersFull {
        /// The number of slots.
        max_readers: u32,
    },

    /// Every connection of the pool is in use: each open snapshot and each open transaction holds
    /// one. Drop them earlier, or open the store with more.
    #[error(
        "all {max_connections} connections were in use for {waited_ms} ms; drop snapshots earlier or open the store with more connections"
    )]
    ConnectionsBusy {
        /// The size of the pool.
        max_connections: usize,
        /// The length of the wait.
        waited_ms: u64,
    },

    // ---- the outcome of a transaction: run it again, or look
    // ---------------------------------------
    /// Another transaction changed a key or range that this one had read. Nothing of this one was
    /// committed; run it again, as [`Store::transact`](crate::Store::transact) does.
    #[error("the transaction conflicts with another one on {what}; run it again")]
    Conflict {
        /// The key or the range of the conflict, if the store reports it.
        what: Box<str>,
    },
    /// All attempts of a transaction failed with a conflict or without a server. Nothing was
    /// committed. After conflicts, make the transaction shorter, or spread the writes over more
    /// keys; otherwise check the server.
    #[error(
        "the transaction was given up after {attempts} attempts; the last one failed with: {source}"
    )]
    RetriesExhausted {
        /// The number of attempts.
        attempts: u32,
        /// The error of the last attempt.
        source: Box<Error>,
    },
    /// An earlier write of a pattern in this transaction failed, and its error was not returned
    /// from the transaction. The write may be incomplete, so the transaction does not commit.
    /// Before such a write, check in the same transaction that it is possible (for a unique index,
    /// that the entry does not exist); or drop the transaction and begin another one.
    #[error(
        "the transaction does not commit, because an earlier write in it failed: {source}; read first whether the write is possible, or begin another transaction"
    )]
    CommitRefused {
        /// The error of the first write that failed.
        source: Box<Error>,
    },
    /// A query read more than its [`Budget`](crate::Budget) allows, or its caller stopped it. It
    /// has no result. Ask for less (a smaller page, a more selective query), or raise the limit.
    #[error(
        "the query was stopped ({limit}) after {keys} keys and {bytes} bytes, at key {key}; ask for less, or raise the limit"
    )]
    OverBudget {
        /// The limit.
        limit: crate::OverBudget,
        /// The keys that it has read.
        keys: u64,
        /// The bytes of keys and values that it has read.
        bytes: u64,
        /// The key at which it was stopped, printable.
        key: Box<str>,
    },
    /// The connection to the server broke, or the server does not answer, and nothing was
    /// committed. Run the transaction again, as [`Store::transact`](crate::Store::transact) does:
    /// its retries bridge the restart of a server or the election of a leader.
    #[error("the connection to {store} was lost: {source}; nothing was committed, run it again")]
    ConnectionLost {
        /// The server, without a password.
        store: Box<str>,
        /// The error of the connection.
        source: SharedError,
    },
    /// The server refused the login. Check the user, the password, and the access rules of the
    /// server (`pg_hba.conf` on PostgreSQL).
    #[error(
        "{store} refused the login: {source}; check the user, the password, and the access rules of the server"
    )]
    LoginRefused {
        /// The server, without a password.
        store: Box<str>,
        /// The error of the server.
        source: SharedError,
    },
    /// The server cancelled a statement: it took longer than the options of the store allow, or an
    /// operator ended it. Nothing of the transaction was kept. Not retryable: the same work would
    /// take as long again.
    #[error(
        "{store} cancelled a statement: {source}; nothing was committed; do less in one transaction, find the one that holds a lock, or raise `timeout` (a statement may take {limit_ms} ms)"
    )]
    StatementCancelled {
        /// The server, without a password.
        store: Box<str>,
        /// The time-out of a statement.
        limit_ms: u64,
        /// The error of the server.
        source: SharedError,
    },
    /// The server or cluster did not answer when the store was opened. Check that it runs, and that
    /// the address or the cluster file names it.
    #[error("{store} does not answer: {source}; check that it runs and that the address names it")]
    Unreachable {
        /// The server, without a password.
        store: Box<str>,
        /// The time-out, or the error of the system.
        source: SharedError,
    },
    /// The cluster cannot run the transaction now: it recovers, is behind, or limits the load.
    /// Nothing was committed; [`Store::transact`](crate::Store::transact) retries it.
    #[error(
        "{store} cannot run the transaction now: {source}; nothing was committed, run it again"
    )]
    ServerBusy {
        /// The cluster.
        store: Box<str>,
        /// The error of the cluster.
        source: SharedError,
    },
    /// The connection or the store failed during the commit. The writes may be in the store or not,
    /// or appear a little later. Make the transaction idempotent, and run it again: it must first
    /// check, *in the transaction that writes*, whether its writes exist. A check in an earlier
    /// snapshot may come too early.
    #[error(
        "the outcome of the commit is unknown: {source}; run it again only if the same transaction first checks whether its writes exist"
    )]
    CommitUnknown {
        /// The failure.
        source: SharedError,
    },

    // ---- opening and the file beneath
    // ---------------------------------------------------------------
    /// The directory of the store does not exist.
    #[error("there is no directory {path}; create it, or check the path")]
    MissingDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The directory contains no store, and the options do not allow creating one.
    #[error("there is no store in {path}; open it with `create(true)` to make one")]
    MissingStore {
        /// The directory.
        path: PathBuf,
    },
    /// The system refuses the access.
    #[error(
        "no permission to {action} {path}; {}",
        if *action == "read" { "change its permissions" } else { "change its permissions, or open the store with `read_only(true)` to read only" }
    )]
    PermissionDenied {
        /// `read` or `write`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
    },
    /// The store was to be opened for reading, and the system refuses to open its lock file for
    /// writing. A snapshot takes a reader slot there, by which writers know which pages not to
    /// overwrite. Make the lock file writable; or assert with `LmdbOptions::assume_no_writer` that
    /// no process writes to the store.
    #[error(
        "the lock file {path} cannot be opened for writing: {source}; a snapshot takes a reader slot there, so make it writable, or open the store with `assume_no_writer(true)` if no process writes to it meanwhile"
    )]
    LockFileNotWritable {
        /// The lock file.
        path: PathBuf,
        /// The system's error.
        source: Shared<std::io::Error>,
    },
    /// The store was to be opened with
    /// `LmdbOptions::assume_no_writer`, but another process has it
    /// open and may write to it. End that process, or open the store without this option.
    #[error(
        "another process has {path} open and may write to it; end that process, or open the store without `assume_no_writer(true)`"
    )]
    OpenElsewhere {
        /// The store.
        path: PathBuf,
    },
    /// The file exists but is not a keyloom store.
    #[error("{path} is not a keyloom store: {why}")]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file is a store but is damaged. Restore it from a copy.
    #[error("the store {path} is damaged: {why}; restore it from a copy")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        why: String,
    },
    /// A system call failed within an operation that cannot be rolled back, and the engine now
    /// refuses every operation. Earlier commits are kept. Drop every handle of the store and open
    /// it again.
    #[error(
        "a failed system call left this handle of {path} unusable{}; drop all handles and open the store again",
        cause_text(source.as_ref())
    )]
    Unusable {
        /// The store.
        path: PathBuf,
        /// The error of the system call, if it is known.
        source: Option<Shared<std::io::Error>>,
    },
    /// A system call on a file of the store failed: the disk has a fault, too many files are open,
    /// and the like. Earlier commits are kept. Fix the cause, and try again.
    #[error("a system call failed at {path}: {source}; fix the cause and try again")]
    Io {
        /// The store, or the file.
        path: PathBuf,
        /// The error of the system.
        source: Shared<std::io::Error>,
    },
    /// This process already has the store open. Clone that handle: two maps of one file in one
    /// process break each other's locks.
    #[error("this process already has {path} open; clone that handle")]
    AlreadyOpen {
        /// The file.
        path: PathBuf,
    },
    /// Another handle, in this process or in another one, has the file open, and the engine allows
    /// only one. Clone the handle of this process, or end the other process.
    #[error(
        "{path} is already open, in this process or in another one, and its engine allows one handle at a time; clone that handle, or end that process"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The store was opened before a `fork`, and the child must not use it. In the child, open the
    /// store again where its engine allows that.
    #[error(
        "the store {path} was opened by process {opened_by}, this is its fork {here}; {remedy}"
    )]
    Forked {
        /// The store.
        path: PathBuf,
        /// The process that opened it.
        opened_by: u32,
        /// The process that used it.
        here: u32,
        /// The remedy for the child process.
        remedy: &'static str,
    },

    // ---- everything else
    // ------------------------------------------------------------------------------
    /// An error of the backend that has no variant of its own.
    #[error("the store failed: {0}")]
    Backend(#[source] SharedError),
    /// An error of the program itself, returned through a transaction. Get it with
    /// [`Error::downcast_ref`].
    #[error(transparent)]
    Other(SharedError),
}

impl Error {
    /// Wraps an error of the program's own, so that a [`transact`](crate::Store::transact) body can
    /// return it with `?`. In [`try_transact`](crate::Store::try_transact) the body has an error
    /// type of its own.
    ///
    /// ```
    /// use keyloom::{Error, Memory, Store};
    /// #[derive(Debug, thiserror::Error)]
    /// #[error("sold out")]
    /// struct SoldOut;
    /// let store = Memory::new();
    /// let error = store.transact(|_txn| -> keyloom::Result<()> { Err(Error::other(SoldOut)) }).unwrap_err();
    /// assert!(error.downcast_ref::<SoldOut>().is_some());
    /// ```
    pub fn other(error: impl Into<BoxedError>) -> Self {
        Self::Other(SharedError::from(error))
    }

    /// An address that is not valid. Any part of it may be a password, so only a known scheme is
    /// shown, or one that a path follows.
    pub(crate) fn refused_address(address: &str, why: &'static str) -> Self {
        const SCHEMES: [&str; 6] = ["memory", "lmdb", "postgres", "postgresql", "etcd", "fdb"];
        let is_scheme = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_lowercase())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        };
        let value = match address.split_once(':') {
            Some((scheme, _)) if SCHEMES.contains(&scheme) => format!("{scheme}:…"),
            Some((scheme, rest)) if is_scheme(scheme) && rest.starts_with('/') => {
                format!("{scheme}:…")
            }
            _ => "…".into(),
        };
        Self::InvalidArgument { what: "the address", value, why }
    }

    /// A name in the options that is not valid. It is shown, unless it resembles an address, which
    /// may contain a password.
    #[cfg(feature = "_remote")]
    pub(crate) fn refused_name(what: &'static str, name: &str, why: &'static str) -> Self {
        Self::InvalidArgument { what, value: Self::shown_name(name).into(), why }
    }

    /// The name, or dots if it resembles an address.
    #[cfg(feature = "_remote")]
    pub(crate) fn shown_name(name: &str) -> &str {
        let may_hold_password = name.contains([':', '@', '=', '%']);
        if may_hold_password { "…" } else { name }
    }

    /// The error of type `T` that [`Error::other`] carries, or the first one among the sources.
    ///
    /// Searches the whole chain of sources.
    ///
    /// ```
    /// use keyloom::{Error, key::pack};
    /// #[derive(Debug, thiserror::Error)]
    /// #[error("sold out")]
    /// struct SoldOut;
    /// let error = Error::other(SoldOut).at(&pack(&("seats", 7)));
    /// assert!(error.downcast_ref::<SoldOut>().is_some());
    /// ```
    pub fn downcast_ref<T: StdError + 'static>(&self) -> Option<&T> {
        self.chain().skip(1).find_map(|error| error.downcast_ref())
    }

    /// This error, with the key at which it happened.
    ///
    /// ```
    /// use keyloom::{Error, key::pack};
    /// let error = Error::ReadOnly.at(&pack(&("users", 7)));
    /// assert!(error.to_string().starts_with(r#"at key ("users", 7): the store was opened"#));
    /// ```
    #[must_use]
    pub fn at(self, key: &[u8]) -> Self {
        Self::At { key: shown(key), source: Box::new(self) }
    }

    /// Whether nothing of the transaction was committed and the same transaction can succeed when
    /// it runs again.
    ///
    /// Also true for an error that wraps this one.
    pub fn is_retryable(&self) -> bool {
        self.any(Self::calls_for_another_run)
            && !self.any(|error| matches!(error, Self::RetriesExhausted { .. }))
            && !self.maybe_committed()
    }

    fn calls_for_another_run(&self) -> bool {
        match self {
            Self::Conflict { .. } | Self::ConnectionLost { .. } | Self::ServerBusy { .. } => true,
            // `begin` makes the map larger, as long as it may grow.
            Self::MapFull { map_bytes, max_map_bytes, held } => {
                map_bytes < max_map_bytes || held.dead_readers > 0
            }
            Self::DiskFull { held, .. } => held.dead_readers > 0,
            _ => false,
        }
    }

    /// Whether the writes of the transaction may be in the store although it returned an error.
    ///
    /// Also true for an error that wraps this one.
    pub fn maybe_committed(&self) -> bool {
        self.any(|error| matches!(error, Self::CommitUnknown { .. }))
    }

    /// Whether the transaction was too large or too long for the store, and nothing of it was
    /// committed: the same work can succeed in smaller transactions.
    ///
    /// Also true for an error that wraps this one.
    ///
    /// ```
    /// use keyloom::{Error, key::pack};
    /// let error = Error::TooOld { age_ms: 6_000, limit_ms: 5_000 }.at(&pack(&"users"));
    /// assert!(error.is_batch_too_large() && !error.is_retryable());
    /// ```
    pub fn is_batch_too_large(&self) -> bool {
        let is_too_much =
            |error: &Self| matches!(error, Self::TransactionTooLarge { .. } | Self::TooOld { .. });
        self.any(is_too_much) && !self.maybe_committed()
    }

    /// Whether a snapshot or a transaction has become too old to be read: [`TooOld`](Self::TooOld)
    /// or [`Compacted`](Self::Compacted). [`Snapshots`](crate::Snapshots) read for longer.
    ///
    /// Also true for an error that wraps this one.
    ///
    /// ```
    /// use keyloom::Error;
    /// let error = Error::other(Error::TooOld { age_ms: 6_000, limit_ms: 5_000 });
    /// assert!(error.is_outdated());
    /// ```
    pub fn is_outdated(&self) -> bool {
        self.any(|error| matches!(error, Self::TooOld { .. } | Self::Compacted { .. }))
    }

    /// Whether a query was stopped because of its [`Budget`](crate::Budget).
    ///
    /// Also true for an error that wraps this one.
    pub fn is_over_budget(&self) -> bool {
        self.any(|error| matches!(error, Self::OverBudget { .. }))
    }

    /// Whether `test` holds for this error or a keyloom error that it wraps.
    fn any(&self, test: impl Fn(&Self) -> bool) -> bool {
        self.chain().filter_map(|error| error.downcast_ref()).any(test)
    }

    /// This error and the chain of errors that it wraps.
    fn chain(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let first: &(dyn StdError + 'static) = self;
        std::iter::successors(Some(first), |&error| {
            // A transparent variant hides its content from `source`.
            let next = match error.downcast_ref() {
                Some(Self::Other(inner)) => Some(&**inner as &(dyn StdError + 'static)),
                _ => error.source(),
            };
            // The source of a variant that boxes an error is the box.
            next.map(|next| match next.downcast_ref::<Box<Self>>() {
                Some(inner) => &**inner,
                None => next,
            })
        })
    }
}

/// The readers that keep an LMDB store from reusing pages that were freed. All zero on other
/// stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldPages {
    /// The number of readers of dead processes that were just cleared. If it is not 0, a retry of
    /// the transaction can succeed.
    pub dead_readers: u32,
    /// The reader that sees the oldest commit, if there are newer ones.
    pub oldest_reader: Option<OldestReader>,
}

/// An open snapshot of an LMDB store, in this process or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OldestReader {
    /// The process that holds it.
    pub process: u32,
    /// The number of commits since it began.
    pub commits: u64,
    /// Its age; `None` for a snapshot of another process.
    pub age: Option<Duration>,
}

impl HeldPages {
    /// The remedy: `otherwise`, unless readers are the cause.
    fn remedy(&self, otherwise: &str) -> String {
        match (self.dead_readers, self.oldest_reader) {
            (0, None) => otherwise.into(),
            (0, Some(reader)) => {
                format!("end {reader}, which keeps freed pages from being reused, or {otherwise}")
            }
            (dead, _) => format!("{dead} readers of dead processes were cleared, run it again"),
        }
    }
}

impl fmt::Display for OldestReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, commits, age } = self;
        match age {
            Some(age) => {
                let age_ms = age.as_millis();
                write!(
                    f,
                    "the snapshot of this process that is {age_ms} ms and {commits} commits old"
                )
            }
            None => write!(f, "the snapshot of process {process} that is {commits} commits old"),
        }
    }
}

/// The holder of the write lock, for a message.
fn writer(holder: Option<u32>) -> String {
    match holder {
        Some(process) if process == std::process::id() => "another thread of this process".into(),
        Some(process) => format!("process {process}"),
        None => "another writer".into(),
    }
}

fn map_remedy(map_bytes: usize, max_map_bytes: usize) -> String {
    if map_bytes < max_map_bytes {
        format!("run the transaction again, the map grows up to {max_map_bytes} bytes")
    } else {
        "delete something, or open the store with a larger `max_map_bytes`".into()
    }
}

/// A value in a message, unless it has no readable form.
fn quoted(value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {value:?}") }
}

/// The error of the system for a message, if it is known.
fn cause_text(source: Option<&Shared<std::io::Error>>) -> String {
    source.map(|source| format!(": {source}")).unwrap_or_default()
}

/// A key in a message: as a tuple if it is one, otherwise as bytes; at most 96 characters.
pub(crate) fn shown(key: &[u8]) -> Box<str> {
    const MOST_CHARS: usize = 96;
    let mut text = crate::key::display_named(key).to_string();
    if let Some((cut, _)) = text.char_indices().nth(MOST_CHARS) {
        text.truncate(cut);
        text.push('…');
    }
    text.into()
}
