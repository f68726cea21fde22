//! The contents of one meta page, and the check that they are valid.

use super::page::{u16_at, u32_at, u64_at};
use super::{Fault, FileRule, MAX_DEPTH};

/// The length of the header and the content of a meta page.
pub(super) const META_BYTES: usize = 152;
/// The page sizes of files that LMDB 0.9 creates: the page size of the system, at most 32 KiB.
pub(super) const PAGE_SIZES: [u32; 4] = [4096, 8192, 16384, 32768];
/// Keys of the free tree are integers.
const INTEGER_KEYS: u16 = 8;
/// Other valid flags of the free tree. They concern the whole file: the map is at a fixed address
/// (`MDB_FIXEDMAP`), or the path names the file instead of its directory (`MDB_NOSUBDIR`).
const FILE_FLAGS: u16 = 0x4001;
/// The root of an empty tree.
const NO_PAGE: u64 = u64::MAX;

/// The contents of a meta page: one committed state of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meta {
    /// The number of this meta page, 0 or 1.
    pub page: u64,
    /// The size of a page in bytes.
    pub page_bytes: u32,
    /// The size of the memory map in bytes, which limits the size of the file.
    pub map_bytes: u64,
    /// The highest page number that was ever allocated.
    pub last_page: u64,
    /// The transaction that committed this state; 0 in a new file.
    pub transaction_id: u64,
    /// The tree of free pages. Its keys are the numbers of the transactions that freed the pages.
    pub free: TreeRecord,
    /// The main tree; its entries are the named databases.
    pub main: TreeRecord,
}

/// The record of a tree: its root and its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeRecord {
    /// The order of the keys, and whether a key has several values. 0 means byte order and one
    /// value per key.
    pub flags: u16,
    /// The number of levels: 0 for an empty tree, 1 if its root is a leaf.
    pub depth: u16,
    /// Pages that refer to other pages.
    pub branch_pages: u64,
    /// Pages with entries.
    pub leaf_pages: u64,
    /// Pages with values that are too large for a leaf.
    pub overflow_pages: u64,
    /// The number of entries.
    pub entries: u64,
    /// The root page; `None` for an empty tree.
    pub root: Option<u64>,
}

impl TreeRecord {
    pub(super) const BYTES: usize = 48;

    /// Reads a record and its first field. This field is the page size in the record of the free
    /// tree, and unused in other records.
    pub(super) fn parse(bytes: &[u8]) -> Option<(u32, Self)> {
        let record = Self {
            flags: u16_at(bytes, 4)?,
            depth: u16_at(bytes, 6)?,
            branch_pages: u64_at(bytes, 8)?,
            leaf_pages: u64_at(bytes, 16)?,
            overflow_pages: u64_at(bytes, 24)?,
            entries: u64_at(bytes, 32)?,
            root: Some(u64_at(bytes, 40)?).filter(|root| *root != NO_PAGE),
        };
        Some((u32_at(bytes, 0)?, record))
    }

    /// Returns a contradiction within the record, given the last page of the file.
    pub(super) fn contradiction(&self, last_page: u64) -> Option<(FileRule, String)> {
        let counts = [self.branch_pages, self.leaf_pages, self.overflow_pages, self.entries];
        let detail = match (self.root, self.depth) {
            (None, 0) if counts == [0; 4] => return None,
            (Some(root), 1..=MAX_DEPTH) if (2..=last_page).contains(&root) => return None,
            (None, depth) => format!("no root, but depth {depth} and counts {counts:?}"),
            (Some(root), 1..=MAX_DEPTH) => {
                let detail = format!("the root is page {root}, the last page {last_page}");
                return Some((FileRule::PageRange, detail));
            }
            (Some(root), depth) => {
                format!("the root is page {root}, the depth {depth} is not in 1..={MAX_DEPTH}")
            }
        };
        Some((FileRule::TreeRecord, detail))
    }
}

