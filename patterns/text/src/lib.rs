//! Full-text search on ordered keys: an index of words that changes in the same transaction as the
//! document.

#![allow(dead_code, unused_imports, reason = "the search that uses the index follows")]
pub mod analysis;
pub mod index;
mod postings;
pub mod query;
mod search;
pub mod terms;

pub use analysis::Analyzer;
pub use index::{TextError, TextIndex};
pub use postings::Detail;
pub use query::{BooleanQuery, Near, Query, QueryError, Spans};
pub use search::{Bm25, Explanation, SearchContinuation, SearchError};
