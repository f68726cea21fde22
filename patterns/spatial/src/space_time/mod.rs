//! An index by space and time: it finds the events in an area during a span of time.
//!
//! An event has a position and a time, and a query bounds both: the earthquakes within 300 km of a
//! place between Monday and Tuesday. Time has no end, so it is divided into *bins* of one width,
//! such as a week. In each bin a Z-order curve of three dimensions combines longitude, latitude and
//! the offset in the bin. A query visits bin after bin, and reads a few ranges of the curve in
//! each.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, width of the bins in milliseconds, number of the bin, code, record key as one element | header, latitude, longitude, milliseconds |
//!
//! ```text
//! ("quakes", "by_event", 86400000, 17569, 2419901681931848284, "ci37868143")
//!  subspace              a day     bin    code                 record key
//!     -> header, 34.4945, -118.6671667, 1517966773840
//! ```
//!
//! In an index that is [`grouped`](SpaceTimeIndex::grouped), the parts of the group come before the
//! width.
//!
//! The entries have the layout of an [`Index`]. The number of a bin is the time divided by the
//! width, rounded down, so times before 1970 are in negative bins. The code has 21 bits per
//! dimension, longitude first. The resolution is 19 m at the equator, and one two-millionth of the
//! width of a bin: 0.3 seconds for a week. This does not limit the exactness of queries: for events
//! in cells at the border, a query compares the exact values, which are stored beside the code.
//!
//! # Invariants
//!
//! * An entry exists if and only if the function of the index returns an event for an existing
//!   record. The entry has the values of that event, and their bin and code.
//! * All entries have one width. If a program declares another width, every query returns an error,
//!   because it would miss the existing entries. A query of a group compares the widths of that
//!   group. [`repair`](keyloom_tables::Maintained::repair) rewrites the entries with the new width.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | put of a record | 1 key written; also 1 deleted if the event moves to another code; 0 if it is unchanged |
//! | [`points`](SpaceTimeQuery::points), [`count`](SpaceTimeQuery::count) | 2 empty ranges; for each non-empty bin 1 key to find it, [a few](SpaceTimeQuery::in_ranges) ranges, and seeks that skip events outside the area and the times |
//! | [`by_time`](SpaceTimeQuery::by_time) | the same; the first events cost those of their bin |
//! | `points` and `count` within one bin | the same, without the key to find it |
//! | an empty bin | nothing |
//! | [`page`](SpaceTimeQuery::page) | the same, from the beginning of the page on |
//! | any of these in a [`group`](SpaceTimeIndex::group) | the same, as if the other groups did not exist |
//! | [`check`](keyloom_tables::Maintained::check), [`repair`](keyloom_tables::Maintained::repair) | see [`derived`](keyloom_tables::derived) |
//!
//! The width determines the cost. If queries span many bins, each bin costs its ranges again. If
//! queries span a small part of one bin, few bits of a code separate that part from the rest.
//! Choose bins a few times as wide as the time span of a typical query. Queries over a long time
//! and a small area are expensive: the area is searched in each slice of time. Keys read per event
//! found, with a million events all over the Earth within ten weeks:
//!
//! | circle of 300 km | bins | 4 ranges | 16 | 64 |
//! |---|---|---|---|---|
//! | 12 hours | a day | 18.1 | 7.9 | 3.0 |
//! | 12 hours | a week | 9.0 | 3.3 | 1.9 |
//! | 3 days | a day | 19.2 | 10.5 | 4.1 |
//! | 3 days | a week | 9.3 | 5.6 | 2.6 |
//! | 3 weeks | a week | 9.8 | 7.3 | 4.1 |
//!
//! # When not to use it
//!
//! * When queries bound the position and not the time: use a [`PointIndex`](super::PointIndex),
//!   which reads less, and check the time of each result.
//! * When queries bound the time and not the position: use an [`Index`] by time.
//! * For events with a duration.
//! * For tracks, whose points are meaningful only together.
//!
//! # Source
//!
//! Time bins and a curve of three dimensions: the Z3 index of GeoMesa (J. Hughes and others,
//! *GeoMesa: a distributed architecture for spatio-temporal fusion*, SPIE 2015). Here the borders
//! are exact, and empty bins are not queried.

