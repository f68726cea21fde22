//! Full-text search on ordered keys: an index of words that changes in the same transaction as the
//! document.

pub mod analysis;
#[cfg(feature = "_fuzz")]
#[doc(hidden)]
pub mod fuzz;
pub mod highlight;
pub mod index;
mod postings;
pub mod query;
pub mod search;
pub mod suggest;
pub mod terms;

pub use analysis::Analyzer;
pub use highlight::{Fragment, Highlighter};
pub use index::{MoreLikeThis, TextError, TextIndex};
pub use postings::Detail;
pub use query::{BooleanQuery, Near, ParseError, Query, QueryError, QueryParser, Spans};
pub use search::{
    Bm25, Decay, Explanation, Hit, RecordHit, Search, SearchContinuation, SearchError,
    SearchExplain, SearchPage,
};
