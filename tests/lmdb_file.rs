//! The checker of LMDB files: what the engine wrote is sound, what was damaged is told, and nothing
//! that a file holds makes it panic or hang.
#![cfg(feature = "lmdb")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "lmdb_file/damage.rs"]
mod damage;
#[path = "lmdb_file/flips.rs"]
mod flips;
#[path = "lmdb_file/healthy.rs"]
mod healthy;
#[path = "lmdb_file/store.rs"]
mod store;
