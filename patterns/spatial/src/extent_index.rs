//! An index of the extents of records.

use std::fmt;

use keyloom::{Result, Subspace};

use super::area::BoundingBox;
use super::extent_query::ExtentQuery;
use super::position::LatLng;
use super::xz::{Wanted, code};
use keyloom_tables::index::{Index, IndexEntries, entry};
use keyloom_tables::kit::stands_on_index;
use keyloom_tables::parts::AnyParts;
use keyloom_tables::table::RecordKey;

/// An index of the records of a [`Table`](keyloom_tables::Table) by what they extend over: which of
/// them does a box touch?
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_spatial::{BoundingBox, ExtentIndex, LatLng};
/// use keyloom_tables::Table;
/// type Country = (String, [f64; 4]);
/// let by_extent = ExtentIndex::new(&Subspace::new("by_extent"), |_id, (_, edges): &Country| {
///     let [south, west, north, east] = *edges;
///     BoundingBox::new(south, west, north, east).map(Some)
/// });
/// let countries = Table::<u32, Country>::new(&Subspace::new("countries")).with(&by_extent);
/// let store = Memory::new();
/// store.transact(|txn| {
///     countries.put(txn, &1, &("France".into(), [41.3, -5.2, 51.1, 9.6]))?;
///     // Across the antimeridian.
///     countries.put(txn, &2, &("Fiji".into(), [-21.0, 176.0, -12.4, -178.2]))
/// })?;
/// let snapshot = store.snapshot()?;
/// let seen = BoundingBox::new(-20.0, 179.0, -10.0, 180.0)?;
/// let found = by_extent.overlapping(seen).extents(&snapshot)?
///     .map(|extent| extent?.record_key())
///     .collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(found, [2]);
/// let lyon = LatLng::new(45.76, 4.84)?;
/// assert_eq!(by_extent.containing(lyon).count(&snapshot)?, 1);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Layout
///
/// | key | value |
/// |---|---|
/// | subspace, code, record key as one element | header, edges: south, west, north, east |
///
/// An entry of an [`Index`] whose part is the code and which covers the edges in degrees.
///
/// The sphere is an element; it has four quarters, which have four each, and so on, 27 times. An
/// element holds those extents that begin in it with their south-western corner and end in it or in
/// what is as large to the north and to the east of it: it is **enlarged** to twice its width and
/// height. So an extent comes no higher than its size makes it, whatever edges it lies across: its
/// enlarged element is less than four times as large as it, in one direction. To the east elements
/// go on across the antimeridian.
///
/// ```text
///  +-------+-------+
///  |       | ####  |    The element in the south-west, enlarged to the whole picture, holds the extent: its corner
///  |     ##|#####  |    is there. None of the quarters of this element would.
///  +-----##+#####--+
///  |     ##|#####  |
///  |       |       |
///  +-------+-------+
/// ```
///
/// The code says which element it is. Elements are counted so that each comes before its quarters:
/// 0 is the sphere, and an element with all that is below it is one stretch of codes. Those of 27
/// levels take 7 bytes in a key; the smallest elements are 0.3 m by 0.15 m, and an extent that is
/// smaller, such as a point, is in one of these.
///
/// # Invariants
///
/// * A record has one entry if the function gives an extent for it, and none if not.
/// * The entry stands under the smallest element that holds the extent, which it covers.
///
/// # Exactness
///
/// Queries compare the edges that are stored, so they find exactly what overlaps, by
/// [`BoundingBox::overlaps`]: edges belong to a box, ±180 degrees are one meridian, and a pole has
/// all longitudes. An extent may be a point, a line, or the whole sphere.
///
/// # Cost
///
/// | operation | cost |
/// |---|---|
/// | put of a record | 1 key written where it is new, or its extent changes within its element; 2 when the element changes; 0 when it stays |
/// | [`overlapping`](ExtentIndex::overlapping), [`containing`](ExtentIndex::containing), [`inside`](ExtentIndex::inside) | as many ranges as the query is told, 16 at most else, and some keys read in vain |
/// | [`check`](keyloom_tables::Maintained::check), [`repair`](keyloom_tables::Maintained::repair) | see [`derived`](keyloom_tables::derived) |
///
/// **Large extents are read by every query near them**, as nothing but a look at its edges tells
/// whether an extent of the size of a continent overlaps: 1 key each. An extent under an element of
/// level `n` is read by the queries in about `4 / 4^n` of the sphere. Those wider than 180 degrees
/// of longitude or higher than 90 of latitude, and some of half that size, are in the uppermost
/// five elements, of levels 0 and 1: nearly every query reads each of them. Where most extents are
/// so large, an index is of no use.
///
/// A query that reaches a pole also looks through what lies along it, all around: it reads more in
/// vain than others do.
///
/// # When not to use it
///
/// For points, which a [`PointIndex`](super::PointIndex) finds within circles and polygons as well,
/// and nearest first. For overlap with a circle or a polygon: ask for its bounding box, and look at
/// what comes; an [`Area`](super::Area) tells which positions are in it, and not whether any of a
/// box is.
///
/// # Source
///
/// C. Böhm, G. Klump and H.-P. Kriegel, *XZ-Ordering: A Space-Filling Curve for Objects with
/// Spatial Extension* (SSD 1999). There an element counts as found where the enlarged one is in the
/// query. Here it is enough that the element itself is, since the south-western corners are in it.
pub struct ExtentIndex<K, V> {
    index: Index<K, V, AnyParts>,
}

