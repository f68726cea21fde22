//! A checker of LMDB data files. It uses ordinary reads, so that a truncated or damaged file causes
//! a clear error. The engine maps the file, so there such a file would cause a signal that kills
//! the process.
//!
//! [`quick_check`] checks the two meta pages and the length of the file. [`verify`] walks every
//! reachable page. Both support the format of LMDB 0.9 on 64-bit little-endian machines. All
//! numbers are little-endian.
//!
//! The file is an array of pages of one size. Pages 0 and 1 are meta pages; transaction n writes
//! page n mod 2. Every other page belongs to one tree, to one overflow run, or to the list of free
//! pages.
//!
//! ```text
//! page    0       8     10      12       14       16
//! header  | number | pad | flags | lower | upper | ...        branch, leaf
//!         | number | pad | flags |     pages     | value      overflow run, first page only
//!           u64      u16   u16     u16     u16                flags: 1 branch, 2 leaf,
//!                                                                    4 overflow, 8 meta
//!
//! branch  | header | offset u16 of each entry | free space | entries, packed |
//! or leaf 0        16                       lower        upper        page size
//!
//! entry   0      2      4       6          8
//! leaf    | size u32    | flags | key size | key | value      flags: 1 page of an overflow run, 2 tree
//! branch  | child page, 48 bits | key size | key |            the key of the first entry is not used
//!
//! meta    16      20        24        32         40          88          136         144
//! page    | magic | version | address | map size | free tree | main tree | last page | transaction |
//!           u32     u32       u64       u64        48 bytes    48 bytes    u64         u64
//!
//! tree    0           4       6       8              16           24               32        40
//! record  | page size | flags | depth | branch pages | leaf pages | overflow pages | entries | root |
//!           u32         u16     u16     u64            u64          u64              u64       u64
//! ```
//!
//! The *main tree* contains the tree record of each named database under its name. The *free tree*
//! contains page numbers under the transaction that freed them: a count, and then the page numbers
//! in descending order, each a `u64`. The page size is in the record of the free tree.
//!
//! # Faults that are found, and those that are not
//!
//! LMDB has no checksums. Every field that leads from page to page is checked against redundant
//! data; see [`FileRule`]. A *value* has no redundant data, and the only redundancy of a *key* is
//! its order. So damage inside a value or a key is not detected. The check also does not detect
//! damage to
//!
//! * the length of a value in an overflow run, if it became shorter, or longer within the last page
//!   of the run;
//! * a size, if it is wrong by one within the byte that pads an entry to an even length;
//! * the map size, if it became larger, and the flags of the whole file;
//! * the older meta page, as long as its numbers are valid: only the newest state is walked, and in
//!   a sound file the trees of the older meta page may be inconsistent, see below;
//! * unused bytes: the pad and the address, the key of the first entry of a branch, the free space
//!   of a page, free pages.
//!
//! # A meta page that could not be written
//!
//! If the write of a meta page fails, the engine restores the old last page and the old transaction
//! in that meta page, but leaves the new trees in it. This meta page is then older than the other
//! one and is not used, so its trees are not checked.
//!
//! # A file that another process writes to
//!
//! A walk takes time. A transaction that commits meanwhile may reuse pages of the state that is
//! being walked, so that a sound file appears damaged. Check a file that no process has open for
//! writing, or a copy made with [`Lmdb::backup`](crate::Lmdb::backup).

mod fault;
mod free_list;
mod meta;
mod meta_pages;
mod page;
mod page_set;
mod tree;
mod walk;

use std::fs::File;
use std::path::Path;

pub use fault::{Fault, FileError, FileRule};
pub use meta::{Meta, TreeRecord};

use meta_pages::MetaPages;
use walk::Walk;

/// The number of faults that a [`FileReport`] lists. Further faults are only counted.
// A destroyed file has a fault on each page, and the first faults show where the damage begins.
pub const MAX_LISTED_FAULTS: usize = 100;

/// The greatest depth of a tree in LMDB.
const MAX_DEPTH: u16 = 32;

/// The result of [`quick_check`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuickCheck {
    /// Both meta pages are sound, and the file is as long as they require.
    Complete(Meta),
    /// The meta pages are sound, but the file ends before the last page.
    ///
    /// A sound file may be this short: LMDB does not write a page that one transaction allocates
    /// and frees again, even if it is the last page. A truncated file looks the same, but a program
    /// that maps it crashes. [`verify`] distinguishes the two cases.
    Short {
        /// The newest meta page.
        meta: Meta,
        /// The length of the file.
        file_bytes: u64,
        /// The length up to which the engine has allocated pages.
        expected_bytes: u64,
    },
    /// A meta page breaks a rule, or refers to a page past the end of the file.
    /// [`Lmdb::open`](crate::Lmdb::open) refuses such a file, unless the only fault is one of
    /// [`FileRule::TransactionIds`].
    Damaged(Fault),
}

