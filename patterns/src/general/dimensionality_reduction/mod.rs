//! Dimensionality reduction: how do many dimensions stand on one ordered key, so that what is near stays
//! near?

mod area;
mod cell;
mod code_walk;
mod cover;
mod cover_part;
pub mod curve;
mod grid;
mod nearest;
mod point_index;
mod polygon;
mod position;
mod query;

pub use area::{Area, BoundingBox, CellBounds, Circle, Relation};
pub use cell::Cell;
pub use cover_part::CoverPart;
pub use grid::Grid;
pub use nearest::{Nearest, NearestPage, NearestPoint};
pub use point_index::{FoundPoints, Point, PointIndex};
pub use polygon::Polygon;
pub use position::{EARTH_RADIUS, Position};
pub use query::{AreaQuery, Everywhere, PointPage, Points};
