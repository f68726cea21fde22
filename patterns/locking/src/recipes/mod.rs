//! Recipes: how do sessions share a limited number of permits, or elect a leader?
//!
//! The recipes are those of etcd's concurrency package and of Apache Curator. Each recipe stores
//! one record per owner and no counter. So the share of a dead owner is known, and is freed when
//! the owner's lease and grace period have ended.
//!
//! | recipe | what it does | in etcd | in Curator |
//! |---|---|---|---|
//! | [`Semaphore`] | at most n sessions hold a permit, in the order of their requests | | `InterProcessSemaphoreV2` |
//! | [`Election`] | one session is the leader, with a value | `Election` | `LeaderLatch` |
//! | [`Lock::exclusive`](crate::Lock::exclusive) | a mutex | `Mutex` | `InterProcessMutex` |
//! | [`Lock::shared`](crate::Lock::shared) | a read-write lock | `RWMutex` | `InterProcessReadWriteLock` |
//! | several locks in one request | all of them or none | | `InterProcessMultiLock` |
//!
//! ```
//! use std::time::Duration;
//! use keyloom::Memory;
//! use keyloom_locking::recipes::Recipes;
//! use keyloom_locking::{LockPath, Locks, Session};
//! use keyloom_tables::Schema;
//! let store = Memory::new();
//! let schema = Schema::open(&store, "shop")?;
//! let locks = Locks::open(&schema, "locks")?;
//! let recipes = Recipes::open(&schema, &locks, "recipes")?;
//! let [ada, bob] = ["ada", "bob"].map(|name| Session::begin(&store, &locks, name));
//! let (ada, bob) = (ada?, bob?);
//!
//! // At most one download at a time.
//! let downloads = recipes.semaphore(&LockPath::of(["downloads"]), 1)?;
//! let permit = downloads.try_acquire(&ada)?;
//! assert!(downloads.acquire_within(&bob, Duration::from_millis(5)).is_err());
//! permit.release()?;
//! downloads.acquire(&bob)?.release()?;
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Key layout
//!
//! The recipes are stored in tables of a schema, here for recipes with the name `recipes`. An
//! election is also a [request](crate#key-layout) for an exclusive lock of its path: give it a path
//! that nothing else locks.
//!
//! | table | key | value |
//! |---|---|---|
//! | `recipes_permits` | path, ticket | session, number of permits, time: holders first, then waiters |
//! | `recipes_released` | path | the last released ticket; waiters wait for a change of this key |
//! | `recipes_leaders` | path | session, ticket, fencing token, value |
//!
//! # Invariants
//!
//! * Among the permits of live sessions, the first n are held and the others wait.
//! * The leader is the session that holds the lock of the election.
//! * Tickets and fencing tokens of a path increase, as in [`Locks`](crate#invariants).
//!
//! # Cost
//!
//! m is the number of earlier permits of the path. Their sessions are read in one round trip. Each
//! line is one transaction, and includes the gets of the states of its tables.
//!
//! | operation | cost |
//! |---|---|
//! | [`Semaphore::try_acquire`], or the request of [`acquire`](Semaphore::acquire) | 5 gets, and 1 get for each session of the m members; 1 range of m keys; 2 keys written |
//! | a poll of a waiter, after each release | 1 range of m keys, 1 get per session |
//! | [`Permit::release`] | 4 gets, 2 keys written |
//! | [`Permit::verify`] | 1 get |
//! | [`Election::campaign`] | as for a [lock](crate#cost), and a transaction with 1 key written |
//! | [`Election::leader`] | 3 gets. Nothing is written |
//!
//! # When not to use it
//!
//! * A semaphore of thousands of permits: each request reads all of them. To limit how often
//!   something is done, use a [rate limit](crate::rate_limit); or divide the resource into paths.
//! * Barriers, which etcd and Curator have: use an exclusive lock as the barrier. Waiters request a
//!   shared lock of the same path.
//! * An election where the leader's writes go to a service that does not check its
//!   [token](Leadership::token): two leaders may write there.
//!
//! # Source
//!
//! `client/v3/concurrency` and `client/v3/experimental/recipes` of etcd; the recipes of Apache
//! Curator, which go back to P. Hunt and others, *ZooKeeper: Wait-free Coordination for
//! Internet-scale Systems* (2010). Semaphores: E. W. Dijkstra (1965).

