//! Errors of a file system.

use keyloom::Error;

/// An error of a file system. It is returned as an [`Error::Other`]; get it with
/// [`Error::downcast_ref`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The text is not a path. Write the path from the root, with names that are not empty.
    #[error("{path:?} is not a path, because of the name {name:?}: {why}")]
    BadPath {
        /// The refused path.
        path: String,
        /// The name that is not allowed.
        name: String,
        /// The rule that the name breaks.
        why: &'static str,
    },
    /// A directory has no entry with this name. Create the entry, or use the path of an existing
    /// one.
    #[error(
        "there is no {path}: a directory has no entry {missing:?}; create it, or use another path"
    )]
    NotFound {
        /// The requested path.
        path: String,
        /// The first name of the path that does not exist.
        missing: String,
    },
    /// A file is used as a directory. Use the path of a directory.
    #[error("{path} is a file, not a directory; use the path of a directory")]
    NotADirectory {
        /// The path of the file.
        path: String,
    },
    /// A directory is used as a file. Use the path of a file.
    #[error("{path} is a directory, not a file; use the path of a file")]
    IsADirectory {
        /// The path of the directory.
        path: String,
    },
    /// There is already an entry at this path. Remove that entry, or use another name.
    #[error("{path} exists; remove it, or use another name")]
    Exists {
        /// The path that exists.
        path: String,
    },
    /// The directory has entries. Remove them, or use
    /// [`remove_all`](super::Files::remove_all).
    #[error("the directory {path} has entries; remove them, or all of it")]
    NotEmpty {
        /// The path of the directory.
        path: String,
    },
    /// A directory cannot be moved below itself. Choose a path outside the directory.
    #[error("{from} cannot be moved to {to}, which is below it; choose a place outside")]
    BelowItself {
        /// The path of the directory.
        from: String,
        /// The new path.
        to: String,
    },
    /// All blocks of ids are assigned, and the new entry needs another one. Copy the files to a new
    /// file system, which begins with the first id.
    #[error(
        "a file system has at most {limit} entries in its lifetime; copy the files to a new one"
    )]
    Full {
        /// The greatest id that can be assigned.
        limit: u32,
    },
    /// The stored data contradict each other. Check the schema.
    #[error("the entry with the id {id} is damaged: {why}; check the schema")]
    Damaged {
        /// The id of the entry.
        id: u32,
        /// The fault.
        why: &'static str,
    },
}

impl From<FilesError> for Error {
    fn from(error: FilesError) -> Self {
        Self::other(error)
    }
}
