//! Semaphores: at most n sessions hold a permit at a time.

use std::fmt;
use std::time::Duration;

use keyloom::{Error, Reader, Result, Store, Writer};
use keyloom_tables::Table;

use super::Of;
use super::members::{Members, Present};
use super::wait::{Attempt, Awaited, wait_until};
use crate::deferred::Released;
use crate::path::PathPart;
use crate::{Blocker, LockError, Patience, Session};

const PERMIT: &str = "a permit of";

/// A semaphore: at most n sessions hold a permit, and the others wait in the order of their
/// requests; see the [module](super). Cheap to clone.
///
/// The permits of a session that has ended are freed.
#[derive(Clone, Debug)]
pub struct Semaphore {
    pub(super) of: Of,
    pub(super) permits: u32,
    pub(super) members: Members,
    pub(super) released: Table<PathPart, u64>,
}

impl Semaphore {
    /// Acquires a permit, if a permit is free and no earlier request waits.
    ///
    /// # Errors
    /// [`LockError::Blocked`]; [`LockError::SessionEnded`]; [`Error::InvalidArgument`] if a session
    /// uses the semaphore with a different number of permits; any error of the store.
    pub fn try_acquire<'s, S: Store + Clone>(
        &self,
        session: &'s Session<S>,
    ) -> Result<Permit<'s, S>> {
        let ticket = self.enter(session, |present| match present.len() < self.number() {
            true => Ok(()),
            false => {
                let (lock, blockers) = (self.of.shown(PERMIT), self.blockers(present));
                Err(LockError::Blocked { lock, blockers }.into())
            }
        })?;
        Ok(Permit::new(self, session, ticket))
    }

    /// Acquires a permit, and waits until a permit is free.
    ///
    /// # Errors
    /// The errors of [`acquire_within`](Semaphore::acquire_within), except
    /// [`LockError::TimedOut`] and [`LockError::Stopped`].
    pub fn acquire<'s, S: Store + Clone>(&self, session: &'s Session<S>) -> Result<Permit<'s, S>> {
        self.acquire_within(session, Duration::MAX)
    }

    /// Acquires a permit, and waits for it at most for `patience`. Permits are granted in the order
    /// of the requests.
    ///
    /// A session that waits for a permit while it holds one may wait for itself: the semaphore does
    /// not search for deadlocks.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] or [`LockError::Stopped`], after which the request is withdrawn;
    /// [`LockError::SessionEnded`];
    /// [`LockError::NoRequest`] if the session ended during the wait; [`Error::InvalidArgument`] if
    /// a session uses the semaphore with a different number of permits; any error of the store.
    pub fn acquire_within<'s, S: Store + Clone>(
        &self,
        session: &'s Session<S>,
        patience: impl Into<Patience>,
    ) -> Result<Permit<'s, S>> {
        let store = &session.store;
        let ticket = self.enter(session, |_| Ok(()))?;
        let poll = || store.transact(|txn| self.poll(txn, session.id(), ticket));
        let what = self.of.shown(PERMIT);
        match wait_until(store, &session.locks, &what, &patience.into(), poll) {
            Ok(()) => Ok(Permit::new(self, session, ticket)),
            Err(error) => {
                self.withdraw(session, ticket);
                Err(error)
            }
        }
    }

    /// Adds a request after the present members, unless `refuse` returns an error for them.
    fn enter<S: Store + Clone>(
        &self,
        session: &Session<S>,
        refuse: impl Fn(&[Present]) -> Result<()>,
    ) -> Result<u64> {
        session.release_pending();
        let mut entered = None;
        let result = session.store.transact(|txn| {
            txn.guarded(|txn| {
                let present = self.members.present(txn, &self.of, u64::MAX)?;
                refuse(&present)?;
                let number = self.permits;
                let ticket = self.members.add(txn, &self.of, session.id(), number, &present)?;
                entered = Some(ticket);
                Ok(ticket)
            })
        });
        // After a commit of unknown outcome, the request may have been stored.
        let is_unknown = result.as_ref().is_err_and(Error::maybe_committed);
        if let Some(ticket) = entered.filter(|_| is_unknown) {
            self.withdraw(session, ticket);
        }
        result
    }

    /// Withdraws a request after a failure. The caller reports that failure, not a failure of the
    /// withdrawal.
    fn withdraw<S: Store + Clone>(&self, session: &Session<S>, ticket: u64) {
        let (semaphore, id) = (self.clone(), session.id());
        // Retried later if it fails, since a leftover request blocks others.
        session.release_or_defer(move |store| {
            store.transact(|txn| semaphore.leave(txn, id, ticket))?;
            Ok(Released::Done)
        });
    }

    /// The sessions that hold a permit or wait for a permit, in the order of their requests.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn sessions(&self, reader: &impl Reader) -> Result<Vec<Blocker>> {
        let (present, _) = self.members.divide(reader, &self.of, u64::MAX)?;
        Ok(self.blockers(&present))
    }

    fn number(&self) -> usize {
        usize::try_from(self.permits).unwrap_or(usize::MAX)
    }

    fn blockers(&self, present: &[Present]) -> Vec<Blocker> {
        let permit = |at| at >= self.number();
        let all = present.iter().enumerate();
        all.map(|(at, present)| present.blocker(self.of.shown(PERMIT), permit(at))).collect()
    }

    /// Whether fewer members than permits precede the request.
    fn poll(&self, txn: &mut impl Writer, session: u64, ticket: u64) -> Result<Attempt<()>> {
        txn.guarded(|txn| {
            let mut present = self.members.present(txn, &self.of, ticket)?;
            if present.pop().is_none_or(|last| last.ticket != ticket) {
                return Err(LockError::NoRequest { session, ticket }.into());
            }
            if present.len() < self.number() {
                return Ok(Attempt::Done(()));
            }
            let key = self.released.space().pack(&self.of.path);
            Awaited::new(txn, key, self.blockers(&present)).map(Attempt::Wait)
        })
    }

    fn lost(&self, ticket: u64) -> Error {
        LockError::Lost { lock: self.of.shown(PERMIT), token: ticket }.into()
    }

    /// Removes a permit or a request, and notifies the waiters. Returns whether it existed.
    fn leave(&self, txn: &mut impl Writer, session: u64, ticket: u64) -> Result<bool> {
        txn.guarded(|txn| {
            let was_there = self.members.remove(txn, &self.of, session, ticket)?;
            if was_there {
                self.released.put(txn, &self.of.path, &ticket)?;
            }
            Ok(was_there)
        })
    }
}

