//! Releases that failed when a guard was dropped, and are retried later.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keyloom::{Error, Result, Store};

use crate::LockError;
use crate::records::RequestKey;

/// The result of a release.
pub(crate) enum Released {
    Done,
    /// The lock has unfinished work. Another session can take the work over from this key.
    Left(RequestKey, Error),
}

/// A release of a lock, a permit or an entry.
pub(crate) type Release<S> = Box<dyn Fn(&S) -> Result<Released> + Send>;

/// The state that a session shares with the thread that renews its lease.
pub(crate) struct Shared<S> {
    state: Mutex<State<S>>,
    changed: Condvar,
}

struct State<S> {
    stop: Stop,
    renewal: Option<Error>,
    /// Whether there is a release that the thread has not tried yet.
    has_new: bool,
    pending: Vec<Pending<S>>,
    failures: Vec<Error>,
    left: Vec<RequestKey>,
}

struct Pending<S> {
    release: Release<S>,
    /// Whether an earlier attempt may have been committed.
    is_unknown: bool,
}

/// Whether the thread should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    Yes,
    /// The thread stops, and first ends the session, which could not end itself.
    EndSession,
}

impl<S> Default for Shared<S> {
    fn default() -> Self {
        let state = State {
            stop: Stop::No,
            renewal: None,
            has_new: false,
            pending: Vec::new(),
            failures: Vec::new(),
            left: Vec::new(),
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<S: Store> Shared<S> {
    fn state(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases now if the store permits, otherwise later. A [`LockError`] is final: it is not
    /// retried.
    pub(crate) fn release(&self, store: &S, release: Release<S>) {
        self.attempt(store, Pending { release, is_unknown: false });
        self.wake();
    }

    /// Wakes the thread if releases are pending.
    fn wake(&self) {
        let mut state = self.state();
        if !state.pending.is_empty() {
            state.has_new = true;
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Retries the releases that failed, before another operation of the session.
    pub(crate) fn release_before(&self, store: &S) {
        self.release_pending(store);
        self.wake();
    }

    /// Retries the releases that failed.
    pub(crate) fn release_pending(&self, store: &S) {
        let mut state = self.state();
        state.has_new = false;
        let pending = std::mem::take(&mut state.pending);
        drop(state);
        pending.into_iter().for_each(|pending| self.attempt(store, pending));
    }

    fn attempt(&self, store: &S, mut pending: Pending<S>) {
        let released = (pending.release)(store);
        let mut state = self.state();
        match released {
            Ok(Released::Done) => {}
            Ok(Released::Left(key, error)) => {
                state.left.push(key);
                state.failures.push(error);
            }
            Err(error) => match error.downcast_ref::<LockError>() {
                // The previous attempt was committed.
                Some(LockError::Lost { .. }) if pending.is_unknown => {}
                Some(_) => state.failures.push(error),
                None => {
                    pending.is_unknown |= error.maybe_committed();
                    state.pending.push(pending);
                }
            },
        }
    }

    pub(crate) fn take_failures(&self) -> Vec<Error> {
        std::mem::take(&mut self.state().failures)
    }

    /// The keys of locks with unfinished work that were left to other sessions.
    pub(crate) fn left(&self) -> Vec<RequestKey> {
        self.state().left.clone()
    }

    pub(crate) fn renewal_failure(&self) -> Option<Error> {
        self.state().renewal.clone()
    }

    pub(crate) fn note_renewal(&self, failed: Option<Error>) {
        self.state().renewal = failed;
    }

    pub(crate) fn stop(&self, stop: Stop) {
        self.state().stop = stop;
        self.changed.notify_all();
    }

    /// Waits until the session stops or a release is added, at most for `most`.
    pub(crate) fn wait(&self, most: Duration) -> Stop {
        let is_idle = |state: &mut State<S>| state.stop == Stop::No && !state.has_new;
        let waited = self.changed.wait_timeout_while(self.state(), most, is_idle);
        waited.unwrap_or_else(PoisonError::into_inner).0.stop
    }
}
