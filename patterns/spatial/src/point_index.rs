//! An index of the positions of records.

use std::fmt;
use std::marker::PhantomData;

use keyloom::{Order, Pack, Reader, Result, Subspace};
use keyloom_kit::parts::{AnyParts, PackAs};
use keyloom_kit::{RecordKey, Scan, within};
use keyloom_tables::index::{Found, Index};
use keyloom_tables::stands_on_index;

use super::area::Area;
use super::cell::{GeoCell, code};
use super::group::{Group, SpatialGroup, entries, shape};
use super::located::Located;
use super::nearest::NearestPoint;
use super::position::LatLng;
use super::query::AreaQuery;

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
///
/// `G` are the [types](keyloom_tables::parts) of the leading parts, if the index is
/// [`grouped`](PointIndex::grouped). `by_place` above has no leading parts, so its type is
/// `PointIndex<u32, City>`.
pub struct PointIndex<K, V, G = ()> {
    index: Index<K, V, AnyParts>,
    group: PhantomData<fn() -> G>,
}

impl<K, V, G> Clone for PointIndex<K, V, G> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), group: PhantomData }
    }
}

impl<K, V, G> fmt::Debug for PointIndex<K, V, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PointIndex").field(&self.index).finish()
    }
}

impl<K: RecordKey, V, G: 'static> PointIndex<K, V, G> {
    /// An index in `space` whose entries begin with the [`Group`] of each point, such as the tenant
    /// of a record, or its tenant and its category. A query names one [`group`](PointIndex::group)
    /// and reads only the entries of that group, however many points other groups have.
    ///
    /// `function` returns the group and the position of a record. For a record in several groups,
    /// it returns a collection of these, such as a [`Vec`]; the record then has one entry in each
    /// group. Like in [`new`](PointIndex::new), the result is an [`Option`], or a collection for a
    /// record at several positions. Nothing else may be in `space`. The errors are the same as for
    /// [`new`](PointIndex::new).
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::{BoundingBox, Group, LatLng, PointIndex};
    /// use keyloom_tables::Table;
    /// type Van = (String, f64, f64);
    /// let by_place = PointIndex::grouped(&Subspace::new("by_place"), |_id, van: &Van| {
    ///     Ok(Some((Group::of(&van.0), LatLng::new(van.1, van.2)?)))
    /// });
    /// let vans = Table::<u32, Van>::new(&Subspace::new("vans")).with(&by_place);
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     vans.put(txn, &1, &("acme".into(), 48.86, 2.35))?;
    ///     vans.put(txn, &2, &("globex".into(), 48.85, 2.35))?;
    ///     vans.put(txn, &3, &("acme".into(), 45.76, 4.84))
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let paris = LatLng::new(48.85, 2.35)?;
    /// let of_acme = by_place.group("acme");
    /// let nearest = of_acme.nearest(&snapshot, paris)?
    ///     .map(|van| van?.record_key())
    ///     .collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(nearest, [1, 3]);
    /// let around_paris = BoundingBox::new(48.0, 2.0, 49.0, 3.0)?;
    /// assert_eq!(of_acme.within(around_paris).count(&snapshot)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// A query without a group does not compile:
    ///
    /// ```compile_fail,E0599
    /// # use keyloom::Subspace;
    /// # use keyloom_spatial::{GeoCell, Group, LatLng, PointIndex};
    /// # type Van = (String, f64, f64);
    /// let by_place = PointIndex::grouped(&Subspace::new("by_place"), |_: &u32, van: &Van| {
    ///     Ok(Some((Group::of(&van.0), LatLng::new(van.1, van.2)?)))
    /// });
    /// let everywhere = by_place.within(GeoCell::WORLD); // not `by_place.group("acme").within(..)`
    /// ```
    pub fn grouped<I, P>(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<P> + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator<Item = Group<G>>,
        P: IntoIterator<Item = (I, LatLng)>,
        V: 'static,
    {
        Self::grouped_covering(space, move |key, value| {
            let points = function(key, value)?.into_iter();
            Ok(points.map(|(groups, position)| (groups, position, ())))
        })
    }

    /// Like [`grouped`](PointIndex::grouped), with a copy of some fields in each entry, as in
    /// [`covering`](PointIndex::covering).
    pub fn grouped_covering<I, P, F>(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<P> + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator<Item = Group<G>>,
        P: IntoIterator<Item = (I, LatLng, F)>,
        F: Pack,
        V: 'static,
    {
        let entries = move |key: &K, value: &V| {
            let points = function(key, value)?.into_iter().map(|(groups, position, fields)| {
                // The position is in the key, so that points at one position are adjacent: a search
                // by distance needs to read one of these points to know the distance of all of
                // them. So two positions of one record in one cell of the curve are two keys.
                let parts = (code(&position), position.latitude(), position.longitude());
                entries(groups, &parts).covering(fields)
            });
            Ok(points.collect())
        };
        Self { index: Index::try_new(space, entries), group: PhantomData }
    }

    /// The points of the group with these leading parts. All of the parts must be given; only the
    /// entries of this group are read.
    ///
    /// A group without points is empty. A call with only some of the parts does not compile:
    ///
    /// ```compile_fail,E0277
    /// # use keyloom::Subspace;
    /// # use keyloom_spatial::{Group, LatLng, PointIndex};
    /// let by_place = PointIndex::grouped(&Subspace::new("by_place"), |tenant: &String, category: &u8| {
    ///     Ok(Some((Group::of((tenant, *category)), LatLng::new(0.0, 0.0)?)))
    /// });
    /// let group = by_place.group("acme"); // not `("acme", 7)`
    /// ```
    ///
    /// [`as_index`](PointIndex::as_index) lists the groups, by a skip scan over its leading parts:
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::{Group, LatLng, PointIndex};
    /// use keyloom_tables::Table;
    /// let by_place = PointIndex::grouped(&Subspace::new("by_place"), |_: &u32, tenant: &String| {
    ///     Ok(Some((Group::of(tenant), LatLng::new(0.0, 0.0)?)))
    /// });
    /// let vans = Table::<u32, String>::new(&Subspace::new("vans")).with(&by_place);
    /// let store = Memory::new();
    /// store.transact(|txn| vans.put_many(txn, [(1, "acme".into()), (2, "globex".into())]))?;
    /// let tenants = by_place.as_index().grouped_by(1)
    ///     .values::<_, String, _>(&store.snapshot()?, ..)?
    ///     .collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(tenants, ["acme", "globex"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn group(&self, parts: impl PackAs<G>) -> SpatialGroup<Self> {
        SpatialGroup::new(self, self.index.space().child(&parts))
    }
}

