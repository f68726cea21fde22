//! Nearest points: points sorted by distance, read on demand.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Deref;

use keyloom::{KeyBuf, KeyRange, Order, Reader, Result, Subspace};

use super::area::{Area, Relation, farthest, nearest};
use super::cell::{GeoCell, code};
use super::code_walk::{Only, is_taken};
use super::located::Located;
use super::position::{Centre, Haversine, LatLng};
use keyloom_tables::Explain;
use keyloom_tables::index::Found;
use keyloom_tables::kit::Reading;
use keyloom_tables::table::RecordKey;
use keyloom_tables::within;

/// The number of entries of a run that are read before the rest is divided.
const ENTRIES_PER_READ: usize = 16;
/// A cell counts as large if it could be divided more often than this.
const LEVELS_OF_LARGE: u32 = 2;

/// A walk through points in the order of their distance from a position.
///
/// This is a best-first search. A priority queue holds points and runs of the curve, sorted by the
/// least distance that a point in them can have. The nearest run is read, and divided if it holds
/// many points. A point that leaves the queue is nearer than everything that was not read.
pub(super) struct Nearest<'r, 'q, R: Reader, K, A> {
    reader: &'r R,
    space: Subspace,
    centre: Centre,
    area: A,
    only: Option<Only<'q, K>>,
    /// The last point of the previous page.
    after: Option<Rank>,
    queue: BinaryHeap<Candidate<R::Bytes<'r>, K>>,
    explain: Explain,
}

/// A point with its distance.
#[derive(Clone, Debug)]
pub struct NearestPoint<B, K> {
    point: Located<B, K, LatLng>,
    haversine: Haversine,
}

impl<B: Deref<Target = [u8]>, K> NearestPoint<B, K> {
    /// The distance in metres, along the sphere.
    pub fn distance(&self) -> f64 {
        self.haversine.metres()
    }

    /// The point.
    pub fn point(&self) -> &Located<B, K, LatLng> {
        &self.point
    }
}

impl<B: Deref<Target = [u8]>, K: RecordKey> NearestPoint<B, K> {
    /// The key of the record.
    ///
    /// # Errors
    /// [`Error::Key`](keyloom::Error::Key) or [`Error::At`](keyloom::Error::At) if the bytes are
    /// not a `K`.
    pub fn record_key(&self) -> Result<K> {
        self.point.record_key()
    }
}

/// The place of a point in the result: sorted by distance, then by the key of the entry.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) struct Rank {
    haversine: f64,
    entry: KeyBuf,
}

impl Rank {
    pub(super) fn of<B: Deref<Target = [u8]>, K>(point: &NearestPoint<B, K>) -> Self {
        let entry = KeyBuf::from_slice(point.point.entry().entry_key());
        Self { haversine: point.haversine.0, entry }
    }

    pub(super) fn pack(&self, answers: &Subspace) -> KeyBuf {
        answers.pack(&(self.haversine, &self.entry[..]))
    }

    /// The rank after which `rest` begins.
    pub(super) fn behind(answers: &Subspace, rest: &KeyRange<'_>) -> Result<Self> {
        use std::ops::Bound::{Excluded, Included};
        let key = match rest.normalized() {
            Some((Included(key) | Excluded(key), _)) => {
                KeyBuf::from_slice(answers.leading(key, 2)?)
            }
            _ => KeyBuf::new(),
        };
        let (haversine, entry): (f64, Vec<u8>) = answers.unpack(&key)?;
        Ok(Self { haversine, entry: KeyBuf::from_vec(entry) })
    }
}

/// A run of codes within a cell.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    cell: GeoCell,
    first: u64,
    last: u64,
    /// Whether it may contain far more points than one read returns.
    is_large: bool,
}

impl Stretch {
    fn world() -> Self {
        Self { cell: GeoCell::WORLD, first: 0, last: u64::MAX, is_large: true }
    }
}

enum Candidate<B, K> {
    Stretch(Haversine, Stretch),
    Point(NearestPoint<B, K>),
}

impl<B: Deref<Target = [u8]>, K> Candidate<B, K> {
    fn haversine(&self) -> f64 {
        match self {
            Self::Stretch(haversine, _) => haversine.0,
            Self::Point(point) => point.haversine.0,
        }
    }

    fn entry_key(&self) -> Option<&[u8]> {
        match self {
            Self::Stretch(..) => None,
            Self::Point(point) => Some(point.point.entry().entry_key()),
        }
    }
}

/// The greatest candidate comes first: the nearest. At equal distance a run comes before a point,
/// because it may contain a point of that distance.
impl<B: Deref<Target = [u8]>, K> Ord for Candidate<B, K> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_distance = other.haversine().total_cmp(&self.haversine());
        by_distance.then_with(|| other.entry_key().cmp(&self.entry_key()))
    }
}

