//! keyloom on [redb], a B-tree store in pure Rust for every platform: the data of one process, in
//! one file.
//!
//! ```
//! use keyloom::{Reader, Store, Writer};
//! use keyloom_redb::Redb;
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("cities");
//! let store = Redb::open(&path)?;
//! store.transact(|txn| txn.put(b"greeting", b"hello"))?;
//! assert_eq!(store.snapshot()?.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | property | value |
//! |---|---|
//! | processes | one process at a time has the file open; a second one gets [`StorageError::InUse`] |
//! | writers | one at a time; a second one waits. Readers never wait |
//! | reads | return slices of redb's cached pages, without a copy |
//! | a crash | loses no commit ([`Durability::Full`]); the next open checks the whole file, except with [`quick_repair`](RedbOptions::quick_repair) |
//! | a failed write or flush of the file | [`StorageError::Unusable`] until the store is opened again |
//! | limits | values of 3 GiB; a transaction of any size |
//!
//! The file contains the table `keyloom` with the keys and the table `keyloom.meta` with the format
//! version.
//!
//! [redb]: https://www.redb.org

mod reading;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use keyloom::backend::{
    ChangeListener, CommitSignal, Process, WriterSlot, refused_address, sync_name, unfinished_path,
};
use keyloom::{
    AnyStore, Error, HeldPages, Limits, Result, RetryPolicy, StorageError, Store, TransactionState,
};
use redb::{
    CommitError, Database, ReadableDatabase, TableDefinition, TableError, WriteTransaction,
};

use reading::{Open, RedbSnapshot, RedbTransaction};

type Bytes = &'static [u8];
type Table<'t> = redb::Table<'t, Bytes, Bytes>;

const TABLE: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("keyloom");
const META: TableDefinition<'_, &str, u32> = TableDefinition::new("keyloom.meta");
const FORMAT_KEY: &str = "format";
const FORMAT: u32 = 1;
/// The longest value that redb accepts.
const MAX_VALUE_BYTES: usize = 3 << 30;

/// When commits are synced to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A commit returns after its data is synced to the disk.
    #[default]
    Full,
    /// A commit syncs nothing. A crash of the program or of the machine loses the commits since the
    /// last [`Redb::flush`]; the store stays intact. Closing the store flushes.
    MayLoseCommits,
}

/// Options of a [`Redb`] store.
///
/// ```
/// use keyloom_redb::{Durability, Redb};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("cache");
/// let options = Redb::options().durability(Durability::MayLoseCommits).cache_bytes(1 << 26);
/// let store = options.open(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RedbOptions {
    durability: Durability,
    cache_bytes: usize,
    quick_repair: bool,
    create: bool,
    retry_policy: RetryPolicy,
}

impl Default for RedbOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            cache_bytes: 1 << 30,
            quick_repair: false,
            create: true,
            retry_policy: RetryPolicy::default(),
        }
    }
}

impl RedbOptions {
    /// The durability of commits.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The size of redb's page cache in bytes. Default: 1 GiB.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// With `true`, each commit also saves the list of free pages, so that opening the store after
    /// a crash does not read the whole file. Commits take longer: they flush twice.
    #[must_use]
    pub fn quick_repair(mut self, quick_repair: bool) -> Self {
        self.quick_repair = quick_repair;
        self
    }

    /// Whether to create a missing file. With `false`, opening such a store returns
    /// [`StorageError::MissingStore`]. Default: `true`.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// How many times [`transact`](Store::transact) retries a transaction, and after which pauses.
    /// redb has no conflicts, but a wrapper or the body may report one.
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// Opens the store in the file `path`.
    ///
    /// After a crash, this reads the whole file if [`quick_repair`](Self::quick_repair) was off. A
    /// new store is created in a temporary file next to `path` and linked to `path` when it is
    /// complete. A process that dies in between leaves no `path`, only a file `path.….new` that can
    /// be deleted.
    ///
    /// # Errors
    /// [`StorageError::InUse`], [`StorageError::MissingStore`], [`StorageError::MissingDirectory`],
    /// [`StorageError::PermissionDenied`], [`StorageError::NotAStore`], [`Error::NewerFormat`],
    /// [`StorageError::Damaged`], [`StorageError::DiskFull`], [`StorageError::Io`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Redb> {
        let path = path.as_ref();
        match (path.exists(), self.create) {
            (true, _) => {}
            (false, true) => create(path)?,
            (false, false) => {
                return Err(Error::Storage(StorageError::MissingStore { path: path.into() }));
            }
        }
        let database = Database::builder().set_cache_size(self.cache_bytes).open(path);
        let database = database.map_err(|error| named_at_open(path, error.into()))?;
        check_format(&database, path)?;
        let (options, path, slot) = (self.clone(), path.into(), WriterSlot::default());
        let process = Process::current();
        let signal = CommitSignal::default();
        Ok(Redb { shared: Arc::new(Shared { database, path, options, slot, signal, process }) })
    }
}

