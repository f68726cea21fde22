//! Tests of the languages of full-text search: analysis of texts, queries, highlighting.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod analysis;
mod highlight;
mod parse;
mod query;
