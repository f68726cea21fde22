//! Queries for the events in an area at some times.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use keyloom::{Error, Order, Reader, Result, Subspace};
use keyloom_kit::{Continuation, Explain, Page, Reading, RecordKey, Scan, scan, within};
use keyloom_tables::index::Found;

use super::super::area::Area;
use super::super::cell::OnSphere;
use super::super::code_walk::{CodeWalk, Only, first_ranges, refuse_others};
use super::super::cover::Cover;
use super::super::interval::Interval;
use super::super::located::Located;
use super::super::page::page;
use super::super::position::LatLng;
use super::super::query::{at_most, count};
use super::{Bins, InBin, LAST_CELL};

/// A query for the events in an area at some times; see
/// [`SpaceTimeIndex::within`](super::SpaceTimeIndex::within).
pub struct SpaceTimeQuery<'q, K, A> {
    space: Subspace,
    bins: Bins,
    area: A,
    /// The first and the last time.
    times: Option<(i64, i64)>,
    /// The number of ranges; `None` for as many as pay off.
    ranges: Option<usize>,
    only: Option<Only<'q, K>>,
}

impl<K, A: Clone> Clone for SpaceTimeQuery<'_, K, A> {
    fn clone(&self) -> Self {
        Self { space: self.space.clone(), area: self.area.clone(), ..*self }
    }
}

impl<K, A: fmt::Debug> fmt::Debug for SpaceTimeQuery<'_, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpaceTimeQuery")
            .field("space", &self.space)
            .field("area", &self.area)
            .field("times", &self.times)
            .field("ranges", &self.ranges)
            .finish_non_exhaustive()
    }
}

/// The first and the last of some times; `None` if there are none.
fn inclusive(times: &impl RangeBounds<i64>) -> Option<(i64, i64)> {
    let first = match times.start_bound() {
        Bound::Included(first) => Some(*first),
        Bound::Excluded(before) => before.checked_add(1),
        Bound::Unbounded => Some(i64::MIN),
    };
    let last = match times.end_bound() {
        Bound::Included(last) => Some(*last),
        Bound::Excluded(behind) => behind.checked_sub(1),
        Bound::Unbounded => Some(i64::MAX),
    };
    first.zip(last).filter(|(first, last)| first <= last)
}

impl<'q, K, A: Area> SpaceTimeQuery<'q, K, A> {
    pub(super) fn new(space: &Subspace, bins: Bins, area: A, times: impl RangeBounds<i64>) -> Self {
        let times = inclusive(&times);
        Self { space: space.clone(), bins, area, times, ranges: None, only: None }
    }

    /// The same query in at most this many ranges per bin.
    ///
    /// With more ranges, fewer keys outside the area are read, but more ranges are begun. By
    /// default a query begins each bin with 4, or with 1 on a remote store, and uses more when they
    /// pay off; see [`AreaQuery::in_ranges`](super::super::AreaQuery::in_ranges).
    ///
    /// The limit is per bin, since each bin contains the whole area.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for 0.
    pub fn in_ranges(self, most: usize) -> Result<Self> {
        Ok(Self { ranges: Some(at_most(most)?), ..self })
    }

    /// The same query, limited to records with keys that `only` accepts.
    #[must_use]
    pub fn only(self, only: &'q dyn Fn(&K) -> bool) -> Self {
        Self { only: Some(only), ..self }
    }

    fn region(&self, bin: i64) -> InBin<&A> {
        let all = Interval::all(LAST_CELL);
        let times = self.times.map_or(all, |(first, last)| self.bins.interval(bin, first, last));
        InBin { area: OnSphere(&self.area), times }
    }

    /// The first and the last bin of the times.
    fn bins(&self) -> Option<(i64, i64)> {
        self.times.map(|(first, last)| (self.bins.bin(first), self.bins.bin(last)))
    }

