//! The laws of tables and of all their derived data, on every store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod aggregate;
mod denormalize;
mod entity;
mod feed;
mod index;
mod join;
mod property_index;
mod sequence;
mod versioned;
