//! Refreshes of the blocks.

use std::ops::{ControlFlow, Range};

use keyloom::value::Codec;
use keyloom::{KeyBuf, KeyRange, Order, Reader, Result, Snapshots, Store, Writer};
use keyloom_kit::{BatchSize, Progress};

use super::Blocks;
use super::keys::{Keys, Side, Stored};
use super::layout::{Layout, Relaid};
use crate::GraphError;
use crate::csr::{Adjacency, first_of};
use crate::keys::VertexId;

/// The largest number of changed vertices that one transaction rewrites.
// Bounds the marks that a step reads. `BLOCKS` bounds the writes of a step.
const VERTICES: usize = 1_000;
/// The largest number of blocks that one transaction of a build writes, or that one transaction of
/// a rewrite replaces: about 1 MB. In a rewrite, all blocks of a hub count as one.
// This is less than the 1.3 MiB that a transaction of etcd accepts.
pub(super) const BLOCKS: usize = 32;

// The cost model that decides between a rewrite and a build of all blocks. Reading an edge of a
// marked vertex costs as much as building SHARE edges; a marked vertex costs as much as MARK edges.
const SHARE: u64 = 4;
const MARK: u64 = 8;
/// If the cost of the marked vertices, in edges, is at most this number, they are always rewritten.
// In a small graph, SHARE alone would cause a build of all blocks after a few changes.
const FEW: u64 = 4_096;

/// The outcome of one transaction of a refresh.
pub(super) enum Step {
    /// No vertex is marked.
    UpToDate,
    /// Marked vertices were rewritten; `blocks` is the number of blocks written.
    Rewritten { vertices: usize, blocks: usize, relaid: Relaid },
    /// The layout must be loaded: in the first step, and after another program changed the blocks.
    Load,
    /// All blocks must be built.
    Build,
}

impl<I: VertexId, V, E, C: Codec<V> + Codec<E>> Blocks<I, V, E, C> {
    /// [`refresh`](Blocks::refresh) with a callback: calls `progress` after each commit and stops
    /// if it breaks. [`Progress::records`] counts vertices, [`Progress::written`] counts blocks.
    ///
    /// # Errors
    /// The errors of `refresh`.
    pub fn refresh_with(
        &self,
        store: &impl Store,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.changes.build(store)?;
        self.vertex_changes.build(store)?;
        let (mut size, mut done) = (BatchSize::new(VERTICES), Progress::default());
        let mut layout: Option<Layout> = None;
        loop {
            let known = layout.as_ref();
            let step =
                size.transact(store, |txn, most| txn.guarded(|txn| self.rewrite(txn, most, known)));
            // A single vertex can have more blocks than a transaction can write. A build writes
            // them in several transactions.
            let step = match step {
                Err(error) if error.is_batch_too_large() => Step::Build,
                step => step?,
            };
            match step {
                Step::UpToDate => {
                    done.finished = true;
                    let _ = progress(&done);
                    return Ok(done);
                }
                Step::Rewritten { vertices, blocks, relaid } => {
                    done.records += vertices as u64;
                    done.written += blocks as u64;
                    if let Some(layout) = &mut layout {
                        layout.apply(relaid);
                    }
                    if progress(&done).is_break() {
                        return Ok(done);
                    }
                }
                Step::Load => {
                    layout = self.layout(store)?;
                    if layout.is_none() && self.build(store, &mut done, &mut progress)?.is_break() {
                        return Ok(done);
                    }
                }
                Step::Build => {
                    layout = None;
                    if self.build(store, &mut done, &mut progress)?.is_break() {
                        return Ok(done);
                    }
                }
            }
        }
    }

    /// The layout of the blocks; `None` if they must be built, or if a build costs less than
    /// reading the edges of the marked vertices.
    fn layout(&self, store: &impl Store) -> Result<Option<Layout>> {
        let snapshot = Snapshots::lasting(store);
        let Some(stored) = self.keys().stored(&snapshot)?.filter(|stored| stored.is_complete)
        else {
            return Ok(None);
        };
        let rows = self.load(&snapshot, &stored)?;
        let layout = Layout::of(&rows, stored);
        Ok((!self.are_many_marked(&snapshot, &rows, &layout)?).then_some(layout))
    }

