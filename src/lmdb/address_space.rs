//! Checks whether the system has address space for a larger map.
#![allow(unsafe_code)]

use std::io;
use std::ptr;

/// Reserves `bytes` of address space and releases them. Uses no memory.
///
/// # Errors
/// The error of the system, for example because a limit is reached.
pub(super) fn probe(bytes: usize) -> io::Result<()> {
    // SAFETY: the system chooses the address of the new mapping, and nothing refers to it.
    let room = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if room == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: unmaps exactly the mapping that was just made.
    if unsafe { libc::munmap(room, bytes) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
