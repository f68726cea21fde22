//! The files that an operation syncs, and their order.
//!
//! The functions below replace those of the C library in this program.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

/// A file or directory that was synced, and whether the watched file existed at that moment.
pub type Synced = (PathBuf, bool);

thread_local! {
    static SYNCED: RefCell<Option<(PathBuf, Vec<Synced>)>> = const { RefCell::new(None) };
}

/// Runs `work`. Returns the files that this thread synced meanwhile. `watched` is the path of a
/// file.
pub fn synced(watched: &Path, work: impl FnOnce()) -> Vec<Synced> {
    SYNCED.set(Some((watched.into(), Vec::new())));
    work();
    SYNCED.take().unwrap().1
}

fn note(descriptor: libc::c_int) {
    let path = fs::read_link(format!("/proc/self/fd/{descriptor}")).unwrap_or_default();
    // A thread that is ending records nothing.
    let _ = SYNCED.try_with(|synced| {
        if let Some((watched, synced)) = &mut *synced.borrow_mut() {
            synced.push((path, watched.exists()));
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn fsync(descriptor: libc::c_int) -> libc::c_int {
    note(descriptor);
    // SAFETY: the call takes a number, and accesses no memory.
    unsafe { libc::syscall(libc::SYS_fsync, descriptor) as libc::c_int }
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(descriptor: libc::c_int) -> libc::c_int {
    note(descriptor);
    // SAFETY: the call takes a number, and accesses no memory.
    unsafe { libc::syscall(libc::SYS_fdatasync, descriptor) as libc::c_int }
}
