//! Errors of documents.

use keyloom::Error;

/// An error of documents. It is returned as an [`Error::Other`]; get it with
/// [`Error::downcast_ref`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// The name is not valid for a path. Use a name that is not empty and has no dot: declare a
    /// path within an element on the elements.
    #[error(
        "{path:?} is not a path of the documents {documents}: {why}; use a name of one level, and declare deeper paths on the elements"
    )]
    Path {
        /// The name of the documents.
        documents: String,
        /// The refused name.
        path: String,
        /// The reason for the refusal.
        why: &'static str,
    },
    /// The path, or the chain of parents, has too many levels.
    #[error("{what} has more than {limit} levels; use fewer levels")]
    TooDeep {
        /// The path or the document.
        what: String,
        /// The greatest number of levels.
        limit: usize,
    },
    /// The document of a new element or child does not exist. Put the document first.
    #[error("there is no document {key} for the new record of {children}; put the document first")]
    NoDocument {
        /// The name of the elements or children.
        children: String,
        /// The key of the document in the store.
        key: String,
    },
    /// The record to change or to move does not exist.
    #[error("there is no record {key} to change; put it, or use one of the existing keys")]
    NoRecord {
        /// The key in the store.
        key: String,
    },
    /// A record cannot be moved to the key of another record. Choose another key, or remove the
    /// other record.
    #[error(
        "the record {key} exists already, and moving would replace it; remove it, or move to another key"
    )]
    Exists {
        /// The key in the store.
        key: String,
    },
    /// The document would become its own ancestor. Choose another parent.
    #[error("the document {key} would be its own ancestor; choose a parent that is not below it")]
    OwnAncestor {
        /// The key in the store.
        key: String,
    },
    /// The document has children, and the relation refuses to delete such a document. Delete or
    /// move the children first.
    #[error(
        "the document {key} has records in {children}, and these do not allow to delete it; delete or move them first"
    )]
    HasChildren {
        /// The key of the document in the store.
        key: String,
        /// The name of the children.
        children: String,
    },
    /// The matches are from another index, whose ids belong to other records. Search in the index
    /// of this table.
    #[error(
        "matches of the index {given} were given where those of {expected} are needed; search in the index {expected}"
    )]
    OtherIndex {
        /// The subspace of the index of the matches.
        given: String,
        /// The subspace of the index that is needed.
        expected: String,
    },
    /// The document has more elements than the [numbered fields](crate::numbered_fields) have
    /// numbers, so a search could not find the rest. Declare more numbers and build the index
    /// again, or use nested elements.
    #[error(
        "the document {key} has {count} elements, and there are numbered fields for {most}; declare fields for more elements, or use nested elements"
    )]
    TooManyElements {
        /// The key of the document in the store.
        key: String,
        /// The number of its elements.
        count: usize,
        /// The greatest number of elements.
        most: usize,
    },
    /// An element does not have one value for each name of the numbered fields. Pass an empty value
    /// for a missing one.
    #[error(
        "an element of the document {key} has {values} values, and the numbered fields have {names} names; pass one value per name, an empty one if it is missing"
    )]
    OtherValues {
        /// The key of the document in the store.
        key: String,
        /// The number of values of the element.
        values: usize,
        /// The number of names.
        names: usize,
    },
    /// An element covers more positions than the gap between two elements, so that a query by
    /// [proximity](crate::proximity) could miss it. Shorten its values, or use nested elements.
    #[error(
        "an element of the document {key} covers {positions} positions, the limit is {limit}; shorten its values, or use nested elements"
    )]
    LongElement {
        /// The key of the document in the store.
        key: String,
        /// The number of positions.
        positions: u32,
        /// The greatest number of positions.
        limit: u32,
    },
}

impl From<DocumentError> for Error {
    fn from(error: DocumentError) -> Self {
        Self::other(error)
    }
}
