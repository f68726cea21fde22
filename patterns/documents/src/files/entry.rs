//! Entries of directories, and their names.

use serde::{Deserialize, Serialize};

use super::FilesError;

/// A file or a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub(super) directory: u32,
    /// The name of the entry in its directory.
    pub name: String,
    /// Whether the entry is a file or a directory.
    pub kind: Kind,
}

/// The kind of an entry: file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Kind {
    /// A directory.
    Directory,
    /// A file.
    File {
        /// The length of the contents in bytes.
        bytes: u64,
        /// The number of pieces that hold the contents.
        pieces: u32,
    },
}

impl FileEntry {
    /// Whether the entry is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }
}

/// The greatest length of a name in bytes, as on most file systems.
const MAX_NAME_BYTES: usize = 255;

/// The names of a path, from the root.
///
/// # Errors
/// [`FilesError::BadPath`].
pub(super) fn names(path: &str) -> Result<Vec<&str>, FilesError> {
    let refused = |name: &str, why| {
        let (path, name) = (path.to_owned(), name.chars().take(80).collect());
        FilesError::BadPath { path, name, why }
    };
    let Some(relative) = path.strip_prefix('/') else {
        return Err(refused(path, "a path begins with a slash"));
    };
    if relative.is_empty() {
        return Ok(Vec::new());
    }
    let check = |name| match name {
        "" => Err(refused(name, "a name is not empty")),
        "." | ".." => Err(refused(name, "a path has no relative parts")),
        _ if name.contains('\0') => Err(refused(name, "a name has no NUL")),
        _ if name.len() > MAX_NAME_BYTES => Err(refused(name, "a name has at most 255 bytes")),
        _ => Ok(name),
    };
    relative.split('/').map(check).collect()
}

/// Splits a path into the names of its directory and the last name.
///
/// # Errors
/// [`FilesError::BadPath`], also for the root.
pub(super) fn split(path: &str) -> Result<(Vec<&str>, &str), FilesError> {
    let mut names = names(path)?;
    let name = names.pop().ok_or_else(|| FilesError::BadPath {
        path: path.to_owned(),
        name: String::new(),
        why: "the root cannot be created, changed or removed",
    })?;
    Ok((names, name))
}
