//! Kinds of clauses that a parser refuses.

use std::fmt::{self, Display, Formatter};

use super::clauses::Parsing;
use super::error::{ParseError, ParseErrorKind};
use crate::query::Query;

/// The number of characters of a clause in an error.
const SHOWN_CHARS: usize = 80;

/// A kind of clauses that can take long: see [`QueryParser::refuse`](super::QueryParser::refuse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClauseKind {
    /// Regular expressions: `/rabb?it/`.
    Regex,
    /// Wildcards that begin with `*` or `?`, which read the whole dictionary: `*bit`.
    LeadingWildcard,
    /// Fuzzy terms with a distance of at least 1: `rabit~`.
    Fuzzy,
    /// Near-queries, and phrases with slop: `NEAR(a b)`, `"a b"~2`.
    Proximity,
}

impl ClauseKind {
    /// The kind of a query without parts.
    fn of(query: &Query) -> Option<Self> {
        match query {
            Query::Regex { .. } => Some(Self::Regex),
            Query::Wildcard { pattern, .. } if pattern.starts_with(['*', '?']) => {
                Some(Self::LeadingWildcard)
            }
            Query::Fuzzy { distance, .. } if *distance > 0 => Some(Self::Fuzzy),
            Query::Near { .. } => Some(Self::Proximity),
            Query::Phrase { slop, .. } if *slop > 0 => Some(Self::Proximity),
            _ => None,
        }
    }
}

impl Display for ClauseKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regex => "regular expressions",
            Self::LeadingWildcard => "wildcards at the beginning",
            Self::Fuzzy => "fuzzy terms",
            Self::Proximity => "near-queries and phrases with slop",
        })
    }
}

impl Parsing<'_> {
    /// The query of a clause that begins at a place, unless its kind is refused.
    pub(super) fn allowed(&self, at: usize, query: Query) -> Result<Query, ParseError> {
        match ClauseKind::of(&query).filter(|kind| self.parser.refused.contains(kind)) {
            None => Ok(query),
            Some(clause_kind) => {
                let clause = query.to_string().chars().take(SHOWN_CHARS).collect();
                let kind = ParseErrorKind::RefusedClause { kind: clause_kind, clause };
                Err(self.scan.error_at(at, kind))
            }
        }
    }
}
