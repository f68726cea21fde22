//! Unfinished work: how does work that spans transactions reach a consistent end if its process
//! dies?
//!
//! Work under a lock is recorded before it begins: the operation, its argument, and a position.
//! Each step is one transaction, which does a bounded part and advances the position. So the record
//! always shows how much is done. If the process dies, its lease ends, but its lock stays: the data
//! under the lock may be half changed. Another program [takes the lock over](Locks::take_over) with
//! a new fencing token, which stops the old holder if it was only paused. Then the program
//! continues from the position: forward to the end, or back to the beginning, as the operation
//! declares.
//!
//! ```
//! use keyloom::{DynWriter, Memory, Reader, Result, Store, Writer};
//! use keyloom_locking::work::{Operation, Operations, Step, Work};
//! use keyloom_locking::{LeaseOptions, Lock, LockPath, Locks};
//! use keyloom_tables::Schema;
//!
//! /// Moves ten thousand units of stock, a thousand at a time.
//! struct MoveStock;
//! impl Operation for MoveStock {
//!     fn name(&self) -> &str {
//!         "move stock"
//!     }
//!     fn step(&self, txn: &mut DynWriter<'_>, work: &Work) -> Result<Step> {
//!         let moved = work.position.first().copied().unwrap_or(0);
//!         if moved == 10 {
//!             return Ok(Step::Done);
//!         }
//!         txn.add(b"stock of A", -1_000)?;
//!         txn.add(b"stock of B", 1_000)?;
//!         Ok(Step::Continue(vec![moved + 1]))
//!     }
//! }
//!
//! let store = Memory::new();
//! let locks = Locks::open(&Schema::open(&store, "shop")?, "locks")?;
//! let session = store.transact(|txn| locks.begin_session(txn, "ada", &LeaseOptions::default()))?;
//! let stock = [Lock::exclusive(LockPath::of(["stock"]))];
//! let grant = store.transact(|txn| locks.try_lock(txn, session, &stock))?;
//! locks.run(&store, grant, &MoveStock, b"")?;
//! assert_eq!(store.snapshot()?.counter(b"stock of B")?, 10_000);
//! store.transact(|txn| locks.release(txn, grant))?;
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Invariants
//!
//! * The record of the work and the changes of its steps are written in the same transactions.
//! * A lock with unfinished work cannot be released or revoked, and is not removed after the end of
//!   its session. It is taken over, or the work is [abandoned](Locks::abandon) explicitly.
//! * Only the latest holder can commit steps.
//!
//! # Cost
//!
//! Beginning the work is one transaction with one key written. A step costs two gets and one key
//! written, in addition to the operation itself. Taking over reads and writes the records of the
//! lock.

use std::fmt;
use std::sync::Arc;

use keyloom::{DynWriter, Reader, Result, Store, Writer};

use crate::deferred::{Released, Shared};
use crate::locks::Locks;
pub use crate::records::Work;
use crate::records::{Request, RequestKey, SessionRecord};
use crate::{Grant, LockError};

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// There is more to do from this position on.
    Continue(Vec<u8>),
    /// The work is complete, or undone.
    Done,
}

/// What a program does with the unfinished work of another program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTakeover {
    /// Completes the work.
    #[default]
    RollForward,
    /// Undoes the committed steps.
    RollBack,
}

/// Work in steps. Each step is one transaction.
pub trait Operation: Send + Sync {
    /// The name in the record of the work, by which another program finds the operation.
    fn name(&self) -> &str;

    /// Does the next part of the work. The change and the new position are committed together, so
    /// a step that was committed is not repeated.
    ///
    /// # Errors
    /// Any error. The step is then rolled back, and the work stays unfinished.
    fn step(&self, txn: &mut DynWriter<'_>, work: &Work) -> Result<Step>;

    /// Undoes the last part of the work; called until it returns [`Step::Done`].
    ///
    /// # Errors
    /// Like [`step`](Operation::step). The default returns an error, since it cannot undo.
    fn undo(&self, txn: &mut DynWriter<'_>, work: &Work) -> Result<Step> {
        let _ = (txn, work);
        Err(keyloom::Error::other("this operation has no way back; let it roll forward"))
    }

    /// What a program does after it has taken the work over. By default, it completes the work.
    fn on_takeover(&self) -> OnTakeover {
        OnTakeover::default()
    }
}

/// The operations that a program can run, by name.
#[derive(Clone, Default)]
pub struct Operations {
    all: Vec<Arc<dyn Operation>>,
}

impl Operations {
    /// Adds an operation.
    #[must_use]
    pub fn with(mut self, operation: impl Operation + 'static) -> Self {
        self.all.push(Arc::new(operation));
        self
    }

