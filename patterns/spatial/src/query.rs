//! Queries for the points in an area.

use std::fmt;

use keyloom::value::Codec;
use keyloom::{Error, Reader, Result, Subspace};
use keyloom_kit::{Continuation, Page, RecordKey, Scan, scan};
use keyloom_tables::Table;

use super::area::Area;
use super::cell::{GeoCell, OnSphere};
use super::code_walk::{CodeWalk, FIRST_RANGES, MOST_RANGES, Only, first_ranges};
use super::cover::Cover;
use super::cover_part::CoverPart;
use super::grid::InCells;
use super::located::Located;
use super::nearest::{self, NearPoints, Nearest, NearestPoint, Rank};
use super::page::page;
use super::points::Points;
use super::position::LatLng;

/// A query for the points in an area; see [`PointIndex::within`](super::PointIndex::within).
pub struct AreaQuery<'q, K, A> {
    index: Subspace,
    /// The subspace of the entries to read: the index, or one group of it.
    space: Subspace,
    area: A,
    /// The number of ranges; `None` for as many as pay off.
    ranges: Option<usize>,
    only: Option<Only<'q, K>>,
}

impl<K, A: Clone> Clone for AreaQuery<'_, K, A> {
    fn clone(&self) -> Self {
        let (index, space) = (self.index.clone(), self.space.clone());
        Self { index, space, area: self.area.clone(), ..*self }
    }
}

impl<K, A: fmt::Debug> fmt::Debug for AreaQuery<'_, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AreaQuery")
            .field("space", &self.space)
            .field("area", &self.area)
            .field("ranges", &self.ranges)
            .finish_non_exhaustive()
    }
}

/// The default number of ranges of an [`ExtentQuery`](super::ExtentQuery).
// Fewer ranges read more entries outside the area; each further range takes about as long as
// reading 32 keys. A query can set another number.
pub(super) const RANGES: usize = 16;

/// Checks and limits a number of ranges.
pub(super) fn at_most(ranges: usize) -> Result<usize> {
    if ranges == 0 {
        return Err(Error::InvalidArgument {
            what: "the number of ranges",
            value: ranges.to_string(),
            why: "a query reads one range or more",
        });
    }
    Ok(ranges.min(MOST_RANGES))
}

impl<'q, K, A: Area> AreaQuery<'q, K, A> {
    pub(super) fn new(index: &Subspace, space: &Subspace, area: A) -> Self {
        let (index, space) = (index.clone(), space.clone());
        Self { index, space, area, ranges: None, only: None }
    }

    /// The same query in at most this many ranges.
    ///
    /// With more ranges, fewer keys outside the area are read, but more ranges are begun. By
    /// default a query begins with 2. Whenever the keys read outside the area have cost as much as
    /// the new ranges will (about 32 keys per range), the query multiplies the number of ranges by
    /// 4 for the rest of the area. A query that reads 100 keys or more costs at most about twice as
    /// much as with the best number of ranges. A query that reads fewer keys costs its 2 ranges,
    /// although 1 may be enough.
    ///
    /// On a remote store, a range is a round trip and returns a page. So a query on a remote store
    /// begins with 1 range, and each further range counts as a page of keys.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for 0.
    pub fn in_ranges(self, most: usize) -> Result<Self> {
        Ok(Self { ranges: Some(at_most(most)?), ..self })
    }

    /// The same query, limited to records with keys that `only` accepts.
    ///
    /// The query also reads the points of the other records. If most of the points belong to other
    /// records, such as the records of all other tenants, use an index that is
    /// [`grouped`](super::PointIndex::grouped).
    #[must_use]
    pub fn only(self, only: &'q dyn Fn(&K) -> bool) -> Self {
        Self { only: Some(only), ..self }
    }

    /// A name of this query, independent of the number of its ranges: the bounding box of its area.
    fn name(&self) -> Subspace {
        let area = self.area.bounds();
        Subspace::new(&(area.south(), area.west(), area.north(), area.east()))
    }

