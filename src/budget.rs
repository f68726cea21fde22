//! A reader with limits.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::{Bound, Deref};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::{Cost, Entry, EntryPage, Error, KeyBuf, KeyRange, Order, Reader, Result};

/// The number of entries that are read between two readings of the clock. One reading takes about
/// as long as a step of a scan.
const STEPS_PER_READING: u64 = 32;

/// Limits for the reads of one request: a number of reads, a number of bytes, a deadline, and a
/// flag that stops the request. There are no limits by default.
///
/// [`Budgeted`] is a reader with a budget. Every search, walk and check of the patterns takes a
/// reader, so a budget bounds each of them, whatever query a user enters.
///
/// ```
/// use std::time::Duration;
/// use keyloom::{Budget, Budgeted, Error, KeyRange, Memory, Reader, Store, Writer};
/// let store = Memory::new();
/// store.transact(|txn| (0..=99u8).try_for_each(|n| txn.put(&[n], b"")))?;
/// let snapshot = store.snapshot()?;
/// let budget = Budget::new().reads(50).time(Duration::from_secs(10));
/// let reader = Budgeted::new(&snapshot, budget);
/// assert!(reader.get(&[7])?.is_some());
/// let error = reader.count(KeyRange::all()).unwrap_err();
/// assert!(error.is_over_budget());
/// assert!(error.to_string().contains("limit of 50 reads"));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Budget {
    reads: Option<u64>,
    bytes: Option<u64>,
    deadline: Option<(Instant, Duration)>,
    stop: Option<Arc<AtomicBool>>,
}

impl Budget {
    /// A budget without limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// At most this many reads. Each key that is looked up, each range that is opened, and each
    /// entry that is read counts as one read.
    #[must_use]
    pub fn reads(self, most: u64) -> Self {
        Self { reads: Some(most), ..self }
    }

    /// At most this many bytes: the keys and values of entries, and the values of gets.
    #[must_use]
    pub fn bytes(self, most: u64) -> Self {
        Self { bytes: Some(most), ..self }
    }

    /// Refuses reads once this much time has passed since this call. A read that has begun is not
    /// interrupted; on a remote store it may last until the time-out of the store.
    #[must_use]
    pub fn time(self, most: Duration) -> Self {
        // A time beyond the range of the clock is not a limit.
        let deadline = Instant::now().checked_add(most).map(|deadline| (deadline, most));
        Self { deadline, ..self }
    }

    /// Refuses reads once the flag is true. Another thread sets the flag, for example when a client
    /// has closed its connection.
    #[must_use]
    pub fn stop(self, flag: &Arc<AtomicBool>) -> Self {
        Self { stop: Some(Arc::clone(flag)), ..self }
    }
}

/// The limit of a [`Budget`] that a read exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverBudget {
    /// The limit of [`Budget::reads`].
    Reads(u64),
    /// The limit of [`Budget::bytes`].
    Bytes(u64),
    /// The limit of [`Budget::time`].
    Time(Duration),
    /// The flag of [`Budget::stop`] was set.
    Stopped,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reads(most) => write!(f, "limit of {most} reads"),
            Self::Bytes(most) => write!(f, "limit of {most} bytes"),
            Self::Time(most) => write!(f, "limit of {} ms", most.as_millis()),
            Self::Stopped => f.write_str("caller stopped it"),
        }
    }
}

/// A reader that refuses to read more than its [`Budget`], and counts what it reads.
///
/// One reader can serve several queries, which then share the budget. After a refusal each further
/// read is refused, too. A query returns either its complete result or an error, never a part. A
/// query that exceeded its budget can be repeated with a larger budget or for a smaller page.
///
/// ```
/// use keyloom::{Budget, Budgeted, Memory, Reader, Store, Writer};
/// let store = Memory::new();
/// store.transact(|txn| txn.put(b"key", b"value"))?;
/// let snapshot = store.snapshot()?;
/// let counting = Budgeted::new(&snapshot, Budget::new());
/// counting.get(b"key")?;
/// assert_eq!(counting.spent().to_string(), "1 get, 1 key read, 5 bytes read, 1 round trip");
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Debug)]
pub struct Budgeted<'r, R> {
    reader: &'r R,
    spending: Spending,
}

