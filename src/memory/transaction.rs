//! A transaction of the memory store: a private copy of the tree. On an optimistic store it also
//! records its reads and writes.

use std::time::Instant;

use super::entry::Entry;
use super::optimistic::{Footprint, Tracked, Write};
use super::tree::Tree;
use super::{MemoryEntries, Shared};
use crate::backend::{ChangedKeys, TransactionSize, WriterTurn};
use crate::{
    AtomicOp, Error, KeyRange, Limits, Order, Reader, Result, Transaction, TransactionState,
    Writer, check_key, check_value,
};

/// A transaction of a [`Memory`](crate::Memory) store.
#[derive(Debug)]
pub struct MemoryTransaction<'s> {
    shared: &'s Shared,
    tree: Tree,
    started: Option<Instant>,
    written: TransactionSize,
    state: TransactionState,
    changed: ChangedKeys,
    mode: Mode<'s>,
}

#[derive(Debug)]
enum Mode<'s> {
    /// No other transaction writes meanwhile.
    Alone { _turn: WriterTurn<'s> },
    /// Other transactions may write meanwhile; the commit checks for conflicts.
    Optimistic(Footprint<'s>),
}

impl<'s> MemoryTransaction<'s> {
    pub(super) fn begin(shared: &'s Shared) -> Result<Self> {
        let (written, state) = (TransactionSize::default(), TransactionState::default());
        let changed = shared.signal.changed_keys();
        if shared.optimistic {
            let started = shared.clock();
            let (tree, footprint) = Footprint::begin(shared);
            let mode = Mode::Optimistic(footprint);
            return Ok(Self { shared, tree, started, written, state, changed, mode });
        }
        let turn = shared.writer.take()?;
        // The wait for the turn does not count towards the age.
        let started = shared.clock();
        let tree = shared.lock().tree.clone();
        let mode = Mode::Alone { _turn: turn };
        Ok(Self { shared, tree, started, written, state, changed, mode })
    }

    fn write(&mut self, write: Write, bytes: usize) -> Result<()> {
        self.shared.check_age(self.started)?;
        self.written.charge(bytes, &self.shared.limits)?;
        match write.key() {
            Some(key) => self.changed.note(key),
            None => self.changed.note_any(),
        }
        write.apply(&mut self.tree, self.shared.limits.max_value_bytes)?;
        if let Mode::Optimistic(footprint) = &mut self.mode {
            footprint.wrote(write);
        }
        Ok(())
    }
}

impl Reader for MemoryTransaction<'_> {
    type Bytes<'r>
        = &'r [u8]
    where
        Self: 'r;
    type Entries<'r>
        = Tracked<'r>
    where
        Self: 'r;

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<&[u8]>> {
        check_key(key)?;
        self.shared.check_age(self.started)?;
        if let Mode::Optimistic(footprint) = &self.mode {
            footprint.read_key(key);
        }
        Ok(self.tree.get(key))
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Tracked<'_>> {
        self.shared.check_age(self.started)?;
        let entries = MemoryEntries::open(self.shared, self.started, &self.tree, &range, order);
        Ok(match &self.mode {
            Mode::Alone { .. } => Tracked::untracked(entries),
            Mode::Optimistic(footprint) => footprint.read_range(range, order, entries),
        })
    }
}

impl Writer for MemoryTransaction<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        check_value(key, value, self.shared.limits.max_value_bytes)?;
        self.write(Write::Put(Entry::new(key, value)), key.len() + value.len())
    }

    fn state(&mut self) -> &mut TransactionState {
        &mut self.state
    }

    fn limits(&self) -> Limits {
        self.shared.limits
    }

    fn check_reads(&self, is_checked: bool) -> bool {
        match &self.mode {
            Mode::Optimistic(footprint) => footprint.check_reads(is_checked),
            Mode::Alone { .. } => true,
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        check_key(key)?;
        self.write(Write::Delete(key.into()), key.len())
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        self.write(Write::DeleteRange(range.into_owned()), 0)
    }

    fn apply(&mut self, key: &[u8], operation: AtomicOp<'_>) -> Result<()> {
        operation.check(key, self.shared.limits.max_value_bytes)?;
        let bytes = key.len() + operation.bytes();
        let applied = self.write(Write::Atomic(key.into(), operation.into_owned()), bytes);
        if let (Err(Error::NotACounter { .. }), Mode::Optimistic(footprint)) =
            (&applied, &self.mode)
        {
            // The result depends on the old value, so the operation counts as a read.
            footprint.read_key(key);
        }
        applied
    }
}

impl Transaction for MemoryTransaction<'_> {
    fn commit(mut self) -> Result<()> {
        self.state.check()?;
        self.changed.note_woken(&self.state);
        self.shared.check_age(self.started)?;
        self.written.check(&self.shared.limits)?;
        if self.shared.raises_conflict() {
            return Err(Error::Conflict { what: "no key: the conflict was injected".into() });
        }
        match self.mode {
            Mode::Optimistic(footprint) => footprint.commit(self.tree)?,
            Mode::Alone { .. } => {
                let replaced = std::mem::replace(&mut self.shared.lock().tree, self.tree);
                // Nodes that only the old tree uses are freed here, after the lock is released.
                drop(replaced);
            }
        }
        self.shared.signal.notify(self.changed);
        Ok(())
    }
}
