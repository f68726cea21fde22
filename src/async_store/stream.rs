//! Pages as a stream.

use std::sync::Arc;

use futures_util::stream::{self, Stream, TryStreamExt as _};

use super::{AsyncStore, on_a_thread};
use crate::{Error, KeyRange, Order, Reader as _, Result, Store};

/// The next step of a stream: to read the page with this continuation (`None` for the first page),
/// or to end.
enum Next<C> {
    Page(Option<C>),
    End,
}

impl<S: Store> AsyncStore<S> {
    /// The items of all pages, as a stream.
    ///
    /// `page` reads one page. It receives `None` for the first page, and then the continuation that
    /// it returned with the previous page. The stream ends after a page without a continuation, and
    /// after an error.
    ///
    /// Each page is read on a new snapshot, when the consumer has taken all items of the previous
    /// page. So a slow consumer holds no thread and no snapshot, and only one page in memory. No
    /// item is skipped or repeated, but items of later pages may be newer. To see all items as of
    /// one moment, read them in one [`read`](AsyncStore::read).
    ///
    /// ```
    /// use futures_util::TryStreamExt;
    /// use keyloom::{AsyncStore, KeyRange, Memory, Order, Reader, Writer};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = AsyncStore::new(Memory::new());
    /// store.transact(|txn| (0..100_u8).try_for_each(|n| txn.put(&[n], b""))).await?;
    /// let firsts = store.stream(|snapshot, after: Option<keyloom::KeyBuf>| {
    ///     let all = KeyRange::all();
    ///     let rest = match &after {
    ///         Some(key) => all.resume(Order::Ascending, key),
    ///         None => all,
    ///     };
    ///     let page = snapshot.page(rest, Order::Ascending, 10)?;
    ///     Ok((page.entries.iter().map(|(key, _)| key[0]).collect(), page.last))
    /// });
    /// let all: Vec<u8> = firsts.try_collect().await?;
    /// assert_eq!(all, (0..100).collect::<Vec<_>>());
    /// # Ok::<(), keyloom::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Each item may be an error of [`read`](AsyncStore::read), after which the stream ends.
    pub fn stream<T, C, F>(&self, page: F) -> impl Stream<Item = Result<T>> + Send + use<S, T, C, F>
    where
        T: Send + 'static,
        C: Send + 'static,
        F: FnMut(&S::Snapshot<'_>, Option<C>) -> Result<(Vec<T>, Option<C>)> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let pages = stream::try_unfold((Next::Page(None), page), move |(next, mut page)| {
            let shared = Arc::clone(&shared);
            async move {
                let Next::Page(after) = next else { return Ok(None) };
                let readers = Arc::clone(&shared.readers);
                let read = move || {
                    let (items, after) = page(&shared.store.snapshot()?, after)?;
                    let next = after.map_or(Next::End, |after| Next::Page(Some(after)));
                    Ok::<_, Error>((items, (next, page)))
                };
                on_a_thread(&readers, read).await.map(Some)
            }
        });
        pages.map_ok(|items| stream::iter(items.into_iter().map(Ok))).try_flatten()
    }

    /// The entries of a range in order, as a [`stream`](AsyncStore::stream) with up to `page`
    /// entries in memory.
    ///
    /// ```
    /// use futures_util::TryStreamExt;
    /// use keyloom::{AsyncStore, KeyRange, Memory, Order, Writer};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let store = AsyncStore::new(Memory::new());
    /// store.transact(|txn| (0..100_u8).try_for_each(|n| txn.put(&[n], b""))).await?;
    /// let entries = store.entries(KeyRange::prefix(&[7]).into_owned(), Order::Ascending, 10);
    /// let entries: Vec<(Vec<u8>, Vec<u8>)> = entries.try_collect().await?;
    /// assert_eq!(entries, [(vec![7], vec![])]);
    /// # Ok::<(), keyloom::Error>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Each item may be an error of [`read`](AsyncStore::read), after which the stream ends.
    pub fn entries(
        &self,
        range: KeyRange<'static>,
        order: Order,
        page: usize,
    ) -> impl Stream<Item = Result<(Vec<u8>, Vec<u8>)>> + Send + use<S> {
        self.stream(move |snapshot, after: Option<KeyRange<'static>>| {
            let rest = after.unwrap_or_else(|| range.clone());
            let read = snapshot.page(rest.clone(), order, page)?;
            let entries =
                read.entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            Ok((entries, read.last.map(|last| rest.resume(order, &last).into_owned())))
        })
    }
}
