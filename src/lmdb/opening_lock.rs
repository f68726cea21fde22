//! A lock under which processes open a store one after the other.
//!
//! The first process that opens the store initializes the lock file, while other processes wait. If
//! the first process is killed meanwhile, the others would continue with an incomplete lock file:
//! uninitialized locks, or 0 as the number of the last transaction. The next commit would then
//! build on an old state and undo acknowledged commits. With this lock, the next process finds that
//! no process uses the lock file, and initializes it again.

use std::fs::{File, TryLockError};
use std::io::{Error as IoError, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::explain::explain;
use crate::{Error, LmdbError, Result};

/// The longest wait for another process that opens the store. Such a process may need time to check
/// the file for damage.
const PATIENCE: Duration = Duration::from_secs(30);
// Shorter pauses cost more system calls, since a check may take seconds. Longer pauses delay the
// opening after another process has finished.
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Keeps other processes from opening a store until it is dropped, or the process dies. Has no
/// effect if the directory is not readable, or if its file system has no such locks.
#[derive(Debug)]
pub(super) struct OpeningLock(Option<File>);

/// Which other processes an [`OpeningLock`] keeps from opening the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// All other processes, for a process that may initialize the lock file.
    All,
    /// Only processes that may write, for a process that does not use the lock file.
    Writers,
}

impl OpeningLock {
    /// Waits for the process that is opening the store in `path`.
    ///
    /// # Errors
    /// [`LmdbError::OpeningHeld`], or an error of the system.
    pub(super) fn take(path: &Path, others: Others) -> Result<Self> {
        let directory = match File::open(path) {
            Ok(directory) => directory,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(Self(None)),
            Err(error) => return Err(explain(error.into(), path)),
        };
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let locked = match others {
                Others::All => directory.try_lock(),
                Others::Writers => directory.try_lock_shared(),
            };
            match locked {
                // When a process dies, Linux releases this lock after the engine's locks on the
                // lock file.
                Ok(()) => return Ok(Self(Some(directory))),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    let waited_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                    return Err(Error::Lmdb(LmdbError::OpeningHeld {
                        path: path.to_path_buf(),
                        waited_ms,
                    }));
                }
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {}
                Err(TryLockError::Error(error)) if is_unsupported(&error) => return Ok(Self(None)),
                Err(TryLockError::Error(error)) => return Err(explain(error.into(), path)),
            }
        }
    }
}

impl Drop for OpeningLock {
    fn drop(&mut self) {
        // Unlocked explicitly: after a mere close, a child that was forked meanwhile would still
        // hold the lock.
        if let Some(directory) = &self.0 {
            drop(directory.unlock());
        }
    }
}

fn is_unsupported(error: &IoError) -> bool {
    let codes = [libc::ENOSYS, libc::EOPNOTSUPP, libc::ENOTSUP, libc::ENOLCK, libc::EINVAL];
    error.kind() == ErrorKind::Unsupported
        || error.raw_os_error().is_some_and(|code| codes.contains(&code))
}
