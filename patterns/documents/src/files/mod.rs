//! A file system: directories, files with contents, and full-text search in the files.
//!
//! *How are files stored, renamed and searched, if a rename must be atomic?* The record of an entry
//! holds the id of its directory and its name. So a rename of a directory changes one record,
//! however many entries are below it. The contents of a file are split into pieces that fit into
//! values. The transaction that writes the pieces also indexes their words. The catalogue's
//! patterns are *adjacency lists* and *nested documents*: a search finds pieces, and the results
//! are [grouped](crate::collapse) by file.
//!
//! ```
//! use keyloom::{Memory, Store};
//! use keyloom_documents::files::Files;
//! use keyloom_tables::Schema;
//! use keyloom_text::Query;
//! let store = Memory::new();
//! let files = Files::open(&Schema::open(&store, "files")?)?;
//! store.transact(|txn| {
//!     files.create_directory(txn, "/books")?;
//!     files.create_directory(txn, "/books/carroll")?;
//!     files.write(txn, "/books/carroll/alice.txt", b"A white rabbit ran by.")
//! })?;
//! store.transact(|txn| files.rename(txn, "/books", "/library"))?;
//!
//! let snapshot = store.snapshot()?;
//! assert_eq!(files.read(&snapshot, "/library/carroll/alice.txt")?, b"A white rabbit ran by.");
//! let search = files.search(Query::term("contents", "rabbits")).within("/library");
//! assert_eq!(search.page(&snapshot)?.items[0].path, "/library/carroll/alice.txt");
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Key layout
//!
//! The data are in the tables of a schema. The root directory has the id 0 and no entry.
//!
//! | table or index | key | value |
//! |---|---|---|
//! | `entries` | id | a [`FileEntry`]: the id of its directory, its name, and its kind |
//! | `by_place`, unique | directory, name | id |
//! | `by_name` | name, id | |
//! | `pieces` | id, number | up to [`PIECE_BYTES`] of the contents, as text or as bytes |
//! | `contents`, a text index of the pieces | word, … | pieces; and the pieces of each id |
//! | `last` | 0 | the last id of all blocks that are assigned to shards |
//! | `last` | shard, 1 to 16 | the last id that the shard assigned, in its current block of 256 ids |
//!
//! ```text
//! ("by_place",   0, "books")      ->  256
//! ("by_place", 256, "carroll")    ->  512
//! ("by_place", 512, "alice.txt")  ->  768
//! ("pieces",   768, 0)            ->  "A white rabbit ran by."
//! ```
//!
//! # Invariants
//!
//! * Two entries of a directory have different names. An id is never used again.
//! * Every entry is below the root, or below the trash while [`remove_all`](Files::remove_all) is
//!   not finished. No directory is below itself.
//! * Contents that are valid UTF-8 without a NUL are text, and a piece ends after white space if
//!   there is some in its second half. Other contents have no words.
//!
//! # Cost
//!
//! d is the depth of a path, p the number of pieces of a file.
//!
//! | operation | cost |
//! |---|---|
//! | look-up of a path | 3 gets for each of d names, one after the other: the state of the index, its entry, and the record |
//! | [`read`](Files::read) | 1 get, 1 range of p keys |
//! | [`write`](Files::write) | 1 entry and p pieces, and the postings of the words that change |
//! | [`rename`](Files::rename), of a file or of a directory | 1 entry, and up to 2 keys in each of 2 indexes; a get for each directory above the new path |
//! | [`rename_over`](Files::rename_over) | a rename, and a [`remove`](Files::remove) of what is replaced |
//! | [`remove_all`](Files::remove_all) | a rename; then all entries and pieces below, in bounded transactions |
//! | [`list`](Files::list) | 1 range of the index, 1 get for each entry, in one round trip |
//! | [`walk`](Files::walk) | a list of each directory |
//! | [`search`](Files::search) | the search in pieces, and the paths of the files found |
//! | the same with a [name](FileSearch::named) | also 1 range of the index of names, 2 gets for each entry found and 1 for each directory above it, and the bitmap of each such file |
//! | the same [within](FileSearch::within) a directory | also a walk of the directory, and the bitmap of each file in it |
//! | the same [directly in](FileSearch::directly_in) a directory | also 1 range of its entries, and the bitmap of each |
//!
//! Each new entry takes its id from one of 16 shards, chosen by a hash of its directory and name.
//! So on a store with optimistic concurrency control, transactions that create directories
//! concurrently rarely conflict. Transactions that write the contents of new files do conflict:
//! each changes the ids of the text index, and the posting lists of common words. So they are
//! retried and commit one after the other.
//!
//! # When not to use it
//!
//! * For files of more than a few megabytes: each file is written in one transaction. Store the
//!   contents elsewhere, and only paths and texts here.
//! * If a query must match words that are far apart in a file: a query matches within a piece.
//!   Search for each word, and combine the files found.
//!
//! # Source
//!
//! The chapter on relations in C. Gormley and Z. Tong, *Elasticsearch: The Definitive Guide*
//! (2015), which implements a file system with full paths, and needs locks for a rename. Unix file
//! systems also store entries by parent directory and name.