mod query;

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::time::Duration;

use keyloom::{Error, Result, Subspace};
use keyloom_kit::RecordKey;
use keyloom_kit::parts::{AnyParts, PackAs};
use keyloom_tables::index::Index;
use keyloom_tables::stands_on_index;

use super::area::{Area, CellRelation};
use super::cell::{OnSphere, coordinates};
use super::cover::Region;
use super::curve::Morton;
use super::group::{Group, SpatialGroup, entries, shape};
use super::interval::{Interval, all_of};
use super::position::LatLng;

pub use query::SpaceTimeQuery;

/// An index of the records of a [`Table`](keyloom_tables::Table) by position and time; see the
/// [module](self).
///
/// ```
/// use std::time::Duration;
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_spatial::{Circle, LatLng, SpaceTimeIndex};
/// use keyloom_tables::Table;
/// type Quake = (f64, f64, i64);
/// const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// let by_event = SpaceTimeIndex::new(&Subspace::new("by_event"), DAY, |_id, (latitude, longitude, time): &Quake| {
///     Ok(Some((LatLng::new(*latitude, *longitude)?, *time)))
/// })?;
/// let quakes = Table::<String, Quake>::new(&Subspace::new("quakes")).with(&by_event);
/// let store = Memory::new();
/// store.transact(|txn| {
///     quakes.put(txn, &"Castaic".into(), &(34.4945, -118.6672, 1_517_966_773_840))?;
///     quakes.put(txn, &"San Marino".into(), &(34.12, -118.0873, 1_517_966_037_750))?;
///     quakes.put(txn, &"Kodiak".into(), &(55.7729, -149.145, 1_517_964_979_027))
/// })?;
/// let snapshot = store.snapshot()?;
/// let los_angeles = Circle::new(LatLng::new(34.0522, -118.2437)?, 100_000.0)?;
/// let near = by_event.within(los_angeles, 1_517_966_000_000..1_517_966_500_000).points(&snapshot)?
///     .map(|event| event?.record_key())
///     .collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(near, ["San Marino"]);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// `G` are the [types](keyloom_tables::parts) of the leading parts, if the index is
/// [`grouped`](SpaceTimeIndex::grouped).
pub struct SpaceTimeIndex<K, V, G = ()> {
    index: Index<K, V, AnyParts>,
    bins: Bins,
    group: PhantomData<fn() -> G>,
}

impl<K, V, G> Clone for SpaceTimeIndex<K, V, G> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), bins: self.bins, group: PhantomData }
    }
}

impl<K, V, G> fmt::Debug for SpaceTimeIndex<K, V, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpaceTimeIndex")
            .field("index", &self.index)
            .field("bins", &self.bins)
            .finish()
    }
}

impl<K, V, G> SpaceTimeIndex<K, V, G> {
    /// The options that the stored bytes depend on, for the definition in a schema.
    pub(crate) fn options(&self) -> String {
        format!("bins of {} ms", self.bins.width_ms)
    }
}

