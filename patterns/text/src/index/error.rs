//! Errors of a text index.

use keyloom::Error;

/// An error of a text index. Returned as an [`Error::Other`]; get it with [`Error::downcast_ref`].
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
}

impl From<TextError> for Error {
    fn from(error: TextError) -> Self {
        Self::other(error)
    }
}
