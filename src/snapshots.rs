//! Reads that last longer than a snapshot may.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::vec;

use crate::{Entry, EntryPage, KeyBuf, KeyRange, Order, Reader, Result, Store};

/// The time for which a snapshot is read by default: long enough for many pages, and short enough
/// that LMDB soon reuses pages and PostgreSQL soon removes old rows.
const LONGEST: Duration = Duration::from_secs(1);

/// The number of entries that an iterator fetches first, because most iterators need few. Each
/// later fetch is larger.
const FIRST_PAGE: usize = 64;
const LARGEST_PAGE: usize = 4_096;
/// How many new snapshots are tried for one read. If the system has stopped the thread or the
/// server for longer than a snapshot lasts, the next try succeeds. Otherwise the read itself takes
/// too long.
const TRIES: u32 = 3;
// Limits the bytes of a page, so that even a page of large values is read long before the snapshot
// ends.
const PAGE_BYTES: usize = 1 << 20;

/// A reader that reads from one snapshot after another, for reads that last longer than a snapshot
/// may: a check or an export of a large table.
///
/// On FoundationDB a snapshot ends after five seconds. On LMDB an old snapshot makes the file grow,
/// and on PostgreSQL it keeps old rows. This reader takes a new snapshot when the last one is one
/// second old, or has reached half of the [limit](crate::Limits::max_age_ms) of the store, or when
/// the store reports that the snapshot is too old. An iterator continues after its last key, so
/// that no entry is skipped or repeated. All returned bytes are copies.
///
/// Reads from two snapshots may be inconsistent with each other. A new snapshot is taken only to
/// read a page, a range, a count, or a first or last entry. So gets after a page use the snapshot
/// of the page, unless one of these reads comes in between or the snapshot reaches the store's
/// limit. A check with this reader may report changes that a writer makes in the meantime, so
/// `check_in_steps` of the patterns checks a second time.
///
/// ```
/// use keyloom::{Faulty, KeyRange, Memory, Reader, Snapshots, Store, Writer};
/// let store = Faulty::new(Memory::new());
/// store.transact(|txn| (0..=99u8).try_for_each(|n| txn.put(&[n], b"")))?;
/// // Each snapshot ends after 30 reads.
/// store.expire_after(30);
/// assert!(store.snapshot()?.count(KeyRange::all()).is_err());
/// let snapshots = Snapshots::new(&store);
/// assert_eq!(snapshots.count(KeyRange::all())?, 100);
/// assert!(snapshots.taken() > 3);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// A [`Budgeted`](crate::Budgeted) reader around this reader counts the reads and can be stopped.
pub struct Snapshots<'s, S: Store> {
    store: &'s S,
    longest: Duration,
    current: RefCell<Option<Current<S::Snapshot<'s>>>>,
    taken: Cell<u64>,
}

struct Current<R> {
    snapshot: Rc<R>,
    taken_at: Instant,
}

impl<S: Store> fmt::Debug for Snapshots<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshots")
            .field("longest", &self.longest)
            .field("taken", &self.taken.get())
            .finish_non_exhaustive()
    }
}

impl<'s, S: Store> Snapshots<'s, S> {
    /// Reads from snapshots of `store`. The first read takes the first snapshot.
    pub fn new(store: &'s S) -> Self {
        let limit = store.limits().max_age_ms.map(|limit| Duration::from_millis(limit) / 2);
        Self::with_longest(store, limit.unwrap_or(LONGEST).min(LONGEST))
    }

