//! Concurrent transactions: their reads and writes, and their validation.
//!
//! This is optimistic concurrency control, as in distributed stores. A transaction works on the
//! state at which it began. At commit, its reads are compared with the writes of all commits since
//! then, and any overlap is a conflict. Otherwise its writes are applied to the newest state. Reads
//! are recorded as they happen: either a key, or the walked part of a range.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;

use super::entry::Entry;
use super::tree::Tree;
use super::{MemoryEntries, Shared, State};
use crate::atomic::Applied;
use crate::backend::shown_key;
use crate::{AtomicOp, Error, KeyBuf, KeyRange, Order, Result};

/// One write, in a form that can also be applied to a newer state.
#[derive(Clone)]
pub(super) enum Write {
    Put(Entry),
    Delete(KeyBuf),
    DeleteRange(KeyRange<'static>),
    Atomic(KeyBuf, AtomicOp<'static>),
}

/// The writes of one committed transaction.
pub(crate) struct Committed {
    version: u64,
    writes: Vec<Write>,
}

impl fmt::Debug for Committed {
    /// Shows counts, without keys and values, like all types here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committed")
            .field("version", &self.version)
            .field("writes", &self.writes.len())
            .finish()
    }
}

impl Write {
    /// The key that this write changes; `None` for a range.
    pub(super) fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Put(entry) => Some(entry.key()),
            Self::Delete(key) | Self::Atomic(key, _) => Some(key),
            Self::DeleteRange(_) => None,
        }
    }

    pub(super) fn apply(&self, tree: &mut Tree, max_value_bytes: usize) -> Result<()> {
        match self {
            Self::Put(entry) => tree.insert(entry.clone()),
            Self::Delete(key) => tree.remove(key),
            Self::DeleteRange(range) => {
                if let Some(bounds) = range.normalized() {
                    tree.remove_range(bounds);
                }
            }
            Self::Atomic(key, operation) => {
                match operation.apply(key, tree.get(key), max_value_bytes)? {
                    Applied::Put(value) => tree.insert(Entry::new(key, &value)),
                    Applied::Clear => tree.remove(key),
                    Applied::Keep => {}
                }
            }
        }
        Ok(())
    }

    /// The key or range of this write, as text, if it overlaps one of the reads.
    fn meets(&self, reads: &Reads) -> Option<Box<str>> {
        match self {
            Self::Put(entry) => reads.saw(entry.key()),
            Self::Delete(key) | Self::Atomic(key, _) => reads.saw(key),
            Self::DeleteRange(range) => reads.saw_part_of(range),
        }
    }
}

/// The reads of a transaction.
#[derive(Default)]
struct Reads {
    keys: BTreeSet<KeyBuf>,
    ranges: Vec<KeyRange<'static>>,
}

impl fmt::Debug for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reads")
            .field("keys", &self.keys.len())
            .field("ranges", &self.ranges.len())
            .finish()
    }
}

impl Reads {
    fn saw(&self, key: &[u8]) -> Option<Box<str>> {
        let read = self.keys.contains(key) || self.ranges.iter().any(|range| range.contains(key));
        read.then(|| format!("key {}", shown_key(key)).into())
    }

    fn saw_part_of(&self, gone: &KeyRange<'static>) -> Option<Box<str>> {
        let read = self.keys.iter().any(|key| gone.contains(key))
            || self
                .ranges
                .iter()
                .any(|range| range.clone().intersect(gone.clone()).normalized().is_some());
        read.then(|| "a deleted range".into())
    }
}

/// The reads and writes of an open transaction.
pub(super) struct Footprint<'s> {
    began: Began<'s>,
    reads: RefCell<Reads>,
    /// Whether reads are recorded.
    is_checked: Cell<bool>,
    writes: Vec<Write>,
}

impl fmt::Debug for Footprint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Footprint")
            .field("version", &self.began.version)
            .field("reads", &self.reads)
            .field("writes", &self.writes.len())
            .finish()
    }
}

/// Counts the transaction as open until this is dropped.
struct Began<'s> {
    shared: &'s Shared,
    version: u64,
}

impl<'s> Footprint<'s> {
    /// Returns the current state and an empty footprint.
    pub(super) fn begin(shared: &'s Shared) -> (Tree, Self) {
        let mut state = shared.lock();
        let version = state.version;
        *state.open.entry(version).or_default() += 1;
        let began = Began { shared, version };
        let (reads, is_checked) = (RefCell::default(), Cell::new(true));
        (state.tree.clone(), Self { began, reads, is_checked, writes: Vec::new() })
    }

