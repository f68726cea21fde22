//! Group commit: the transactions of many threads in one commit.

pub(crate) mod group;
pub(crate) mod job;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Limits, Result, RetryPolicy, Store};

pub use group::BatchCounts;
use group::Group;
pub use transaction::BatchedTransaction;

/// The largest number of bodies in one batch.
///
/// It bounds how long a body waits for those before it. That of bbolt is the same.
pub const MAX_BATCH: usize = 1_000;

/// Wraps a store and commits the transactions of many threads together.
///
/// A durable commit waits for the disk or for a server, and a store with one writer at a time
/// repeats this wait for each transaction. [`transact_batched`](Store::transact_batched) runs the
/// bodies of all threads that wait in *one* transaction of the inner store, one after the other,
/// and commits once. Each body sees the writes of those before it. A call returns after the commit
/// that contains its writes.
///
/// | a body | outcome |
/// |---|---|
/// | succeeds | it is committed together with the others |
/// | fails before it writes | the others are committed; it runs again alone, and its call returns the error of that run |
/// | fails or panics after it has written | the transaction is rolled back, the others run again and are committed; it runs again alone |
///
/// If a batch cannot be committed, as it is too large for the store, each of its bodies runs alone.
/// After an unknown outcome ([`Error::CommitUnknown`]) each call of the batch returns that error.
///
/// A batch is formed while the commit before it waits for the disk. So a thread that is alone does
/// not wait, and the more threads there are, the larger are the batches, up to [`MAX_BATCH`] bodies
/// in order of arrival. A batch begins a little later, at most half of the time that the last
/// commit took, if the threads of the last one are expected back. There is no thread in the
/// background: the first thread of a batch runs the bodies of the others. Hence a body must be
/// [`Send`], and must not wait for something that another caller holds.
///
/// [`transact`](Store::transact) and [`begin`](Store::begin) are those of the inner store: each is
/// a transaction of its own.
///
/// Clones share the batches. Two wrappers of the same store form batches of their own.
///
/// Source: group commit is in Gray and Reuter, "Transaction Processing" (1993); the form that runs
/// functions, and runs one that failed again alone, is `DB.Batch` of bbolt.
///
/// ```
/// use keyloom::{Batched, Memory, Reader, Store, Writer};
/// let store = Batched::new(Memory::new());
/// std::thread::scope(|scope| {
///     for _request in 0..16 {
///         scope.spawn(|| store.transact_batched(|txn| txn.add(b"requests", 1)));
///     }
/// });
/// assert_eq!(store.snapshot()?.counter(b"requests")?, 16);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Debug)]
pub struct Batched<S: Store> {
    store: S,
    group: Arc<Group<S>>,
}

impl<S: Store + Clone> Clone for Batched<S> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), group: Arc::clone(&self.group) }
    }
}

impl<S: Store> Batched<S> {
    /// Wraps `store`.
    pub fn new(store: S) -> Self {
        Self { store, group: Arc::default() }
    }

    /// The inner store.
    pub fn inner(&self) -> &S {
        &self.store
    }

    /// What was committed together since the store was wrapped, of all its clones.
    ///
    /// ```
    /// use keyloom::{Batched, BatchCounts, Memory, Store, Writer};
    /// let store = Batched::new(Memory::new());
    /// store.transact_batched(|txn| txn.put(b"key", b"value"))?;
    /// assert_eq!(store.counts(), BatchCounts { alone: 1, ..BatchCounts::default() });
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn counts(&self) -> BatchCounts {
        self.group.counts()
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn group(&self) -> &Group<S> {
        &self.group
    }

    /// The number of bodies that wait for the next batch.
    pub fn waiting(&self) -> usize {
        self.group.waiting()
    }
}

impl<S: Store> Store for Batched<S> {
    type Snapshot<'s> = S::Snapshot<'s>;
    type Transaction<'s> = BatchedTransaction<'s, S>;

    fn snapshot(&self) -> Result<Self::Snapshot<'_>> {
        self.store.snapshot()
    }

    fn begin(&self) -> Result<Self::Transaction<'_>> {
        let inner = self.store.begin()?;
        Ok(BatchedTransaction::new(inner, Some(self.group.note_owner())))
    }

    fn limits(&self) -> Limits {
        self.store.limits()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.store.retry_policy()
    }

    fn round_trips(&self) -> Option<u64> {
        self.store.round_trips()
    }

    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool> {
        self.store.wait_for_change(key, seen, timeout)
    }

    fn transact_batched<T: Send>(
        &self,
        mut body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        match self.group.join(&self.store, &mut body, Error::is_retryable)? {
            Some(committed) => committed,
            None => self.transact(body),
        }
    }

    fn try_transact_batched<T: Send, E: From<Error> + Send>(
        &self,
        mut body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        match self.group.join(&self.store, &mut body, |_| false)? {
            Some(committed) => committed,
            None => self.try_transact(body),
        }
    }
}
