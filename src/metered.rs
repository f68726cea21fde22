//! A store that counts its operations.

use std::fmt;
use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

#[cfg(feature = "tracing")]
use crate::KeyBuf;
use crate::backend::ChangeListener;
use crate::{
    AtomicOp, Entry, EntryPage, Error, KeyRange, Limits, Order, Reader, Result, RetryPolicy, Store,
    Transaction, TransactionState, VersionstampedKey, Writer,
};

/// Wraps a store and counts gets, ranges, keys, bytes and round trips.
///
/// These counts are the same on a noisy machine: a pattern documents the cost of an operation, and
/// a test asserts it.
///
/// ```
/// use keyloom::{Cost, Memory, Metered, Reader, Store, Writer};
/// let store = Metered::new(Memory::new());
/// let (_, cost) = store.measure(|store| store.transact(|txn| txn.put(b"key", b"value")));
/// let put = Cost { keys_written: 1, bytes_written: 8, ..Cost::default() };
/// assert_eq!(cost, Cost { commits: 1, round_trips: 1, ..put });
///
/// let (_, cost) = store.measure(|store| store.snapshot()?.get(b"key").map(drop));
/// let get = Cost { gets: 1, keys_read: 1, bytes_read: 5, ..Cost::default() };
/// assert_eq!(cost, Cost { round_trips: 1, ..get });
/// ```
#[derive(Clone, Debug)]
pub struct Metered<S> {
    store: S,
    meter: Arc<Meter>,
    /// The round trips of the inner store before it was wrapped.
    waits_before: u64,
    #[cfg(feature = "tracing")]
    slow: Option<Duration>,
}

macro_rules! costs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The operations of a [`Metered`] store, in units that do not depend on the machine.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Cost {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Debug, Default)]
        struct Meter {
            $($name: AtomicU64,)*
        }

        impl Meter {
            fn read(&self) -> Cost {
                Cost { $($name: self.$name.load(Relaxed),)* }
            }
        }

        impl Cost {
            /// The counts with their names.
            fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }

        impl Sub for Cost {
            type Output = Self;

            fn sub(self, earlier: Self) -> Self {
                Self { $($name: self.$name - earlier.$name,)* }
            }
        }

        impl fmt::Display for Cost {
            /// The counts that are not zero, as `2 gets, 5 keys read`.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut separator = "";
                for (name, count) in self.named() {
                    if count > 0 {
                        write!(f, "{separator}{count} {}", in_words(count, name))?;
                        separator = ", ";
                    }
                }
                if separator.is_empty() { f.write_str("nothing") } else { Ok(()) }
            }
        }
    };
}

costs! {
    /// Keys read by [`get`](Reader::get) and [`get_many`](Reader::get_many).
    gets,
    /// Ranges opened, including those of [`first`](Reader::first), [`last`](Reader::last),
    /// [`page`](Reader::page), [`range_many`](Reader::range_many) and [`count`](Reader::count).
    ranges,
    /// Keys found by gets, and keys of ranges that were walked or counted.
    keys_read,
    /// Bytes returned: the values of gets, keys and values of ranges.
    bytes_read,
    /// Keys put, deleted or changed by an atomic operation; a deleted range counts as one key.
    keys_written,
    /// Bytes of keys and values written.
    bytes_written,
    /// Transactions committed.
    commits,
    /// Commits that failed because of a conflict. A conflict that a read or a write of the body
    /// reports, as on PostgreSQL, is not counted.
    conflicts,
    /// How often the caller waited for a server: the number that a remote store reports
    /// ([`Store::round_trips`]), including pages of ranges and beginnings of snapshots. For a store
    /// without a server this is a lower bound: one per get, get_many, range, range_many and commit.
    /// Writes are sent with the commit.
    round_trips,
}