impl<K: RecordKey, V> PointIndex<K, V> {
    /// An index in `space` of the positions that `function` returns: an [`Option`], or a collection
    /// such as a [`Vec`] for a record at several positions. A record without a position is not in
    /// the index. Nothing else may be in `space`.
    ///
    /// A record at several positions has an entry for each. Every query finds each position that
    /// satisfies it, so the same record can be found several times, and `count` counts positions.
    /// Equal positions are one entry.
    ///
    /// If the function returns an error, such as an error of [`LatLng::new`], the put fails.
    /// Existing records for which the function fails are not in the index.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::{Circle, LatLng, PointIndex};
    /// use keyloom_tables::Table;
    /// // The shops of a chain.
    /// let by_shop = PointIndex::new(&Subspace::new("by_shop"), |_id, shops: &Vec<(f64, f64)>| {
    ///     let positions = shops.iter().map(|(latitude, longitude)| LatLng::new(*latitude, *longitude));
    ///     positions.collect::<keyloom::Result<Vec<LatLng>>>()
    /// });
    /// let chains = Table::<u32, Vec<(f64, f64)>>::new(&Subspace::new("chains")).with(&by_shop);
    /// let store = Memory::new();
    /// let shops = vec![(48.85, 2.35), (48.87, 2.33), (45.76, 4.84)];
    /// store.transact(|txn| chains.put(txn, &1, &shops))?;
    /// let snapshot = store.snapshot()?;
    /// let paris = LatLng::new(48.852, 2.349)?;
    /// let near = by_shop.within(Circle::new(paris, 5_000.0)?);
    /// assert_eq!(near.count(&snapshot)?, 2);
    /// let nearest = by_shop.nearest(&snapshot, paris)?.next().expect("there are shops")?;
    /// assert_eq!((nearest.record_key()?, nearest.position().latitude()), (1, 48.85));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn new<P>(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<P> + Send + Sync + 'static,
    ) -> Self
    where
        P: IntoIterator<Item = LatLng>,
        V: 'static,
    {
        Self::grouped(space, move |key, value| {
            let positions = function(key, value)?.into_iter();
            Ok(positions.map(|position| (Group::of(()), position)))
        })
    }

    /// Like [`new`](PointIndex::new), with a copy of some fields in each entry (a covering index).
    /// A query that needs only these fields reads no record: [`covered`](Located::covered) returns
    /// them. If one of these fields changes, the entry is rewritten: one key. If a record has equal
    /// positions with different fields, the entry has the smallest fields.
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
    pub fn covering<P, F>(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<P> + Send + Sync + 'static,
    ) -> Self
    where
        P: IntoIterator<Item = (LatLng, F)>,
        F: Pack,
        V: 'static,
    {
        Self::grouped_covering(space, move |key, value| {
            let points = function(key, value)?.into_iter();
            Ok(points.map(|(position, fields)| (Group::of(()), position, fields)))
        })
    }

    /// A query for the records in `area`: a [`Circle`](super::Circle), a
    /// [`BoundingBox`](super::BoundingBox), a [`Polygon`](super::Polygon), or an area type of your
    /// own.
    pub fn within<'q, A: Area>(&self, area: A) -> AreaQuery<'q, K, A> {
        self.group(()).within(area)
    }

    /// All records, the nearest to `from` first. The iterator reads on demand, so take only as many
    /// records as needed.
    ///
    /// For a part of the records, or for pages, use [`within`](PointIndex::within) with an area or
    /// with [`GeoCell::WORLD`], and then [`by_distance`](AreaQuery::by_distance) or
    /// [`page_by_distance`](AreaQuery::page_by_distance). For the records of a tenant or a
    /// category, use an index that is [`grouped`](PointIndex::grouped): a filter on the records
    /// reads all points that are nearer.
    ///
    /// # Errors
    /// Any error of the store, here or from the iterator. The iterator also returns
    /// [`Error::At`](keyloom::Error::At) for a malformed entry.
    pub fn nearest<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: LatLng,
    ) -> Result<impl Scan<Item = Result<NearestPoint<R::Bytes<'r>, K>>> + use<'r, R, K, V>> {
        self.group(()).nearest(reader, from)
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
        self.group(()).in_cell(reader, cell)
    }
}

