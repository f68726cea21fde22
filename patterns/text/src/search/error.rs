//! Errors of a search.

use keyloom::Error;

/// An error of a search. It is returned as an [`Error::Other`]; get it with
/// [`Error::downcast_ref`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// A prefix or another pattern stands for more terms than allowed. Make it more selective, or
    /// raise the limit.
    #[error(
        "the query {query} stands for more than {limit} terms; make it more selective, or raise the limit"
    )]
    TooManyTerms {
        /// The query.
        query: String,
        /// The greatest number of terms.
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

impl From<SearchError> for Error {
    fn from(error: SearchError) -> Self {
        Self::other(error)
    }
}
