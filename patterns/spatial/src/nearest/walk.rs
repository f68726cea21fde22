//! The search: a walk through points in the order of their distance.

use keyloom::{Entry, KeyBuf, KeyRange, Order, Reader, Result, Subspace};
use keyloom_kit::{Explain, Reading, RecordKey, within};
use keyloom_tables::index::Found;

use super::super::code_walk::{Only, is_taken};
use super::super::located::{Located, code_of};
use super::super::position::{Centre, Haversine, LatLng};
use super::super::sides::{farthest, nearest};
use super::part::{Crowd, Part, Stretch, Typical};
use super::queue::{Next, Queue};
use super::{Cell, NearestPlace, Places, Rank};

/// The number of entries that one read takes from a run before the rest of the run is divided. Runs
/// are divided until they should have about this many entries. On a remote store, a read of a few
/// runs may return more.
// Reading 16 entries takes about as long as beginning a range (see `STEPS_PER_SEEK`). With fewer
// entries, ranges cost more than entries; with more, points are read that are too far away.
const ENTRIES_PER_READ: usize = 16;
/// On a remote store, a read of a run returns up to this many times [`ENTRIES_PER_READ`]. If few
/// runs are read together, the limit is higher: a page divided by the number of runs, where fewer
/// runs than [`RUNS_PER_PAGE`] count as [`RUNS_PER_PAGE`].
// Further entries cost little compared with the round trip, but more of them turn out to be
// useless.
const READS_OF_REMOTE: usize = 4;
const RUNS_PER_PAGE: usize = 4;
/// The number of runs in the second round trip to a server, the factor by which this number grows
/// with each further round trip, and its maximum.
const SECOND_BATCH: usize = 16;
// With one run in each round trip, the 1,000 nearest points took 129 round trips. With these
// values, they take at most 4 among points that are spread evenly, and at most 6 among cities.
const BATCH_GROWTH: usize = 4;
const LARGEST_BATCH: usize = 256;
/// The factor by which each read of a crowd grows, and the maximum number of entries of a read.
// Doubling reads at most about twice as many as needed. The limit bounds the memory of one read.
const CROWD_GROWTH: usize = 2;
const LARGEST_CROWD: usize = 16_384;

/// A walk through points in the order of their distance from a position. A point is any place: the
/// index of extents is searched in the same way.
///
/// This is a best-first search. A priority queue holds points and runs of the curve, sorted by
/// distance; the distance of a run is the least distance that a point in it can have. The nearest
/// run is halved until it has about the size of one read, and is then read. A point that leaves the
/// queue is nearer than everything that was not read.
///
/// The size of the next cell to read follows from the density of the points that were read last.
/// The density is the number of points per area on the sphere, not per cell, because cells near a
/// pole are narrow.
///
/// On a remote store the nearest runs are read together, more of them in each round trip.
pub(in super::super) struct Nearest<'r, 'q, R: Reader, K, S: Places> {
    reader: &'r R,
    space: Subspace,
    centre: Centre,
    places: S,
    only: Option<Only<'q, K>>,
    /// The last point of the previous page.
    after: Option<Rank>,
    queue: Queue<R::Bytes<'r>, K, S>,
    has_begun: bool,
    /// The size of the cells to read next.
    typical: Typical,
    /// The number of runs of the next round trip.
    batch: usize,
    explain: Explain,
}

/// A point with its code.
type Coded<B, K, P> = (u64, Located<B, K, P>);
/// The points of one read.
type Points<'r, R, K, S> = Vec<Coded<<R as Reader>::Bytes<'r>, K, <S as Places>::Place>>;

impl<'r, 'q, R: Reader, K: RecordKey, S: Places> Nearest<'r, 'q, R, K, S> {
    /// A walk that begins after the last point of the previous page, if one is given.
    pub(in super::super) fn new(
        reader: &'r R,
        space: &Subspace,
        from: LatLng,
        places: S,
        only: Option<Only<'q, K>>,
        after: Option<Rank>,
    ) -> Self {
        Self {
            reader,
            space: space.clone(),
            centre: Centre::new(from),
            places,
            only,
            after,
            queue: Queue::new(),
            has_begun: false,
            typical: Typical::UNKNOWN,
            batch: 1,
            explain: Explain { planned: 1, ..Explain::default() },
        }
    }

