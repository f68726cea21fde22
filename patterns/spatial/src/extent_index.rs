//! An index of the extents of records.

use std::fmt;
use std::marker::PhantomData;

use keyloom::{Reader, Result, Subspace};
use keyloom_kit::parts::{AnyParts, PackAs};
use keyloom_kit::{RecordKey, Scan};
use keyloom_tables::index::Index;
use keyloom_tables::stands_on_index;

use super::area::BoundingBox;
use super::extent_query::ExtentQuery;
use super::group::{Group, SpatialGroup, entries, shape};
use super::nearest::NearestExtent;
use super::position::LatLng;
use super::shape::Shape;
use super::xz::{Wanted, code};

/// An index of the records of a [`Table`](keyloom_tables::Table) by their extents. A query finds,
/// for example, the extents that overlap a box, a circle or a polygon.
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
/// The entries have the layout of an [`Index`] with the code as the part, and cover the edges, in
/// degrees. In an index that is [`grouped`](ExtentIndex::grouped), the parts of the group come
/// before the code; `G` are their [types](keyloom_tables::parts).
///
/// The sphere is an element. It is divided into four quarters, each quarter into four, and so on,
/// 27 times; each quarter is an element. Each element is **enlarged** to twice its width and
/// height, to the north and to the east. An element holds the extents whose south-western corner is
/// in the element, and that end in the enlarged element. So the level of an extent depends on its
/// size, not on the edges that it crosses: in one direction, its enlarged element is less than four
/// times as large as the extent. To the east, elements continue across the antimeridian.
///
/// ```text
///  +-------+-------+
///  |       | ####  |    The element in the south-west, enlarged to the whole picture,
///  |     ##|#####  |    holds the extent: its corner is in the element. None of the
///  +-----##+#####--+    quarters of this element would hold it.
///  |     ##|#####  |
///  |       |       |
///  +-------+-------+
/// ```
///
/// The code identifies the element. Elements are numbered so that each element comes before its
/// quarters: 0 is the sphere, and an element and all elements below it are one run of codes. With
/// 27 levels, a code takes 7 bytes in a key. The smallest elements are 0.3 m by 0.15 m. A smaller
/// extent, such as a point, is in one of the smallest elements.
///
/// # Invariants
///
/// * If the function returns an extent for a record, the record has one entry in each of its
///   groups, or one entry if the index is not grouped. Otherwise it has none.
/// * The code of the entry is the code of the smallest element that holds the extent. The entry
///   covers the extent.
///
/// # Exactness
///
/// Queries compare the stored edges, so they find exactly the extents that overlap, as defined by
/// [`Shape::overlaps`], or that are inside, as defined by [`Shape::contains_box`]: edges belong to
/// a box, ±180 degrees are one meridian, and a pole has all longitudes. An extent may be a point, a
/// line, or the whole sphere. Its edges run along parallels and meridians.
///
/// * A [`BoundingBox`] is compared by the numbers of the edges.
/// * A [`Circle`](super::Circle) overlaps an extent if the nearest position of the extent is within
///   the radius, and contains it if the farthest one is. [`BoundingBox::distance`] is the distance
///   to the nearest position.
/// * The edges of a [`Polygon`](super::Polygon) are straight lines in degrees, like the edges of an
///   extent. They are compared without rounding.
///
/// # Cost
///
/// | operation | cost |
/// |---|---|
/// | put of a record | 1 key written if it is new, or if its extent changes within its element; 2 if the element changes; 0 if the extent is unchanged |
/// | [`overlapping`](ExtentIndex::overlapping), [`containing`](ExtentIndex::containing), [`containing_box`](ExtentIndex::containing_box), [`inside`](ExtentIndex::inside) | plans at most the given number of ranges, by default 16; also reads some keys that do not match, and on a local store begins another range after 8 of them in a row; a circle or a polygon reads about the keys of its own area, not of its bounding box |
/// | [`nearest`](ExtentIndex::nearest), [`by_distance`](ExtentQuery::by_distance) | reads of up to 17 keys, in the order of their least distance: about 30 reads and 140 keys for the ten nearest of 100,000 extents of 10 m to 1,000 km, 60 reads and 360 keys for 100, 240 reads and 1,700 keys for 1,000; on a remote store several reads per round trip; memory for extents that were read but are farther away |
/// | [`page_by_distance`](ExtentQuery::page_by_distance) | the same for one page, and the elements that the circle through its beginning crosses: 60 reads and 370 keys after 100 of these extents, 160 reads and 1,060 keys after 1,000 |
/// | any of these in a [`group`](ExtentIndex::group) | the same, as if the other groups did not exist |
/// | [`check`](keyloom_tables::Maintained::check), [`repair`](keyloom_tables::Maintained::repair) | see [`derived`](keyloom_tables::derived) |
///
/// **Large extents are read by every query near them**, 1 key each: only the stored edges show
/// whether an extent of the size of a continent overlaps. An extent in an element of level `n` is
/// read by the queries in about `4 / 4^n` of the sphere. Extents wider than 180 degrees of
/// longitude or higher than 90 of latitude, and some of half that size, are in the top five
/// elements, on levels 0 and 1. Nearly every query reads each of these extents. If most extents are
/// that large, an index is useless.
///
/// The first extent by distance costs at least the keys that a query for the extents that contain
/// the position reads: each of them may be the nearest. A search also reads one element of each
/// size around the position. Many extents of about one size at one place share one code, and the
/// search reads all of them before it returns the first of them.
///
/// A query that reaches a pole also reads the extents along the pole at all longitudes, so it reads
/// more keys that do not match. The nearest extent to a pole takes about 120 reads and 500 to 750
/// keys of the 100,000.
///
/// # When not to use it
///
/// For points: a [`PointIndex`](super::PointIndex) also counts them in a grid. For the exact
/// borders of records: the index has only their bounding boxes. For an area made of
/// [two others](super::Combined), which does not define whether it overlaps a box: query one of the
/// two, and check each result.
///
/// # Source
///
/// C. Böhm, G. Klump and H.-P. Kriegel, *XZ-Ordering: A Space-Filling Curve for Objects with
/// Spatial Extension* (SSD 1999). In the paper, a cell of the curve counts as inside the
/// query only if the cell, enlarged to twice its size, is inside. Here the cell itself is compared:
/// it contains the south-western corners of all extents that are stored under the cell.
pub struct ExtentIndex<K, V, G = ()> {
    index: Index<K, V, AnyParts>,
    group: PhantomData<fn() -> G>,
}

