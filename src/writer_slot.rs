//! One writer at a time within a process, and a clear error instead of a thread that waits for
//! itself.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::{Error, Result};

/// Held by the one transaction that may write.
#[derive(Debug, Default)]
pub(crate) struct WriterSlot {
    owner: Mutex<Option<ThreadId>>,
    freed: Condvar,
}

/// The right to write, given back on drop.
#[derive(Debug)]
pub(crate) struct WriterTurn<'s>(&'s WriterSlot);

impl WriterSlot {
    /// Waits for the writer before this one.
    ///
    /// # Errors
    /// [`Error::NestedTransaction`] when that writer is the calling thread.
    pub(crate) fn take(&self) -> Result<WriterTurn<'_>> {
        let here = thread::current().id();
        let mut owner = self.lock();
        loop {
            match *owner {
                None => break,
                Some(other) if other == here => return Err(Error::NestedTransaction),
                Some(_) => {
                    owner = self.freed.wait(owner).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        *owner = Some(here);
        Ok(WriterTurn(self))
    }

    // The guarded value is one word, whole at any moment, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WriterTurn<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
        self.0.freed.notify_one();
    }
}
