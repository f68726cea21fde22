//! Sessions that renew their lease, wait for locks, and release them.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use keyloom::{Error, Result, Store, Writer};

use crate::deferred::{Released, Shared, Stop};
use crate::records::shown;
use crate::work::{Operations, Rescuer};
use crate::{Blocker, Grant, Guard, LeaseOptions, Lock, LockError, Locks, Mode, Outcome, Patience};

/// How long a waiter sleeps at most before its next poll: its blockers may change in a way that the
/// store does not report. The sleep doubles up to [`LONGEST_SLEEP`]: if thousands of waiters polled
/// each second, they would leave no time for the holder to work.
const FIRST_SLEEP: Duration = Duration::from_secs(1);
const LONGEST_SLEEP: Duration = Duration::from_secs(8);

/// A session of a program on a store. It renews its lease in a thread of its own, and its locks are
/// guards that release themselves.
///
/// ```
/// use std::time::Duration;
/// use keyloom::{Memory, Store, Writer};
/// use keyloom_locking::{Lock, LockPath, Locks, Session};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let locks = Locks::open(&Schema::open(&store, "shop")?, "locks")?;
/// let session = Session::begin(&store, &locks, "ada")?;
/// let mut order = session.lock(&[Lock::exclusive(LockPath::of(["orders"]).child(17))])?;
/// order.transact(|txn| txn.put(b"order 17", b"paid"))?;
/// order.release()?;
/// session.end()?;
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// Dropping a session has the effect of [`end`](Session::end), but errors are lost. If the end
/// fails, the locks remain until the lease and grace period are over.
///
/// A session never excludes itself: two threads that share a session both get the same lock. Give
/// each thread of work a session of its own.
#[must_use = "a session that is dropped ends, and releases its locks"]
pub struct Session<S: Store + Clone> {
    pub(crate) store: S,
    pub(crate) locks: Locks,
    id: u64,
    name: String,
    operations: Operations,
    heartbeat: Option<JoinHandle<()>>,
    has_stopped: bool,
    shared: Arc<Shared<S>>,
}

impl<S: Store + Clone> fmt::Debug for Session<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Session");
        debug.field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

impl<S: Store + Clone> Session<S> {
    /// Begins a session with the default lease. Other sessions that wait for its locks see `name`
    /// in their errors.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a name with NUL; the errors of the clock; any error of the
    /// store; [`Error::Other`] if no thread can be started.
    pub fn begin(store: &S, locks: &Locks, name: &str) -> Result<Self> {
        Self::begin_with(store, locks, name, LeaseOptions::default())
    }

    /// [`begin`](Session::begin) with other [`LeaseOptions`]. The session renews the lease after
    /// each third of its length.
    ///
    /// # Errors
    /// The errors of [`begin`](Session::begin); [`Error::InvalidArgument`] for a lease of less than
    /// 30 ms.
    pub fn begin_with(store: &S, locks: &Locks, name: &str, options: LeaseOptions) -> Result<Self> {
        let mut session = Self::without_heartbeat(store, locks, name, options)?;
        let beating = {
            let (store, locks) = (store.clone(), locks.clone());
            let (id, lease, shared) = (session.id, options.lease, Arc::clone(&session.shared));
            move || beat(&store, &locks, id, lease, &shared)
        };
        let thread = std::thread::Builder::new().name(format!("lease of {name}"));
        session.heartbeat = Some(thread.spawn(beating).map_err(Error::other)?);
        Ok(session)
    }

    /// A session whose lease the program renews itself, with [`Locks::renew`].
    ///
    /// # Errors
    /// The errors of [`Locks::begin_session`].
    pub fn without_heartbeat(
        store: &S,
        locks: &Locks,
        name: &str,
        options: LeaseOptions,
    ) -> Result<Self> {
        let id = store.transact(|txn| locks.begin_session(txn, name, &options))?;
        Ok(Self {
            store: store.clone(),
            locks: locks.clone(),
            id,
            name: name.to_owned(),
            operations: Operations::default(),
            heartbeat: None,
            has_stopped: false,
            shared: Arc::default(),
        })
    }

    /// Sets the operations that this session finishes for ended sessions whose locks block its own;
    /// see [`work`](crate::work).
    pub fn with_operations(mut self, operations: Operations) -> Self {
        self.operations = operations;
        self
    }

    /// The id of the session.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The locks.
    pub fn locks(&self) -> &Locks {
        &self.locks
    }

    /// The error that ended the renewals of the lease, if any.
    pub fn failure(&self) -> Option<Error> {
        self.shared.renewal_failure()
    }