/// Returns `keys read` for the name `keys_read`, or `key read` if `count` is 1.
fn in_words(count: u64, name: &str) -> String {
    let words = name.replace('_', " ");
    match words.as_str() {
        _ if count != 1 => words,
        "round trips" => "round trip".into(),
        _ => words.replacen("s ", " ", 1).trim_end_matches('s').to_owned(),
    }
}

fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Relaxed);
}

impl Meter {
    fn range(&self) {
        add(&self.ranges, 1);
        add(&self.round_trips, 1);
    }

    fn found(&self, bytes: usize) {
        add(&self.keys_read, 1);
        add(&self.bytes_read, bytes);
    }

    fn wrote(&self, bytes: usize) {
        add(&self.keys_written, 1);
        add(&self.bytes_written, bytes);
    }
}

impl<S: Store> Metered<S> {
    /// Counts the operations of `store` from now on.
    pub fn new(store: S) -> Self {
        let waits_before = store.round_trips().unwrap_or(0);
        Self {
            store,
            meter: Arc::default(),
            waits_before,
            #[cfg(feature = "tracing")]
            slow: None,
        }
    }

    /// Emits an event `slow scan` for each iterator of [`range`](Reader::range), page and count that
    /// took at least `threshold`, with its keys and bytes. The time of an iterator includes that of
    /// the program between the entries.
    ///
    /// ```
    /// use std::time::Duration;
    /// use keyloom::{Memory, Metered};
    /// let store = Metered::new(Memory::new()).with_slow_scans(Duration::from_millis(100));
    /// # let _ = store;
    /// ```
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn with_slow_scans(self, threshold: Duration) -> Self {
        Self { slow: Some(threshold), ..self }
    }

    /// Sends the [cost](Metered::cost) so far to the recorder of the crate `metrics`, as the
    /// counters `keyloom_gets`, `keyloom_ranges`, `keyloom_keys_read` and so on, each with the
    /// label `store`. Two stores that were wrapped separately need two labels. Call this
    /// periodically, or before the recorder is read. Costs some microseconds.
    ///
    /// ```
    /// use keyloom::{Memory, Metered, Store, Writer};
    /// let store = Metered::new(Memory::new());
    /// store.transact(|txn| txn.put(b"key", b"value"))?;
    /// store.export("orders"); // does nothing without a recorder
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[cfg(feature = "metrics")]
    pub fn export(&self, label: &str) {
        for (name, count) in self.cost().named() {
            let name = format!("keyloom_{name}");
            metrics::counter!(name, "store" => label.to_owned()).absolute(count);
        }
    }

    fn reader<R>(&self, inner: R) -> MeteredReader<'_, R> {
        MeteredReader {
            inner,
            meter: &self.meter,
            #[cfg(feature = "tracing")]
            slow: self.slow,
        }
    }

    /// The cost of this store and all its clones since it was wrapped.
    pub fn cost(&self) -> Cost {
        let modelled = self.meter.read();
        match self.store.round_trips() {
            Some(waits) => Cost { round_trips: waits - self.waits_before, ..modelled },
            None => modelled,
        }
    }

    /// Runs `work` and returns its result and cost. The cost includes concurrent work of other
    /// threads.
    pub fn measure<T>(&self, work: impl FnOnce(&Self) -> T) -> (T, Cost) {
        let before = self.cost();
        let result = work(self);
        (result, self.cost() - before)
    }

    /// The inner store.
    pub fn inner(&self) -> &S {
        &self.store
    }
}

impl<S: Store> Store for Metered<S> {
    type Snapshot<'s> = MeteredReader<'s, S::Snapshot<'s>>;
    type Transaction<'s> = MeteredReader<'s, S::Transaction<'s>>;

