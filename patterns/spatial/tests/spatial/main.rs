//! The laws of spatial indexes, on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod cover_parts;
mod curve_index;
mod curves;
mod extents;
mod groups;
mod keys;
mod parts;
mod points;
mod space_time;
