//! Inverted index: which records have these properties, and how many of each kind are there?

// Until all of it is used.
#![allow(dead_code, unused_imports)]

pub mod bitmap;
mod container;
mod expression;
mod few;
mod words;

pub use bitmap::Bitmap;
pub(crate) use bitmap::{ChunkChanges, Chunks, IdWalk};
pub use container::CHUNK_IDS;
pub(crate) use container::Container;
pub use expression::BitmapExpr;
pub(crate) use expression::Evaluation;
pub(crate) use words::Words;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
