//! Moves and deletions of subtrees that are too large for one transaction.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{MAX_KEY_BYTES, Order, Page, Reader, Result, Store, Writer};

use super::super::tree::TreeError;
use super::super::{InsertAt, MoveProgress, MoveStep, NodeId};
use super::MaterializedPath;
use super::change::Rewrite;
use super::path::{Path, replanted};
use super::steps::{Phase, Steps};
use keyloom_tables::BatchSize;
use keyloom_tables::derived::SortedWrites;

/// How many nodes one transaction copies or clears at most; two keys are written for each.
const NODES_AT_ONCE: usize = 1_000;

impl<V, C: Codec<V>> MaterializedPath<V, C> {
    pub(super) fn move_step_by_step<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        place: InsertAt,
        mut progress: impl FnMut(&MoveProgress) -> ControlFlow<()>,
    ) -> Result<MoveProgress> {
        let keys = store.transact(|txn| {
            self.refuse_unfinished(txn)?;
            let (from, placed) = self.move_path(txn, id, place)?;
            let Some(to) = placed.path.clone() else { return Ok(0) };
            self.refuse_too_long(txn, &from, &to)?;
            let mut rewrite = Rewrite::default();
            rewrite.spread(&self.layout, txn, &placed)?;
            let keys = rewrite.len();
            rewrite.apply(txn)?;
            Ok(keys + self.begin(txn, id, from, to)?)
        })?;
        self.go_on_from(store, keys, &mut progress)
    }

    /// [`rename`](super::super::Tree::rename) in a tree of names, of a subtree that is too large
    /// for one transaction, as [`move_in_steps`](super::super::Tree::move_in_steps). In a tree of
    /// ids a rename is one write.
    ///
    /// ```
    /// use std::ops::ControlFlow::Continue;
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_trees::{MaterializedPath, MoveStep, Nested, Tree};
    /// let files = MaterializedPath::<()>::new(&Subspace::new("files")).of_names();
    /// let store = Memory::new();
    /// store.transact(|txn| files.import(txn, None, &[Nested::new(1, "old", ()).with(Nested::new(2, "a", ()))]))?;
    /// let done = files.rename_in_steps(&store, 1, "new", |_| Continue(()))?;
    /// assert_eq!(done.step, MoveStep::Finished);
    /// assert_eq!(files.node_at(&store.snapshot()?, ["new", "a"])?, Some(2));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`rename`](super::super::Tree::rename).
    pub fn rename_in_steps<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        name: &str,
        mut progress: impl FnMut(&MoveProgress) -> ControlFlow<()>,
    ) -> Result<MoveProgress> {
        let keys = store.transact(|txn| {
            if !self.layout.names() {
                return self.rename_to(txn, id, name).map(|()| 1);
            }
            self.refuse_unfinished(txn)?;
            let Some((from, to)) = self.rename_path(txn, id, name)? else { return Ok(0) };
            self.refuse_too_long(txn, &from, &to)?;
            self.begin(txn, id, from, to)
        })?;
        self.go_on_from(store, keys, &mut progress)
    }

    pub(super) fn delete_step_by_step<S: Store>(
        &self,
        store: &S,
        id: NodeId,
        mut progress: impl FnMut(&MoveProgress) -> ControlFlow<()>,
    ) -> Result<MoveProgress> {
        store.transact(|txn| {
            self.records.expect_writable(txn)?;
            self.refuse_unfinished(txn)?;
            let (from, _) = self.deletable(txn, id)?;
            let steps = Steps { root: id, phase: Phase::Clearing, from, to: None };
            txn.put(&self.layout.steps, &steps.encode())
        })?;
        self.go_on_from(store, 1, &mut progress)
    }

    /// One record says where steps are: there is no room for a second.
    fn refuse_unfinished(&self, reader: &impl Reader) -> Result<()> {
        let steps = self.layout.locate(reader, &[])?.steps;
        self.layout.refuse_in_steps(steps.as_ref(), |_| true)
    }

    fn refuse_too_long(&self, reader: &impl Reader, from: &Path, to: &Path) -> Result<()> {
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

    /// Writes down what will be done, and the root at its new place: so its rank is taken, and how
    /// far the copy has come can be seen at any time by its last key.
    fn begin(&self, txn: &mut impl Writer, id: NodeId, from: Path, to: Path) -> Result<u64> {
        self.records.expect_writable(txn)?;
        let layout = &self.layout;
        let record = layout.record(txn, id, &from)?.to_vec();
        let record = match layout.names().then(|| layout.segments.name(&to)).flatten() {
            Some(name) => layout.renamed::<V, C>(id, &record, &name)?,
            None => record,
        };
        txn.put(&layout.key(&to), &record)?;
        let steps = Steps { root: id, phase: Phase::Copying, from, to: Some(to) };
        txn.put(&layout.steps, &steps.encode())?;
        Ok(2)
    }

    fn go_on_from<S: Store>(
        &self,
        store: &S,
        keys: u64,
        progress: &mut impl FnMut(&MoveProgress) -> ControlFlow<()>,
    ) -> Result<MoveProgress> {
        let step = match self.layout.locate(&store.snapshot()?, &[])?.steps {
            Some(Steps { phase: Phase::Copying, .. }) => MoveStep::Copying,
            Some(_) => MoveStep::Clearing,
            None => MoveStep::Finished,
        };
        let mut done = MoveProgress { step, keys };
        if progress(&done).is_break() {
            return Ok(done);
        }
        self.go_on(store, &mut done, progress)
    }

    /// Goes on with what the record says until nothing is left.
    pub(super) fn go_on<S: Store>(
        &self,
        store: &S,
        done: &mut MoveProgress,
        progress: &mut impl FnMut(&MoveProgress) -> ControlFlow<()>,
    ) -> Result<MoveProgress> {
        let most = store.limits().max_transaction_operations.unwrap_or(usize::MAX);
        let mut size = BatchSize::new(NODES_AT_ONCE.min(most / 2));
        while done.step != MoveStep::Finished {
            let (step, keys) = size.transact(store, |txn, nodes| self.step(txn, nodes))?;
            *done = MoveProgress { step, keys: done.keys + keys };
            if progress(done).is_break() {
                break;
            }
        }
        Ok(*done)
    }

    fn step(&self, txn: &mut impl Writer, nodes: usize) -> Result<(MoveStep, u64)> {
        self.records.expect_writable(txn)?;
        match self.layout.locate(txn, &[])?.steps {
            None => Ok((MoveStep::Finished, 0)),
            Some(steps) if steps.phase == Phase::Clearing => self.clear(txn, &steps, nodes),
            Some(steps) => self.copy(txn, steps, nodes),
        }
    }

    fn copy(
        &self,
        txn: &mut impl Writer,
        mut steps: Steps,
        nodes: usize,
    ) -> Result<(MoveStep, u64)> {
        let layout = &self.layout;
        let mut writes = SortedWrites::default();
        let mut step = MoveStep::Copying;
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
            if page.last.is_none() {
                step = MoveStep::Clearing;
            }
        }
        if step == MoveStep::Clearing {
            // From here on the new place counts.
            steps.phase = Phase::Clearing;
            writes.put(&layout.steps, &steps.encode())?;
            self.put_renamed(txn, &steps)?;
        }
        let keys = writes.len() as u64;
        writes.apply(txn)?;
        Ok((step, keys))
    }

    /// When a rename in steps takes effect: the record of the node under its new name.
    fn put_renamed(&self, txn: &mut impl Writer, steps: &Steps) -> Result<()> {
        let Some(to) = steps.to.as_ref().filter(|_| self.layout.names()) else { return Ok(()) };
        let record = txn.get(&self.layout.key(to))?.map(|record| record.to_vec());
        record.map_or(Ok(()), |record| self.put_record(txn, steps.root, &record))
    }

    fn clear(&self, txn: &mut impl Writer, steps: &Steps, nodes: usize) -> Result<(MoveStep, u64)> {
        let layout = &self.layout;
        let (mut writes, mut gone) = (SortedWrites::default(), Vec::new());
        let Page { entries, last } =
            txn.page(layout.subtree(&steps.from), Order::Ascending, nodes)?;
        for (key, record) in &entries {
            writes.delete(key)?;
            // No reader sees the record, so a damaged one is deleted too. A repair later restores
            // its node, or reports it as missing.
            let Ok(id) = layout.id_at(key, record) else { continue };
            let node = layout.node(id);
            match &steps.to {
                Some(to) => writes.put(&node, &replanted(layout.path(key), &steps.from, to))?,
                None => {
                    writes.delete(&node)?;
                    gone.push(id);
                }
            }
        }
        let step = match last {
            Some(_) => MoveStep::Clearing,
            None => {
                writes.delete(&layout.steps)?;
                MoveStep::Finished
            }
        };
        let keys = writes.len() as u64;
        drop(entries);
        writes.apply(txn)?;
        self.records.delete(txn, &gone)?;
        Ok((step, keys))
    }

    pub(super) fn finish<S: Store>(
        &self,
        store: &S,
        mut progress: impl FnMut(&MoveProgress) -> ControlFlow<()>,
    ) -> Result<MoveProgress> {
        let mut done = MoveProgress { step: MoveStep::Copying, keys: 0 };
        self.go_on(store, &mut done, &mut progress)
    }
}
