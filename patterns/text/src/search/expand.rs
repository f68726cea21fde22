//! The terms of the dictionary that a pattern matches.

use std::borrow::Cow;
use std::cell::Cell;

use keyloom::{Error, KeyRange, Order, Reader, Result};
use keyloom_kit::Walk;

use crate::Query;
use crate::index::TextError;
use crate::index::{Catalog, FieldInfo};
use crate::terms::{DEFAULT_MAX_STATES, StateBudget, TermStep};

/// Limits of the patterns of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expansion {
    /// The maximum number of terms of the query, including those that its patterns match.
    pub(crate) max_terms: usize,
    /// The maximum number of states of all automata.
    pub(crate) max_states: usize,
    /// The maximum number of terms of the dictionary that all patterns read.
    pub(crate) max_scanned_terms: usize,
}

/// The states and the terms of the dictionary that the patterns of one query have used so far.
#[derive(Debug)]
pub(crate) struct Expanding {
    states: StateBudget,
    scanned: Cell<usize>,
}

/// A term of the dictionary that a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MatchedTerm {
    pub(crate) term: String,
    /// The number of edits of a fuzzy term, otherwise 0.
    pub(crate) distance: u8,
}

impl Default for Expansion {
    fn default() -> Self {
        // 1,024 is Lucene's limit of clauses. The limit counts the terms of the whole query: with a
        // limit per pattern, a query text of one megabyte opened a cursor for each of its clauses.
        let (max_terms, max_scanned_terms) = (1_024, 1_000_000);
        Self { max_terms, max_states: DEFAULT_MAX_STATES, max_scanned_terms }
    }
}

impl Expansion {
    /// Begins the expansion of a query.
    pub(crate) fn begin(self) -> Expanding {
        Expanding { states: StateBudget::new(self.max_states), scanned: Cell::new(0) }
    }

    /// The terms that a pattern matches, in order. They are found by seeks in the dictionary.
    ///
    /// # Errors
    /// [`TextError::TooManyTerms`]; [`TextError::TooManyScannedTerms`];
    /// [`QueryError::TooManyStates`](crate::QueryError::TooManyStates);
    /// [`TextError::UnknownField`](crate::TextError::UnknownField);
    /// [`QueryError::Pattern`](crate::QueryError::Pattern); any error of the store.
    pub(crate) fn terms(
        self,
        taken: &Expanding,
        catalog: &impl Catalog,
        reader: &impl Reader,
        pattern: &Query,
    ) -> Result<(FieldInfo, Vec<MatchedTerm>)> {
        let field = catalog.field(field_of(pattern)?)?;
        let mut terms = Vec::new();
        let Some(matcher) = catalog.matcher(field.number, pattern)? else {
            return Err(unsupported(pattern));
        };
        taken.states.add(&matcher, pattern)?;
        let Some(first) = matcher.first() else { return Ok((field, terms)) };
        let dictionary = catalog.dictionary();
        let of_field = dictionary.range_of(&(field.number,));
        let rest = |term: &str| {
            let from = dictionary.pack(&(field.number, term));
            of_field.clone().intersect(KeyRange::starting_at(&from)).into_owned()
        };
        let mut walk = Walk::open(reader, rest(&first), Order::Ascending)?;
        let mut next = walk.step()?;
        while let Some((key, count)) = next {
            taken.scanned.set(taken.scanned.get().saturating_add(1));
            if taken.scanned.get() > self.max_scanned_terms {
                return Err(TextError::too_many_scanned(pattern, self.max_scanned_terms));
            }
            let term = dictionary.unpack::<(u32, Cow<'_, str>)>(&key);
            let (_, term) = term.map_err(|error| Error::from(error).at(&key))?;
            next = match matcher.step(&term) {
                TermStep::Match { distance } => {
                    // A counter of 0 may remain after the last document of a term.
                    if count.iter().any(|byte| *byte != 0) {
                        terms.push(MatchedTerm { term: term.into_owned(), distance });
                        self.check(terms.len(), pattern)?;
                    }
                    walk.step()?
                }
                TermStep::Next => walk.step()?,
                TermStep::Seek(term) => walk.leave(rest(&term))?,
                TermStep::End => None,
            };
        }
        Ok((field, terms))
    }

    fn check(self, terms: usize, pattern: &Query) -> Result<()> {
        match terms > self.max_terms {
            true => Err(TextError::too_many(pattern, self.max_terms)),
            false => Ok(()),
        }
    }
}

fn field_of(pattern: &Query) -> Result<&str> {
    match pattern {
        Query::Prefix { field, .. }
        | Query::Wildcard { field, .. }
        | Query::Regex { field, .. }
        | Query::Fuzzy { field, .. }
        | Query::Range { field, .. } => Ok(field),
        _ => Err(unsupported(pattern)),
    }
}

#[cold]
fn unsupported(query: &Query) -> Error {
    Error::InvalidArgument {
        what: "the query",
        value: query.to_string(),
        why: "it is not a pattern; use a prefix, wildcard, regular expression, fuzzy term or range",
    }
}