impl<K: RecordKey, V, G: 'static> SpaceTimeIndex<K, V, G> {
    /// An index in `space` whose entries begin with the [`Group`] of each event. A query names one
    /// [`group`](SpaceTimeIndex::group) and reads only the entries of that group; see
    /// [`PointIndex::grouped`](super::PointIndex::grouped).
    ///
    /// `function` returns the group, the position and the time of a record. For a record in several
    /// groups, it returns a collection of the groups, the position and the time. Nothing else may
    /// be in `space`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::{GeoCell, Group, LatLng, SpaceTimeIndex};
    /// use keyloom_tables::Table;
    /// type Trip = (String, f64, f64, i64);
    /// const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    /// let by_event = SpaceTimeIndex::grouped(&Subspace::new("by_event"), DAY, |_id, trip: &Trip| {
    ///     Ok(Some((Group::of(&trip.0), LatLng::new(trip.1, trip.2)?, trip.3)))
    /// })?;
    /// let trips = Table::<u32, Trip>::new(&Subspace::new("trips")).with(&by_event);
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     trips.put(txn, &1, &("acme".into(), 48.85, 2.35, 5_000))?;
    ///     trips.put(txn, &2, &("globex".into(), 48.85, 2.35, 6_000))
    /// })?;
    /// let of_acme = by_event.group("acme").within(GeoCell::WORLD, 0..9_000);
    /// assert_eq!(of_acme.count(&store.snapshot()?)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`new`](SpaceTimeIndex::new).
    pub fn grouped<I: IntoIterator<Item = Group<G>>>(
        space: &Subspace,
        width: Duration,
        function: impl Fn(&K, &V) -> Result<Option<(I, LatLng, i64)>> + Send + Sync + 'static,
    ) -> Result<Self>
    where
        V: 'static,
    {
        let bins = Bins::of_width(width)?;
        let entries = move |key: &K, value: &V| {
            let entries = function(key, value)?.map(|(groups, position, time)| {
                let parts = (bins.made_with(), bins.bin(time), bins.code(&position, time));
                let event = (position.latitude(), position.longitude(), time);
                entries(groups, &parts).covering(event)
            });
            Ok(entries.unwrap_or_default())
        };
        Ok(Self { index: Index::try_new(space, entries), bins, group: PhantomData })
    }

    /// The events of the group with these leading parts. All of the parts must be given; only the
    /// entries of this group are read.
    pub fn group(&self, parts: impl PackAs<G>) -> SpatialGroup<Self> {
        SpatialGroup::new(self, self.index.space().child(&parts))
    }
}

impl<K: RecordKey, V> SpaceTimeIndex<K, V> {
    /// An index in `space` of the positions and times that `function` returns. Times are in
    /// milliseconds since 1970. A record for which it returns `None` is not in the index. Nothing
    /// else may be in `space`.
    ///
    /// If the function returns an error, such as an error of [`LatLng::new`], the put fails.
    /// Existing records for which the function fails are not in the index.
    ///
    /// The width of the bins is part of the stored format; see the [module](self#cost) for how to
    /// choose it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a width that is not a whole number of milliseconds from 1 to
    /// [`i64::MAX`].
    pub fn new(
        space: &Subspace,
        width: Duration,
        function: impl Fn(&K, &V) -> Result<Option<(LatLng, i64)>> + Send + Sync + 'static,
    ) -> Result<Self>
    where
        V: 'static,
    {
        Self::grouped(space, width, move |key, value| {
            Ok(function(key, value)?.map(|(position, time)| (Group::of(()), position, time)))
        })
    }

    /// A query for the events in `area` at `times`, in milliseconds since 1970. The area is a
    /// [`Circle`](super::Circle), a [`BoundingBox`](super::BoundingBox), a
    /// [`Polygon`](super::Polygon), or an area type of your own.
    pub fn within<'q, A: Area>(
        &self,
        area: A,
        times: impl RangeBounds<i64>,
    ) -> SpaceTimeQuery<'q, K, A> {
        self.group(()).within(area, times)
    }
}

stands_on_index!(SpaceTimeIndex<G>; |_| "points in space and time", parts |_| shape::<G>(), options |index| index.options());

/// The events of one group.
impl<K: RecordKey, V, G> SpatialGroup<SpaceTimeIndex<K, V, G>> {
    /// A query for the events of the group in `area` at `times`; see [`SpaceTimeIndex::within`].
    pub fn within<'q, A: Area>(
        &self,
        area: A,
        times: impl RangeBounds<i64>,
    ) -> SpaceTimeQuery<'q, K, A> {
        SpaceTimeQuery::new(&self.space, self.index.bins, area, times)
    }
}

