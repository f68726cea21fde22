//! Many expressions over chunks in memory, with shared leaves.

use std::ops::RangeInclusive;
use std::sync::Arc;

use keyloom::{Result, Subspace};

use super::BitmapExpr;
use super::held::Held;
use super::machine::{Leaves, Machine};
use super::op::Op;
use super::plan::{LeafExpr, Plan, Shape};
use crate::bitmap::id_at;
use crate::comparison::Comparison;
use crate::container::run;
use crate::{CHUNK_IDS, ChunkIds, Container};

/// A leaf that is read from the store.
pub(crate) enum Leaf<'e> {
    /// The bitmap in a subspace.
    Stored(&'e Subspace),
    /// Integers in a range.
    Compared(&'e Comparison),
}

/// An expression whose leaves are numbered chunks in memory, bitmaps in memory, or ranges of ids.
pub(crate) type ChunkExpr = Plan<ChunkLeaf>;

#[derive(Clone, Debug)]
pub(crate) enum ChunkLeaf {
    Known(usize),
    Held(Arc<Held>),
    Range(RangeInclusive<u64>),
}

impl BitmapExpr {
    /// The same expression, with leaves numbered by `number`.
    pub(crate) fn within_chunk(
        &self,
        number: &mut impl FnMut(Leaf<'_>) -> Result<usize>,
    ) -> Result<ChunkExpr> {
        self.plan(|leaf| {
            Ok(match leaf {
                LeafExpr::Held(held) => ChunkLeaf::Held(Arc::clone(held)),
                LeafExpr::Range(ids) => ChunkLeaf::Range(ids),
                LeafExpr::Stored(space) => ChunkLeaf::Known(number(Leaf::Stored(space))?),
                LeafExpr::Compared(comparison) => {
                    ChunkLeaf::Known(number(Leaf::Compared(comparison))?)
                }
            })
        })
    }
}

/// Computes expressions over chunks in memory, one at a time.
#[derive(Debug, Default)]
pub(crate) struct ChunkMachine(Machine);

impl ChunkMachine {
    /// Computes the ids of an expression in a chunk into `out`; `leaves` has the ids of the leaves
    /// of the expression.
    pub(crate) fn compute(
        &mut self,
        expr: &mut ChunkExpr,
        chunk: u64,
        leaves: &[ChunkIds],
        out: &mut ChunkIds,
    ) -> Result<()> {
        let mut at = AtChunk { leaves, own: &expr.leaves };
        out.clear();
        self.0.compute(&mut expr.shape, &mut at, chunk, out)
    }
}

/// Leaves in memory.
struct AtChunk<'l> {
    leaves: &'l [ChunkIds],
    own: &'l [ChunkLeaf],
}

impl<'l> AtChunk<'l> {
    fn known(&self, leaf: usize) -> Option<&'l ChunkIds> {
        match self.own.get(leaf)? {
            ChunkLeaf::Known(number) => self.leaves.get(*number),
            ChunkLeaf::Held(_) | ChunkLeaf::Range(_) => None,
        }
    }
}

impl Leaves for AtChunk<'_> {
    fn is_at(&mut self, _: &Shape, _: usize, _: u64) -> Result<bool> {
        Ok(true)
    }

    fn combine(&mut self, leaf: usize, chunk: u64, op: Op, ids: &mut ChunkIds) -> Result<()> {
        if let Some(known) = self.known(leaf) {
            op.apply_kept(ids, known);
            return Ok(());
        }
        let bytes;
        let container: &[u8] = match self.own.get(leaf) {
            Some(ChunkLeaf::Held(held)) => held.container_of(chunk).unwrap_or_default(),
            Some(ChunkLeaf::Range(range)) => match range_in(range, chunk) {
                Some(run) => {
                    bytes = run;
                    &bytes
                }
                None => &[],
            },
            _ => &[],
        };
        match container {
            [] => op.apply_kept(ids, &ChunkIds::default()),
            container => op.apply(ids, Container::parse(container)?),
        }
        Ok(())
    }

    fn weight(&self, leaf: usize) -> usize {
        self.known(leaf).and_then(ChunkIds::few).map_or(usize::MAX / 4, <[u16]>::len)
    }
}

/// The ids of a range in a chunk, as a container.
fn range_in(ids: &RangeInclusive<u64>, chunk: u64) -> Option<[u8; 5]> {
    let first = id_at(chunk, 0)?;
    let last = first.saturating_add(CHUNK_IDS - 1);
    let (from, to) = ((*ids.start()).max(first), (*ids.end()).min(last));
    (from <= to).then(|| run((from - first) as u16, (to - first) as u16))
}