impl<B: Deref<Target = [u8]>, K> PartialOrd for Candidate<B, K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<B: Deref<Target = [u8]>, K> PartialEq for Candidate<B, K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<B: Deref<Target = [u8]>, K> Eq for Candidate<B, K> {}

impl<'r, 'q, R: Reader, K: RecordKey, A: Area> Nearest<'r, 'q, R, K, A> {
    pub(super) fn new(
        reader: &'r R,
        space: &Subspace,
        from: LatLng,
        area: A,
        only: Option<Only<'q, K>>,
    ) -> Self {
        let mut nearest = Self {
            reader,
            space: space.clone(),
            centre: Centre::new(from),
            area,
            only,
            after: None,
            queue: BinaryHeap::new(),
            explain: Explain { ranges: 1, ..Explain::default() },
        };
        nearest.push(Stretch::world());
        nearest
    }

    /// Begins after the last point of the previous page.
    pub(super) fn resume(&mut self, after: Rank) {
        self.after = Some(after);
        self.queue.clear();
        self.push(Stretch::world());
    }

    fn push(&mut self, stretch: Stretch) {
        let bounds = stretch.cell.outer_bounds();
        if self.area.relation(&bounds) == Relation::Outside {
            return;
        }
        let is_past = self
            .after
            .as_ref()
            .is_some_and(|after| farthest(&self.centre, &bounds).0 < after.haversine);
        if !is_past {
            let least = nearest(&self.centre, &bounds);
            self.queue.push(Candidate::Stretch(least, stretch));
        }
    }

    /// Reads the beginning of a run, and divides the rest into runs that contain about as many
    /// points as one read.
    ///
    /// If the run may be large, the read begins where the run is nearest to the position. The
    /// density of the points there determines how to divide it.
    fn explore(&mut self, stretch: Stretch) -> Result<()> {
        let Stretch { cell, first, last, is_large } = stretch;
        let from = match is_large {
            true => cell.nearest_code(code(&self.centre.position)).clamp(first, last),
            false => first,
        };
        let rest = self.read(from, last)?;
        let bits = rest.map_or(0, |rest| (rest - from).leading_zeros());
        if from > first {
            self.divide(cell, first, from - 1, bits);
        }
        if let Some(rest) = rest {
            self.divide(cell, rest, last, bits);
        }
        Ok(())
    }

    /// Reads points from the code `first` on, up to a limit. Returns the code at which it stopped.
    fn read(&mut self, first: u64, last: u64) -> Result<Option<u64>> {
        let range = within(first..=last).key_range(&self.space);
        self.explain.seeks += 1;
        let mut before = None;
        for (number, entry) in self.reader.range(range, Order::Ascending)?.enumerate() {
            self.explain.keys_scanned += 1;
            let found = Found::new(&self.space, entry?)?;
            let code: u64 = found.parts_as()?;
            // Points with the same code are not separated.
            if number >= ENTRIES_PER_READ && before != Some(code) {
                return Ok(Some(code));
            }
            before = Some(code);
            self.take(Located::of(found)?)?;
        }
        Ok(None)
    }

    fn take(&mut self, point: Located<R::Bytes<'r>, K, LatLng>) -> Result<()> {
        if !self.area.contains(&point.position()) {
            return Ok(());
        }
        let haversine = self.centre.haversine(&point.position());
        let point = NearestPoint { point, haversine };
        let is_past = self.after.as_ref().is_some_and(|after| Rank::of(&point) <= *after);
        if !is_past && is_taken(self.only, point.point.entry())? {
            self.queue.push(Candidate::Point(point));
        }
        Ok(())
    }

    /// Queues the codes from `first` to `last` as cells of `bits` bits. A larger cell is queued as
    /// a whole if all its codes are to be read.
    fn divide(&mut self, cell: GeoCell, first: u64, last: u64, bits: u32) {
        let (start, end) = cell.codes().into_inner();
        if first > end || last < start {
            return;
        }
        let is_whole = first <= start && end <= last;
        match cell.children() {
            Some(halves) if !is_whole && cell.bits() < bits => {
                halves.into_iter().for_each(|half| self.divide(half, first, last, bits));
            }
            _ => {
                let is_large = cell.bits() + LEVELS_OF_LARGE < bits;
                let (first, last) = (first.max(start), last.min(end));
                self.push(Stretch { cell, first, last, is_large });
            }
        }
    }

    /// The next point.
    pub(super) fn step(&mut self) -> Result<Option<NearestPoint<R::Bytes<'r>, K>>> {
        while let Some(candidate) = self.queue.pop() {
            match candidate {
                Candidate::Stretch(_, stretch) => self.explore(stretch)?,
                Candidate::Point(point) => {
                    self.explain.keys_returned += 1;
                    return Ok(Some(point));
                }
            }
        }
        Ok(None)
    }
}

impl<R: Reader, K, A> Reading for Nearest<'_, '_, R, K, A> {
    /// Reports the whole index as one range.
    fn explain(&self) -> Explain {
        self.explain
    }
}
