//! Inverted index: which records have these properties, and how many of each kind are there?

// Until all of it is used.
#![allow(dead_code, unused_imports)]

pub mod bitmap;
mod container;
mod dense_ids;
mod expression;
mod index;
mod words;

pub use bitmap::Bitmap;
pub(crate) use bitmap::{ChunkChanges, Chunks, IdWalk};
pub use container::CHUNK_IDS;
pub(crate) use container::Container;
pub use dense_ids::DenseIds;
pub use expression::BitmapExpr;
pub(crate) use expression::Evaluation;
pub use index::{
    DirectEntries, DirectEntry, DirectFields, FieldValues, InvertedIndex, InvertedIndexError,
    PackedValues, ValueCounts, Values, one,
};
pub(crate) use words::Words;

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
