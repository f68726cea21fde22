//! Sessions that renew their lease, wait for locks, and release them.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use keyloom::{Error, Result, Store, Writer};

use crate::clock::millis;
use crate::records::shown;
use crate::work::Operations;
use crate::{Blocker, Grant, Guard, LeaseOptions, Lock, LockError, Locks, Mode, Outcome};

/// How long a waiter sleeps at most before it polls again: what blocks it may have changed in a
/// way that its store does not report.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A session of a program on a store: it renews its lease in a thread of its own, and its locks are
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
/// If it is dropped, it ends like after [`end`](Session::end), and errors are lost; the lease ends
/// the locks then.
///
/// A session never excludes itself: two threads that share one both get the same lock. Give each
/// thread of work a session of its own.
pub struct Session<S: Store + Clone> {
    pub(crate) store: S,
    pub(crate) locks: Locks,
    id: u64,
    name: String,
    operations: Operations,
    heartbeat: Option<(Arc<Heartbeat>, JoinHandle<()>)>,
    has_stopped: bool,
    /// The errors of guards that were dropped.
    failed: Mutex<Vec<Error>>,
}

/// What the thread that renews the lease shares with the session.
#[derive(Default)]
struct Heartbeat {
    state: Mutex<HeartbeatState>,
    changed: Condvar,
}

#[derive(Default)]
struct HeartbeatState {
    is_stopped: bool,
    failed: Option<Error>,
}

impl<S: Store + Clone> fmt::Debug for Session<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Session");
        debug.field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

impl<S: Store + Clone> Session<S> {
    /// Begins a session with the default lease. `name` is shown to those who wait for its locks.
    ///
    /// # Errors
    /// The errors of the clock; any error of the store; [`Error::Other`] if no thread can be
    /// started.
    pub fn begin(store: &S, locks: &Locks, name: &str) -> Result<Self> {
        Self::begin_with(store, locks, name, LeaseOptions::default())
    }

    /// [`begin`](Session::begin) with a lease of another length. It is renewed after each third.
    ///
    /// # Errors
    /// The errors of [`begin`](Session::begin).
    pub fn begin_with(store: &S, locks: &Locks, name: &str, options: LeaseOptions) -> Result<Self> {
        let mut session = Self::without_heartbeat(store, locks, name, options)?;
        let shared = Arc::new(Heartbeat::default());
        let beating = {
            let (store, locks, shared) = (store.clone(), locks.clone(), Arc::clone(&shared));
            let (id, lease) = (session.id, options.lease);
            move || beat(&store, &locks, id, lease, &shared)
        };
        let thread = std::thread::Builder::new().name(format!("lease of {name}"));
        session.heartbeat = Some((shared, thread.spawn(beating).map_err(Error::other)?));
        Ok(session)
    }