    /// A name of this query, independent of the number of its ranges: its times and the bounding
    /// box of its area.
    fn name(&self) -> Subspace {
        let area = self.area.bounds();
        let edges = (area.south(), area.west(), area.north(), area.east());
        let times = self.times.unwrap_or((1, 0));
        Subspace::new(&(times, edges))
    }
}

impl<'q, K: RecordKey, A: Area> SpaceTimeQuery<'q, K, A> {
    /// The events, sorted by bin and then by code.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the index has entries of another width; any error of the
    /// store, here or from the iterator. The iterator also returns [`Error::At`] for a malformed
    /// entry.
    pub fn points<'r, R: Reader>(
        self,
        reader: &'r R,
    ) -> Result<
        impl Scan<Item = Result<Located<R::Bytes<'r>, K, (LatLng, i64)>>> + use<'r, 'q, R, K, A>,
    > {
        self.walk(reader, None, None)
    }

    /// The events in the order of their times: the soonest first, or the newest first with
    /// [`Order::Descending`]. Events of one time are in the order of their record keys, which is
    /// also reversed with [`Order::Descending`].
    ///
    /// [`points`](SpaceTimeQuery::points) and [`page`](SpaceTimeQuery::page) have no such order
    /// within a bin. This iterator reads one bin at a time, and keeps the events of that bin in
    /// memory. So the first events cost the events of their bin, and 1 key to find it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use keyloom::{Memory, Order, Result, Store, Subspace};
    /// use keyloom_spatial::{Circle, LatLng, SpaceTimeIndex};
    /// use keyloom_tables::Table;
    /// let hour = Duration::from_secs(3_600);
    /// let oslo = LatLng::new(59.91, 10.75)?;
    /// let index = SpaceTimeIndex::new(&Subspace::new("by_event"), 24 * hour, move |_, at: &i64| {
    ///     Ok(Some((oslo, *at)))
    /// })?;
    /// let events = Table::<u32, i64>::new(&Subspace::new("events")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| events.put_many(txn, [(1, 9_000), (2, 7_000), (3, 90_000_000)]))?;
    /// let snapshot = store.snapshot()?;
    /// let near = index.within(Circle::new(oslo, 2_000.0)?, ..);
    /// let keys = |order| -> Result<Vec<u32>> {
    ///     near.clone().by_time(&snapshot, order)?.take(2).map(|event| event?.record_key()).collect()
    /// };
    /// assert_eq!(keys(Order::Ascending)?, [2, 1]);
    /// assert_eq!(keys(Order::Descending)?, [3, 1]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`points`](SpaceTimeQuery::points).
    pub fn by_time<'r, R: Reader>(
        self,
        reader: &'r R,
        order: Order,
    ) -> Result<
        impl Scan<Item = Result<Located<R::Bytes<'r>, K, (LatLng, i64)>>> + use<'r, 'q, R, K, A>,
    >
    where
        A: Clone,
    {
        // An empty range of times: it compares only the widths of the bins.
        let nothing = Self { times: None, ..self.clone() }.walk(reader, None, None)?;
        let (reads, left) = (nothing.explain(), self.bins());
        Ok(scan(ByTime { query: self, reader, order, left, bin: Vec::new(), reads }, ByTime::step))
    }

    fn walk<'r, R: Reader>(
        self,
        reader: &'r R,
        from: Option<(i64, u64)>,
        after: Option<&[u8]>,
    ) -> Result<
        impl Scan<Item = Result<Located<R::Bytes<'r>, K, (LatLng, i64)>>> + use<'r, 'q, R, K, A>,
    > {
        let (space, bins) = (self.space.clone(), self.bins);
        let mut events = self.events(reader, from, after);
        refuse_others(&mut events.walk, &space, bins.made_with(), |stored| {
            Error::InvalidArgument {
                what: "the width of the time bins",
                value: format!("{} ms, where {stored} ms are stored", bins.width_ms),
                why: "entries of another width would be missed: declare that one, or repair the index",
            }
        })?;
        Ok(scan(events, Events::step))
    }

    fn events<'r, R: Reader>(
        self,
        reader: &'r R,
        from: Option<(i64, u64)>,
        after: Option<&[u8]>,
    ) -> Events<'r, 'q, R, K, A> {
        let resumed = from.map(|(bin, _)| bin);
        let bins = self.bins().map(|(first, last)| (resumed.unwrap_or(first), last));
        let mut walk = CodeWalk::new(reader, &self.space, Cover::none()).after(after);
        if self.ranges.is_none() {
            walk = walk.that_refines(reader);
        }
        let ranges = self.ranges.unwrap_or_else(|| first_ranges(reader));
        Events { walk, bins, bin: 0, from, ranges, whole: None, query: self }
    }

    /// The number of events. Reads all of them.
    ///
    /// # Errors
    /// Errors of [`points`](SpaceTimeQuery::points).
    pub fn count(self, reader: &impl Reader) -> Result<u64> {
        count(self.points(reader)?)
    }

    /// A page of at most `limit` events, in the order of [`points`](SpaceTimeQuery::points),
    /// beginning after the continuation `after`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a continuation of another query; errors of
    /// [`points`](SpaceTimeQuery::points).
    pub fn page<'r, R: Reader>(
        self,
        reader: &'r R,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<Located<R::Bytes<'r>, K, (LatLng, i64)>>> {
        let (query, space) = (self.name(), self.space.clone());
        let walk = |last: Option<((u64, i64, u64), &[u8])>| {
            let (from, key) = last.unzip();
            self.walk(reader, from.map(|(_, bin, code)| (bin, code)), key)
        };
        page(&query, (&space, 3), limit, after, walk)
    }
}

