//! Errors of a text index and its searches.

use keyloom::Error;

use crate::Query;
use crate::shown::shown;

/// An error of a text index, a search or a suggestion. Returned as an [`Error::Other`]; get it with
/// [`Error::downcast_ref`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The index has no field with this name. Use one of its fields, or declare a field with this
    /// name and raise the version of the index, so that the index is rebuilt.
    #[error("the text index {index} has no field {field:?}; it has {known}")]
    UnknownField {
        /// The subspace of the index.
        index: String,
        /// The requested name.
        field: String,
        /// The existing names.
        known: String,
    },
    /// A [grouped](crate::TextIndex::grouped) index declares a filter field with the name that is
    /// reserved for the field of its groups. Choose another name.
    #[error(
        "the text index {index} cannot have a field {field:?} to filter by: the name is reserved for the groups of the records; choose another name"
    )]
    ReservedField {
        /// The subspace of the index.
        index: String,
        /// The reserved name.
        field: String,
    },
    /// The key of a term would exceed the maximum length of a key. Shorten the subspace or the
    /// group, or let the analyzer shorten the term.
    #[error(
        "the term {term:?} of the field {field:?} makes a key of {bytes} bytes in the text index {index}, the limit is {limit}; use a shorter subspace or group, or an analyzer that shortens long terms"
    )]
    TermTooLong {
        /// The subspace of the index.
        index: String,
        /// The name of the field.
        field: String,
        /// The beginning of the term.
        term: String,
        /// The length of the key.
        bytes: usize,
        /// The maximum length of a key.
        limit: usize,
    },
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
        /// The maximum number of terms that the patterns of a query may read.
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
    /// A suggestion would read more terms of the dictionary than the limit.
    #[error(
        "suggestions for {text:?} would read more than {limit} terms of the field {field:?}; give a longer prefix, or more equal characters"
    )]
    TooManySuggestedTerms {
        /// The name of the field.
        field: String,
        /// The beginning of the prefix or word.
        text: String,
        /// The maximum number of terms.
        limit: usize,
    },
}

impl TextError {
    #[cold]
    pub(crate) fn too_many(query: &Query, limit: usize) -> Error {
        Self::TooManyTerms { query: shown(query), limit }.into()
    }

    #[cold]
    pub(crate) fn too_many_scanned(pattern: &Query, limit: usize) -> Error {
        Self::TooManyScannedTerms { query: shown(pattern), limit }.into()
    }
}

impl From<TextError> for Error {
    fn from(error: TextError) -> Self {
        Self::other(error)
    }
}
