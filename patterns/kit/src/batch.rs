//! Adapts the number of items per transaction to the limits of the store.

use keyloom::{Result, Store};

/// The number of items per transaction, adjusted at run time. If the store reports a transaction as
/// too large or too slow, the transaction is rolled back and repeated with half as many items.
///
/// A transaction that conflicts with concurrent writers twice also runs again with half as many
/// items, then with a quarter, and so on. A shorter transaction is more likely to commit between
/// two concurrent commits. The reduced number doubles with each transaction that commits at the
/// first attempt, up to the number that the store accepts.
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
/// Reuse the `BatchSize` for the next job of the same kind, since it keeps the size that the store
/// accepted. A size that the store reported as too large is not tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize {
    /// The number of items that the store accepts.
    most: usize,
    /// The number of items of the next transaction; smaller than `most` after conflicts.
    now: usize,
}

/// The number of attempts before the first halving after conflicts.
// One conflict may be chance, and the second attempt often commits. More attempts of the same size
// waste more work if other writers commit steadily. Fewer make batches small for no reason.
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

    /// Runs `body` in one transaction, as [`Store::transact`] does. The second argument of `body`
    /// is the number of items that it may process. If the transaction is too large, or has
    /// conflicted twice, `body` runs again with half as many items.
    ///
    /// Use it for jobs that read their items from the store, page by page.
    ///
    /// # Errors
    /// The errors of [`Store::transact`]. An error for which
    /// [`is_batch_too_large`](keyloom::Error::is_batch_too_large) returns `true` is returned only
    /// if a single item caused it.
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
                    let is_first = runs <= 1 && outcome.is_ok();
                    let next = if is_first { items.saturating_mul(2) } else { items };
                    self.now = next.min(self.most);
                    return outcome;
                }
            }
        }
    }

    /// Runs `body` over all `items`, in one transaction per batch.
    ///
    /// An item is assumed to take at least one write, so the number of items per transaction never
    /// exceeds the number of writes that the store allows.
    ///
    /// # Errors
    /// The errors of [`transact`](BatchSize::transact). Earlier transactions stay committed. If
    /// `body` is idempotent, as a put is, call `transact_all` again with all items.
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

    /// Another writer commits during each transaction of more than 8 items, so larger batches never
    /// commit.
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

    /// The negative control: with the same size in all runs, every run conflicts.
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
