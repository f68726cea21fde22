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
//! * **A process that is killed leaves its snapshots in the lock file.** A writer clears these
//!   snapshots every 10 ms and whenever the file has grown by 64 pages. They are also cleared if
//!   the map, the disk or the reader slots are full; then [`transact`](Store::transact) retries the
//!   transaction. If a live snapshot keeps the pages, [`LmdbError::MapFull`] and
//!   [`StorageError::DiskFull`] name its process and age.
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
//! * **Writers take turns, in all processes.** A writer waits for at most
//!   [`LmdbOptions::begin_patience`] in all; then [`Error::WriterBusy`] names the process that
//!   writes. A process that is killed releases its turn at once. The time-out does not cover waits
//!   for a program that opens the file without keyloom, or with a version of keyloom that has no
//!   such time-out.
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
mod sorted;
mod transaction;
#[cfg(target_os = "linux")]
mod watch;
mod writer_lock;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use heed::types::Bytes;
use heed::{CompactionOption, Database, Env, MdbError, RoTxn, WithoutTls};

use crate::backend::{ChangeListener, CommitSignal, WriterSlot, WriterTurn};
use crate::deadline::Deadline;
use crate::{
    Error, HeldPages, KeyRange, Limits, LmdbError, OldestReader, Order, Reader, Result,
    RetryPolicy, StorageError, Store, check_key,
};

use crate::backend::Process;
pub use entries::LmdbEntries;
use gate::{Gate, Holder, Ticket};
use open::Registration;
use opening_lock::OpeningLock;
pub use options::{Durability, LmdbOptions};
use owned_by::OwnedBy;
use readers::Readers;
pub use transaction::LmdbTransaction;
use writer_lock::WriterLock;

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

#[derive(Debug)]
struct Shared {
    // Dropped first, so that the file is closed before its registration is removed.
    env: Env<WithoutTls>,
    database: Database<'static, Bytes, Bytes>,
    path: PathBuf,
    process: Process,
    options: LmdbOptions,
    gate: Gate,
    writer: WriterSlot,
    signal: CommitSignal,
    /// The size of the map when a transaction last found it full; 0 once the map has grown.
    full_at_bytes: AtomicUsize,
    /// Whether the engine was left without a map. A read would then access an invalid address.
    is_unmapped: AtomicBool,
    /// Whether an fsync failed. Afterwards the system treats the unwritten pages as written.
    sync_failed: AtomicBool,
    // Dropped after the engine, which holds locks on the same file.
    readers: Readers,
    writers: WriterLock,
    _registration: Registration,
    /// Prevents writers from opening a store that is read without reader slots.
    _no_writer: Option<OwnedBy<OpeningLock>>,
}

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
    /// The age of the oldest snapshot or transaction *of this process*.
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
    /// could not write, and reports the failure only once. So after a failure in the modes without
    /// an fsync per commit, this handle refuses to write or flush. Commits since the last flush may
    /// be lost: load the data again, or save it with [`backup`](Lmdb::backup), which writes to
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

impl Shared {
    /// Enlarges the map if a transaction found it full and the map has not been enlarged since.
    fn grow_if_full(&self, deadline: &Deadline<'_>) -> Result<()> {
        let full_at = self.full_at_bytes.load(Ordering::Acquire);
        if full_at == 0 {
            return Ok(());
        }
        if full_at >= self.options.max_map_bytes {
            // The map cannot grow, so waiting for snapshots is useless. A transaction that only
            // deletes may fit.
            self.full_at_bytes.store(0, Ordering::Release);
            return Ok(());
        }
        let grown = self.gate.alone(deadline, || {
            self.check_map()?;
            let now = self.env.info().map_size;
            let wanted = now.saturating_mul(2).min(self.options.max_map_bytes);
            if now <= full_at && wanted > now {
                self.resize(wanted)?;
            }
            Ok(())
        });
        // Reset after a failure too: a transaction that fits must not wait for the space that
        // another one needs.
        self.full_at_bytes.store(0, Ordering::Release);
        grown
    }

    /// Whether the map can grow. If so, a transaction that found the map full may succeed when it
    /// runs again.
    fn can_grow(&self) -> bool {
        self.env.info().map_size < self.options.max_map_bytes
    }

    /// Adopts the map size that another process has set.
    #[allow(unsafe_code)]
    fn adopt_size(&self, deadline: &Deadline<'_>) -> Result<()> {
        self.gate.alone(deadline, || {
            self.check_map()?;
            // SAFETY: as in `resize`.
            self.note_unmapped(unsafe { map_size::adopt(&self.env, &self.path) })
        })
    }

    #[allow(unsafe_code)]
    fn resize(&self, bytes: usize) -> Result<()> {
        // SAFETY: the gate is closed and empty: no transaction, copy or flush of this process reads
        // the map.
        self.note_unmapped(unsafe { map_size::set(&self.env, &self.path, bytes) })
    }

    /// Records whether the engine was left without a map.
    fn note_unmapped(&self, resized: Result<()>) -> Result<()> {
        if matches!(resized, Err(Error::Storage(StorageError::Unusable { .. }))) {
            self.is_unmapped.store(true, Ordering::Release);
        }
        resized
    }

    /// Returns an error if the handle is not usable any more. Must be called inside the gate, where
    /// the map does not change.
    fn check_map(&self) -> Result<()> {
        if self.is_unmapped.load(Ordering::Acquire) {
            return Err(Error::Storage(StorageError::Unusable {
                path: self.path.clone(),
                source: None,
            }));
        }
        Ok(())
    }

