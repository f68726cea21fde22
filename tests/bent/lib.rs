//! Stores that are broken on purpose, to see that the tests of stores can fail.
//!
//! [`Bent`] is the memory store with one [`Flaw`]. It copies whatever it reads, so that there is
//! one place where a mistake can be made for each kind of operation. [`Weakened`] wraps any store,
//! and takes from its isolation.

mod flaw;
mod reading;
mod transaction;
mod weakened;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use keyloom::{Error, KeyRange, Limits, Memory, Result, Store};

pub use flaw::Flaw;
pub use reading::{BentEntries, BentSnapshot};
pub use transaction::BentTransaction;
pub use weakened::{Weakened, WeakenedTransaction, Weakness};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A memory store with one mistake.
///
/// ```
/// use keyloom::conformance::{Law, Suite};
/// use keyloom_bent::{Bent, Flaw};
/// let violations = Suite::new().run(|| Ok(Bent::new(Flaw::InclusiveEnd)))?;
/// assert!(violations.iter().any(|violation| violation.law == Law::Ranges));
/// # Ok::<(), keyloom::BoxedError>(())
/// ```
#[derive(Debug)]
pub struct Bent {
    flaw: Flaw,
    memory: Memory,
    /// What the open transactions have written, one after the other.
    uncommitted: Mutex<Vec<transaction::Write>>,
    /// Held while a commit of a store that compares by itself is compared and applied.
    committing: Mutex<()>,
    commits: AtomicUsize,
}

impl Bent {
    /// An empty store that is wrong in one way.
    pub fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            // Side by side, so that what is wrong between transactions can show.
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

impl Store for Bent {
    type Snapshot<'s> = BentSnapshot<'s>;
    type Transaction<'s> = BentTransaction<'s>;

    fn snapshot(&self) -> Result<BentSnapshot<'_>> {
        BentSnapshot::new(self)
    }

    fn begin(&self) -> Result<BentTransaction<'_>> {
        BentTransaction::begin(self)
    }

    fn limits(&self) -> Limits {
        self.memory.limits()
    }

    fn try_transact<T, E: From<Error>>(
        &self,
        mut body: impl FnMut(&mut BentTransaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        // The honest loop, as `transact` has it: conflicts show at commit.
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