impl<K, V, G> Clone for ExtentIndex<K, V, G> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), group: PhantomData }
    }
}

impl<K, V, G> fmt::Debug for ExtentIndex<K, V, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExtentIndex").field(&self.index).finish()
    }
}

impl<K: RecordKey, V, G: 'static> ExtentIndex<K, V, G> {
    /// An index in `space` whose entries begin with the [`Group`] of each extent. A query names one
    /// [`group`](ExtentIndex::group) and reads only the entries of that group; see
    /// [`PointIndex::grouped`](super::PointIndex::grouped).
    ///
    /// `function` returns the group and the extent of a record. For a record in several groups, it
    /// returns a collection of the groups, and the extent. Nothing else may be in `space`. The
    /// errors are the same as for [`new`](ExtentIndex::new).
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::{BoundingBox, ExtentIndex, Group, LatLng};
    /// use keyloom_tables::Table;
    /// type Zone = (String, [f64; 4]);
    /// let by_extent = ExtentIndex::grouped(&Subspace::new("by_extent"), |_id, zone: &Zone| {
    ///     let [south, west, north, east] = zone.1;
    ///     Ok(Some((Group::of(&zone.0), BoundingBox::new(south, west, north, east)?)))
    /// });
    /// let zones = Table::<u32, Zone>::new(&Subspace::new("zones")).with(&by_extent);
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     zones.put(txn, &1, &("acme".into(), [48.0, 2.0, 49.0, 3.0]))?;
    ///     zones.put(txn, &2, &("globex".into(), [48.5, 2.0, 49.0, 3.0]))
    /// })?;
    /// let paris = LatLng::new(48.85, 2.35)?;
    /// let found = by_extent.group("acme").containing(paris).extents(&store.snapshot()?)?
    ///     .map(|zone| zone?.record_key())
    ///     .collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(found, [1]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn grouped<I: IntoIterator<Item = Group<G>>>(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<Option<(I, BoundingBox)>> + Send + Sync + 'static,
    ) -> Self
    where
        V: 'static,
    {
        let entries = move |key: &K, value: &V| {
            let entries = function(key, value)?.map(|(groups, extent)| {
                let edges = (extent.south(), extent.west(), extent.north(), extent.east());
                entries(groups, &code(&extent)).covering(edges)
            });
            Ok(entries.unwrap_or_default())
        };
        Self { index: Index::try_new(space, entries), group: PhantomData }
    }

    /// The extents of the group with these leading parts. All of the parts must be given; only the
    /// entries of this group are read.
    pub fn group(&self, parts: impl PackAs<G>) -> SpatialGroup<Self> {
        SpatialGroup::new(self, self.index.space().child(&parts))
    }
}

