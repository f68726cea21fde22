//! Barriers: sessions wait until another one lets them pass.

use std::time::Duration;

use keyloom::{Reader, Result, Store};

use super::Of;
use super::wait::{Attempt, Awaited, wait_until};
use crate::conflicts::Asker;
use crate::locks::RequestKey;
use crate::{Blocker, Guard, Locks, Session};

#[cfg(doc)]
use crate::LockError;

/// A barrier: programs wait while a session holds it; see the [module](super). Cheap to clone.
///
/// ```
/// use std::time::Duration;
/// use keyloom::Memory;
/// use keyloom_locking::recipes::Recipes;
/// use keyloom_locking::{LockPath, Locks, Session};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let schema = Schema::open(&store, "shop")?;
/// let locks = Locks::open(&schema, "locks")?;
/// let barrier = Recipes::open(&schema, &locks, "recipes")?.barrier(&LockPath::of(["moving"]))?;
/// let session = Session::begin(&store, &locks, "mover")?;
///
/// let held = barrier.hold(&session)?;
/// assert!(barrier.wait(&store, Duration::from_millis(5)).is_err());
/// held.release()?;
/// barrier.wait(&store, Duration::from_secs(5))?;
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Barrier {
    pub(super) of: Of,
    pub(super) locks: Locks,
}

impl Barrier {
    /// Holds the barrier until the guard is released or the session ends. The barrier is an
    /// exclusive lock of its path, so one session holds it at a time.
    ///
    /// # Errors
    /// [`LockError::Blocked`] if another session holds it; the other errors of
    /// [`Session::try_lock`].
    pub fn hold<'s, S: Store + Clone>(&self, session: &'s Session<S>) -> Result<Guard<'s, S>> {
        session.try_lock(std::slice::from_ref(&self.of.lock))
    }

    /// The session that holds the barrier, if there is one.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn holder(&self, reader: &impl Reader) -> Result<Option<Blocker>> {
        Ok(self.find(reader)?.map(|(_, holder)| holder))
    }

    /// Waits until no session holds the barrier, at most this long. It needs no session, and writes
    /// nothing.
    ///
    /// # Errors
    /// [`LockError::TimedOut`]; any error of the store.
    pub fn wait(&self, store: &impl Store, patience: Duration) -> Result<()> {
        let what = self.of.shown("the way through the barrier");
        wait_until(store, &self.locks, &what, patience, || {
            let snapshot = store.snapshot()?;
            let Some((request, holder)) = self.find(&snapshot)? else {
                return Ok(Attempt::Done(()));
            };
            let key = self.locks.requests.space().pack(&request);
            Awaited::new(&snapshot, key, vec![holder]).map(Attempt::Wait)
        })
    }

    fn find(&self, reader: &impl Reader) -> Result<Option<(RequestKey, Blocker)>> {
        // The sessions that request locks have greater ids; tickets that wait are greater than 0.
        let asker = Asker { session: 0, ticket: 0, locks: std::slice::from_ref(&self.of.lock) };
        let now = self.locks.clock.now()?;
        let found = self.locks.in_the_way(reader, now, asker, usize::MAX, &[])?;
        let first = found.blockers.into_iter().next();
        Ok(first.map(|holder| ((holder.session, holder.ticket), holder)))
    }
}