    /// Reads from one snapshot for as long as the store permits. For work that should see one state
    /// of the store if possible, such as a repair.
    ///
    /// ```
    /// use keyloom::{Limits, Memory, Reader, Snapshots, Store};
    /// let limits = Limits::default().with_max_age_ms(Some(20));
    /// let store = Memory::builder().limits(limits).build();
    /// store.transact(|txn| keyloom::Writer::put(txn, b"a", b"1"))?;
    /// let reader = Snapshots::lasting(&store);
    /// reader.get(b"a")?;
    /// std::thread::sleep(std::time::Duration::from_millis(30));
    /// reader.get(b"a")?; // the first snapshot is too old
    /// assert_eq!(reader.taken(), 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn lasting(store: &'s S) -> Self {
        Self::with_longest(store, Duration::MAX)
    }

    /// Reads from each snapshot for at most `longest`.
    pub fn with_longest(store: &'s S, longest: Duration) -> Self {
        Self { store, longest, current: RefCell::default(), taken: Cell::default() }
    }

    /// The number of snapshots that were taken.
    pub fn taken(&self) -> u64 {
        self.taken.get()
    }

    /// Returns the current snapshot if it is not older than `longest`, otherwise a new snapshot;
    /// and whether the snapshot is new.
    fn current(&self, longest: Duration) -> Result<(Rc<S::Snapshot<'s>>, bool)> {
        let mut current = self.current.borrow_mut();
        if let Some(Current { snapshot, taken_at }) = &*current
            && taken_at.elapsed() <= longest
        {
            return Ok((Rc::clone(snapshot), false));
        }
        // The old snapshot is released first, because a store may allow only few snapshots at once.
        *current = None;
        let snapshot = Rc::new(self.store.snapshot()?);
        self.taken.set(self.taken.get() + 1);
        *current = Some(Current { snapshot: Rc::clone(&snapshot), taken_at: Instant::now() });
        Ok((snapshot, true))
    }

    /// Reads from a snapshot that is not older than `longest`, and again from a new snapshot if the
    /// store reports that this one is too old.
    fn read<T>(
        &self,
        longest: Duration,
        read: impl Fn(&S::Snapshot<'s>) -> Result<T>,
    ) -> Result<T> {
        let mut tries = 0;
        loop {
            let (snapshot, is_new) = self.current(longest)?;
            tries += u32::from(is_new);
            match read(&snapshot) {
                Err(error) if tries < TRIES && error.is_outdated() => {
                    drop(snapshot);
                    *self.current.borrow_mut() = None;
                }
                outcome => return outcome,
            }
        }
    }

    /// Reads at least one entry of `range` if there is one, at most `limit` entries, and at most
    /// about a megabyte. Returns fewer entries if the snapshot becomes too old meanwhile.
    fn some(&self, range: &KeyRange<'_>, order: Order, limit: usize) -> Result<EntryPage<Vec<u8>>> {
        self.read(self.longest, |snapshot| {
            let (mut entries, mut bytes, mut is_cut) = (Vec::new(), 0, false);
            for entry in snapshot.range(range.clone(), order)? {
                if entries.len() >= limit || bytes >= PAGE_BYTES {
                    is_cut = true;
                    break;
                }
                match entry {
                    Ok((key, value)) => {
                        bytes += key.len() + value.len();
                        entries.push((key.to_vec(), value.to_vec()));
                    }
                    Err(error) if !entries.is_empty() && error.is_outdated() => {
                        is_cut = true;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            let last = entries.last().filter(|_| is_cut).map(|(key, _)| KeyBuf::from_slice(key));
            Ok(EntryPage { entries, last })
        })
    }
}

fn copied(entry: Entry<impl Deref<Target = [u8]>>) -> Entry<Vec<u8>> {
    (entry.0.to_vec(), entry.1.to_vec())
}

impl<'s, S: Store> Reader for Snapshots<'s, S> {
    type Bytes<'r>
        = Vec<u8>
    where
        Self: 'r;
    type Entries<'r>
        = SnapshotsEntries<'r, 's, S>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.read(Duration::MAX, |snapshot| Ok(snapshot.get(key)?.map(|value| value.to_vec())))
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let together = self.read(Duration::MAX, |snapshot| {
            let values = snapshot.get_many(keys)?.into_iter();
            Ok(values.map(|value| value.map(|value| value.to_vec())).collect())
        });
        match together {
            // The keys are too many for one snapshot, so each key is read on its own.
            Err(error) if error.is_outdated() => {
                keys.iter().map(|key| self.get(key.as_ref())).collect()
            }
            together => together,
        }
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        let (rest, page) = (Some(range.into_owned()), Vec::new().into_iter());
        let mut entries = SnapshotsEntries { reader: self, rest, order, page, size: FIRST_PAGE };
        // Fetches the first page, so that this call returns the errors of the range.
        entries.fetch()?;
        Ok(entries)
    }

    fn count(&self, range: KeyRange<'_>) -> Result<u64> {
        match self.read(self.longest, |snapshot| snapshot.count(range.clone())) {
            Err(error) if error.is_outdated() => {
                let mut entries = self.range(range, Order::Ascending)?;
                entries.try_fold(0, |count, entry| entry.map(|_| count + 1))
            }
            count => count,
        }
    }

    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>> {
        self.read(self.longest, |snapshot| Ok(snapshot.first(range.clone())?.map(copied)))
    }

    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Vec<u8>>>> {
        self.read(self.longest, |snapshot| Ok(snapshot.last(range.clone())?.map(copied)))
    }

    fn page(&self, range: KeyRange<'_>, order: Order, limit: usize) -> Result<EntryPage<Vec<u8>>> {
        self.some(&range, order, limit.max(1))
    }

    fn range_many(&self, ranges: &[KeyRange<'_>], limit: usize) -> Result<Vec<EntryPage<Vec<u8>>>> {
        let together = self.read(self.longest, |snapshot| {
            let pages = snapshot.range_many(ranges, limit)?.into_iter();
            let owned = pages.map(|EntryPage { entries, last }| EntryPage {
                entries: entries.into_iter().map(copied).collect(),
                last,
            });
            Ok(owned.collect())
        });
        match together {
            // The ranges are too many for one snapshot, so each range is read on its own.
            Err(error) if error.is_outdated() => {
                let page = |range: &KeyRange<'_>| self.some(range, Order::Ascending, limit.max(1));
                ranges.iter().map(page).collect()
            }
            together => together,
        }
    }

    fn prefetched(&self) -> usize {
        self.read(Duration::MAX, |snapshot| Ok(snapshot.prefetched())).unwrap_or(0)
    }

    fn prefetch(&self, keys: &[&[u8]]) -> Result<()> {
        self.read(Duration::MAX, |snapshot| snapshot.prefetch(keys))
    }
}

/// The entries of a range of [`Snapshots`].
pub struct SnapshotsEntries<'r, 's, S: Store> {
    reader: &'r Snapshots<'s, S>,
    /// The range after `page`; `None` at the end and after an error.
    rest: Option<KeyRange<'static>>,
    order: Order,
    page: vec::IntoIter<Entry<Vec<u8>>>,
    /// The number of entries of the next page.
    size: usize,
}

impl<S: Store> fmt::Debug for SnapshotsEntries<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotsEntries").field("rest", &self.rest).finish_non_exhaustive()
    }
}

impl<S: Store> SnapshotsEntries<'_, '_, S> {
    /// Fetches the next page.
    fn fetch(&mut self) -> Result<()> {
        let Some(range) = self.rest.take() else { return Ok(()) };
        let EntryPage { entries, last } = self.reader.some(&range, self.order, self.size)?;
        self.size = (self.size * 8).min(LARGEST_PAGE);
        self.rest = last.map(|last| range.resume(self.order, &last).into_owned());
        self.page = entries.into_iter();
        Ok(())
    }
}

impl<S: Store> Iterator for SnapshotsEntries<'_, '_, S> {
    type Item = Result<Entry<Vec<u8>>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.as_slice().is_empty()
            && let Err(error) = self.fetch()
        {
            return Some(Err(error));
        }
        self.page.next().map(Ok)
    }
}
