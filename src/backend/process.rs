//! The id of a process, to refuse the use of a store in a forked child.
#![cfg_attr(feature = "lmdb", allow(unsafe_code))]

use std::path::Path;

use crate::{Error, Result};

/// The process that opened a store, to be compared with the process that uses the store.
///
/// A child of `fork` shares file positions, locks and mapped memory with its parent. An engine that
/// is unaware of the fork overwrites the parent's data, so each snapshot and each transaction
/// begins with [`check`](Process::check).
///
/// ```
/// use keyloom::backend::Process;
/// let opened_by = Process::current();
/// assert!(opened_by.check("the store".as_ref()).is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The running process.
    #[inline]
    pub fn current() -> Self {
        Self(id())
    }

    /// Returns an error if the running process is not this one but its forked child. `path` is the
    /// store that the error names.
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[inline]
    pub fn check(self, path: &Path) -> Result<()> {
        let here = Self::current();
        if here == self {
            return Ok(());
        }
        let remedy = "drop this handle and open the store again";
        Err(Error::Forked { path: path.to_path_buf(), opened_by: self.0, here: here.0, remedy })
    }
}

#[cfg(not(feature = "lmdb"))]
fn id() -> u32 {
    std::process::id()
}

/// Caches the id, because the system call takes as long as a get. In a child of `fork`, a handler
/// clears the cached id.
#[cfg(feature = "lmdb")]
#[inline]
fn id() -> u32 {
    match known::ID.load(std::sync::atomic::Ordering::Relaxed) {
        known::UNKNOWN => known::ask(),
        id => id,
    }
}

#[cfg(feature = "lmdb")]
mod known {
    use std::sync::Once;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    /// The id is unknown: the process has not read it yet, or this is a new child after a fork.
    pub(super) const UNKNOWN: u32 = 0;
    pub(super) static ID: AtomicU32 = AtomicU32::new(UNKNOWN);
    static FORK_IS_TOLD: AtomicU32 = AtomicU32::new(0);

    extern "C" fn forget() {
        ID.store(UNKNOWN, Relaxed);
    }

    #[cold]
    pub(super) fn ask() -> u32 {
        static FORGETS: Once = Once::new();
        let id = std::process::id();
        FORGETS.call_once(|| {
            // SAFETY: the handler accesses only an atomic number, which is allowed in a child whose
            // other threads have ended.
            let refused = unsafe { libc::pthread_atfork(None, None, Some(forget)) };
            FORK_IS_TOLD.store(u32::from(refused == 0), Relaxed);
        });
        if FORK_IS_TOLD.load(Relaxed) != 0 {
            ID.store(id, Relaxed);
        }
        id
    }
}
