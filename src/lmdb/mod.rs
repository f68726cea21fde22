//! The store on LMDB: one memory-mapped file, one writer at a time, concurrent snapshots.
//!
//! | operation | cost |
//! |---|---|
//! | snapshot | one reader slot, briefly a second one during a commit, well under a microsecond; an open snapshot prevents the reuse of pages |
//! | begin | two system calls, and at most one more each millisecond; waits for the current writer, up to [`LmdbOptions::begin_patience`] |
//! | get, seek | O(log n), nothing copied, nothing allocated |
//! | range | one cursor and one allocation to open the range, none per entry |
//! | put, delete | O(log n); copies each touched page once per transaction |
//! | [`put_sorted`](crate::Writer::put_sorted) | as puts; pages are left full if 64 entries or more are adjacent between two stored keys |
//! | commit | writes the copied pages; with [`Durability::Full`] two fsyncs |
//!
//! [`Durability`] decides which commits survive a crash. A store is a *trusted local file*: damaged
//! bytes can make the engine crash. [`Lmdb::verify`] checks a file and cannot crash. Do not put a
//! store on a network file system.
//!
//! * **A snapshot that stays open makes the file grow**, since no page that it may read is reused.
//!   [`Lmdb::statistics`] returns the oldest snapshot of all processes.
//! * **A process that is killed leaves its snapshots in the lock file.** The beginning of a
//!   transaction clears these snapshots, if the last check was at least 10 ms ago or if the file
//!   has since grown by 64 pages. They are also cleared if the map, the disk or the reader slots
//!   are full; then [`transact`](Store::transact) retries the transaction. If a live snapshot keeps
//!   the pages, [`LmdbError::MapFull`] and [`StorageError::DiskFull`] name its process and age.
//! * **A snapshot shows exactly one commit, and never an earlier commit than the snapshot before.**
//!   The engine alone has a race here. A reader first reads the number of the newest commit, N, and
//!   later copies the meta page of N. If the reader is delayed in between until commit N + 1 has
//!   ended, it may copy the page while commit N + 2 writes it. So keyloom checks whether this may
//!   have happened, and then begins the snapshot again. It does not wait for a commit, unless no
//!   reader slot is free for the check. Then it waits for a fraction of a second before it returns
//!   [`LmdbError::ReadersFull`].
//! * **The map grows automatically.** The map reserves only address space, so its default size is
//!   large. If the map is full all the same, the transaction fails with [`LmdbError::MapFull`]. The
//!   next [`begin`](Store::begin), for example of the retry in [`transact`](Store::transact),
//!   doubles the map. At that moment the process must have no open snapshot: `begin` waits for open
//!   snapshots, and new snapshots wait for `begin`, both up to [`LmdbOptions::grow_patience`]. So a
//!   thread that holds a snapshot must not take a second one while other threads write.
//! * **Writers take turns, in all processes.** A writer waits in total for at most
//!   [`LmdbOptions::begin_patience`]; then [`Error::WriterBusy`] names the process that writes. A
//!   process that is killed releases its turn at once. The time-out does not cover waits for a
//!   program that opens the file without keyloom, or with a version of keyloom that has no such
//!   time-out.
//! * **One handle per file and process.** Clone the handle; opening the file twice is an error.
//! * **A program that dies loses no commit and leaves no partial one**, with every [`Durability`].
//!   The transaction that it was committing is in the store or not. If other processes have the
//!   store open, this may be decided only when the next of them writes; until then their snapshots
//!   do not show the transaction. Processes open a store one after the other, under a lock
//!   (`flock`) on its directory. Without this lock, a program that dies while it initializes the
//!   engine's locks would leave invalid locks to the waiting processes. Programs that open the file
//!   without keyloom do not take this lock. All this holds on Linux; the order in which other
//!   systems release the locks of dead processes was not tested.
//! * **Reading needs a writable lock file**, since each snapshot takes a reader slot in it. A
//!   writer reads the slots to avoid overwriting pages that are in use. If the lock file is not
//!   writable, because of its mode or a read-only mount, [`read_only`](LmdbOptions::read_only)
//!   fails with [`LmdbError::LockFileNotWritable`], unless the caller asserts with
//!   [`assume_no_writer`](LmdbOptions::assume_no_writer) that no process writes to the store.
//! * **Fork before opening.** In a child that is forked after the opening, the handle returns
//!   [`Error::Forked`]; the child can drop the handle and open the store again. Snapshots and
//!   transactions that were open at the fork belong to the parent: the child must not use them.
//! * **The files** are `data.mdb` and `lock.mdb` in the directory of the store. `data.mdb` contains
//!   the database of the program and a second database, `keyloom.meta`, with the format number.

