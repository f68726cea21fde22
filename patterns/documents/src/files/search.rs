//! Search for files by their contents and names.

use std::collections::BTreeSet;

use keyloom::{Reader, Result};
use keyloom_bitmaps::BitmapExpr;
use keyloom_kit::{Continuation, Page, starting_with};
use keyloom_text::{Highlighter, Query};

use super::{FileEntry, Files};
use crate::collapse::{Collapse, InnerHits};

/// The greatest number of pieces returned for each file.
// The key of each piece found is read, so a higher number costs more reads per file.
const PIECES: usize = 3;

/// A search for files; returned by [`Files::search`]. Nothing is read until
/// [`page`](FileSearch::page) is called.
#[derive(Clone, Debug)]
pub struct FileSearch<'f> {
    files: &'f Files,
    query: Query,
    scope: Scope,
    name_prefix: Option<String>,
    limit: usize,
    after: Option<Continuation>,
}

/// The directories that a search is limited to.
#[derive(Clone, Debug)]
enum Scope {
    All,
    Below(String),
    /// Only this directory, without the directories below it.
    Only(String),
}

/// A file that a query matches.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundFile {
    /// The path of the file.
    pub path: String,
    /// The id of the file.
    pub id: u32,
    /// The score of the best piece; greater is better.
    pub score: f64,
    /// The numbers of the best pieces, at most three, the best first.
    pub pieces: Vec<u32>,
}

impl Files {
    /// A search for files by their contents. The field of the contents in `query` is `contents`.
    pub fn search(&self, query: impl Into<Query>) -> FileSearch<'_> {
        let (scope, name_prefix, after) = (Scope::All, None, None);
        FileSearch { files: self, query: query.into(), scope, name_prefix, limit: 10, after }
    }

    /// Finds files and directories anywhere in the tree whose names begin with `prefix`. Returns at
    /// most `limit`, ordered by name: path, id and entry. Costs 1 range of the index, 2 gets for
    /// each entry, and 1 get for each directory above an entry. Entries that are being removed are
    /// read and skipped.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn find_named(
        &self,
        reader: &impl Reader,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<(String, u32, FileEntry)>> {
        let index = self.by_name.at(reader)?;
        let mut found = Vec::new();
        let mut entries = index.query().select(starting_with(prefix)).entries(reader)?;
        while found.len() < limit
            && let Some(entry) = entries.next()
        {
            let id = entry?.record_key()?;
            if let Some(path) = self.path_of(reader, id)? {
                found.push((path, id, self.entry(reader, id)?));
            }
        }
        Ok(found)
    }

    /// A highlighter that marks the words of a query in the text of a [piece](Files::piece).
    ///
    /// # Errors
    /// An error if the query is invalid.
    pub fn highlighter(&self, reader: &impl Reader, query: &Query) -> Result<Highlighter> {
        self.contents.at(reader)?.highlighter("contents", query)
    }
}

impl FileSearch<'_> {
    /// Limits the search to files below a directory, at any depth.
    #[must_use]
    pub fn within(self, directory: &str) -> Self {
        let scope = match directory {
            // Every file is below the root.
            "/" => Scope::All,
            _ => Scope::Below(directory.to_owned()),
        };
        Self { scope, ..self }
    }

    /// Limits the search to the files of one directory, without those of the directories below it.
    #[must_use]
    pub fn directly_in(self, directory: &str) -> Self {
        Self { scope: Scope::Only(directory.to_owned()), ..self }
    }

    /// Limits the search to files whose names begin with `prefix`.
    #[must_use]
    pub fn named(self, prefix: &str) -> Self {
        Self { name_prefix: Some(prefix.to_owned()), ..self }
    }

    /// Sets the greatest number of files of a page: 10 by default.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Continues after the page that returned `after`; from the beginning with `None`. A file that
    /// is neither changed nor moved is on exactly one page, even if other files are added, moved or
    /// removed between two pages.
    #[must_use]
    pub fn after(self, after: impl Into<Option<Continuation>>) -> Self {
        Self { after: after.into(), ..self }
    }

    /// The best files; fewer than the limit if some of them are being removed.
    ///
    /// # Errors
    /// The errors of [`Search`](keyloom_text::Search); [`FilesError`](super::FilesError) as
    /// returned by [`list`](Files::list) for the directory; any error of the store.
    pub fn page(&self, reader: &impl Reader) -> Result<Page<FoundFile>> {
        let Self { files, query, limit, after, .. } = self;
        let index = files.contents.at(reader)?;
        let mut search = index.search(query.clone());
        if let Some((name, ids)) = self.ids(reader)? {
            let terms = ids.iter().map(|id| index.records().term("file", *id));
            let ids = BitmapExpr::any_of(terms.collect::<Result<Vec<_>>>()?);
            search = search.changing_filter(&name, ids);
        }
        let inner = InnerHits::first(PIECES);
        let collapse = Collapse::new(search, "file").groups(*limit).inner(inner);
        let page = collapse.after(after.clone()).page(reader)?;
        let mut found = Vec::new();
        for group in page.items {
            let (id, _) = group.best.key;
            if let Some(path) = files.path_of(reader, id)? {
                let pieces = group.hits.iter().map(|hit| hit.key.1).collect();
                found.push(FoundFile { path, id, score: group.best.score, pieces });
            }
        }
        Ok(Page { items: found, next: page.next })
    }

    /// The ids of the files that the search is limited to, and the name of this filter. The ids may
    /// include ids of directories, which have no pieces. The name contains the id of the directory.
    /// So a continuation is refused if another directory is now at the path.
    fn ids(&self, reader: &impl Reader) -> Result<Option<(String, BTreeSet<u32>)>> {
        let prefix = self.name_prefix.as_deref().unwrap_or_default();
        Ok(Some(match &self.scope {
            Scope::All if self.name_prefix.is_none() => return Ok(None),
            Scope::All => {
                let named = self.files.find_named(reader, prefix, usize::MAX)?.into_iter();
                let files = named.filter(|(_, _, entry)| !entry.is_directory());
                (format!("named {prefix:?}"), files.map(|(_, id, _)| id).collect())
            }
            Scope::Below(directory) => {
                let directory = self.files.directory_at(reader, directory)?;
                let mut ids = BTreeSet::new();
                for entry in self.files.walk_at(reader, directory, "")? {
                    let (_, id, entry) = entry?;
                    if !entry.is_directory() && entry.name.starts_with(prefix) {
                        ids.insert(id);
                    }
                }
                (format!("below {directory} {prefix:?}"), ids)
            }
            Scope::Only(directory) => {
                let directory = self.files.directory_at(reader, directory)?;
                let index = self.files.by_place.at(reader)?;
                let named = index.query().select(starting_with((directory, prefix)));
                let ids = named.entries(reader)?.map(|entry| entry?.record_key());
                (format!("in {directory} {prefix:?}"), ids.collect::<Result<_>>()?)
            }
        }))
    }
}