    fn snapshot(&self) -> Result<Self::Snapshot<'_>> {
        Ok(self.reader(self.store.snapshot()?))
    }

    fn parallel_snapshots(&self, count: usize) -> Result<Vec<Self::Snapshot<'_>>> {
        let found = self.store.parallel_snapshots(count)?.into_iter();
        Ok(found.map(|inner| self.reader(inner)).collect())
    }

    fn begin(&self) -> Result<Self::Transaction<'_>> {
        Ok(self.reader(self.store.begin()?))
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
        self.store.wait_for_change(key, seen, timeout)
    }

    fn listen(&self, key: &[u8]) -> ChangeListener {
        self.store.listen(key)
    }
}

/// A snapshot or a transaction of a [`Metered`] store.
#[derive(Debug)]
pub struct MeteredReader<'s, R> {
    inner: R,
    meter: &'s Meter,
    #[cfg(feature = "tracing")]
    slow: Option<Duration>,
}

impl<R: Reader> MeteredReader<'_, R> {
    fn entry<'r>(&self, entry: Entry<R::Bytes<'r>>) -> Entry<R::Bytes<'r>>
    where
        R: 'r,
    {
        self.meter.found(entry.0.len() + entry.1.len());
        entry
    }

    fn page_found(&self, page: &EntryPage<R::Bytes<'_>>) {
        for (key, value) in &page.entries {
            self.meter.found(key.len() + value.len());
        }
    }
}

impl<R: Reader> Reader for MeteredReader<'_, R> {
    type Bytes<'r>
        = R::Bytes<'r>
    where
        Self: 'r;
    type Entries<'r>
        = MeteredEntries<'r, R::Entries<'r>>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        add(&self.meter.gets, 1);
        add(&self.meter.round_trips, 1);
        let value = self.inner.get(key)?;
        value.iter().for_each(|value| self.meter.found(value.len()));
        Ok(value)
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        add(&self.meter.gets, keys.len());
        add(&self.meter.round_trips, 1);
        let values = self.inner.get_many(keys)?;
        values.iter().flatten().for_each(|value| self.meter.found(value.len()));
        Ok(values)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        self.meter.range();
        #[cfg(feature = "tracing")]
        let timed = self.slow.map(|slow| Timed::new(slow, &range));
        Ok(MeteredEntries {
            inner: self.inner.range(range, order)?,
            meter: self.meter,
            #[cfg(feature = "tracing")]
            timed,
        })
    }

    fn prefetched(&self) -> usize {
        self.inner.prefetched()
    }

    fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
        self.inner.prefetch(keys)
    }

    // Forwarded, because the inner store may answer these calls without opening a range.

    fn count(&self, range: KeyRange<'_>) -> Result<u64> {
        self.meter.range();
        #[cfg(feature = "tracing")]
        let mut timed = self.slow.map(|slow| Timed::new(slow, &range));
        let count = self.inner.count(range)?;
        #[cfg(feature = "tracing")]
        timed.iter_mut().for_each(|timed| timed.keys = count);
        self.meter.keys_read.fetch_add(count, Relaxed);
        Ok(count)
    }

    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.meter.range();
        Ok(self.inner.first(range)?.map(|entry| self.entry(entry)))
    }

    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.meter.range();
        Ok(self.inner.last(range)?.map(|entry| self.entry(entry)))
    }

    fn page(
        &self,
        range: KeyRange<'_>,
        order: Order,
        limit: usize,
    ) -> Result<EntryPage<Self::Bytes<'_>>> {
        self.meter.range();
        #[cfg(feature = "tracing")]
        let mut timed = self.slow.map(|slow| Timed::new(slow, &range));
        let page = self.inner.page(range, order, limit)?;
        #[cfg(feature = "tracing")]
        timed.iter_mut().for_each(|timed| timed.saw(&page));
        self.page_found(&page);
        Ok(page)
    }

    fn range_many(
        &self,
        ranges: &[KeyRange<'_>],
        limit: usize,
    ) -> Result<Vec<EntryPage<Self::Bytes<'_>>>> {
        add(&self.meter.ranges, ranges.len());
        add(&self.meter.round_trips, 1);
        let pages = self.inner.range_many(ranges, limit)?;
        pages.iter().for_each(|page| self.page_found(page));
        Ok(pages)
    }
}

