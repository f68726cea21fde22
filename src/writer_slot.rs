//! One writer at a time within a process, and a clear error instead of a thread that waits for
//! itself.

use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::{Error, Result};

/// Held by the one transaction that may write.
#[derive(Debug, Default)]
pub(crate) struct WriterSlot {
    owner: Mutex<Option<ThreadId>>,
    freed: Condvar,
}

/// The right to write, given back on drop. It stays with its thread: on another one, "this thread
/// writes already" would be asked of the wrong thread.
#[derive(Debug)]
pub(crate) struct WriterTurn<'s> {
    slot: &'s WriterSlot,
    _of_this_thread: PhantomData<MutexGuard<'s, ()>>,
}

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
        Ok(WriterTurn { slot: self, _of_this_thread: PhantomData })
    }

    /// # Errors
    /// [`Error::NestedTransaction`] when the calling thread is the writer.
    #[cfg(feature = "lmdb")]
    pub(crate) fn refuse_own(&self) -> Result<()> {
        let is_own = *self.lock() == Some(thread::current().id());
        if is_own { Err(Error::NestedTransaction) } else { Ok(()) }
    }

    // The guarded value is one word, whole at any moment, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WriterTurn<'_> {
    fn drop(&mut self) {
        *self.slot.lock() = None;
        self.slot.freed.notify_one();
    }
}
