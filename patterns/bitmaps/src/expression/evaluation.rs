//! The ids of an expression, chunk by chunk.

use std::ops::RangeInclusive;

use keyloom::{Error, Order, Reader, Result};

use super::BitmapExpr;
use super::leaf::Span;
use super::machine::Machine;
use super::plan::{Plan, Shape};
use super::walks::{END, Next, Walks, source};
use crate::{CHUNK_IDS, ChunkIds, Chunks, Words};
use keyloom_tables::Explain;

/// The chunks of an expression that have ids, in order.
///
/// Holds a few chunks, however many there are and however deep the expression is; asks for no
/// memory from one chunk to the next.
#[derive(Debug)]
pub(crate) struct Evaluation<'r, R: Reader> {
    shape: Shape,
    walks: Walks<'r, R>,
    machine: Machine,
    span: Span,
    /// Where to go on; `None` at the end, or when reading failed.
    next: Option<u64>,
    /// The chunk that the evaluation is at.
    ids: ChunkIds,
    /// How many chunks in a row may have all ids.
    most_full: u64,
}

/// How many ids in a row are read into memory, or into a stored bitmap.
const MOST_IN_A_ROW: u64 = 1 << 32;

/// Ids that come next.
pub(super) enum Stretch {
    /// All ids of so many chunks, of which this is the first to come.
    Full { first: u64, chunks: u64 },
    /// The ids of one chunk, which are to be computed.
    Chunk(u64),
}

impl<'r, R: Reader> Evaluation<'r, R> {
    /// Of all ids.
    pub(crate) fn all(expr: &BitmapExpr, reader: &'r R, order: Order) -> Result<Self> {
        Self::new(expr, reader, &(0..=u64::MAX), order)
    }

    /// Of all ids, in order, to be kept: so many in a row that they can only be those of a
    /// complement without a universe are refused.
    pub(super) fn to_keep(expr: &BitmapExpr, reader: &'r R) -> Result<Self> {
        let most_full = MOST_IN_A_ROW.div_ceil(CHUNK_IDS);
        Ok(Self { most_full, ..Self::all(expr, reader, Order::Ascending)? })
    }

    /// The chunks that have some of `ids`; they may have others too.
    pub(crate) fn new(
        expr: &BitmapExpr,
        reader: &'r R,
        ids: &RangeInclusive<u64>,
        order: Order,
    ) -> Result<Self> {
        let span = Span::of(ids, order);
        let Plan { shape, leaves } = expr.plan(source(reader, span))?;
        Ok(Self {
            walks: Walks::new(&shape, leaves),
            shape,
            machine: Machine::default(),
            span,
            next: Some(span.start()),
            ids: ChunkIds::with_room(),
            most_full: u64::MAX,
        })
    }

    /// Leaves out what lies before a chunk.
    pub(crate) fn skip_to(&mut self, chunk: u64) {
        let to = self.span.turned(chunk);
        self.next = self.next.map(|next| next.max(to));
    }

    /// How many ids are left.
    pub(super) fn count(&mut self) -> Result<u128> {
        let mut count = 0;
        while let Some(stretch) = self.next_stretch()? {
            count += match stretch {
                Stretch::Full { chunks, .. } => u128::from(chunks) * u128::from(CHUNK_IDS),
                Stretch::Chunk(at) => self.count_at(at)?.into(),
            };
        }
        Ok(count)
    }

    fn count_at(&mut self, at: u64) -> Result<u32> {
        if let Some(count) = self.walks.count(&self.shape, at)? {
            return Ok(count);
        }
        self.load(at)?;
        Ok(self.ids.len())
    }

    /// The ids that come next.
    pub(super) fn next_stretch(&mut self) -> Result<Option<Stretch>> {
        let Some(next) = self.candidate()? else { return Ok(None) };
        let until = if next.is_full { next.until } else { next.at + 1 };
        self.next = self.span.behind(until - 1);
        Ok(Some(match next.is_full {
            true => Stretch::Full { first: self.span.turned(next.at), chunks: until - next.at },
            false => Stretch::Chunk(next.at),
        }))
    }

    /// The chunk of a stretch, and its ids.
    pub(super) fn load(&mut self, at: u64) -> Result<(u64, &ChunkIds)> {
        self.machine.compute(&mut self.shape, &mut self.walks, at, &mut self.ids)?;
        Ok((self.span.turned(at), &self.ids))
    }

    /// The next positions where there may be ids. Until `next` is set behind them, nothing else
    /// comes.
    #[inline]
    fn candidate(&mut self) -> Result<Option<Next>> {
        let Some(next) = self.next.take() else { return Ok(None) };
        let next = self.walks.next(&self.shape, self.shape.root(), next)?;
        if next.is_full && next.until - next.at > self.most_full {
            return Err(endless(next));
        }
        Ok((next.at != END).then_some(next))
    }

    /// The next chunk that has ids, and these.
    pub(crate) fn next_ids(&mut self) -> Result<Option<(u64, &ChunkIds)>> {
        while let Some(Next { at, .. }) = self.candidate()? {
            self.machine.compute(&mut self.shape, &mut self.walks, at, &mut self.ids)?;
            self.next = self.span.behind(at);
            if !self.ids.is_empty() {
                return Ok(Some((self.span.turned(at), &self.ids)));
            }
        }
        Ok(None)
    }

    pub(crate) fn explain(&self) -> Explain {
        self.walks.explain()
    }

    /// How often a node was looked at while positions were sought.
    #[cfg(test)]
    pub(super) fn looks(&self) -> usize {
        self.walks.looks
    }
}

#[cold]
fn endless(next: Next) -> Error {
    let ids = u128::from(next.until - next.at) * u128::from(CHUNK_IDS);
    Error::InvalidArgument {
        what: "the expression",
        value: format!("{ids} ids without a gap"),
        why: "it has more ids than can be kept: give its complement a universe, such as ..next_id, \
              or take it from all records",
    }
}

impl<R: Reader> Chunks for Evaluation<'_, R> {
    fn next_chunk(&mut self, words: &mut Words) -> Result<Option<u64>> {
        Ok(self.next_ids()?.map(|(chunk, ids)| {
            ids.write_to(words);
            chunk
        }))
    }
}
