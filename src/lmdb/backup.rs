//! The file of a backup. The file gets its final name only when it is complete and synced. No user
//! that cannot access the store can access the file.

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use heed::{CompactionOption, Env, WithoutTls};

use super::explain::explain;
use super::open::{existing, sync_names};
use crate::{Error, Result, StorageError};

/// The file of a store, in its directory.
const DATA: &str = "data.mdb";
/// The permissions of all users (read, write and execute), and the sticky bit of a directory.
const MODE_BITS: u32 = 0o1777;
const GROUP_BITS: u32 = 0o070;
const OWNER_BITS: u32 = 0o700;

/// Makes a store in `directory` from the bytes that `fill` writes, with the file modes of `store`.
///
/// The file is written under a temporary name, synced, and then linked to the final name. So no
/// program ever opens an incomplete file. Several backups into one directory do not write to the
/// same file: the first complete one gets the final name.
pub(super) fn make_data_file(
    store: &Path,
    directory: &Path,
    fill: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let made_directory = make_directory(store, directory)?;
    let made = fill_and_name(store, directory, fill);
    if made.is_err() && made_directory {
        // Ignores this error, so that the first error is returned. A directory that contains
        // another backup's file is kept.
        drop(fs::remove_dir(directory));
    }
    made?;
    let directory = directory.canonicalize().map_err(|error| explain(error.into(), directory))?;
    sync_names(&directory)
}

/// The number of meta pages. The engine copies them while it holds its writer lock.
const META_PAGES: u64 = 2;
// Writers wait for the end of the pause. Shorter pauses cost more system calls while the copy
// begins.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);

/// Copies the pages unchanged, and drops `turns` as soon as the copy does not need them any more.
///
/// The engine waits for its own lock without a time-out. So the caller first waits for the turns of
/// writers, with a time-out; then the engine's lock is free. If the turns were released before the
/// engine has its lock, the next writer could take the lock. If the turns were kept, no writer
/// could run before the whole store is copied. So another thread copies, and this thread polls the
/// length of the file: once the file contains the meta pages, the engine has its lock.
pub(super) fn copy_in_turn(
    env: &Env<WithoutTls>,
    file: &mut File,
    page_bytes: u64,
    turns: impl Sized,
) -> heed::Result<()> {
    let copy = double(file)?;
    let has_meta_pages = || copy.metadata().is_ok_and(|data| data.len() >= META_PAGES * page_bytes);
    thread::scope(|scope| {
        let copying = thread::Builder::new()
            .spawn_scoped(scope, || env.copy_to_file(file, CompactionOption::Disabled))?;
        let mut pause = SHORTEST_PAUSE;
        while !copying.is_finished() && !has_meta_pages() {
            thread::sleep(pause);
            pause = LONGEST_PAUSE.min(pause * 2);
        }
        drop(turns);
        copying.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Duplicates the descriptor of the file. Retries if a signal interrupts the call.
fn double(file: &File) -> io::Result<File> {
    loop {
        match file.try_clone() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            doubled => return doubled,
        }
    }
}

/// Makes the directory if it does not exist. Returns whether it was made.
fn make_directory(store: &Path, directory: &Path) -> Result<bool> {
    match DirBuilder::new().mode(OWNER_BITS).create(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::Storage(StorageError::MissingDirectory {
                path: directory.to_path_buf(),
            }));
        }
        Err(error) => return Err(explain(error.into(), directory)),
    }
    let open_as_the_store = || {
        let like = fs::metadata(store)?;
        // The owner must be able to create the file there, even if the store's directory is
        // read-only.
        set_mode(&File::open(directory)?, &like, like.mode() | OWNER_BITS)
    };
    open_as_the_store().map_err(|error| {
        drop(fs::remove_dir(directory));
        explain(error.into(), directory)
    })?;
    Ok(true)
}

fn fill_and_name(
    store: &Path,
    directory: &Path,
    fill: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let name = directory.join(DATA);
    let there_already = || Error::InvalidArgument {
        what: "the directory",
        value: directory.display().to_string(),
        why: "it already contains a store; choose a new directory",
    };
    if existing(&name)?.is_some() {
        return Err(there_already());
    }
    // When backups of one process shared the partial file, 4 of 72 backups that returned `Ok` were
    // incomplete.
    let (mut file, partial) = Partial::make(directory)?;
    fill(&mut file)?;
    let finish = || {
        let like = fs::metadata(store.join(DATA))?;
        set_mode(&file, &like, like.mode())?;
        file.sync_all()
    };
    finish().map_err(|error| explain(error.into(), &partial.0))?;
    // Unlike a rename, a link never replaces another file.
    fs::hard_link(&partial.0, &name).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => there_already(),
        _ => explain(error.into(), &name),
    })
}

/// The temporary name of an incomplete file, which is removed on drop.
struct Partial(PathBuf);

impl Partial {
    /// Makes a file under a name that no other backup uses, including backups of other processes
    /// and of dead processes.
    fn make(directory: &Path) -> Result<(File, Self)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{DATA}.partial.{}.{number}", std::process::id());
            let path = directory.join(name);
            match File::options().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok((file, Self(path))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(explain(error.into(), &path)),
            }
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Ignores this error, so that an error of the copy is returned.
        drop(fs::remove_file(&self.0));
    }
}

/// Sets the mode of a new file or directory, and sets its group to the group of `like`.
fn set_mode(new: &File, like: &Metadata, mode: u32) -> io::Result<()> {
    let mut mode = mode & MODE_BITS;
    let is_same_group = new.metadata()?.gid() == like.gid();
    if !is_same_group && fchown(new, None, Some(like.gid())).is_err() {
        // The group cannot be set to the store's group, so the group of the file gets no access.
        mode &= !GROUP_BITS;
    }
    new.set_permissions(Permissions::from_mode(mode))
}
