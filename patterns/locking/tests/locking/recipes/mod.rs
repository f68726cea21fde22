//! Semaphores and elections.

mod election;
mod faults;
mod semaphore;

use std::time::{Duration, Instant};

use keyloom::Store;
use keyloom_locking::recipes::Recipes;
use keyloom_locking::{LeaseOptions, Session};
use keyloom_tables::Schema;

use super::support::{Bench, GRACE, LEASE};

pub const NOW: Duration = Duration::ZERO;
pub const SOON: Duration = Duration::from_millis(30);
/// A time-out that no test reaches.
pub const LONG: Duration = Duration::from_secs(20);

/// Recipes and sessions whose clock the test sets.
pub struct Kitchen<'s, S> {
    pub bench: Bench<'s, S>,
    pub recipes: Recipes,
}

impl<'s, S: Store + Clone> Kitchen<'s, S> {
    pub fn new(store: &'s S) -> Self {
        let bench = Bench::new(store);
        let schema = Schema::open(store, "shop").unwrap();
        let recipes = Recipes::open(&schema, &bench.locks, "recipes").unwrap();
        Self { bench, recipes }
    }

    pub fn session(&self, name: &str) -> Session<S> {
        let options = LeaseOptions { lease: LEASE, grace: GRACE };
        Session::without_heartbeat(self.bench.store, &self.bench.locks, name, options).unwrap()
    }

    /// Ends the lease and the grace period of all sessions except `living`.
    pub fn let_leases_end(&self, living: &[&Session<S>]) {
        for part in [LEASE, GRACE] {
            self.bench.clock.advance(part);
            living.iter().for_each(|session| self.bench.renew(session.id()).unwrap());
        }
    }
}

/// Waits until another thread makes a condition true.
pub fn until(mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LONG, "the condition never holds");
        std::thread::sleep(Duration::from_millis(1));
    }
}