mod address_space;
mod backup;
mod entries;
mod explain;
pub mod file;
mod gate;
mod lock_file;
mod map_size;
mod open;
mod opening_lock;
mod options;
mod owned_by;
mod readers;
mod reading;
mod room;
mod shared;
mod sorted;
mod transaction;
#[cfg(target_os = "linux")]
mod watch;
mod writer_lock;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use heed::{CompactionOption, RoTxn, WithoutTls};

#[cfg(doc)]
use crate::StorageError;
use crate::backend::ChangeListener;
use crate::deadline::Deadline;
use crate::{
    Error, KeyRange, Limits, LmdbError, OldestReader, Order, Reader, Result, RetryPolicy, Store,
    check_key,
};

pub(crate) use entries::LmdbEntries;
use gate::{Holder, Ticket};
pub use options::{Durability, LmdbOptions};
use owned_by::OwnedBy;
use shared::Shared;
pub use transaction::LmdbTransaction;

/// A store on LMDB. Clones are handles of the same store; see the [module](self).
///
/// ```
/// use keyloom::{Lmdb, Reader, Store, Writer};
/// let directory = tempfile::tempdir()?;
/// let store = Lmdb::open(directory.path())?;
/// store.transact(|txn| txn.put(b"a", b"1"))?;
/// assert_eq!(store.snapshot()?.get(b"a")?, Some(&b"1"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lmdb {
    shared: Arc<Shared>,
}

/// The longest pause between two polls for commits of other processes.
// A poll is a snapshot and a get. Longer pauses cost fewer polls, and add to the latency of a
// change by another process.
const POLL: Duration = Duration::from_millis(10);

/// Sizes and ages of an [`Lmdb`] store, from [`Lmdb::statistics`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LmdbStatistics {
    /// The number of keys.
    pub entries: u64,
    /// The number of levels of the tree.
    pub depth: u32,
    /// Pages that refer to other pages.
    pub branch_pages: u64,
    /// Pages with entries.
    pub leaf_pages: u64,
    /// Pages with values that are too large for a leaf.
    pub overflow_pages: u64,
    /// The size of a page.
    pub page_bytes: u32,
    /// The size of the file.
    pub file_bytes: u64,
    /// The address space reserved.
    pub map_bytes: usize,
    /// The number of commits since the file was created.
    pub last_transaction: u64,
    /// The largest number of reader slots that were in use at once, in all processes, since the
    /// file was opened. 0 with [`assume_no_writer`](LmdbOptions::assume_no_writer).
    pub reader_slots: u32,
    /// The number of reader slots that this handle has cleared since it was opened, because their
    /// process had died with a snapshot open. These slots kept freed pages from being reused.
    pub dead_readers: u64,
    /// The snapshot that sees the oldest commit, in all processes. `None` without snapshots.
    pub oldest_reader: Option<OldestReader>,
    /// The age of the oldest snapshot, transaction or running call (such as a backup) *of this
    /// process*.
    pub oldest_reader_age: Option<Duration>,
}

/// Whether [`Lmdb::backup`] leaves out free pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// Copies the pages unchanged. This is faster, and the copy is as large as the store.
    Off,
    /// Leaves out free pages and writes the others in order.
    On,
}

impl Lmdb {
    /// Opens the store in the directory `path`, and creates it if it does not exist.
    ///
    /// # Errors
    /// The errors of [`LmdbOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// The options of a store.
    pub fn options() -> LmdbOptions {
        LmdbOptions::default()
    }

    /// The directory of the store.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The durability of commits.
    pub fn durability(&self) -> Durability {
        self.shared.options.durability
    }

    /// Returns sizes and ages. Clears the reader slots of dead processes. Costs a snapshot, and a
    /// system call for each process that has snapshots open.
    ///
    /// ```
    /// use keyloom::{Lmdb, Store, Writer};
    /// let directory = tempfile::tempdir()?;
    /// let store = Lmdb::open(directory.path())?;
    /// store.transact(|txn| txn.put(b"a", b"1"))?;
    /// assert_eq!(store.statistics()?.entries, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`snapshot`](Store::snapshot).
    pub fn statistics(&self) -> Result<LmdbStatistics> {
        let shared = &*self.shared;
        shared.process.check(&shared.path)?;
        let oldest_reader_age = shared.gate.oldest_age();
        let oldest_reader = {
            let _ticket = shared.enter_call()?;
            shared.clear_dead_readers()?;
            shared.oldest_reader()
        };
        let snapshot = self.snapshot()?;
        let tree = shared.database.stat(&snapshot.txn).map_err(|error| shared.explain(error))?;
        let info = shared.env.info();
        let file_bytes = shared.file_bytes().map_err(|error| shared.explain(error))?;
        Ok(LmdbStatistics {
            entries: tree.entries as u64,
            depth: tree.depth,
            branch_pages: tree.branch_pages as u64,
            leaf_pages: tree.leaf_pages as u64,
            overflow_pages: tree.overflow_pages as u64,
            page_bytes: tree.page_size,
            file_bytes,
            map_bytes: info.map_size,
            last_transaction: info.last_txn_id as u64,
            reader_slots: info.number_of_readers,
            dead_readers: shared.readers.cleared(),
            oldest_reader,
            oldest_reader_age,
        })
    }

