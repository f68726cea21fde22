//! Full-text search on ordered keys: an inverted index that changes in the same transaction as the
//! document.
//!
//! *Which records contain these words, and which of them are the most relevant?* A [`TextIndex`] is
//! derived data of a table. A search sees a record as soon as its transaction has committed, and
//! computes scores from exact statistics.
//!
//! ```
//! use keyloom::{Memory, Store};
//! use keyloom_tables::Schema;
//! use keyloom_text::{Analyzer, QueryParser, TextIndex};
//! let store = Memory::new();
//! let schema = Schema::open(&store, "blog")?;
//! let posts = schema.table::<u32, String>("posts")?;
//! let text = schema.derive(&posts, "text", 1, |space| {
//!     Ok(TextIndex::new(space)
//!         .field("body", Analyzer::english(), |_id: &u32, body: &String, add| add(body)))
//! })?;
//! store.transact(|txn| posts.put(txn, &7, &"Alice follows a white rabbit".to_owned()))?;
//!
//! let snapshot = store.snapshot()?;
//! let query = QueryParser::new(["body"]).parse("white rabbits")?;
//! let page = text.at(&snapshot)?.search(query).limit(10).hits(&snapshot)?;
//! assert_eq!(page.items[0].key, 7);
//! # Ok::<(), keyloom::BoxedError>(())
//! ```
//!
//! | module | question |
//! |---|---|
//! | [`analysis`] | which words of a text can be found, and in which form? |
//! | [`index`] | how is the index stored, kept up to date, checked and repaired? how are [tenants](index#groups) kept apart? |
//! | [`query`] | how is a query written, as a value or in the query language? |
//! | [`search`] | which records match, and which are the most relevant? |
//! | [`highlight`] | which words of a text does a query match? |
//! | [`suggest`] | which terms begin with these letters, or are similar to this word? |
//!
//! An index of many tenants is [`grouped`](TextIndex::grouped): each tenant has its own dictionary
//! and statistics, and a search reads only the entries of one tenant.
//!
//! In the catalogue of patterns, these are *inverted search* and *nested documents flattening:
//! proximity queries*. The query types are those of Lucene.

pub mod analysis;
// Hidden: only for the fuzz targets of this repository.
#[cfg(feature = "_fuzz")]
#[doc(hidden)]
pub mod fuzz;
pub mod highlight;
pub mod index;
mod postings;
pub mod query;
pub mod search;
mod shown;
pub mod suggest;
mod terms;

pub use analysis::Analyzer;
pub use highlight::{Fragment, Highlighter};
pub use index::{MoreLikeThis, TextError, TextIndex};
pub use keyloom_tables::parts::Group;
pub use postings::Detail;
pub use query::{BooleanQuery, Near, ParseError, Query, QueryError, QueryParser, Spans};
pub use search::{
    Bm25, Decay, Explanation, Hit, Ranked, RankedMatches, Ranking, RecordHit, Search, SearchExplain,
};
