//! Expressions over chunks that are in memory already: many of them, whose leaves are shared.

use std::ops::RangeInclusive;
use std::sync::Arc;

use keyloom::{Result, Subspace};
use smallvec::SmallVec;

use super::held::Held;
use super::mark::{Marks, set_list};
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

/// How what is in a chunk is combined with an operand, which is marked or has been computed.
#[derive(Clone, Copy)]
struct Op {
    marked: fn(&Marks, &mut Words),
    computed: fn(&mut Words, &Words),
}

const AND: Op = Op { marked: Marks::and, computed: Words::and_words };
const AND_NOT: Op = Op { marked: Marks::and_not, computed: Words::and_not_words };
const OR: Op = Op { marked: Marks::or, computed: Words::or_words };
const XOR: Op = Op { marked: Marks::xor, computed: Words::xor_words };

impl ChunkExpr {
    /// Makes `out` what the expression has of a chunk, of which `leaves` are what the leaves have.
    pub(crate) fn evaluate(&self, chunk: u64, leaves: &[Marks], out: &mut Words) -> Result<()> {
        match self {
            Self::Leaf(number) => match leaves.get(*number) {
                Some(marks) => marks.set(out),
                None => out.clear(),
            },
            Self::Held(held) => match held.container_of(chunk) {
                Some(container) => out.set(Container::parse(container)?),
                None => out.clear(),
            },
            Self::Range(ids) => set_range(ids, chunk, out),
            Self::All { with, without } => {
                if evaluate_lists(with, without, leaves, out).is_some() {
                    return Ok(());
                }
                let mut operands = with.iter();
                if let Some(first) = operands.next() {
                    first.evaluate(chunk, leaves, out)?;
                }
                combine(operands.as_slice(), chunk, leaves, out, AND)?;
                combine(without, chunk, leaves, out, AND_NOT)?;
            }
            Self::Any(of) => {
                out.clear();
                combine(of, chunk, leaves, out, OR)?;
            }
            Self::Odd(of) => {
                out.clear();
                combine(of, chunk, leaves, out, XOR)?;
            }
        }
        Ok(())
    }

    fn marks<'l>(&self, leaves: &'l [Marks]) -> Option<&'l Marks> {
        match self {
            Self::Leaf(number) => leaves.get(*number),
            _ => None,
        }
    }
}

/// An intersection of leaves of which one has few ids: these are looked up in the others. `None` where it is not
/// of that kind.
fn evaluate_lists(
    with: &[ChunkExpr],
    without: &[ChunkExpr],
    leaves: &[Marks],
    out: &mut Words,
) -> Option<()> {
    let all = |exprs: &[ChunkExpr]| {
        exprs.iter().map(|expr| expr.marks(leaves)).collect::<Option<SmallVec<[&Marks; 4]>>>()
    };
    let (with, without) = (all(with)?, all(without)?);
    let list = with.iter().filter_map(|marks| marks.few()).min_by_key(|list| list.len())?;
    let mut left: SmallVec<[u16; 256]> = SmallVec::from_slice(list);
    for marks in with {
        match marks.few() {
            Some(other) if other.len() / MANY_TIMES < left.len() => keep_shared(&mut left, other),
            _ => left.retain(|offset| marks.contains(*offset)),
        }
    }
    left.retain(|offset| !without.iter().any(|marks| marks.contains(*offset)));
    set_list(&left, out);
    Some(())
}

/// A list that is as many times as long is searched rather than gone through.
const MANY_TIMES: usize = 16;

/// Keeps of an ascending list what another one has too. Which of the two is less cannot be foretold, so there is no
/// branch on it.
fn keep_shared(list: &mut SmallVec<[u16; 256]>, other: &[u16]) {
    let (mut at, mut at_other, mut kept) = (0, 0, 0);
    while let (Some(id), Some(other)) = (list.get(at).copied(), other.get(at_other).copied()) {
        list.get_mut(kept).into_iter().for_each(|place| *place = id);
        kept += usize::from(id == other);
        at += usize::from(id <= other);
        at_other += usize::from(other <= id);
    }
    list.truncate(kept);
}

/// Combines what is in `out` with operands.
fn combine(
    operands: &[ChunkExpr],
    chunk: u64,
    leaves: &[Marks],
    out: &mut Words,
    op: Op,
) -> Result<()> {
    let mut own = None;
    for operand in operands {
        match operand.marks(leaves) {
            Some(marks) => (op.marked)(marks, out),
            None => {
                let own = own.get_or_insert_with(|| Box::new(Words::new()));
                operand.evaluate(chunk, leaves, own)?;
                (op.computed)(out, own);
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