/// Creates a store. If another process has created the store meanwhile, the link fails and that
/// store is opened.
fn create(path: &Path) -> Result<()> {
    let unfinished = &*unfinished_path(path);
    let created = fill(unfinished).and_then(|()| match fs::hard_link(unfinished, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    });
    // If the store was not created, return the first error.
    let removed = fs::remove_file(unfinished).and_then(|()| sync_name(path));
    created.and(removed.map_err(redb::Error::from)).map_err(|error| named_at_open(path, error))
}

fn fill(path: &Path) -> Result<(), redb::Error> {
    let database = Database::create(path)?;
    let txn = database.begin_write()?;
    txn.open_table(META)?.insert(FORMAT_KEY, FORMAT)?;
    txn.open_table(TABLE)?;
    Ok(txn.commit()?)
}

fn check_format(database: &Database, path: &Path) -> Result<()> {
    let txn = database.begin_read().named(path)?;
    let meta = match txn.open_table(META) {
        Err(TableError::TableDoesNotExist(_)) => {
            let why = "it is a database of redb without the tables of keyloom".into();
            return Err(Error::Storage(StorageError::NotAStore { path: path.into(), why }));
        }
        meta => meta.named(path)?,
    };
    let found = meta.get(FORMAT_KEY).named(path)?.map_or(0, |format| format.value());
    if found <= FORMAT {
        return Ok(());
    }
    let what = path.display().to_string();
    Err(Error::NewerFormat { what, found, supported: FORMAT })
}

/// A store in a file of redb. Clones are handles of the same store; see the [crate](self).
#[derive(Clone, Debug)]
pub struct Redb {
    shared: Arc<Shared>,
}

struct Shared {
    database: Database,
    path: PathBuf,
    options: RedbOptions,
    slot: WriterSlot,
    signal: CommitSignal,
    process: Process,
}

impl Redb {
    /// Opens the store in the file `path`, and creates it if it is missing.
    ///
    /// # Errors
    /// The errors of [`RedbOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens the store at the address `redb:PATH`, for [`AnyStore::open_with`].
    ///
    /// ```
    /// use keyloom::AnyStore;
    /// use keyloom_redb::Redb;
    /// # let directory = tempfile::tempdir()?;
    /// # let address = format!("redb:{}", directory.path().join("cities").display());
    /// let store = AnyStore::open_with(&address, &[("redb", Redb::open_address)])?;
    /// assert_eq!(store.to_string(), address);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an address of another form, and the errors of
    /// [`RedbOptions::open`].
    pub fn open_address(address: &str) -> Result<AnyStore> {
        match address.strip_prefix("redb:") {
            Some(path) if !path.is_empty() => Ok(AnyStore::other(address, Self::open(path)?)),
            _ => Err(refused_address(address, "it is redb:FILE")),
        }
    }

    /// The options of a store.
    pub fn options() -> RedbOptions {
        RedbOptions::default()
    }

    /// The file of the store.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Syncs all commits to the disk. Useful with [`Durability::MayLoseCommits`].
    ///
    /// # Errors
    /// The errors of [`Store::begin`] and [`Transaction::commit`](keyloom::Transaction::commit).
    pub fn flush(&self) -> Result<()> {
        self.shared.process.check(&self.shared.path)?;
        let _turn = self.shared.slot.take()?;
        self.shared.commit(self.shared.write(Durability::Full)?)
    }
}

impl Drop for Redb {
    /// In a forked child, the database is never closed: closing would write to the file of the
    /// parent.
    fn drop(&mut self) {
        if self.shared.process != Process::current() {
            std::mem::forget(Arc::clone(&self.shared));
        }
    }
}

