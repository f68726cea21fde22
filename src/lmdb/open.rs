//! Opening a store: the checks that make the engine safe to use.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};

use super::explain::{explain, explain_file, explain_read};
use super::file::{self, FileRule, QuickCheck};
use super::gate::Gate;
use super::opening_lock::{OpeningLock, Others};
use super::owned_by::OwnedBy;
use super::readers::Readers;
use super::writer_lock::WriterLock;
use super::{Durability, Lmdb, LmdbOptions, Shared, reading};
use super::{lock_file, map_size, room};
use crate::backend::Process;
use crate::backend::{CommitSignal, WriterSlot};
use crate::deadline::Deadline;
use crate::{Error, LmdbError, Result, StorageError};

/// The database that holds the number of the format.
pub(super) const META_NAME: &str = "keyloom.meta";
const FORMAT_KEY: &[u8] = b"format";
/// The format that this code reads and writes. It is stored as a big-endian `u32`.
const FORMAT: u32 = 1;

type AnyDatabase = Database<'static, Bytes, Bytes>;

pub(super) fn open(options: LmdbOptions, path: &Path) -> Result<Lmdb> {
    let options = options.checked()?;
    let path = prepare_directory(path, &options)?;
    let data = path.join("data.mdb");
    let (env, locks, registration, no_writer) = {
        // Checked before any lock is taken: this process may itself hold the lock.
        if let Some(file) = existing(&data)? {
            refuse_open_file(&open_files(), &file, &path)?;
        }
        let others = if options.assume_no_writer { Others::Writers } else { Others::All };
        // Taken before the list of open files is locked, so that other threads of this process do
        // not wait for another process that opens the store.
        let opening_lock = OpeningLock::take(&path, others)?;
        // The list is locked from the search until the new entry is in it, so that two threads
        // cannot open the same file.
        let mut open_files = open_files();
        let file = existing(&data)?.filter(|file| file.len() > 0);
        match &file {
            Some(file) => {
                refuse_open_file(&open_files, file, &path)?;
                refuse_damage(&data, &path)?;
            }
            None if options.read_only || !options.create => {
                return Err(Error::Storage(StorageError::MissingStore { path }));
            }
            None => {}
        }
        let locks = Locks::new(open_lock_file(&options, &path)?.map(Arc::new));
        let env = open_env(&options, &path)?;
        let metadata = fs::metadata(&data).map_err(|error| explain(error.into(), &path))?;
        let id = FileId::of(&metadata);
        open_files.insert(id);
        let no_writer = options.assume_no_writer.then_some(opening_lock);
        (env, locks, Registration(id), no_writer)
    };
    let process = Process::current();
    let no_writer = no_writer.map(|lock| OwnedBy::new(lock, process));
    // The list is unlocked: the engine may now wait for a writer in another process, and other
    // threads may open and close stores meanwhile.
    match open_in(&env, &locks, &options, &path) {
        Ok(database) => {
            let shared = Shared {
                env,
                database,
                path,
                process,
                options,
                gate: Gate::default(),
                writer: WriterSlot::default(),
                signal: CommitSignal::default(),
                full_at_bytes: AtomicUsize::new(0),
                is_unmapped: AtomicBool::new(false),
                sync_failed: AtomicBool::new(false),
                readers: locks.readers,
                writers: locks.writers,
                _registration: registration,
                _no_writer: no_writer,
            };
            Ok(Lmdb { shared: Arc::new(shared) })
        }
        Err(error) => {
            // The file must be closed before it is removed from the list.
            drop(env);
            drop(locks);
            drop(registration);
            Err(error)
        }
    }
}

/// Opens the lock file, which contains the reader slots of snapshots. Returns `None` if the store
/// needs no slots, or if the engine will report why the file cannot be opened.
fn open_lock_file(options: &LmdbOptions, path: &Path) -> Result<Option<File>> {
    let lock = path.join("lock.mdb");
    if options.assume_no_writer {
        return match lock_file::is_in_use(&lock) {
            Ok(false) => Ok(None),
            Ok(true) => Err(Error::Lmdb(LmdbError::OpenElsewhere { path: path.into() })),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(Error::Storage(StorageError::PermissionDenied { action: "read", path: lock }))
            }
            Err(error) => {
                Err(Error::Storage(StorageError::Io { path: lock, source: error.into() }))
            }
        };
    }
    match lock_file::open(&lock) {
        Ok(file) => {
            let reserved = lock_file::reserve(&file, options.max_readers);
            reserved.map_err(|error| explain(error.into(), path))?;
            Ok(Some(file))
        }
        // On a read-only mount the engine would continue without slots, and a writer would
        // overwrite pages that a snapshot reads.
        Err(source) if options.read_only && lock_file::is_refused(&source) => {
            Err(Error::Lmdb(LmdbError::LockFileNotWritable { path: lock, source: source.into() }))
        }
        Err(_) => Ok(None),
    }
}

