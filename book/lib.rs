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
#[doc = include_str!("src/composite_key_index.md")]
pub mod composite_key_index {}
#[doc = include_str!("src/index_table.md")]
pub mod index_table {}
#[doc = include_str!("src/aggregation.md")]
pub mod aggregation {}
#[doc = include_str!("src/aggregates.md")]
pub mod aggregates {}
#[doc = include_str!("src/atomic_aggregates.md")]
pub mod atomic_aggregates {}
#[doc = include_str!("src/enumerable_keys.md")]
pub mod enumerable_keys {}
#[doc = include_str!("src/dimensionality_reduction.md")]
pub mod dimensionality_reduction {}
#[doc = include_str!("src/inverted_index.md")]
pub mod inverted_index {}
#[doc = include_str!("src/hierarchies.md")]
pub mod hierarchies {}
#[doc = include_str!("src/path_patterns.md")]
pub mod path_patterns {}
#[doc = include_str!("src/joins.md")]
pub mod joins {}
#[doc = include_str!("src/denormalization.md")]
pub mod denormalization {}
#[doc = include_str!("src/index_without_transactions.md")]
pub mod index_without_transactions {}
#[doc = include_str!("src/lmdb.md")]
pub mod lmdb {}
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
