//! Terms that match a pattern, found by seeks.
//!
//! *Which words of the dictionary begin with this text, match this pattern, or are similar to this
//! word?* The terms of an index are sorted keys. For each term, a [`TermMatcher`] returns the term
//! to seek next, so that the terms in between are not read.
//!
//! | terms | automaton | begins at |
//! |---|---|---|
//! | [`prefix`](TermMatcher::prefix), [`range`](TermMatcher::range) | none | the prefix, the bound |
//! | [`wildcard`](TermMatcher::wildcard) | automaton of a regular expression | the text before the first wildcard |
//! | [`regex`](TermMatcher::regex) | deterministic, at most 8,192 states | the least match |
//! | [`fuzzy`](TermMatcher::fuzzy) | Levenshtein automaton, distance 1 or 2; with the distance 0, the range of one term | the least match, after the equal characters |
//!
//! # Cost
//!
//! The table of an automaton takes up to 512 bytes per state. A fuzzy term of ten letters has a few
//! hundred states. All automata of a query share one limit: see
//! [`max_states`](crate::Search::max_states).
//!
//! # Source
//!
//! Klaus Schulz and Stoyan Mihov, *Fast String Correction with Levenshtein Automata* (2002), in the
//! crate [levenshtein_automata](https://docs.rs/levenshtein_automata) of tantivy; regular
//! expressions by the crate [regex-automata](https://docs.rs/regex-automata). The seeks are those
//! of Lucene's `AutomatonTermsEnum`.

mod budget;
mod fuzzy;
mod matcher;
mod regex;
mod table;
#[cfg(test)]
mod tests;
mod utf8;

pub(crate) use budget::{DEFAULT_MAX_STATES, StateBudget};
pub(crate) use fuzzy::MAX_FUZZY_CHARS;
pub(crate) use matcher::{TermMatcher, TermStep};