    fn cover(&self, first_ranges: usize) -> Cover {
        Cover::of(&OnSphere(&self.area), self.ranges.unwrap_or(first_ranges))
    }

    /// The parts that the query reads, in code order. For each of its ranges these are the parts in
    /// the area or across its border, and the gaps between them. This call reads nothing.
    ///
    /// If the [number of ranges](AreaQuery::in_ranges) is set, [`points`](AreaQuery::points),
    /// [`count`](AreaQuery::count), [`grid`](AreaQuery::grid) and the first
    /// [`page`](AreaQuery::page) read no other parts. Otherwise, on a local store, these operations
    /// begin with these parts. Queries by distance use a different algorithm.
    pub fn cover_parts(&self) -> Vec<CoverPart> {
        self.cover(FIRST_RANGES).parts()
    }

    /// The number of ranges of the query; by default, the number that it begins with on a local
    /// store.
    pub fn ranges(&self) -> usize {
        self.cover(FIRST_RANGES).ranges.len()
    }
}

impl<'q, K: RecordKey, A: Area> AreaQuery<'q, K, A> {
    /// The points in code order.
    ///
    /// # Errors
    /// Any error of the store, here or from the iterator. The iterator also returns [`Error::At`]
    /// for a malformed entry.
    pub fn points<'r, R: Reader>(
        self,
        reader: &'r R,
    ) -> Result<impl Scan<Item = Result<Located<R::Bytes<'r>, K, LatLng>>> + use<'r, 'q, R, K, A>>
    {
        Ok(Self::scan(self.walk(reader)))
    }

    fn scan<'r, R: Reader>(
        points: Points<'r, 'q, R, K, A>,
    ) -> impl Scan<Item = Result<Located<R::Bytes<'r>, K, LatLng>>> + use<'r, 'q, R, K, A> {
        scan(points, |points| Ok(points.step()?.map(|(_, point)| point)))
    }

    fn walk<R: Reader>(self, reader: &R) -> Points<'_, 'q, R, K, A> {
        self.walk_after(reader, None)
    }

    /// The walk after the key of an entry, given with its code.
    fn walk_after<'r, R: Reader>(
        self,
        reader: &'r R,
        last: Option<(u64, &[u8])>,
    ) -> Points<'r, 'q, R, K, A> {
        let (code, key) = last.unzip();
        let cover = self.cover(first_ranges(reader)).from(code);
        let walk = CodeWalk::new(reader, &self.space, cover).after(key);
        let walk = if self.ranges.is_none() { walk.that_refines(reader) } else { walk };
        Points { walk, area: self.area, only: self.only }
    }

    /// The number of points. Reads all of them.
    ///
    /// # Errors
    /// Errors of [`points`](AreaQuery::points).
    pub fn count(self, reader: &impl Reader) -> Result<u64> {
        count(self.points(reader)?)
    }

    /// Counts the points in each cell of `bits` bits. Returns the cells with points in code order.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more than 64 bits; errors of [`points`](AreaQuery::points).
    pub fn grid<'r, R: Reader>(
        self,
        reader: &'r R,
        bits: u32,
    ) -> Result<impl Scan<Item = Result<(GeoCell, u64)>> + use<'r, 'q, R, K, A>> {
        self.fold_grid(reader, bits, |count: &mut u64, _| {
            *count += 1;
            Ok(())
        })
    }

    /// Folds the points in each cell of `bits` bits into a value, which begins as its default.
    /// Returns the cells with points and their values in code order. So the result can be the sums
    /// of a heat map, the largest value of each tile, or the middle of each cluster. Reads the same
    /// keys as [`grid`](AreaQuery::grid), and no records: [cover](super::PointIndex::covering) the
    /// fields that are folded.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::{GeoCell, LatLng, PointIndex};
    /// use keyloom_tables::Table;
    /// type Sale = (f64, f64, u64); // latitude, longitude, cents
    /// let by_place = PointIndex::covering(&Subspace::new("by_place"), |_id, sale: &Sale| {
    ///     Ok(Some((LatLng::new(sale.0, sale.1)?, sale.2)))
    /// });
    /// let sales = Table::<u32, Sale>::new(&Subspace::new("sales")).with(&by_place);
    /// let store = Memory::new();
    /// let rows = [(1, (48.85, 2.35, 250)), (2, (48.86, 2.34, 90)), (3, (59.91, 10.75, 400))];
    /// store.transact(|txn| sales.put_many(txn, rows))?;
    ///
    /// let snapshot = store.snapshot()?;
    /// let heat = by_place.within(GeoCell::WORLD).fold_grid(&snapshot, 15, |sum: &mut u64, sale| {
    ///     *sum += sale.covered::<u64>()?;
    ///     Ok(())
    /// })?;
    /// let heat: Vec<(String, u64)> = heat
    ///     .map(|cell| cell.and_then(|(cell, cents)| Ok((cell.geohash()?, cents))))
    ///     .collect::<keyloom::Result<_>>()?;
    /// assert_eq!(heat, [("u09".into(), 340), ("u4x".into(), 400)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`grid`](AreaQuery::grid). An error of `fold` ends the iterator, which returns it.
    pub fn fold_grid<'r, R: Reader, T: Default, F>(
        self,
        reader: &'r R,
        bits: u32,
        mut fold: F,
    ) -> Result<impl Scan<Item = Result<(GeoCell, T)>> + use<'r, 'q, R, K, A, T, F>>
    where
        F: FnMut(&mut T, &Located<R::Bytes<'r>, K, LatLng>) -> Result<()>,
    {
        let cells = InCells::open(self.walk(reader), bits)?;
        Ok(scan(cells, move |cells| cells.folded(&mut fold)))
    }

    /// The cells of `bits` bits that contain points, in code order.
    ///
    /// This is a skip scan: after the first points of a cell, it seeks the next cell. A cell with
    /// many points costs one range, however many points it has.
    ///
    /// # Errors
    /// Errors of [`grid`](AreaQuery::grid).
    pub fn occupied<'r, R: Reader>(
        self,
        reader: &'r R,
        bits: u32,
    ) -> Result<impl Scan<Item = Result<GeoCell>> + use<'r, 'q, R, K, A>> {
        Ok(scan(InCells::open(self.walk(reader), bits)?, InCells::occupied))
    }

    /// The points, the nearest to `from` first. For the farthest points first, give the
    /// [antipode](LatLng::antipode) of the position. For a minimum distance, query an area from
    /// which a circle around `from` is subtracted; see [`Area::difference`].
    ///
    /// # Errors
    /// Errors of [`points`](AreaQuery::points).
    pub fn by_distance<'r, R: Reader>(
        self,
        reader: &'r R,
        from: LatLng,
    ) -> Result<impl Scan<Item = Result<NearestPoint<R::Bytes<'r>, K>>> + use<'r, 'q, R, K, A>>
    {
        Ok(scan(self.nearest(reader, from, None), Nearest::step))
    }

    fn nearest<R: Reader>(
        self,
        reader: &R,
        from: LatLng,
        after: Option<Rank>,
    ) -> Nearest<'_, 'q, R, K, NearPoints<A>> {
        Nearest::new(reader, &self.space, from, NearPoints(self.area), self.only, after)
    }

    /// A page of at most `limit` points, the nearest to `from` first, beginning after the
    /// continuation `after`.
    ///
    /// The continuation holds the distance and the key of the last point. A page reads the cells of
    /// its own points, and the cells that are crossed by the circle around `from` through the last
    /// point of the previous page. After n points, this takes about 2 √n reads and 18 √n keys. For
    /// many pages in one program, keep the iterator of [`by_distance`](AreaQuery::by_distance): it
    /// reads each cell once.
    ///
    /// # Errors
    /// Errors of [`page`](AreaQuery::page).
    pub fn page_by_distance<'r, R: Reader>(
        self,
        reader: &'r R,
        from: LatLng,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<NearestPoint<R::Bytes<'r>, K>>> {
        let query = self.name().child(&(self.space.prefix(), from.latitude(), from.longitude()));
        nearest::page(&query, limit, after, |after| self.nearest(reader, from, after))
    }

    /// A page of at most `limit` points in code order, beginning after the continuation `after`.
    ///
    /// A continuation belongs to the index, the group and the [box around the area](Area::bounds).
    /// The number of ranges may differ from page to page. A page begins after the last key of the
    /// previous page. So it reads no returned point again, however many points share a code.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a continuation of another query; errors of
    /// [`points`](AreaQuery::points).
    pub fn page<'r, R: Reader>(
        self,
        reader: &'r R,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<Located<R::Bytes<'r>, K, LatLng>>> {
        let (query, space) = (self.name(), self.space.clone());
        let walk = |last: Option<(u64, &[u8])>| Ok(Self::scan(self.walk_after(reader, last)));
        page(&query, (&space, 1), limit, after, walk)
    }
}

