//! The contents of a tree, and the rules for its keys and counts.

use super::page::{Kind, Page};
use super::{Fault, FileRule, TreeRecord};

/// The greatest length of a key in LMDB.
const MAX_KEY_BYTES: usize = 511;

/// A fault ends the walk of the page in which it is found. The caller records the fault and
/// continues with the next page.
pub(super) type Checked<T = ()> = Result<T, Fault>;

/// The tree that a page belongs to. The tree determines the meaning of the entries.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) holds: Holds,
    pub(super) depth: u16,
    pub(super) entries: u64,
    pub(super) branch_pages: u64,
    pub(super) leaf_pages: u64,
    pub(super) overflow_pages: u64,
}

#[derive(Debug)]
pub(super) enum Holds {
    /// Lists of free pages; the keys are integers.
    FreePages,
    /// Records of trees; the keys are names. The records found are stored here until this tree has
    /// been walked.
    Databases(Vec<Found>),
    /// Values; the keys are bytes.
    Values,
}

/// A named database that has not been walked yet.
#[derive(Debug)]
pub(super) struct Found {
    /// The page of the main tree that contains the record.
    pub(super) page: u64,
    pub(super) name: String,
    pub(super) record: TreeRecord,
}

/// A page to which an entry of a branch refers, with the bounds of its keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'k> {
    /// The page that contains the reference. A wrong page number is reported as a fault of this
    /// page.
    pub(super) from: u64,
    pub(super) page: u64,
    /// The level in the tree, 1 for the root.
    pub(super) level: u16,
    /// A lower bound of the keys, inclusive.
    pub(super) first: Option<&'k [u8]>,
    /// An upper bound of the keys, exclusive.
    pub(super) end: Option<&'k [u8]>,
}

impl Tree {
    pub(super) fn new(holds: Holds, depth: u16) -> Self {
        Self { holds, depth, entries: 0, branch_pages: 0, leaf_pages: 0, overflow_pages: 0 }
    }

    /// Whether `a` sorts before `b`.
    fn is_before(&self, a: &[u8], b: &[u8]) -> bool {
        match self.holds {
            // Little-endian integers: the last byte is the most significant.
            Holds::FreePages => a.iter().rev().lt(b.iter().rev()),
            Holds::Databases(_) | Holds::Values => a < b,
        }
    }

    fn takes_key_of(&self, key_bytes: usize) -> bool {
        match self.holds {
            Holds::FreePages => key_bytes == 8,
            Holds::Databases(_) | Holds::Values => (1..=MAX_KEY_BYTES).contains(&key_bytes),
        }
    }

    /// Whether a page of this kind may have this number of entries. The engine may leave one entry
    /// in a branch of the free tree, but in no other branch.
    pub(super) fn takes_entries(&self, kind: Kind, entries: usize) -> bool {
        match (kind, &self.holds) {
            (Kind::Branch, Holds::Databases(_) | Holds::Values) => entries >= 2,
            (Kind::Branch, Holds::FreePages) | (Kind::Leaf, _) => entries >= 1,
        }
    }

    /// Checks the sizes and the order of the keys of a page.
    pub(super) fn check_keys(&self, page: &Page<'_>, kind: Kind, place: &Place<'_>) -> Checked {
        let fault = |rule, detail| Err(Fault::new(place.page, rule, detail));
        let mut least = place.first;
        // The first key of a leaf may be equal to the key that refers to the leaf.
        let mut may_be_least = kind == Kind::Leaf;
        // The first key of a branch is unused: the first child begins where the branch begins.
        let skipped = usize::from(kind == Kind::Branch);
        for (at, entry) in page.entries().enumerate().skip(skipped) {
            if !self.takes_key_of(entry.key.len()) {
                return fault(FileRule::KeySize, format!("key {at} has {} bytes", entry.key.len()));
            }
            let is_behind = least.is_none_or(|least| {
                self.is_before(least, entry.key) || (may_be_least && least == entry.key)
            });
            if !is_behind {
                return fault(
                    FileRule::KeyOrder,
                    format!("key {at} is not greater than the one before"),
                );
            }
            (least, may_be_least) = (Some(entry.key), false);
        }
        match (least, place.end) {
            (Some(last), Some(end)) if !self.is_before(last, end) => {
                fault(FileRule::KeyOrder, "the last key is not before the next page's".to_owned())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_counts(&self, page: u64, name: &str, record: &TreeRecord) -> Checked {
        let counts = [
            ("entries", self.entries, record.entries),
            ("branch pages", self.branch_pages, record.branch_pages),
            ("leaf pages", self.leaf_pages, record.leaf_pages),
            ("overflow pages", self.overflow_pages, record.overflow_pages),
        ];
        match counts.into_iter().find(|(_, found, said)| found != said) {
            Some((what, found, said)) => {
                let detail = format!("{name} has {found} {what}, its record states {said}");
                Err(Fault::new(page, FileRule::Counts, detail))
            }
            None => Ok(()),
        }
    }
}

impl Found {
    pub(super) fn parse(name: &[u8], record: &[u8], page: u64) -> Checked<Self> {
        let name = String::from_utf8_lossy(name).into_owned();
        match TreeRecord::parse(record) {
            Some((0, parsed)) if record.len() == TreeRecord::BYTES => {
                Ok(Self { page, name, record: parsed })
            }
            _ => {
                let detail = format!("the value of the database {name:?} is not a tree record");
                Err(Fault::new(page, FileRule::TreeRecord, detail))
            }
        }
    }
}