    /// Copies the current state of the store into the new directory `directory`, concurrently with
    /// readers and writers. [`Lmdb::open`] opens the copy. Its `data.mdb` appears only when it is
    /// complete and synced, and has the mode of the store's file. If the directory is created, it
    /// has the mode of the store's directory.
    ///
    /// [`Compaction::Off`] takes the turn of a writer. It waits for the turn for at most
    /// [`begin_patience`](LmdbOptions::begin_patience), and releases it once the two meta pages are
    /// copied. If a program writes to the file without keyloom, the backup waits for the current
    /// transaction of that program, without a time-out.
    ///
    /// If several backups go into one directory, the first complete one succeeds; the others return
    /// [`Error::InvalidArgument`]. A crash may leave a file `data.mdb.partial.*`, which no later
    /// backup uses or removes: delete it.
    ///
    /// ```
    /// use keyloom::{Lmdb, Reader, Store, Writer, lmdb::Compaction};
    /// let directory = tempfile::tempdir()?;
    /// let store = Lmdb::open(directory.path().join("store"))?;
    /// store.transact(|txn| txn.put(b"a", b"1"))?;
    /// store.backup(directory.path().join("copy"), Compaction::On)?;
    /// let copy = Lmdb::open(directory.path().join("copy"))?;
    /// assert_eq!(copy.snapshot()?.get(b"a")?, Some(&b"1"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `directory` already contains a store,
    /// [`StorageError::DiskFull`], [`StorageError::MissingDirectory`] if its parent does not exist,
    /// [`StorageError::PermissionDenied`]; the errors of [`snapshot`](Store::snapshot); and with
    /// [`Compaction::Off`] also [`Error::NestedTransaction`] if this thread has a transaction open,
    /// and [`Error::WriterBusy`].
    pub fn backup(&self, directory: impl AsRef<Path>, compaction: Compaction) -> Result<()> {
        let shared = &*self.shared;
        // The engine's copy function neither adopts a larger map nor frees slots of dead readers,
        // but a snapshot does.
        let snapshot = self.snapshot()?;
        let tree = shared.database.stat(&snapshot.txn).map_err(|error| shared.explain(error))?;
        drop(snapshot);
        let turns = match compaction {
            Compaction::Off => {
                let deadline = Deadline::new(shared.options.begin_patience);
                let turn = shared.take_turn(&deadline)?;
                Some((shared.writers.take(&deadline, &shared.path)?, turn))
            }
            // With compaction the engine itself begins the read, so it may copy a commit that is
            // still being written; see `reading`.
            Compaction::On => None,
        };
        let _ticket = shared.enter_call()?;
        let directory = directory.as_ref();
        backup::make_data_file(&shared.path, directory, |file| {
            let copied = match turns {
                Some(turns) => {
                    backup::copy_in_turn(&shared.env, file, tree.page_size.into(), turns)
                }
                None => shared.env.copy_to_file(file, CompactionOption::Enabled),
            };
            // An error of the system here comes from writing the copy.
            copied.map_err(|error| explain::explain(error, directory))
        })
    }

    /// Checks every page of the store in the directory `path`. No process may write to the store
    /// meanwhile: close it first, or check a [backup](Lmdb::backup).
    ///
    /// The file is read and not mapped, so its contents cannot crash the program. `progress` is
    /// called at intervals with the number of pages checked and the total. The check takes about
    /// 100 ms for 200 MB in the page cache. [`file`](mod@file) lists the faults that the check
    /// finds, and those that it cannot find.
    ///
    /// [`open`](Lmdb::open) itself checks the meta pages and the length of the file, and walks the
    /// file only if these are inconsistent.
    ///
    /// ```
    /// use keyloom::{Lmdb, Store, Writer, lmdb::Compaction};
    /// let directory = tempfile::tempdir()?;
    /// let store = Lmdb::open(directory.path().join("store"))?;
    /// store.transact(|txn| txn.put(b"a", b"1"))?;
    /// store.backup(directory.path().join("copy"), Compaction::Off)?;
    /// assert!(Lmdb::verify(directory.path().join("copy"), |_done, _of| ())?.is_sound());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`StorageError::NotAStore`] and [`StorageError::Damaged`] if the meta pages are unusable.
    /// Other damage is not an error but is listed in [`FileReport::faults`](file::FileReport::faults).
    pub fn verify(
        path: impl AsRef<Path>,
        progress: impl FnMut(u64, u64),
    ) -> Result<file::FileReport> {
        let path = path.as_ref();
        file::verify(path.join("data.mdb"), progress)
            .map_err(|error| explain::explain_file(error, path))
    }