/// A permit of a [`Semaphore`], which is released when the value is dropped. If that release fails
/// with an error of the store, the session releases the permit later. If the permit was lost,
/// [`Session::take_failures`] returns the error.
#[must_use = "a permit that is dropped is released"]
pub struct Permit<'s, S: Store + Clone> {
    semaphore: Semaphore,
    session: &'s Session<S>,
    ticket: u64,
    is_released: bool,
}

impl<S: Store + Clone> fmt::Debug for Permit<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = self.semaphore.of.shown(PERMIT);
        f.debug_struct("Permit").field("of", &of).field("ticket", &self.ticket).finish()
    }
}

impl<'s, S: Store + Clone> Permit<'s, S> {
    fn new(semaphore: &Semaphore, session: &'s Session<S>, ticket: u64) -> Self {
        Self { semaphore: semaphore.clone(), session, ticket, is_released: false }
    }

    /// The ticket of the permit: greater than the tickets of all earlier requests for the resource.
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Verifies in the transaction of a write that the permit is still held. Otherwise the
    /// transaction does not commit. Costs one get.
    ///
    /// # Errors
    /// [`LockError::Lost`]; any error of the store.
    pub fn verify(&self, txn: &mut impl Writer) -> Result<()> {
        let Semaphore { members, of, .. } = &self.semaphore;
        txn.guarded(|txn| match members.has(txn, of, self.session.id(), self.ticket)? {
            true => Ok(()),
            false => Err(self.lost()),
        })
    }

    /// Releases the permit. After an error of the store, the session retries the release later.
    ///
    /// # Errors
    /// [`LockError::Lost`] if the permit is no longer held; any error of the store.
    pub fn release(mut self) -> Result<()> {
        let (store, id) = (&self.session.store, self.session.id());
        let was_held = store.transact(|txn| self.semaphore.leave(txn, id, self.ticket))?;
        self.is_released = true;
        match was_held {
            true => Ok(()),
            false => Err(self.lost()),
        }
    }

    /// The error for a permit that another session removed after this session had ended.
    fn lost(&self) -> Error {
        self.semaphore.lost(self.ticket)
    }
}

impl<S: Store + Clone> Drop for Permit<'_, S> {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        let (semaphore, id, ticket) = (self.semaphore.clone(), self.session.id(), self.ticket);
        self.session.release_or_defer(move |store| {
            match store.transact(|txn| semaphore.leave(txn, id, ticket))? {
                true => Ok(Released::Done),
                false => Err(semaphore.lost(ticket)),
            }
        });
    }
}