impl<K, V> Clone for ExtentIndex<K, V> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone() }
    }
}

impl<K, V> fmt::Debug for ExtentIndex<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExtentIndex").field(&self.index).finish()
    }
}

impl<K: RecordKey, V> ExtentIndex<K, V> {
    /// An index in `space`, of the extents that `function` gives; a record for which it gives none
    /// is not in the index. Nothing else may be in `space`.
    ///
    /// An error of the function, such as that of [`BoundingBox::new`], refuses the put. Records
    /// that were in the table before, and for which it fails, are not in the index.
    pub fn new(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<Option<BoundingBox>> + Send + Sync + 'static,
    ) -> Self
    where
        V: 'static,
    {
        let entries = move |key: &K, value: &V| {
            let Some(extent) = function(key, value)? else { return Ok(IndexEntries::none()) };
            let edges = (extent.south(), extent.west(), extent.north(), extent.east());
            Ok(entry(code(&extent)).covering(edges))
        };
        Self { index: Index::try_new(space, entries).untyped() }
    }

    /// A query for the extents that have a position in common with `area`; see the
    /// [exactness](ExtentIndex#exactness).
    pub fn overlapping<'q>(&self, area: BoundingBox) -> ExtentQuery<'q, K> {
        ExtentQuery::new(self.index.space(), area, Wanted::Overlapping)
    }

    /// A query for the extents that contain a position, on their edges too.
    pub fn containing<'q>(&self, position: LatLng) -> ExtentQuery<'q, K> {
        let (latitude, longitude) = (position.latitude(), position.longitude());
        self.overlapping(BoundingBox::stored([latitude, longitude, latitude, longitude]))
    }

    /// A query for the extents of which every position is in `area`.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::{BoundingBox, ExtentIndex};
    /// use keyloom_tables::Table;
    /// let by_extent = ExtentIndex::new(&Subspace::new("by_extent"), |_id, width: &f64| {
    ///     BoundingBox::new(0.0, 0.0, 1.0, *width).map(Some)
    /// });
    /// let table = Table::<u32, f64>::new(&Subspace::new("table")).with(&by_extent);
    /// let store = Memory::new();
    /// store.transact(|txn| (1..=9).try_for_each(|id| table.put(txn, &id, &f64::from(id))))?;
    /// let area = BoundingBox::new(-5.0, -5.0, 5.0, 5.0)?;
    /// assert_eq!(by_extent.inside(area).count(&store.snapshot()?)?, 5);
    /// assert_eq!(by_extent.overlapping(area).count(&store.snapshot()?)?, 9);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn inside<'q>(&self, area: BoundingBox) -> ExtentQuery<'q, K> {
        ExtentQuery::new(self.index.space(), area, Wanted::Inside)
    }
}

stands_on_index!(ExtentIndex; |_| "extents");
