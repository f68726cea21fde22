//! Inverted index: which records have these properties, and how many of each kind are there?

// Until all of it is used.
#![allow(dead_code, unused_imports)]

pub mod bitmap;
mod container;
pub mod expression;
mod few;
pub mod integers;
mod words;

pub use bitmap::Bitmap;
pub(crate) use bitmap::{ChunkChanges, Chunks, IdWalk};
pub use container::CHUNK_IDS;
pub(crate) use container::Container;
pub(crate) use expression::Evaluation;
pub use expression::{BitmapExpr, ExprIds};
pub use integers::BitSliced;
pub(crate) use words::Words;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
