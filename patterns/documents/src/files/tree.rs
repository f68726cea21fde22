//! Directories: paths, lists and renames.

use keyloom::{Reader, Result, Writer};
use keyloom_kit::{Continuation, Fnv, Page};

use super::entry::{names, split};
use super::{FileEntry, Files, FilesError, Kind, ROOT, TRASH};

/// The number of shards. Each shard assigns ids from a block of its own.
// With one counter, all concurrent creations conflict. `IdBlocks` is not an alternative: it
// allocates ids in its own transaction, and these methods only have a transaction, not a store.
const SHARDS: u64 = 16;

/// The number of ids of a block.
// A new block writes the counter that all shards share, so smaller blocks cause more conflicts.
// Larger blocks lose more of the 2^32 ids: a shard leaves up to one block unused.
const BLOCK: u32 = 256;

/// The limit of walks towards the root: a longer walk is in a cycle.
const MAX_DEPTH: usize = 1 << 20;

impl Files {
    /// The entry at a path, and its id. `None` if the path does not exist, and for the root, which
    /// has no entry.
    ///
    /// # Errors
    /// [`FilesError::BadPath`]; [`FilesError::NotADirectory`] if a name before the last is that of
    /// a file; any error of the store.
    pub fn get(&self, reader: &impl Reader, path: &str) -> Result<Option<(u32, FileEntry)>> {
        if names(path)?.is_empty() {
            return Ok(None);
        }
        let (directories, name) = split(path)?;
        match self.directory(reader, path, &directories) {
            Ok(directory) => self.child(reader, directory, name),
            Err(error) => match error.downcast_ref() {
                Some(FilesError::NotFound { .. }) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// The entry at a path; an error if it does not exist.
    pub(super) fn required(&self, reader: &impl Reader, path: &str) -> Result<(u32, FileEntry)> {
        let (directories, name) = split(path)?;
        let directory = self.directory(reader, path, &directories)?;
        let found = self.child(reader, directory, name)?;
        found.ok_or_else(|| not_found(path, name))
    }

    /// The id of the directory at a path.
    pub(super) fn directory_at(&self, reader: &impl Reader, path: &str) -> Result<u32> {
        self.directory(reader, path, &names(path)?)
    }

    /// The id of the directory with these names. `path` is only used in errors.
    fn directory(&self, reader: &impl Reader, path: &str, names: &[&str]) -> Result<u32> {
        let mut directory = ROOT;
        for (n, name) in names.iter().enumerate() {
            let found = self.child(reader, directory, name)?;
            let (id, entry) = found.ok_or_else(|| not_found(path, name))?;
            if !entry.is_directory() {
                let names = names.get(..=n).unwrap_or_default();
                return Err(
                    FilesError::NotADirectory { path: format!("/{}", names.join("/")) }.into()
                );
            }
            directory = id;
        }
        Ok(directory)
    }

    fn child(
        &self,
        reader: &impl Reader,
        directory: u32,
        name: &str,
    ) -> Result<Option<(u32, FileEntry)>> {
        let found = self.by_place.at(reader)?.get(reader, (directory, name))?;
        let Some(found) = found else { return Ok(None) };
        let id: u32 = found.record_key()?;
        Ok(Some((id, self.entry(reader, id)?)))
    }

    pub(super) fn entry(&self, reader: &impl Reader, id: u32) -> Result<FileEntry> {
        let entry = self.entries.get(reader, &id)?;
        entry.ok_or_else(|| FilesError::Damaged { id, why: "it has no record" }.into())
    }

    /// The entries of a directory in the order of their names, and a continuation.
    ///
    /// # Errors
    /// [`FilesError::BadPath`], [`FilesError::NotFound`], [`FilesError::NotADirectory`];
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for a continuation of another
    /// directory; any error of the store.
    pub fn list(
        &self,
        reader: &impl Reader,
        path: &str,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<(u32, FileEntry)>> {
        let directory = self.directory_at(reader, path)?;
        self.entries_of(reader, directory, limit, after)
    }

    pub(super) fn entries_of(
        &self,
        reader: &impl Reader,
        directory: u32,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<(u32, FileEntry)>> {
        self.by_place.query().prefix(directory).limit(limit).after(after).records(reader)
    }

    /// The path of the entry with this id; `None` if the entry was removed or is being removed.
    /// Costs 1 get for the entry, and 1 for each directory above it.
    ///
    /// # Errors
    /// [`FilesError::Damaged`]; any error of the store.
    pub fn path_of(&self, reader: &impl Reader, id: u32) -> Result<Option<String>> {
        let Some(mut entry) = self.entries.get(reader, &id)? else { return Ok(None) };
        let mut names = Vec::new();
        while names.len() < MAX_DEPTH {
            let directory = entry.directory;
            names.push(entry.name);
            match directory {
                ROOT => {
                    names.reverse();
                    return Ok(Some(format!("/{}", names.join("/"))));
                }
                TRASH => return Ok(None),
                above => entry = self.entry(reader, above)?,
            }
        }
        Err(FilesError::Damaged { id, why: "it is below itself" }.into())
    }

    /// Creates a directory; returns its id. Its own directory must exist.
    ///
    /// # Errors
    /// [`FilesError::BadPath`], [`FilesError::NotFound`], [`FilesError::NotADirectory`],
    /// [`FilesError::Exists`], [`FilesError::Full`]; any error of the store.
    pub fn create_directory(&self, txn: &mut impl Writer, path: &str) -> Result<u32> {
        txn.guarded(|txn| {
            let (directories, name) = split(path)?;
            let directory = self.directory(txn, path, &directories)?;
            self.refuse_existing(txn, directory, name, path)?;
            let entry = FileEntry { directory, name: name.to_owned(), kind: Kind::Directory };
            self.add(txn, &entry)
        })
    }

    /// For the path of an entry: the id of its directory, its name, and the entry if it exists.
    pub(super) fn place<'p>(
        &self,
        reader: &impl Reader,
        path: &'p str,
    ) -> Result<(u32, &'p str, Option<(u32, FileEntry)>)> {
        let (directories, name) = split(path)?;
        let directory = self.directory(reader, path, &directories)?;
        Ok((directory, name, self.child(reader, directory, name)?))
    }

    fn refuse_existing(
        &self,
        reader: &impl Reader,
        directory: u32,
        name: &str,
        path: &str,
    ) -> Result<()> {
        match self.child(reader, directory, name)? {
            Some(_) => Err(FilesError::Exists { path: path.to_owned() }.into()),
            None => Ok(()),
        }
    }

    /// Adds an entry with a new id.
    pub(super) fn add(&self, txn: &mut impl Writer, entry: &FileEntry) -> Result<u32> {
        let id = self.new_id(txn, entry)?;
        self.entries.put(txn, &id, entry)?;
        Ok(id)
    }

    /// The next id of the entry's shard: from its current block, or from a new block if the current
    /// one is full.
    fn new_id(&self, txn: &mut impl Writer, entry: &FileEntry) -> Result<u32> {
        let shard = shard_of(entry);
        let next = self.last.get(txn, &shard)?.and_then(|last| last.checked_add(1));
        let id = match next.filter(|next| !next.is_multiple_of(BLOCK)) {
            Some(next) => next,
            None => {
                let last = self.last.get(txn, &0)?.unwrap_or(ROOT);
                let first = (last / BLOCK + 1).checked_mul(BLOCK);
                // The block that contains the id of the trash is not used.
                let first = first.filter(|first| *first < TRASH - BLOCK);
                let first = first.ok_or(FilesError::Full { limit: TRASH - BLOCK })?;
                self.last.put(txn, &0, &(first + (BLOCK - 1)))?;
                first
            }
        };
        self.last.put(txn, &shard, &id)?;
        Ok(id)
    }

    /// Moves a file, or a directory with all its contents, to another path, which must not exist.
    /// [`rename_over`](Files::rename_over) replaces what is there.
    ///
    /// Readers see the entry either at the old path or at the new one. Writes one record, however
    /// many entries are below a directory.
    ///
    /// # Errors
    /// [`FilesError::BadPath`]; [`FilesError::NotFound`] and [`FilesError::NotADirectory`] for
    /// either path; [`FilesError::Exists`]; [`FilesError::BelowItself`]; any error of the store.
    pub fn rename(&self, txn: &mut impl Writer, from: &str, to: &str) -> Result<()> {
        txn.guarded(|txn| {
            let (moved, existing) = self.moved(txn, from, to)?;
            match existing {
                Some(_) => Err(FilesError::Exists { path: to.to_owned() }.into()),
                None => self.entries.put(txn, &moved.0, &moved.1),
            }
        })
    }

    /// Moves an entry to another path, and replaces the entry that is there: a file replaces a
    /// file, and a directory an empty directory, as `rename` does in POSIX. At the new path,
    /// readers see either the replaced entry or the moved one. A rename to the same path changes
    /// nothing.
    ///
    /// Use it to publish a file that was written under another name.
    ///
    /// # Errors
    /// The errors of [`rename`](Files::rename), but instead of [`FilesError::Exists`]:
    /// [`FilesError::IsADirectory`] if a file would replace a directory,
    /// [`FilesError::NotADirectory`] if a directory would replace a file, and
    /// [`FilesError::NotEmpty`].
    pub fn rename_over(&self, txn: &mut impl Writer, from: &str, to: &str) -> Result<()> {
        txn.guarded(|txn| {
            let ((id, entry), existing) = self.moved(txn, from, to)?;
            if let Some((replaced, at)) = existing {
                let path = || to.to_owned();
                match (entry.is_directory(), at.is_directory()) {
                    _ if replaced == id => return Ok(()),
                    (false, true) => return Err(FilesError::IsADirectory { path: path() }.into()),
                    (true, false) => return Err(FilesError::NotADirectory { path: path() }.into()),
                    _ => self.remove_empty(txn, replaced, &at, to)?,
                }
            }
            self.entries.put(txn, &id, &entry)
        })
    }

    /// The id of the entry at `from`, its record after a move to `to`, and the entry at `to` if
    /// there is one.
    fn moved(
        &self,
        reader: &impl Reader,
        from: &str,
        to: &str,
    ) -> Result<((u32, FileEntry), Option<(u32, FileEntry)>)> {
        let (id, mut entry) = self.required(reader, from)?;
        let (directories, name) = split(to)?;
        let directory = self.directory(reader, to, &directories)?;
        if self.is_at_or_below(reader, directory, id)? {
            let (from, to) = (from.to_owned(), to.to_owned());
            return Err(FilesError::BelowItself { from, to }.into());
        }
        let existing = self.child(reader, directory, name)?;
        (entry.directory, entry.name) = (directory, name.to_owned());
        Ok(((id, entry), existing))
    }

    /// Whether `directory` is `other` or below it.
    fn is_at_or_below(&self, reader: &impl Reader, directory: u32, other: u32) -> Result<bool> {
        let mut at = directory;
        for _ in 0..MAX_DEPTH {
            match at {
                _ if at == other => return Ok(true),
                ROOT | TRASH => return Ok(false),
                _ => at = self.entry(reader, at)?.directory,
            }
        }
        Err(FilesError::Damaged { id: directory, why: "it is below itself" }.into())
    }
}

fn shard_of(entry: &FileEntry) -> u8 {
    let mut hash = Fnv::new();
    hash.add(&entry.directory.to_be_bytes());
    hash.add(entry.name.as_bytes());
    1 + (hash.finish() % SHARDS) as u8
}

fn not_found(path: &str, missing: &str) -> keyloom::Error {
    FilesError::NotFound { path: path.to_owned(), missing: missing.to_owned() }.into()
}
