//! Parts of the index that a search by distance has not read.

use keyloom::{KeyBuf, KeyRange};

use super::Cell;

/// A part of the index that has not been read.
#[derive(Clone, Debug)]
pub(super) enum Part<C> {
    Stretch(Stretch<C>),
    Crowd(Box<Crowd>),
}

/// A run of codes within a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch<C> {
    pub(super) cell: C,
    pub(super) first: u64,
    pub(super) last: u64,
    /// The size of the cells to read in this run.
    pub(super) typical: Typical,
}

/// The remaining entries of a code that has more entries than one read returns.
#[derive(Clone, Debug)]
pub(super) struct Crowd {
    pub(super) code: u64,
    pub(super) rest: KeyRange<'static>,
    /// If all entries are at one position, the key after which these entries begin.
    pub(super) spot: Option<KeyBuf>,
    /// The number of entries of the next read.
    pub(super) limit: usize,
}

impl<C: Cell> Stretch<C> {
    /// The part of this run in another cell.
    pub(super) fn within(&self, cell: C) -> Option<Self> {
        let (start, end) = cell.codes().into_inner();
        let (first, last) = (self.first.max(start), self.last.min(end));
        (first <= last).then_some(Self { cell, first, last, typical: self.typical })
    }

    /// The approximate area in square metres.
    pub(super) fn size(&self) -> f64 {
        size(&self.cell, self.first, self.last)
    }
}

fn size(cell: &impl Cell, first: u64, last: u64) -> f64 {
    let codes = cell.codes();
    let share = (last - first) as f64 / (codes.end() - codes.start()).max(1) as f64;
    cell.size() * share
}

/// The area that contains about as many points as one read returns, in square metres.
#[derive(Clone, Copy, Debug)]
pub(super) struct Typical(f64);

/// Areas up to this multiple of the typical area count as equal to it.
// A division halves an area. With a bound in the middle between 1 and 2, the parts are as near as
// possible to the typical area.
const TOLERANCE: f64 = 1.5;
/// The factor by which an implied area must exceed the typical area to show a lower density.
// A read of one run returns 16 points. An area that should have 16 points rarely has fewer than 8
// by chance: the difference is two standard deviations.
const SPARSE: f64 = 2.0;
/// The maximum number of parts into which a run is divided because of a denser place in it.
// Without this limit, one dense place would divide a wide run into parts that are mostly empty, and
// each part is a read.
const MOST_PARTS: f64 = 64.0;

impl Typical {
    /// The area before any read: no cell is divided.
    pub(super) const UNKNOWN: Self = Self(f64::INFINITY);

    /// The typical area if this interval of codes has as many points as `reads` reads return.
    pub(super) fn of_read<C: Cell>(from: u64, rest: u64, reads: usize) -> Self {
        let cell = C::around(from, rest);
        // The codes of extents are not spread evenly: the code of a large element comes just before
        // the codes of its south-western quarter. Without this limit, a few large extents would
        // divide the sphere into millions of elements.
        let least = cell.size() / MOST_PARTS;
        Self((size(&cell, from, rest) / reads as f64).max(least))
    }

    /// The area that contains `wanted` points, if an area of `size` contains `found` points.
    pub(super) fn of_points(size: f64, found: usize, wanted: usize) -> Self {
        Self(size * wanted as f64 / found.max(1) as f64)
    }

    /// `implied` if it is much larger than this area; otherwise this area.
    pub(super) fn unless_sparse(self, implied: Self) -> Self {
        if implied.0 > SPARSE * self.0 { implied } else { self }
    }

    pub(super) fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// The same area, but at least a small part (see [`MOST_PARTS`]) of the area of a run.
    pub(super) fn within(self, stretch: &Stretch<impl Cell>) -> Self {
        Self(self.0.max(stretch.size() / MOST_PARTS))
    }

    /// Whether a cell is to be divided before it is read.
    pub(super) fn divides(&self, cell: &impl Cell) -> bool {
        cell.size() > self.0 * TOLERANCE
    }
}
