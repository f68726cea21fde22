//! Search: finds the documents that match a query, the best first.
//!
//! *Which records match, and which are the most relevant?*
//! [`TextIndex::search`](crate::TextIndex::search) returns a [`Search`]: a query with options. Only
//! the methods that return results read from the store.
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
//! # Cost
//!
//! A query with patterns first reads the parts of the dictionary that may contain matches. Then a
//! search reads the statistics of its terms in one round trip, then blocks of their lists. On a
//! remote store, one round trip reads the first 16 blocks of every list. Finally, the search reads
//! the keys and the records of the results in one round trip each.
//!
//! The table shows the keys read for the 10 best hits. The texts have 4 to 16 words that follow
//! Zipf's law: `w1` is in half of all texts, and `w500` in two of a thousand (see the example
//! `search_costs`).
//!
//! | query | 10<sup>3</sup> texts | 10<sup>4</sup> | 10<sup>5</sup> | 10<sup>6</sup> | grows with |
//! |---|---|---|---|---|---|
//! | `w1` | 9 | 31 | 94 | 147 | the number of hits, and the logarithm of the corpus |
//! | `w1 OR w2` | 14 | 120 | 1,022 | 6,458 | the blocks whose combined bounds are better than the results |
//! | `+w1 +w2` | 14 | 120 | 1,000 | 5,833 | the same, less those without a good posting of the rarer term |
//! | `+w1 +w500` | 6 | 23 | 150 | 419 | the good postings of the rarer term |
//! | `"w1 w2"` | 14 | 121 | 1,161 | 11,329 | the blocks that may have both terms |
//!
//! The bounds of two terms are added as if one document had the best posting of both. Few short
//! texts do, so combinations of very common words read most of their blocks: one block per hundred
//! documents. Rarer words, filters by a rare word, and single terms read fewer.
//!
//! [`count`](Search::count), [`ids`](Search::ids), [`facets`](Search::facets) and orders other than
//! by score visit all matches. A filter is read chunk by chunk, only where the query has documents.
//! A search reads only the ranges of the dictionary in which the automaton of a pattern can match.
//! A pattern that begins with literal text reads only terms that begin with this text. `*ing` and
//! `.*ing` read the whole dictionary. A fuzzy term of distance 2 can match after any two
//! characters, so [equal characters](crate::Query::fuzzy_prefix) at the beginning save the most
//! reads.
//!
//! The documents of a pattern are kept in memory, at five bytes each. While they are collected,
//! each range of 4,096 ids with such a document takes 1.5 KiB.
//!
//! A query is evaluated by a tree of operators. Operators are cursors over documents in the order
//! of their ids. They skip blocks that cannot contain a match with a sufficient score.

mod batch;
mod best_of_each;
mod best_of_terms;
mod bm25;
mod build;
mod by_group;
mod by_score;
mod combined;
mod common;
mod continuation;
mod counting;
mod cursor;
mod expand;
mod explain;
mod matches;
mod node;
mod ordering;
mod plan;
mod proximity;
mod rank;
mod ranking;
mod request;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod request_tests;
mod results;
mod searches;
mod skips;
mod slot;
mod sorted_records;
mod spans;
mod statistics;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
mod top_k;
mod union;
mod window;

pub use bm25::Bm25;
pub use counting::SearchExplain;
pub use explain::Explanation;
pub use matches::RankedMatches;
pub use ordering::Decay;
pub use ranking::{Ranked, Ranking};
pub use results::{Hit, RecordHit};
pub use searches::Search;
