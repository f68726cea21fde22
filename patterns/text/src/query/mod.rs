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
