//! One process after the other opens a store.
//!
//! The engine lets the first process that opens the file prepare the file of locks, while others
//! wait. When that one is killed half way, those who waited go on with what it left: locks that are
//! none, or the number of the last transaction as 0, from which the next commit is built on an old
//! state and undoes what others were told is committed. Whoever waits here instead finds nobody in
//! the file, and prepares it again.

use std::fs::{File, TryLockError};
use std::io::{Error as IoError, ErrorKind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::open::explain;
use crate::{Error, Result};

/// How long another process may take to open the store: a file that is walked for damage takes a
/// while.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_micros(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Keeps other processes from opening a store until it is dropped, or the process dies. Nothing
/// where the directory must not be read, or its file system has no such locks.
#[derive(Debug)]
pub(super) struct OpeningLock(Option<File>);

/// Which other processes an [`OpeningLock`] keeps from opening the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// All of them: this one may prepare the file of locks.
    All,
    /// Those that may write to the store: this one makes no use of the file of locks.
    Writers,
}

impl OpeningLock {
    /// Waits for whoever is opening the store in `path`.
    ///
    /// # Errors
    /// [`Error::OpeningHeld`], or what the system says.
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
                // When a process dies, Linux takes this lock from it after those that the engine
                // has on its file.
                Ok(()) => return Ok(Self(Some(directory))),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    let waited_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                    return Err(Error::OpeningHeld { path: path.to_path_buf(), waited_ms });
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
        // Closing alone would leave it to a child that was forked meanwhile.
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
