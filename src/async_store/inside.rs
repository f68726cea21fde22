//! Tracks, for each thread, the stores whose transaction bodies it runs.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::{Error, Result};

thread_local! {
    /// The memory addresses of the stores whose bodies run on this thread.
    // A list in the store would need a lock, and threads of the runtime would wait for this lock.
    static STORES: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Marks the thread as running bodies of a store, until the mark is dropped.
pub(super) struct Inside(PhantomData<*const ()>);

impl Inside {
    pub(super) fn enter<T>(store: &Arc<T>) -> Self {
        STORES.with_borrow_mut(|stores| stores.push(Arc::as_ptr(store).addr()));
        Self(PhantomData)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        STORES.with_borrow_mut(Vec::pop);
    }
}

/// Refuses a call from a body of the same store, because the body could wait for a transaction that
/// cannot begin before the body ends.
///
/// # Errors
/// [`Error::NestedTransaction`] if the thread runs a body of `store`.
pub(super) fn refuse<T>(store: &Arc<T>) -> Result<()> {
    match STORES.with_borrow(|stores| stores.contains(&Arc::as_ptr(store).addr())) {
        true => Err(Error::NestedTransaction),
        false => Ok(()),
    }
}
