//! Finds the matching terms of a sorted dictionary by seeks.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use super::table::{DEAD, StateId, Table};
use super::{fuzzy, regex};
use crate::analysis::Analyzer;
use crate::query::wildcard::{WildcardPart, parts};
use crate::query::{Query, QueryError};
use crate::shown::shown;

/// A term to seek is extended by at most about this many bytes.
// The least match may be very long, or infinite. With a prefix of the least match, the seek only
// ends a little before it.
const MAX_PATH_BYTES: usize = 64;

/// A set of terms that can be found in a sorted dictionary by seeks.
///
/// A matcher is compiled once. It is cheap to clone, and threads can share it. A scan begins at
/// [`first`](Self::first), and calls [`step`](Self::step) for each term.
#[derive(Clone)]
pub(crate) struct TermMatcher(Kind);

#[derive(Clone)]
enum Kind {
    Prefix(String),
    Range(Bound<String>, Bound<String>),
    Table(Arc<Table>),
}

/// The result of [`TermMatcher::step`] for a term of the dictionary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TermStep {
    /// The term matches. Continue with the next term.
    Match {
        /// The number of edits of a fuzzy term, otherwise 0.
        distance: u8,
    },
    /// The term does not match. Continue with the next term.
    Next,
    /// The term does not match. Continue with the first term that is equal to or greater than the
    /// returned term. No term before the returned term matches.
    Seek(String),
    /// Neither the term nor any term after it matches.
    End,
}

impl TermMatcher {
    /// The terms that begin with `prefix`.
    pub(crate) fn prefix(prefix: impl Into<String>) -> Self {
        Self(Kind::Prefix(prefix.into()))
    }

    /// The terms between two bounds, in the order of UTF-8 bytes.
    pub(crate) fn range(from: Bound<String>, to: Bound<String>) -> Self {
        Self(Kind::Range(from, to))
    }

    /// The terms that a pattern with `*` and `?` matches.
    ///
    /// # Errors
    /// [`QueryError::Pattern`] if the pattern has more than 65,536 bytes as a regular expression,
    /// or its automaton has more than 8,192 states.
    pub(crate) fn wildcard(pattern: &str) -> Result<Self, QueryError> {
        compiled(pattern, regex::compile(&regex::of_wildcard(pattern)))
    }

    /// The terms that a regular expression matches in full.
    ///
    /// # Errors
    /// [`QueryError::Pattern`] if the expression is invalid, has more than 65,536 bytes, or its
    /// automaton has more than 8,192 states.
    pub(crate) fn regex(expression: &str) -> Result<Self, QueryError> {
        compiled(expression, regex::compile(expression))
    }

    /// The terms within `distance` (0 to 2) of `text` whose first `prefix_chars` characters are
    /// equal. With the distance 0, `text` may have any length.
    ///
    /// An edit inserts, deletes or replaces a character, or swaps two adjacent characters. No other
    /// edit may change the swapped characters (optimal string alignment).
    ///
    /// # Errors
    /// [`QueryError::Pattern`] if `distance` is greater than 2, or if it is not 0 and `text` has
    /// more than 64 characters.
    pub(crate) fn fuzzy(text: &str, distance: u8, prefix_chars: usize) -> Result<Self, QueryError> {
        if distance == 0 {
            let exact = Bound::Included(text.to_owned());
            return Ok(Self::range(exact.clone(), exact));
        }
        compiled(text, fuzzy::compile(text, distance, prefix_chars))
    }

    /// The terms that `query` matches in a field with this analyzer, if it is a prefix, wildcard,
    /// regular expression, fuzzy term or range; `None` for other queries.
    ///
    /// Texts are [normalized](Analyzer::normalize). Regular expressions are not.
    ///
    /// # Errors
    /// [`QueryError::Pattern`] if the pattern is invalid or too large.
    pub(crate) fn of(query: &Query, analyzer: &Analyzer) -> Result<Option<Self>, QueryError> {
        Ok(Some(match query {
            Query::Prefix { prefix, .. } => Self::prefix(analyzer.normalize(prefix)),
            Query::Wildcard { pattern, .. } => Self::wildcard(&normalized(pattern, analyzer))?,
            Query::Regex { pattern, .. } => Self::regex(pattern)?,
            Query::Fuzzy { text, distance, prefix_chars, .. } => {
                Self::fuzzy(&analyzer.normalize(text), *distance, *prefix_chars)?
            }
            Query::Range { from, to, .. } => {
                let normalized =
                    |bound: &Bound<String>| bound.as_ref().map(|text| analyzer.normalize(text));
                Self::range(normalized(from), normalized(to))
            }
            _ => return Ok(None),
        }))
    }

    /// The number of states of the automaton; 0 for a prefix or a range, which have no automaton.
    pub(crate) fn states(&self) -> usize {
        match &self.0 {
            Kind::Prefix(_) | Kind::Range(..) => 0,
            Kind::Table(table) => table.states(),
        }
    }