    pub(crate) fn get(&self, name: &str) -> Result<&dyn Operation> {
        let found = self.all.iter().find(|operation| operation.name() == name);
        found.map(|operation| &**operation).ok_or_else(|| {
            let known = self.all.iter().map(|operation| operation.name().to_owned()).collect();
            LockError::UnknownOperation { operation: name.to_owned(), known }.into()
        })
    }
}

impl fmt::Debug for Operations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|operation| operation.name())).finish()
    }
}

impl Locks {
    /// Records work under a lock, in the caller's transaction. [`resume`](Locks::resume) then does
    /// the work.
    ///
    /// # Errors
    /// [`LockError::UnfinishedWork`] if there is work under the lock already; [`LockError::Lost`];
    /// any error of the store.
    pub fn begin_work(
        &self,
        txn: &mut impl Writer,
        grant: Grant,
        operation: &str,
        argument: &[u8],
    ) -> Result<()> {
        txn.guarded(|txn| {
            self.held_without_work(txn, grant)?;
            let key = (grant.session, grant.ticket);
            let work = Work {
                operation: operation.to_owned(),
                argument: argument.to_vec(),
                position: Vec::new(),
                is_rolling_back: false,
                started: self.clock.now()?,
                takeovers: 0,
            };
            self.work.put(txn, &key, &work)
        })
    }

    /// Records work under a lock, and does it: one transaction for the record, and one for each
    /// step.
    ///
    /// # Errors
    /// The errors of [`begin_work`](Locks::begin_work) and [`resume`](Locks::resume);
    /// [`LockError::Abandoned`].
    pub fn run<S: Store>(
        &self,
        store: &S,
        grant: Grant,
        operation: &impl Operation,
        argument: &[u8],
    ) -> Result<()> {
        store.transact(|txn| self.begin_work(txn, grant, operation.name(), argument))?;
        self.finish(store, grant, operation, AtEnd::Hold)
    }

    /// Continues the work under a lock until it is done or undone.
    ///
    /// # Errors
    /// The errors of the operation, after which the work stays unfinished; [`LockError::Lost`],
    /// [`LockError::OtherOperation`]; any error of the store. If there is no work under the lock,
    /// `resume` does nothing.
    pub fn resume<S: Store>(
        &self,
        store: &S,
        grant: Grant,
        operation: &dyn Operation,
    ) -> Result<()> {
        while store.transact(|txn| self.work_step(txn, grant, operation))? {}
        Ok(())
    }

    /// Does the remaining steps of work that has begun.
    fn finish<S: Store>(
        &self,
        store: &S,
        grant: Grant,
        operation: &dyn Operation,
        at_end: AtEnd,
    ) -> Result<()> {
        loop {
            match store.transact(|txn| self.step(txn, grant, operation, at_end))? {
                Some(true) => {}
                Some(false) => return Ok(()),
                None => {
                    let operation = operation.name().to_owned();
                    return Err(LockError::Abandoned { operation }.into());
                }
            }
        }
    }

    /// One step of the work under a lock, in the caller's transaction. Returns whether there is
    /// more to do.
    ///
    /// # Errors
    /// The errors of [`resume`](Locks::resume).
    pub fn work_step(
        &self,
        txn: &mut impl Writer,
        grant: Grant,
        operation: &dyn Operation,
    ) -> Result<bool> {
        Ok(self.step(txn, grant, operation, AtEnd::Hold)?.unwrap_or(false))
    }