impl<K: RecordKey, V> ExtentIndex<K, V> {
    /// An index in `space` of the extents that `function` returns. A record for which it returns
    /// `None` is not in the index. Nothing else may be in `space`.
    ///
    /// If the function returns an error, such as an error of [`BoundingBox::new`], the put fails.
    /// Existing records for which the function fails are not in the index.
    pub fn new(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<Option<BoundingBox>> + Send + Sync + 'static,
    ) -> Self
    where
        V: 'static,
    {
        Self::grouped(space, move |key, value| {
            Ok(function(key, value)?.map(|extent| (Group::of(()), extent)))
        })
    }

    /// A query for the extents that have a position in common with `area`: a [`BoundingBox`], a
    /// [`Circle`](super::Circle), a [`Polygon`](super::Polygon) or another [`Shape`]; see the
    /// [exactness](ExtentIndex#exactness).
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::{BoundingBox, Circle, ExtentIndex, LatLng};
    /// use keyloom_tables::Table;
    /// let by_extent = ExtentIndex::new(&Subspace::new("by_extent"), |_id, south: &f64| {
    ///     BoundingBox::new(*south, 10.0, *south + 1.0, 11.0).map(Some)
    /// });
    /// let table = Table::<u32, f64>::new(&Subspace::new("table")).with(&by_extent);
    /// let store = Memory::new();
    /// store.transact(|txn| (1..=9).try_for_each(|id| table.put(txn, &id, &f64::from(id))))?;
    /// // From 2.5 to 5.5 degrees north, on the western edge of the extents.
    /// let circle = Circle::new(LatLng::new(4.0, 10.0)?, 166_800.0)?;
    /// assert_eq!(by_extent.overlapping(circle).count(&store.snapshot()?)?, 4);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn overlapping<'q, A: Shape>(&self, area: A) -> ExtentQuery<'q, K, A> {
        self.group(()).overlapping(area)
    }

    /// A query for the extents that contain a position, edges included.
    pub fn containing<'q>(&self, position: LatLng) -> ExtentQuery<'q, K> {
        self.group(()).containing(position)
    }

    /// A query for the extents that contain every position of `area`. Reads the same keys as a
    /// query for one position of `area`.
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
    /// let area = BoundingBox::new(0.2, 0.2, 0.4, 3.5)?;
    /// assert_eq!(by_extent.containing_box(area).count(&store.snapshot()?)?, 6);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn containing_box<'q>(&self, area: BoundingBox) -> ExtentQuery<'q, K> {
        self.group(()).containing_box(area)
    }

    /// A query for the extents that are completely in `area`: a [`BoundingBox`], a
    /// [`Circle`](super::Circle), a [`Polygon`](super::Polygon) or another [`Shape`].
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
    pub fn inside<'q, A: Shape>(&self, area: A) -> ExtentQuery<'q, K, A> {
        self.group(()).inside(area)
    }

    /// All extents, the nearest to `from` first: those that contain `from`, and then the others by
    /// the [distance](BoundingBox::distance) of their nearest position. The iterator reads on
    /// demand, so take only as many extents as needed.
    ///
    /// For a part of the extents, or for pages, use [`overlapping`](ExtentIndex::overlapping) with
    /// a shape or with [`BoundingBox::WORLD`], and then [`by_distance`](ExtentQuery::by_distance)
    /// or [`page_by_distance`](ExtentQuery::page_by_distance).
    ///
    /// # Errors
    /// Any error of the store, here or from the iterator. The iterator also returns
    /// [`Error::At`](keyloom::Error::At) for a malformed entry.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::{BoundingBox, ExtentIndex, LatLng};
    /// use keyloom_tables::Table;
    /// let by_extent = ExtentIndex::new(&Subspace::new("by_extent"), |_id, west: &f64| {
    ///     BoundingBox::new(0.0, *west, 1.0, *west + 0.5).map(Some)
    /// });
    /// let table = Table::<u32, f64>::new(&Subspace::new("table")).with(&by_extent);
    /// let store = Memory::new();
    /// store.transact(|txn| (1..=9).try_for_each(|id| table.put(txn, &id, &f64::from(id))))?;
    /// let snapshot = store.snapshot()?;
    /// let nearest = by_extent.nearest(&snapshot, LatLng::new(0.5, 4.2)?)?
    ///     .take(2)
    ///     .map(|extent| extent.and_then(|extent| Ok((extent.record_key()?, extent.distance()))))
    ///     .collect::<Result<Vec<_>, _>>()?;
    /// // The extent 4 contains the position. The extent 3 ends 0.7 degrees to the west.
    /// assert_eq!(nearest[0], (4, 0.0));
    /// assert_eq!((nearest[1].0, nearest[1].1.round()), (3, 77_834.0));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn nearest<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: LatLng,
    ) -> Result<impl Scan<Item = Result<NearestExtent<R::Bytes<'r>, K>>> + use<'r, R, K, V>> {
        self.group(()).nearest(reader, from)
    }
}