    /// Removes and returns the errors of dropped guards whose locks were lost or had unfinished
    /// work at that time.
    ///
    /// Errors of the store are not included, such as [`Error::NestedTransaction`] of a guard that
    /// was dropped within a transaction. The thread that renews the lease, and the next request of
    /// the session, retry such a release.
    pub fn take_failures(&self) -> Vec<Error> {
        self.shared.take_failures()
    }

    /// Releases now, or later if the store returns an error.
    pub(crate) fn release_or_defer(
        &self,
        release: impl Fn(&S) -> Result<Released> + Send + 'static,
    ) {
        self.shared.release(&self.store, Box::new(release));
    }

    /// Retries the releases that failed.
    pub(crate) fn release_pending(&self) {
        self.shared.release_before(&self.store);
    }

    /// Locks all of `locks`, if they are free; see [`Locks::try_lock`].
    ///
    /// # Errors
    /// The errors of [`Locks::try_lock`].
    pub fn try_lock(&self, locks: &[Lock]) -> Result<Guard<'_, S>> {
        let entered = self.enter(&Wanted { locks, replaces: None }, |txn| {
            self.locks.try_lock(txn, self.id, locks).map(|grant| (grant.ticket, grant))
        });
        let grant = entered.or_else(Failed::settle)?;
        Ok(Guard::new(self, grant, locks))
    }

    /// Locks all of `locks`, and waits until they are free.
    ///
    /// # Errors
    /// The errors of [`lock_within`](Session::lock_within), except [`LockError::TimedOut`] and
    /// [`LockError::Stopped`].
    pub fn lock(&self, locks: &[Lock]) -> Result<Guard<'_, S>> {
        self.lock_within(locks, Duration::MAX)
    }

    /// Locks all of `locks`, and waits for them at most for `patience`: a [`Duration`], until a
    /// [`Stop`](crate::Stop) is requested, or [both](crate::Patience). Waiting requests are granted
    /// in order.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], [`LockError::Stopped`] or [`LockError::Deadlock`], after which the
    /// request is withdrawn; [`LockError::BadLock`]; [`LockError::SessionEnded`];
    /// [`LockError::NoRequest`] if the request was removed; [`LockError::UnfinishedWork`] for a
    /// lock of this session; the errors of the operations that this session finishes for others;
    /// any error of the store.
    pub fn lock_within(
        &self,
        locks: &[Lock],
        patience: impl Into<Patience>,
    ) -> Result<Guard<'_, S>> {
        let grant = self.obtain(&Wanted { locks, replaces: None }, &patience.into())?;
        Ok(Guard::new(self, grant, locks))
    }

    /// Replaces a grant by a grant of stronger locks, and waits for these at most for `patience`.
    pub(crate) fn upgrade(
        &self,
        old: Grant,
        mode: Mode,
        stronger: &[Lock],
        patience: &Patience,
    ) -> Result<Grant> {
        self.obtain(&Wanted { locks: stronger, replaces: Some((old, mode)) }, patience)
    }

    fn obtain(&self, wanted: &Wanted<'_>, patience: &Patience) -> Result<Grant> {
        let began = Instant::now();
        let entered = self.enter(wanted, |txn| {
            let outcome = wanted.request(&self.locks, txn, self.id)?;
            Ok((outcome.ticket(), outcome))
        });
        let mut outcome = match entered {
            Ok(outcome) => outcome,
            Err(failed) => return failed.settle(),
        };
        let mut sleep = FIRST_SLEEP;
        loop {
            let (ticket, blockers) = match outcome {
                Outcome::Granted(grant) => return Ok(grant),
                Outcome::Waiting { ticket, blockers } => (ticket, blockers),
            };
            let left = patience.left(began);
            if left.is_zero() {
                let lock = shown(wanted.locks);
                let over = patience.error(lock, began.elapsed(), blockers);
                return self.give_up(ticket, over);
            }
            // The operation of another session may panic while this one finishes its work.
            let unwinding = Unwinding { session: self, ticket };
            let waited = self.wait(&blockers, left.min(sleep), patience);
            sleep = (sleep * 2).min(LONGEST_SLEEP);
            std::mem::forget(unwinding);
            let polled = waited.and_then(|()| {
                let poll =
                    |txn: &mut S::Transaction<'_>| wanted.poll(&self.locks, txn, self.id, ticket);
                self.tidying(|| self.store.transact(poll))
            });
            outcome = match polled {
                Ok(outcome) => outcome,
                Err(error) => {
                    let granted = self.withdraw(wanted, ticket);
                    return Failed { error, granted }.settle();
                }
            };
        }
    }

    /// Commits a request; `make` returns its ticket. If the outcome of the commit is unknown, the
    /// request is withdrawn: otherwise it would block others until the session ends.
    fn enter<T>(
        &self,
        wanted: &Wanted<'_>,
        make: impl Fn(&mut S::Transaction<'_>) -> Result<(u64, T)>,
    ) -> std::result::Result<T, Failed> {
        self.release_pending();
        let ticket = Cell::new(None);
        let entered = self.tidying(|| {
            self.store.transact(|txn| {
                let (number, made) = make(txn)?;
                ticket.set(Some(number));
                Ok(made)
            })
        });
        entered.map_err(|error| {
            let unknown = ticket.get().filter(|_| error.maybe_committed());
            let granted = unknown.and_then(|ticket| self.withdraw(wanted, ticket));
            Failed { error, granted }
        })
    }

    /// Calls `request`. If too many ended requests block it, sweeps them and calls `request` once
    /// more.
    fn tidying<T>(&self, request: impl Fn() -> Result<T>) -> Result<T> {
        let answer = request();
        if !is_many_ended(&answer) {
            return answer;
        }
        self.locks.sweep(&self.store)?;
        request()
    }

    /// Withdraws a request after an error, or releases its locks if it was granted meanwhile.
    /// Returns the grant of an upgrade that was committed. The caller reports the first error; a
    /// failure of the withdrawal is retried later.
    fn withdraw(&self, wanted: &Wanted<'_>, ticket: u64) -> Option<Grant> {
        let Self { store, locks, id, .. } = self;
        let withdrawn = store.transact(|txn| match wanted.replaces {
            Some((old, _)) => locks.withdraw_upgrade(txn, old, ticket),
            None => match locks.withdraw(txn, *id, ticket)? {
                Some(grant) => locks.release(txn, grant).map(|()| None),
                None => Ok(None),
            },
        });
        withdrawn.unwrap_or_else(|_| {
            self.withdraw_later(ticket);
            None
        })
    }

    /// Withdraws a request, or releases its locks if it was granted. Retries later if the store
    /// returns an error.
    fn withdraw_later(&self, ticket: u64) {
        let (locks, id) = (self.locks.clone(), self.id);
        self.release_or_defer(move |store| {
            store.transact(|txn| match locks.withdraw(txn, id, ticket)? {
                Some(grant) => locks.release(txn, grant),
                None => Ok(()),
            })?;
            Ok(Released::Done)
        });
    }

    /// Withdraws a request after the patience of its caller, and returns `over`, unless the request
    /// has just been granted.
    fn give_up(&self, ticket: u64, over: LockError) -> Result<Grant> {
        let withdraw = || self.store.transact(|txn| self.locks.withdraw(txn, self.id, ticket));
        // Tried twice, since a leftover request blocks others until the session ends.
        match withdraw().or_else(|_| withdraw()) {
            Ok(Some(grant)) => Ok(grant),
            Err(error) => {
                self.withdraw_later(ticket);
                Err(error)
            }
            Ok(None) => Err(over.into()),
        }
    }

    /// Waits until a blocker changes or ends, at most for `sleep`.
    fn wait(&self, blockers: &[Blocker], sleep: Duration, patience: &Patience) -> Result<()> {
        for blocker in blockers.iter().filter(|blocker| blocker.has_unfinished_work) {
            if self.finish_work_of(blocker)? {
                return Ok(());
            }
        }
        // All blockers must leave, so waiting for the last one suffices. It is the direct
        // predecessor: a release wakes only one waiter.
        let Some(last) = blockers.last() else { return Ok(()) };
        let key = (last.session, last.ticket);
        let snapshot = self.store.snapshot()?;
        let stored = self.locks.stored_request(&snapshot, key)?;
        drop(snapshot);
        let Some((key, seen)) = stored else { return Ok(()) };
        let lives = last.dead_at.saturating_sub(self.locks.clock.now()?);
        let lives = Duration::from_millis(lives.max(1));
        patience.wait(&self.store, &key, Some(&seen), sleep.min(lives))
    }

    /// Finishes the work of an ended session, if this program has the operation.
    fn finish_work_of(&self, blocker: &Blocker) -> Result<bool> {
        let Self { store, locks, operations, .. } = self;
        let key = (blocker.session, blocker.ticket);
        match locks.work.get(&store.snapshot()?, &key)? {
            Some(work) if operations.get(&work.operation).is_ok() => {
                let rescuer = Rescuer { store, session: self.id, later: Some(&self.shared) };
                locks.recover_one(&rescuer, operations, key, &work)
            }
            _ => Ok(false),
        }
    }

    /// Ends the session, and releases all its locks.
    ///
    /// # Errors
    /// [`LockError::LeftUnfinished`] if locks have unfinished work: these locks stay, and another
    /// program can finish the work. [`Error::NestedTransaction`] if this thread has a transaction
    /// open: the thread that renews the lease then ends the session later. Any error of the store.
    pub fn end(mut self) -> Result<()> {
        match self.stop()? {
            0 => Ok(()),
            count => Err(LockError::LeftUnfinished { session: self.name.clone(), count }.into()),
        }
    }

    fn stop(&mut self) -> Result<usize> {
        if std::mem::replace(&mut self.has_stopped, true) {
            return Ok(0);
        }
        let left = self.shared.left();
        let ended = self.store.transact(|txn| {
            let unfinished = self.locks.end_session(txn, self.id)?;
            let left = self.locks.work.get_many(txn, left.iter())?;
            Ok(unfinished + left.into_iter().flatten().count())
        });
        // The thread may wait for the transaction that this thread has open, so joining it here
        // would never end.
        let is_nested = matches!(ended, Err(Error::NestedTransaction));
        self.shared.stop(if is_nested { Stop::EndSession } else { Stop::Yes });
        if let Some(thread) = self.heartbeat.take().filter(|_| !is_nested) {
            let _panicked = thread.join();
        }
        ended
    }
}

