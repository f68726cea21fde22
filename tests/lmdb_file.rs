//! The checker of LMDB files: it accepts files written by the engine, reports damage, and never
//! panics or hangs, whatever a file contains.
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
