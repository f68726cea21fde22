//! Faults of a file: either it is not an LMDB file, or it is a damaged LMDB file.

use std::{fmt, io};

/// The error of a file that cannot be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system cannot open or read the file.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file ends within its first meta page. The engine would initialize a file of length 0.
    #[error("the file has {file_bytes} bytes, too few for the meta pages of an LMDB file")]
    TooShort {
        /// The length of the file.
        file_bytes: u64,
    },
    /// The file is not an LMDB file.
    #[error("the file is not an LMDB data file: {why}")]
    NotLmdb {
        /// The reason.
        why: &'static str,
    },
    /// An LMDB file of a machine with another layout. Export the data on that machine and import it
    /// here.
    #[error(
        "the LMDB file was written on a {layout} machine, only 64-bit little-endian is supported"
    )]
    OtherLayout {
        /// The difference: `32-bit` or `big-endian`.
        layout: &'static str,
    },
    /// The LMDB file has another version of the format. LMDB 0.9 writes version 1.
    #[error("the LMDB file has data version {found}, the version supported is {supported}")]
    OtherVersion {
        /// The version found.
        found: u32,
        /// The version supported.
        supported: u32,
    },
    /// The file is an LMDB file, but neither of its meta pages is sound.
    #[error("neither meta page is sound; {first}; {second}")]
    NoSoundMeta {
        /// The fault of page 0.
        first: Fault,
        /// The fault of page 1.
        second: Fault,
    },
}

/// One fault, with its page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("page {page}: {rule}: {detail}")]
#[non_exhaustive]
pub struct Fault {
    /// The page with the fault.
    pub page: u64,
    /// The rule that the page breaks.
    pub rule: FileRule,
    /// The contents found.
    pub detail: String,
}

impl Fault {
    pub(super) fn new(page: u64, rule: FileRule, detail: impl Into<String>) -> Self {
        Self { page, rule, detail: detail.into() }
    }
}

/// The rules for the pages of a sound file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileRule {
    /// A meta page contains the magic number, the version and its page number, and valid flags and
    /// sizes.
    Meta,
    /// The meta pages are from two consecutive transactions, each in the page given by its parity.
    /// After a power failure, a store without fsyncs may break this rule and be sound otherwise.
    TransactionIds,
    /// The last page is inside the file, or the file is long enough to list the pages past its end
    /// as free.
    LastPage,
    /// The root, depth and flags of a tree record are consistent.
    TreeRecord,
    /// The counts in a tree record are equal to the counts of the walked tree.
    Counts,
    /// A page number is between 2 and the last page.
    PageRange,
    /// A page in use is inside the file. A truncated file breaks this rule.
    PastEnd,
    /// The system can read the page.
    Unreadable,
    /// A page is used only once.
    UsedTwice,
    /// A page in use is not in the list of free pages.
    UsedAndFree,
    /// Each page is in use or in the list of free pages. A lost page only wastes space. A copy with
    /// compaction removes the lost page, but LMDB 0.9 may refuse to make such a copy.
    Lost,
    /// A page's header contains the number of the page.
    PageNumber,
    /// A page has the kind that its level in the tree requires.
    PageKind,
    /// The free space of a page is inside the page, between the offsets and the entries.
    FreeSpace,
    /// The entries of a page are inside the page and fill the space after the free space, without
    /// gaps or overlaps.
    Packing,
    /// A page has at least the number of entries that its kind requires: 1 in a leaf and in a
    /// branch of the free tree, 2 in any other branch.
    TooFewEntries,
    /// An entry is a value, the first page of an overflow run or, in the main tree, a tree.
    EntryFlags,
    /// A key has 1 to 511 bytes; a key of the free list has 8.
    KeySize,
    /// Keys ascend within a page and are within the bounds set by the pages above.
    KeyOrder,
    /// An overflow run is long enough for its value.
    OverflowRun,
    /// A record of the free list contains as many page numbers as it states, in descending order.
    /// Each page is free only once. The key of the record is the number of a committed transaction.
    FreeList,
    /// The checker does not support this tree: its keys have several values, or are not ordered as
    /// bytes. The tree may be sound.
    Unsupported,
}

impl fmt::Display for FileRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Meta => "meta page",
            Self::TransactionIds => "transaction ids",
            Self::LastPage => "last page",
            Self::TreeRecord => "tree record",
            Self::Counts => "counts",
            Self::PageRange => "page range",
            Self::PastEnd => "past the end of the file",
            Self::Unreadable => "unreadable",
            Self::UsedTwice => "used twice",
            Self::UsedAndFree => "used and free",
            Self::Lost => "lost",
            Self::PageNumber => "page number",
            Self::PageKind => "page kind",
            Self::FreeSpace => "free space",
            Self::Packing => "packing of entries",
            Self::TooFewEntries => "too few entries",
            Self::EntryFlags => "entry flags",
            Self::KeySize => "key size",
            Self::KeyOrder => "key order",
            Self::OverflowRun => "overflow run",
            Self::FreeList => "free list",
            Self::Unsupported => "unsupported",
        })
    }
}
