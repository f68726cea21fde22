//! Whether there is room left for a file.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A disk with less room than this counts as full.
const LEAST_BYTES: u64 = 1 << 20;

/// Whether the file could still grow: there is room on its disk, and the system allows this process files
/// of such a size. `true` when the system does not say.
pub(super) fn is_left(file: &Path) -> bool {
    let length = file.metadata().map_or(0, |file| file.len());
    on_disk(file).is_none_or(|bytes| bytes >= LEAST_BYTES)
        && allowed().is_none_or(|bytes| length.saturating_add(LEAST_BYTES) <= bytes)
}

/// The bytes that are free for this user.
// The types of the fields differ from system to system.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
fn on_disk(file: &Path) -> Option<u64> {
    let path = CString::new(file.as_os_str().as_bytes()).ok()?;
    let mut found = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero, and there is room for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the system said that it has filled it.
    let found = unsafe { found.assume_init() };
    Some((found.f_bavail as u64).saturating_mul(found.f_frsize as u64))
}

/// The longest file that this process may write; `None` when there is no limit.
#[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
fn allowed() -> Option<u64> {
    let mut limit = MaybeUninit::<libc::rlimit>::uninit();
    // SAFETY: there is room for the answer.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the system said that it has filled it.
    let limit = unsafe { limit.assume_init() }.rlim_cur;
    (limit != libc::RLIM_INFINITY).then_some(limit as u64)
}
