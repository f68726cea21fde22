//! keyloom on [fjall], a log-structured merge tree in pure Rust: the data of one process, in one
//! directory.
//!
//! ```
//! use keyloom::{Reader, Store, Writer};
//! use keyloom_fjall::Fjall;
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("cities");
//! let store = Fjall::open(&path)?;
//! store.transact(|txn| txn.put(b"greeting", b"hello"))?;
//! assert_eq!(store.snapshot()?.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A log-structured merge tree appends writes to a journal and sorts them in memory. Background
//! threads write sorted files and merge (compact) them. So random writes cost about as much as
//! sorted ones, but a read searches several files. Prefer LMDB or redb for loads that mostly read.
//!
//! | property | value |
//! |---|---|
//! | processes | one process at a time has the directory open; a second one gets [`StorageError::InUse`] |
//! | writers | any number, concurrently; if another transaction has overwritten the reads of a transaction, its commit fails with [`Error::Conflict`], and [`transact`](Store::transact) retries it |
//! | reads | return reference-counted slices of cached blocks or of the writes in memory |
//! | a crash | loses no commit ([`Durability::Full`]) |
//! | a failed write or flush | [`StorageError::Unusable`] until the store is opened again |
//! | limits | values of 4 GiB - 1; a transaction must fit into memory |
//!
//! The directory contains the keyspace `keyloom` with the keys and the keyspace `keyloom.meta` with
//! the format version.
//!
//! # Conflicts
//!
//! At commit, fjall checks whether a key or a range that the transaction has read was written since
//! the transaction began. A [`delete_range`](keyloom::Writer::delete_range) reads its range, and an
//! [`add`](keyloom::Writer::add) its key, so both conflict with other writers of the same keys.
//!
//! [fjall]: https://github.com/fjall-rs/fjall

mod reading;

use std::error::Error as StdError;
use std::fmt;
use std::fs;
use std::io;
use std::iter::successors;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{
    Keyspace, KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, PersistMode,
};
use keyloom::backend::{
    ChangeListener, CommitSignal, Process, refused_address, sync_name, unfinished_path,
};
use keyloom::{
    AnyStore, Error, HeldPages, Limits, Result, RetryPolicy, StorageError, Store, TransactionState,
};

use reading::{FjallSnapshot, FjallTransaction};

const KEYS: &str = "keyloom";
const META: &str = "keyloom.meta";
const FORMAT_KEY: &str = "format";
const FORMAT: u32 = 1;
/// The file that marks a directory as a database of fjall.
const MARKER: &str = "version";
/// The longest value that fjall accepts.
const MAX_VALUE_BYTES: usize = u32::MAX as usize;

/// When commits are synced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A commit returns after its journal is synced to the disk.
    #[default]
    Full,
    /// A commit syncs nothing. A crash of the machine loses the commits since the last
    /// [`Fjall::flush`]; a crash of the program loses nothing. The store stays intact.
    MayLoseCommits,
}

/// Options of a [`Fjall`] store.
///
/// ```
/// use keyloom_fjall::{Durability, Fjall};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("events");
/// let options = Fjall::options().durability(Durability::MayLoseCommits).cache_bytes(1 << 26);
/// let store = options.open(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FjallOptions {
    durability: Durability,
    cache_bytes: u64,
    create: bool,
    retry_policy: RetryPolicy,
}

impl Default for FjallOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            cache_bytes: 1 << 28,
            create: true,
            retry_policy: RetryPolicy::default(),
        }
    }
}

impl FjallOptions {
    /// The durability of commits.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The size of fjall's cache of blocks in bytes. Default: 256 MiB.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Whether to create a missing directory. With `false`, opening such a store returns
    /// [`StorageError::MissingStore`]. Default: `true`.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// How many times [`transact`](Store::transact) retries a transaction after a conflict, and
    /// after which pauses.
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// Opens the store in the directory `path`. After a crash, the journal is replayed.
    ///
    /// A new store is created in a temporary directory next to `path` and renamed to `path` when it
    /// is complete. A process that dies in between leaves no `path`, only a directory `path.….new`
    /// that can be deleted.
    ///
    /// # Errors
    /// [`StorageError::InUse`], [`StorageError::MissingStore`], [`StorageError::MissingDirectory`]
    /// for a parent that does not exist, [`StorageError::PermissionDenied`],
    /// [`StorageError::NotAStore`], [`Error::NewerFormat`], [`StorageError::Damaged`],
    /// [`StorageError::DiskFull`], [`StorageError::Io`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Fjall> {
        let path = path.as_ref();
        match (is_database(path)?, self.create) {
            (true, _) => {}
            (false, true) => create(path)?,
            (false, false) => {
                return Err(Error::Storage(StorageError::MissingStore { path: path.into() }));
            }
        }
        let database = OptimisticTxDatabase::builder(path).cache_size(self.cache_bytes);
        let database = database.open().map_err(|error| named_at_open(path, error))?;
        check_format(&database, path)?;
        let keys = database.keyspace(KEYS, KeyspaceCreateOptions::default).named(path)?;
        let (options, path, process) = (self.clone(), path.into(), Process::current());
        let signal = CommitSignal::default();
        Ok(Fjall { shared: Arc::new(Shared { database, keys, path, options, signal, process }) })
    }
}