impl<'q, K: RecordKey, A: Area> AreaQuery<'q, K, A> {
    /// The same page as [`page`](AreaQuery::page) returns, with the records of its points. A record
    /// is `None` if it does not exist, because the index is deferred or damaged. With a deferred
    /// index, a record may have another position by now than its point in the page.
    ///
    /// In addition, costs one get per point, in one round trip.
    ///
    /// # Errors
    /// Errors of [`page`](AreaQuery::page); [`Error::InvalidArgument`] for a table that the index
    /// does not belong to; [`Error::At`] for a record that does not decode.
    pub fn records<'r, R: Reader, V, C: Codec<V>>(
        self,
        reader: &'r R,
        table: &Table<K, V, C>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<(Located<R::Bytes<'r>, K, LatLng>, Option<V>)>> {
        table.refuse_unless_attached(&self.index)?;
        let page = self.page(reader, limit, after)?;
        with_records(reader, table, page, Located::record_key)
    }

    /// The same page as [`page_by_distance`](AreaQuery::page_by_distance) returns, with the records
    /// of its points, as in [`records`](AreaQuery::records).
    ///
    /// # Errors
    /// Errors of [`page_by_distance`](AreaQuery::page_by_distance) and of
    /// [`records`](AreaQuery::records).
    pub fn records_by_distance<'r, R: Reader, V, C: Codec<V>>(
        self,
        reader: &'r R,
        from: LatLng,
        table: &Table<K, V, C>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<(NearestPoint<R::Bytes<'r>, K>, Option<V>)>> {
        table.refuse_unless_attached(&self.index)?;
        let page = self.page_by_distance(reader, from, limit, after)?;
        with_records(reader, table, page, NearestPoint::record_key)
    }
}

/// The items of a page, each with its record.
fn with_records<T, K: RecordKey, V, C: Codec<V>>(
    reader: &impl Reader,
    table: &Table<K, V, C>,
    Page { items, next }: Page<T>,
    key: impl Fn(&T) -> Result<K>,
) -> Result<Page<(T, Option<V>)>> {
    let keys: Vec<K> = items.iter().map(key).collect::<Result<_>>()?;
    let records = match keys.as_slice() {
        [] => Vec::new(),
        keys => table.get_many(reader, keys)?,
    };
    Ok(Page { items: items.into_iter().zip(records).collect(), next })
}

/// Counts the results.
pub(super) fn count<P>(mut found: impl Iterator<Item = Result<P>>) -> Result<u64> {
    let mut count = 0;
    found.try_for_each(|found| found.map(|_| count += 1))?;
    Ok(count)
}
