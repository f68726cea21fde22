//! Terms that match a pattern, found by seeks.
//!
//! *Which words of the dictionary begin with this, match this pattern, or are like this word?* The
//! terms of an index are sorted keys. A [`TermMatcher`] is given one term after another and returns
//! the term to seek next, so that terms between are not read.
//!
//! | terms | automaton | begins at |
//! |---|---|---|
//! | [`prefix`](TermMatcher::prefix), [`range`](TermMatcher::range) | none | the prefix, the bound |
//! | [`wildcard`](TermMatcher::wildcard) | that of a regular expression | the text before the first wildcard |
//! | [`regex`](TermMatcher::regex) | deterministic, at most 8,192 states | the least match |
//! | [`fuzzy`](TermMatcher::fuzzy) | Levenshtein automaton, distance 1 or 2; with the distance 0, the range of one term | the least match, after the equal characters |
//!
//! # Cost
//!
//! A table has 512 bytes per state. A fuzzy term of ten letters has some hundred states. All
//! automata of a query have a common limit: see [`max_states`](crate::Search::max_states).
//!
//! A dictionary is read where the automaton is alive. With literal text at the beginning, that is
//! the range of this text; `*ing` and `.*ing` read the whole dictionary. A fuzzy term of distance
//! 2 is alive after any two characters; [equal characters](crate::Query::fuzzy_prefix) at the
//! beginning save the most.
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
mod utf8;

pub(crate) use budget::{DEFAULT_MAX_STATES, StateBudget};
pub(crate) use fuzzy::MAX_FUZZY_CHARS;
pub use matcher::{TermMatcher, TermStep};