impl<'r, R: Reader> Budgeted<'r, R> {
    /// Reads from `reader` within a budget.
    pub fn new(reader: &'r R, budget: Budget) -> Self {
        let is_timeless = budget.deadline.is_none() && budget.stop.is_none();
        let (spent, reads, refused) = Default::default();
        Self { reader, spending: Spending { budget, is_timeless, spent, reads, refused } }
    }

    /// The number of reads so far, as [`Budget::reads`] counts them.
    pub fn reads(&self) -> u64 {
        self.spending.reads.get()
    }

    /// The cost so far, including reads that were refused in the end. Round trips are counted as on
    /// a remote store: one for each get, batch of gets, range, batch of ranges, and further page of
    /// a range.
    pub fn spent(&self) -> Cost {
        self.spending.spent.get()
    }
}

#[derive(Debug)]
struct Spending {
    budget: Budget,
    /// Whether there is neither a deadline nor a flag.
    is_timeless: bool,
    spent: Cell<Cost>,
    reads: Cell<u64>,
    /// The first refusal, and the key at which it happened.
    refused: RefCell<Option<(OverBudget, KeyBuf)>>,
}

impl Spending {
    fn add(&self, change: impl FnOnce(&mut Cost)) {
        let mut spent = self.spent.get();
        change(&mut spent);
        self.spent.set(spent);
    }

    /// The number of reads that are left.
    fn left(&self) -> u64 {
        self.budget.reads.map_or(u64::MAX, |most| most.saturating_sub(self.reads.get()))
    }

    /// Counts reads at a key against the budget.
    fn reads(&self, key: &[u8], reads: usize, reads_clock: bool) -> Result<()> {
        if let Some((over, key)) = &*self.refused.borrow() {
            return Err(self.error(*over, key));
        }
        let before = self.reads.get();
        self.reads.set(before.saturating_add(reads as u64));
        self.over(before, reads_clock).map_or(Ok(()), |over| Err(self.refuse(over, key)))
    }

    fn over(&self, before: u64, reads_clock: bool) -> Option<OverBudget> {
        let Budget { reads, bytes, deadline, stop } = &self.budget;
        if let Some(most) = reads.filter(|most| self.reads.get() > *most) {
            return Some(OverBudget::Reads(most));
        }
        if let Some(most) = bytes.filter(|most| self.spent.get().bytes_read > *most) {
            return Some(OverBudget::Bytes(most));
        }
        if self.is_timeless {
            return None;
        }
        if stop.as_ref().is_some_and(|stop| stop.load(Relaxed)) {
            return Some(OverBudget::Stopped);
        }
        let reads_clock =
            reads_clock || before / STEPS_PER_READING != self.reads.get() / STEPS_PER_READING;
        let late = deadline.filter(|(deadline, _)| reads_clock && Instant::now() >= *deadline);
        late.map(|(_, most)| OverBudget::Time(most))
    }

    #[cold]
    fn refuse(&self, over: OverBudget, key: &[u8]) -> Error {
        *self.refused.borrow_mut() = Some((over, KeyBuf::from_slice(key)));
        self.error(over, key)
    }

    fn error(&self, limit: OverBudget, key: &[u8]) -> Error {
        let Cost { keys_read, bytes_read, .. } = self.spent.get();
        Error::OverBudget {
            limit,
            keys: keys_read,
            bytes: bytes_read,
            key: crate::backend::shown_key(key),
        }
    }

    fn found(&self, keys: usize, bytes: usize) {
        self.add(|spent| {
            spent.keys_read += keys as u64;
            spent.bytes_read += bytes as u64;
        });
    }

    /// Counts the bytes of values that were looked up against the budget.
    fn values<'v, B: Deref<Target = [u8]> + 'v>(
        &self,
        key: &[u8],
        values: impl Iterator<Item = &'v B>,
    ) -> Result<()> {
        values.for_each(|value| self.found(1, value.len()));
        self.reads(key, 0, false)
    }

