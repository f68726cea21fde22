//! Mutant stores: negative controls, which show that the tests of stores can fail.
//!
//! [`MutantStore`] is the memory store with one [`Flaw`]. It copies all entries that it reads, so
//! that each kind of operation has one place for its flaws. [`Weakened`] wraps any store and
//! weakens its isolation.

mod flaw;
mod reading;
mod transaction;
mod weakened;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keyloom::{Error, KeyRange, Limits, Memory, Result, Store};

pub use flaw::Flaw;
pub use reading::{MutantEntries, MutantSnapshot};
pub use transaction::MutantTransaction;
pub use weakened::{Weakened, WeakenedTransaction, Weakness};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A memory store with one flaw.
///
/// ```
/// use keyloom::conformance::{Law, Suite};
/// use keyloom_mutant_stores::{Flaw, MutantStore};
/// let violations = Suite::new().run(|| Ok(MutantStore::new(Flaw::InclusiveEnd)))?;
/// assert!(violations.iter().any(|violation| violation.law == Law::Ranges));
/// # Ok::<(), keyloom::BoxedError>(())
/// ```
#[derive(Debug)]
pub struct MutantStore {
    flaw: Flaw,
    memory: Memory,
    /// The writes of the open transactions, in their order.
    uncommitted: Mutex<Vec<transaction::Write>>,
    /// Held while a commit is validated and applied, in a flaw that validates by itself.
    committing: Mutex<()>,
    commits: AtomicUsize,
}

impl MutantStore {
    /// An empty store with the given flaw.
    pub fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            // Concurrent transactions, so that flaws of isolation can show.
            memory: Memory::builder().optimistic(true).build(),
            uncommitted: Mutex::default(),
            committing: Mutex::default(),
            commits: AtomicUsize::new(0),
        }
    }

    fn uncommitted(&self) -> MutexGuard<'_, Vec<transaction::Write>> {
        self.uncommitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything committed.
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

    fn begin(&self) -> Result<MutantTransaction<'_>> {
        MutantTransaction::begin(self)
    }

    fn limits(&self) -> Limits {
        self.memory.limits()
    }

    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool> {
        let timeout = match self.flaw {
            Flaw::SleepsThroughChanges => timeout.min(Duration::from_millis(1)),
            Flaw::NeverNotifies if !self.memory.wait_for_change(key, seen, Duration::ZERO)? => {
                std::thread::sleep(timeout);
                Duration::ZERO
            }
            _ => timeout,
        };
        self.memory.wait_for_change(key, seen, timeout)
    }

    fn try_transact<T, E: From<Error>>(
        &self,
        mut body: impl FnMut(&mut MutantTransaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        // The correct loop is that of `transact`: conflicts show at commit.
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
}