impl<W: Writer> Writer for MeteredReader<'_, W> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.meter.wrote(key.len() + value.len());
        self.inner.put(key, value)
    }

    fn put_sorted(&mut self, entries: &[(&[u8], &[u8])]) -> Result<()> {
        for (key, value) in entries {
            self.meter.wrote(key.len() + value.len());
        }
        self.inner.put_sorted(entries)
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
        self.meter.wrote(key.len());
        self.inner.delete(key)
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.meter.wrote(0);
        self.inner.delete_range(range)
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        self.meter.wrote(key.len() + operation.bytes());
        self.inner.apply(key, operation)
    }

    fn put_versionstamped(&mut self, key: &VersionstampedKey<'_>, value: &[u8]) -> Result<()> {
        self.meter.wrote(key.bytes() + value.len());
        self.inner.put_versionstamped(key, value)
    }
}

impl<T: Transaction> Transaction for MeteredReader<'_, T> {
    fn commit(self) -> Result<()> {
        // A commit costs a round trip even if it fails.
        add(&self.meter.round_trips, 1);
        let committed = self.inner.commit();
        match &committed {
            Ok(()) => add(&self.meter.commits, 1),
            Err(Error::Conflict { .. }) => add(&self.meter.conflicts, 1),
            Err(_) => {}
        }
        committed
    }

    fn must_restart(&self) -> bool {
        self.inner.must_restart()
    }
}

/// The entries of a range of a [`Metered`] store.
#[derive(Debug)]
pub struct MeteredEntries<'r, I> {
    inner: I,
    meter: &'r Meter,
    #[cfg(feature = "tracing")]
    timed: Option<Timed>,
}

/// A scan that is reported if it takes long.
#[cfg(feature = "tracing")]
#[derive(Debug)]
struct Timed {
    threshold: Duration,
    started: std::time::Instant,
    start: KeyBuf,
    keys: u64,
    bytes: u64,
}

#[cfg(feature = "tracing")]
impl Timed {
    fn new(threshold: Duration, range: &KeyRange<'_>) -> Self {
        use std::ops::Bound::{Excluded, Included};
        let start = match range.normalized() {
            Some((Included(key) | Excluded(key), _)) => KeyBuf::from_slice(key),
            _ => KeyBuf::new(),
        };
        Self { threshold, started: std::time::Instant::now(), start, keys: 0, bytes: 0 }
    }

    fn saw<B: std::ops::Deref<Target = [u8]>>(&mut self, page: &EntryPage<B>) {
        self.keys = page.entries.len() as u64;
        let bytes = |(key, value): &Entry<B>| (key.len() + value.len()) as u64;
        self.bytes = page.entries.iter().map(bytes).sum();
    }
}

#[cfg(feature = "tracing")]
impl Drop for Timed {
    fn drop(&mut self) {
        let elapsed = self.started.elapsed();
        if elapsed >= self.threshold {
            let Self { start, keys, bytes, .. } = self;
            let begins_at = &*crate::backend::shown_key(start);
            let elapsed_ms = elapsed.as_secs_f64() * 1e3;
            tracing::warn!(target: "keyloom", begins_at, keys, bytes, elapsed_ms, "slow scan");
        }
    }
}

impl<B, I> Iterator for MeteredEntries<'_, I>
where
    B: std::ops::Deref<Target = [u8]>,
    I: Iterator<Item = Result<(B, B)>>,
{
    type Item = Result<(B, B)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.inner.next();
        if let Some(Ok((key, value))) = &next {
            self.meter.found(key.len() + value.len());
            #[cfg(feature = "tracing")]
            if let Some(timed) = &mut self.timed {
                timed.keys += 1;
                timed.bytes += (key.len() + value.len()) as u64;
            }
        }
        next
    }
}