stands_on_index!(ExtentIndex<G>; |_| "extents", parts |_| shape::<G>());

/// The extents of one group.
impl<K: RecordKey, V, G> SpatialGroup<ExtentIndex<K, V, G>> {
    /// A query for the extents of the group that overlap `area`; see [`ExtentIndex::overlapping`].
    pub fn overlapping<'q, A: Shape>(&self, area: A) -> ExtentQuery<'q, K, A> {
        ExtentQuery::new(&self.space, area, Wanted::Overlapping)
    }

    /// A query for the extents of the group that contain a position, edges included.
    pub fn containing<'q>(&self, position: LatLng) -> ExtentQuery<'q, K> {
        self.overlapping(BoundingBox::of_position(&position))
    }

    /// A query for the extents of the group that contain every position of `area`; see
    /// [`ExtentIndex::containing_box`].
    pub fn containing_box<'q>(&self, area: BoundingBox) -> ExtentQuery<'q, K> {
        ExtentQuery::new(&self.space, area, Wanted::Containing)
    }

    /// A query for the extents of the group that are completely in `area`; see
    /// [`ExtentIndex::inside`].
    pub fn inside<'q, A: Shape>(&self, area: A) -> ExtentQuery<'q, K, A> {
        ExtentQuery::new(&self.space, area, Wanted::Inside)
    }

    /// All extents of the group, the nearest to `from` first. Reads on demand; see
    /// [`ExtentIndex::nearest`].
    ///
    /// # Errors
    /// Errors of [`ExtentIndex::nearest`].
    pub fn nearest<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: LatLng,
    ) -> Result<impl Scan<Item = Result<NearestExtent<R::Bytes<'r>, K>>> + use<'r, R, K, V, G>>
    {
        self.overlapping(BoundingBox::WORLD).by_distance(reader, from)
    }
}
