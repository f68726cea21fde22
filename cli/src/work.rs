//! Long work over the parts of a store, in pages, with progress and a position in a file.

use keyloom::{AnySnapshot, AnyStore, KeyRange};

use crate::catalog::{Catalog, Part};
use crate::failure::Result;
use crate::indexed::Entry;
use crate::pages::page;
use crate::position::Position;
use crate::progress::Progress;

/// Work that visits parts one after the other.
pub struct Work<'w> {
    /// The store.
    pub store: &'w AnyStore,
    /// The parts of the store.
    pub catalog: &'w Catalog,
    /// Shows the entries read so far on the standard error.
    pub progress: Progress,
    position: Position,
}

impl<'w> Work<'w> {
    /// Work that begins, or resumes, at `position`. `what` names it in the lines of progress.
    pub fn new(
        store: &'w AnyStore,
        catalog: &'w Catalog,
        what: &'static str,
        position: Position,
    ) -> Self {
        let progress = Progress::resumed(what, position.before().entries);
        Self { store, catalog, progress, position }
    }

    /// What the work has counted so far. Before the work begins, what an earlier run has counted.
    pub fn counted(&self) -> u64 {
        self.position.before().counted
    }

    /// Calls `visit` for each part that no earlier run has finished.
    pub fn each<'p>(
        &mut self,
        parts: impl IntoIterator<Item = &'p Part>,
        mut visit: impl FnMut(&mut Self, &'p Part) -> Result,
    ) -> Result {
        for part in parts {
            if !self.position.is_done() {
                visit(self, part)?;
            }
            self.position.end_part();
        }
        Ok(())
    }

    /// Calls `visit` with the pages of a range, each in a snapshot of its own. `visit` returns what
    /// the work has counted so far: faults, or entries that it changed.
    pub fn pages(
        &mut self,
        stage: u32,
        range: &KeyRange<'_>,
        mut visit: impl FnMut(&AnySnapshot<'_>, &[Entry<'_>]) -> Result<u64>,
    ) -> Result {
        self.steps(stage, |store, last| {
            let read = page(store, range, last, |snapshot, entries| {
                let bytes = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
                Ok((entries.len(), bytes, visit(snapshot, entries)?))
            });
            let ((entries, bytes, counted), last) = read?;
            Ok(Step { entries, bytes, counted, last })
        })
    }

    /// Calls `step` with the last key of the previous step, until a step returns no last key.
    pub fn steps(
        &mut self,
        stage: u32,
        mut step: impl FnMut(&AnyStore, Option<&[u8]>) -> Result<Step>,
    ) -> Result {
        let Some(mut last) = self.position.stage(stage) else { return Ok(()) };
        loop {
            let done = step(self.store, last.as_deref())?;
            self.progress.add(done.entries, done.bytes);
            let Some(next) = done.last else { return self.end_stage(stage, done.counted) };
            let entries = self.progress.entries();
            self.position.reach((stage, Some(&next)), done.counted, entries)?;
            last = Some(next);
        }
    }

    fn end_stage(&mut self, stage: u32, counted: u64) -> Result {
        self.position.reach((stage + 1, None), counted, self.progress.entries())
    }

    /// Ends the work, which needs no position any more.
    pub fn end(self) -> Result {
        self.progress.finish();
        self.position.end()
    }
}

/// What a step has done.
#[derive(Debug, Default)]
pub struct Step {
    /// The entries that it read.
    pub entries: usize,
    /// Their bytes.
    pub bytes: usize,
    /// What the work has counted so far.
    pub counted: u64,
    /// The last key that it visited, if there are more.
    pub last: Option<Vec<u8>>,
}
