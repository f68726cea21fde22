//! Group commit: the transactions of many threads in one commit.

pub(crate) mod group;
pub(crate) mod job;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use crate::backend::ChangeListener;
use crate::retry::Retries;
use crate::{Error, Limits, Result, RetryPolicy, Store};

pub use group::BatchCounts;
use group::Group;
pub use transaction::BatchedTransaction;

/// The largest number of bodies in one batch.
///
/// The limit bounds how long a body waits for the bodies before it. bbolt has the same default.
pub const MAX_BATCH: usize = 1_000;

/// Wraps a store and commits the transactions of many threads together.
///
/// A durable commit waits for the disk, and a store with one writer at a time repeats this wait for
/// each transaction. [`transact_batched`](Store::transact_batched) runs the bodies of all waiting
/// threads one after the other in *one* transaction of the inner store, and commits once. Each body
/// sees the writes of the bodies before it. A call returns after the commit that contains its
/// writes.
///
/// | a body | outcome |
/// |---|---|
/// | succeeds | it is committed together with the others |
/// | fails without having written and without an error of the store | the others are committed; it runs again alone, and its call returns the result of that run |
/// | fails otherwise, or panics | the transaction is rolled back, the others run again and are committed; it runs again alone |
/// | does not fit into the transaction | earlier bodies are committed; it joins the next batch |
///
/// So a call returns what it would have returned alone, but its body may have run some ten times.
/// If the outcome of a commit is unknown ([`Error::CommitUnknown`]), each call of the batch returns
/// that error.
///
/// A batch takes bodies in order of arrival, up to [`MAX_BATCH`], and none after 20 ms. If the last
/// batch was larger, the batch waits for more bodies, for at most half the time of a commit and at
/// most 5 ms. So a single thread never waits for others, and the batches grow with the number of
/// threads.
///
/// # What to know
///
/// * There is no thread in the background: the first thread of a batch runs the bodies of the
///   others. Hence a body must be [`Send`], and may run with the thread-locals of another caller.
///   It must not wait for a thread that waits for a call of this store, nor for a lock that such a
///   thread holds.
/// * A thread that has a transaction of the store must not call `transact_batched`. If the
///   transaction is from this wrapper or a clone, the call returns [`Error::NestedTransaction`]. If
///   the transaction is from the [inner](Batched::inner) store, the batch may wait for the
///   transaction while the call waits for the batch. On LMDB this wait ends with a time-out.
/// * `Batched` must be the outermost wrapper: `Metered<Batched<S>>` does not batch.
/// * `Batched` is meant for stores with one writer at a time: memory, LMDB, redb. On other stores,
///   transactions run concurrently; in a batch, bodies that wait for a server would wait for each
///   other.
/// * [`transact`](Store::transact) and [`begin`](Store::begin) run their own transactions, outside
///   any batch.
///
/// Clones share the batches. Two wrappers of the same store form separate batches.
///
/// Source: group commit is in Gray and Reuter, "Transaction Processing" (1993); running functions
/// in a batch, and a failed function again alone, follows `DB.Batch` of bbolt.
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

    /// Returns the counts of this store and all its clones since it was wrapped.
    ///
    /// ```
    /// use keyloom::{Batched, Memory, Store, Writer};
    /// let store = Batched::new(Memory::new());
    /// store.transact_batched(|txn| txn.put(b"key", b"value"))?;
    /// let counts = store.counts();
    /// assert_eq!((counts.alone, counts.batches), (1, 0));
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

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<Self::Snapshot<'_>>> {
        self.store.parallel_snapshots(count)
    }

    fn begin(&self) -> Result<Self::Transaction<'_>> {
        let inner = self.store.begin()?;
        Ok(BatchedTransaction::new(inner, self.group.note_owner()))
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

    fn listen(&self, key: &[u8]) -> ChangeListener {
        self.store.listen(key)
    }

    fn transact_batched<T: Send>(
        &self,
        body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        self.group.transact(self, body, Retries::TRANSACT)
    }

    fn try_transact_batched<T: Send, E: From<Error> + Send>(
        &self,
        body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        self.group.transact(self, body, Retries::TRY)
    }
}
