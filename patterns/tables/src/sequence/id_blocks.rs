//! Ids from reserved blocks (hi/lo), with almost no load on the store.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyloom::{KeyBuf, Pack, Result, Store};

use super::Sequence;

/// Assigns the numbers of a [`Sequence`] from blocks (hi/lo). Each block is reserved in a separate
/// transaction.
///
/// So the counter is written once per block, and never by the transactions that use the numbers. If
/// the process ends or a transaction fails, unused numbers leave gaps. Two processes use different
/// blocks at the same time, so a smaller number may be committed *after* a larger one. The numbers
/// are unique.
///
/// Unlike other patterns, an `IdBlocks` has state in memory, so keep one for the lifetime of the
/// process. Clones share the reserved blocks.
///
/// ```
/// use keyloom::{Memory, Metered, Store, Subspace};
/// use keyloom_tables::sequence::{IdBlocks, Sequence};
/// let store = Metered::new(Memory::new());
/// let orders = IdBlocks::new(&Sequence::<()>::new(&Subspace::new("orders")), 100);
/// let (numbers, cost) = store.measure(|store| {
///     (0..150).map(|_| orders.next(store, &())).collect::<Result<Vec<_>, _>>()
/// });
/// assert_eq!(numbers?, (1..=150).collect::<Vec<_>>());
/// assert_eq!((cost.gets, cost.keys_written, cost.commits), (2, 2, 2));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct IdBlocks<C> {
    sequence: Sequence<C>,
    size: u64,
    reserved: Arc<Mutex<Reserved>>,
}

/// The unused numbers of the blocks of each container.
type Reserved = HashMap<KeyBuf, VecDeque<Range<u64>>>;

impl<C> Clone for IdBlocks<C> {
    fn clone(&self) -> Self {
        Self {
            sequence: self.sequence.clone(),
            size: self.size,
            reserved: Arc::clone(&self.reserved),
        }
    }
}

impl<C> fmt::Debug for IdBlocks<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdBlocks").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<C: Pack> IdBlocks<C> {
    /// Assigns numbers of `sequence` in blocks of `size`, which is at least 1.
    pub fn new(sequence: &Sequence<C>, size: u64) -> Self {
        Self { sequence: sequence.clone(), size: size.max(1), reserved: Arc::default() }
    }

    /// The next number of `container`. Call it *before* the transaction that uses the number,
    /// because it runs its own transaction if the block is used up.
    ///
    /// # Errors
    /// The errors of [`Sequence::next`] and [`Store::transact`]; [`NestedTransaction`] if called
    /// inside a transaction, on a store with one writer. If the outcome of a commit is unknown,
    /// call `next` again; at most one block is lost.
    ///
    /// [`NestedTransaction`]: keyloom::Error::NestedTransaction
    pub fn next(&self, store: &impl Store, container: &C) -> Result<u64> {
        let key = self.sequence.key(container);
        if let Some(number) = take(&mut self.lock(), &key) {
            return Ok(number);
        }
        // The lock is not held here. While this thread waits for the store, the transaction that
        // blocks the store may also need a number.
        let mut block = store.transact(|txn| self.sequence.reserve(txn, container, self.size))?;
        let number = block.start;
        block.start += 1;
        self.lock().entry(key).or_default().push_back(block);
        Ok(number)
    }

    // Nothing that can panic runs while the lock is held.
    fn lock(&self) -> MutexGuard<'_, Reserved> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take(reserved: &mut Reserved, key: &KeyBuf) -> Option<u64> {
    let blocks = reserved.get_mut(key)?;
    while let Some(block) = blocks.front_mut() {
        if let Some(number) = block.next() {
            return Some(number);
        }
        blocks.pop_front();
    }
    None
}
