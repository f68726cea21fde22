//! Mutant stores: negative controls that show that the tests of stores can fail.
//!
//! [`MutantStore`] is the memory store with one [`Flaw`]. It copies all entries that it reads, so
//! that the flaws of each kind of operation are in one place. [`Weakened`] wraps any store and
//! weakens its isolation.

mod fixture;
mod flaw;
mod reading;
mod transaction;
mod weakened;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use keyloom::backend::{ChangeListener, CommitSignal};
use keyloom::{Error, KeyRange, Limits, Memory, Result, Store, Writer};

pub use fixture::Mutant;
pub use flaw::Flaw;
pub use reading::{MutantEntries, MutantSnapshot};
pub use transaction::MutantTransaction;
pub use weakened::{Weakened, WeakenedTransaction, Weakness};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A memory store with one flaw.
///
/// ```
/// use keyloom_conformance::{Law, Suite};
/// use keyloom_mutant_stores::{Flaw, MutantStore};
/// let violations = Suite::new().run(|| Ok(MutantStore::new(Flaw::InclusiveEnd)))?;
/// assert!(violations.iter().any(|violation| violation.law == Law::Ranges));
/// # Ok::<(), keyloom::BoxedError>(())
/// ```
#[derive(Debug)]
pub struct MutantStore {
    flaw: Flaw,
    memory: Memory,
    /// The writes of the open transactions, in order.
    uncommitted: Mutex<Vec<transaction::Write>>,
    /// Held while a commit is validated and applied, for flaws with their own validation.
    committing: Mutex<()>,
    commits: AtomicU64,
    /// The number of batched transactions.
    batched: AtomicU64,
    /// The state before the last commit, if the flaw needs it.
    before: Mutex<Map>,
    /// The thread of the last commit.
    committer: Mutex<Option<ThreadId>>,
    /// The last versionstamp, for a flaw that keeps it in memory.
    stamp: AtomicU64,
    /// The number of reads that succeed before one fails; negative if none fails.
    reads_to_failure: Arc<AtomicI64>,
}

impl MutantStore {
    /// An empty store with the given flaw.
    pub fn new(flaw: Flaw) -> Self {
        let limits = Limits::default().with_max_value_bytes(2 << 20);
        // Concurrent transactions, so that flaws of isolation can show.
        Self::over(flaw, Memory::builder().optimistic(true).limits(limits).build())
    }

    fn over(flaw: Flaw, memory: Memory) -> Self {
        Self {
            flaw,
            memory,
            uncommitted: Mutex::default(),
            committing: Mutex::default(),
            commits: AtomicU64::new(0),
            batched: AtomicU64::new(0),
            before: Mutex::default(),
            committer: Mutex::default(),
            stamp: AtomicU64::new(0),
            reads_to_failure: Arc::new(AtomicI64::new(-1)),
        }
    }

    /// The store after it was closed and reopened.
    fn reopened(self) -> Result<Self> {
        if self.flaw == Flaw::LosesTheLastCommit {
            let before = std::mem::take(&mut *self.before());
            self.memory.transact(|txn| {
                txn.delete_range(KeyRange::all())?;
                before.iter().try_for_each(|(key, value)| txn.put(key, value))
            })?;
        }
        Ok(Self::over(self.flaw, self.memory))
    }

    /// Makes the read after this number of reads fail, or none.
    fn fail_read_after(&self, reads: Option<usize>) {
        let reads = reads.map_or(-1, |reads| reads.try_into().unwrap_or(i64::MAX));
        self.reads_to_failure.store(reads, Relaxed);
    }

    fn committer(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.committer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another thread made the last commit.
    fn is_of_another_thread(&self) -> bool {
        self.committer().is_some_and(|committer| committer != thread::current().id())
    }

    fn before(&self) -> MutexGuard<'_, Map> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uncommitted(&self) -> MutexGuard<'_, Vec<transaction::Write>> {
        self.uncommitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All committed entries.
    fn map(&self) -> Result<Map> {
        let all = reading::entries(&self.memory.snapshot()?, &KeyRange::all())?;
        Ok(all.into_iter().collect())
    }
}

impl Store for MutantStore {
    type Snapshot<'s> = MutantSnapshot<'s>;
    type Transaction<'s> = MutantTransaction<'s>;

    fn snapshot(&self) -> Result<MutantSnapshot<'_>> {
        MutantSnapshot::new(self)
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<MutantSnapshot<'_>>> {
        let mut found = vec![self.snapshot()?];
        while found.len() < count && self.flaw == Flaw::SnapshotsApart {
            thread::sleep(Duration::from_millis(1));
            found.push(self.snapshot()?);
        }
        Ok(found)
    }

    fn begin(&self) -> Result<MutantTransaction<'_>> {
        MutantTransaction::begin(self)
    }

    fn limits(&self) -> Limits {
        self.memory.limits()
    }

    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool> {
        let seen = seen.filter(|seen| self.flaw != Flaw::WaitsOnEmpty || !seen.is_empty());
        let timeout = match self.flaw {
            Flaw::SleepsThroughChanges | Flaw::WaitsOnEmpty => {
                timeout.min(Duration::from_millis(1))
            }
            Flaw::NeverNotifies if !self.memory.wait_for_change(key, seen, Duration::ZERO)? => {
                thread::sleep(timeout);
                Duration::ZERO
            }
            _ => timeout,
        };
        let is_changed = self.memory.wait_for_change(key, seen, timeout)?;
        Ok(is_changed || self.flaw == Flaw::WakesForNothing)
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        match self.flaw {
            Flaw::ListensToNothing => CommitSignal::default().listen(key),
            _ => self.memory.listen(key),
        }
    }

    fn try_transact<T, E: From<Error>>(
        &self,
        mut body: impl FnMut(&mut MutantTransaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        // The correct loop is that of `transact`: conflicts are detected at the commit.
        let mut failed = None;
        let done = self.transact(|txn| match body(txn) {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                failed = Some(error);
                if self.flaw == Flaw::ErrorCommits { Ok(None) } else { Err(Error::ReadOnly) }
            }
        });
        match (failed, done) {
            (Some(error), _) => Err(error),
            (None, Ok(Some(value))) => Ok(value),
            (None, Ok(None)) => Err(Error::ReadOnly.into()),
            (None, Err(error)) => Err(error.into()),
        }
    }

    fn transact_batched<T: Send>(
        &self,
        mut body: impl FnMut(&mut MutantTransaction<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        const LOST: u64 = 7;
        match self.flaw {
            Flaw::BatchedBeforeCommit
                if self.batched.fetch_add(1, Relaxed).is_multiple_of(LOST) =>
            {
                body(&mut self.begin()?)
            }
            Flaw::BatchedErrorCommits => self.transact(|txn| Ok(body(txn)))?,
            Flaw::BatchedErrorLost => self.transact(body).map_err(|error| match error {
                Error::Other(_) => Error::ReadOnly,
                other => other,
            }),
            Flaw::BatchedTwice => {
                self.transact(&mut body)?;
                self.transact(body)
            }
            _ => self.transact(body),
        }
    }
}
