//! Nearest places: points or extents sorted by distance, read on demand.

mod extents;
mod part;
mod points;
mod queue;
mod walk;

use std::ops::{Deref, RangeInclusive};

use keyloom::key::Unpacker;
use keyloom::{KeyBuf, Order, Reader, Result, Subspace, Unpack};
use keyloom_kit::{Continuation, Page, RecordKey, scan};

pub(super) use self::extents::NearExtents;
pub(super) use self::points::NearPoints;
pub(super) use self::walk::Nearest;
use super::area::{BoundingBox, CellBounds};
use super::located::{Located, Place};
use super::position::{Centre, Haversine, LatLng};

/// A place with the haversine of its distance.
pub(super) type NearestPlace<B, K, P> = Located<B, K, (P, f64)>;
pub(super) type NearestPoint<B, K> = NearestPlace<B, K, LatLng>;
pub(super) type NearestExtent<B, K> = NearestPlace<B, K, BoundingBox>;

/// The places that a search by distance selects.
pub(super) trait Places {
    type Cell: Cell;
    type Place: Place + PartialEq;

    /// The number of leading elements of a key that entries at one place share. `None` if entries
    /// at one place are not adjacent.
    const ELEMENTS: Option<usize>;

    /// The code of a place at a position.
    fn code(position: &LatLng) -> u64;

    fn haversine(centre: &Centre, place: &Self::Place) -> Haversine;

    fn has(&self, place: &Self::Place) -> bool;

    /// Whether a place of the cell may be selected.
    fn may_be_in(&self, cell: &Self::Cell) -> bool;
}

/// A part of the sphere whose places have adjacent codes.
pub(super) trait Cell: Copy {
    const WORLD: Self;

    /// The smallest cell with about the size of an interval of codes. For one code, the cell of
    /// this code.
    fn around(first: u64, last: u64) -> Self;

    fn codes(&self) -> RangeInclusive<u64>;

    /// The parts of the cell in code order. A cell without parts is read as a whole.
    fn parts(self) -> impl Iterator<Item = Self>;

    /// The size, in square metres, of an area in which about as many places are expected as in the
    /// codes.
    fn size(&self) -> f64;

    /// Bounds that contain all positions of the places of the cell.
    fn bounds(&self) -> impl Iterator<Item = CellBounds>;

    /// Bounds that contain at least one position of each place of the cell.
    fn inner_bounds(&self) -> impl Iterator<Item = CellBounds>;
}

/// A page of at most `limit` places, the nearest first, beginning after the continuation `after`.
/// `query` is the name of the query. `walk` returns a walk that begins after the given rank.
pub(super) fn page<'r, 'q, R: Reader, K: RecordKey, S: Places>(
    query: &Subspace,
    limit: usize,
    after: Option<&Continuation>,
    walk: impl FnOnce(Option<Rank>) -> Nearest<'r, 'q, R, K, S>,
) -> Result<Page<NearestPlace<R::Bytes<'r>, K, S::Place>>> {
    // The continuation contains a distance and a key, which have the order of the result.
    let whole = query.range();
    let last = after.map(|after| after.last_key(&whole, Order::Ascending)).transpose()?;
    let after = last.map(|last| Rank::unpack(query, last)).transpose()?;
    let mut nearest = scan(walk(after), Nearest::step);
    let items = nearest.by_ref().take(limit).collect::<Result<Vec<_>>>()?;
    let has_more = limit > 0 && nearest.next().transpose()?.is_some();
    let next = items
        .last()
        .filter(|_| has_more)
        .map(|last| Continuation::behind(&Rank::of(last).pack(query), &whole, Order::Ascending));
    Ok(Page { items, next })
}

/// The rank of a place in the result: sorted by distance, then by the key of the entry.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) struct Rank {
    haversine: f64,
    entry: KeyBuf,
}

impl Rank {
    fn of<B: Deref<Target = [u8]>, K, P>(point: &NearestPlace<B, K, P>) -> Self {
        let entry = KeyBuf::from_slice(point.entry().entry_key());
        Self { haversine: point.place().1, entry }
    }

    /// The code of the entry.
    fn code(&self, space: &Subspace) -> Option<u64> {
        let elements = self.entry.get(space.prefix().len()..)?;
        u64::unpack_element(&mut Unpacker::new(elements)).ok()
    }

    fn pack(&self, answers: &Subspace) -> KeyBuf {
        answers.pack(&(self.haversine, &self.entry[..]))
    }

    fn unpack(answers: &Subspace, key: &[u8]) -> Result<Self> {
        let (haversine, entry): (f64, Vec<u8>) = answers.unpack(key)?;
        Ok(Self { haversine, entry: KeyBuf::from_vec(entry) })
    }
}
