//! Failed transactions, kept for the back-off of their retry.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use foundationdb::{FdbError, FdbResult, Transaction, TransactionCommitError};

/// A transaction that failed. The next transaction of its thread first waits for the back-off that
/// [`Transaction::on_error`] computes.
///
/// The back-off grows with each failure of the same transaction. It is longest when the cluster
/// limits the load.
pub(super) enum Failed {
    Read(Transaction, FdbError),
    Commit(TransactionCommitError),
}

impl Failed {
    /// Waits for the back-off, resets the transaction, and returns it.
    pub(super) async fn again(self) -> FdbResult<Transaction> {
        match self {
            Self::Read(txn, error) => txn.on_error(error).await,
            Self::Commit(error) => error.on_error().await,
        }
    }
}

/// The last failure of each thread.
#[derive(Default)]
pub(super) struct Again(Mutex<HashMap<ThreadId, (Instant, Failed)>>);

/// After this time, the back-off of a failed transaction is dropped. A real retry begins within the
/// few milliseconds of the retry policy.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(1);

impl Again {
    pub(super) fn put(&self, failed: Failed) {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (at, _)| now.duration_since(*at) < FORGOTTEN_AFTER);
        all.insert(thread::current().id(), (now, failed));
    }

    pub(super) fn take(&self) -> Option<Failed> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, failed) = all.remove(&thread::current().id())?;
        (at.elapsed() < FORGOTTEN_AFTER).then_some(failed)
    }
}