/// Whether the directory contains a database of fjall. This is checked because fjall would create a
/// database among the other files of a directory.
fn is_database(path: &Path) -> Result<bool> {
    let not_a_store =
        |why: &str| Error::Storage(StorageError::NotAStore { path: path.into(), why: why.into() });
    if path.join(MARKER).exists() {
        return Ok(true);
    }
    match fs::read_dir(path).map(|mut entries| entries.next()) {
        Ok(None) => Ok(false),
        Ok(Some(_)) => Err(not_a_store("the directory has other files")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(not_a_store("it is a file; fjall keeps a directory"))
        }
        Err(error) => Err(named(path, error.into())),
    }
}

/// Creates a store in a temporary directory, since fjall cannot open a half-created database of a
/// process that died. If another process has created the store meanwhile, its store is used.
fn create(path: &Path) -> Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty())
        && !parent.is_dir()
    {
        return Err(Error::Storage(StorageError::MissingDirectory { path: parent.into() }));
    }
    let unfinished = &*unfinished_path(path);
    let created = fill(unfinished).and_then(|()| {
        // On Windows, a rename to an existing directory fails.
        let _empty_or_absent = fs::remove_dir(path);
        match fs::rename(unfinished, path) {
            Err(_) if path.join(MARKER).exists() => Ok(()),
            renamed => Ok(renamed?),
        }
    });
    if unfinished.exists() {
        // A failure is ignored: the directory can be deleted later, and the first error is more
        // useful.
        let _stays = fs::remove_dir_all(unfinished);
    }
    created.and_then(|()| Ok(sync_name(path)?)).map_err(|error| named_at_open(path, error))
}

fn fill(path: &Path) -> fjall::Result<()> {
    let database = OptimisticTxDatabase::builder(path).open()?;
    let meta = database.keyspace(META, KeyspaceCreateOptions::default)?;
    meta.insert(FORMAT_KEY, FORMAT.to_be_bytes())?;
    database.keyspace(KEYS, KeyspaceCreateOptions::default)?;
    database.persist(PersistMode::SyncAll)
}

fn check_format(database: &OptimisticTxDatabase, path: &Path) -> Result<()> {
    if !database.keyspace_exists(META) {
        let why = "it is a database of fjall without the keyspaces of keyloom".into();
        return Err(Error::Storage(StorageError::NotAStore { path: path.into(), why }));
    }
    let meta = database.keyspace(META, KeyspaceCreateOptions::default).named(path)?;
    let stored = meta.get(FORMAT_KEY).named(path)?;
    match stored.as_deref().and_then(|stored| stored.try_into().ok()).map(u32::from_be_bytes) {
        Some(found) if found <= FORMAT => Ok(()),
        Some(found) => {
            let what = path.display().to_string();
            Err(Error::NewerFormat { what, found, supported: FORMAT })
        }
        None => Err(Error::Storage(StorageError::Damaged {
            path: path.into(),
            why: "its format is not a number".into(),
        })),
    }
}

/// A store in a directory of fjall. Clones are handles of the same store; see the [crate](self).
#[derive(Clone, Debug)]
pub struct Fjall {
    shared: Arc<Shared>,
}

struct Shared {
    keys: OptimisticTxKeyspace,
    database: OptimisticTxDatabase,
    path: PathBuf,
    options: FjallOptions,
    signal: CommitSignal,
    process: Process,
}

impl Fjall {
    /// Opens the store in the directory `path`, and creates it if it is missing.
    ///
    /// # Errors
    /// The errors of [`FjallOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens the store at the address `fjall:PATH`, for [`AnyStore::open_with`].
    ///
    /// ```
    /// use keyloom::AnyStore;
    /// use keyloom_fjall::Fjall;
    /// # let directory = tempfile::tempdir()?;
    /// # let address = format!("fjall:{}", directory.path().join("cities").display());
    /// let store = AnyStore::open_with(&address, &[("fjall", Fjall::open_address)])?;
    /// assert_eq!(store.to_string(), address);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an address of another form, and the errors of
    /// [`FjallOptions::open`].
    pub fn open_address(address: &str) -> Result<AnyStore> {
        match address.strip_prefix("fjall:") {
            Some(path) if !path.is_empty() => Ok(AnyStore::other(address, Self::open(path)?)),
            _ => Err(refused_address(address, "it is fjall:DIRECTORY")),
        }
    }

