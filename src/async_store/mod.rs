//! A store for programs on tokio: transactions and reads that block no thread of the runtime.

mod inside;
mod stream;
mod submission;
mod waiting;
mod writer;

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::retry::Retries;
use crate::{Batched, BatchedTransaction, Error, Result, Store};

use submission::{Submission as _, Submitted};
use writer::{Queue, Writing};

/// A store for tasks of tokio: the calls return futures, and the work runs on a bounded number of
/// blocking threads.
///
/// A transaction is a closure, as everywhere in keyloom, and runs on one thread from its beginning
/// to its commit. So no task holds a transaction or a snapshot across an `.await`. The types
/// enforce this: the closures are not async, and references to the transaction cannot leave them.
///
/// * **Writes** are batched by default: one thread at a time runs the transactions of all waiting
///   tasks and commits once, as [`Batched`] does for threads. This suits stores with one writer at
///   a time: memory, LMDB, redb. For a store whose transactions run concurrently, see
///   [`concurrent_writers`](AsyncOptions::concurrent_writers).
/// * **Reads** run on up to [`readers`](AsyncOptions::readers) threads; further reads wait and
///   occupy no thread.
/// * **Cancellation**: a task may drop a future at any time. A transaction that has not begun does
///   not run. A transaction that has begun runs to its end and is committed or rolled back; it is
///   never left open. As after the loss of a connection, its outcome is then unknown to the task.
/// * After a **panic** of a closure, the transaction is rolled back, and the panic continues in the
///   waiting task.
///
/// Every call must be awaited on a tokio runtime. The threads come from `spawn_blocking`; none is
/// used while there is no work.
///
/// ```
/// use keyloom::{AsyncStore, Memory, Reader, Writer};
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let store = AsyncStore::new(Memory::new());
/// let visits = store
///     .transact(|txn| {
///         txn.add(b"visits", 1)?;
///         txn.counter(b"visits")
///     })
///     .await?;
/// assert_eq!(visits, 1);
/// let stored = store.read(|snapshot| snapshot.counter(b"visits")).await?;
/// assert_eq!(stored, 1);
/// # Ok::<(), keyloom::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct AsyncStore<S: Store> {
    shared: Arc<Shared<S>>,
}

impl<S: Store> Clone for AsyncStore<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

#[derive(Debug)]
struct Shared<S: Store> {
    store: Batched<S>,
    readers: Arc<Semaphore>,
    writers: Writers<S>,
}

#[derive(Debug)]
enum Writers<S: Store> {
    Batched(Queue<S>),
    Concurrent(Arc<Semaphore>),
}

/// The options of an [`AsyncStore`].
///
/// ```
/// use keyloom::{AsyncOptions, Memory};
/// let options = AsyncOptions::new().readers(4).concurrent_writers(8);
/// let store = options.wrap(Memory::builder().optimistic(true).build());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AsyncOptions {
    readers: usize,
    concurrent_writers: Option<usize>,
}

impl Default for AsyncOptions {
    /// Batched writes, and 16 readers.
    fn default() -> Self {
        // More threads do not read faster from memory. But they overlap page faults of a store that
        // is larger than the memory, and round trips to a server.
        Self { readers: 16, concurrent_writers: None }
    }
}

impl AsyncOptions {
    /// Batched writes, and 16 readers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest number of threads that read at once, at least 1. On a store with a server, each
    /// of these threads needs a connection.
    #[must_use]
    pub fn readers(mut self, threads: usize) -> Self {
        self.readers = threads.clamp(1, Semaphore::MAX_PERMITS);
        self
    }

    /// Runs each transaction on its own thread, with at most `threads` at once, instead of in
    /// batches. For stores whose transactions run concurrently (fjall, PostgreSQL, etcd and
    /// FoundationDB), if most transactions change different keys. Transactions that change the same
    /// keys, such as the postings of a common word, conflict and run again; in a batch, they run
    /// one after the other.
    #[must_use]
    pub fn concurrent_writers(mut self, threads: usize) -> Self {
        self.concurrent_writers = Some(threads.clamp(1, Semaphore::MAX_PERMITS));
        self
    }

    /// Wraps `store`.
    pub fn wrap<S: Store>(self, store: S) -> AsyncStore<S> {
        let writers = match self.concurrent_writers {
            Some(threads) => Writers::Concurrent(Arc::new(Semaphore::new(threads))),
            None => Writers::Batched(Queue::default()),
        };
        let readers = Arc::new(Semaphore::new(self.readers));
        AsyncStore { shared: Arc::new(Shared { store: Batched::new(store), readers, writers }) }
    }
}

impl<S: Store> AsyncStore<S> {
    /// Wraps `store`, with batched writes and 16 readers.
    pub fn new(store: S) -> Self {
        AsyncOptions::new().wrap(store)
    }

