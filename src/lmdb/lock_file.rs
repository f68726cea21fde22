//! The lock file: reserving its space on the disk, and finding whether a process uses it.
//!
//! The engine creates `lock.mdb` as a sparse file and writes to it through a map. If the disk has
//! no space for a page of this map, the system kills the process (SIGBUS). On a full disk this
//! happens when a store is opened, or when more snapshots are open than ever before. So the space
//! is reserved first.

use std::fs::File;
use std::io;
use std::path::Path;

/// The length of a reader slot, and the largest length of the header before the slots.
const SLOT_BYTES: u64 = 64;
const HEADER_BYTES: u64 = 4096;

/// Reserves the space that the lock file needs for `slots` slots. The length of the file stays the
/// same, since the engine computes the number of slots from the length.
///
/// # Errors
/// The system's error if there is no space. A file system that cannot reserve space is not an
/// error.
pub(super) fn reserve(file: &File, slots: u32) -> io::Result<()> {
    let bytes = file.metadata()?.len().max(HEADER_BYTES + SLOT_BYTES * u64::from(slots));
    match allocate(file, bytes) {
        Err(error) if is_no_room(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Opens the file in the same way as the engine. On a read-only file system the engine does not
/// need the file.
///
/// Must not be called while this process has the store open. Close the file only after the engine,
/// because closing it releases the engine's locks on the file.
pub(super) fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Whether the system refuses to open the file for writing, because of its mode or a read-only
/// mount.
pub(super) fn is_refused(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    [PermissionDenied, ReadOnlyFilesystem].contains(&error.kind())
}

/// Whether another process of this machine has the store open: the engine holds a lock on the first
/// byte. `false` if the file does not exist.
///
/// Must not be called while this process has the store open, because closing the file would release
/// the engine's locks on it.
///
/// # Errors
/// The system's error if the file exists but cannot be read. It is then unknown whether the file is
/// in use.
#[allow(unsafe_code)]
pub(super) fn is_in_use(path: &Path) -> io::Result<bool> {
    use std::os::fd::AsRawFd;
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    // SAFETY: a structure of numbers, for which zero is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = 1;
    // SAFETY: the descriptor is open, and the system reads and writes only the structure.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
    match answer {
        0 => Ok(lock.l_type != libc::F_UNLCK as libc::c_short),
        _ => Err(io::Error::last_os_error()),
    }
}

fn is_no_room(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    [QuotaExceeded, StorageFull].contains(&error.kind())
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    loop {
        // SAFETY: the call reads and writes no memory of this process, and the descriptor is open.
        let done =
            unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, bytes) };
        let error = io::Error::last_os_error();
        if done == 0 {
            return Ok(());
        }
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_file: &File, _bytes: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_unopened_lock_file_does_not_prove_that_no_one_writes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock.mdb");
        assert!(!is_in_use(&path).unwrap(), "it is missing");
        // A cycle of symbolic links cannot be opened. A file mode would not do, since root may read
        // any file.
        std::os::unix::fs::symlink(&path, &path).unwrap();
        assert!(is_in_use(&path).is_err());
    }
}
