//! The keyloom book as a crate: every chapter is a module whose documentation is the chapter, so that
//! each Rust block of the book runs as a doctest.
//!
//! ```text
//! cargo test -p keyloom-book     runs the book
//! mdbook build book              renders it
//! ```
//!
//! A test holds the chapters to their rules: each is listed in `SUMMARY.md` and included here, and no
//! Rust block is kept from running.

pub mod geo;
pub mod places;

#[doc = include_str!("src/introduction.md")]
pub mod introduction {}
#[doc = include_str!("src/ordered_stores.md")]
pub mod ordered_stores {}
#[doc = include_str!("src/keys.md")]
pub mod keys {}
#[doc = include_str!("src/transactions.md")]
pub mod transactions {}
#[doc = include_str!("src/schema.md")]
pub mod schema {}
#[doc = include_str!("src/index.md")]
pub mod index {}
#[doc = include_str!("src/index_table.md")]
pub mod index_table {}
#[doc = include_str!("src/aggregate.md")]
pub mod aggregate {}
#[doc = include_str!("src/entity.md")]
pub mod entity {}
#[doc = include_str!("src/versioned.md")]
pub mod versioned {}
#[doc = include_str!("src/sequence.md")]
pub mod sequence {}
#[doc = include_str!("src/spatial.md")]
pub mod spatial {}
#[doc = include_str!("src/bitmaps.md")]
pub mod bitmaps {}
#[doc = include_str!("src/trees.md")]
pub mod trees {}
#[doc = include_str!("src/path.md")]
pub mod path {}
#[doc = include_str!("src/join.md")]
pub mod join {}
#[doc = include_str!("src/denormalize.md")]
pub mod denormalize {}
#[doc = include_str!("src/property_index.md")]
pub mod property_index {}
#[doc = include_str!("src/lmdb.md")]
pub mod lmdb {}
#[doc = include_str!("src/backends.md")]
pub mod backends {}
#[doc = include_str!("src/far_away.md")]
pub mod far_away {}
#[doc = include_str!("src/foundationdb.md")]
pub mod foundationdb {}
#[doc = include_str!("src/reliability.md")]
pub mod reliability {}

// The README is no chapter, but its blocks run all the same.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}

#[cfg(test)]
mod rules;
