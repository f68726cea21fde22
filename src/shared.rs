//! A store behind a shared pointer.

use std::sync::Arc;
use std::time::Duration;

use crate::backend::ChangeListener;
use crate::{Error, Limits, Result, RetryPolicy, Store};

/// A store in an [`Arc`]. Stores themselves are cheap to clone; this implementation is for programs
/// and frameworks that share their state in an `Arc`.
///
/// ```
/// use std::sync::Arc;
/// use keyloom::{Memory, Reader, Store, Writer};
/// fn greet(store: &impl Store) -> keyloom::Result<()> {
///     store.transact(|txn| txn.put(b"greeting", b"hello"))
/// }
/// let store = Arc::new(Memory::new());
/// greet(&store)?;
/// assert!(store.snapshot()?.get(b"greeting")?.is_some());
/// # Ok::<(), keyloom::Error>(())
/// ```
impl<S: Store> Store for Arc<S> {
    type Snapshot<'s> = S::Snapshot<'s>;
    type Transaction<'s> = S::Transaction<'s>;

    fn snapshot(&self) -> Result<Self::Snapshot<'_>> {
        (**self).snapshot()
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<Self::Snapshot<'_>>> {
        (**self).parallel_snapshots(count)
    }

    fn begin(&self) -> Result<Self::Transaction<'_>> {
        (**self).begin()
    }

    fn limits(&self) -> Limits {
        (**self).limits()
    }

    fn retry_policy(&self) -> RetryPolicy {
        (**self).retry_policy()
    }

    fn round_trips(&self) -> Option<u64> {
        (**self).round_trips()
    }

    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool> {
        (**self).wait_for_change(key, seen, timeout)
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        (**self).listen(key)
    }

    fn transact<T>(&self, body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T>) -> Result<T> {
        (**self).transact(body)
    }

    fn try_transact<T, E: From<Error>>(
        &self,
        body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        (**self).try_transact(body)
    }

    fn transact_batched<T: Send>(
        &self,
        body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        (**self).transact_batched(body)
    }

    fn try_transact_batched<T: Send, E: From<Error> + Send>(
        &self,
        body: impl FnMut(&mut Self::Transaction<'_>) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        (**self).try_transact_batched(body)
    }
}
