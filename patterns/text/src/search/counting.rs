//! A reader that counts its reads.

use std::cell::Cell;
use std::fmt;

use keyloom::{Entry, KeyRange, Order, Page, Reader, Result};

/// What a search reads.
///
/// ```
/// use keyloom_text::SearchExplain;
/// let explain = SearchExplain { lists: 2, ranges: 3, keys_read: 9, ..Default::default() };
/// assert_eq!(
///     explain.to_string(),
///     "2 lists, 0 gets, 3 ranges, 9 keys read, 0 round trips, 0 hits"
/// );
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchExplain {
    /// Posting lists: one per term, and per term that a pattern stands for.
    pub lists: u64,
    /// Keys requested one by one or in batches.
    pub gets: u64,
    /// Ranges begun.
    pub ranges: u64,
    /// Keys read: statistics, terms of the dictionary, blocks, positions and filters.
    pub keys_read: u64,
    /// How often a remote store is waited for: once for each get, batch of gets, range, batch of
    /// ranges, and further page of a range.
    pub round_trips: u64,
    /// Documents found.
    pub hits: u64,
}

impl fmt::Display for SearchExplain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lists, gets, ranges, keys_read, round_trips, hits } = self;
        write!(
            f,
            "{lists} lists, {gets} gets, {ranges} ranges, {keys_read} keys read, {round_trips} round trips, {hits} hits"
        )
    }
}

/// Counts the reads of another reader.
pub(crate) struct Counting<'r, R> {
    reader: &'r R,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    gets: Cell<u64>,
    ranges: Cell<u64>,
    keys: Cell<u64>,
    round_trips: Cell<u64>,
}

fn add(count: &Cell<u64>, many: usize) {
    count.set(count.get() + many as u64);
}

impl<'r, R: Reader> Counting<'r, R> {
    pub(crate) fn new(reader: &'r R) -> Self {
        Self { reader, counts: Counts::default() }
    }

    /// The reads so far.
    pub(crate) fn explain(&self) -> SearchExplain {
        let Counts { gets, ranges, keys, round_trips } = &self.counts;
        SearchExplain {
            gets: gets.get(),
            ranges: ranges.get(),
            keys_read: keys.get(),
            round_trips: round_trips.get(),
            ..SearchExplain::default()
        }
    }
}

impl<R: Reader> Reader for Counting<'_, R> {
    type Bytes<'x>
        = R::Bytes<'x>
    where
        Self: 'x;
    type Entries<'x>
        = CountedEntries<'x, R::Entries<'x>>
    where
        Self: 'x;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        add(&self.counts.gets, 1);
        add(&self.counts.round_trips, 1);
        let value = self.reader.get(key)?;
        add(&self.counts.keys, usize::from(value.is_some()));
        Ok(value)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        add(&self.counts.ranges, 1);
        add(&self.counts.round_trips, 1);
        let (page, counts) = (self.reader.prefetched(), &self.counts);
        Ok(CountedEntries { entries: self.reader.range(range, order)?, counts, page, read: 0 })
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        add(&self.counts.gets, keys.len());
        add(&self.counts.round_trips, 1);
        let values = self.reader.get_many(keys)?;
        add(&self.counts.keys, values.iter().flatten().count());
        Ok(values)
    }

    fn range_many(
        &self,
        ranges: &[KeyRange<'_>],
        limit: usize,
    ) -> Result<Vec<Page<Self::Bytes<'_>>>> {
        add(&self.counts.ranges, ranges.len());
        add(&self.counts.round_trips, 1);
        let pages = self.reader.range_many(ranges, limit)?;
        add(&self.counts.keys, pages.iter().map(|page| page.entries.len()).sum());
        Ok(pages)
    }

    fn prefetched(&self) -> usize {
        self.reader.prefetched()
    }
}

/// The entries of a range, counted.
pub(crate) struct CountedEntries<'x, I> {
    entries: I,
    counts: &'x Counts,
    /// How many entries come with one round trip; 0 if there is no server.
    page: usize,
    read: usize,
}

impl<B, I: Iterator<Item = Result<Entry<B>>>> Iterator for CountedEntries<'_, I> {
    type Item = Result<Entry<B>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.entries.next()?;
        if self.page > 0 && self.read > 0 && self.read.is_multiple_of(self.page) {
            add(&self.counts.round_trips, 1);
        }
        self.read += 1;
        add(&self.counts.keys, 1);
        Some(next)
    }
}
