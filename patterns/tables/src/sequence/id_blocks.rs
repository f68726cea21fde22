//! Numbers from blocks, which cost the store next to nothing.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyloom::{KeyBuf, Pack, Result, Store};

use super::Sequence;

/// Hands out the numbers of a [`Sequence`] from blocks, each reserved in a transaction of its own.
///
/// So the counter is touched once per block, and not by the transactions that use the numbers. The
/// price: numbers that were reserved and not used, when the process ends or the transaction fails,
/// are gaps; and two processes hand out from different blocks at the same time, so a smaller number
/// may appear *later* than a larger one. Unique they are.
///
/// The clones of one value share its blocks. Unlike a pattern it is not a mere description: keep
/// one for the life of the process.
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

/// What is left of the blocks of each container.
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
    /// Numbers of `sequence` in blocks of `size`, at least 1.
    pub fn new(sequence: &Sequence<C>, size: u64) -> Self {
        Self { sequence: sequence.clone(), size: size.max(1), reserved: Arc::default() }
    }

    /// The next number of `container`. Call it *before* the transaction that uses the number: where
    /// a block is used up it takes a transaction of its own.
    ///
    /// # Errors
    /// As [`Sequence::next`] and [`Store::transact`]; [`NestedTransaction`] inside of a transaction
    /// of a store with one writer. A commit whose outcome is unknown costs a block at most: call
    /// again.
    ///
    /// [`NestedTransaction`]: keyloom::Error::NestedTransaction
    pub fn next(&self, store: &impl Store, container: &C) -> Result<u64> {
        let key = self.sequence.key(container);
        if let Some(number) = take(&mut self.lock(), &key) {
            return Ok(number);
        }
        // Not under the lock: who waits for the store may hold what another one here is waiting
        // for.
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
