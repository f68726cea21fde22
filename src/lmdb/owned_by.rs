//! What belongs to one process and must not be touched by its forks.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::{Error, Result};

/// A process, to be compared with the one that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process(u32);

/// No process: it was not asked for yet, or this is a new child.
const UNKNOWN: u32 = 0;
static KNOWN: AtomicU32 = AtomicU32::new(UNKNOWN);
static FORK_IS_TOLD: AtomicU32 = AtomicU32::new(0);

extern "C" fn forget() {
    KNOWN.store(UNKNOWN, Relaxed);
}

impl Process {
    /// The process that runs. Remembered, since each snapshot asks and the system takes as long to
    /// answer as a get; a child of `fork` begins by forgetting it.
    #[inline]
    pub(super) fn current() -> Self {
        match KNOWN.load(Relaxed) {
            UNKNOWN => Self::ask(),
            id => Self(id),
        }
    }

    #[cold]
    fn ask() -> Self {
        static FORGETS: Once = Once::new();
        let id = std::process::id();
        FORGETS.call_once(|| {
            // SAFETY: the handler touches an atomic number only, which is allowed in a child whose
            // other threads are gone.
            let refused = unsafe { libc::pthread_atfork(None, None, Some(forget)) };
            FORK_IS_TOLD.store(u32::from(refused == 0), Relaxed);
        });
        if FORK_IS_TOLD.load(Relaxed) != 0 {
            KNOWN.store(id, Relaxed);
        }
        Self(id)
    }

    /// # Errors
    /// [`Error::Forked`] when another process runs than the one that opened `path`.
    pub(super) fn check(self, path: &Path) -> Result<()> {
        let here = Self::current();
        if here == self {
            return Ok(());
        }
        let remedy = "drop this handle and open the store again";
        Err(Error::Forked { path: path.to_path_buf(), opened_by: self.0, here: here.0, remedy })
    }
}

/// A value whose destructor runs only in the process that made it.
///
/// Ending an LMDB transaction writes to memory that all processes share: a forked child that dropped
/// its copy would free the parent's reader slot or unlock the parent's writer lock. There it is
/// leaked instead; a child of that kind is about to run another program anyway.
pub(super) struct OwnedBy<T> {
    value: ManuallyDrop<T>,
    process: Process,
}

impl<T> OwnedBy<T> {
    pub(super) fn new(value: T, process: Process) -> Self {
        Self { value: ManuallyDrop::new(value), process }
    }

    /// The value itself, whose destructor then runs anywhere.
    pub(super) fn into_inner(mut self) -> T {
        // SAFETY: `self` is forgotten in the next line, so the value is taken only once.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        std::mem::forget(self);
        value
    }
}

impl<T> fmt::Debug for OwnedBy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedBy").field("process", &self.process).finish_non_exhaustive()
    }
}

impl<T> Deref for OwnedBy<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for OwnedBy<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for OwnedBy<T> {
    fn drop(&mut self) {
        if Process::current() == self.process {
            // SAFETY: dropped once, here; `into_inner` forgets `self`.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}
