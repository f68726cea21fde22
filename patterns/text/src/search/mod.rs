//! Search: the documents that match a query, the best ones first.
//!
//! A query becomes a tree of [`Node`](node::Node)s: cursors over documents in the order of their
//! ids, which skip blocks that cannot contain a match or a score that is good enough.

mod bm25;
mod build;
mod catalog;
mod cursor;
mod error;
mod expand;
mod explain;
mod node;
mod plan;
mod proximity;
mod rank;
mod request;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod request_tests;
mod statistics;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
mod top_k;

pub use bm25::Bm25;
pub use error::SearchError;
pub use explain::Explanation;
pub use request::SearchContinuation;
