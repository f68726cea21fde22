//! Held locks that release themselves.

use std::fmt;

use keyloom::{Result, Store};

use crate::deferred::Released;
use crate::records::shown;
use crate::request::stronger;
use crate::work::Operation;
use crate::{Grant, Lock, LockError, Mode, Patience, Session};

/// Held locks, which are released when the guard is dropped. If that release fails with an error of
/// the store, for example because the thread has a transaction open, the session releases the locks
/// later. Locks with unfinished work stay until any session finishes the work, as after the end of
/// this session. If a lock was lost or has unfinished work, [`Session::take_failures`] returns the
/// error.
#[must_use = "a guard that is dropped releases its locks"]
pub struct Guard<'s, S: Store + Clone> {
    session: &'s Session<S>,
    grant: Grant,
    locks: Vec<Lock>,
    is_released: bool,
}

impl<S: Store + Clone> fmt::Debug for Guard<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Guard");
        debug.field("locks", &shown(&self.locks)).field("grant", &self.grant).finish()
    }
}

impl<'s, S: Store + Clone> Guard<'s, S> {
    pub(crate) fn new(session: &'s Session<S>, grant: Grant, locks: &[Lock]) -> Self {
        Self { session, grant, locks: locks.to_vec(), is_released: false }
    }

    /// The grant, for the methods of [`Locks`](crate::Locks). The grant is borrowed, so that the
    /// guard lives as long as the grant is used:
    ///
    /// ```compile_fail,E0716
    /// # use keyloom::{Memory, Store};
    /// # use keyloom_locking::{Lock, LockPath, Locks, Session};
    /// # use keyloom_tables::Schema;
    /// # let store = Memory::new();
    /// # let locks = Locks::open(&Schema::open(&store, "shop")?, "locks")?;
    /// # let session = Session::begin(&store, &locks, "ada")?;
    /// // The guard is dropped at the end of this statement, and releases the lock.
    /// let grant = session.lock(&[Lock::exclusive(LockPath::root())])?.grant();
    /// store.transact(|txn| locks.verify(txn, *grant))?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// ```
    /// # use keyloom::{Memory, Store};
    /// # use keyloom_locking::{Lock, LockPath, Locks, Session};
    /// # use keyloom_tables::Schema;
    /// # let store = Memory::new();
    /// # let locks = Locks::open(&Schema::open(&store, "shop")?, "locks")?;
    /// # let session = Session::begin(&store, &locks, "ada")?;
    /// let guard = session.lock(&[Lock::exclusive(LockPath::root())])?;
    /// store.transact(|txn| locks.verify(txn, *guard.grant()))?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The fencing token. Pass it to every service that the work under the lock changes. The
    /// service must refuse tokens smaller than the largest token that it has seen for the same
    /// lock.
    pub fn token(&self) -> u64 {
        self.grant.token
    }

    /// The locks.
    pub fn locks(&self) -> &[Lock] {
        &self.locks
    }

    /// [`Store::transact`] under the lock: commits only if the lock is still held. Costs one
    /// additional get.
    ///
    /// # Errors
    /// [`LockError::Lost`]; the errors of `body` and of [`Store::transact`].
    pub fn transact<T>(
        &self,
        mut body: impl FnMut(&mut S::Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        let Session { store, locks, .. } = self.session;
        store.transact(|txn| {
            locks.verify(txn, self.grant)?;
            body(txn)
        })
    }

    /// Does work in steps under the lock, so that another program can finish the work if this one
    /// dies; see [`work`](crate::work).
    ///
    /// # Errors
    /// The errors of [`Locks::run`](crate::Locks::run).
    pub fn run(&self, operation: &impl Operation, argument: &[u8]) -> Result<()> {
        self.session.locks.run(&self.session.store, self.grant, operation, argument)
    }

    /// Continues work under the lock that ended with an error.
    ///
    /// # Errors
    /// The errors of [`Locks::resume`](crate::Locks::resume).
    pub fn resume(&self, operation: &impl Operation) -> Result<()> {
        self.session.locks.resume(&self.session.store, self.grant, operation)
    }

    /// Weakens the lock; see [`Locks::downgrade`](crate::Locks::downgrade).
    ///
    /// # Errors
    /// The errors of [`Locks::downgrade`](crate::Locks::downgrade).
    pub fn downgrade(&mut self, mode: Mode) -> Result<()> {
        let Session { store, locks, .. } = self.session;
        store.transact(|txn| locks.downgrade(txn, self.grant, mode))?;
        self.locks.iter_mut().for_each(|lock| lock.mode = mode);
        Ok(())
    }

    /// Strengthens the lock to `mode`, and waits for the new mode at most for `patience`. The old
    /// mode is held meanwhile, so no other session changes the data that it protects. One
    /// transaction verifies the old lock and replaces it: data that was read under the old lock is
    /// still current under the new one. If the upgrade fails, the old mode stays, unless the old
    /// lock is lost.
    ///
    /// If two sessions share a lock and both upgrade it, they wait for each other: one of them gets
    /// [`LockError::Deadlock`]. Lock exclusively from the start if a change is likely.
    ///
    /// # Errors
    /// [`LockError::Lost`] if the old lock is no longer held: data that was read under it may have
    /// changed. [`LockError::UnfinishedWork`]; the errors of [`Session::lock_within`].
    pub fn upgrade(&mut self, mode: Mode, patience: impl Into<Patience>) -> Result<()> {
        let stronger = stronger(&self.locks, mode);
        self.grant = self.session.upgrade(self.grant, mode, &stronger, &patience.into())?;
        self.locks = stronger;
        Ok(())
    }

    /// Releases the lock. After an error of the store, the session retries the release later.
    ///
    /// # Errors
    /// [`LockError::Lost`] if the lock is no longer held: writes under it outside of
    /// [`transact`](Guard::transact) may have been wrong. [`LockError::UnfinishedWork`], after
    /// which any session can finish the work; any error of the store.
    pub fn release(mut self) -> Result<()> {
        let Session { store, locks, .. } = self.session;
        let released = store.transact(|txn| locks.release(txn, self.grant));
        let lost =
            |error: &keyloom::Error| matches!(error.downcast_ref(), Some(LockError::Lost { .. }));
        // After any other error, dropping the guard retries the release, or leaves the unfinished
        // work to the next holder.
        self.is_released = released.as_ref().err().is_none_or(lost);
        released
    }
}

impl<S: Store + Clone> Drop for Guard<'_, S> {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        let (locks, grant) = (self.session.locks.clone(), self.grant);
        self.session.release_or_defer(move |store| {
            let error = match store.transact(|txn| locks.release(txn, grant)) {
                Ok(()) => return Ok(Released::Done),
                Err(error) => error,
            };
            match error.downcast_ref() {
                Some(LockError::UnfinishedWork { .. }) => {
                    let left = store.transact(|txn| locks.give_back(txn, grant, grant.session))?;
                    Ok(left.map_or(Released::Done, |key| Released::Left(key, error)))
                }
                _ => Err(error),
            }
        });
    }
}