    /// The [`Batched`] store that this store uses, for blocking calls: from threads outside the
    /// runtime, or before the runtime starts. It also returns the [counts of
    /// batches](Batched::counts).
    pub fn blocking(&self) -> &Batched<S> {
        &self.shared.store
    }

    /// Runs `body` in a transaction and commits it: [`Store::transact_batched`] for tasks.
    ///
    /// The body may run more than once, and must own the handles that it uses: clone the handles of
    /// tables and indexes into it.
    ///
    /// # Errors
    /// The errors of [`Store::transact`]; [`Error::NestedTransaction`] if a body of this store
    /// calls `transact`; [`Error::Other`] without a tokio runtime; and [`Error::CommitUnknown`] if
    /// the runtime shuts down before there is a result, or if the store panics while it runs a
    /// batch.
    ///
    /// # Panics
    /// If `body` panics, or if the store panics in a transaction outside a batch.
    pub async fn transact<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T> + Send + 'static,
    {
        self.submit(body, Retries::TRANSACT).await
    }

    /// [`transact`](AsyncStore::transact) for a body with its own error type, like
    /// [`Store::try_transact`].
    ///
    /// # Errors
    /// The errors of [`transact`](AsyncStore::transact).
    ///
    /// # Panics
    /// If `body` panics, or if the store panics in a transaction outside a batch.
    pub async fn try_transact<T, E, F>(&self, body: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T, E> + Send + 'static,
    {
        self.submit(body, Retries::TRY).await
    }

    /// Runs `body` on a new snapshot.
    ///
    /// ```
    /// use keyloom::{AsyncStore, KeyRange, Memory, Reader};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = AsyncStore::new(Memory::new());
    /// assert_eq!(store.read(|snapshot| snapshot.count(KeyRange::all())).await?, 0);
    /// # Ok::<(), keyloom::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The errors of [`Store::snapshot`] and of `body`; and [`Error::Other`] without a tokio
    /// runtime, or if the runtime shuts down before the read begins.
    ///
    /// # Panics
    /// If `body` or the store panics.
    pub async fn read<T, F>(&self, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&S::Snapshot<'_>) -> Result<T> + Send + 'static,
    {
        self.try_read(body).await
    }

    /// [`read`](AsyncStore::read) for a body with its own error type.
    ///
    /// # Errors
    /// The errors of [`read`](AsyncStore::read).
    ///
    /// # Panics
    /// If `body` or the store panics.
    pub async fn try_read<T, E, F>(&self, body: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnOnce(&S::Snapshot<'_>) -> Result<T, E> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        on_a_thread(&self.shared.readers, move || body(&shared.store.snapshot()?)).await
    }

    async fn submit<T, E, F>(&self, body: F, retries: Retries<E>) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: FnMut(&mut BatchedTransaction<'_, S>) -> Result<T, E> + Send + 'static,
    {
        let runtime = runtime()?;
        let shared = Arc::clone(&self.shared);
        // A body may block its thread on a future, even on a future of this store.
        inside::refuse(&shared)?;
        let (reply, receiver) = oneshot::channel();
        let mut submitted = Submitted::new(body, retries, reply);
        match &self.shared.writers {
            Writers::Batched(queue) => {
                if queue.push(Box::new(submitted)) {
                    Writing::new(shared, runtime).start();
                }
            }
            Writers::Concurrent(threads) => {
                let permit = Arc::clone(threads).acquire_owned().await;
                runtime.spawn_blocking(move || {
                    let _permit = permit;
                    let _inside = inside::Inside::enter(&shared);
                    submitted.run_alone(&shared.store);
                });
            }
        }
        match receiver.await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => resume_unwind(panic),
            // It is unknown whether the transaction had begun.
            Err(_) => Err(Error::CommitUnknown { source: stopped().into() }.into()),
        }
    }
}

/// The error of a call whose work was dropped.
fn stopped() -> Error {
    Error::other(
        "the runtime was shut down or the store panicked before there was a result; call again on a runtime that runs",
    )
}

/// The runtime of the waiting task.
fn runtime() -> Result<Handle> {
    Handle::try_current().map_err(Error::other)
}

/// Runs `work` on a blocking thread, as soon as there is a permit.
///
/// If the future is dropped before the work has begun, the work does not begin.
async fn on_a_thread<T, E>(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let runtime = runtime()?;
    let permit = Arc::clone(permits).acquire_owned().await;
    // The work holds the permit, since the work continues if the future is dropped.
    let run = move || {
        let _permit = permit;
        work()
    };
    match UntilDropped(runtime.spawn_blocking(run)).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(_) => Err(stopped().into()),
    }
}

/// The handle of work. If the handle is dropped before the work begins, the work does not begin.
struct UntilDropped<T>(JoinHandle<T>);

impl<T> Drop for UntilDropped<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Future for UntilDropped<T> {
    type Output = <JoinHandle<T> as Future>::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}
