//! Work in transactions as large as the store allows.

use keyloom::{Result, Store};

/// The number of items per transaction, adjusted at run time: if the store reports a transaction
/// as too large or too slow, it is rolled back and repeated with half as many items.
///
/// A transaction that loses against concurrent writers twice runs with half as many items, too,
/// then with a quarter, and so on: the shorter it takes, the more likely it commits between two of
/// them. This size doubles with each transaction that commits at once.
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
/// assert_eq!(words.count(&store.snapshot()?, ..)?, 5_000);
/// assert_eq!(size.get(), 2_048); // each item makes two writes
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// Reuse the value for the next job of the same kind: it keeps the size that fitted. A size that
/// the store reported as too large is not tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize {
    /// What the store accepts.
    most: usize,
    /// What commits beside other writers.
    now: usize,
}

/// How often a transaction runs with the same number of items.
// One conflict may be chance, and the repeat often commits. More runs of the same size lose more
// work against steady writers; fewer make batches small for no reason.
const RUNS: u32 = 2;

impl BatchSize {
    /// Begins with `items` per transaction, at least one.
    pub fn new(items: usize) -> Self {
        let most = items.max(1);
        Self { most, now: most }
    }

    /// The number of items per transaction that the store accepts, as far as is known.
    pub fn get(self) -> usize {
        self.most
    }

    /// Sets the number of items of the next transaction.
    pub fn set(&mut self, items: usize) {
        self.now = items.clamp(1, self.most);
    }

    /// Runs `body` in one transaction, as [`Store::transact`] does, and passes it the number of
    /// items that it may process. If that was too much, or if the transaction has conflicted twice,
    /// `body` runs again with half as many.
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
            let (mut runs, mut items) = (0_u32, self.now);
            let outcome = store.transact(|txn| {
                let halvings = (runs + 1).saturating_sub(RUNS);
                items = self.now.checked_shr(halvings).unwrap_or(0).max(1);
                runs += 1;
                body(txn, items)
            });
            match outcome {
                Err(error) if items > 1 && error.is_batch_too_large() => {
                    self.most = items / 2;
                    self.now = self.most;
                }
                outcome => {
                    let next = if runs <= 1 { items.saturating_mul(2) } else { items };
                    self.now = next.min(self.most);
                    return outcome;
                }
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
        self.most = self.most.min(most).max(1);
        self.now = self.now.min(self.most);
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use keyloom::{Memory, Reader, Store, Writer};

    use super::BatchSize;

    /// A writer commits during each transaction of more than 8 items. Without smaller batches, it
    /// would be given up.
    #[test]
    fn a_batch_that_conflicts_shrinks_and_grows_again() {
        let store = Memory::builder().optimistic(true).build();
        let mut size = BatchSize::new(1_000);
        let mut transact = |beside_writers: bool| {
            let mut sizes = Vec::new();
            size.transact(&store, |txn, items| {
                sizes.push(items);
                txn.get(b"hot")?;
                if beside_writers && items > 8 {
                    store.transact(|other| other.put(b"hot", &items.to_le_bytes()))?;
                }
                txn.put(b"done", b"")
            })
            .unwrap();
            sizes
        };
        assert_eq!(transact(true), [1_000, 1_000, 500, 250, 125, 62, 31, 15, 7]);
        assert_eq!(transact(true), [7]);
        assert_eq!(transact(true), [14, 14, 7], "it tries more after a success");
        let alone: Vec<usize> = (0..9).flat_map(|_| transact(false)).collect();
        assert_eq!(alone, [7, 14, 28, 56, 112, 224, 448, 896, 1_000]);
        assert_eq!(size.get(), 1_000);
    }

    /// The control: one size in all runs loses each time.
    #[test]
    fn a_batch_of_one_size_is_given_up() {
        let store = Memory::builder().optimistic(true).build();
        let outcome = store.transact(|txn| {
            txn.get(b"hot")?;
            store.transact(|other| other.put(b"hot", b"x"))?;
            txn.put(b"done", b"")
        });
        assert!(matches!(outcome, Err(keyloom::Error::RetriesExhausted { .. })));
    }
}
