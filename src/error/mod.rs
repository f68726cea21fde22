//! The one error type of the crate. Its variants are grouped by the remedy.

mod held_pages;
mod lmdb;
mod server;
mod shared;
mod storage;

use std::error::Error as StdError;
use std::fmt;
use std::path::PathBuf;

pub use held_pages::{HeldPages, OldestReader};
pub use lmdb::LmdbError;
pub use server::ServerError;
pub use shared::{BoxedError, Shared, SharedError};
pub use storage::StorageError;

use crate::backend::shown_key;
use crate::key::DecodeError;

/// The result of every fallible operation of keyloom.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every failure of an operation on a store.
///
/// Each message contains what happened, the key or file, and the remedy. The variants here are
/// errors that any store may return and on which a program can act. Errors that only some engines
/// return are nested in [`Error::Storage`], [`Error::Lmdb`] and [`Error::Server`].
///
/// Two methods often matter more than the variant. [`Error::is_retryable`] returns whether the
/// transaction can run again unchanged. [`Error::maybe_committed`] returns whether its writes may
/// be in the store although it returned an error. Both search [`Error::Other`] and the chain of
/// sources, so an error keeps its meaning if a program wraps it in its own error type.
///
/// ```
/// use keyloom::Error;
/// let wrapped = Error::other(Error::Conflict { what: "key (\"seat\", 7)".into() });
/// assert!(wrapped.is_retryable());
/// assert!(!wrapped.maybe_committed());
/// ```
///
/// `Debug` prints the same text as `Display`, with the remedy, because a `main` that returns the
/// error prints its `Debug` text.
///
/// ```
/// use keyloom::{Memory, Store, Writer};
/// let error = Memory::new().transact(|txn| txn.put(b"", b"")).unwrap_err();
/// assert_eq!(format!("{error:?}"), error.to_string());
/// ```
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // ---- mistakes of the caller: repair the call -----------------------------------------------
    /// The empty byte string is not a key. Give the key at least one element or byte.
    #[error("the key is empty; a key has 1 to {} bytes", crate::MAX_KEY_BYTES)]
    EmptyKey,
    /// The key is longer than keyloom allows on any backend. Shorten a field, or store a hash or a
    /// prefix of the field.
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
    /// The value is longer than this store allows ([`Limits::max_value_bytes`](crate::Limits)).
    /// Split the value over several keys.
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
    /// Stored bytes do not decode as a key of the expected type.
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
    /// A write to a store that was opened for reading only. Open the store without `read_only`.
    #[error("the store was opened for reading only; open it for writing to change it")]
    ReadOnly,
    /// This thread already has an open transaction on this store, so a second transaction would
    /// wait forever. Use the open transaction, or end it first.
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
        /// The data that has this format.
        what: String,
        /// The format found.
        found: u32,
        /// The newest format that this program reads.
        supported: u32,
    },

    // ---- limits: change the plan or provide more space
    // ---------------------------------------------
    /// The transaction exceeds the size limit of the store and can no longer be committed. Nothing
    /// was committed; do the work in several smaller transactions.
    #[error(
        "the transaction is too large: {actual} {unit}, the limit of this store is {limit}; split the work into smaller transactions"
    )]
    TransactionTooLarge {
        /// The unit of the numbers: `bytes` or `operations`.
        unit: &'static str,
        /// The size of the transaction when it was refused.
        actual: usize,
        /// The limit of the store.
        limit: usize,
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
    /// A snapshot or a transaction lived longer than the store allows. Read long ranges in
    /// [pages](crate::Reader::page), each from a new snapshot, and divide long writes into several
    /// transactions. Not retryable, because the same work would take as long again.
    #[error(
        "the snapshot is {age_ms} ms old, the limit of this store is {limit_ms} ms; read page by page from new snapshots"
    )]
    TooOld {
        /// The age of the snapshot or transaction.
        age_ms: u64,
        /// The limit.
        limit_ms: u64,
    },

    // ---- the outcome of a transaction: run it again, or check -----------------------------------
    /// Another transaction changed a key or range that this transaction had read. Nothing was
    /// committed; run the transaction again, as [`Store::transact`](crate::Store::transact) does.
    #[error("the transaction conflicts with another one on {what}; run it again")]
    Conflict {
        /// The key or the range of the conflict, if the store reports it.
        what: Box<str>,
    },
    /// All attempts of a transaction failed because of conflicts or an unavailable server. Nothing
    /// was committed. After conflicts, make the transaction shorter, or spread the writes over more
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
    /// An earlier write of a pattern in this transaction failed, and the body did not return its
    /// error. The write may be incomplete, so the transaction does not commit. Before such a write,
    /// check in the same transaction that it is possible (for a unique index, that the entry does
    /// not exist); or drop the transaction and begin another one.
    #[error(
        "the transaction does not commit, because an earlier write in it failed: {source}; read first whether the write is possible, or begin another transaction"
    )]
    CommitRefused {
        /// The error of the first write that failed.
        source: Box<Error>,
    },
    /// A query read more than its [`Budget`](crate::Budget) allows, or its caller stopped it. The
    /// query has no result. Request less (a smaller page, a more selective query), or raise the
    /// limit.
    #[error(
        "the query was stopped ({limit}) after {keys} keys and {bytes} bytes, at key {key}; ask for less, or raise the limit"
    )]
    OverBudget {
        /// The limit.
        limit: crate::OverBudget,
        /// The number of keys that the query has read.
        keys: u64,
        /// The bytes of keys and values that the query has read.
        bytes: u64,
        /// The key at which the query was stopped, printable.
        key: Box<str>,
    },
    /// The connection or the store failed during the commit. The writes may be in the store or not,
    /// or appear a little later. Make the transaction idempotent, and run it again: the transaction
    /// must first check, *in the transaction that writes*, whether its writes exist. A check in a
    /// snapshot before the transaction may come too early.
    #[error(
        "the outcome of the commit is unknown: {source}; run it again only if the same transaction first checks whether its writes exist"
    )]
    CommitUnknown {
        /// The failure.
        source: SharedError,
    },

    // ---- the engine and its files or table -----------------------------------------------------
    /// The store was opened before a `fork`, and the child must not use it. In the child, open the
    /// store again where its engine allows that.
    #[error(
        "the store {path} was opened by process {opened_by}, this is its fork {here}; {remedy}"
    )]
    Forked {
        /// The store.
        path: PathBuf,
        /// The process that opened the store.
        opened_by: u32,
        /// The process that used the store.
        here: u32,
        /// The remedy for the child process.
        remedy: &'static str,
    },

    /// A fault of the files or the table that contain the store, or of the disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A limit of LMDB: the memory map, the reader slots, the lock files.
    #[error(transparent)]
    Lmdb(#[from] LmdbError),
    /// The server or the cluster refused the work, or did not answer.
    #[error(transparent)]
    Server(#[from] ServerError),

    // ---- everything else -----------------------------------------------------------------------
    /// An error of the backend that has no variant of its own.
    #[error("the store failed: {0}")]
    Backend(#[source] SharedError),
    /// An error of the program itself, returned through a transaction. Retrieve the error with
    /// [`Error::downcast_ref`].
    #[error(transparent)]
    Other(SharedError),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// Wraps an error of the program, so that a [`transact`](crate::Store::transact) body can
    /// return it with `?`. With [`try_transact`](crate::Store::try_transact) the body can have its
    /// own error type.
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

    /// The error of type `T` that [`Error::other`] wraps, or the first error of this type among the
    /// sources.
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
        Self::At { key: shown_key(key), source: Box::new(self) }
    }

    /// Whether nothing was committed and the same transaction can succeed when it runs again.
    ///
    /// Also true for an error that wraps such an error.
    pub fn is_retryable(&self) -> bool {
        self.any(Self::calls_for_another_run)
            && !self.any(|error| matches!(error, Self::RetriesExhausted { .. }))
            && !self.maybe_committed()
    }

    fn calls_for_another_run(&self) -> bool {
        match self {
            Self::Conflict { .. } => true,
            Self::Lmdb(error) => error.calls_for_another_run(),
            Self::Server(error) => error.calls_for_another_run(),
            Self::Storage(error) => error.calls_for_another_run(),
            _ => false,
        }
    }

    /// Whether the writes of the transaction may be in the store although it returned an error.
    ///
    /// Also true for an error that wraps such an error.
    pub fn maybe_committed(&self) -> bool {
        self.any(|error| matches!(error, Self::CommitUnknown { .. }))
    }

    /// Whether the transaction was too large or took too long for the store, and nothing was
    /// committed: the same work can succeed in smaller transactions.
    ///
    /// Also true for an error that wraps such an error.
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
    /// or [`ServerError::Compacted`]. [`Snapshots`](crate::Snapshots) can read for longer.
    ///
    /// Also true for an error that wraps such an error.
    ///
    /// ```
    /// use keyloom::Error;
    /// let error = Error::other(Error::TooOld { age_ms: 6_000, limit_ms: 5_000 });
    /// assert!(error.is_outdated());
    /// ```
    pub fn is_outdated(&self) -> bool {
        self.any(|error| {
            let is_compacted = matches!(error, Self::Server(ServerError::Compacted { .. }));
            is_compacted || matches!(error, Self::TooOld { .. })
        })
    }

    /// Whether a query was stopped because of its [`Budget`](crate::Budget).
    ///
    /// Also true for an error that wraps such an error.
    pub fn is_over_budget(&self) -> bool {
        self.any(|error| matches!(error, Self::OverBudget { .. }))
    }

    /// Whether `test` holds for this error or for a keyloom error that it wraps.
    fn any(&self, test: impl Fn(&Self) -> bool) -> bool {
        // An engine's error may also be wrapped directly, without the variant that nests it.
        let bare = |error: &(dyn StdError + 'static)| -> Option<Self> {
            let storage = || error.downcast_ref::<StorageError>().cloned().map(Self::from);
            let lmdb = || error.downcast_ref::<LmdbError>().cloned().map(Self::from);
            let server = || error.downcast_ref::<ServerError>().cloned().map(Self::from);
            storage().or_else(lmdb).or_else(server)
        };
        self.chain().any(|error| match error.downcast_ref() {
            Some(error) => test(error),
            None => bare(error).is_some_and(|error| test(&error)),
        })
    }

    /// This error and the chain of errors that it wraps.
    fn chain(&self) -> impl Iterator<Item = &(dyn StdError + 'static)> {
        let first: &(dyn StdError + 'static) = self;
        std::iter::successors(Some(first), |&error| {
            // A transparent variant hides its content from `source`.
            let next = match error.downcast_ref() {
                Some(Self::Other(inner)) => Some(&**inner as &(dyn StdError + 'static)),
                Some(Self::Storage(inner)) => Some(inner as _),
                Some(Self::Lmdb(inner)) => Some(inner as _),
                Some(Self::Server(inner)) => Some(inner as _),
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

/// The holder of the write lock, for a message.
fn writer(holder: Option<u32>) -> String {
    match holder {
        Some(process) if process == std::process::id() => "another thread of this process".into(),
        Some(process) => format!("process {process}"),
        None => "another writer".into(),
    }
}

/// A value in a message; nothing if the value is empty.
fn quoted(value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {value:?}") }
}
