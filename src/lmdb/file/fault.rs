//! What can be wrong with a file: not ours at all, or ours and damaged.

use std::{fmt, io};

/// Why a file cannot be checked at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system does not let the file be opened or read.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file ends within its first meta page; with 0 bytes the engine would take it for a new
    /// one.
    #[error("the file has {file_bytes} bytes, too few for the meta pages of an LMDB file")]
    TooShort {
        /// The length of the file.
        file_bytes: u64,
    },
    /// The file is something else.
    #[error("the file is not an LMDB data file: {why}")]
    NotLmdb {
        /// What gave it away.
        why: &'static str,
    },
    /// An LMDB file of a machine whose layout differs. Dump it there and load it here.
    #[error(
        "the LMDB file was written on a {layout} machine, only 64-bit little-endian is supported"
    )]
    OtherLayout {
        /// What differs: `32-bit` or `big-endian`.
        layout: &'static str,
    },
    /// An LMDB file of another version of the format: LMDB 0.9 writes version 1.
    #[error("the LMDB file has data version {found}, the version supported is {supported}")]
    OtherVersion {
        /// The version found.
        found: u32,
        /// The one version known.
        supported: u32,
    },
    /// The file is an LMDB file, but neither of its meta pages is sound.
    #[error("neither meta page is sound; {first}; {second}")]
    NoSoundMeta {
        /// What is wrong with page 0.
        first: Fault,
        /// What is wrong with page 1.
        second: Fault,
    },
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("page {page}: {rule}: {detail}")]
#[non_exhaustive]
pub struct Fault {
    /// The page in which it shows.
    pub page: u64,
    /// The rule that the page breaks.
    pub rule: Rule,
    /// What was found there.
    pub detail: String,
}

impl Fault {
    pub(super) fn new(page: u64, rule: Rule, detail: impl Into<String>) -> Self {
        Self { page, rule, detail: detail.into() }
    }
}

/// The rules that every page of a sound file keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A meta page holds its magic, version, number, flags and sizes that are possible.
    Meta,
    /// The meta pages are of two successive transactions, each on the page of its parity. After a
    /// power cut, a store that does not wait for the disk may break this one and be whole
    /// otherwise.
    TransactionIds,
    /// The last page is inside the file, or as far behind its end as free pages can be.
    LastPage,
    /// A tree record's root, depth and flags fit together.
    TreeRecord,
    /// The counts in a tree record are those of the tree.
    Counts,
    /// A page number lies between 2 and the last page.
    PageRange,
    /// A page in use lies inside the file. A truncated file breaks this one.
    PastEnd,
    /// The system can read the page.
    Unreadable,
    /// A page is used once.
    UsedTwice,
    /// A page in use is not in the list of free pages.
    UsedAndFree,
    /// A page is in use or in the list of free pages. A lost one only takes room; a copy with
    /// compaction gets rid of it, though LMDB 0.9 may refuse to make one.
    Lost,
    /// A page's header has the number of its place.
    PageNumber,
    /// A page has the kind that its level in the tree requires.
    PageKind,
    /// The free space of a page lies inside it, between offsets and entries.
    FreeSpace,
    /// The entries of a page lie inside it and fill the space behind the free one, each byte once.
    Packing,
    /// A page has as many entries as its kind needs: a leaf 1, a branch 2.
    TooFewEntries,
    /// An entry is a value, the page of an overflow run or, in the main tree, a tree.
    EntryFlags,
    /// A key has 1 to 511 bytes; one in the free list has 8.
    KeySize,
    /// Keys ascend within a page and stay within the bounds that the pages above set.
    KeyOrder,
    /// An overflow run has room for its value.
    OverflowRun,
    /// A record of the free list holds the page numbers that it counts, descending, each free once,
    /// under a transaction that was.
    FreeList,
    /// The checker does not support this tree: its keys have several values, or are not ordered as
    /// bytes. It may be sound.
    Unsupported,
}

impl fmt::Display for Rule {
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
