//! The laws of dimensionality reduction, on every store.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../common/mod.rs"]
mod common;
mod cover_parts;
mod curve_index;
mod curves;
mod extents;
#[path = "../common/laws.rs"]
mod laws;
mod points;
#[cfg(any(feature = "postgres", feature = "etcd", feature = "foundationdb"))]
#[path = "../servers/mod.rs"]
mod servers;
mod space_time;