    /// A session whose lease the program renews itself, with [`Locks::renew`].
    ///
    /// # Errors
    /// The errors of the clock; any error of the store.
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
            failed: Mutex::default(),
        })
    }

    /// The session with operations that it finishes for sessions that have ended, if their locks
    /// are in the way of its own; see [`work`](crate::work).
    #[must_use]
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

    /// The error that ended the renewals of the lease, if they have ended.
    pub fn failure(&self) -> Option<Error> {
        let (heartbeat, _) = self.heartbeat.as_ref()?;
        heartbeat.state.lock().unwrap_or_else(PoisonError::into_inner).failed.clone()
    }

    /// Removes and returns the errors of guards that could not release their locks when they were
    /// dropped.
    pub fn take_failures(&self) -> Vec<Error> {
        std::mem::take(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn note_failure(&self, error: Error) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(error);
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
    /// The errors of [`lock_within`](Session::lock_within), except [`LockError::TimedOut`].
    pub fn lock(&self, locks: &[Lock]) -> Result<Guard<'_, S>> {
        self.lock_within(locks, Duration::MAX)
    }

    /// Locks all of `locks`, and waits for them at most this long. Waiting requests are granted in
    /// their order.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], [`LockError::Deadlock`], after which the request is withdrawn;
    /// [`LockError::BadLock`], [`LockError::SessionEnded`], [`LockError::NoRequest`] if the request
    /// was removed; [`LockError::UnfinishedWork`] for a lock of this session; the errors of the
    /// operations that it finishes for others; any error of the store.
    pub fn lock_within(&self, locks: &[Lock], patience: Duration) -> Result<Guard<'_, S>> {
        let grant = self.obtain(&Wanted { locks, replaces: None }, patience)?;
        Ok(Guard::new(self, grant, locks))
    }

    /// Replaces a grant by one of stronger locks, and waits for them at most this long.
    pub(crate) fn upgrade(
        &self,
        old: Grant,
        mode: Mode,
        stronger: &[Lock],
        patience: Duration,
    ) -> Result<Grant> {
        self.obtain(&Wanted { locks: stronger, replaces: Some((old, mode)) }, patience)
    }

    fn obtain(&self, wanted: &Wanted<'_>, patience: Duration) -> Result<Grant> {
        let began = Instant::now();
        let entered = self.enter(wanted, |txn| {
            let outcome = wanted.request(&self.locks, txn, self.id)?;
            Ok((outcome.ticket(), outcome))
        });
        let mut outcome = match entered {
            Ok(outcome) => outcome,
            Err(failed) => return failed.settle(),
        };
        loop {
            let (ticket, blockers) = match outcome {
                Outcome::Granted(grant) => return Ok(grant),
                Outcome::Waiting { ticket, blockers } => (ticket, blockers),
            };
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return self.give_up(ticket, wanted, began.elapsed(), blockers);
            }
            let polled = self.wait(&blockers, left).and_then(|()| {
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

    /// Commits a request, of which `make` returns the ticket. If the outcome of the commit is
    /// unknown, the request is withdrawn: it would exclude others until the session ends.
    fn enter<T>(
        &self,
        wanted: &Wanted<'_>,
        make: impl Fn(&mut S::Transaction<'_>) -> Result<(u64, T)>,
    ) -> std::result::Result<T, Failed> {
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

    /// Calls `request`, and once more after a clean-up if too many ended requests are in the way.
    fn tidying<T>(&self, request: impl Fn() -> Result<T>) -> Result<T> {
        let answer = request();
        if !is_many_ended(&answer) {
            return answer;
        }
        self.locks.clean_up(&self.store)?;
        request()
    }

    /// Withdraws a request after an error, or releases its locks if it was granted meanwhile.
    /// Returns the grant of an upgrade that was committed. The error is reported, not that of a
    /// second failure.
    fn withdraw(&self, wanted: &Wanted<'_>, ticket: u64) -> Option<Grant> {
        let Self { store, locks, id, .. } = self;
        let withdrawn = store.transact(|txn| match wanted.replaces {
            Some((old, _)) => locks.withdraw_upgrade(txn, old, ticket),
            None => match locks.withdraw(txn, *id, ticket)? {
                Some(grant) => locks.release(txn, grant).map(|()| None),
                None => Ok(None),
            },
        });
        withdrawn.unwrap_or_default()
    }

    /// Withdraws a request whose time is over, unless it has just been granted.
    fn give_up(
        &self,
        ticket: u64,
        wanted: &Wanted<'_>,
        waited: Duration,
        blockers: Vec<Blocker>,
    ) -> Result<Grant> {
        let withdraw = || self.store.transact(|txn| self.locks.withdraw(txn, self.id, ticket));
        // A second time, since a request that stays is in the way of others until the session ends.
        match withdraw().or_else(|_| withdraw())? {
            Some(grant) => Ok(grant),
            None => {
                let lock = shown(wanted.locks);
                Err(LockError::TimedOut { lock, waited, blockers }.into())
            }
        }
    }

    /// Waits until a blocker changes or ends, or the longest sleep is over.
    fn wait(&self, blockers: &[Blocker], left: Duration) -> Result<()> {
        for blocker in blockers.iter().filter(|blocker| blocker.has_unfinished_work) {
            if self.finish_work_of(blocker)? {
                return Ok(());
            }
        }
        // All of them must leave. The last one is the next in line: a release wakes one waiter.
        let Some(last) = blockers.last() else { return Ok(()) };
        let key = (last.session, last.ticket);
        let snapshot = self.store.snapshot()?;
        let stored = self.locks.stored_request(&snapshot, key)?;
        drop(snapshot);
        let Some((key, seen)) = stored else { return Ok(()) };
        let lives = last.dead_at.saturating_sub(self.locks.clock.now()?);
        let lives = Duration::from_millis(lives.max(1));
        self.store.wait_for_change(&key, Some(&seen), left.min(lives).min(LONGEST_SLEEP)).map(drop)
    }

    /// Finishes the work of a session that has ended, if this program knows the operation.
    fn finish_work_of(&self, blocker: &Blocker) -> Result<bool> {
        let Self { store, locks, operations, .. } = self;
        let key = (blocker.session, blocker.ticket);
        match locks.work.get(&store.snapshot()?, &key)? {
            Some(work) if operations.get(&work.operation).is_ok() => {
                locks.recover_one(store, self.id, operations, key, &work)
            }
            _ => Ok(false),
        }
    }

    /// Ends the session, and releases all of its locks.
    ///
    /// # Errors
    /// [`LockError::LeftUnfinished`] if locks have unfinished work: they stay, and another program
    /// can finish it; any error of the store.
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
        if let Some((heartbeat, thread)) = self.heartbeat.take() {
            heartbeat.state.lock().unwrap_or_else(PoisonError::into_inner).is_stopped = true;
            heartbeat.changed.notify_all();
            let _panicked = thread.join();
        }
        self.store.transact(|txn| self.locks.end_session(txn, self.id))
    }
}

/// The locks that a session wants.
struct Wanted<'l> {
    locks: &'l [Lock],
    /// The grant that they replace, and the mode that it does not include.
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

/// An error, after which a request was withdrawn.
struct Failed {
    error: Error,
    /// The new grant, if the error hid that an upgrade was committed.
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

/// Renews the lease after each third of it, until the session stops or has ended.
fn beat<S: Store>(store: &S, locks: &Locks, id: u64, lease: Duration, shared: &Heartbeat) {
    let pause = Duration::from_millis((millis(lease) / 3).max(1));
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    while !state.is_stopped {
        let waited = shared.changed.wait_timeout(state, pause);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.is_stopped {
            return;
        }
        drop(state);
        let renewed = store.transact(|txn| locks.renew(txn, id, lease));
        state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        match renewed {
            Ok(()) => state.failed = None,
            Err(error) => {
                let has_ended = error.downcast_ref::<LockError>().is_some();
                state.failed = Some(error);
                if has_ended {
                    return;
                }
            }
        }
    }
}
