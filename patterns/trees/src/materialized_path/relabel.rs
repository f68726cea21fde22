//! Gives the siblings around a place short ranks again, in steps.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Error, KeyRange, Reader, Result, Store, Writer};
use keyloom_kit::{BatchSize, Progress};

use super::MaterializedPath;
use super::change::Rewrite;
use super::path::Path;
use super::place::Placing;
use super::repair::Replanted;
use crate::tree::REPLANS;
use crate::{InsertAt, NodeId, rank};

/// The number of siblings that one transaction moves, if the store accepts that many.
// A sibling may have a large subtree, so this is less than the number of nodes that work in steps
// copies at once.
const BATCH: usize = 100;

impl<V, C: Codec<V>> MaterializedPath<V, C> {
    pub(super) fn make_room_at<S: Store>(
        &self,
        store: &S,
        (name, place, nodes): (&str, InsertAt, u64),
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let (mut size, mut replans) = (BatchSize::new(BATCH), 0);
        // The steps of one sibling are not the end of the work.
        let mut report = |done: &Progress| progress(&Progress { finished: false, ..done.clone() });
        let mut done = self.finish_rank(store, &mut report)?;
        if !done.finished {
            return Ok(done);
        }
        while let Some(moves) = self.moves(&store.snapshot()?, name, place, nodes)? {
            let mut rest = &*moves;
            while let Some(first) = rest.first() {
                let step = size.transact(store, |txn, batch| {
                    self.move_some(txn, rest.get(..batch).unwrap_or(rest))
                });
                let (moved, step) = match step {
                    Err(error) if error.is_batch_too_large() => {
                        let mut report = |step: &Progress| report(&done.followed_by(step));
                        let step =
                            self.replant_one(store, &mut report, |txn| self.replanted(txn, first))?;
                        (usize::from(step.changed() > 0), step)
                    }
                    step => step?,
                };
                done = done.followed_by(&step);
                let is_stopped = !done.finished;
                done.finished = false;
                if is_stopped {
                    return Ok(done);
                }
                if moved == 0 {
                    break;
                }
                replans = 0;
                rest = rest.get(moved..).unwrap_or_default();
                if report(&done).is_break() {
                    return Ok(done);
                }
            }
            if !rest.is_empty() {
                // Another writer has changed the siblings: plan again.
                replans += 1;
                if replans > REPLANS {
                    return Err(Error::Conflict { what: self.layout.space.named().into() });
                }
            }
        }
        done.finished = true;
        let _ = progress(&done);
        Ok(done)
    }

    /// Finishes the steps of an earlier call, which moved a sibling to another rank.
    fn finish_rank<S: Store>(
        &self,
        store: &S,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let steps = self.layout.locate(&store.snapshot()?, &[])?.steps;
        let parent = |path: &Path| Path::from_slice(self.layout.segments.parent(path));
        match steps {
            Some(steps) if steps.to.as_ref().map(parent) == Some(parent(&steps.from)) => {
                self.finish(store, Progress::default(), progress)
            }
            _ => Ok(Progress::complete()),
        }
    }

    /// The siblings that move, with their new paths; `None` if there is room.
    fn moves(
        &self,
        reader: &impl Reader,
        name: &str,
        place: InsertAt,
        nodes: u64,
    ) -> Result<Option<Vec<(Path, Path)>>> {
        let layout = &self.layout;
        if layout.names() {
            return Ok(None);
        }
        let ids: Vec<NodeId> = place.named().into_iter().collect();
        let located = layout.locate(reader, &ids)?;
        let named = layout.named(&located, 0, place)?;
        let placing = Placing { id: 0, name, place, moved: None };
        let nodes = rank::places(nodes);
        let moves = layout.crowded(reader, &placing, &named, located.steps.as_ref(), nodes)?;
        layout.refuse_in_steps(located.steps.as_ref(), |steps| {
            moves.iter().flatten().any(|(from, _)| steps.stands_on(from))
        })?;
        Ok(moves)
    }

    /// Moves siblings one after another, up to the first one that another writer has moved, or that
    /// would pass another child. Returns the number of siblings moved, and the progress.
    fn move_some(
        &self,
        txn: &mut impl Writer,
        moves: &[(Path, Path)],
    ) -> Result<(usize, Progress)> {
        txn.guarded(|txn| {
            let mut done = Progress::complete();
            for (n, sibling @ (from, to)) in moves.iter().enumerate() {
                if self.replanted(txn, sibling)?.is_none() {
                    return Ok((n, done));
                }
                let mut rewrite = Rewrite::default();
                rewrite.replant(&self.layout, txn, from, to)?;
                done = done.followed_by(&rewrite.apply(txn)?);
                done.finished = true;
            }
            Ok((moves.len(), done))
        })
    }

    /// A sibling at its new path; `None` if it is not at its old path, or would pass another child.
    fn replanted(
        &self,
        reader: &impl Reader,
        (from, to): &(Path, Path),
    ) -> Result<Option<Replanted>> {
        let layout = &self.layout;
        let steps = layout.locate(reader, &[])?.steps;
        layout.refuse_in_steps(steps.as_ref(), |steps| steps.stands_on(from))?;
        let key = layout.key(from);
        let Some(record) = reader.get(&key)?.map(|record| record.to_vec()) else { return Ok(None) };
        let way = match from < to {
            true => layout.behind(from).before(&layout.key(to)).into_owned(),
            false => KeyRange::half_open(&layout.key(to), &key).into_owned(),
        };
        if reader.first(way)?.is_some() {
            return Ok(None);
        }
        let id = layout.id_at(&key, &record)?;
        Ok(Some(Replanted { id, from: from.clone(), to: to.clone(), record, other: None }))
    }
}
