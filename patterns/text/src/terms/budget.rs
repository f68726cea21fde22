//! The limit on the states of all automata of one query.

use std::cell::Cell;

use super::matcher::TermMatcher;
use crate::query::{Query, QueryError};

/// The default maximum number of states of all automata of a query: tables of at most 16 MiB. A
/// regular expression has up to 8,192 states, a fuzzy term of ten letters up to some 700.
// A limit per automaton is not sufficient: 13 kB of regular expressions in one query took seconds
// to compile.
pub(crate) const DEFAULT_MAX_STATES: usize = 32_768;

/// The cost of an automaton in addition to its states. Compiling the smallest expression takes
/// longer than adding this many states to a larger one.
const STATES_PER_AUTOMATON: usize = 64;

/// The maximum number of characters of a pattern in an error.
const SHOWN_CHARS: usize = 80;

/// The states of the automata of one query.
#[derive(Debug)]
pub(crate) struct StateBudget {
    limit: usize,
    used: Cell<usize>,
}

impl StateBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: Cell::new(0) }
    }

    /// Adds the automaton of a pattern, if it has one.
    ///
    /// # Errors
    /// [`QueryError::TooManyStates`] with the pattern that exceeds the limit.
    pub(crate) fn add(&self, matcher: &TermMatcher, pattern: &Query) -> Result<(), QueryError> {
        let states = match matcher.states() {
            0 => return Ok(()),
            states => states + STATES_PER_AUTOMATON,
        };
        self.used.set(self.used.get().saturating_add(states));
        match self.used.get() > self.limit {
            true => Err(QueryError::TooManyStates {
                pattern: pattern.to_string().chars().take(SHOWN_CHARS).collect(),
                limit: self.limit,
            }),
            false => Ok(()),
        }
    }
}
