//! Errors of a search.

use keyloom::Error;

use crate::Query;
use crate::shown::shown;

/// An error of a search. Returned as an [`Error::Other`]; get it with [`Error::downcast_ref`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// A query has more terms than [`max_terms`](crate::Search::max_terms) allows, including the
    /// terms that its prefixes and other patterns match. Make the query more selective, or raise
    /// the limit.
    #[error(
        "the query {query} stands for more than {limit} terms; make it more selective, or raise the limit"
    )]
    TooManyTerms {
        /// The beginning of the query, or of a pattern that alone has too many terms.
        query: String,
        /// The maximum number of terms of a query.
        limit: usize,
    },
    /// The patterns of a query read more terms of the dictionary than
    /// [`max_scanned_terms`](crate::Search::max_scanned_terms) allows.
    #[error(
        "the patterns of the query read more than {limit} terms of the dictionary with {query}; begin them with literal text, or raise max_scanned_terms"
    )]
    TooManyScannedTerms {
        /// The beginning of the pattern that exceeds the limit.
        query: String,
        /// The maximum number of terms read.
        limit: usize,
    },
    /// A near-query that contains phrases or near-queries takes too many steps in one document. Use
    /// fewer spans, rarer terms, or less slop.
    #[error(
        "a nested near-query takes more than {limit} steps in the document {id}; use fewer spans, rarer terms, or less slop"
    )]
    TooManySpans {
        /// The id of the document.
        id: u32,
        /// The maximum number of steps in a document.
        limit: usize,
    },
    /// The index has postings of a document without a record. Repair the index.
    #[error("the document {id} of the text index {index} has no record; repair the index")]
    NoRecord {
        /// The subspace of the index.
        index: String,
        /// The id of the document.
        id: u32,
    },
}

impl SearchError {
    #[cold]
    pub(crate) fn too_many(query: &Query, limit: usize) -> Error {
        Self::TooManyTerms { query: shown(query), limit }.into()
    }

    #[cold]
    pub(super) fn too_many_scanned(pattern: &Query, limit: usize) -> Error {
        Self::TooManyScannedTerms { query: shown(pattern), limit }.into()
    }
}

impl From<SearchError> for Error {
    fn from(error: SearchError) -> Self {
        Self::other(error)
    }
}