// In format 1, the position was in the value.
stands_on_index!(PointIndex<G>; |_| "points", format 2, parts |_| shape::<G>());

/// The points of one group.
impl<K: RecordKey, V, G> SpatialGroup<PointIndex<K, V, G>> {
    /// A query for the points of the group in `area`; see [`PointIndex::within`].
    pub fn within<'q, A: Area>(&self, area: A) -> AreaQuery<'q, K, A> {
        AreaQuery::new(self.index.index.space(), &self.space, area)
    }

    /// All points of the group, the nearest to `from` first. Reads on demand; see
    /// [`PointIndex::nearest`].
    ///
    /// # Errors
    /// Errors of [`PointIndex::nearest`].
    pub fn nearest<'r, R: Reader>(
        &self,
        reader: &'r R,
        from: LatLng,
    ) -> Result<impl Scan<Item = Result<NearestPoint<R::Bytes<'r>, K>>> + use<'r, R, K, V, G>> {
        self.within(GeoCell::WORLD).by_distance(reader, from)
    }

    /// The points of the group in a cell, in code order. Costs one range.
    ///
    /// # Errors
    /// Errors of [`PointIndex::in_cell`].
    pub fn in_cell<'r, R: Reader>(
        &self,
        reader: &'r R,
        cell: GeoCell,
    ) -> Result<impl Iterator<Item = Result<Located<R::Bytes<'r>, K, LatLng>>> + use<'r, R, K, V, G>>
    {
        let space = self.space.clone();
        let entries = reader.range(within(cell.codes()).key_range(&space), Order::Ascending)?;
        Ok(entries.map(move |entry| Located::of(Found::new(&space, entry?)?)))
    }
}