fn open_in(
    env: &Env<WithoutTls>,
    locks: &Locks,
    options: &LmdbOptions,
    path: &Path,
) -> Result<AnyDatabase> {
    locks.readers.clear_dead(env).map_err(|error| explain(error, path))?;
    if options.read_only {
        return open_database(env, &locks.readers, options, path);
    }
    // The process that made the file may have died before it synced the directory entry, or may not
    // have synced it at all. So every process that promises durable commits syncs the entry.
    if options.durability != Durability::MayLoseStore {
        sync_names(path)?;
    }
    let deadline = Deadline::new(options.begin_patience);
    let _turn = locks.writers.take(&deadline, path)?;
    create_database(env, options, path)
}

/// The locks of this process in the lock file.
struct Locks {
    readers: Readers,
    writers: WriterLock,
}

impl Locks {
    fn new(file: Option<Arc<File>>) -> Self {
        Self { readers: Readers::new(file.clone()), writers: WriterLock::new(file) }
    }
}

/// The files that this process has open, by device and inode. Names do not identify a file because
/// of hard links.
static OPEN_FILES: Mutex<BTreeSet<FileId>> = Mutex::new(BTreeSet::new());

fn open_files() -> MutexGuard<'static, BTreeSet<FileId>> {
    OPEN_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(metadata: &fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Removes the file from the list of open files on drop.
#[derive(Debug)]
pub(super) struct Registration(FileId);

impl Drop for Registration {
    fn drop(&mut self) {
        open_files().remove(&self.0);
    }
}

/// Returns the directory of the store with all links resolved. Creates the directory if the options
/// allow that.
fn prepare_directory(path: &Path, options: &LmdbOptions) -> Result<PathBuf> {
    let missing = || Error::Storage(StorageError::MissingDirectory { path: path.to_path_buf() });
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => {
            let why = "it is a file; a store is a directory that holds `data.mdb`".into();
            return Err(Error::Storage(StorageError::NotAStore { path: path.to_path_buf(), why }));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if options.read_only || !options.create {
                return Err(missing());
            }
            fs::create_dir(path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => missing(),
                _ => explain(error.into(), path),
            })?;
        }
        Err(error) => return Err(explain_read(error, path)),
    }
    path.canonicalize().map_err(|error| explain_read(error, path))
}

pub(super) fn existing(data: &Path) -> Result<Option<fs::Metadata>> {
    match fs::metadata(data) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(explain_read(error, data)),
    }
}

fn refuse_open_file(open_files: &BTreeSet<FileId>, file: &fs::Metadata, path: &Path) -> Result<()> {
    if open_files.contains(&FileId::of(file)) {
        return Err(Error::Lmdb(LmdbError::AlreadyOpen { path: path.to_path_buf() }));
    }
    Ok(())
}

