//! Checks whether the disk has free space for the file of a store.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A disk with less free space than this counts as full.
// A commit writes several pages at once, so it fails before the disk is completely full. A larger
// value would misattribute other failures to a full disk.
const LEAST_BYTES: u64 = 1 << 20;

/// Returns the engine's error for a write to the store in `path`, with the system's reason if it is
/// known.
///
/// A full disk often shows first as a partial write, which the engine reports as EIO, like a
/// failing disk. So this checks the free space of the disk and the file size limit of this process.
/// If the system does not report these, the error stays unchanged.
pub(super) fn reason(error: heed::Error, path: &Path) -> heed::Error {
    let heed::Error::Io(source) = error else { return error };
    let shortage = if is_eio(&source) { shortage(&path.join("data.mdb")) } else { None };
    heed::Error::Io(shortage.map_or(source, io::Error::from_raw_os_error))
}

pub(super) fn is_eio(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

/// The error code of the reason why the file cannot grow.
fn shortage(file: &Path) -> Option<i32> {
    let length = file.metadata().map_or(0, |file| file.len());
    let is_too_long = |bytes| length.saturating_add(LEAST_BYTES) > bytes;
    if on_disk(file).is_some_and(|bytes| bytes < LEAST_BYTES) {
        Some(libc::ENOSPC)
    } else {
        allowed().filter(|bytes| is_too_long(*bytes)).map(|_| libc::EFBIG)
    }
}

/// The bytes that are free for this user.
// The types of the fields differ from system to system.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
fn on_disk(file: &Path) -> Option<u64> {
    let path = CString::new(file.as_os_str().as_bytes()).ok()?;
    let mut found = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero, and the buffer is large enough for the result.
    if unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so the system has filled the buffer.
    let found = unsafe { found.assume_init() };
    Some((found.f_bavail as u64).saturating_mul(found.f_frsize as u64))
}

/// The longest file that this process may write; `None` if there is no limit.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
fn allowed() -> Option<u64> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: the buffer is large enough for the result.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so the system has filled the buffer.
    let limit = unsafe { limit.assume_init() }.rlim_cur;
    (limit != libc::RLIM_INFINITY).then_some(limit as u64)
}
