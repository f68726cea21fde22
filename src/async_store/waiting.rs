//! Tasks that wait for a change.

use std::time::{Duration, Instant};

use super::AsyncStore;
use crate::{Reader as _, Result, Store};

impl<S: Store> AsyncStore<S> {
    /// Waits until the value of `key` differs from `seen`, at most for `timeout`. Returns whether
    /// it differs. This is [`Store::wait_for_change`] for tasks: while a task waits, it holds no
    /// thread and no snapshot.
    ///
    /// ```
    /// use std::time::Duration;
    /// use keyloom::{AsyncStore, Memory, Writer};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = AsyncStore::new(Memory::new());
    /// let waiting = tokio::spawn({
    ///     let store = store.clone();
    ///     async move { store.wait_for_change(b"door", None, Duration::from_secs(5)).await }
    /// });
    /// store.transact(|txn| txn.put(b"door", b"open")).await?;
    /// assert!(waiting.await.unwrap()?);
    /// # Ok::<(), keyloom::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The errors of [`read`](AsyncStore::read) and [`Reader::get`](crate::Reader::get).
    ///
    /// # Panics
    /// If the time driver of the tokio runtime is not enabled.
    pub async fn wait_for_change(
        &self,
        key: &[u8],
        seen: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<bool> {
        let (read, seen) = (key.to_vec(), seen.map(<[u8]>::to_vec));
        let differs = self.wait_until(key, timeout, move |snapshot| {
            Ok((snapshot.get(&read)?.as_deref() != seen.as_deref()).then_some(()))
        });
        Ok(differs.await?.is_some())
    }

    /// Runs `body` on new snapshots until it returns `Some`, at most for `timeout`: now, after
    /// commits that may change `key`, and at the polls of a store that
    /// [cannot notify](Store::listen). Between the runs, the task holds no thread and no snapshot.
    ///
    /// ```
    /// use std::time::Duration;
    /// use keyloom::{AsyncStore, KeyRange, Memory, Reader, Writer};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = AsyncStore::new(Memory::new());
    /// let waiting = tokio::spawn({
    ///     let store = store.clone();
    ///     // All writers of jobs also add 1 to this counter.
    ///     let first = |snapshot: &<Memory as keyloom::Store>::Snapshot<'_>| {
    ///         let job = snapshot.first(KeyRange::prefix(b"job:"))?;
    ///         Ok(job.map(|(key, _)| key.to_vec()))
    ///     };
    ///     async move { store.wait_until(b"jobs", Duration::from_secs(5), first).await }
    /// });
    /// store.transact(|txn| {
    ///     txn.put(b"job:7", b"print")?;
    ///     txn.add(b"jobs", 1)
    /// }).await?;
    /// assert_eq!(waiting.await.unwrap()?.as_deref(), Some(&b"job:7"[..]));
    /// # Ok::<(), keyloom::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The errors of [`read`](AsyncStore::read) and of `body`.
    ///
    /// # Panics
    /// If `body` or the store panics, or if the time driver of the tokio runtime is not enabled.
    pub async fn wait_until<T, F>(
        &self,
        key: &[u8],
        timeout: Duration,
        mut body: F,
    ) -> Result<Option<T>>
    where
        T: Send + 'static,
        F: FnMut(&S::Snapshot<'_>) -> Result<Option<T>> + Send + 'static,
    {
        let began = Instant::now();
        let mut listener = None;
        loop {
            let run = move |snapshot: &S::Snapshot<'_>| Ok((body(snapshot)?, body));
            let found;
            (found, body) = self.read(run).await?;
            let left = timeout.saturating_sub(began.elapsed());
            if found.is_some() || left.is_zero() {
                return Ok(found);
            }
            let listener = listener.get_or_insert_with(|| self.shared.store.listen(key));
            let pause = listener.pause().min(left);
            // Read again, whether a commit or the end of the pause ended the wait.
            let _ = tokio::time::timeout(pause, listener.changed()).await;
        }
    }
}