    /// Returns an error if an fsync has failed, so that no write follows it.
    fn check_sync(&self) -> Result<()> {
        if self.sync_failed.load(Ordering::Acquire) {
            return Err(Error::Storage(StorageError::Unusable {
                path: self.path.clone(),
                source: None,
            }));
        }
        Ok(())
    }

    /// Records that an fsync has failed, in the modes in which earlier commits depend on that
    /// fsync.
    fn note_failed_sync(&self, error: heed::Error) -> Error {
        if self.options.durability != Durability::Full {
            self.sync_failed.store(true, Ordering::Release);
        }
        self.explain(error)
    }

    /// The size of the file. The engine duplicates the file descriptor for this, and a signal may
    /// interrupt that call.
    fn file_bytes(&self) -> heed::Result<u64> {
        loop {
            match self.env.real_disk_size() {
                Err(heed::Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Waits for the writers of this process.
    fn take_turn(&self, deadline: &Deadline<'_>) -> Result<WriterTurn<'_>> {
        let turn = self.writer.take_within(|| Some(deadline.left()))?;
        turn.ok_or_else(|| Error::WriterBusy {
            // The current writer of this process may itself be waiting for another process.
            holder: self.writers.holder().or_else(|| Some(std::process::id())),
            waited_ms: deadline.waited_ms(),
        })
    }

    /// Enters the gate for a call that reads the map while it runs.
    fn enter_call(&self) -> Result<Ticket<'_>> {
        let deadline = Deadline::new(self.options.grow_patience);
        let ticket = self.gate.enter(Holder::Call, &deadline)?;
        self.check_map()?;
        Ok(ticket)
    }

    /// Enters the gate and opens a transaction or snapshot. If another process has enlarged the
    /// map, adopts its size and tries again. `lock` waits for other processes. It is called outside
    /// the gate, so that a thread of this process that adopts the map does not wait for it.
    fn enter<'s, L, T>(
        &'s self,
        holder: Holder,
        deadline: &Deadline<'_>,
        lock: impl Fn() -> Result<L>,
        open: impl Fn(&'s Env<WithoutTls>) -> heed::Result<T>,
    ) -> Result<(OwnedBy<T>, Ticket<'s>, L)> {
        self.process.check(&self.path)?;
        let mut adoptions = 0;
        let (opened, ticket, locked) = loop {
            let locked = lock()?;
            let ticket = self.gate.enter(holder, deadline)?;
            self.check_map()?;
            match open(&self.env) {
                Err(heed::Error::Mdb(MdbError::MapResized))
                    if adoptions < map_size::MOST_ADOPTIONS =>
                {
                    drop(ticket);
                    drop(locked);
                    self.adopt_size(deadline)?;
                    adoptions += 1;
                }
                opened => break (opened, ticket, locked),
            }
        };
        let opened = opened.map_err(|error| self.explain(error))?;
        Ok((OwnedBy::new(opened, self.process), ticket, locked))
    }

    /// Whether the engine may have failed permanently. The engine reports such a failure only to
    /// the next transaction, and not if no reader slot is free.
    fn may_be_unusable(&self) -> bool {
        !matches!(self.env.read_txn(), Ok(_) | Err(heed::Error::Mdb(MdbError::MapResized)))
    }

    /// Converts an error of the engine.
    fn explain(&self, error: heed::Error) -> Error {
        match error {
            heed::Error::Mdb(MdbError::ReadersFull) => {
                // Another process may have created the lock file with another number of slots.
                Error::Lmdb(LmdbError::ReadersFull {
                    max_readers: self.env.info().maximum_number_of_readers,
                })
            }
            other => match explain::explain(other, &self.path) {
                Error::Storage(StorageError::DiskFull { source, .. }) => self.disk_full(source),
                error => error,
            },
        }
    }

    fn disk_full(&self, source: crate::Shared<std::io::Error>) -> Error {
        Error::Storage(StorageError::DiskFull {
            path: self.path.clone(),
            source,
            held: self.held_pages(),
        })
    }

    /// The error of the first call that finds the map full. The next transaction enlarges the map,
    /// unless dead readers were cleared, which frees space.
    fn map_full(&self) -> Error {
        let held = self.held_pages();
        if held.dead_readers == 0 {
            self.full_at_bytes.store(self.env.info().map_size, Ordering::Release);
        }
        self.map_full_held(held)
    }

    fn map_full_held(&self, held: HeldPages) -> Error {
        let (map_bytes, max_map_bytes) = (self.env.info().map_size, self.options.max_map_bytes);
        Error::Lmdb(LmdbError::MapFull { map_bytes, max_map_bytes, held })
    }

    /// Clears the slots of dead processes, and finds the live reader that keeps the most pages.
    fn held_pages(&self) -> HeldPages {
        // An error here must not replace the error of the transaction, which is returned next.
        let dead_readers = self.clear_dead_readers().unwrap_or_default();
        let oldest_reader = self.oldest_reader().filter(|reader| reader.commits > 0);
        HeldPages { dead_readers, oldest_reader }
    }

    fn clear_dead_readers(&self) -> Result<u32> {
        self.readers.clear_dead(&self.env).map_err(|error| self.explain(error))
    }

    /// The reader, of all processes, that sees the oldest commit. Must be called inside the gate.
    fn oldest_reader(&self) -> Option<OldestReader> {
        self.readers.oldest(&self.env, || self.gate.oldest_snapshot_age())
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
