//! Double barriers: n sessions begin together, and end together.

use std::fmt;
use std::time::Duration;

use keyloom::{Reader, Result, Store, Writer};
use keyloom_tables::Table;

use super::Of;
use super::members::{Members, Present};
use super::wait::{Attempt, Awaited, wait_until};
use crate::deferred::Released;
use crate::path::PathPart;
use crate::{Blocker, LockError, Session};

const ENTRY: &str = "the entry to the double barrier";
const PLACE: &str = "a place in the double barrier";
const EXIT: &str = "the exit of the double barrier";

/// A double barrier: n sessions wait for each other before they begin, and again at the end; see
/// the [module](super). Cheap to clone.
///
/// A participant that dies before the n-th one has entered does not count. One that dies later
/// counts as having left.
///
/// ```
/// use std::time::Duration;
/// use keyloom::Memory;
/// use keyloom_locking::recipes::Recipes;
/// use keyloom_locking::{LockPath, Locks, Session};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let schema = Schema::open(&store, "jobs")?;
/// let locks = Locks::open(&schema, "locks")?;
/// let recipes = Recipes::open(&schema, &locks, "recipes")?;
/// let phase = recipes.double_barrier(&LockPath::of(["phase 1"]), 3)?;
/// std::thread::scope(|scope| {
///     for worker in ["a", "b", "c"] {
///         let (store, locks, phase) = (&store, &locks, &phase);
///         scope.spawn(move || {
///             let session = Session::begin(store, locks, worker)?;
///             let entry = phase.enter(&session, Duration::from_secs(5))?;
///             // All three work.
///             entry.leave(Duration::from_secs(5))
///         });
///     }
/// });
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DoubleBarrier {
    pub(super) of: Of,
    pub(super) participants: u32,
    pub(super) members: Members,
    /// While the barrier is open, the ticket that opened it.
    pub(super) rounds: Table<PathPart, u64>,
}

impl DoubleBarrier {
    /// Waits until n participants have entered, at most this long. If the participants of an
    /// earlier round are still inside, it waits for their end first.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], after which the session has not entered;
    /// [`LockError::SessionEnded`]; [`LockError::NoRequest`] if the session ended while it waited;
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if a session uses the barrier
    /// with another number of participants; any error of the store.
    pub fn enter<'s, S: Store + Clone>(
        &self,
        session: &'s Session<S>,
        patience: Duration,
    ) -> Result<BarrierEntry<'s, S>> {
        session.release_pending();
        let (store, id) = (&session.store, session.id());
        let mut ticket = None;
        let what = self.of.shown(ENTRY);
        let entered = wait_until(store, &session.locks, &what, patience, || {
            // Known before the commit, whose outcome may be unknown.
            let known = ticket;
            store.transact(|txn| {
                let (mine, attempt) = self.try_enter(txn, id, known)?;
                ticket = mine;
                Ok(attempt)
            })
        });
        match (entered, ticket) {
            (Ok(round), Some(ticket)) => Ok(BarrierEntry::new(self, session, ticket, round)),
            (Err(error), Some(ticket)) => {
                let withdraw = || store.transact(|txn| self.withdraw(txn, id, ticket));
                // A second time, since an entry that stays counts as a participant.
                match withdraw().or_else(|_| withdraw()) {
                    Ok(Some(round)) => Ok(BarrierEntry::new(self, session, ticket, round)),
                    Ok(None) => Err(error),
                    Err(_) => {
                        // It leaves later, also a round that has begun.
                        drop(BarrierEntry::new(self, session, ticket, 0));
                        Err(error)
                    }
                }
            }
            (Err(error), None) => Err(error),
            (Ok(_), None) => Err(LockError::NoRequest { session: id, ticket: 0 }.into()),
        }
    }

    /// The sessions that wait for the others to enter, or that are inside, in the order in which
    /// they came.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn sessions(&self, reader: &impl Reader) -> Result<Vec<Blocker>> {
        let is_open = self.rounds.get(reader, &self.of.path)?.is_some();
        let (present, _) = self.members.divide(reader, &self.of, u64::MAX)?;
        Ok(self.blockers(&present, is_open))
    }

    /// Enters, or finds out whether the round of an entry has begun. Returns the ticket.
    fn try_enter(
        &self,
        txn: &mut impl Writer,
        session: u64,
        ticket: Option<u64>,
    ) -> Result<(Option<u64>, Attempt<u64>)> {
        txn.guarded(|txn| {
            let mut present = self.members.present(txn, &self.of, u64::MAX)?;
            let mut round = self.rounds.get(txn, &self.of.path)?;
            if round.is_some() && present.is_empty() {
                self.rounds.delete(txn, &self.of.path)?;
                round = None;
            }
            let ticket = match (ticket, round) {
                // All who were present when the round began are in it, and no others.
                (Some(ticket), Some(round)) if present.iter().any(|p| p.ticket == ticket) => {
                    return Ok((Some(ticket), Attempt::Done(round)));
                }
                (Some(ticket), None) if present.iter().any(|p| p.ticket == ticket) => ticket,
                (Some(ticket), _) => return Err(LockError::NoRequest { session, ticket }.into()),
                (None, Some(_)) => {
                    return Ok((None, Attempt::Wait(self.wait(txn, &present, true)?)));
                }
                (None, None) => {
                    let number = self.participants;
                    let ticket = self.members.add(txn, &self.of, session, number, &present)?;
                    present = self.members.present(txn, &self.of, u64::MAX)?;
                    ticket
                }
            };
            if u32::try_from(present.len()).is_ok_and(|count| count < self.participants) {
                return Ok((Some(ticket), Attempt::Wait(self.wait(txn, &present, false)?)));
            }
            self.rounds.put(txn, &self.of.path, &ticket)?;
            Ok((Some(ticket), Attempt::Done(ticket)))
        })
    }

    /// Waits until the barrier opens, or closes.
    fn wait(&self, txn: &impl Reader, present: &[Present], is_open: bool) -> Result<Awaited> {
        let blockers = self.blockers(present, is_open);
        Awaited::new(txn, self.rounds.space().pack(&self.of.path), blockers)
    }

    fn blockers(&self, present: &[Present], is_open: bool) -> Vec<Blocker> {
        present.iter().map(|present| present.blocker(self.of.shown(PLACE), !is_open)).collect()
    }

    /// Removes an entry whose round has not begun. Returns the round if it has.
    fn withdraw(&self, txn: &mut impl Writer, session: u64, ticket: u64) -> Result<Option<u64>> {
        txn.guarded(|txn| {
            let round = self.rounds.get(txn, &self.of.path)?;
            let is_member = self.members.has(txn, &self.of, session, ticket)?;
            match round.filter(|_| is_member) {
                Some(round) => Ok(Some(round)),
                None => self.members.remove(txn, &self.of, session, ticket).map(|_| None),
            }
        })
    }

    /// Leaves a round. Returns whether the entry was still there.
    fn exit(&self, txn: &mut impl Writer, session: u64, ticket: u64) -> Result<bool> {
        txn.guarded(|txn| {
            let was_there = self.members.remove(txn, &self.of, session, ticket)?;
            if self.members.present(txn, &self.of, u64::MAX)?.is_empty() {
                self.rounds.delete(txn, &self.of.path)?;
            }
            Ok(was_there)
        })
    }

    /// Whether all participants of the round have left.
    fn has_ended(&self, txn: &mut impl Writer, round: u64) -> Result<Attempt<()>> {
        txn.guarded(|txn| {
            if self.rounds.get(txn, &self.of.path)? != Some(round) {
                return Ok(Attempt::Done(()));
            }
            let present = self.members.present(txn, &self.of, u64::MAX)?;
            if present.is_empty() {
                self.rounds.delete(txn, &self.of.path)?;
                return Ok(Attempt::Done(()));
            }
            self.wait(txn, &present, true).map(Attempt::Wait)
        })
    }
}