/// A walk in the order of times: the events of one bin, sorted, and then those of the next.
struct ByTime<'r, 'q, R: Reader, K, A> {
    query: SpaceTimeQuery<'q, K, A>,
    reader: &'r R,
    order: Order,
    /// The first and the last bin still to visit.
    left: Option<(i64, i64)>,
    /// The rest of the current bin, the last event first.
    bin: Vec<Located<R::Bytes<'r>, K, (LatLng, i64)>>,
    reads: Explain,
}

impl<R: Reader, K, A> Reading for ByTime<'_, '_, R, K, A> {
    fn reads(&self) -> Explain {
        self.reads
    }
}

impl<'r, R: Reader, K: RecordKey, A: Area + Clone> ByTime<'r, '_, R, K, A> {
    fn step(&mut self) -> Result<Option<Located<R::Bytes<'r>, K, (LatLng, i64)>>> {
        loop {
            if let Some(event) = self.bin.pop() {
                return Ok(Some(event));
            }
            let Some(bin) = self.next_occupied()? else { return Ok(None) };
            self.read(bin)?;
        }
    }

    /// The next bin that has events, inside or outside the area.
    fn next_occupied(&mut self) -> Result<Option<i64>> {
        let Some((first, last)) = self.left.take() else { return Ok(None) };
        let (space, width) = (&self.query.space, self.query.bins.made_with());
        let rest = within((width, first)..=(width, last)).key_range(space);
        let entry = match self.order {
            Order::Ascending => self.reader.first(rest)?,
            Order::Descending => self.reader.last(rest)?,
        };
        self.reads.ranges += 1;
        let Some((key, value)) = entry else { return Ok(None) };
        self.reads.keys_scanned += 1;
        let found: Found<_, K> = Found::new(space, (&key[..], &value[..]))?;
        let (_, bin, _): (u64, i64, u64) = found.parts_as()?;
        self.left = match self.order {
            Order::Ascending => bin.checked_add(1).filter(|next| *next <= last).zip(Some(last)),
            Order::Descending => {
                Some(first).zip(bin.checked_sub(1).filter(|before| *before >= first))
            }
        };
        Ok(Some(bin))
    }

    /// Reads the events of a bin.
    fn read(&mut self, bin: i64) -> Result<()> {
        let times = self.query.times.map(|(first, last)| {
            let (begin, end) = self.query.bins.times(bin);
            (first.max(begin), last.min(end))
        });
        let query = SpaceTimeQuery { times, ..self.query.clone() };
        let mut events = scan(query.events(self.reader, None, None), Events::step);
        self.bin = events.by_ref().collect::<Result<_>>()?;
        let Explain { planned, ranges, keys_scanned, keys_returned } = events.explain();
        self.reads.planned += planned;
        self.reads.ranges += ranges;
        self.reads.keys_scanned += keys_scanned;
        self.reads.keys_returned += keys_returned;
        let place = |event: &Located<_, K, (LatLng, i64)>| {
            (event.time(), event.entry().packed_record_key().to_vec())
        };
        self.bin.sort_by_cached_key(place);
        if self.order == Order::Ascending {
            // `step` takes the last event first.
            self.bin.reverse();
        }
        Ok(())
    }
}

