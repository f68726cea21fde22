//! Removal of files and directories.

use std::ops::ControlFlow;

use keyloom::{Reader, Result, Store, Writer};
use keyloom_kit::{Progress, RepairOptions, in_batches};

use super::{FileEntry, Files, FilesError, Kind, TRASH};

impl Files {
    /// Removes a file, or a directory that is empty.
    ///
    /// # Errors
    /// [`FilesError::BadPath`], [`FilesError::NotFound`], [`FilesError::NotADirectory`],
    /// [`FilesError::NotEmpty`]; any error of the store.
    pub fn remove(&self, txn: &mut impl Writer, path: &str) -> Result<()> {
        txn.guarded(|txn| {
            let (id, entry) = self.required(txn, path)?;
            self.remove_empty(txn, id, &entry, path)
        })
    }

    /// Removes the entry at a path unless it is a directory with entries.
    pub(super) fn remove_empty(
        &self,
        txn: &mut impl Writer,
        id: u32,
        entry: &FileEntry,
        path: &str,
    ) -> Result<()> {
        if entry.is_directory() && self.first_in(txn, id)?.is_some() {
            return Err(FilesError::NotEmpty { path: path.to_owned() }.into());
        }
        self.remove_entry(txn, id, entry).map(drop)
    }

    /// Removes a file, or a directory with all its contents. One transaction removes the path;
    /// further transactions delete the records. If they are interrupted, [`sweep`](Files::sweep)
    /// completes the removal. The returned progress counts the deleted entries and pieces,
    /// including those of earlier incomplete removals.
    ///
    /// # Errors
    /// [`FilesError::BadPath`], [`FilesError::NotFound`], [`FilesError::NotADirectory`]; any error
    /// of the store.
    pub fn remove_all(&self, store: &impl Store, path: &str) -> Result<Progress> {
        store.transact(|txn| {
            let (id, mut entry) = self.required(txn, path)?;
            (entry.directory, entry.name) = (TRASH, id.to_string());
            self.entries.put(txn, &id, &entry)
        })?;
        self.sweep(store)
    }

    /// Completes interrupted removals, in bounded transactions. [`Progress::removed`] is the number
    /// of deleted entries and pieces.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn sweep(&self, store: &impl Store) -> Result<Progress> {
        self.sweep_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`sweep`](Files::sweep) with options. Calls `progress` after each transaction and stops if
    /// `progress` breaks. The next sweep removes the rest, and needs no position to resume.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn sweep_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_batches(store, options, progress, |txn, batch, done| {
            let removed = self.remove_some(txn, batch as u64)?;
            done.removed += removed;
            done.finished = removed < batch as u64;
            Ok(())
        })
    }

    /// Removes entries and their pieces from the trash, until at least `batch` records are removed
    /// or the trash is empty. Returns the number of records removed.
    fn remove_some(&self, txn: &mut impl Writer, batch: u64) -> Result<u64> {
        let (mut removed, mut directories) = (0, Vec::<(u32, FileEntry)>::new());
        while removed < batch {
            let at = directories.last().map_or(TRASH, |(id, _)| *id);
            match self.first_in(txn, at)? {
                Some((id, entry)) if entry.is_directory() => directories.push((id, entry)),
                Some((id, entry)) => removed += self.remove_entry(txn, id, &entry)?,
                None => match directories.pop() {
                    Some((id, entry)) => removed += self.remove_entry(txn, id, &entry)?,
                    None => break,
                },
            }
        }
        Ok(removed)
    }

    fn first_in(&self, reader: &impl Reader, directory: u32) -> Result<Option<(u32, FileEntry)>> {
        Ok(self.entries_of(reader, directory, 1, None)?.items.pop())
    }

    /// Removes an entry and its pieces; returns the number of records removed.
    fn remove_entry(&self, txn: &mut impl Writer, id: u32, entry: &FileEntry) -> Result<u64> {
        let pieces = match entry.kind {
            Kind::File { pieces, .. } => pieces,
            Kind::Directory => 0,
        };
        self.remove_pieces(txn, id, 0..pieces)?;
        self.entries.delete(txn, &id)?;
        Ok(u64::from(pieces) + 1)
    }
}