    /// The next point.
    pub(in super::super) fn step(
        &mut self,
    ) -> Result<Option<NearestPlace<R::Bytes<'r>, K, S::Place>>> {
        if !self.has_begun {
            self.has_begun = true;
            self.begin()?;
        }
        loop {
            match self.queue.next() {
                Next::Point(point) => {
                    self.explain.keys_returned += 1;
                    return Ok(Some(point));
                }
                Next::Part(Part::Stretch(stretch)) if self.halve(&stretch) => {}
                Next::Part(Part::Stretch(stretch)) => self.explore(stretch)?,
                Next::Part(Part::Crowd(crowd)) => self.explore_crowd(*crowd)?,
                Next::End => return Ok(None),
            }
        }
    }

    /// The first read. It begins at the position, or where the previous page ended: the density of
    /// the points there determines the size of the next reads.
    fn begin(&mut self) -> Result<()> {
        let after = self.after.as_ref().and_then(|after| after.code(&self.space));
        let from = after.unwrap_or_else(|| S::code(&self.centre.position));
        let range = within(from..).key_range(&self.space);
        let limit = self.limit(1);
        let read = self.read(&[range], limit + 1)?;
        let entries = read.into_iter().flatten().collect();
        let typical = Typical::UNKNOWN;
        let cell = S::Cell::WORLD;
        let world =
            Stretch { cell, first: *cell.codes().start(), last: *cell.codes().end(), typical };
        self.take_beginning(&Stretch { first: from, ..world }, entries, limit)?;
        if let Some(last) = from.checked_sub(1) {
            self.divide(Stretch { last, ..world }, world.cell);
        }
        Ok(())
    }

    fn push(&mut self, stretch: Stretch<S::Cell>) {
        if !self.places.may_be_in(&stretch.cell) {
            return;
        }
        let is_before = |last: f64| {
            stretch.cell.inner_bounds().all(|bounds| farthest(&self.centre, &bounds).0 < last)
        };
        if !self.after.as_ref().is_some_and(|after| is_before(after.haversine)) {
            self.queue.push_part(self.least(&stretch.cell), Part::Stretch(stretch));
        }
    }

    /// The least distance that a point of a cell can have.
    fn least(&self, cell: &S::Cell) -> Haversine {
        let least = cell.bounds().map(|bounds| nearest(&self.centre, &bounds).0);
        Haversine(least.fold(f64::INFINITY, f64::min))
    }

    /// Queues the halves of a run if it is too large for one read.
    fn halve(&mut self, stretch: &Stretch<S::Cell>) -> bool {
        let mut parts = stretch.cell.parts().peekable();
        let is_large = self.typical.min(stretch.typical).divides(&stretch.cell);
        if !is_large || parts.peek().is_none() {
            return false;
        }
        parts.filter_map(|part| stretch.within(part)).for_each(|part| self.push(part));
        true
    }

    /// Reads a run, and on a remote store also the next runs of the queue.
    fn explore(&mut self, first: Stretch<S::Cell>) -> Result<()> {
        let mut stretches = vec![first];
        while stretches.len() < self.batch
            && let Some(stretch) = self.queue.next_stretch()
        {
            if !self.halve(&stretch) {
                stretches.push(stretch);
            }
        }
        let range = |stretch: &Stretch<S::Cell>| {
            within(stretch.first..=stretch.last).key_range(&self.space)
        };
        let ranges: Vec<KeyRange<'_>> = stretches.iter().map(range).collect();
        let limit = self.limit(ranges.len());
        let read = self.read(&ranges, limit + 1)?;
        let (mut size, mut found) = (0.0, 0);
        for (stretch, entries) in stretches.iter().zip(read) {
            (size, found) = (size + stretch.size(), found + entries.len());
            self.take_beginning(stretch, entries, limit)?;
        }
        // The density is measured by area, not by the bits of the code. At a pole, among one
        // million points spread evenly on the sphere, the ten nearest points took 184 reads and
        // 1,600 keys by bits, and take 66 reads and 663 keys by area.
        let implied = Typical::of_points(size, found, ENTRIES_PER_READ);
        self.typical = match stretches.len() {
            1 => self.typical.unless_sparse(implied),
            _ if size > 0.0 => implied,
            _ => self.typical,
        };
        Ok(())
    }

    /// The number of entries to read from each run, if `runs` runs are read together.
    fn limit(&self, runs: usize) -> usize {
        match self.reader.prefetched() {
            0 => ENTRIES_PER_READ,
            page => (page / runs.max(RUNS_PER_PAGE)).max(ENTRIES_PER_READ * READS_OF_REMOTE),
        }
    }

    /// At most `limit` entries of each range. Costs one round trip on a remote store.
    fn read(
        &mut self,
        ranges: &[KeyRange<'_>],
        limit: usize,
    ) -> Result<Vec<Vec<Entry<R::Bytes<'r>>>>> {
        let reader = self.reader;
        self.explain.ranges += ranges.len() as u64;
        let read: Vec<Vec<_>> = if reader.prefetched() > 0 {
            let next = (self.batch * BATCH_GROWTH).max(SECOND_BATCH);
            self.batch = next.min(LARGEST_BATCH);
            let pages = reader.range_many(ranges, limit)?;
            pages.into_iter().map(|page| page.entries).collect()
        } else {
            let begin = |range: &KeyRange<'_>| reader.range(range.clone(), Order::Ascending);
            let read = |range| begin(range)?.take(limit).collect();
            ranges.iter().map(read).collect::<Result<_>>()?
        };
        self.explain.keys_scanned += read.iter().map(|entries| entries.len() as u64).sum::<u64>();
        Ok(read)
    }

    fn points(&self, entries: Vec<Entry<R::Bytes<'r>>>) -> Result<Points<'r, R, K, S>> {
        let point = |entry| {
            let found = Found::new(&self.space, entry)?;
            Ok((code_of(&self.space, &found)?, Located::of(found)?))
        };
        entries.into_iter().map(point).collect()
    }

    /// Takes the points that were read at the beginning of a run: at most `limit`, and one more if
    /// there is one. Queues the rest of the run.
    fn take_beginning(
        &mut self,
        stretch: &Stretch<S::Cell>,
        entries: Vec<Entry<R::Bytes<'r>>>,
        limit: usize,
    ) -> Result<()> {
        let Stretch { first: from, last, .. } = *stretch;
        let is_cut = entries.len() > limit;
        let mut points = self.points(entries)?;
        let ends = points.first().zip(points.last()).map(|((first, _), (last, _))| (*first, *last));
        let rest = match ends.filter(|_| is_cut) {
            // One code has more points than were read.
            Some((begin, code)) if begin == code => {
                self.divide_crowd(code, &points, false, limit)?;
                code.checked_add(1)
            }
            // The last code may have more points than were read.
            Some((_, code)) => {
                points.retain(|(of, _)| *of != code);
                self.typical = Typical::of_read::<S::Cell>(from, code, limit / ENTRIES_PER_READ);
                Some(code)
            }
            None => None,
        };
        points.into_iter().try_for_each(|(_, point)| self.take(point))?;
        if let Some(first) = rest.filter(|rest| *rest <= last) {
            // On a local store, the next read follows at once, and uses the density that this read
            // found.
            let typical = match self.reader.prefetched() {
                0 => stretch.typical,
                _ => self.typical.within(stretch).min(stretch.typical),
            };
            let rest = Stretch { first, typical, ..*stretch };
            self.divide(rest, rest.cell);
        }
        Ok(())
    }

    fn take(&mut self, point: Located<R::Bytes<'r>, K, S::Place>) -> Result<()> {
        if !self.places.has(point.place()) {
            return Ok(());
        }
        let haversine = S::haversine(&self.centre, point.place());
        let point = point.at_distance(haversine);
        let is_past = self.after.as_ref().is_some_and(|after| Rank::of(&point) <= *after);
        if !is_past && is_taken(self.only, point.entry())? {
            self.queue.push_point(point);
        }
        Ok(())
    }

    /// Queues the part of a run that is in a cell. Cells that are completely in the run are queued
    /// whole; the others are divided until they have about the size of one read.
    fn divide(&mut self, run: Stretch<S::Cell>, cell: S::Cell) {
        let Some(part) = run.within(cell) else { return };
        let is_whole = cell.codes() == (part.first..=part.last);
        let mut parts = cell.parts().peekable();
        match parts.peek() {
            Some(_) if !is_whole && self.typical.divides(&cell) => {
                parts.for_each(|part| self.divide(run, part));
            }
            _ => self.push(part),
        }
    }

    /// Reads more points of one code.
    fn explore_crowd(&mut self, crowd: Crowd) -> Result<()> {
        let Crowd { code, rest, spot, limit } = crowd;
        let read = self.read(&[rest], limit + 1)?;
        let points = self.points(read.into_iter().flatten().collect())?;
        if points.len() > limit {
            let next = limit.saturating_mul(CROWD_GROWTH).min(LARGEST_CROWD);
            self.divide_crowd(code, &points, spot.is_some(), next)?;
        }
        points.into_iter().try_for_each(|(_, point)| self.take(point))
    }

    /// Queues the rest of the points of a code, after `points` were read. If these are at one
    /// position, the rest of that position is queued with its exact distance. `is_spot` states that
    /// the points are of one such rest: then the other positions of the code are in the queue, or
    /// were read.
    fn divide_crowd(
        &mut self,
        code: u64,
        points: &[Coded<R::Bytes<'r>, K, S::Place>],
        is_spot: bool,
        limit: usize,
    ) -> Result<()> {
        let Some(((_, first), (_, last))) = points.first().zip(points.last()) else {
            return Ok(());
        };
        let key = last.entry().entry_key();
        let of_code = KeyRange::prefix(self.space.leading(key, 1)?);
        let least = self.least(&S::Cell::around(code, code));
        let elements = S::ELEMENTS.filter(|_| first.place() == last.place());
        let Some(elements) = elements else {
            let rest = of_code.after(key).into_owned();
            let rest = Crowd { code, rest, spot: None, limit };
            self.queue.push_part(least, Part::Crowd(Box::new(rest)));
            return Ok(());
        };
        let spot = self.space.leading(key, elements)?;
        if !is_spot {
            let rest = of_code.intersect(KeyRange::behind(spot)).into_owned();
            let others = Crowd { code, rest, spot: None, limit: ENTRIES_PER_READ };
            self.queue.push_part(least, Part::Crowd(Box::new(others)));
        }
        self.push_spot(code, last.place(), key, KeyRange::prefix(spot), limit);
        Ok(())
    }

    /// Queues the entries at one position that come after a key.
    fn push_spot(
        &mut self,
        code: u64,
        place: &S::Place,
        after: &[u8],
        entries: KeyRange<'_>,
        limit: usize,
    ) {
        // All entries at this position have the same distance. So the rest is queued at this
        // distance, and read only when the search reaches it: of 50,000 points at one position, the
        // nearest point costs 32 to 65 keys.
        let haversine = S::haversine(&self.centre, place);
        let mut begin = KeyBuf::from_slice(after);
        if let Some(past) = &self.after {
            if haversine.0 < past.haversine {
                return;
            }
            if haversine.0 == past.haversine {
                begin = begin.max(past.entry.clone());
            }
        }
        let rest = entries.after(&begin).into_owned();
        let crowd = Crowd { code, rest, spot: Some(begin), limit };
        self.queue.push_part(haversine, Part::Crowd(Box::new(crowd)));
    }
}

impl<R: Reader, K, S: Places> Reading for Nearest<'_, '_, R, K, S> {
    /// Reports the whole index as one range.
    fn reads(&self) -> Explain {
        self.explain
    }
}