    pub(super) fn wrote(&mut self, write: Write) {
        self.writes.push(write);
    }

    pub(super) fn check_reads(&self, is_checked: bool) -> bool {
        self.is_checked.replace(is_checked)
    }

    pub(super) fn read_key(&self, key: &[u8]) {
        if !self.is_checked.get() {
            return;
        }
        self.reads.borrow_mut().keys.insert(KeyBuf::from_slice(key));
    }

    /// Records the whole range as read while `entries` is being walked, and reduces the record to
    /// the walked part when the walk is dropped. So the record of a walk that is never dropped is
    /// too large, not too small.
    pub(super) fn read_range<'r>(
        &'r self,
        range: KeyRange<'_>,
        order: Order,
        entries: MemoryEntries<'r>,
    ) -> Tracked<'r> {
        if !self.is_checked.get() {
            return Tracked::untracked(entries);
        }
        let mut reads = self.reads.borrow_mut();
        let position = reads.ranges.len();
        reads.ranges.push(range.into_owned());
        let walk = Walk { reads: &self.reads, position, order, last: None, ended: false };
        Tracked { entries, walk: Some(walk) }
    }

    /// Applies the writes, unless another transaction has overwritten a read. `tree` is the new
    /// state if no other transaction has written meanwhile.
    pub(super) fn commit(self, tree: Tree) -> Result<()> {
        if self.writes.is_empty() {
            // A read-only transaction: its reads were consistent at its beginning.
            return Ok(());
        }
        let reads = self.reads.borrow();
        let mut state = self.began.shared.lock();
        let newer = state.log.iter().filter(|committed| committed.version > self.began.version);
        for write in newer.flat_map(|committed| &committed.writes) {
            if let Some(what) = write.meets(&reads) {
                return Err(Error::Conflict { what });
            }
        }
        if state.version == self.began.version {
            state.tree = tree;
        } else {
            let mut newest = state.tree.clone();
            let most = self.began.shared.limits.max_value_bytes;
            self.writes.iter().try_for_each(|write| write.apply(&mut newest, most))?;
            state.tree = newest;
        }
        state.version += 1;
        let version = state.version;
        state.log.push_back(Committed { version, writes: self.writes });
        Ok(())
    }
}

impl Drop for Began<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if let Some(count) = state.open.get_mut(&self.version) {
            *count -= 1;
            if *count == 0 {
                state.open.remove(&self.version);
            }
        }
        state.forget_old_commits();
    }
}

impl State {
    /// Removes old commits, with which no open transaction can conflict.
    fn forget_old_commits(&mut self) {
        let oldest = self.open.keys().next().copied().unwrap_or(self.version);
        while self.log.front().is_some_and(|committed| committed.version <= oldest) {
            self.log.pop_front();
        }
    }
}

/// The entries of a range read in a transaction of a [`Memory`](crate::Memory) store.
#[derive(Debug)]
pub struct Tracked<'r> {
    entries: MemoryEntries<'r>,
    walk: Option<Walk<'r>>,
}

/// The part of a range that was walked.
struct Walk<'r> {
    reads: &'r RefCell<Reads>,
    position: usize,
    order: Order,
    last: Option<&'r [u8]>,
    ended: bool,
}

impl fmt::Debug for Walk<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk")
            .field("order", &self.order)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl<'r> Tracked<'r> {
    pub(super) fn untracked(entries: MemoryEntries<'r>) -> Self {
        Self { entries, walk: None }
    }
}

impl<'r> Iterator for Tracked<'r> {
    type Item = Result<(&'r [u8], &'r [u8])>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.entries.next();
        if let Some(walk) = &mut self.walk {
            match &next {
                Some(Ok((key, _))) => walk.last = Some(key),
                _ => walk.ended = true,
            }
        }
        next
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut reads = self.reads.borrow_mut();
        let Some(range) = reads.ranges.get_mut(self.position) else {
            return;
        };
        let whole = std::mem::replace(range, KeyRange::all());
        *range = match self.last {
            None => KeyRange::half_open(b"", b""),
            Some(last) => whole.up_to(self.order, last).into_owned(),
        };
    }
}
