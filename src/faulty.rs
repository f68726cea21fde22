//! A store that fails on demand.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backend::ChangeListener;
use crate::{
    AtomicOp, EntryPage, Error, KeyRange, Limits, Order, Reader, Result, RetryPolicy, Store,
    Transaction, TransactionState, VersionstampedKey, Writer,
};

/// Wraps a store and makes its n-th operation fail.
///
/// The beginning of a snapshot or transaction is an operation. Each get, write and commit is an
/// operation, and so is each range and each step of a range, including the step that finds the end.
/// Each entry of a [`put_sorted`](Writer::put_sorted) is an operation too; the entries before the
/// failing one are put. A [`get_many`](Reader::get_many) or [`range_many`](Reader::range_many) is
/// one operation, and so is a [`prefetch`](Reader::prefetch). So a test can make each operation
/// fail in turn and check the store afterwards:
///
/// ```
/// use keyloom::{Fault, Faulty, Memory, Reader, Store, Writer};
/// let store = Faulty::new(Memory::new());
/// let work = || {
///     store.transact(|txn| {
///         txn.put(b"debit", b"-5")?;
///         txn.put(b"credit", b"+5")
///     })
/// };
/// for n in 0.. {
///     store.fail_at(n, Fault::Error);
///     let failed = work().is_err();
///     store.clear_fault();
///     let left = store.snapshot()?.count(keyloom::KeyRange::all())?;
///     assert_eq!(left, if failed { 0 } else { 2 }, "nothing is half done");
///     if !failed {
///         break;
///     }
/// }
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Faulty<S> {
    store: S,
    plan: Arc<Plan>,
}

/// How an operation of a [`Faulty`] store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operation does nothing and returns an error. The transaction continues, and commits if
    /// the program swallows the error, unless the operation belonged to a [write of a
    /// pattern](Writer#a-failed-write).
    Error,
    /// The operation reports a conflict, after which the transaction must run again.
    Conflict,
    /// A commit succeeds, but its outcome is reported as unknown. Other operations fail as with
    /// [`Fault::Error`].
    UnknownButCommitted,
    /// A commit is lost, and its outcome is reported as unknown. Other operations fail as with
    /// [`Fault::Error`].
    UnknownAndLost,
}

/// The fault to inject. All snapshots and transactions of a store share it.
#[derive(Debug, Default)]
struct Plan(Mutex<Schedule>);

#[derive(Debug, Default)]
struct Schedule {
    operations: u64,
    fault: Option<(u64, Fault)>,
    /// The number of operations after which a snapshot or a transaction is too old.
    longest: Option<u64>,
}

impl Plan {
    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation. Returns `Some` if it must fail.
    fn next(&self) -> Option<(u64, Fault)> {
        let mut schedule = self.lock();
        let n = schedule.operations;
        schedule.operations += 1;
        schedule.fault.take_if(|(at, _)| *at == n)
    }

    fn check(&self) -> Result<()> {
        self.next().map_or(Ok(()), |(n, fault)| Err(error(n, fault)))
    }

    fn set(&self, fault: Option<(u64, Fault)>) {
        let mut schedule = self.lock();
        (schedule.operations, schedule.fault) = (0, fault);
    }
}

/// The source of an injected fault.
#[derive(Debug, thiserror::Error)]
#[error("operation {0} was made to fail")]
struct Injected(u64);

impl<S> Faulty<S> {
    /// Wraps `store`. No operation fails at first.
    pub fn new(store: S) -> Self {
        Self { store, plan: Arc::default() }
    }

    /// Makes operation `n` fail once. The count starts at 0 with this call.
    pub fn fail_at(&self, n: u64, fault: Fault) {
        self.plan.set(Some((n, fault)));
    }

    /// Removes the fault, and restarts the count of operations at 0.
    pub fn clear_fault(&self) {
        self.plan.set(None);
    }

    /// Makes each snapshot and each transaction too old after this many of its own operations.
    /// Later operations, and the commit, return [`Error::TooOld`], like those on FoundationDB after
    /// five seconds. The reported ages count 1 ms per operation.
    ///
    /// ```
    /// use keyloom::{Error, Faulty, Memory, Reader, Store};
    /// let store = Faulty::new(Memory::new());
    /// store.expire_after(2);
    /// let snapshot = store.snapshot()?;
    /// assert_eq!((snapshot.get(b"a")?, snapshot.get(b"a")?), (None, None));
    /// assert!(matches!(snapshot.get(b"a"), Err(Error::TooOld { .. })));
    /// assert_eq!(store.snapshot()?.get(b"a")?, None);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn expire_after(&self, operations: u64) {
        self.plan.lock().longest = Some(operations);
    }

    /// The number of operations since [`fail_at`](Faulty::fail_at) or
    /// [`clear_fault`](Faulty::clear_fault).
    pub fn operations(&self) -> u64 {
        self.plan.lock().operations
    }

    /// The inner store.
    pub fn inner(&self) -> &S {
        &self.store
    }
}

fn error(n: u64, fault: Fault) -> Error {
    match fault {
        Fault::Conflict => Error::Conflict { what: format!("operation {n}, on demand").into() },
        _ => Error::Backend(Injected(n).into()),
    }
}

impl<S: Store> Store for Faulty<S> {
    type Snapshot<'s> = FaultyReader<'s, S::Snapshot<'s>>;
    type Transaction<'s> = FaultyReader<'s, S::Transaction<'s>>;

