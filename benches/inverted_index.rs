//! The inverted index, and the bitmaps that it stands on, on LMDB and in memory.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "inverted_index/bitmaps.rs"]
mod bitmaps;

use criterion::{criterion_group, criterion_main};

criterion_group!(benches, bitmaps::bitmaps);
criterion_main!(benches);
