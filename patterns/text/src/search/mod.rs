//! Search: the documents that match a query, the best ones first.
//!
//! *Which records match, and which of them best?* [`TextIndex::search`](crate::TextIndex::search)
//! returns a [`Search`]: a query with options. Its last methods read.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_tables::Table;
//! use keyloom_text::{Analyzer, Query, TextIndex};
//! let texts = TextIndex::new(&Subspace::new("text"))
//!     .field("body", Analyzer::english(), |_id: &u32, body: &String, add| add(body));
//! let posts = Table::<u32, String>::new(&Subspace::new("posts")).with(&texts);
//! let store = Memory::new();
//! store.transact(|txn| {
//!     posts.put(txn, &7, &"Alice follows a white rabbit".to_owned())?;
//!     posts.put(txn, &8, &"The rabbit is late".to_owned())
//! })?;
//! let snapshot = store.snapshot()?;
//! let page = texts.search(Query::phrase("body", "White Rabbits")).limit(10).hits(&snapshot)?;
//! assert_eq!(page.items[0].key, 7);
//! assert_eq!(texts.search(Query::term("body", "rabbit")).count(&snapshot)?, 2);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! A query becomes a tree of [`Node`](node::Node)s: cursors over documents in the order of their
//! ids, which skip blocks that cannot contain a match or a score that is good enough.

mod bm25;
mod build;
mod catalog;
mod continuation;
mod counting;
mod cursor;
mod error;
mod expand;
mod explain;
mod node;
mod ordering;
mod plan;
mod proximity;
mod rank;
mod request;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod request_tests;
mod results;
mod searches;
mod skips;
mod spans;
mod statistics;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
mod top_k;

pub use bm25::Bm25;
pub(crate) use bm25::FieldStatistics;
pub(crate) use catalog::{Catalog, FieldInfo, PlacedTerm};
pub use continuation::SearchContinuation;
pub use counting::SearchExplain;
pub(crate) use cursor::TermKeys;
pub use error::SearchError;
pub use explain::Explanation;
pub use ordering::Decay;
pub use results::{Hit, RecordHit, SearchPage};
pub use searches::Search;
pub(crate) use statistics::count_of;