    /// One step; `None` if there is no work under the lock.
    fn step(
        &self,
        txn: &mut impl Writer,
        grant: Grant,
        operation: &dyn Operation,
        at_end: AtEnd,
    ) -> Result<Option<bool>> {
        txn.guarded(|txn| {
            let request = self.held(txn, grant)?;
            let key = (grant.session, grant.ticket);
            let Some(mut work) = self.work.get(txn, &key)? else { return Ok(None) };
            if work.operation != operation.name() {
                let (lock, given) = (request.shown(), operation.name().to_owned());
                let operation = work.operation;
                return Err(LockError::OtherOperation { lock, operation, given }.into());
            }
            let mut writer = DynWriter::new(txn);
            let step = match work.is_rolling_back {
                true => operation.undo(&mut writer, &work)?,
                false => operation.step(&mut writer, &work)?,
            };
            match step {
                Step::Continue(position) => {
                    work.position = position;
                    self.work.put(txn, &key, &work)?;
                    Ok(Some(true))
                }
                Step::Done => {
                    self.work.delete(txn, &key)?;
                    if at_end == AtEnd::Release {
                        self.requests.delete(txn, &key)?;
                    }
                    Ok(Some(false))
                }
            }
        })
    }

    /// Removes the record of unfinished work, for example after the data was repaired by hand. The
    /// lock can then be released.
    ///
    /// # Errors
    /// [`LockError::Lost`]; any error of the store.
    pub fn abandon(&self, txn: &mut impl Writer, grant: Grant) -> Result<Option<Work>> {
        txn.guarded(|txn| {
            self.held(txn, grant)?;
            let key = (grant.session, grant.ticket);
            let work = self.work.get(txn, &key)?;
            self.work.delete(txn, &key)?;
            Ok(work)
        })
    }

    /// All unfinished work, with the ids of the session and of the request. Includes the work of
    /// live sessions.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn unfinished(&self, reader: &impl Reader) -> Result<Vec<(RequestKey, Work)>> {
        self.work.range(reader, ..)?.collect()
    }

    /// Takes a lock with unfinished work over from an ended session: transfers it to `session`,
    /// with a new fencing token. The old holder can no longer commit. `None` if the old session is
    /// alive, or if another program was faster.
    ///
    /// # Errors
    /// [`LockError::SessionEnded`] for `session` itself; any error of the store.
    pub fn take_over(
        &self,
        txn: &mut impl Writer,
        session: u64,
        (dead, ticket): RequestKey,
        on_takeover: OnTakeover,
    ) -> Result<Option<Grant>> {
        txn.guarded(|txn| {
            let (now, _) = self.live_session(txn, session)?;
            let record = self.sessions.get(txn, &dead)?;
            let is_alive = record.is_some_and(|record| now < record.dead_at());
            let (Some(request), false) = (self.requests.get(txn, &(dead, ticket))?, is_alive)
            else {
                return Ok(None);
            };
            let Some(work) = self.work.get(txn, &(dead, ticket))? else { return Ok(None) };
            let is_rolling_back = work.is_rolling_back || on_takeover == OnTakeover::RollBack;
            let takeovers = work.takeovers.saturating_add(1);
            let work = Work { is_rolling_back, takeovers, ..work };
            self.pass_on(txn, (dead, ticket), session, &Request { since: now, ..request }, &work)
                .map(Some)
        })
    }

    /// Transfers a lock with its work to another session, with a new token.
    fn pass_on(
        &self,
        txn: &mut impl Writer,
        from: RequestKey,
        session: u64,
        request: &Request,
        work: &Work,
    ) -> Result<Grant> {
        let (token, ticket) = self.next_token(txn, &request.locks)?;
        self.requests.delete(txn, &from)?;
        self.work.delete(txn, &from)?;
        let request = Request { token, ..request.clone() };
        self.requests.put(txn, &(session, ticket), &request)?;
        self.work.put(txn, &(session, ticket), work)?;
        Ok(Grant { session, ticket, token })
    }

    /// Finishes the work of all sessions that have ended, and releases their locks. Returns the
    /// number of locks whose work was finished. Several programs may recover concurrently. If the
    /// recovery takes longer than the lease, renew the lease in another thread, as a
    /// [`Session`](crate::Session) does.
    ///
    /// # Errors
    /// The first error: [`LockError::UnknownOperation`], or an error of
    /// [`take_over`](Locks::take_over) or [`resume`](Locks::resume). Other work is still finished.
    /// Work that fails, or whose step panics, is given back to the ended session: call `recover`
    /// again.
    pub fn recover<S: Store>(
        &self,
        store: &S,
        session: u64,
        operations: &Operations,
    ) -> Result<u64> {
        let (mut finished, mut failed) = (0, Ok(()));
        for (key, work) in self.unfinished(&store.snapshot()?)? {
            let rescuer = Rescuer { store, session, later: None };
            match self.recover_one(&rescuer, operations, key, &work) {
                Ok(is_finished) => finished += u64::from(is_finished),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        failed.map(|()| finished)
    }

    /// Finishes the work under `key` if its session has ended. Returns whether the work was
    /// finished.
    pub(crate) fn recover_one<S: Store>(
        &self,
        rescuer: &Rescuer<'_, S>,
        operations: &Operations,
        key: RequestKey,
        work: &Work,
    ) -> Result<bool> {
        let Rescuer { store, session, .. } = *rescuer;
        if !self.has_ended(&store.snapshot()?, key.0)? {
            return Ok(false);
        }
        let operation = operations.get(&work.operation)?;
        let on_takeover = operation.on_takeover();
        let taken = store.transact(|txn| {
            // The operation was read in a snapshot, and decides whether the work is undone. So the
            // operation is checked again.
            match self.work.get(txn, &key)? {
                Some(found) if found.operation == work.operation => {
                    self.take_over(txn, session, key, on_takeover)
                }
                _ => Ok(None),
            }
        })?;
        let Some(grant) = taken else { return Ok(false) };
        // If the work fails, it is given back: otherwise the lease of this session would keep the
        // lock from others and from a second attempt.
        let mut rescue = Rescue { locks: self, rescuer, grant, dead: key.0, is_done: false };
        self.finish(store, grant, operation, AtEnd::Release)?;
        rescue.is_done = true;
        Ok(true)
    }

    fn has_ended(&self, reader: &impl Reader, session: u64) -> Result<bool> {
        let (now, record) = (self.clock.now()?, self.sessions.get(reader, &session)?);
        Ok(record.is_none_or(|record| now >= record.dead_at()))
    }

    /// Gives unfinished work back to an ended session, and returns its new key. If `from` is alive
    /// by this clock, the work goes to a new, ended session of the same name, since the work of a
    /// live session cannot be taken over. If there is no work, releases the lock.
    pub(crate) fn give_back(
        &self,
        txn: &mut impl Writer,
        grant: Grant,
        from: u64,
    ) -> Result<Option<RequestKey>> {
        txn.guarded(|txn| {
            let request = self.held(txn, grant)?;
            let key = (grant.session, grant.ticket);
            let Some(work) = self.work.get(txn, &key)? else {
                // The work was abandoned or done in the meantime, so the lock can be released.
                self.requests.delete(txn, &key)?;
                return Ok(None);
            };
            let (now, record) = (self.clock.now()?, self.sessions.get(txn, &from)?);
            let ended = match record.filter(|record| now < record.dead_at()) {
                None => from,
                Some(record) => {
                    let id = self.unused_session(txn)?;
                    let ended = SessionRecord { expires: 0, grace: 0, ..record };
                    self.sessions.put(txn, &id, &ended)?;
                    id
                }
            };
            let left = self.pass_on(txn, key, ended, &request, &work)?;
            Ok(Some((left.session, left.ticket)))
        })
    }
}

/// What happens to a lock at the end of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtEnd {
    Hold,
    /// The lock is released in the transaction of the last step.
    Release,
}

