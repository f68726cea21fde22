//! Expressions over chunks that are in memory already: many of them, whose leaves are shared.

use std::ops::RangeInclusive;
use std::sync::Arc;

use keyloom::{Result, Subspace};

use super::held::Held;
use super::{BitmapExpr, Tree};
use crate::general::inverted_index::bitmap::id_at;
use crate::general::inverted_index::integers::Comparison;
use crate::general::inverted_index::{CHUNK_IDS, Container, Words};

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

impl ChunkExpr {
    /// Makes `out` what the expression has of a chunk, of which `leaf` gives what a leaf has, `None` for nothing.
    pub(crate) fn evaluate<'l>(
        &self,
        chunk: u64,
        leaf: &impl Fn(usize) -> Option<&'l Words>,
        out: &mut Words,
    ) -> Result<()> {
        match self {
            Self::Leaf(number) => match leaf(*number) {
                Some(words) => out.clone_from(words),
                None => out.clear(),
            },
            Self::Held(held) => match held.container_of(chunk) {
                Some(container) => out.set(Container::parse(container)?),
                None => out.clear(),
            },
            Self::Range(ids) => set_range(ids, chunk, out),
            Self::All { with, without } => {
                if with.iter().any(|expr| expr.is_nothing(leaf)) {
                    out.clear();
                    return Ok(());
                }
                let mut operands = with.iter();
                if let Some(first) = operands.next() {
                    first.evaluate(chunk, leaf, out)?;
                }
                combine(operands, chunk, leaf, out, Words::and_words)?;
                combine(without.iter(), chunk, leaf, out, Words::and_not_words)?;
            }
            Self::Any(of) => {
                out.clear();
                combine(of.iter(), chunk, leaf, out, Words::or_words)?;
            }
            Self::Odd(of) => {
                out.clear();
                combine(of.iter(), chunk, leaf, out, Words::xor_words)?;
            }
        }
        Ok(())
    }

    /// Whether there is nothing at first sight.
    fn is_nothing<'l>(&self, leaf: &impl Fn(usize) -> Option<&'l Words>) -> bool {
        matches!(self, Self::Leaf(number) if leaf(*number).is_none())
    }
}

/// Combines what is in `out` with operands.
fn combine<'e, 'l>(
    operands: impl Iterator<Item = &'e ChunkExpr>,
    chunk: u64,
    leaf: &impl Fn(usize) -> Option<&'l Words>,
    out: &mut Words,
    op: impl Fn(&mut Words, &Words),
) -> Result<()> {
    let mut own = None;
    for operand in operands {
        // What is nothing adds nothing and takes nothing away; of an intersection there is none.
        match operand {
            ChunkExpr::Leaf(number) => leaf(*number).into_iter().for_each(|words| op(out, words)),
            _ => {
                let own = own.get_or_insert_with(|| Box::new(Words::new()));
                operand.evaluate(chunk, leaf, own)?;
                op(out, own);
            }
        }
    }
    Ok(())
}

fn set_range(ids: &RangeInclusive<u64>, chunk: u64, out: &mut Words) {
    out.clear();
    let Some(first) = id_at(chunk, 0) else { return };
    let last = first.saturating_add(CHUNK_IDS - 1);
    let (from, to) = ((*ids.start()).max(first), (*ids.end()).min(last));
    if from <= to {
        out.insert_range((from - first) as u16..=(to - first) as u16);
    }
}
