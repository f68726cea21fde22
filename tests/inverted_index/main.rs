//! The laws of the inverted index and of what it stands on, on every store.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod bitmaps;
#[path = "../common/mod.rs"]
mod common;
mod dense_ids;
mod expressions;
mod index;
mod integers;
#[path = "../common/laws.rs"]
mod laws;
mod reports;
#[cfg(any(feature = "postgres", feature = "etcd", feature = "foundationdb"))]
#[path = "../servers/mod.rs"]
mod servers;