/// Withdraws a request whose wait panics.
struct Unwinding<'s, S: Store + Clone> {
    session: &'s Session<S>,
    ticket: u64,
}

impl<S: Store + Clone> Drop for Unwinding<'_, S> {
    fn drop(&mut self) {
        self.session.withdraw_later(self.ticket);
    }
}

/// The locks that a session requests.
struct Wanted<'l> {
    locks: &'l [Lock],
    /// The grant that the locks replace, and the mode of the upgrade.
    replaces: Option<(Grant, Mode)>,
}

impl Wanted<'_> {
    fn request(&self, locks: &Locks, txn: &mut impl Writer, session: u64) -> Result<Outcome> {
        match self.replaces {
            Some((old, mode)) => locks.request_upgrade(txn, old, mode),
            None => locks.request(txn, session, self.locks),
        }
    }

    fn poll(
        &self,
        locks: &Locks,
        txn: &mut impl Writer,
        session: u64,
        ticket: u64,
    ) -> Result<Outcome> {
        match self.replaces {
            Some((old, _)) => locks.poll_upgrade(txn, old, ticket),
            None => locks.poll(txn, session, ticket),
        }
    }
}

/// An error after which the request was withdrawn.
struct Failed {
    error: Error,
    /// The new grant, if an upgrade was committed despite the error.
    granted: Option<Grant>,
}

