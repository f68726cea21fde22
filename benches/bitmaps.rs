//! The inverted index, and its bitmaps, in memory, on LMDB and on redb.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "bitmaps/bitmaps.rs"]
mod bitmaps;
#[path = "bitmaps/expressions.rs"]
mod expressions;
#[path = "bitmaps/index.rs"]
mod index;
#[path = "bitmaps/integers.rs"]
mod integers;
#[path = "bitmaps/reports.rs"]
mod reports;

use criterion::{criterion_group, criterion_main};

criterion_group!(
    benches,
    bitmaps::bitmaps,
    expressions::expressions,
    integers::integers,
    index::indexes,
    reports::reports
);
criterion_main!(benches);