    /// Whether the marked vertices have so many edges that a build takes less time than a rewrite.
    fn are_many_marked(
        &self,
        reader: &impl Reader,
        rows: &Adjacency<'_>,
        layout: &Layout,
    ) -> Result<bool> {
        let most = FEW.max((rows.edges + u64::from(rows.vertices)) / SHARE);
        let (sides, mut edges) = (rows.sides(), 0);
        for mark in reader.range(self.keys().marks(), Order::Ascending)? {
            let (mark, _) = mark?;
            let number = layout.number(self.keys().marked(&mark));
            let degrees = number.into_iter().flat_map(|number| {
                sides.iter().flat_map(move |side| side.pieces(number).map(|piece| piece.len()))
            });
            edges += MARK + degrees.sum::<usize>() as u64;
            if edges > most {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Builds all blocks from one snapshot. Concurrent changes are marked for the next refresh.
    fn build(
        &self,
        store: &impl Store,
        done: &mut Progress,
        progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let build = store.transact(|txn| self.begin_build(txn))?;
        let rows = {
            let snapshot = Snapshots::lasting(store);
            let source = &self.changes.pattern().source;
            source.rows::<I, E, C>(&snapshot, self.weight(), |_, error| Err(error))?
        };
        store.transact(|txn| {
            self.check_build(txn, build)?;
            txn.delete_range(self.keys().blocks())
        })?;
        let sides =
            [(Side::Ids, &rows.ids), (Side::Out, &rows.out), (Side::Incoming, &rows.incoming)];
        let mut blocks = Vec::new();
        for (side, own) in sides {
            blocks.extend(keyed(self.keys(), side, own.iter().map(|block| &***block)));
        }
        let (mut size, mut rest) = (BatchSize::new(BLOCKS), &*blocks);
        while !rest.is_empty() {
            let written = size.transact(store, |txn, most| {
                self.check_build(txn, build)?;
                let some = rest.get(..most.max(1)).unwrap_or(rest);
                some.iter().try_for_each(|(key, block)| txn.put(key, block))?;
                Ok(some.len())
            })?;
            rest = rest.get(written..).unwrap_or_default();
            done.written += written as u64;
            if progress(done).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        done.records += u64::from(rows.vertices);
        let (vertices, sorted) = (rows.vertices, rows.vertices);
        let complete = Stored { build, step: 0, is_complete: true, vertices, sorted };
        store.transact(|txn| {
            // An earlier commit with an unknown outcome may have succeeded.
            if self.keys().stored(txn)?.as_ref() == Some(&complete) {
                return Ok(());
            }
            self.check_build(txn, build)?;
            txn.put(&self.keys().state(), &Keys::encode(&complete)?)
        })?;
        Ok(ControlFlow::Continue(()))
    }

    /// Stores the state of a new build, and returns the number of the build. Deletes the marks: the
    /// snapshot of the build is taken later, so it contains these changes.
    fn begin_build(&self, txn: &mut impl Writer) -> Result<u64> {
        let before = self.keys().stored(txn)?.map_or(0, |stored| stored.build);
        let begun =
            Stored { build: before + 1, step: 0, is_complete: false, vertices: 0, sorted: 0 };
        txn.put(&self.keys().state(), &Keys::encode(&begun)?)?;
        txn.delete_range(self.keys().marks())?;
        Ok(begun.build)
    }

    fn check_build(&self, reader: &impl Reader, build: u64) -> Result<()> {
        match self.keys().stored(reader)? {
            Some(stored) if stored.build == build && !stored.is_complete => Ok(()),
            _ => Err(GraphError::RefreshTakenOver.into()),
        }
    }
}

/// Blocks with their keys.
pub(super) fn keyed<'c>(
    keys: &Keys,
    side: Side,
    blocks: impl Iterator<Item = &'c [u8]>,
) -> Vec<(KeyBuf, &'c [u8])> {
    let (mut last, mut n) = (None, 0);
    let with_key = |block: &'c [u8]| {
        let first = first_of(block);
        n = if last == Some(first) { n + 1 } else { 0 };
        last = Some(first);
        (keys.block(side, first, n), block)
    };
    blocks.map(with_key).collect()
}

/// New blocks that replace the blocks of a range of vertices.
pub(super) struct Replacement {
    pub(super) side: Side,
    pub(super) range: Range<u32>,
    pub(super) removed: (KeyBuf, KeyBuf),
    pub(super) blocks: Vec<(KeyBuf, Vec<u8>)>,
}

impl Replacement {
    /// The side, the vertices, and the first vertex of each new block.
    pub(super) fn relaid(&self) -> (Side, Range<u32>, Vec<u32>) {
        let mut starts: Vec<u32> = self.blocks.iter().map(|(_, block)| first_of(block)).collect();
        starts.dedup();
        (self.side, self.range.clone(), starts)
    }

    pub(super) fn apply(&self, txn: &mut impl Writer) -> Result<()> {
        let (from, to) = &self.removed;
        txn.delete_range(KeyRange::half_open(from, to))?;
        self.blocks.iter().try_for_each(|(key, block)| txn.put(key, block))
    }
}
