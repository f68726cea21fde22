//! A writer lock between processes, with a time-out.
//!
//! The engine has its own lock for this, but waits for that lock without a time-out and does not
//! report its holder. So a writer first locks a byte of the lock file (`fcntl`). The engine's lock
//! is then free.
//!
//! | byte of the lock file | locked by |
//! |---|---|
//! | 2^40 | the process that writes |
//! | 2^40 + 1 | the process that writes next |
//!
//! The engine locks only bytes below 2^32. When a process dies, the system releases these two locks
//! too, after the locks of the engine. A forked child does not inherit them.
//!
//! A process that uses the engine without keyloom, or with an older keyloom, does not take this
//! lock. The engine's lock still excludes such a process, but a wait for the engine's lock has no
//! time-out.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::explain::explain;
use crate::deadline::Deadline;
use crate::{Error, Result};

const WRITER: libc::off_t = 1 << 40;
const NEXT: libc::off_t = WRITER + 1;

// A shorter pause costs more system calls; a longer pause adds to the waits for short transactions.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);
// Bounds the time by which pauses prolong a long wait.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// How long a process may write repeatedly before it checks whether another process waits. A check
/// is a system call. Without the check, a process that writes in a loop would starve the others.
// While another process writes in a loop, 20 puts take 51 s without the check, and 0.2 s with it. A
// check before each transaction would add a third system call to a begin that needs two.
const MOST_IMPATIENT: Duration = Duration::from_millis(1);

/// The lock of the writing process. One thread at a time may take it.
#[derive(Debug)]
pub(super) struct WriterLock {
    /// `None` if the file cannot be opened; the engine then reports the reason.
    file: Option<Arc<File>>,
    checked: Mutex<Option<Instant>>,
}

/// The right of this process to write, released on drop.
#[derive(Debug)]
pub(super) struct ProcessTurn<'l> {
    _locked: Option<LockedByte<'l>>,
}

impl WriterLock {
    pub(super) fn new(file: Option<Arc<File>>) -> Self {
        Self { file, checked: Mutex::new(None) }
    }

    /// Waits for the writers of other processes.
    ///
    /// # Errors
    /// [`Error::WriterBusy`], or the system's error for the lock file of the store in `path`.
    pub(super) fn take(&self, deadline: &Deadline<'_>, path: &Path) -> Result<ProcessTurn<'_>> {
        let taken = self.try_take(deadline).map_err(|error| explain(error.into(), path))?;
        taken.ok_or_else(|| Error::WriterBusy {
            holder: self.holder(),
            waited_ms: deadline.waited_ms(),
        })
    }

    /// Takes the lock, or returns `None` if the deadline has passed.
    fn try_take(&self, deadline: &Deadline<'_>) -> io::Result<Option<ProcessTurn<'_>>> {
        let Some(file) = &self.file else { return Ok(Some(ProcessTurn { _locked: None })) };
        if !(self.is_check_due() && holder(file, NEXT)?.is_some())
            && let Some(locked) = LockedByte::try_new(file, WRITER)?
        {
            return Ok(Some(ProcessTurn { _locked: Some(locked) }));
        }
        let Some(_next) = LockedByte::wait(file, NEXT, deadline)? else { return Ok(None) };
        let locked = LockedByte::wait(file, WRITER, deadline)?;
        Ok(locked.map(|locked| ProcessTurn { _locked: Some(locked) }))
    }

    /// The other process that holds the lock, if the system reports one.
    pub(super) fn holder(&self) -> Option<u32> {
        let file = self.file.as_ref()?;
        holder(file, WRITER).ok()?.and_then(|process| u32::try_from(process).ok())
    }

    fn is_check_due(&self) -> bool {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = checked.is_none_or(|then| now.duration_since(then) >= MOST_IMPATIENT);
        if is_due {
            *checked = Some(now);
        }
        is_due
    }
}

/// A locked byte of a file. No other process can lock this byte until the value is dropped.
#[derive(Debug)]
struct LockedByte<'f> {
    file: &'f File,
    at: libc::off_t,
}

impl<'f> LockedByte<'f> {
    fn wait(file: &'f File, at: libc::off_t, deadline: &Deadline<'_>) -> io::Result<Option<Self>> {
        loop {
            let locked = Self::try_new(file, at)?;
            let left = deadline.left();
            if locked.is_some() || left.is_zero() {
                return Ok(locked);
            }
            // A pause prolongs a wait of at least 0.5 ms by at most a tenth.
            let pause = (deadline.waited() / 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            thread::sleep(pause.min(left));
        }
    }

    fn try_new(file: &'f File, at: libc::off_t) -> io::Result<Option<Self>> {
        match control(file, libc::F_SETLK, &mut record(libc::F_WRLCK, at)) {
            Ok(()) => Ok(Some(Self { file, at })),
            Err(error) if is_held(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for LockedByte<'_> {
    fn drop(&mut self) {
        // In a forked child this has no effect, because the parent holds the lock.
        drop(control(self.file, libc::F_SETLK, &mut record(libc::F_UNLCK, self.at)));
    }
}

/// The process that has locked a byte. The system reports no positive number for a process of
/// another PID namespace.
#[allow(clippy::useless_conversion)]
fn holder(file: &File, at: libc::off_t) -> io::Result<Option<libc::pid_t>> {
    let mut found = record(libc::F_WRLCK, at);
    control(file, libc::F_GETLK, &mut found)?;
    Ok((i32::from(found.l_type) != i32::from(libc::F_UNLCK)).then_some(found.l_pid))
}

fn is_held(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| code == libc::EAGAIN || code == libc::EACCES)
}

// The types of the constants and fields differ from system to system.
#[allow(clippy::cast_possible_truncation, clippy::unnecessary_cast)]
fn record(kind: impl Into<libc::c_int>, at: libc::off_t) -> libc::flock {
    // SAFETY: all fields are numbers, for which zeros are valid.
    let mut record: libc::flock = unsafe { std::mem::zeroed() };
    record.l_type = kind.into() as libc::c_short;
    record.l_whence = libc::SEEK_SET as libc::c_short;
    record.l_start = at;
    record.l_len = 1;
    record
}

fn control(file: &File, command: libc::c_int, record: &mut libc::flock) -> io::Result<()> {
    loop {
        // SAFETY: the descriptor is open, and the record lives as long as the call.
        if unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(record)) } != -1 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_processes_are_looked_for_now_and_then() {
        let lock = WriterLock::new(None);
        assert!(lock.is_check_due(), "it never looked");
        let looks = (0..1_000).filter(|_| lock.is_check_due()).count();
        assert!(looks < 1_000, "it looks each time");
        thread::sleep(MOST_IMPATIENT);
        assert!(lock.is_check_due());
    }
}