mod check;
mod contents;
mod entry;
mod error;
mod remove;
mod search;
mod tree;
mod walk;

use std::fmt;
use std::ops::ControlFlow;

use keyloom::{Reader, Result, Store};
use keyloom_bitmaps::single;
use keyloom_kit::{Inconsistency, Progress, RepairOptions, Stages};
use keyloom_tables::schema::Attached;
use keyloom_tables::{Index, Schema, Table, entry as place};
use keyloom_text::{Analyzer, TextIndex};

pub use contents::PIECE_BYTES;
use contents::Piece;
pub use entry::{FileEntry, Kind};
pub use error::FilesError;
pub use search::{FileSearch, FoundFile};
pub use walk::FileWalk;

/// The id of the root directory.
const ROOT: u32 = 0;

/// The id of the directory of entries that are being removed.
const TRASH: u32 = u32::MAX;

/// A file system in a schema of its own; see the [module](self).
pub struct Files {
    entries: Table<u32, FileEntry>,
    by_place: Attached<Index<u32, FileEntry, (u32, String)>>,
    by_name: Attached<Index<u32, FileEntry, String>>,
    pieces: Table<(u32, u32), Piece>,
    contents: Attached<TextIndex<(u32, u32), Piece>>,
    last: Table<u8, u32>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("entries", &self.entries).finish_non_exhaustive()
    }
}

impl Files {
    /// Opens the file system of a schema; in a new schema, the file system is empty. Texts are
    /// indexed by the stems of English words.
    ///
    /// The indexes are derived data of the schema with the names `by_place`, `by_name` and
    /// `contents`.
    ///
    /// # Errors
    /// The errors of [`Schema::table`] and [`Schema::derive`].
    pub fn open<S: Store>(schema: &Schema<'_, S>) -> Result<Self> {
        Self::open_with(schema, &Analyzer::english())
    }

    /// [`open`](Files::open) with another analyzer for the texts.
    ///
    /// # Errors
    /// The errors of [`open`](Files::open).
    pub fn open_with<S: Store>(schema: &Schema<'_, S>, analyzer: &Analyzer) -> Result<Self> {
        let entries = schema.table::<u32, FileEntry>("entries")?;
        let by_place = schema.unique_index(&entries, "by_place", 1, |_, entry: &FileEntry| {
            place((entry.directory, &entry.name))
        })?;
        let by_name =
            schema.index(&entries, "by_name", 1, |_, entry: &FileEntry| place(&entry.name))?;
        let pieces = schema.table::<(u32, u32), Piece>("pieces")?;
        let contents = schema.derive(&pieces, "contents", 1, |space| {
            let index = TextIndex::new(space);
            let index = index.field("contents", analyzer.clone(), |_, piece: &Piece, add| {
                if let Piece::Text(text) = piece {
                    add(text);
                }
            });
            Ok(index.single_value("file", |(id, _): &(u32, u32), _| single(id)))
        })?;
        let last = schema.table::<u8, u32>("last")?;
        Ok(Self { entries, by_place, by_name, pieces, contents, last })
    }

    /// Repairs the indexes and the stored last id, in bounded transactions. Missing and surplus
    /// pieces, and entries without a directory, are not repaired: the data do not show which of two
    /// records is wrong.
    ///
    /// # Errors
    /// The errors of [`Attached::repair`].
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](Files::repair) with options. Calls `progress` after each transaction and stops if
    /// `progress` breaks.
    ///
    /// # Errors
    /// The errors of [`repair`](Files::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut stages = Stages::new(options, progress);
        stages.run(|options, progress| self.by_place.repair_with(store, options, progress))?;
        stages.run(|options, progress| self.by_name.repair_with(store, options, progress))?;
        stages.run(|_, progress| {
            store.transact(|txn| self.repair_last(txn))?;
            let done = Progress::complete();
            let _ = progress(&done);
            Ok(done)
        })?;
        stages.run(|options, progress| self.contents.repair_with(store, options, progress))?;
        stages.end()
    }

    /// Reports every inconsistency between the records and their indexes. Also reports faults of
    /// the records: pieces that are missing or belong to no file, entries whose directory does not
    /// exist or is a file, directories below themselves, and a stored last id smaller than that of
    /// an entry.
    ///
    /// Reads all entries and pieces once, in addition to the reads of the index checks. Keeps a few
    /// dozen bytes in memory for each entry.
    ///
    /// # Errors
    /// The errors of [`Attached::check`].
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let (places, names) = (self.by_place.check(reader)?, self.by_name.check(reader)?);
        let contents = self.contents.check(reader)?;
        Ok([places, names, contents, self.check_records(reader)?].concat())
    }
}