    fn snapshot(&self) -> Result<Self::Snapshot<'_>> {
        self.plan.check()?;
        Ok(FaultyReader::new(self.store.snapshot()?, &self.plan))
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<Self::Snapshot<'_>>> {
        self.plan.check()?;
        let found = self.store.parallel_snapshots(count)?.into_iter();
        Ok(found.map(|inner| FaultyReader::new(inner, &self.plan)).collect())
    }

    fn begin(&self) -> Result<Self::Transaction<'_>> {
        self.plan.check()?;
        Ok(FaultyReader::new(self.store.begin()?, &self.plan))
    }

    fn limits(&self) -> Limits {
        self.store.limits()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.store.retry_policy()
    }

    fn round_trips(&self) -> Option<u64> {
        self.store.round_trips()
    }

    fn wait_for_change(&self, key: &[u8], seen: Option<&[u8]>, timeout: Duration) -> Result<bool> {
        self.plan.check()?;
        self.store.wait_for_change(key, seen, timeout)
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        self.store.listen(key)
    }
}

/// A snapshot or a transaction of a [`Faulty`] store.
#[derive(Debug)]
pub struct FaultyReader<'s, R> {
    inner: R,
    state: State<'s>,
}

#[derive(Debug)]
struct State<'s> {
    plan: &'s Plan,
    /// Whether a conflict was reported. All later operations then report it too, as in real stores.
    conflict: Cell<bool>,
    operations: Cell<u64>,
}

impl State<'_> {
    fn check(&self) -> Result<()> {
        if self.conflict.get() {
            return Err(Error::Conflict { what: "an earlier operation".into() });
        }
        if let Some((n, fault)) = self.plan.next() {
            self.conflict.set(fault == Fault::Conflict);
            return Err(error(n, fault));
        }
        self.grow_older()
    }

    /// Counts an operation as 1 ms.
    fn grow_older(&self) -> Result<()> {
        let age_ms = self.operations.get() + 1;
        self.operations.set(age_ms);
        match self.plan.lock().longest {
            Some(limit_ms) if age_ms > limit_ms => Err(Error::TooOld { age_ms, limit_ms }),
            _ => Ok(()),
        }
    }
}

impl<'s, R> FaultyReader<'s, R> {
    fn new(inner: R, plan: &'s Plan) -> Self {
        let (conflict, operations) = Default::default();
        Self { inner, state: State { plan, conflict, operations } }
    }

    fn check(&self) -> Result<()> {
        self.state.check()
    }
}

impl<R: Reader> Reader for FaultyReader<'_, R> {
    type Bytes<'r>
        = R::Bytes<'r>
    where
        Self: 'r;
    type Entries<'r>
        = FaultyEntries<'r, R::Entries<'r>>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        self.check()?;
        self.inner.get(key)
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        self.check()?;
        self.inner.get_many(keys)
    }

    fn range_many(
        &self,
        ranges: &[KeyRange<'_>],
        limit: usize,
    ) -> Result<Vec<EntryPage<Self::Bytes<'_>>>> {
        self.check()?;
        self.inner.range_many(ranges, limit)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        self.check()?;
        let inner = self.inner.range(range, order)?;
        Ok(FaultyEntries { inner: Some(inner), state: &self.state })
    }

    fn prefetched(&self) -> usize {
        self.inner.prefetched()
    }

    fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
        self.check()?;
        self.inner.prefetch(keys)
    }
}

impl<W: Writer> Writer for FaultyReader<'_, W> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check()?;
        self.inner.put(key, value)
    }

    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        let mut outcome = Ok(());
        let sound = entries.iter().take_while(|_| {
            outcome = self.check();
            outcome.is_ok()
        });
        let sound = sound.count();
        self.inner.put_sorted(entries.get(..sound).unwrap_or_default())?;
        outcome
    }

    fn state(&mut self) -> &mut TransactionState {
        self.inner.state()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn check_reads(&self, is_checked: bool) -> bool {
        self.inner.check_reads(is_checked)
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.check()?;
        self.inner.delete(key)
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.check()?;
        self.inner.delete_range(range)
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        self.check()?;
        self.inner.apply(key, operation)
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        self.check()?;
        self.inner.put_versionstamped(key, value)
    }
}

impl<T: Transaction> Transaction for FaultyReader<'_, T> {
    fn commit(self) -> Result<()> {
        if self.state.conflict.get() {
            return Err(Error::Conflict { what: "an earlier operation".into() });
        }
        let Some((n, fault)) = self.state.plan.next() else {
            self.state.grow_older()?;
            return self.inner.commit();
        };
        match fault {
            Fault::Error | Fault::Conflict => Err(error(n, fault)),
            Fault::UnknownAndLost => Err(Error::CommitUnknown { source: Injected(n).into() }),
            Fault::UnknownButCommitted => {
                self.inner.commit()?;
                Err(Error::CommitUnknown { source: Injected(n).into() })
            }
        }
    }

    fn must_restart(&self) -> bool {
        self.state.conflict.get() || self.inner.must_restart()
    }
}

/// The entries of a range of a [`Faulty`] store.
#[derive(Debug)]
pub struct FaultyEntries<'r, I> {
    /// `None` after a failure: an iterator that failed stays ended.
    inner: Option<I>,
    state: &'r State<'r>,
}

impl<E, I: Iterator<Item = Result<E>>> Iterator for FaultyEntries<'_, I> {
    type Item = Result<E>;

    fn next(&mut self) -> Option<Self::Item> {
        let inner = self.inner.as_mut()?;
        if let Err(error) = self.state.check() {
            self.inner = None;
            return Some(Err(error));
        }
        inner.next()
    }
}
