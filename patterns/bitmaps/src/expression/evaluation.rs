//! Evaluation of an expression, chunk by chunk.

use std::ops::RangeInclusive;

use keyloom::{Error, Order, Reader, Result};
use keyloom_kit::Explain;

use super::BitmapExpr;
use super::leaf::Span;
use super::machine::Machine;
use super::plan::{Plan, Shape};
use super::walks::{END, Next, Walks, source};
use crate::{CHUNK_IDS, ChunkIds, Chunks, Words};

/// The chunks of an expression that have ids, in order.
///
/// Keeps only a few chunks in memory, whatever the number of chunks and the depth of the
/// expression. Allocates nothing per chunk.
#[derive(Debug)]
pub(crate) struct Evaluation<'r, R: Reader> {
    shape: Shape,
    walks: Walks<'r, R>,
    machine: Machine,
    span: Span,
    /// The next position; `None` at the end, or after a failed read.
    next: Option<u64>,
    /// The ids of the current chunk.
    ids: ChunkIds,
    /// The maximum number of consecutive full chunks.
    most_full: u64,
}

/// The maximum number of consecutive ids that are read into memory or into a stored bitmap.
// All ids of 32 bits fit. Without this limit, a complement without a universe would be read as 2^64
// ids, in 5.7 * 10^14 chunks.
const MOST_IN_A_ROW: u64 = 1 << 32;

/// Consecutive full chunks, or one chunk to compute.
pub(super) enum Stretch {
    /// All ids of `chunks` chunks, starting with the chunk `first`.
    Full { first: u64, chunks: u64 },
    /// The ids of one chunk, not yet computed.
    Chunk(u64),
}

impl<'r, R: Reader> Evaluation<'r, R> {
    /// Creates an evaluation of all ids, in `order`.
    pub(crate) fn all(expr: &BitmapExpr, reader: &'r R, order: Order) -> Result<Self> {
        Self::new(expr, reader, &(0..=u64::MAX), order)
    }

    /// Creates an evaluation of all ids, in ascending order, whose result is kept in memory. The
    /// evaluation refuses a run of more than about [`MOST_IN_A_ROW`] consecutive ids, such as the
    /// run of a complement without a universe.
    pub(super) fn to_keep(expr: &BitmapExpr, reader: &'r R) -> Result<Self> {
        let most_full = MOST_IN_A_ROW.div_ceil(CHUNK_IDS);
        Ok(Self { most_full, ..Self::all(expr, reader, Order::Ascending)? })
    }

    /// Creates an evaluation of the chunks that overlap the range `ids`. These chunks may have ids
    /// outside the range too.
    pub(crate) fn new(
        expr: &BitmapExpr,
        reader: &'r R,
        ids: &RangeInclusive<u64>,
        order: Order,
    ) -> Result<Self> {
        expr.owner.check()?;
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

    /// Skips the chunks before a chunk.
    pub(crate) fn skip_to(&mut self, chunk: u64) {
        let to = self.span.turned(chunk);
        self.next = self.next.map(|next| next.max(to));
    }

    /// Counts the remaining ids.
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

    /// The next run of ids.
    pub(super) fn next_stretch(&mut self) -> Result<Option<Stretch>> {
        let Some(next) = self.candidate()? else { return Ok(None) };
        let until = if next.is_full { next.until } else { next.at + 1 };
        self.next = self.span.behind(until - 1);
        Ok(Some(match next.is_full {
            true => Stretch::Full { first: self.span.turned(next.at), chunks: until - next.at },
            false => Stretch::Chunk(next.at),
        }))
    }

    /// Computes the ids of the chunk at a position. Returns the chunk and its ids.
    pub(super) fn load(&mut self, at: u64) -> Result<(u64, &ChunkIds)> {
        self.machine.compute(&mut self.shape, &mut self.walks, at, &mut self.ids)?;
        Ok((self.span.turned(at), &self.ids))
    }

    /// The next positions where there may be ids. The caller must set `next` to continue after
    /// them.
    #[inline]
    fn candidate(&mut self) -> Result<Option<Next>> {
        let Some(next) = self.next.take() else { return Ok(None) };
        let next = self.walks.next(&self.shape, self.shape.root(), next)?;
        if next.is_full && next.until - next.at > self.most_full {
            return Err(endless(next));
        }
        Ok((next.at != END).then_some(next))
    }

    /// The next chunk that has ids, and its ids.
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

    /// The number of times that a node was examined during seeks.
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
