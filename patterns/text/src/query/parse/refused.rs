//! Kinds of clauses that a parser refuses.

use std::fmt::{self, Display, Formatter};

use crate::query::Query;

/// A kind of clauses that can be expensive: see
/// [`QueryParser::refuse`](super::QueryParser::refuse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClauseKind {
    /// Regular expressions: `/rabb?it/`.
    Regex,
    /// Patterns that begin with `*` or `?`: `*bit`. Such a pattern reads the whole dictionary.
    LeadingWildcard,
    /// Fuzzy terms with a distance of at least 1: `rabit~`.
    Fuzzy,
    /// Near-queries, and phrases with slop: `NEAR(a b)`, `"a b"~2`.
    Proximity,
}

impl ClauseKind {
    /// The kind of a query that is not a combination.
    pub(super) fn of(query: &Query) -> Option<Self> {
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
