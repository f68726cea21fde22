//! The options of a store.

#[cfg(doc)]
use crate::{LmdbError, StorageError};
use std::path::Path;
use std::time::Duration;

use super::{Lmdb, open};
use crate::{Error, Result, RetryPolicy};

/// Which commits survive a crash of the machine. A crash of the program alone never loses a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// A commit returns after it is synced to the disk. This is the only mode in which keyloom
    /// promises durability.
    #[default]
    Full,
    /// A commit syncs its data but not the meta page that makes it valid: a crash of the machine
    /// may undo the last transaction, but leaves the store intact.
    MayLoseLastCommit,
    /// A commit syncs nothing: a crash of the machine may leave the store unreadable. For data that
    /// can be loaded again.
    MayLoseStore,
}

/// Options of an [`Lmdb`] store.
///
/// ```
/// use keyloom::{Lmdb, lmdb::Durability};
/// let directory = tempfile::tempdir()?;
/// let store = Lmdb::options()
///     .durability(Durability::MayLoseStore)
///     .map_bytes(1 << 30)
///     .open(directory.path())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LmdbOptions {
    pub(super) name: String,
    pub(super) map_bytes: usize,
    pub(super) max_map_bytes: usize,
    pub(super) max_readers: u32,
    pub(super) durability: Durability,
    pub(super) read_only: bool,
    pub(super) assume_no_writer: bool,
    pub(super) create: bool,
    pub(super) grow_patience: Duration,
    pub(super) begin_patience: Duration,
    pub(super) retry_policy: RetryPolicy,
}

impl Default for LmdbOptions {
    fn default() -> Self {
        Self {
            name: "keyloom".into(),
            map_bytes: 64 << 30,
            max_map_bytes: 64 << 40,
            max_readers: 1024,
            durability: Durability::Full,
            read_only: false,
            assume_no_writer: false,
            create: true,
            grow_patience: Duration::from_secs(5),
            begin_patience: Duration::from_secs(60),
            retry_policy: RetryPolicy::default(),
        }
    }
}

impl LmdbOptions {
    /// The name of the database within the file. One file may contain several databases; a process
    /// opens one of them. Default: `keyloom`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The size of the reserved address space in bytes. Address space uses no memory or disk until
    /// data needs it, so choose a large value. Default: 64 GiB. Rounded up to whole pages.
    #[must_use]
    pub fn map_bytes(mut self, bytes: usize) -> Self {
        self.map_bytes = bytes;
        self
    }

    /// The size in bytes up to which the map grows automatically when it is full. No snapshot may
    /// be open while the map grows. Default: 64 TiB.
    #[must_use]
    pub fn max_map_bytes(mut self, bytes: usize) -> Self {
        self.max_map_bytes = bytes;
        self
    }

    /// The largest number of snapshots that may be open at once, in all processes together. A
    /// snapshot that begins during a commit briefly occupies a second slot. Default: 1,024.
    #[must_use]
    pub fn max_readers(mut self, readers: u32) -> Self {
        self.max_readers = readers;
        self
    }

