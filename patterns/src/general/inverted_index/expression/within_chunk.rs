//! Expressions over chunks that are in memory already: many of them, whose leaves are shared.

use std::ops::RangeInclusive;
use std::sync::Arc;

use keyloom::{Result, Subspace};

use super::held::Held;
use super::{BitmapExpr, Tree};
use crate::general::inverted_index::bitmap::id_at;
use crate::general::inverted_index::container::run;
use crate::general::inverted_index::integers::Comparison;
use crate::general::inverted_index::{CHUNK_IDS, ChunkIds, Container};

/// What an expression reads from the store.
pub(crate) enum Leaf<'e> {
    /// The bitmap in a subspace.
    Stored(&'e Subspace),
    /// Integers in a range.
    Compared(&'e Comparison),
}

/// An expression whose leaves are chunks in memory, known by their numbers.
#[derive(Debug)]
pub(crate) enum ChunkExpr {
    Leaf(usize),
    Held(Arc<Held>),
    Range(RangeInclusive<u64>),
    All { with: Vec<Self>, without: Vec<Self> },
    Any(Vec<Self>),
    Odd(Vec<Self>),
}

impl BitmapExpr {
    /// The same expression over leaves that `number` gives numbers to.
    pub(crate) fn within_chunk(
        &self,
        number: &mut impl FnMut(Leaf<'_>) -> Result<usize>,
    ) -> Result<ChunkExpr> {
        let mut all = |exprs: &[Self]| {
            exprs.iter().map(|expr| expr.within_chunk(number)).collect::<Result<Vec<_>>>()
        };
        Ok(match self.tree() {
            Tree::All { with, without } => {
                ChunkExpr::All { with: all(with)?, without: all(without)? }
            }
            Tree::Any(of) => ChunkExpr::Any(all(of)?),
            Tree::Odd(of) => ChunkExpr::Odd(all(of)?),
            Tree::Held(held) => ChunkExpr::Held(Arc::clone(held)),
            Tree::Range(ids) => ChunkExpr::Range(ids.clone()),
            Tree::Stored(space) => ChunkExpr::Leaf(number(Leaf::Stored(space))?),
            Tree::Compared(comparison) => ChunkExpr::Leaf(number(Leaf::Compared(comparison))?),
        })
    }
}

/// How what is in a chunk is combined with an operand.
type Op = fn(&mut ChunkIds, &ChunkIds);

impl ChunkExpr {
    /// Makes `out` what the expression has of a chunk, of which `leaves` are what the leaves have.
    pub(crate) fn evaluate(
        &self,
        chunk: u64,
        leaves: &[ChunkIds],
        out: &mut ChunkIds,
    ) -> Result<()> {
        out.clear();
        match self {
            Self::Leaf(_) => self.leaf(leaves).into_iter().for_each(|leaf| out.or_ids(leaf)),
            Self::Held(held) => {
                if let Some(container) = held.container_of(chunk) {
                    out.set(Container::parse(container)?);
                }
            }
            Self::Range(ids) => set_range(ids, chunk, out)?,
            Self::All { with, without } => {
                // The smallest first: the others are looked up then.
                let weight = |n: &usize| with.get(*n).map_or(0, |expr| expr.weight(leaves));
                let first = (0..with.len()).min_by_key(weight).unwrap_or(0);
                let (before, rest) = with.split_at(first);
                if let Some((first, behind)) = rest.split_first() {
                    first.evaluate(chunk, leaves, out)?;
                    combine(before, chunk, leaves, out, ChunkIds::and_ids)?;
                    combine(behind, chunk, leaves, out, ChunkIds::and_ids)?;
                }
                combine(without, chunk, leaves, out, ChunkIds::and_not_ids)?;
            }
            Self::Any(of) => combine(of, chunk, leaves, out, ChunkIds::or_ids)?,
            Self::Odd(of) => combine(of, chunk, leaves, out, ChunkIds::xor_ids)?,
        }
        Ok(())
    }

    fn leaf<'l>(&self, leaves: &'l [ChunkIds]) -> Option<&'l ChunkIds> {
        match self {
            Self::Leaf(number) => leaves.get(*number),
            _ => None,
        }
    }

    /// How many ids a leaf has, if they are few, and else the most there could be.
    fn weight(&self, leaves: &[ChunkIds]) -> usize {
        self.leaf(leaves).and_then(ChunkIds::few).map_or(usize::MAX, <[u16]>::len)
    }
}

/// Combines what is in `out` with operands.
fn combine(
    operands: &[ChunkExpr],
    chunk: u64,
    leaves: &[ChunkIds],
    out: &mut ChunkIds,
    op: Op,
) -> Result<()> {
    let mut own = ChunkIds::default();
    for operand in operands {
        match operand.leaf(leaves) {
            Some(leaf) => op(out, leaf),
            None => {
                operand.evaluate(chunk, leaves, &mut own)?;
                op(out, &own);
            }
        }
    }
    Ok(())
}

fn set_range(ids: &RangeInclusive<u64>, chunk: u64, out: &mut ChunkIds) -> Result<()> {
    let Some(first) = id_at(chunk, 0) else { return Ok(()) };
    let last = first.saturating_add(CHUNK_IDS - 1);
    let (from, to) = ((*ids.start()).max(first), (*ids.end()).min(last));
    if from <= to {
        out.set(Container::parse(&run((from - first) as u16, (to - first) as u16))?);
    }
    Ok(())
}
