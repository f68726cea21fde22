//! An index of the positions of records.

use std::fmt;

use keyloom::{Order, Pack, Reader, Result, Subspace};

use super::area::Area;
use super::cell::{GeoCell, code};
use super::located::Located;
use super::nearest::NearestPoint;
use super::position::LatLng;
use super::query::AreaQuery;
use keyloom_tables::Scan;
use keyloom_tables::index::{Index, entry};
use keyloom_tables::kit::stands_on_index;
use keyloom_tables::parts::AnyParts;
use keyloom_tables::table::RecordKey;
use keyloom_tables::within;

/// An index of the records of a [`Table`](keyloom_tables::Table) by position; see the
/// [module](super).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_spatial::{Circle, PointIndex, LatLng};
/// use keyloom_tables::Table;
/// type City = (String, f64, f64);
/// let by_place = PointIndex::new(&Subspace::new("by_place"), |_id, (_, latitude, longitude): &City| {
///     LatLng::new(*latitude, *longitude).map(Some)
/// });
/// let cities = Table::<u32, City>::new(&Subspace::new("cities")).with(&by_place);
/// let store = Memory::new();
/// store.transact(|txn| {
///     cities.put(txn, &1, &("Versailles".into(), 48.8049, 2.1204))?;
///     cities.put(txn, &2, &("Rouen".into(), 49.4431, 1.0993))
/// })?;
/// let snapshot = store.snapshot()?;
/// let paris = LatLng::new(48.8534, 2.3488)?;
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
    /// An index in `space` of the positions that `function` returns. A record for which it returns
    /// `None` is not in the index. Nothing else may be in `space`.
    ///
    /// If the function returns an error, such as that of [`LatLng::new`], the put fails. Existing
    /// records for which it fails are not in the index.
    pub fn new(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<Option<LatLng>> + Send + Sync + 'static,
    ) -> Self
    where
        V: 'static,
    {
        Self::covering(space, move |key, value| {
            Ok(function(key, value)?.map(|position| (position, ())))
        })
    }

    /// The same, with a copy of some fields in each entry (a covering index). A query that needs
    /// only these reads no record: it gets them from [`covered`](Located::covered). If one of them
    /// changes, the entry is written again: one key.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::{GeoCell, LatLng, PointIndex};
    /// use keyloom_tables::Table;
    /// type Shop = (f64, f64, String);
    /// let by_place = PointIndex::covering(&Subspace::new("by_place"), |_id, shop: &Shop| {
    ///     Ok(Some((LatLng::new(shop.0, shop.1)?, shop.2.clone())))
    /// });
    /// let shops = Table::<u32, Shop>::new(&Subspace::new("shops")).with(&by_place);
    /// let store = Memory::new();
    /// store.transact(|txn| shops.put(txn, &1, &(48.85, 2.35, "tea".into())))?;
    /// let snapshot = store.snapshot()?;
    /// let mut points = by_place.within(GeoCell::WORLD).points(&snapshot)?;
    /// let point = points.next().expect("there is one")?;
    /// assert_eq!(point.covered::<&str>()?, "tea");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn covering<F: Pack>(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<Option<(LatLng, F)>> + Send + Sync + 'static,
    ) -> Self
    where
        V: 'static,
    {
        let entries = move |key: &K, value: &V| {
            let entries = function(key, value)?.map(|(position, fields)| {
                // In the key, equal positions are adjacent: a search by distance needs to read one
                // of them to know the distance of all.
                let parts = (code(&position), position.latitude(), position.longitude());
                entry(parts).covering(fields)
            });
            Ok(entries.unwrap_or_default())
        };
        Self { index: Index::try_new(space, entries).untyped() }
    }

    /// A query for the records in `area`: a [`Circle`](super::Circle), a
    /// [`BoundingBox`](super::BoundingBox), a [`Polygon`](super::Polygon), or a program's own.
    pub fn within<'q, A: Area>(&self, area: A) -> AreaQuery<'q, K, A> {
        AreaQuery::new(self.index.space(), area)
    }

    /// All records, the nearest to `from` first. Reads on demand, so take as many as needed.
    ///
    /// For a part of the records or for pages use [`within`](PointIndex::within) with an area or
    /// with [`GeoCell::WORLD`], and then [`by_distance`](AreaQuery::by_distance) or
    /// [`page_by_distance`](AreaQuery::page_by_distance).
    ///
    /// # Errors
    /// Any error of the store, here or from the iterator. The iterator also returns
    /// [`Error::At`](keyloom::Error::At) for a malformed entry.
    pub fn nearest<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: LatLng,
    ) -> Result<impl Scan<Item = Result<NearestPoint<R::Bytes<'r>, K>>> + use<'r, R, K, V>> {
        self.within(GeoCell::WORLD).by_distance(reader, from)
    }

    /// The records in a cell, in code order. Costs one range. A [`GeoCell`] is also an area, for
    /// the other queries [`within`](PointIndex::within) an area.
    ///
    /// # Errors
    /// Any error of the store, here or from the iterator. The iterator also returns
    /// [`Error::At`](keyloom::Error::At) for a malformed entry.
    pub fn in_cell<'r, R: Reader>(
        &self,
        reader: &'r R,
        cell: GeoCell,
    ) -> Result<impl Iterator<Item = Result<Located<R::Bytes<'r>, K, LatLng>>> + use<'r, R, K, V>>
    {
        let found = self.index.range(reader, within(cell.codes()), Order::Ascending)?;
        Ok(found.map(|found| Located::of(found?)))
    }
}

// Format 1 had the position in the value.
stands_on_index!(PointIndex; |_| "points", format 2);