    /// The options of a store.
    pub fn options() -> FjallOptions {
        FjallOptions::default()
    }

    /// The directory of the store.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Syncs all commits to the disk. Useful with [`Durability::MayLoseCommits`].
    ///
    /// # Errors
    /// [`Error::Forked`], [`StorageError::Unusable`], [`StorageError::DiskFull`],
    /// [`StorageError::Io`].
    pub fn flush(&self) -> Result<()> {
        let shared = &*self.shared;
        shared.process.check(&shared.path)?;
        shared.database.persist(PersistMode::SyncAll).named(&shared.path)
    }
}

impl Drop for Fjall {
    /// In a forked child, the database is never closed: closing would write to the files of the
    /// parent, and wait for threads that the child does not have.
    fn drop(&mut self) {
        if self.shared.process != Process::current() {
            std::mem::forget(Arc::clone(&self.shared));
        }
    }
}

impl Shared {
    fn keys(&self) -> &Keyspace {
        self.keys.inner()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, options, .. } = self;
        f.debug_struct("Shared")
            .field("path", path)
            .field("options", options)
            .finish_non_exhaustive()
    }
}

impl Store for Fjall {
    type Snapshot<'s> = FjallSnapshot<'s>;
    type Transaction<'s> = FjallTransaction<'s>;

    fn snapshot(&self) -> Result<FjallSnapshot<'_>> {
        let shared = &*self.shared;
        shared.process.check(&shared.path)?;
        Ok(FjallSnapshot { snapshot: shared.database.read_tx(), shared })
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<FjallSnapshot<'_>>> {
        Ok(vec![self.snapshot()?; count.max(1)])
    }

    fn begin(&self) -> Result<FjallTransaction<'_>> {
        let shared = &*self.shared;
        shared.process.check(&shared.path)?;
        let mode = match shared.options.durability {
            Durability::Full => PersistMode::SyncAll,
            Durability::MayLoseCommits => PersistMode::Buffer,
        };
        let txn = shared.database.write_tx().named(&shared.path)?.durability(Some(mode));
        let (state, changed) = (TransactionState::default(), shared.signal.changed_keys());
        Ok(FjallTransaction { txn, shared, state, changed })
    }

    fn limits(&self) -> Limits {
        limits()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.shared.options.retry_policy
    }

    // Only one process can open a directory of fjall, so other processes commit nothing.
    fn listen(&self, key: &[u8]) -> ChangeListener {
        self.shared.signal.listen(key)
    }
}

fn limits() -> Limits {
    Limits::default().with_max_value_bytes(MAX_VALUE_BYTES)
}

/// Converts results of fjall.
trait Named<T> {
    fn named(self, path: &Path) -> Result<T>;
}

impl<T> Named<T> for fjall::Result<T> {
    fn named(self, path: &Path) -> Result<T> {
        self.map_err(|error| named(path, error))
    }
}

/// Converts an error of fjall.
fn named(path: &Path, error: fjall::Error) -> Error {
    let path = path.to_path_buf();
    // Errors of the tree wrap the error of the system.
    let system = successors(Some(&error as &dyn StdError), |&error| error.source());
    let kind = system.filter_map(|error| error.downcast_ref()).map(io::Error::kind).next();
    if let Some(kind) = kind {
        let source = io::Error::new(kind, error).into();
        return match kind {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => {
                Error::Storage(StorageError::DiskFull { path, source, held: HeldPages::default() })
            }
            io::ErrorKind::PermissionDenied => {
                Error::Storage(StorageError::PermissionDenied { action: "write", path })
            }
            _ => Error::Storage(StorageError::Io { path, source }),
        };
    }
    match error {
        fjall::Error::Poisoned => Error::Storage(StorageError::Unusable { path, source: None }),
        fjall::Error::Locked => Error::Storage(StorageError::InUse { path }),
        error @ (fjall::Error::Storage(_)
        | fjall::Error::JournalRecovery(_)
        | fjall::Error::Decompress(_)
        | fjall::Error::InvalidTrailer
        | fjall::Error::InvalidTag(_)
        | fjall::Error::Unrecoverable) => {
            Error::Storage(StorageError::Damaged { path, why: error.to_string() })
        }
        other => Error::Backend(other.into()),
    }
}

/// Converts an error of fjall while a store is opened.
fn named_at_open(path: &Path, error: fjall::Error) -> Error {
    match error {
        fjall::Error::InvalidVersion(version) => {
            let why = match version {
                Some(version) => {
                    format!("it has the format {version:?} of another version of fjall")
                }
                None => "it is not a directory of fjall".to_owned(),
            };
            Error::Storage(StorageError::NotAStore { path: path.into(), why })
        }
        other => named(path, other),
    }
}