    /// The distance of `term` if it matches: the number of edits of a fuzzy term, otherwise 0.
    pub(crate) fn distance(&self, term: &str) -> Option<u8> {
        match self.step(term) {
            TermStep::Match { distance } => Some(distance),
            _ => None,
        }
    }

    /// The term to seek first; no term before it matches. `None` if no term can match.
    pub(crate) fn first(&self) -> Option<String> {
        match &self.0 {
            Kind::Prefix(prefix) => Some(prefix.clone()),
            Kind::Range(from, _) => Some(match from {
                Bound::Included(text) => text.clone(),
                Bound::Excluded(text) => successor(text),
                Bound::Unbounded => String::new(),
            }),
            Kind::Table(table) => least_match(table, table.start(), Vec::new()),
        }
    }

    /// Whether `term` matches, and where to continue.
    ///
    /// Cost: one step per byte of `term`, and up to 64 for the term to seek.
    pub(crate) fn step(&self, term: &str) -> TermStep {
        match &self.0 {
            Kind::Prefix(prefix) if term.starts_with(prefix) => TermStep::Match { distance: 0 },
            Kind::Prefix(prefix) if *term < **prefix => TermStep::Seek(prefix.clone()),
            Kind::Prefix(_) => TermStep::End,
            Kind::Range(from, to) => self.step_in_range(from, to, term),
            Kind::Table(table) => step_in_table(table, term),
        }
    }

    fn step_in_range(&self, from: &Bound<String>, to: &Bound<String>, term: &str) -> TermStep {
        let is_before = match from {
            Bound::Included(text) => *term < **text,
            Bound::Excluded(text) => *term <= **text,
            Bound::Unbounded => false,
        };
        let is_after = match to {
            Bound::Included(text) => *term > **text,
            Bound::Excluded(text) => *term >= **text,
            Bound::Unbounded => false,
        };
        match (is_after, is_before) {
            (true, _) => TermStep::End,
            (false, true) => self.first().map_or(TermStep::End, TermStep::Seek),
            (false, false) => TermStep::Match { distance: 0 },
        }
    }
}

fn compiled(pattern: &str, table: Result<Arc<Table>, String>) -> Result<TermMatcher, QueryError> {
    let table = table.map_err(|why| QueryError::Pattern { pattern: shown(pattern), why })?;
    Ok(TermMatcher(Kind::Table(table)))
}

/// Normalizes only the literal texts of a pattern, since an analyzer could turn another character
/// into a wildcard.
fn normalized(pattern: &str, analyzer: &Analyzer) -> String {
    let parts = parts(pattern).into_iter().enumerate().map(|(n, part)| match part {
        WildcardPart::Text(text) => WildcardPart::Text(analyzer.normalize_part(&text, n == 0)),
        part => part,
    });
    crate::query::wildcard::pattern_of(&parts.collect::<Vec<_>>())
}

/// The least term after `term`.
fn successor(term: &str) -> String {
    format!("{term}\0")
}

fn step_in_table(table: &Table, term: &str) -> TermStep {
    // The last place where a greater byte could have led to a match.
    let mut greater: Option<(usize, u8, StateId)> = None;
    let mut state = table.start();
    for (at, &byte) in term.as_bytes().iter().enumerate() {
        if let Some((next_byte, next)) =
            byte.checked_add(1).and_then(|least| table.least(state, least))
        {
            greater = Some((at, next_byte, next));
        }
        state = table.next(state, byte);
        if state == DEAD {
            return seek(table, term, greater);
        }
    }
    // Longer terms may match, and they come next in the order.
    table.distance(state).map_or(TermStep::Next, |distance| TermStep::Match { distance })
}

fn seek(table: &Table, term: &str, greater: Option<(usize, u8, StateId)>) -> TermStep {
    let Some((at, byte, state)) = greater else { return TermStep::End };
    let mut bytes = term.as_bytes().get(..at).unwrap_or_default().to_vec();
    bytes.push(byte);
    least_match(table, state, bytes).map_or(TermStep::End, TermStep::Seek)
}

/// The least match from `state`, to which `bytes` lead. If this match is long, returns a prefix of
/// the match instead, which sorts before the match.
fn least_match(table: &Table, mut state: StateId, mut bytes: Vec<u8>) -> Option<String> {
    let limit = bytes.len() + MAX_PATH_BYTES;
    while table.distance(state).is_none() {
        let (byte, next) = table.least(state, 0)?;
        bytes.push(byte);
        state = next;
        // Stop only at the end of a character: every automaton reads whole characters.
        if bytes.len() >= limit && std::str::from_utf8(&bytes).is_ok() {
            break;
        }
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Debug for TermMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Prefix(prefix) => write!(f, "TermMatcher({prefix:?}*)"),
            Kind::Range(from, to) => write!(f, "TermMatcher({from:?}, {to:?})"),
            Kind::Table(_) => write!(f, "TermMatcher(automaton)"),
        }
    }
}
