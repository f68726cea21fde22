//! The store in memory: a persistent B+tree, so that a snapshot is one reference.
//!
//! This store is the *strictest* one, on purpose: a program that passes its tests here should not
//! fail on another store. Options make the store
//!
//! * refuse operations that exceed the limits of another store ([`MemoryBuilder::limits`]),
//! * run transactions concurrently, and refuse to commit a transaction whose reads are stale
//!   ([`MemoryBuilder::optimistic`]), as FoundationDB, etcd and PostgreSQL do,
//! * report a conflict on demand ([`Memory::conflict_next`]).
//!
//! | operation | cost |
//! |---|---|
//! | snapshot, begin | O(1): one reference to the root |
//! | get, seek | O(log n), nothing copied, nothing allocated |
//! | range | nothing copied, nothing allocated, neither to open the range nor per entry |
//! | put, delete | O(log n); copies the nodes on the path that a snapshot shares |
//! | commit | O(1); with `optimistic`, O(writes committed since the transaction began) |
//!
//! The transactions of an `optimistic` store record their reads. This allocates memory.
//!
//! Each entry is one allocation: the key followed by the value.

mod entries;
mod entry;
mod leaf;
mod optimistic;
mod transaction;
mod tree;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::backend::{ChangeListener, CommitSignal, WriterSlot};
use crate::{Error, KeyRange, Limits, Order, Reader, Result, RetryPolicy, Store, check_key};

pub(crate) use entries::MemoryEntries;
use optimistic::Committed;
pub(crate) use optimistic::Tracked;
pub use transaction::MemoryTransaction;
use tree::Tree;

/// A store in memory. Clones are handles of the same store; see the [module](self).
///
/// ```
/// use keyloom::{Memory, Reader, Store, Writer};
/// let store = Memory::new();
/// let before = store.snapshot()?;
/// store.transact(|txn| txn.put(b"a", b"1"))?;
/// assert_eq!(before.get(b"a")?, None);
/// assert_eq!(store.snapshot()?.get(b"a")?, Some(&b"1"[..]));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    writer: WriterSlot,
    limits: Limits,
    retry_policy: RetryPolicy,
    optimistic: bool,
    conflicts_to_raise: AtomicU32,
    signal: CommitSignal,
}

/// The state that a commit replaces.
#[derive(Debug, Default)]
pub(crate) struct State {
    tree: Tree,
    version: u64,
    /// The writes since the oldest open transaction began (optimistic stores only).
    log: VecDeque<Committed>,
    /// For each version, the number of open transactions that began at that version (optimistic
    /// stores only).
    open: BTreeMap<u64, usize>,
}

/// Options of a [`Memory`] store.
///
/// ```
/// use keyloom::{Limits, Memory};
/// let store = Memory::builder().limits(Limits::foundationdb()).optimistic(true).build();
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryBuilder {
    limits: Limits,
    retry_policy: RetryPolicy,
    optimistic: bool,
}

impl MemoryBuilder {
    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With `true`, transactions run concurrently, and the commit of a transaction whose reads were
    /// overwritten meanwhile returns [`Error::Conflict`]. With `false` (the default), a transaction
    /// waits for the previous one and never conflicts.
    #[must_use]
    pub fn optimistic(mut self, optimistic: bool) -> Self {
        self.optimistic = optimistic;
        self
    }

    /// How often and after which pauses [`transact`](Store::transact) retries a transaction.
    #[must_use]
    pub fn retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// Creates an empty store.
    pub fn build(self) -> Memory {
        let Self { limits, retry_policy, optimistic } = self;
        let shared = Shared { limits, retry_policy, optimistic, ..Shared::default() };
        Memory { shared: Arc::new(shared) }
    }
}

impl Memory {
    /// An empty store with the widest limits and one writer at a time.
    pub fn new() -> Self {
        Self::default()
    }

    /// Options for a store that imitates another one.
    pub fn builder() -> MemoryBuilder {
        MemoryBuilder::default()
    }

    /// Makes the next `commits` commits report a conflict, to test that a program retries its
    /// transactions.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Writer};
    /// let store = Memory::new();
    /// store.conflict_next(2);
    /// let mut runs = 0;
    /// store.transact(|txn| {
    ///     runs += 1;
    ///     txn.put(b"a", b"1")
    /// })?;
    /// assert_eq!(runs, 3);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn conflict_next(&self, commits: u32) {
        self.shared.conflicts_to_raise.store(commits, Ordering::Relaxed);
    }
}

impl Shared {
    // A commit replaces the tree in one assignment, and no code between it and the release of the
    // lock can panic. So the state of a poisoned lock is consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn raises_conflict(&self) -> bool {
        self.conflicts_to_raise
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
    }

    fn clock(&self) -> Option<Instant> {
        self.limits.max_age_ms.map(|_| Instant::now())
    }

    /// Returns an error if more time has passed since `started` than the store allows.
    fn check_age(&self, started: Option<Instant>) -> Result<()> {
        let (Some(limit_ms), Some(started)) = (self.limits.max_age_ms, started) else {
            return Ok(());
        };
        let age_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if age_ms <= limit_ms { Ok(()) } else { Err(Error::TooOld { age_ms, limit_ms }) }
    }
}

impl Store for Memory {
    type Snapshot<'s> = MemorySnapshot<'s>;
    type Transaction<'s> = MemoryTransaction<'s>;

    fn snapshot(&self) -> Result<MemorySnapshot<'_>> {
        let tree = self.shared.lock().tree.clone();
        Ok(MemorySnapshot { shared: &self.shared, tree, started: self.shared.clock() })
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<MemorySnapshot<'_>>> {
        Ok(vec![self.snapshot()?; count.max(1)])
    }

    fn begin(&self) -> Result<MemoryTransaction<'_>> {
        MemoryTransaction::begin(&self.shared)
    }

    fn limits(&self) -> Limits {
        self.shared.limits
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.shared.retry_policy
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        self.shared.signal.listen(key)
    }
}

/// A snapshot of a [`Memory`] store.
#[derive(Clone, Debug)]
pub struct MemorySnapshot<'s> {
    shared: &'s Shared,
    tree: Tree,
    started: Option<Instant>,
}

impl Reader for MemorySnapshot<'_> {
    type Bytes<'r>
        = &'r [u8]
    where
        Self: 'r;
    type Entries<'r>
        = MemoryEntries<'r>
    where
        Self: 'r;

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        check_key(key)?;
        self.shared.check_age(self.started)?;
        Ok(self.tree.get(key))
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<MemoryEntries<'_>> {
        self.shared.check_age(self.started)?;
        Ok(MemoryEntries::open(self.shared, self.started, &self.tree, &range, order))
    }
}
