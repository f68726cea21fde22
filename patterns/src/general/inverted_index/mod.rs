//! Inverted index: which records have these properties, and how many of each kind are there?

// Until all of it is used.
#![allow(dead_code, unused_imports)]

pub mod bitmap;
mod container;
pub mod dense_ids;
pub mod expression;
mod few;
pub mod index;
pub mod integers;
pub mod report;
mod words;

pub use bitmap::Bitmap;
pub(crate) use bitmap::{ChunkChanges, Chunks, IdWalk};
pub use container::CHUNK_IDS;
pub(crate) use container::Container;
pub use dense_ids::DenseIds;
pub(crate) use expression::Evaluation;
pub use expression::{BitmapExpr, ExprIds};
pub use index::{FieldValues, InvertedIndex, InvertedIndexError, one};
pub use integers::BitSliced;
pub use report::{Batch, Breakdown, Report, ReportExplain, ReportWay, ValueSum};
pub(crate) use words::Words;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