    /// Counts the opening of ranges against the budget.
    fn ranges(&self, ranges: &[KeyRange<'_>]) -> Result<()> {
        self.add(|spent| {
            spent.ranges += ranges.len() as u64;
            spent.round_trips += 1;
        });
        let start = ranges.first().and_then(KeyRange::normalized).map(|(start, _)| start);
        let start = match start {
            Some(Bound::Included(key) | Bound::Excluded(key)) => key,
            Some(Bound::Unbounded) | None => &[],
        };
        self.reads(start, ranges.len(), true)
    }

    fn entry<B: Deref<Target = [u8]>>(&self, (key, value): &Entry<B>) -> Result<()> {
        self.found(1, key.len() + value.len());
        self.reads(key, 1, false)
    }

    /// Limits a page to one entry more than the reads that are left, which is enough to refuse the
    /// page.
    fn limit(&self, limit: usize) -> usize {
        limit.min(usize::try_from(self.left().saturating_add(1)).unwrap_or(usize::MAX))
    }
}

impl<R: Reader> Reader for Budgeted<'_, R> {
    type Bytes<'x>
        = R::Bytes<'x>
    where
        Self: 'x;
    type Entries<'x>
        = BudgetedEntries<'x, R::Entries<'x>>
    where
        Self: 'x;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        self.spending.add(|spent| {
            spent.gets += 1;
            spent.round_trips += 1;
        });
        self.spending.reads(key, 1, true)?;
        let value = self.reader.get(key)?;
        self.spending.values(key, value.iter())?;
        Ok(value)
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        self.spending.add(|spent| {
            spent.gets += keys.len() as u64;
            spent.round_trips += 1;
        });
        let first = keys.first().map(AsRef::as_ref).unwrap_or_default();
        self.spending.reads(first, keys.len(), true)?;
        let values = self.reader.get_many(keys)?;
        self.spending.values(first, values.iter().flatten())?;
        Ok(values)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        self.spending.ranges(std::slice::from_ref(&range))?;
        let (spending, page) = (&self.spending, self.reader.prefetched());
        let entries = self.reader.range(range, order)?;
        Ok(BudgetedEntries { entries, spending, page, read: 0, is_over: false })
    }

    fn prefetched(&self) -> usize {
        self.reader.prefetched()
    }

    // Counted when the keys are read, so a prefetch takes no more keys than reads are left.
    fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
        self.spending.reads(keys.first().copied().unwrap_or_default(), 0, true)?;
        let most = usize::try_from(self.spending.left()).unwrap_or(usize::MAX);
        self.reader.prefetch(keys.get(..most).unwrap_or(keys))
    }

    // `count` is not forwarded: the default reads the range, which is bounded entry by entry.

    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.spending.ranges(std::slice::from_ref(&range))?;
        let entry = self.reader.first(range)?;
        entry.iter().try_for_each(|entry| self.spending.entry(entry))?;
        Ok(entry)
    }

    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.spending.ranges(std::slice::from_ref(&range))?;
        let entry = self.reader.last(range)?;
        entry.iter().try_for_each(|entry| self.spending.entry(entry))?;
        Ok(entry)
    }

    fn page(
        &self,
        range: KeyRange<'_>,
        order: Order,
        limit: usize,
    ) -> Result<EntryPage<Self::Bytes<'_>>> {
        self.spending.ranges(std::slice::from_ref(&range))?;
        let page = self.reader.page(range, order, self.spending.limit(limit))?;
        page.entries.iter().try_for_each(|entry| self.spending.entry(entry))?;
        Ok(page)
    }

    fn range_many(
        &self,
        ranges: &[KeyRange<'_>],
        limit: usize,
    ) -> Result<Vec<EntryPage<Self::Bytes<'_>>>> {
        self.spending.ranges(ranges)?;
        let pages = self.reader.range_many(ranges, self.spending.limit(limit))?;
        let mut entries = pages.iter().flat_map(|page| &page.entries);
        entries.try_for_each(|entry| self.spending.entry(entry))?;
        Ok(pages)
    }
}

/// The entries of a range of a [`Budgeted`] reader.
#[derive(Debug)]
pub struct BudgetedEntries<'x, I> {
    entries: I,
    spending: &'x Spending,
    /// How many entries come with one round trip; 0 if there is no server.
    page: usize,
    read: usize,
    /// Set by a failure, which ends the iterator.
    is_over: bool,
}

impl<B, I> Iterator for BudgetedEntries<'_, I>
where
    B: Deref<Target = [u8]>,
    I: Iterator<Item = Result<Entry<B>>>,
{
    type Item = Result<Entry<B>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.entries.next()?;
        if self.page > 0 && self.read > 0 && self.read.is_multiple_of(self.page) {
            self.spending.add(|spent| spent.round_trips += 1);
        }
        self.read += 1;
        let next = next.and_then(|entry| self.spending.entry(&entry).map(|()| entry));
        self.is_over = next.is_err();
        Some(next)
    }
}
