//! Dimensionality reduction: several dimensions mapped to one ordered key, so that near positions
//! stay near.
//!
//! A key `latitude, longitude` groups positions of the same latitude, all around the Earth. A
//! [space-filling curve](curve) visits the plane square by square. So each square is one range of
//! keys, and a circle, a box or a polygon is a few ranges.
//!
//! [`PointIndex`] stores the positions of records, as data derived from a
//! [`Table`](keyloom_tables::Table). Its queries are exact everywhere on the sphere, including the
//! poles and the meridian at ±180 degrees:
//!
//! | question | operation |
//! |---|---|
//! | which points are within an [`Area`]: a [`Circle`], a [`BoundingBox`], a [`Polygon`], a program's own, or their [union](Area::union), [intersection](Area::intersection) or [difference](Area::difference)? | [`within`](PointIndex::within) and [`points`](AreaQuery::points), [`page`](AreaQuery::page) |
//! | the same, nearest first | [`by_distance`](AreaQuery::by_distance), [`page_by_distance`](AreaQuery::page_by_distance) |
//! | which points are nearest, without a radius? | [`nearest`](PointIndex::nearest) |
//! | the same among the points of one tenant, or of one tenant and category? | an index that is [`grouped`](PointIndex::grouped), and [`group`](PointIndex::group) |
//! | how many points are there, in total or in each [`GeoCell`] of a grid? | [`count`](AreaQuery::count), [`grid`](AreaQuery::grid) |
//! | what is the sum, the largest value or the middle of the points of each cell? | [`fold_grid`](AreaQuery::fold_grid) |
//! | which points are in one cell, such as a geohash? | [`in_cell`](PointIndex::in_cell) |
//! | which records are these, and some of their fields without reading them? | [`records`](AreaQuery::records), [`records_by_distance`](AreaQuery::records_by_distance), [`covering`](PointIndex::covering) |
//! | the same queries, limited to records that another query found | [`only`](AreaQuery::only) |
//! | what will a query read, and what did it read? | [`cover_parts`](AreaQuery::cover_parts), [`Explain`](keyloom_tables::Explain) |
//!
//! Three more indexes use the same curves and have their own documentation:
//!
//! | index | the question it answers |
//! |---|---|
//! | [`SpaceTimeIndex`] | what was where, and [when](space_time)? |
//! | [`CurveIndex`] | which records have each of [two to four numbers](curve_index) between two bounds? |
//! | [`ExtentIndex`] | which stored boxes overlap a [`Shape`] or are in it: a box, a circle, a polygon; which contain a position or a box, and which are nearest? |
//!
//! Each of them can be [`grouped`](PointIndex::grouped) as well, such as by tenant; see [`Group`].
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_spatial::{Circle, PointIndex, LatLng};
//! use keyloom_tables::Table;
//! let by_position = PointIndex::new(&Subspace::new("by_position"), |_id, town: &(f64, f64)| {
//!     LatLng::new(town.0, town.1).map(Some)
//! });
//! let towns = Table::<u32, (f64, f64)>::new(&Subspace::new("towns")).with(&by_position);
//! let store = Memory::new();
//! store.transact(|txn| {
//!     towns.put(txn, &1, &(-18.1416, 178.4415))?; // Suva
//!     towns.put(txn, &2, &(-14.2933, -178.1583)) // Leava, on the other side of the antimeridian
//! })?;
//! let snapshot = store.snapshot()?;
//! let suva = LatLng::new(-18.1416, 178.4415)?;
//! assert_eq!(by_position.within(Circle::new(suva, 600_000.0)?).count(&snapshot)?, 2);
//! let nearest = by_position.nearest(&snapshot, suva)?.nth(1).transpose()?;
//! assert_eq!(nearest.map(|point| (point.distance() / 1_000.0).round()), Some(561.0));
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! | index | key | value |
//! |---|---|---|
//! | [`PointIndex`] | subspace, code (an unsigned integer of 64 bits), latitude, longitude (in degrees), record key | as in an [`Index`](keyloom_tables::index#layout) |
//! | [`SpaceTimeIndex`] | subspace, width of the bins in milliseconds, bin, code of 3 dimensions, record key | the same, covering latitude, longitude and milliseconds |
//! | [`CurveIndex`] | subspace, hash of the dimensions, code of 2 to 4 dimensions, record key | the same, covering the numbers |
//! | [`ExtentIndex`] | subspace, code of an enlarged cell, record key | the same, covering south, west, north and east |
//!
//! ```text
//! ("geo", "by_position", 14993501096149602634, 48.85341, 2.3488, 2988507)  ->  10 04
//!  subspace              code                  position          record key
//! ```
//!
//! A code interleaves the bits of longitude and latitude, longitude first, 32 bits of each. The
//! first 60 bits are a geohash of 12 characters; 4 more follow. The world is divided from -180 to
//! 180 degrees and from -90 to 90; latitude 90 belongs to the last row. The exact position follows
//! the code, so points at one position are adjacent.
//!
//! In an index that is `grouped`, of any of the four kinds, the parts of the group come first, each
//! as an element. So the entries of a group are adjacent, and sorted like the entries of an index
//! of only this group:
//!
//! ```text
//! ("geo", "by_tenant", "acme", 7, 14993501096149602634, 48.85341, 2.3488, 2988507)  ->  10 04
//!  subspace            group      code                  position          record key
//! ```
//!
//! # Invariants
//!
//! * A point exists if and only if the function of the index returns a position for an existing
//!   record.
//! * The code of a point is the code of its position, and the leading parts of its key are the
//!   parts of its group.
//! * A position has one representation: longitudes are from -180 (included) to 180 (excluded), and
//!   the longitude of a pole is 0.
//! * A cover contains the codes of all positions in its area. The points of parts inside the area
//!   are not checked; the points of parts across the border are checked one by one.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | put or delete of a record | 1 key written per point added or removed; 2 if it moves, 0 if it is unchanged |
//! | [`points`](AreaQuery::points), [`count`](AreaQuery::count), [`grid`](AreaQuery::grid), [`page`](AreaQuery::page) | at most as many ranges as the query [may use](AreaQuery::in_ranges), and 1 more seek after 8 keys in a row outside the area, if something can be skipped; keys as below; a page begins after the last key of the previous page, and also reads whether another point follows |
//! | [`nearest`](PointIndex::nearest), [`by_distance`](AreaQuery::by_distance) | reads of up to 17 keys, in the order of their least distance: about 5 reads for the ten nearest points, 20 for 100 and 120 to 140 for 1,000; on a remote store 2 to 6 round trips; memory for points that were read but are farther away |
//! | [`page_by_distance`](AreaQuery::page_by_distance) | the same for one page, and the cells that the circle through its beginning crosses: about 2 √n reads and 18 √n keys after n points |
//! | [`records`](AreaQuery::records), [`records_by_distance`](AreaQuery::records_by_distance) | a page, and 1 get per point in one round trip |
//! | any of these in a [`group`](PointIndex::group) | the same, as if the other groups did not exist |
//! | [`in_cell`](PointIndex::in_cell) | 1 range; reads exactly what it returns |
//! | [`cover_parts`](AreaQuery::cover_parts) | reads nothing |
//! | [`check`](keyloom_tables::Maintained::check), [`repair`](keyloom_tables::Maintained::repair) | see [`derived`](keyloom_tables::derived) |
//!
//! The first read of `nearest` shows the density of the points. The search then divides the curve
//! into cells of about 16 points, and reads the cells that may have a point nearer than the next
//! result. Many points at one position are read in parts. On a remote store, a round trip reads
//! several cells: up to 16 in the second round trip, then four times as many in each further one,
//! up to 256. Near a pole, cells are narrow: the ten points nearest to a pole take 19 to 25 reads
//! among 135,233 cities, and 66 to 101 among one million points that are spread evenly on the
//! sphere.
//!
//! Among 50,000 points of 1,000 tenants, sorting the three points of one tenant by distance reads 3
//! keys of a grouped index. A [filter](AreaQuery::only) on the record keys reads 43,197 keys of an
//! index of all points until it has found the three points. To find that there are no more, it
//! reads all 50,000 keys.
//!
//! Keys scanned per key returned, on average, for circles of 10 km to 1,000 km among one million
//! points spread evenly up to latitudes of 80 degrees:
//!
//! | ranges | 9 | 16 | 64 | 256 |
//! |---|---|---|---|---|
//! | keys per hit | 1.28 to 1.51 | 1.21 to 1.28 | 1.07 | 1.01 to 1.02 |
//!
//! By default a query begins with 2 ranges. Whenever the keys read outside the area have cost as
//! much as the new ranges will (32 keys per range), the query multiplies the number of ranges by 4
//! for the rest of the area. A query that reads 100 keys or more costs at most about twice as much
//! as with the best number of ranges. A query that reads fewer keys costs its 2 ranges, although 1
//! may be enough. On a remote store, each range is a round trip and returns a page. So a query on a
//! remote store begins with 1 range, and each further range counts as a page of keys.
//!
//! # When not to use it
//!
//! * When all points fit in memory and do not change: an R-tree in memory is faster.
//! * For exact shapes: an [`ExtentIndex`] stores only their bounding boxes.
//! * For distances on the ellipsoid: distances here are on a sphere, up to [0.57 %](EARTH_RADIUS)
//!   longer or 0.45 % shorter.
//! * When a query bounds one coordinate at a time: a [composite-key index](keyloom_tables::Index)
//!   is smaller.
//! * For more than a few dimensions: a query covers too many cells.
//!
//! # Source
//!
//! "Dimensionality reduction" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). Codes: G. M.
//! Morton (1966), and G. Niemeyer's geohash (2008); more in [`curve`]. Nearest: G. R. Hjaltason and
//! H. Samet, *Distance Browsing in Spatial Databases* (ACM Transactions on Database Systems 24,
//! 1999). Polygons: RFC 7946 (GeoJSON, 2016).

mod area;
mod cell;
mod circle;
mod code_walk;
mod cover;
mod cover_part;
pub mod curve;
pub mod curve_index;
mod extent_index;
mod extent_query;
mod grid;
mod group;
mod interval;
mod located;
mod nearest;
mod overlap;
mod page;
mod point_index;
mod points;
#[cfg(feature = "polygons")]
mod polygon;
mod position;
mod query;
mod shape;
mod sides;
pub mod space_time;
mod xz;

pub use area::{Area, BoundingBox, CellBounds, CellRelation, Combined};
pub use cell::GeoCell;
pub use circle::Circle;
pub use cover_part::CoverPart;
pub use curve_index::CurveIndex;
pub use extent_index::ExtentIndex;
pub use extent_query::ExtentQuery;
pub use group::{Group, SpatialGroup};
pub use located::Located;
pub use point_index::PointIndex;
#[cfg(feature = "polygons")]
pub use polygon::Polygon;
pub use position::{EARTH_RADIUS, LatLng};
pub use query::AreaQuery;
pub use shape::Shape;
pub use space_time::SpaceTimeIndex;
