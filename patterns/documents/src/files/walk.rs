//! Walks of directory trees.

use keyloom::{Reader, Result};

use super::{FileEntry, Files};

/// The number of entries that are read together.
// A directory with more entries costs more round trips. All of its entries are kept in memory in
// any case.
const BATCH: usize = 1_000;

/// Iterates over the entries below a directory, parents first, ordered by name; returned by
/// [`Files::walk`]. Keeps the entries of the directories on the current path in memory.
#[derive(Debug)]
pub struct FileWalk<'f, 'r, R> {
    files: &'f Files,
    reader: &'r R,
    /// The entries still to visit, with the paths of their directories. The last element is visited
    /// next.
    stack: Vec<(String, u32, FileEntry)>,
    has_failed: bool,
}

impl Files {
    /// The entries below a directory, each with its path and its id.
    ///
    /// # Errors
    /// [`FilesError`](super::FilesError) as returned by [`list`](Files::list); any error of the
    /// store. The iterator also returns errors of the store.
    pub fn walk<'f, 'r, R: Reader>(
        &'f self,
        reader: &'r R,
        path: &str,
    ) -> Result<FileWalk<'f, 'r, R>> {
        let directory = self.directory_at(reader, path)?;
        self.walk_at(reader, directory, path.trim_end_matches('/'))
    }

    /// [`walk`](Files::walk) of the directory with this id, whose path is `path`.
    pub(super) fn walk_at<'f, 'r, R: Reader>(
        &'f self,
        reader: &'r R,
        directory: u32,
        path: &str,
    ) -> Result<FileWalk<'f, 'r, R>> {
        let mut walk = FileWalk { files: self, reader, stack: Vec::new(), has_failed: false };
        walk.push(directory, path)?;
        Ok(walk)
    }
}

impl<R: Reader> FileWalk<'_, '_, R> {
    fn push(&mut self, directory: u32, path: &str) -> Result<()> {
        let (from, mut after) = (self.stack.len(), None);
        loop {
            let page = self.files.entries_of(self.reader, directory, BATCH, after.as_ref())?;
            let entries = page.items.into_iter().map(|(id, entry)| (path.to_owned(), id, entry));
            self.stack.extend(entries);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        self.stack.get_mut(from..).unwrap_or_default().reverse();
        Ok(())
    }
}

impl<R: Reader> Iterator for FileWalk<'_, '_, R> {
    type Item = Result<(String, u32, FileEntry)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (directory, id, entry) = self.stack.pop().filter(|_| !self.has_failed)?;
        let path = format!("{directory}/{}", entry.name);
        if entry.is_directory()
            && let Err(error) = self.push(id, &path)
        {
            self.has_failed = true;
            return Some(Err(error));
        }
        Some(Ok((path, id, entry)))
    }
}
