//! Creating a store in files, so that no process sees an incomplete store.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// A temporary name next to `path`. A store is created under this name and then moved to `path`, so
/// that a process that dies meanwhile leaves nothing at `path` that another process would open. Two
/// calls return different names.
///
/// ```
/// use keyloom::backend::unfinished_path;
/// use std::path::Path;
/// let name = unfinished_path(Path::new("data/cities"));
/// assert_eq!(name.parent(), Some(Path::new("data")));
/// assert!(name.to_string_lossy().starts_with("data/cities."));
/// assert!(name.to_string_lossy().ends_with(".new"));
/// ```
pub fn unfinished_path(path: &Path) -> PathBuf {
    // A forked process has the random state of its parent, so the process id is hashed in.
    let random = RandomState::new().hash_one(std::process::id());
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{random:x}.new"));
    name.into()
}

/// Syncs the directory that contains `path`: without this, a power failure may lose the new name.
/// Does nothing on systems other than Unix, where a directory cannot be opened as a file.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("cities");
/// std::fs::write(&path, "")?;
/// keyloom::backend::sync_name(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The error of the system.
pub fn sync_name(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if cfg!(unix) { File::open(parent.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}