impl Shared {
    fn write(&self, durability: Durability) -> Result<WriteTransaction> {
        let mut txn = self.database.begin_write().named(&self.path)?;
        let durability = match durability {
            Durability::Full => redb::Durability::Immediate,
            Durability::MayLoseCommits => redb::Durability::None,
        };
        txn.set_durability(durability).named(&self.path)?;
        txn.set_quick_repair(self.options.quick_repair);
        Ok(txn)
    }

    /// redb rolls a poisoned transaction back. After any other error the outcome is unknown until
    /// the next open: the commit may have reached the disk.
    fn commit(&self, txn: WriteTransaction) -> Result<()> {
        txn.commit().map_err(|error| match error {
            CommitError::TransactionPoisoned => named(&self.path, error.into()),
            lost => Error::CommitUnknown { source: named(&self.path, lost.into()).into() },
        })
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

impl Store for Redb {
    type Snapshot<'s> = RedbSnapshot<'s>;
    type Transaction<'s> = RedbTransaction<'s>;

    fn snapshot(&self) -> Result<RedbSnapshot<'_>> {
        let shared = &*self.shared;
        shared.process.check(&shared.path)?;
        let txn = shared.database.begin_read().named(&shared.path)?;
        let table = txn.open_table(TABLE).named(&shared.path)?;
        Ok(RedbSnapshot { table, shared })
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<RedbSnapshot<'_>>> {
        let shared = &*self.shared;
        shared.process.check(&shared.path)?;
        let txn = shared.database.begin_read().named(&shared.path)?;
        let open = || {
            let table = txn.open_table(TABLE).named(&shared.path)?;
            Ok(RedbSnapshot { table, shared })
        };
        (0..count.max(1)).map(|_| open()).collect()
    }

    fn begin(&self) -> Result<RedbTransaction<'_>> {
        let shared = &*self.shared;
        shared.process.check(&shared.path)?;
        let turn = shared.slot.take()?;
        let txn = shared.write(shared.options.durability)?;
        let open = Open::try_new(txn, |txn| txn.open_table(TABLE));
        let open = open.named(&shared.path)?;
        let state = TransactionState::default();
        let changed = shared.signal.changed_keys();
        Ok(RedbTransaction { open, shared, state, has_written: false, changed, _turn: turn })
    }

    fn limits(&self) -> Limits {
        limits()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.shared.options.retry_policy
    }

    // Only one process can open a file of redb, so other processes commit nothing.
    fn listen(&self, key: &[u8]) -> ChangeListener {
        self.shared.signal.listen(key)
    }
}

fn limits() -> Limits {
    Limits::default().with_max_value_bytes(MAX_VALUE_BYTES)
}

/// Converts results of redb.
trait Named<T> {
    fn named(self, path: &Path) -> Result<T>;
}

impl<T, E: Into<redb::Error>> Named<T> for Result<T, E> {
    fn named(self, path: &Path) -> Result<T> {
        self.map_err(|error| named(path, error.into()))
    }
}

/// Converts an error of redb.
fn named(path: &Path, error: redb::Error) -> Error {
    let path = path.to_path_buf();
    match error {
        redb::Error::Io(source) => match source.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Error::Storage(StorageError::DiskFull {
                path,
                source: source.into(),
                held: HeldPages::default(),
            }),
            io::ErrorKind::PermissionDenied => {
                Error::Storage(StorageError::PermissionDenied { action: "write", path })
            }
            _ => Error::Storage(StorageError::Io { path, source: source.into() }),
        },
        redb::Error::PreviousIo => Error::Storage(StorageError::Unusable { path, source: None }),
        redb::Error::Corrupted(why) => Error::Storage(StorageError::Damaged { path, why }),
        redb::Error::DatabaseAlreadyOpen => Error::Storage(StorageError::InUse { path }),
        other => Error::Backend(other.into()),
    }
}

/// Converts an error of redb while a store is opened.
fn named_at_open(path: &Path, error: redb::Error) -> Error {
    let not_a_store =
        |why: String| Error::Storage(StorageError::NotAStore { path: path.into(), why });
    match error {
        redb::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
            not_a_store(source.to_string())
        }
        redb::Error::Io(source) if source.kind() == io::ErrorKind::NotFound => {
            Error::Storage(StorageError::MissingDirectory {
                path: path.parent().unwrap_or(path).into(),
            })
        }
        redb::Error::UpgradeRequired(_) => not_a_store(error.to_string()),
        other => named(path, other),
    }
}
