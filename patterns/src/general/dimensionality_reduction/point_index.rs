//! An index of the positions of records.

use std::fmt;
use std::ops::Deref;

use keyloom::{Order, Reader, Result, Subspace};

use super::area::Area;
use super::cell::{Cell, code};
use super::code_walk::Placed;
use super::nearest::Nearest;
use super::on_index::stands_on_index;
use super::position::Position;
use super::query::AreaQuery;
use crate::general::composite_key_index::{Found, FoundEntries, Index, entry};
use crate::parts::AnyParts;
use crate::select::within;
use crate::table::RecordKey;

/// An index of the records of a [`Table`](crate::Table) by where they are; see the [module](super).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_patterns::{Circle, PointIndex, Position, Table};
/// type City = (String, f64, f64);
/// let by_place = PointIndex::new(&Subspace::new("by_place"), |_id, (_, latitude, longitude): &City| {
///     Position::new(*latitude, *longitude).map(Some)
/// });
/// let cities = Table::<u32, City>::new(&Subspace::new("cities")).with(&by_place);
/// let store = Memory::new();
/// store.transact(|txn| {
///     cities.put(txn, &1, &("Versailles".into(), 48.8049, 2.1204))?;
///     cities.put(txn, &2, &("Rouen".into(), 49.4431, 1.0993))
/// })?;
/// let snapshot = store.snapshot()?;
/// let paris = Position::new(48.8534, 2.3488)?;
/// let near = by_place.within(Circle::new(paris, 20_000.0)?).points(&snapshot)?
///     .map(|point| point?.record_key())
///     .collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(near, [1]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct PointIndex<K, V> {
    index: Index<K, V, AnyParts>,
}

impl<K, V> Clone for PointIndex<K, V> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone() }
    }
}

impl<K, V> fmt::Debug for PointIndex<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PointIndex").field(&self.index).finish()
    }
}

impl<K: RecordKey, V> PointIndex<K, V> {
    /// An index in `space`, of the positions that `function` gives; a record for which it gives none is not in
    /// the index. Nothing else may be in `space`.
    ///
    /// An error of the function, such as that of [`Position::new`], refuses the put. Records that were in the
    /// table before, and for which it fails, are not in the index.
    pub fn new(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<Option<Position>> + Send + Sync + 'static,
    ) -> Self
    where
        V: 'static,
    {
        let entries = move |key: &K, value: &V| {
            let entries = function(key, value)?.map(|position| {
                let degrees = (position.latitude(), position.longitude());
                entry(code(&position)).covering(degrees)
            });
            Ok(entries.unwrap_or_default())
        };
        Self { index: Index::refusing(space, entries).untyped() }
    }

    /// A query for the records in `area`: a [`Circle`](super::Circle), a [`BoundingBox`](super::BoundingBox), a
    /// [`Polygon`](super::Polygon), or a program's own.
    pub fn within<'q, A: Area>(&self, area: A) -> AreaQuery<'q, K, A> {
        AreaQuery::new(self.index.space(), area)
    }

    /// All records, the nearest to `from` first. Reads as it goes: take as many as are wanted. All records at one
    /// place are read together.
    ///
    /// Some of the records, or pages of them: [`within`](PointIndex::within) an area, or
    /// [`Everywhere`](super::Everywhere), and [`by_distance`](AreaQuery::by_distance) or
    /// [`page_by_distance`](AreaQuery::page_by_distance).
    ///
    /// # Errors
    /// What the store says; the iterator too.
    pub fn nearest<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: Position,
    ) -> Result<Nearest<'r, 'static, R, K>> {
        Nearest::open(reader, self.index.space(), from, super::Everywhere, None)
    }

    /// The records in a cell, in the order of their codes: one range. A [`Cell`] is an area as well, for what else
    /// can be asked [`within`](PointIndex::within) one.
    ///
    /// # Errors
    /// What the store says; the iterator too.
    pub fn in_cell<'r, R: Reader>(
        &self,
        reader: &'r R,
        cell: Cell,
    ) -> Result<FoundPoints<R::Entries<'r>, K>> {
        Ok(FoundPoints(self.index.range(reader, within(cell.codes()), Order::Ascending)?))
    }
}

stands_on_index!(PointIndex; |_| "points");

/// A position in a [`PointIndex`], and the record that is there.
#[derive(Clone, Debug)]
pub struct Point<B, K> {
    found: Found<B, K>,
    position: Position,
}

impl<B: Deref<Target = [u8]>, K: RecordKey> Placed for Point<B, K> {
    type Bytes = B;
    type Key = K;

    #[inline]
    fn of(found: Found<B, K>) -> Result<Self> {
        let (latitude, longitude) = found.covered()?;
        Ok(Self { found, position: Position::stored(latitude, longitude) })
    }

    fn found(&self) -> &Found<B, K> {
        &self.found
    }
}

impl<B: Deref<Target = [u8]>, K> Point<B, K> {
    /// Where it is.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The entry of the index.
    pub fn entry(&self) -> &Found<B, K> {
        &self.found
    }

    #[inline]
    pub(super) fn code(found: &Found<B, K>) -> Result<u64> {
        found.parts_as()
    }
}

impl<B: Deref<Target = [u8]>, K: RecordKey> Point<B, K> {
    /// The key of the record.
    ///
    /// # Errors
    /// When the bytes there are not a `K`.
    pub fn record_key(&self) -> Result<K> {
        self.found.record_key()
    }
}

/// The points of one range.
#[derive(Debug)]
pub struct FoundPoints<I, K>(FoundEntries<I, K>);

impl<I, B, K> Iterator for FoundPoints<I, K>
where
    I: Iterator<Item = Result<keyloom::Entry<B>>>,
    B: Deref<Target = [u8]>,
    K: RecordKey,
{
    type Item = Result<Point<B, K>>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.and_then(Point::of))
    }
}