impl Failed {
    fn settle(self) -> Result<Grant> {
        self.granted.ok_or(self.error)
    }
}

impl<S: Store + Clone> Drop for Session<S> {
    fn drop(&mut self) {
        let _lease_ends_it = self.stop();
    }
}

fn is_many_ended<T>(outcome: &Result<T>) -> bool {
    let error = outcome.as_ref().err().and_then(Error::downcast_ref::<LockError>);
    matches!(error, Some(LockError::ManyEnded { .. }))
}

/// Renews the lease after each third of its length, and retries failed releases, until the session
/// stops or has ended.
fn beat<S: Store>(store: &S, locks: &Locks, id: u64, lease: Duration, shared: &Shared<S>) {
    let pause = lease / 3;
    let mut due = Instant::now() + pause;
    loop {
        match shared.wait(due.saturating_duration_since(Instant::now())) {
            Stop::No => {}
            Stop::Yes => return,
            Stop::EndSession => return end_late(store, locks, id, pause),
        }
        shared.release_pending(store);
        if Instant::now() < due {
            continue;
        }
        let failed = store.transact(|txn| locks.renew(txn, id, lease)).err();
        due = Instant::now() + pause;
        let has_ended = failed.as_ref().is_some_and(|e| e.downcast_ref::<LockError>().is_some());
        shared.note_renewal(failed);
        if has_ended {
            return;
        }
    }
}

/// Ends a session that could not end itself. After three failures, the session ends with its lease.
fn end_late<S: Store>(store: &S, locks: &Locks, id: u64, pause: Duration) {
    for _ in 0..3 {
        if store.transact(|txn| locks.end_session(txn, id)).is_ok() {
            return;
        }
        std::thread::sleep(pause);
    }
}