/// The part of a session in a round of a [`DoubleBarrier`]. If it is dropped, the session leaves
/// without waiting for the others; if the store fails then, the session leaves later.
#[must_use = "an entry that is dropped leaves the barrier"]
pub struct BarrierEntry<'s, S: Store + Clone> {
    barrier: DoubleBarrier,
    session: &'s Session<S>,
    ticket: u64,
    round: u64,
    has_left: bool,
}

impl<S: Store + Clone> fmt::Debug for BarrierEntry<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = self.barrier.of.shown(ENTRY);
        f.debug_struct("BarrierEntry").field("of", &of).field("ticket", &self.ticket).finish()
    }
}

impl<'s, S: Store + Clone> BarrierEntry<'s, S> {
    fn new(barrier: &DoubleBarrier, session: &'s Session<S>, ticket: u64, round: u64) -> Self {
        Self { barrier: barrier.clone(), session, ticket, round, has_left: false }
    }

    /// The number of the round, the same for all of its participants, and growing.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Leaves, and waits until all participants have left, at most this long.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], after which the session has left; [`LockError::Lost`] if the
    /// session ended while it was inside, so that the others did not wait for it; any error of the
    /// store.
    pub fn leave(mut self, patience: Duration) -> Result<()> {
        let (was_there, barrier) = (self.exit()?, &self.barrier);
        let store = &self.session.store;
        if !was_there {
            let (lock, token) = (barrier.of.shown(ENTRY), self.ticket);
            return Err(LockError::Lost { lock, token }.into());
        }
        let what = barrier.of.shown(EXIT);
        wait_until(store, &self.session.locks, &what, patience, || {
            store.transact(|txn| barrier.has_ended(txn, self.round))
        })
    }

    fn exit(&mut self) -> Result<bool> {
        let (store, id) = (&self.session.store, self.session.id());
        let was_there = store.transact(|txn| self.barrier.exit(txn, id, self.ticket))?;
        self.has_left = true;
        Ok(was_there)
    }
}

impl<S: Store + Clone> Drop for BarrierEntry<'_, S> {
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let (barrier, id, ticket) = (self.barrier.clone(), self.session.id(), self.ticket);
        self.session.release_or_defer(move |store| {
            store.transact(|txn| barrier.exit(txn, id, ticket))?;
            Ok(Released::Done)
        });
    }
}
