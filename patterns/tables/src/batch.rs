//! Work in transactions as large as the store allows.

use keyloom::{Result, Store};

/// The number of items per transaction, adjusted at run time: if the store reports a transaction
/// as too large or too slow, it is rolled back and repeated with half as many items.
///
/// Stores have different limits: LMDB accepts any number of writes, etcd 4,096. The same load fits
/// both:
///
/// ```
/// use keyloom::{Limits, Memory, Store, Subspace};
/// use keyloom_tables::{BatchSize, Index, Table, entry};
/// let by_length = Index::new(&Subspace::new("by_length"), |_, word: &String| entry(word.len()));
/// let words = Table::<u32, String>::new(&Subspace::new("words")).with(&by_length);
/// let list: Vec<(u32, String)> = (0..5_000).map(|n| (n, format!("word {n}"))).collect();
///
/// let store = Memory::builder().limits(Limits::etcd()).build();
/// let mut size = BatchSize::new(10_000);
/// size.transact_all(&store, &list, |txn, batch| words.put_many(txn, batch))?;
/// assert_eq!(words.count(&store.snapshot()?, ())?, 5_000);
/// assert_eq!(size.get(), 2_048); // each item makes two writes
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// Reuse the value for the next job of the same kind: it keeps the size that fitted. The size never
/// grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize(usize);

impl BatchSize {
    /// Begins with `items` per transaction, at least one.
    pub fn new(items: usize) -> Self {
        Self(items.max(1))
    }

    /// The current number of items per transaction.
    pub fn get(self) -> usize {
        self.0
    }

    /// Runs `body` in one transaction, as [`Store::transact`] does, and passes it the number of
    /// items that it may process. If that was too much, `body` runs again with half as many.
    ///
    /// For jobs that read their items from the store itself, page by page.
    ///
    /// # Errors
    /// The errors of [`Store::transact`]. An error for which
    /// [`is_batch_too_large`](keyloom::Error::is_batch_too_large) holds is returned only if a single
    /// item caused it.
    pub fn transact<S: Store, T>(
        &mut self,
        store: &S,
        mut body: impl FnMut(&mut S::Transaction<'_>, usize) -> Result<T>,
    ) -> Result<T> {
        loop {
            match store.transact(|txn| body(txn, self.0)) {
                Err(error) if self.0 > 1 && error.is_batch_too_large() => self.0 /= 2,
                outcome => return outcome,
            }
        }
    }

    /// Runs `body` over `items`, some of them in each transaction, and commits each transaction.
    ///
    /// An item is assumed to be at least one write, so a transaction never begins with more items
    /// than the number of writes that the store allows.
    ///
    /// # Errors
    /// The errors of [`transact`](BatchSize::transact). Earlier transactions stay committed; if
    /// `body` is idempotent, as a put is, run all of it again.
    pub fn transact_all<S: Store, I>(
        &mut self,
        store: &S,
        items: &[I],
        mut body: impl FnMut(&mut S::Transaction<'_>, &[I]) -> Result<()>,
    ) -> Result<()> {
        let most = store.limits().max_transaction_operations.unwrap_or(usize::MAX);
        *self = Self::new(self.0.min(most));
        let mut rest = items;
        while !rest.is_empty() {
            rest = self.transact(store, |txn, size| {
                let (batch, rest) = rest.split_at(size.min(rest.len()));
                body(txn, batch)?;
                Ok(rest)
            })?;
        }
        Ok(())
    }
}
