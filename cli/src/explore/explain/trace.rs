//! A reader that records the reads of a query and limits them.

use std::cell::RefCell;
use std::ops::Bound;

use keyloom::{Entry, EntryPage, Error, KeyRange, Order, Reader, Result};

/// The largest number of reads, which also bounds the ranges without keys. A query of 64 keys
/// begins fewer ranges.
const MOST_READS: usize = 128;

/// One operation of the store.
#[derive(Debug)]
pub enum Read {
    /// A range, with the keys that were read of it.
    Range { start: Bound<Vec<u8>>, end: Bound<Vec<u8>>, order: Order, keys: Vec<Vec<u8>> },
    /// The keys of one `get` or `get_many`, each with whether it exists.
    Gets(Vec<(Vec<u8>, bool)>),
}

impl Read {
    /// The keys that were read of the range; none for gets.
    pub fn scanned(&self) -> &[Vec<u8>] {
        match self {
            Self::Range { keys, .. } => keys,
            Self::Gets(_) => &[],
        }
    }

    /// The keys of a `get` or `get_many`; none for a range.
    pub fn gets(&self) -> &[(Vec<u8>, bool)] {
        match self {
            Self::Range { .. } => &[],
            Self::Gets(keys) => keys,
        }
    }
}

#[derive(Debug)]
struct Trace {
    reads: Vec<Read>,
    left: usize,
    is_spent: bool,
}

impl Trace {
    fn begin(&mut self, read: Read) -> Result<usize> {
        if self.reads.len() == MOST_READS {
            return Err(self.end());
        }
        self.reads.push(read);
        Ok(self.reads.len() - 1)
    }

    fn spend(&mut self, keys: usize) -> Result<()> {
        match self.left.checked_sub(keys) {
            Some(left) => self.left = left,
            None => return Err(self.end()),
        }
        Ok(())
    }

    fn end(&mut self) -> Error {
        self.is_spent = true;
        Error::other("the query reads more keys than the explorer does")
    }

    fn found(&mut self, at: usize, key: &[u8]) -> Result<()> {
        self.spend(1)?;
        if let Some(Read::Range { keys, .. }) = self.reads.get_mut(at) {
            keys.push(key.to_vec());
        }
        Ok(())
    }
}

/// Records the reads of a snapshot as `Metered` counts them. Fails at the first key after the
/// limit.
#[derive(Debug)]
pub struct Traced<R> {
    inner: R,
    trace: RefCell<Trace>,
}

impl<R> Traced<R> {
    /// A reader that reads at most this many keys.
    pub fn new(inner: R, most_keys: usize) -> Self {
        let trace = Trace { reads: Vec::new(), left: most_keys, is_spent: false };
        Self { inner, trace: RefCell::new(trace) }
    }

    /// The inner reader, for a read that a program does not need.
    pub fn untraced(&self) -> &R {
        &self.inner
    }

    /// Whether a read has failed because the query would read more keys than the limit.
    pub fn is_spent(&self) -> bool {
        self.trace.borrow().is_spent
    }

    /// The keys that were read of ranges.
    pub fn scanned(&self) -> Vec<Vec<u8>> {
        let trace = self.trace.borrow();
        trace.reads.iter().flat_map(Read::scanned).cloned().collect()
    }

    /// The reads, and the snapshot.
    pub fn end(self) -> (Vec<Read>, R) {
        (self.trace.into_inner().reads, self.inner)
    }

    fn begin(&self, range: &KeyRange<'_>, order: Order) -> Result<usize> {
        let owned = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        // An empty range is recorded as a range that ends where it begins.
        let empty = (Bound::Included(Vec::new()), Bound::Excluded(Vec::new()));
        let (start, end) = range.normalized().map_or(empty, |(a, b)| (owned(a), owned(b)));
        self.trace.borrow_mut().begin(Read::Range { start, end, order, keys: Vec::new() })
    }
}

impl<R: Reader> Traced<R> {
    fn one<'r>(&self, at: usize, found: Option<Entry<R::Bytes<'r>>>) -> FirstOf<R::Bytes<'r>>
    where
        R: 'r,
    {
        if let Some((key, _)) = &found {
            self.trace.borrow_mut().found(at, key)?;
        }
        Ok(found)
    }
}

type FirstOf<B> = Result<Option<Entry<B>>>;

impl<R: Reader> Reader for Traced<R> {
    type Bytes<'r>
        = R::Bytes<'r>
    where
        Self: 'r;
    type Entries<'r>
        = TracedEntries<'r, R::Entries<'r>>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        Ok(self.get_many(&[key])?.into_iter().next().flatten())
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.trace.borrow_mut().spend(keys.len())?;
        let values = self.inner.get_many(keys)?;
        let found = keys.iter().zip(&values);
        let found = found.map(|(key, value)| (key.as_ref().to_vec(), value.is_some()));
        self.trace.borrow_mut().begin(Read::Gets(found.collect()))?;
        Ok(values)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        let at = self.begin(&range, order)?;
        Ok(TracedEntries { inner: self.inner.range(range, order)?, trace: &self.trace, at })
    }

    fn first(&self, range: KeyRange<'_>) -> FirstOf<Self::Bytes<'_>> {
        let at = self.begin(&range, Order::Ascending)?;
        self.one(at, self.inner.first(range)?)
    }

    fn last(&self, range: KeyRange<'_>) -> FirstOf<Self::Bytes<'_>> {
        let at = self.begin(&range, Order::Descending)?;
        self.one(at, self.inner.last(range)?)
    }

    fn page(
        &self,
        range: KeyRange<'_>,
        order: Order,
        limit: usize,
    ) -> Result<EntryPage<Self::Bytes<'_>>> {
        let at = self.begin(&range, order)?;
        let most = self.trace.borrow().left.saturating_add(1);
        let page = self.inner.page(range, order, limit.min(most))?;
        page.entries.iter().try_for_each(|(key, _)| self.trace.borrow_mut().found(at, key))?;
        Ok(page)
    }

    fn prefetched(&self) -> usize {
        self.inner.prefetched()
    }
}

/// The entries of a range of a [`Traced`] reader.
#[derive(Debug)]
pub struct TracedEntries<'t, I> {
    inner: I,
    trace: &'t RefCell<Trace>,
    at: usize,
}

impl<B, I> Iterator for TracedEntries<'_, I>
where
    B: std::ops::Deref<Target = [u8]>,
    I: Iterator<Item = Result<(B, B)>>,
{
    type Item = Result<(B, B)>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.inner.next()?;
        Some(entry.and_then(|(key, value)| {
            self.trace.borrow_mut().found(self.at, &key)?;
            Ok((key, value))
        }))
    }
}