    /// The fsyncs of a commit. Default: [`Durability::Full`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Opens the store for reading only: no store is created, and [`begin`](crate::Store::begin) is
    /// an error. The lock file next to the data must still be writable, since a snapshot takes a
    /// reader slot in it. If the lock file is not writable, see
    /// [`assume_no_writer`](Self::assume_no_writer).
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Asserts that no process writes to the store while this handle is open, and reads the store
    /// without reader slots: for a store on a read-only medium or mount. Requires
    /// [`read_only`](Self::read_only). Default: no.
    ///
    /// **If a process writes to the store all the same, snapshots change under their readers**:
    /// entries are missing or wrong, and the program may crash. keyloom prevents this on one
    /// machine. A store that another process has open is refused ([`LmdbError::OpenElsewhere`]).
    /// While this handle is open, other programs cannot open the store through keyloom
    /// ([`LmdbError::OpeningHeld`]), except with this option. Two cases are not detected: a process
    /// of another machine, and a program that opens the store later without keyloom.
    ///
    /// ```
    /// use keyloom::{Lmdb, Reader, Store, Writer};
    /// let directory = tempfile::tempdir()?;
    /// Lmdb::open(directory.path())?.transact(|txn| txn.put(b"a", b"1"))?;
    /// let options = Lmdb::options().read_only(true).assume_no_writer(true);
    /// let store = options.open(directory.path())?;
    /// assert_eq!(store.snapshot()?.get(b"a")?, Some(&b"1"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn assume_no_writer(mut self, assume: bool) -> Self {
        self.assume_no_writer = assume;
        self
    }

    /// Whether to create a missing store and the last directory of its path. Default: yes.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// How long the growth of the map waits for open snapshots, and how long a new snapshot waits
    /// for the growth. Default: 5 seconds.
    #[must_use]
    pub fn grow_patience(mut self, patience: Duration) -> Self {
        self.grow_patience = patience;
        self
    }

    /// How long [`begin`](crate::Store::begin) and [`open`](Self::open) wait in total for earlier
    /// writers, in this process and in others, and for the memory map to be resized. If this time
    /// passes while they wait for a writer, they return [`Error::WriterBusy`]. Default: 60 seconds.
    ///
    /// The time-out does not apply to a writer without keyloom, such as LMDB's own tools.
    ///
    /// ```
    /// use keyloom::{Error, Lmdb, Store};
    /// use std::time::Duration;
    /// let directory = tempfile::tempdir()?;
    /// let options = Lmdb::options().begin_patience(Duration::from_millis(20));
    /// let store = options.open(directory.path())?;
    /// let _open = store.begin()?;
    /// std::thread::scope(|scope| {
    ///     let other = scope.spawn(|| store.begin().map(drop).unwrap_err());
    ///     assert!(matches!(other.join().unwrap(), Error::WriterBusy { waited_ms: 20, .. }));
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn begin_patience(mut self, patience: Duration) -> Self {
        self.begin_patience = patience;
        self
    }

    /// How often and after which pauses [`transact`](crate::Store::transact) retries a transaction.
    /// On LMDB a retry is needed only if the map must grow or readers of dead processes were
    /// cleared.
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// Opens the store in the directory `path`.
    ///
    /// # Errors
    /// [`StorageError::MissingDirectory`], [`StorageError::MissingStore`],
    /// [`StorageError::PermissionDenied`], [`StorageError::NotAStore`], [`StorageError::Damaged`],
    /// [`Error::NewerFormat`], [`LmdbError::AlreadyOpen`], [`LmdbError::LockFileNotWritable`],
    /// [`LmdbError::OpenElsewhere`], [`LmdbError::OpeningHeld`], [`LmdbError::AddressSpace`],
    /// [`Error::InvalidArgument`], [`Error::WriterBusy`], [`StorageError::DiskFull`] or
    /// [`StorageError::Io`].
    pub fn open(self, path: impl AsRef<Path>) -> Result<Lmdb> {
        open::open(self, path.as_ref())
    }

    /// Checks the values that would make the engine panic or that the engine would misinterpret,
    /// and rounds the sizes.
    pub(super) fn checked(mut self) -> Result<Self> {
        // The engine stores a name as a key, which may have 511 bytes. Names must be shorter,
        // because errors show them.
        const MOST_NAME_BYTES: usize = 100;
        let bad = |what, value: String, why| Err(Error::InvalidArgument { what, value, why });
        if self.name.is_empty() || self.name.len() > MOST_NAME_BYTES {
            return bad("the name", self.name, "a name has 1 to 100 bytes");
        }
        if self.name.contains('\0') {
            return bad("the name", self.name, "a name contains no NUL character");
        }
        if self.name == open::META_NAME {
            return bad("the name", self.name, "keyloom stores its format under this name");
        }
        if self.assume_no_writer && !self.read_only {
            return bad("assume_no_writer", "true".into(), "it requires `read_only(true)`");
        }
        if self.max_readers == 0 {
            return bad("max_readers", "0".into(), "it must be at least 1");
        }
        self.map_bytes = whole_pages(self.map_bytes.max(LEAST_MAP_BYTES));
        self.max_map_bytes = whole_pages(self.max_map_bytes.max(self.map_bytes));
        Ok(self)
    }
}

/// Room for the two meta pages, the free list and a first page of data.
const LEAST_MAP_BYTES: usize = 64 << 10;

/// The map size, rounded up to the largest page size of any system.
fn whole_pages(bytes: usize) -> usize {
    const MOST_PAGE_BYTES: usize = 64 << 10;
    bytes.checked_next_multiple_of(MOST_PAGE_BYTES).unwrap_or(usize::MAX - (MOST_PAGE_BYTES - 1))
}