/// The result of [`verify`].
///
/// The counts do not include pages that a fault made unreachable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileReport {
    /// The meta page of the state that was walked: the newest sound one.
    pub meta: Meta,
    /// The length of the file.
    pub file_bytes: u64,
    /// Pages that refer to other pages, in all trees.
    pub branch_pages: u64,
    /// Pages with entries, in all trees.
    pub leaf_pages: u64,
    /// Pages with values that are too large for a leaf, in all trees.
    pub overflow_pages: u64,
    /// Pages in the list of free pages.
    pub free_pages: u64,
    /// The number of free pages past the end of the file, where they are harmless.
    pub free_pages_past_end: u64,
    /// The named databases in the order of their names, with the counts that the walk found. Bytes
    /// of a name that are not UTF-8 are shown as U+FFFD.
    pub databases: Vec<(String, TreeRecord)>,
    /// The first [`MAX_LISTED_FAULTS`] faults.
    pub faults: Vec<Fault>,
    /// The number of faults, listed or not.
    pub fault_count: u64,
}

impl FileReport {
    /// Whether no fault was found.
    pub fn is_sound(&self) -> bool {
        self.fault_count == 0
    }

    fn new(meta: Meta, file_bytes: u64) -> Self {
        Self {
            meta,
            file_bytes,
            branch_pages: 0,
            leaf_pages: 0,
            overflow_pages: 0,
            free_pages: 0,
            free_pages_past_end: 0,
            databases: Vec::new(),
            faults: Vec::new(),
            fault_count: 0,
        }
    }

    fn record(&mut self, fault: Fault) {
        self.fault_count += 1;
        if self.faults.len() < MAX_LISTED_FAULTS {
            self.faults.push(fault);
        }
    }
}

/// Reads the newest sound meta page of the data file `path`. Costs two reads, or up to five if the
/// first meta page is not sound.
///
/// The engine refuses a file if either meta page is unreadable, and uses the newer page even if its
/// contents are invalid. [`quick_check`] reports both cases.
///
/// # Errors
/// [`FileError`] if there is no sound meta page.
pub fn read_meta(path: impl AsRef<Path>) -> Result<Meta, FileError> {
    Ok(MetaPages::read(&open(path.as_ref())?.0)?.newest)
}

/// Runs the checks of constant cost: both meta pages, the length of the file, and whether the roots
/// of the trees are inside the file. Costs two reads, or up to five if the first meta page is not
/// sound.
///
/// ```
/// use keyloom::{Lmdb, lmdb::file::{QuickCheck, quick_check}};
/// let directory = tempfile::tempdir()?;
/// drop(Lmdb::open(directory.path())?);
/// let found = quick_check(directory.path().join("data.mdb"))?;
/// assert!(matches!(found, QuickCheck::Complete(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`FileError`] if the file cannot be read or is not a supported LMDB data file.
pub fn quick_check(path: impl AsRef<Path>) -> Result<QuickCheck, FileError> {
    let (file, file_bytes) = open(path.as_ref())?;
    let MetaPages { newest: meta, faults } = MetaPages::read(&file)?;
    let fault = faults.into_iter().next();
    let fault = fault.or_else(|| meta.last_page_fault(file_bytes));
    if let Some(fault) = fault.or_else(|| meta.root_fault(file_bytes)) {
        return Ok(QuickCheck::Damaged(fault));
    }
    // Cannot overflow: in a sound meta page, the map contains the last page.
    let expected_bytes = (meta.last_page + 1) * u64::from(meta.page_bytes);
    if file_bytes < expected_bytes {
        return Ok(QuickCheck::Short { meta, file_bytes, expected_bytes });
    }
    Ok(QuickCheck::Complete(meta))
}

/// Walks every reachable page of the data file `path`: the free list, the main tree and all named
/// databases.
///
/// `progress` is called at intervals with the number of pages checked so far and the total. Costs
/// one read per branch page, leaf page and overflow run. The values in a run are not read, except
/// those of the free list. Needs memory for two bits per page and one page per level of the tree. A
/// walk ends whatever the file contains, since no page is visited twice.
///
/// ```
/// use keyloom::{Lmdb, Store, Writer, lmdb::file::verify};
/// let directory = tempfile::tempdir()?;
/// let store = Lmdb::open(directory.path())?;
/// store.transact(|txn| txn.put(b"a", b"1"))?;
/// let report = verify(directory.path().join("data.mdb"), |_done, _total| ())?;
/// assert!(report.is_sound());
/// assert_eq!(report.databases.iter().map(|(_, tree)| tree.entries).sum::<u64>(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`FileError`] if the file cannot be read or is not a supported LMDB data file. Damage is not an
/// error but is listed in [`FileReport::faults`].
pub fn verify(
    path: impl AsRef<Path>,
    progress: impl FnMut(u64, u64),
) -> Result<FileReport, FileError> {
    let (file, file_bytes) = open(path.as_ref())?;
    let MetaPages { newest: meta, faults } = MetaPages::read(&file)?;
    let mut walk = Walk::new(&file, meta, file_bytes, progress);
    for fault in faults {
        walk.report.record(fault);
    }
    Ok(walk.run())
}

fn open(path: &Path) -> Result<(File, u64), FileError> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(FileError::NotLmdb { why: "it is not a regular file" });
    }
    Ok((file, metadata.len()))
}