/// A walk through the events in an area at some times, bin by bin.
struct Events<'r, 'q, R: Reader, K, A> {
    query: SpaceTimeQuery<'q, K, A>,
    walk: CodeWalk<'r, R>,
    /// The current bin.
    bin: i64,
    /// The first and the last bin still to visit.
    bins: Option<(i64, i64)>,
    /// The bin and the code to resume at, if the walk resumes.
    from: Option<(i64, u64)>,
    /// The initial number of ranges per bin.
    ranges: usize,
    /// The cover of a bin whose times are all in the query. All such bins share this cover.
    whole: Option<Cover>,
}

impl<R: Reader, K, A> Reading for Events<'_, '_, R, K, A> {
    fn reads(&self) -> Explain {
        self.walk.reads()
    }
}

impl<'r, R: Reader, K: RecordKey, A: Area> Events<'r, '_, R, K, A> {
    fn step(&mut self) -> Result<Option<Located<R::Bytes<'r>, K, (LatLng, i64)>>> {
        loop {
            let SpaceTimeQuery { area, times, only, .. } = &self.query;
            let is_at = |time| times.is_some_and(|(first, last)| first <= time && time <= last);
            let has = |(position, time): &(LatLng, i64)| is_at(*time) && area.contains(position);
            let finer = |ranges| Cover::of(&self.query.region(self.bin), ranges);
            if let Some((_, event)) = self.walk.next_in_finer(has, *only, finer)? {
                return Ok(Some(event));
            }
            let Some(bin) = self.next_bin()? else { return Ok(None) };
            let mut cover = self.cover(bin);
            if let Some((_, code)) = self.from.filter(|(begun, _)| *begun == bin) {
                cover.skip_to(code);
            }
            self.bin = bin;
            self.walk.begin(self.query.space.child(&(self.query.bins.made_with(), bin)), cover);
        }
    }

    /// The next bin. If several bins are left, skips empty bins.
    fn next_bin(&mut self) -> Result<Option<i64>> {
        let Some((next, last)) = self.bins.take() else { return Ok(None) };
        let bin = if next == last { Some(next) } else { self.next_occupied(next, last)? };
        self.bins = bin.filter(|bin| *bin < last).map(|bin| (bin + 1, last));
        Ok(bin)
    }

    fn next_occupied(&mut self, next: i64, last: i64) -> Result<Option<i64>> {
        let (space, width) = (&self.query.space, self.query.bins.made_with());
        let rest = within((width, next)..=(width, last)).key_range(space);
        let Some(entry) = self.walk.first(rest)? else { return Ok(None) };
        let found: Found<_, K> = Found::new(space, entry)?;
        let (_, bin, _): (u64, i64, u64) = found.parts_as()?;
        Ok(Some(bin))
    }

    fn cover(&mut self, bin: i64) -> Cover {
        let region = self.query.region(bin);
        let ranges = self.ranges;
        if region.times != Interval::all(LAST_CELL) {
            return Cover::of(&region, ranges);
        }
        self.whole.get_or_insert_with(|| Cover::of(&region, ranges)).clone()
    }
}