/// A session that finishes the work of others.
pub(crate) struct Rescuer<'r, S> {
    pub(crate) store: &'r S,
    pub(crate) session: u64,
    /// Retries the give-back later, if the store returns an error.
    pub(crate) later: Option<&'r Shared<S>>,
}

/// Gives back work that was taken over but not finished: after an error, and after a panic.
struct Rescue<'r, S: Store> {
    locks: &'r Locks,
    rescuer: &'r Rescuer<'r, S>,
    grant: Grant,
    dead: u64,
    is_done: bool,
}

impl<S: Store> Drop for Rescue<'_, S> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let (locks, grant, dead) = (self.locks.clone(), self.grant, self.dead);
        let give_back = move |store: &S| {
            let given = store.transact(|txn| locks.give_back(txn, grant, dead));
            match given.as_ref().map_err(|error| error.downcast_ref()) {
                // The last step was committed after all, or another session holds the lock.
                Err(Some(LockError::Lost { .. })) => Ok(Released::Done),
                _ => given.map(|_| Released::Done),
            }
        };
        match self.rescuer.later {
            Some(later) => later.release(self.rescuer.store, Box::new(give_back)),
            None => {
                let store = self.rescuer.store;
                let _given_back = give_back(store).or_else(|_| give_back(store));
            }
        }
    }
}
