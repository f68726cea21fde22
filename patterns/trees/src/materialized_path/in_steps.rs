//! Moves and deletions of subtrees that are too large for one transaction.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{EntryPage, MAX_KEY_BYTES, Order, Reader, Result, Store, Writer};
use keyloom_kit::derived::SortedWrites;
use keyloom_kit::{BatchSize, Progress};

use super::super::tree::TreeError;
use super::super::{InsertAt, NodeId};
use super::MaterializedPath;
use super::change::Rewrite;
use super::path::{Path, replanted};
use super::steps::{Phase, Steps};

/// The maximum number of nodes copied or cleared per transaction; each node takes two writes.
// A smaller batch needs more commits. A larger batch blocks other LMDB writers for longer, and
// loses more work in a conflict.
const NODES_AT_ONCE: usize = 1_000;

impl<V, C: Codec<V>> MaterializedPath<V, C> {
    pub(super) fn move_step_by_step<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        place: InsertAt,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let done = store.transact(|txn| {
            self.refuse_unfinished(txn)?;
            let (from, placed) = self.move_path(txn, id, None, place, &txn.limits())?;
            let Some(to) = placed.path.clone() else { return Ok(Progress::default()) };
            self.refuse_too_long(txn, &from, &to)?;
            let mut rewrite = Rewrite::default();
            rewrite.spread(&self.layout, txn, &placed)?;
            let spread = rewrite.apply(txn)?;
            Ok(spread.followed_by(&self.begin(txn, id, from, to)?))
        })?;
        self.resume_from(store, done, progress)
    }

    /// Like [`rename`](super::super::Tree::rename), for a subtree of a tree of names that is too
    /// large for one transaction. Runs like [`move_in_steps`](super::super::Tree::move_in_steps).
    /// In a tree of ids a rename is one write.
    ///
    /// ```
    /// use std::ops::ControlFlow::Continue;
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{MaterializedPath, NestedNode, Tree};
    /// let files = MaterializedPath::<()>::new(&Subspace::new("files")).of_names();
    /// let store = Memory::new();
    /// let old = NestedNode::new(1, "old", ()).with(NestedNode::new(2, "a", ()));
    /// store.transact(|txn| files.import(txn, None, &[old.clone()]))?;
    /// let done = files.rename_in_steps(&store, 1, "new", |_| Continue(()))?;
    /// assert!(done.finished);
    /// assert_eq!(files.node_at(&store.snapshot()?, ["new", "a"])?, Some(2));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`rename`](super::super::Tree::rename); [`TreeError::InSteps`] if other work
    /// in steps has not finished.
    pub fn rename_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        name: &str,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let done = store.transact(|txn| {
            if !self.layout.names() {
                self.rename_to(txn, id, name)?;
                return Ok(Progress { written: 1, ..Progress::default() });
            }
            self.refuse_unfinished(txn)?;
            let Some((from, to)) = self.rename_path(txn, id, name)? else {
                return Ok(Progress::default());
            };
            self.refuse_too_long(txn, &from, &to)?;
            self.begin(txn, id, from, to)
        })?;
        self.resume_from(store, done, progress)
    }

    pub(super) fn delete_step_by_step<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        store.transact(|txn| {
            self.records.expect_writable(txn)?;
            self.refuse_unfinished(txn)?;
            let (from, _) = self.deletable(txn, id)?;
            let steps = Steps { root: id, phase: Phase::Clearing, from, to: None };
            txn.put(&self.layout.steps, &steps.encode())
        })?;
        self.resume_from(store, Progress { written: 1, ..Progress::default() }, progress)
    }

    /// There is only one record of work in steps, so other work is refused until this work has
    /// finished.
    pub(super) fn refuse_unfinished(&self, reader: &impl Reader) -> Result<()> {
        let steps = self.layout.locate(reader, &[])?.steps;
        self.layout.refuse_in_steps(steps.as_ref(), |_| true)
    }

    pub(super) fn refuse_too_long(
        &self,
        reader: &impl Reader,
        from: &Path,
        to: &Path,
    ) -> Result<()> {
        for entry in reader.range(self.layout.subtree(from), Order::Ascending)? {
            let (key, record) = entry?;
            let (bytes, limit) = (key.len() + to.len() - from.len(), MAX_KEY_BYTES);
            if bytes > limit {
                let node = self.layout.id_at(&key, &record)?;
                return Err(TreeError::PathTooLong { node, bytes, limit }.into());
            }
        }
        Ok(())
    }

    /// Writes the record of the move, and the root of the subtree at its new place. This reserves
    /// the rank of the root. The last key at the new place always marks the progress of the copy.
    fn begin(&self, txn: &mut impl Writer, id: NodeId, from: Path, to: Path) -> Result<Progress> {
        self.records.expect_writable(txn)?;
        let layout = &self.layout;
        let record = layout.record(txn, id, &from)?.to_vec();
        let record = match layout.names().then(|| layout.segments.name(&to)).flatten() {
            Some(name) => layout.renamed::<V, C>(id, &record, &name)?,
            None => record,
        };
        self.begin_with(txn, id, (from, to), &record)?;
        Ok(Progress { written: 2, ..Progress::default() })
    }

    /// [`begin`](Self::begin) with the record of the root.
    pub(super) fn begin_with(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        (from, to): (Path, Path),
        record: &[u8],
    ) -> Result<()> {
        txn.put(&self.layout.key(&to), record)?;
        let steps = Steps { root: id, phase: Phase::Copying, from, to: Some(to) };
        txn.put(&self.layout.steps, &steps.encode())
    }

    fn resume_from<S: Store>(
        &self,
        store: &S,
        mut done: Progress,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        done.finished = self.layout.locate(&store.snapshot()?, &[])?.steps.is_none();
        match progress(&done) {
            ControlFlow::Break(()) => Ok(done),
            ControlFlow::Continue(()) => self.resume(store, done, progress),
        }
    }

    /// Continues the recorded work until the work is finished or `progress` breaks.
    pub(super) fn resume<S: Store>(
        &self,
        store: &S,
        mut done: Progress,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let most = store.limits().max_transaction_operations.unwrap_or(usize::MAX);
        let mut size = BatchSize::new(NODES_AT_ONCE.min(most / 2));
        while !done.finished {
            let next = size.transact(store, |txn, nodes| self.step(txn, nodes))?;
            done = done.followed_by(&next);
            if progress(&done).is_break() {
                break;
            }
        }
        Ok(done)
    }

    fn step(&self, txn: &mut impl Writer, nodes: usize) -> Result<Progress> {
        self.records.expect_writable(txn)?;
        match self.layout.locate(txn, &[])?.steps {
            None => Ok(Progress::complete()),
            Some(steps) if steps.phase == Phase::Clearing => self.clear(txn, &steps, nodes),
            Some(steps) => self.copy(txn, steps, nodes),
        }
    }

    fn copy(&self, txn: &mut impl Writer, mut steps: Steps, nodes: usize) -> Result<Progress> {
        let layout = &self.layout;
        let mut writes = SortedWrites::default();
        let mut is_copied = false;
        if let Some(to) = &steps.to {
            let from = &steps.from;
            let mut rest = layout.subtree(from);
            let last = txn.last(layout.subtree(to))?;
            let last = last.map(|(key, _)| layout.key(&replanted(layout.path(&key), to, from)));
            if let Some(last) = &last {
                rest = rest.after(last).into_owned();
            }
            let page = txn.page(rest, Order::Ascending, nodes)?;
            for (key, record) in &page.entries {
                let path = replanted(layout.path(key), from, to);
                writes.put(&layout.key(&path), record)?;
            }
            is_copied = page.last.is_none();
        }
        if is_copied {
            // From now on, readers see the new place.
            steps.phase = Phase::Clearing;
            writes.put(&layout.steps, &steps.encode())?;
            self.put_renamed(txn, &steps)?;
        }
        let done = writes.progress();
        writes.apply(txn)?;
        Ok(done)
    }

    /// Writes the record of the node under its new name, when a rename in steps takes effect.
    fn put_renamed(&self, txn: &mut impl Writer, steps: &Steps) -> Result<()> {
        let Some(to) = steps.to.as_ref().filter(|_| self.layout.names()) else { return Ok(()) };
        let record = txn.get(&self.layout.key(to))?.map(|record| record.to_vec());
        record.map_or(Ok(()), |record| self.put_record(txn, steps.root, &record))
    }

    fn clear(&self, txn: &mut impl Writer, steps: &Steps, nodes: usize) -> Result<Progress> {
        let layout = &self.layout;
        let (mut writes, mut gone) = (SortedWrites::default(), Vec::new());
        let EntryPage { entries, last } =
            txn.page(layout.subtree(&steps.from), Order::Ascending, nodes)?;
        for (key, record) in &entries {
            writes.delete(key)?;
            // No reader sees this record, so delete it even if it is damaged. A later repair
            // restores its node, or reports the node as missing.
            // A repair may give the root another id.
            let id = match layout.path(key) == &steps.from[..] {
                true => Ok(steps.root),
                false => layout.id_at(key, record),
            };
            let Ok(id) = id else { continue };
            let node = layout.node(id);
            match &steps.to {
                Some(to) => writes.put(&node, &replanted(layout.path(key), &steps.from, to))?,
                None => {
                    writes.delete(&node)?;
                    gone.push(id);
                }
            }
        }
        if last.is_none() {
            writes.delete(&layout.steps)?;
        }
        let done = Progress { finished: last.is_none(), ..writes.progress() };
        drop(entries);
        writes.apply(txn)?;
        self.records.delete(txn, &gone)?;
        Ok(done)
    }
}
