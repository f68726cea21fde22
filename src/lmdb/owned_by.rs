//! Values of one process that a forked child must not drop.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use crate::backend::Process;

/// A value whose destructor runs only in the process that made the value.
///
/// Ending an LMDB transaction writes to memory that all processes share: a forked child that
/// dropped its copy would free the parent's reader slot or unlock the parent's writer lock. So the
/// child leaks the value; a forked child usually runs another program soon.
pub(super) struct OwnedBy<T> {
    value: ManuallyDrop<T>,
    process: Process,
}

impl<T> OwnedBy<T> {
    pub(super) fn new(value: T, process: Process) -> Self {
        Self { value: ManuallyDrop::new(value), process }
    }

    /// Returns the value itself. Its destructor then runs in any process.
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