/// Returns an error if the file would crash the process once it is mapped.
///
/// The check of the meta pages and the length of the file is fast. The whole file is walked only if
/// this check finds a fault, because a file that is too short may still be sound. A writer in
/// another process can also cause an apparent fault, so the check is repeated.
fn refuse_damage(data: &Path, path: &Path) -> Result<()> {
    // Without a writer, each check of a file has the same result. More checks delay the error of a
    // damaged file; with fewer checks, a writer could make a sound file look damaged.
    const LOOKS: u32 = 3;
    let mut looks = 1;
    loop {
        let fault = match file::quick_check(data).map_err(|error| explain_file(error, path))? {
            QuickCheck::Complete(_) => return Ok(()),
            QuickCheck::Short { .. } | QuickCheck::Damaged(_) => {
                let report =
                    file::verify(data, |_, _| ()).map_err(|error| explain_file(error, path))?;
                // After a power failure, a store without fsyncs may have two meta pages that are
                // not consecutive. The newer one is used.
                report.faults.into_iter().find(|fault| fault.rule != FileRule::TransactionIds)
            }
        };
        match fault {
            None => return Ok(()),
            Some(fault) if looks == LOOKS => {
                return Err(Error::Storage(StorageError::Damaged {
                    path: path.to_path_buf(),
                    why: fault.to_string(),
                }));
            }
            Some(_) => {
                looks += 1;
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

#[allow(unsafe_code)]
fn open_env(options: &LmdbOptions, path: &Path) -> Result<Env<WithoutTls>> {
    let mut flags = match options.durability {
        Durability::Full => EnvFlags::empty(),
        Durability::MayLoseLastCommit => EnvFlags::NO_META_SYNC,
        Durability::MayLoseStore => EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC,
    };
    if options.read_only {
        flags |= EnvFlags::READ_ONLY;
    }
    if options.assume_no_writer {
        flags |= EnvFlags::NO_LOCK;
    }
    // Reader slots belong to snapshots and not to threads: one thread may hold many snapshots, and
    // move them to other threads.
    let mut env = EnvOpenOptions::new().read_txn_without_tls();
    env.map_size(options.map_bytes).max_readers(options.max_readers).max_dbs(2);
    // SAFETY: the map is not writable. Without the lock file, the caller has asserted that no
    // process writes to the file. The file was just checked and is open only once in this process.
    // As the module docs require, no program other than LMDB changes the file.
    unsafe { env.flags(flags).open(path) }.map_err(|error| match error {
        heed::Error::Io(source) if source.kind() == io::ErrorKind::OutOfMemory => {
            Error::Lmdb(LmdbError::AddressSpace {
                wanted_bytes: options.map_bytes,
                source: source.into(),
            })
        }
        other => explain(other, path),
    })
}

/// Begins a transaction during opening, before there is a store.
#[allow(unsafe_code)]
fn begin_first<'e, T>(
    env: &'e Env<WithoutTls>,
    path: &Path,
    begin: impl Fn(&'e Env<WithoutTls>) -> heed::Result<T>,
) -> Result<T> {
    // SAFETY: this call of `open` has opened the engine and has the only handle. Each transaction
    // of the engine ends before the next one begins.
    unsafe { map_size::adopting(env, path, begin) }
}

/// Opens both databases of an existing store, without writing.
fn open_database(
    env: &Env<WithoutTls>,
    readers: &Readers,
    options: &LmdbOptions,
    path: &Path,
) -> Result<AnyDatabase> {
    let txn = begin_first(env, path, |env| reading::begin(env, readers))?;
    let opened = env.open_databases_and_commit(txn, |opener, txn| {
        let meta = opener.database_options().types::<Bytes, Bytes>().name(META_NAME).open(txn)?;
        let data =
            opener.database_options().types::<Bytes, Bytes>().name(&options.name).open(txn)?;
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((meta, data)))
    });
    let CommitOrAbort::Commit((meta, data)) = opened.map_err(|error| explain(error, path))? else {
        return Err(not_keyloom(path));
    };
    let (Some(meta), Some(data)) = (meta, data) else {
        return Err(not_keyloom(path));
    };
    let txn = begin_first(env, path, |env| reading::begin(env, readers))?;
    check_format(meta.get(&txn, FORMAT_KEY).map_err(|error| explain(error, path))?, path)?;
    Ok(data)
}

/// Opens both databases and creates the missing ones.
fn create_database(
    env: &Env<WithoutTls>,
    options: &LmdbOptions,
    path: &Path,
) -> Result<AnyDatabase> {
    let txn = begin_first(env, path, |env| env.write_txn())?;
    let is_empty = env.unnamed_database_stat().entries == 0;
    let opened = env.create_databases_and_commit(txn, |opener, txn| {
        let mut meta = opener.database_options().types::<Bytes, Bytes>();
        meta.name(META_NAME);
        let meta = match meta.open(txn)? {
            Some(meta) => meta,
            None if is_empty => {
                let meta = meta.create(txn)?;
                meta.put(txn, FORMAT_KEY, &FORMAT.to_be_bytes())?;
                meta
            }
            None => return Ok(CommitOrAbort::Abort(not_keyloom(path))),
        };
        if let Err(error) = check_format(meta.get(txn, FORMAT_KEY)?, path) {
            return Ok(CommitOrAbort::Abort(error));
        }
        let mut data = opener.database_options().types::<Bytes, Bytes>();
        data.name(&options.name);
        let data = match data.open(txn)? {
            Some(data) => data,
            None if options.create => data.create(txn)?,
            None => {
                return Ok(CommitOrAbort::Abort(Error::Storage(StorageError::MissingStore {
                    path: path.into(),
                })));
            }
        };
        Ok::<_, heed::Error>(CommitOrAbort::Commit((data,)))
    });
    match opened.map_err(|error| explain(room::reason(error, path), path))? {
        CommitOrAbort::Commit((data,)) => Ok(data),
        CommitOrAbort::Abort(error) => Err(error),
    }
}

fn check_format(stored: Option<&[u8]>, path: &Path) -> Result<()> {
    let Some(found) = stored.and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes) else {
        return Err(not_keyloom(path));
    };
    if found > FORMAT {
        let what = format!("the store {}", path.display());
        return Err(Error::NewerFormat { what, found, supported: FORMAT });
    }
    Ok(())
}

fn not_keyloom(path: &Path) -> Error {
    let why = "it is an LMDB file of another program, or has no database of this name".into();
    Error::Storage(StorageError::NotAStore { path: path.to_path_buf(), why })
}

/// Syncs the directory entries of the store's file and of the store's directory. The path
/// `directory` contains no links.
pub(super) fn sync_names(directory: &Path) -> Result<()> {
    sync_directory(directory)?;
    let Some(parent) = directory.parent() else { return Ok(()) };
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev());
    let of_parent = device(parent).map_err(|error| explain(error.into(), parent))?;
    let of_directory = device(directory).map_err(|error| explain(error.into(), directory))?;
    if of_parent != of_directory {
        // The root of a mounted file system has no new directory entry.
        return Ok(());
    }
    match sync_directory(parent) {
        // A directory that is not readable cannot be synced.
        Err(Error::Storage(StorageError::PermissionDenied { .. })) => Ok(()),
        synced => synced,
    }
}

/// Syncs the entries of `directory`.
fn sync_directory(directory: &Path) -> Result<()> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| explain(error.into(), directory))
}
