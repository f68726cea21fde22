//! Work in transactions as large as a store takes.

use keyloom::{Result, Store};

/// How many items go into one transaction, found out while working: a transaction that the store
/// finds too large, or too slow, is taken back and done again with half as many.
///
/// Stores differ in what they take: LMDB any number of writes, etcd 4,096 of them. The same load
/// fits each:
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
/// assert_eq!(size.get(), 2_048); // of two writes each
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// Keep the value for the next piece of work of the same kind: it knows what fits. It never grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize(usize);

impl BatchSize {
    /// Begins with `items` in a transaction, at least one.
    pub fn new(items: usize) -> Self {
        Self(items.max(1))
    }

    /// How many items a transaction takes, as far as is known.
    pub fn get(self) -> usize {
        self.0
    }

    /// Runs `body` in one transaction, as [`Store::transact`] does, and tells it how many items it
    /// may take. Where that was too much, `body` runs again with half as many.
    ///
    /// For work that finds its items in the store itself, page by page.
    ///
    /// # Errors
    /// As [`Store::transact`]; what [is too much at once](keyloom::Error::is_batch_too_large) when
    /// already one item is.
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

    /// Runs `body` over `items`, some of them in each transaction, and commits as it goes.
    ///
    /// An item is taken to be one write at least, so no transaction begins with more of them than
    /// the store takes writes.
    ///
    /// # Errors
    /// As [`transact`](BatchSize::transact). The transactions before stay; when `body` changes
    /// nothing that is done already, as a put does, run all of it again.
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
