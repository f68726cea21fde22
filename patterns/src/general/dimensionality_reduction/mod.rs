//! Dimensionality reduction: how do many dimensions stand on one ordered key, so that what is near stays
//! near?

mod area;
mod cell;
mod checked_index;
mod code_walk;
mod cover;
pub mod curve;
pub mod curve_index;
mod extent_index;
mod extent_query;
mod grid;
mod interval;
mod nearest;
mod overlap;
mod page;
mod point_index;
mod polygon;
mod position;
mod query;
pub mod space_time;
mod xz;

pub use area::{Area, BoundingBox, CellBounds, Circle, Relation};
pub use cell::Cell;
pub use curve_index::CurveIndex;
pub use extent_index::{Extent, ExtentIndex};
pub use extent_query::{ExtentPage, ExtentQuery, Extents};
pub use grid::Grid;
pub use nearest::{Nearest, NearestPage, NearestPoint};
pub use point_index::{FoundPoints, Point, PointIndex};
pub use polygon::Polygon;
pub use position::{EARTH_RADIUS, Position};
pub use query::{AreaQuery, Everywhere, PointPage, Points};
pub use space_time::SpaceTimeIndex;
