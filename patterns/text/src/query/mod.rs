//! Queries: trees that select documents.
//!
//! *Which documents contain these words, this phrase, similar words?* A [`Query`] is a tree of
//! terms and combinations. The tree contains texts as entered; evaluation analyzes them with the
//! analyzer of the field.
//!
//! | question | query |
//! |---|---|
//! | contains a word | [`Query::term`] |
//! | contains words next to each other, or nearly | [`Query::phrase`] with a [slop](Query::slop) |
//! | contains words in any of several fields, ranked as one field | [`Query::combined`] |
//! | has a field | [`Query::exists`] |
//! | contains words and phrases close to each other | [`Query::near`] |
//! | contains a match of a pattern | [`Query::prefix`], [`Query::wildcard`], [`Query::regex`] |
//! | contains a word similar to this one | [`Query::fuzzy`] |
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
//! | phrase, near | BM25 of the sum over its occurrences of 1 / (1 + distance); the inverse document frequency is the sum of the inverse document frequencies of its words |
//! | combined | [BM25F](Query::combined) of how often the word occurs in all of the fields |
//! | prefix, wildcard, regular expression, range | 1 |
//! | fuzzy | 1 / (1 + edits) of the most similar term |
//! | all of, any of | the sum of the scores of the matching queries |
//! | none of, a filter | 0 |
//!
//! The distance of an occurrence is defined as follows. For a phrase with slop, subtract from the
//! position of each word its place in the phrase: the distance is the difference between the
//! greatest and the smallest result. For spans in order, the distance is the number of positions by
//! which the occurrence is longer than the spans without gaps. For spans in any order, the distance
//! is the number of positions between the first and the last span that no span takes. Occurrences
//! do not overlap.
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
//! The query types and their meaning are those of Lucene, except where the docs state otherwise.

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
