//! Locks whose clock the tests move.

use std::time::Duration;

use keyloom::{Result, Store};
use keyloom_locking::{
    Grant, LeaseOptions, Lock, LockError, LockPath, Locks, ManualClock, Outcome,
};
use keyloom_tables::Schema;

pub const LEASE: Duration = Duration::from_secs(10);
pub const GRACE: Duration = Duration::from_secs(2);

/// Locks, their clock, and their store.
pub struct Bench<'s, S> {
    pub store: &'s S,
    pub locks: Locks,
    pub clock: ManualClock,
}

impl<'s, S: Store> Bench<'s, S> {
    pub fn new(store: &'s S) -> Self {
        let clock = ManualClock::at(1_000_000);
        let schema = Schema::open(store, "shop").unwrap();
        let locks = Locks::open(&schema, "locks").unwrap().with_clock(clock.clone());
        Self { store, locks, clock }
    }

    pub fn session(&self, name: &str) -> u64 {
        let options = LeaseOptions { lease: LEASE, grace: GRACE };
        self.store.transact(|txn| self.locks.begin_session(txn, name, &options)).unwrap()
    }

    pub fn try_lock(&self, session: u64, lock: &Lock) -> Result<Grant> {
        let locks = std::slice::from_ref(lock);
        self.store.transact(|txn| self.locks.try_lock(txn, session, locks))
    }

    pub fn request(&self, session: u64, lock: &Lock) -> Result<Outcome> {
        let locks = std::slice::from_ref(lock);
        self.store.transact(|txn| self.locks.request(txn, session, locks))
    }

    /// Requests a lock that is not free. Returns the ticket.
    pub fn wait(&self, session: u64, lock: &Lock) -> u64 {
        match self.request(session, lock).unwrap() {
            Outcome::Waiting { ticket, .. } => ticket,
            Outcome::Granted(grant) => panic!("{lock} is granted: {grant:?}"),
        }
    }

    pub fn poll(&self, session: u64, ticket: u64) -> Result<Outcome> {
        self.store.transact(|txn| self.locks.poll(txn, session, ticket))
    }

    pub fn is_granted(&self, session: u64, ticket: u64) -> bool {
        matches!(self.poll(session, ticket).unwrap(), Outcome::Granted(_))
    }

    pub fn release(&self, grant: Grant) -> Result<()> {
        self.store.transact(|txn| self.locks.release(txn, grant))
    }

    pub fn renew(&self, session: u64) -> Result<()> {
        self.store.transact(|txn| self.locks.renew(txn, session, LEASE))
    }

    /// Ends all leases, and the grace period after them.
    pub fn let_leases_end(&self) {
        self.clock.advance(LEASE + GRACE);
    }

    /// The faults that a check finds.
    pub fn faults(&self) -> Vec<String> {
        let faults = self.locks.check(&self.store.snapshot().unwrap()).unwrap();
        faults.iter().map(ToString::to_string).collect()
    }
}

/// The path `/a/b/c` of a string.
pub fn path(text: &str) -> LockPath {
    LockPath::of(text.split('/').filter(|name| !name.is_empty()))
}

pub fn exclusive(text: &str) -> Lock {
    Lock::exclusive(path(text))
}

pub fn shared(text: &str) -> Lock {
    Lock::shared(path(text))
}

/// The error of a refused operation.
pub fn refused<T: std::fmt::Debug>(result: Result<T>) -> LockError {
    let error = result.unwrap_err();
    error.downcast_ref::<LockError>().unwrap_or_else(|| panic!("{error}")).clone()
}
