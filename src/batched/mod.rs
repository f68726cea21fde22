//! Group commit: the transactions of many threads in one commit.

pub(crate) mod group;
pub(crate) mod job;
mod transaction;

use std::sync::Arc;
use std::time::Duration;

use crate::retry::Retries;
use crate::{Error, Limits, Result, RetryPolicy, Store};

pub use group::BatchCounts;
use group::Group;
pub use transaction::{BatchedEntries, BatchedTransaction};

/// The largest number of bodies in one batch.
///
/// It bounds how long a body waits for those before it. The default of bbolt is the same.
pub const MAX_BATCH: usize = 1_000;

/// Wraps a store and commits the transactions of many threads together.
///
/// A durable commit waits for the disk, and a store with one writer at a time repeats this wait for
/// each transaction. [`transact_batched`](Store::transact_batched) runs the bodies of all threads
/// that wait in *one* transaction of the inner store, one after the other, and commits once. Each
/// body sees the writes of those before it. A call returns after the commit that contains its
/// writes.
///
/// | a body | outcome |
/// |---|---|
/// | succeeds | it is committed together with the others |
/// | fails, and has neither written nor met an error of the store | the others are committed; it runs again alone, and its call returns the result of that run |
/// | fails otherwise, or panics | the transaction is rolled back, the others run again and are committed; it runs again alone |
/// | does not fit into the transaction | those before it are committed; it is in the next batch |
///
/// So a call returns what it would have returned alone, but its body may have run some ten times.
/// If the outcome of a commit is unknown ([`Error::CommitUnknown`]), each call of the batch returns
/// that error.
///
/// A batch takes the bodies that have arrived, in their order, up to [`MAX_BATCH`], and none after
/// 20 ms. If more are expected, since the last batch had more, it waits for them: at most for half
/// of the time of a commit, and for 5 ms. So a thread that is alone waits for no other, and the
/// more threads there are, the larger are the batches.
///
/// # What to know
///
/// * There is no thread in the background: the first thread of a batch runs the bodies of the
///   others. Hence a body must be [`Send`], has the thread-locals of another caller, and must not
///   wait for a lock or a thread that waits for a call of this store.
/// * A thread that has a transaction of the store must not call `transact_batched`.
///   [`Error::NestedTransaction`] says so if the transaction is of this wrapper or a clone. If it
///   is of the [inner](Batched::inner) store, the two wait for each other, on LMDB until its
///   time-out.
/// * It must be the outermost wrapper: `Metered<Batched<S>>` does not batch.
/// * For stores with one writer at a time: memory, LMDB, redb. On the others, whose transactions
///   run side by side, bodies that wait for a server would wait for each other.
/// * [`transact`](Store::transact) and [`begin`](Store::begin) are transactions of their own.
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
