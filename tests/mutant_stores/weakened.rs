//! A wrapper that weakens the isolation of any store.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyloom::{
    Error, KeyRange, Limits, Order, Reader, Result, RetryPolicy, Store, Transaction,
    TransactionState, Writer, check_key,
};

use crate::Map;
use crate::reading::{Pair, entries, part, value};
use crate::transaction::Write;

/// Any store, with transactions that are less isolated than its own.
///
/// A transaction reads from a snapshot taken at its beginning, and buffers its writes. At commit, a
/// transaction of the store validates the reads, except those that the [`Weakness`] leaves out, and
/// applies the writes. So transactions run concurrently even if the store has one writer at a time.
///
/// ```
/// use keyloom::{Error, Memory, Reader, Store, Transaction, Writer};
/// use keyloom_mutant_stores::{Weakened, Weakness};
/// let count = |weakness| {
///     let store = Weakened::new(Memory::new(), weakness);
///     let (mut one, mut other) = (store.begin()?, store.begin()?);
///     one.add(b"n", 1)?;
///     other.add(b"n", 1)?;
///     one.commit()?;
///     let other = other.commit();
///     assert_eq!(other.is_err(), weakness != Weakness::LostUpdates);
///     store.snapshot()?.counter(b"n")
/// };
/// assert_eq!(count(Weakness::LostUpdates)?, 1, "and both have committed");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Weakened<S> {
    store: S,
    weakness: Weakness,
    /// Commits that were acknowledged but not applied yet, with [`Weakness::StaleSnapshots`].
    late: Arc<Mutex<Vec<Write>>>,
}

/// The validation that a [`Weakened`] store skips at commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// No validation is skipped: the positive control, which is serializable.
    None,
    /// No validation: lost updates.
    LostUpdates,
    /// Only written keys are validated: snapshot isolation, which allows write skew.
    WriteSkew,
    /// Reads of single keys are validated, but range reads are not: phantoms.
    Phantoms,
    /// All reads are validated, but a commit is acknowledged before snapshots show it. So
    /// transactions are serializable, in an order that does not agree with the clock.
    StaleSnapshots,
}

impl Weakness {
    /// All of them; the control comes first.
    pub const ALL: [Self; 5] =
        [Self::None, Self::LostUpdates, Self::WriteSkew, Self::Phantoms, Self::StaleSnapshots];
}

impl<S: Store> Weakened<S> {
    /// Weakens a store.
    pub fn new(store: S, weakness: Weakness) -> Self {
        Self { store, weakness, late: Arc::default() }
    }

    /// Applies the delayed commits. No other transaction commits while the guard is held.
    fn catch_up(&self) -> Result<MutexGuard<'_, Vec<Write>>> {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if !late.is_empty() {
            let mut txn = self.store.begin()?;
            late.iter().try_for_each(|write| write.apply(&mut txn))?;
            txn.commit()?;
            late.clear();
        }
        Ok(late)
    }
}

impl<S: Store> Store for Weakened<S> {
    type Snapshot<'s> = S::Snapshot<'s>;
    type Transaction<'s> = WeakenedTransaction<'s, S>;

    fn snapshot(&self) -> Result<S::Snapshot<'_>> {
        self.store.snapshot()
    }

    fn begin(&self) -> Result<WeakenedTransaction<'_, S>> {
        let late = self.catch_up()?;
        let snapshot = self.store.snapshot()?;
        drop(late);
        Ok(WeakenedTransaction {
            weakened: self,
            snapshot,
            writes: Vec::new(),
            keys: RefCell::default(),
            ranges: RefCell::default(),
            state: TransactionState::default(),
        })
    }

    fn limits(&self) -> Limits {
        self.store.limits()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.store.retry_policy()
    }
}

/// A transaction of a [`Weakened`] store.
pub struct WeakenedTransaction<'s, S: Store> {
    weakened: &'s Weakened<S>,
    snapshot: S::Snapshot<'s>,
    writes: Vec<Write>,
    /// The keys and ranges that the transaction has read.
    keys: RefCell<BTreeSet<Vec<u8>>>,
    ranges: RefCell<Vec<KeyRange<'static>>>,
    state: TransactionState,
}

impl<S: Store> WeakenedTransaction<'_, S> {
    /// The ranges and single keys that must be unchanged at commit.
    fn compared(&self) -> Vec<KeyRange<'static>> {
        let keys = self.keys.borrow();
        let keys = keys.iter().map(|key| KeyRange::single(key).into_owned());
        match self.weakened.weakness {
            Weakness::None | Weakness::StaleSnapshots => {
                keys.chain(self.ranges.borrow().iter().cloned()).collect()
            }
            Weakness::LostUpdates => Vec::new(),
            Weakness::WriteSkew => self.writes.iter().map(Write::range).collect(),
            Weakness::Phantoms => keys.collect(),
        }
    }
}

impl<S: Store> Reader for WeakenedTransaction<'_, S> {
    type Bytes<'r>
        = Vec<u8>
    where
        Self: 'r;
    type Entries<'r>
        = std::vec::IntoIter<Result<Pair>>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        check_key(key)?;
        match self.writes.iter().rev().find(|write| write.touches(key)) {
            Some(Write::Put(_, value)) => Ok(Some(value.clone())),
            Some(_) => Ok(None),
            None => {
                self.keys.borrow_mut().insert(key.to_vec());
                value(&self.snapshot, key)
            }
        }
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        self.ranges.borrow_mut().push(range.clone().into_owned());
        let mut map: Map = entries(&self.snapshot, &range)?.into_iter().collect();
        self.writes.iter().for_each(|write| write.apply_to_map(&mut map));
        let mut entries = part(&map, &range);
        if order == Order::Descending {
            entries.reverse();
        }
        Ok(entries.into_iter().map(Ok).collect::<Vec<_>>().into_iter())
    }
}

impl<S: Store> Writer for WeakenedTransaction<'_, S> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        self.writes.push(Write::Put(key.to_vec(), value.to_vec()));
        Ok(())
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }

    fn limits(&self) -> Limits {
        self.weakened.limits()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.writes.push(Write::Delete(key.to_vec()));
        Ok(())
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.writes.push(Write::DeleteRange(range.into_owned()));
        Ok(())
    }
}

impl<S: Store> Transaction for WeakenedTransaction<'_, S> {
    fn commit(self) -> Result<()> {
        self.state.check()?;
        if self.writes.is_empty() {
            // A transaction without writes has read one snapshot, so it needs no validation.
            return Ok(());
        }
        let mut late = self.weakened.catch_up()?;
        let mut txn = self.weakened.store.begin()?;
        for range in self.compared() {
            if entries(&self.snapshot, &range)? != entries(&txn, &range)? {
                return Err(Error::Conflict { what: "what is compared".into() });
            }
        }
        if self.weakened.weakness == Weakness::StaleSnapshots {
            *late = self.writes;
            return Ok(());
        }
        drop(late);
        self.writes.iter().try_for_each(|write| write.apply(&mut txn))?;
        txn.commit()
    }
}