    /// Syncs all commits so far to the disk, whatever the [`Durability`].
    ///
    /// A failed fsync cannot be repaired by a second one: the system discards the pages that it
    /// could not write, and reports the failure only once. So after a failure in a mode other than
    /// [`Durability::Full`], this handle refuses to write or flush. Commits since the last flush
    /// may be lost: load the data again, or save it with [`backup`](Lmdb::backup), which writes to
    /// another file.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`StorageError::DiskFull`], [`StorageError::Unusable`] after a failure,
    /// or [`StorageError::Io`].
    pub fn flush(&self) -> Result<()> {
        self.shared.process.check(&self.shared.path)?;
        if self.shared.options.read_only {
            return Err(Error::ReadOnly);
        }
        // The sync reads the meta page through the map, which must not be resized meanwhile.
        let _ticket = self.shared.enter_call()?;
        self.shared.check_sync()?;
        self.shared.env.force_sync().map_err(|error| self.shared.note_failed_sync(error))?;
        // With `Durability::MayLoseStore` the directory entries were not synced when the store was
        // opened.
        open::sync_names(&self.shared.path)
    }
}

impl Lmdb {
    /// Opens a snapshot. Waits up to `patience` for another thread that enlarges the map.
    fn snapshot_within(&self, patience: Duration) -> Result<LmdbSnapshot<'_>> {
        let shared = &*self.shared;
        let deadline = Deadline::new(patience);
        let begin = |env| reading::begin(env, &shared.readers);
        let (txn, ticket, ()) = shared.enter(Holder::Snapshot, &deadline, || Ok(()), begin)?;
        Ok(LmdbSnapshot { txn, shared: &self.shared, _ticket: ticket })
    }
}

/// The number of attempts to open snapshots of one state, in addition to one for each snapshot.
// A snapshot takes about a microsecond to open, and a commit without fsync some ten. Only commits
// of many other processes can use up the attempts.
const MOST_OUTDATED: usize = 1_000;

impl Store for Lmdb {
    type Snapshot<'s> = LmdbSnapshot<'s>;
    type Transaction<'s> = LmdbTransaction<'s>;

    fn snapshot(&self) -> Result<LmdbSnapshot<'_>> {
        self.snapshot_within(self.shared.options.grow_patience)
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<LmdbSnapshot<'_>>> {
        let mut found = vec![self.snapshot()?];
        let mut attempts = 0;
        while found.len() < count && attempts < count.saturating_add(MOST_OUTDATED) {
            attempts += 1;
            // Without patience: if the map is about to grow, the growth waits for the snapshots
            // that are open, so this thread must not wait for the growth.
            match self.snapshot_within(Duration::ZERO) {
                Ok(next) => {
                    // A writer has committed since, so the earlier snapshots are of an older state.
                    found.retain(|one| one.txn.id() == next.txn.id());
                    found.push(next);
                }
                Err(Error::Lmdb(LmdbError::ReadersFull { .. } | LmdbError::MapHeld { .. })) => {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    fn begin(&self) -> Result<LmdbTransaction<'_>> {
        LmdbTransaction::begin(&self.shared)
    }

    fn limits(&self) -> Limits {
        Limits::default()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.shared.options.retry_policy
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        let listener = self.shared.signal.listen(key).polling(POLL);
        #[cfg(target_os = "linux")]
        watch::start(&self.shared.signal, || self.shared.path.join("data.mdb"));
        listener
    }
}

/// A snapshot of an [`Lmdb`] store.
#[derive(Debug)]
pub struct LmdbSnapshot<'s> {
    // Dropped before the ticket: the map must not be resized while the engine still counts the
    // snapshot.
    txn: OwnedBy<RoTxn<'s, WithoutTls>>,
    shared: &'s Shared,
    _ticket: Ticket<'s>,
}

impl Reader for LmdbSnapshot<'_> {
    type Bytes<'r>
        = &'r [u8]
    where
        Self: 'r;
    type Entries<'r>
        = LmdbEntries<'r>
    where
        Self: 'r;

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        get(self.shared, &self.txn, key)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<LmdbEntries<'_>> {
        LmdbEntries::open(self.shared, &self.txn, &range, order)
    }
}

#[inline]
fn get<'r>(
    shared: &Shared,
    txn: &'r RoTxn<'_, WithoutTls>,
    key: &[u8],
) -> Result<Option<&'r [u8]>> {
    check_key(key)?;
    shared.database.get(txn, key).map_err(|error| shared.explain(error))
}
