//! The inverted index, and the bitmaps that it stands on, on LMDB and in memory.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "inverted_index/bitmaps.rs"]
mod bitmaps;
#[path = "inverted_index/expressions.rs"]
mod expressions;
#[path = "inverted_index/index.rs"]
mod index;
#[path = "inverted_index/integers.rs"]
mod integers;
#[path = "inverted_index/reports.rs"]
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
