//! The laws of the inverted index and of its parts, on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod bitmaps;
mod dense_ids;
mod expressions;
mod index;
mod integers;
mod reports;