/// The number of bits of each dimension in a code.
const BITS: u32 = <u64 as Morton<3>>::BITS;
/// The last cell of a bin in the time dimension.
const LAST_CELL: u32 = (1 << BITS) - 1;
/// The number of additional bits of a coordinate on the sphere.
const MORE_BITS: u32 = u32::BITS - BITS;

/// The division of time into bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bins {
    width_ms: i64,
}

impl Bins {
    fn of_width(width: Duration) -> Result<Self> {
        let millis = width.as_millis();
        let is_whole = width.subsec_nanos().is_multiple_of(1_000_000);
        match i64::try_from(millis) {
            Ok(width_ms @ 1..) if is_whole => Ok(Self { width_ms }),
            _ => Err(Error::InvalidArgument {
                what: "the width of the time bins",
                value: format!("{width:?}"),
                why: "a bin is a whole number of milliseconds wide, from 1 to i64::MAX",
            }),
        }
    }

    /// The first and the last time of a bin.
    fn times(self, bin: i64) -> (i64, i64) {
        // The first and the last bin of all begin and end outside of 64 bits.
        let first = i128::from(bin) * i128::from(self.width_ms);
        let within = |time: i128| time.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        (within(first), within(first + i128::from(self.width_ms) - 1))
    }

    /// The first part of all entries.
    fn made_with(self) -> u64 {
        self.width_ms.unsigned_abs()
    }

    fn bin(self, time: i64) -> i64 {
        time.div_euclid(self.width_ms)
    }

    fn cell(self, time: i64) -> u32 {
        let offset = time.rem_euclid(self.width_ms).unsigned_abs();
        let cell = (u128::from(offset) << BITS) / u128::from(self.made_with());
        // Less than 2^21, because the offset is less than the width.
        cell as u32
    }

    fn code(self, position: &LatLng, time: i64) -> u64 {
        let [x, y] = coordinates(position.latitude(), position.longitude());
        u64::encode([x >> MORE_BITS, y >> MORE_BITS, self.cell(time)])
    }

    /// The cells of a bin that contain the times from `first` to `last`.
    fn interval(self, bin: i64, first: i64, last: i64) -> Interval {
        let (begins, ends) = (bin == self.bin(first), bin == self.bin(last));
        Interval {
            first: if begins { self.cell(first) } else { 0 },
            last: if ends { self.cell(last) } else { LAST_CELL },
            has_all_of_first: !begins || first.rem_euclid(self.width_ms) == 0,
            has_all_of_last: !ends || last.rem_euclid(self.width_ms) == self.width_ms - 1,
        }
    }
}

/// An area at some times of a bin, as a region of the curve.
struct InBin<A> {
    area: OnSphere<A>,
    times: Interval,
}

/// Splits a corner of a block into the coordinates on the sphere and the time.
fn split([x, y, time]: [u32; 3]) -> ([u32; 2], u32) {
    ([x << MORE_BITS, y << MORE_BITS], time)
}

/// The highest coordinates on the sphere that are in the same cells.
fn last_of(place: [u32; 2]) -> [u32; 2] {
    place.map(|coordinate| coordinate | ((1 << MORE_BITS) - 1))
}

impl<A: Area> Region<3> for InBin<A> {
    fn relation(&self, low: [u32; 3], high: [u32; 3]) -> CellRelation {
        let ((low, begins), (high, ends)) = (split(low), split(high));
        match self.times.relation(begins, ends) {
            CellRelation::Outside => CellRelation::Outside,
            times => all_of([times, self.area.relation(low, last_of(high))]),
        }
    }

    fn size(&self, low: [u32; 3], high: [u32; 3]) -> f64 {
        let ((low, begins), (high, ends)) = (split(low), split(high));
        self.area.size(low, last_of(high)) * (f64::from(ends - begins) + 1.0)
    }

    fn hull(&self) -> ([u32; 3], [u32; 3]) {
        let ([west, south], [east, north]) = self.area.hull();
        let corner = |x: u32, y: u32, time| [x >> MORE_BITS, y >> MORE_BITS, time];
        (corner(west, south, self.times.first), corner(east, north, self.times.last))
    }
}
