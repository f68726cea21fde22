//! Search: the documents that match a query, the best ones first.
//!
//! A query becomes a tree of [`Node`](node::Node)s: cursors over documents in the order of their
//! ids, which skip blocks that cannot contain a match or a score that is good enough.

mod bm25;
mod cursor;
mod node;
mod proximity;
mod rank;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
mod top_k;

pub use bm25::Bm25;