mod election;
mod members;
mod semaphore;
mod wait;

use std::ops::ControlFlow;

use keyloom::{Error, Result, Store};
use keyloom_kit::{Progress, RepairOptions, in_batches};
use keyloom_tables::{Schema, Table};

use crate::inspect::SWEPT;
use crate::path::PathPart;
use crate::{Lock, LockPath, Locks};

pub use election::{Election, Leader, Leadership};
use members::Members;
pub use semaphore::{Permit, Semaphore};

/// Recipes in a schema; see the [module](self). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recipes {
    locks: Locks,
    permits: Members,
    released: Table<PathPart, u64>,
    leaders: Table<PathPart, Leader>,
}

impl Recipes {
    /// Declares the recipes `name` in a schema, for the sessions of `locks`.
    ///
    /// Adds the tables `NAME_permits`, `NAME_released` and `NAME_leaders`.
    ///
    /// # Errors
    /// The errors of [`Schema::table`].
    pub fn open<S: Store>(schema: &Schema<'_, S>, locks: &Locks, name: &str) -> Result<Self> {
        let permits = schema.table(&format!("{name}_permits"))?;
        Ok(Self {
            locks: locks.clone(),
            permits: Members { table: permits, locks: locks.clone() },
            released: schema.table(&format!("{name}_released"))?,
            leaders: schema.table(&format!("{name}_leaders"))?,
        })
    }

    /// The semaphore of a resource, with this number of permits. It need not be created first.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for 0 permits; [`LockError::BadLock`](crate::LockError::BadLock)
    /// for a path that cannot be locked.
    pub fn semaphore(&self, path: &LockPath, permits: u32) -> Result<Semaphore> {
        if permits == 0 {
            return Err(Error::InvalidArgument {
                what: "the number of permits",
                value: "0".into(),
                why: "it is at least 1",
            });
        }
        let of = Of::new(path)?;
        Ok(Semaphore {
            of,
            permits,
            members: self.permits.clone(),
            released: self.released.clone(),
        })
    }

    /// The election for a resource. It need not be created first.
    ///
    /// # Errors
    /// [`LockError::BadLock`](crate::LockError::BadLock) for a path that cannot be locked.
    pub fn election(&self, path: &LockPath) -> Result<Election> {
        let (locks, leaders) = (self.locks.clone(), self.leaders.clone());
        Ok(Election { of: Of::new(path)?, locks, leaders })
    }

    /// Removes the permits of sessions that have ended, in bounded transactions. Requests remove
    /// ended permits of the same resource as well; call `sweep` periodically for the rest.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn sweep(&self, store: &impl Store) -> Result<Progress> {
        self.sweep_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`sweep`](Recipes::sweep) with options. Calls `progress` after each transaction and stops if
    /// `progress` breaks. The next sweep removes the rest, with or without the position.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn sweep_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let options = RepairOptions { batch: options.batch.min(SWEPT), ..options.clone() };
        in_batches(store, &options, progress, |txn, batch, done| {
            self.permits.sweep_batch(txn, batch, done)?;
            done.finished = done.position.last.is_none();
            Ok(())
        })
    }
}

/// The resource of a recipe.
#[derive(Clone, Debug)]
struct Of {
    path: PathPart,
    lock: Lock,
}

impl Of {
    fn new(path: &LockPath) -> Result<Self> {
        let lock = Lock::exclusive(path.clone());
        lock.validate()?;
        Ok(Self { path: PathPart(path.elements()?), lock })
    }

    /// The text `what`, followed by the path of the resource.
    fn shown(&self, what: &str) -> String {
        format!("{what} {}", self.lock.path())
    }
}