impl Meta {
    /// Returns a fault if a file of this length is too short for the last page.
    pub(super) fn last_page_fault(&self, file_bytes: u64) -> Option<Fault> {
        if self.last_page < self.page_limit(file_bytes) {
            return None;
        }
        let last_page = self.last_page;
        let detail = format!(
            "page {last_page}, but a file of {file_bytes} bytes is too short to list the rest as free"
        );
        Some(Fault::new(self.page, FileRule::LastPage, detail))
    }

    /// Returns a fault if a root is past the end of a file of this length.
    pub(super) fn root_fault(&self, file_bytes: u64) -> Option<Fault> {
        let roots = [self.free.root, self.main.root].into_iter().flatten();
        let root = roots.into_iter().find(|root| *root >= self.pages_in(file_bytes))?;
        let detail = format!("it leads to page {root}, the file has {file_bytes} bytes");
        Some(Fault::new(self.page, FileRule::PastEnd, detail))
    }

    /// The number of whole pages in `file_bytes` bytes.
    pub(super) fn pages_in(&self, file_bytes: u64) -> u64 {
        file_bytes / u64::from(self.page_bytes)
    }

    /// A number above every page of a sound file. A page is either in the file, or is free and
    /// takes 8 bytes of the file. This number bounds the memory of the walk, whatever the file
    /// contains.
    pub(super) fn page_limit(&self, file_bytes: u64) -> u64 {
        self.pages_in(file_bytes) + file_bytes / 8
    }

    /// Checks the second meta page, which was found under the assumption of pages of `page_bytes`:
    /// it must contain the same page size.
    pub(super) fn with_pages_of(self, page_bytes: u32) -> Result<Self, Fault> {
        if self.page_bytes == page_bytes {
            return Ok(self);
        }
        let detail = format!("pages of {} bytes instead of {page_bytes}", self.page_bytes);
        Err(Fault::new(self.page, FileRule::Meta, detail))
    }

    pub(super) fn parse(bytes: &[u8; META_BYTES], page: u64) -> Option<(u32, Self)> {
        let (page_bytes, free) = TreeRecord::parse(bytes.get(40..)?)?;
        let (main_pad, main) = TreeRecord::parse(bytes.get(88..)?)?;
        let meta = Self {
            page,
            page_bytes,
            map_bytes: u64_at(bytes, 32)?,
            last_page: u64_at(bytes, 136)?,
            transaction_id: u64_at(bytes, 144)?,
            free,
            main,
        };
        Some((main_pad, meta))
    }

    /// Returns a contradiction within this page, except in its trees.
    pub(super) fn contradiction(&self, main_pad: u32) -> Option<(FileRule, String)> {
        let Self { page_bytes, map_bytes, last_page, .. } = *self;
        if !PAGE_SIZES.contains(&page_bytes) {
            return Some((FileRule::Meta, format!("pages of {page_bytes} bytes")));
        }
        let used_bytes = last_page.checked_add(1).and_then(|n| n.checked_mul(page_bytes.into()));
        if last_page < 1 || used_bytes.is_none_or(|used| used > map_bytes) {
            let detail = format!("the last page is {last_page}, the map has {map_bytes} bytes");
            return Some((FileRule::Meta, detail));
        }
        if self.transaction_id != 0 && self.transaction_id % 2 != self.page {
            let detail =
                format!("transaction {} belongs on the other meta page", self.transaction_id);
            return Some((FileRule::TransactionIds, detail));
        }
        if self.transaction_id == 0 && last_page != 1 {
            return Some((
                FileRule::TransactionIds,
                "a state before the first commit is not empty".into(),
            ));
        }
        if self.free.flags & !FILE_FLAGS != INTEGER_KEYS || main_pad != 0 {
            let detail = format!("flags {:#06x}, pad {main_pad}", self.free.flags);
            return Some((FileRule::Meta, detail));
        }
        None
    }

    /// Returns a contradiction in the trees.
    pub(super) fn tree_fault(&self) -> Option<Fault> {
        let Self { page, last_page, .. } = *self;
        let found = self.free.contradiction(last_page);
        let (rule, detail) = found.or_else(|| self.main.contradiction(last_page))?;
        Some(Fault::new(page, rule, detail))
    }
}
