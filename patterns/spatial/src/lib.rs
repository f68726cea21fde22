//! Dimensionality reduction: how do many dimensions stand on one ordered key, so that what is near
//! stays near?
//!
//! A key `latitude, longitude` keeps near what has the same latitude, all around the Earth. A
//! [space-filling curve](curve) goes through the plane square by square, so each square is one
//! range of keys, and a circle, a box or a polygon is a few.
//!
//! [`PointIndex`] keeps where records are, as data derived from a [`Table`](keyloom_tables::Table).
//! Its questions are exact everywhere on the sphere, at the poles and across the meridian at ±180
//! degrees too:
//!
//! | question | asked by |
//! |---|---|
//! | what is within an [`Area`]: a [`Circle`], a [`BoundingBox`], a [`Polygon`], or a program's own | [`within`](PointIndex::within) and [`points`](AreaQuery::points), [`page`](AreaQuery::page) |
//! | the same, the nearest to a place first | [`by_distance`](AreaQuery::by_distance), [`page_by_distance`](AreaQuery::page_by_distance) |
//! | what is nearest, without a radius | [`nearest`](PointIndex::nearest) |
//! | how many are there, in all or in each [`GeoCell`] of a grid | [`count`](AreaQuery::count), [`grid`](AreaQuery::grid) |
//! | what lies in one cell, such as a geohash | [`in_cell`](PointIndex::in_cell) |
//! | those only that something else has found | [`only`](AreaQuery::only) |
//! | what will be read for it, and what was | [`cover_parts`](AreaQuery::cover_parts), [`Explain`](keyloom_tables::Explain) |
//!
//! Three more stand on the same curves, and have a documentation of their own:
//!
//! | index | the question it answers |
//! |---|---|
//! | [`SpaceTimeIndex`] | what was where, and [when](space_time)? |
//! | [`CurveIndex`] | which records have each of [two to four numbers](curve_index) between two bounds? |
//! | [`ExtentIndex`] | which of these boxes does a box touch, and which hold a position? |
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
//! | what | key | value |
//! |---|---|---|
//! | [`PointIndex`] | subspace, code (an unsigned integer of 64 bits), record key | as in an [`Index`](keyloom_tables::index#layout) that covers latitude and longitude, in degrees |
//! | [`SpaceTimeIndex`] | subspace, width of the bins in milliseconds, bin, code of 3 dimensions, record key | the same of latitude, longitude and milliseconds |
//! | [`CurveIndex`] | subspace, hash of the dimensions, code of 2 to 4 dimensions, record key | the same of the numbers |
//! | [`ExtentIndex`] | subspace, code of an enlarged cell, record key | the same of the south, west, north and east |
//!
//! ```text
//! ("geo", "by_position", 14993501096149602634, 2988507)  ->  10 04, (48.85341, 2.3488)
//!  subspace              code                  record key
//! ```
//!
//! The bits of a code are those of longitude and latitude in turn, the longitude first, 32 of each:
//! those of a geohash of 12 characters, and 4 more. The world is divided from -180 to 180 degrees
//! and from -90 to 90; latitude 90 belongs to the last row. The exact position stands in the value.
//!
//! # Invariants
//!
//! * A point is there exactly if the function of the index gives a position for a record that is
//!   there.
//! * Its code is that of the position in its value.
//! * A position has one name: longitudes are from -180 (included) to 180 (not included), that of a
//!   pole is 0.
//! * A cover holds the codes of all positions in its area; what lies wholly inside is not looked at
//!   again, what lies across the border is.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | put or delete of a record | 1 key written for a point that comes or goes: 2 where it moves to another code, 1 within the same code, 0 when it stays |
//! | [`points`](AreaQuery::points), [`count`](AreaQuery::count), [`grid`](AreaQuery::grid), [`page`](AreaQuery::page) | at most as many ranges as the query [may take](AreaQuery::in_ranges), and 1 seek more after 8 keys in a row that were of no use, where something can be leapt over; keys as below; a page also looks whether there is one behind it |
//! | [`nearest`](PointIndex::nearest), [`by_distance`](AreaQuery::by_distance) | reads of up to 17 keys, in the order of their least distance: some 15 of them for the ten nearest; memory for what was read and is farther |
//! | [`page_by_distance`](AreaQuery::page_by_distance) | the same for one page; what lies nearer than its beginning is not read again, but for the border |
//! | [`in_cell`](PointIndex::in_cell) | 1 range; reads exactly what it returns |
//! | [`cover_parts`](AreaQuery::cover_parts) | nothing is read |
//! | [`check`](keyloom_tables::Maintained::check), [`repair`](keyloom_tables::Maintained::repair) | see [`derived`](keyloom_tables::derived) |
//!
//! Keys scanned for each that is returned, on average, for circles of 10 km to 1,000 km among one
//! million points spread evenly up to latitudes of 80 degrees:
//!
//! | ranges | 9 | 16 | 64 | 256 |
//! |---|---|---|---|---|
//! | keys per hit | 1.28 to 1.54 | 1.21 to 1.29 | 1.07 to 1.08 | 1.01 to 1.02 |
//!
//! By default a query begins with 4 ranges, and takes 4 times as many for the rest of its area
//! whenever as many keys were read in vain as these cost: 32 keys each. A query that reads 100 keys
//! or more costs at most about twice what the best number of ranges would cost; one that reads
//! fewer costs its 4 ranges, where 1 may do. On a remote store, where each range is a round trip
//! and returns a page, a query begins with 1 range, and a range costs as much as a page.
//!
//! # When not to use it
//!
//! * When all points fit in memory and do not change: an R-tree there is quicker.
//! * For shapes themselves: an [`ExtentIndex`] keeps the boxes around them.
//! * For distances on the ellipsoid: these are on a sphere, up to [0.57 %](EARTH_RADIUS) longer or
//!   0.45 % shorter.
//! * When one coordinate is asked for at a time: a [composite-key index](keyloom_tables::Index) is
//!   smaller.
//! * For more than a few dimensions: the cells of a query become too many.
//!
//! # Source
//!
//! "Dimensionality reduction" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). Codes: G. M.
//! Morton (1966), and G. Niemeyer's geohash (2008); more in [`curve`]. Nearest: G. R. Hjaltason and
//! H. Samet, *Distance Browsing in Spatial Databases* (ACM Transactions on Database Systems 24,
//! 1999). Polygons: RFC 7946 (GeoJSON, 2016).

mod area;
mod cell;
mod code_walk;
mod cover;
mod cover_part;
pub mod curve;
pub mod curve_index;
mod extent_index;
mod extent_query;
mod grid;
mod interval;
mod located;
mod nearest;
mod overlap;
mod page;
mod point_index;
#[cfg(feature = "polygons")]
mod polygon;
mod position;
mod query;
pub mod space_time;
mod xz;

pub use area::{Area, BoundingBox, CellBounds, Circle, Relation};
pub use cell::GeoCell;
pub use cover_part::CoverPart;
pub use curve_index::CurveIndex;
pub use extent_index::ExtentIndex;
pub use extent_query::ExtentQuery;
pub use located::Located;
pub use nearest::NearestPoint;
pub use point_index::PointIndex;
#[cfg(feature = "polygons")]
pub use polygon::Polygon;
pub use position::{EARTH_RADIUS, LatLng};
pub use query::AreaQuery;
pub use space_time::SpaceTimeIndex;
