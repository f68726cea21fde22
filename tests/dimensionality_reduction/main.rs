//! The laws of dimensionality reduction.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod cover_parts;
mod curves;
