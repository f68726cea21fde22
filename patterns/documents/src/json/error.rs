//! Errors of JSON collections.

use keyloom::Error;

/// An error of a JSON collection. It is returned as an [`Error::Other`]; get it with
/// [`Error::downcast_ref`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The text is not a path. Correct it at the reported byte.
    #[error("{path:?} is not a path: at byte {at}, {why}")]
    BadPath {
        /// The refused text.
        path: String,
        /// The byte offset of the error.
        at: usize,
        /// The expected syntax at this offset.
        why: &'static str,
    },
    /// A document, a patch or a value of a query is nested too deeply. Use fewer levels, or store
    /// inner parts as documents of their own.
    #[error(
        "{what} has more than {limit} levels; use fewer, or store inner parts as documents of their own"
    )]
    TooDeep {
        /// The value that is too deep: the document with its key, its patch, a value of a query, or
        /// an example.
        what: String,
        /// The greatest depth.
        limit: usize,
    },
    /// The paths of an index have too many combinations of values in one document, in addition to
    /// one for each value. Use a nested index, or an index for each path.
    #[error("the document {key} has more than {limit} combinations of values at {paths}; {remedy}")]
    TooManyEntries {
        /// The key of the document.
        key: String,
        /// The paths of the index.
        paths: String,
        /// The greatest number of combinations.
        limit: usize,
        /// The advice in the message.
        remedy: &'static str,
    },
    /// There is a document with this key. Replace it, or use another key.
    #[error("there is a document {key}; replace it, or insert with another key")]
    Exists {
        /// The key of the document.
        key: String,
    },
    /// There is no document with this key. Insert it.
    #[error("there is no document {key}; insert it")]
    NoDocument {
        /// The key of the document.
        key: String,
    },
    /// No index begins with these paths. Declare such an index.
    #[error("the collection has no index that begins with {paths}; it has {known}; declare one")]
    NoIndex {
        /// The paths of the query.
        paths: String,
        /// The indexes of the collection.
        known: String,
    },
    /// The query has more conditions than the index has paths. Declare an index with all of them.
    #[error(
        "the query has {conditions} conditions, the index {index} has {paths} paths; leave some out, or declare an index with all of their paths"
    )]
    TooManyConditions {
        /// The paths of the index.
        index: String,
        /// The number of conditions.
        conditions: usize,
        /// The number of paths.
        paths: usize,
    },
    /// The value is not a JSON patch, or the patch does not apply to the document. The document is
    /// unchanged.
    #[error("the patch of the document {key} does not apply: {why}; the document is unchanged")]
    Patch {
        /// The key of the document.
        key: String,
        /// The error of the patch.
        why: String,
    },
    /// The patch has too many operations, or copies too much. Split it into several patches.
    #[error(
        "the patch of the document {key} has more than {limit} {what}; split it into several patches"
    )]
    PatchTooLarge {
        /// The key of the document.
        key: String,
        /// The unit of the limit: operations, or copied bytes.
        what: &'static str,
        /// The limit, in this unit.
        limit: usize,
    },
}

impl From<JsonError> for Error {
    fn from(error: JsonError) -> Self {
        Self::other(error)
    }
}
