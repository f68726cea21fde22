//! Queries: which documents are searched for.
//!
//! *Which documents contain these words, this phrase, words like this one?* A [`Query`] is a tree
//! of terms and combinations. It holds texts as they were entered: evaluation analyzes them with
//! the analyzer of the field.
//!
//! | question | query |
//! |---|---|
//! | contains a word | [`Query::term`] |
//! | contains words beside each other, or nearly | [`Query::phrase`] with a [slop](Query::slop) |
//! | contains words in any of several fields, ranked as if these were one | [`Query::combined`] |
//! | has a field | [`Query::exists`] |
//! | contains words and phrases close to each other | [`Query::near`] |
//! | contains a word of this form | [`Query::prefix`], [`Query::wildcard`], [`Query::regex`] |
//! | contains a word like this one | [`Query::fuzzy`] |
//! | contains a word in a range | [`Query::range`] |
//! | matches all, some or none of other queries | [`Query::all_of`], [`Query::any_of`], [`Query::none_of`], [`BooleanQuery`] |
//!
//! A [`QueryParser`] reads a query from a text.
//!
//! # Scores
//!
//! | query | score of a document |
//! |---|---|
//! | term | [BM25](crate::Bm25) of how often the term occurs |
//! | phrase, near | BM25 of the sum over its occurrences of 1 / (1 + distance); its inverse document frequency is the sum of those of its words |
//! | combined | BM25 of how often the word occurs in the fields together |
//! | prefix, wildcard, regular expression, range | 1 |
//! | fuzzy | 1 / (1 + edits) of the most similar term |
//! | all of, any of | the sum of those of the queries that match |
//! | none of, a filter | 0 |
//!
//! The distance of an occurrence of a phrase with slop: of each word take its position less that in
//! the phrase; it is the difference between the greatest and the smallest of these. Of spans in
//! order, it is the number of positions that they have more than without gaps; of spans in any
//! order, the number of positions between the first and the last that none of them takes.
//! Occurrences do not overlap.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_tables::Table;
//! use keyloom_text::{Analyzer, Query, TextIndex};
//! let space = Subspace::new("notes");
//! let text = TextIndex::new(&space.child("text"))
//!     .field("body", Analyzer::simple(), |_: &u32, body: &String, add| add(body));
//! let notes = Table::<u32, String>::new(&space.child("notes")).with(&text);
//! let store = Memory::new();
//! store.transact(|txn| {
//!     notes.put(txn, &1, &"white hat".into())?;
//!     notes.put(txn, &2, &"white heat".into())
//! })?;
//! let hits = text.search(Query::fuzzy("body", "hat", 2)).hits(&store.snapshot()?)?;
//! let scores: Vec<_> = hits.items.iter().map(|hit| (hit.key, hit.score)).collect();
//! assert_eq!(scores, [(1, 1.0), (2, 0.5)]);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Source
//!
//! The kinds of queries and their meaning are those of Lucene, except where their docs say
//! otherwise.

mod build;
mod check;
mod deep;
mod display;
mod error;
mod parse;
mod tree;
pub(crate) mod wildcard;

pub use error::QueryError;
pub use parse::{ClauseKind, Operator, ParseError, ParseErrorKind, QueryParser};
pub use tree::{BooleanQuery, Near, Query, Spans};
