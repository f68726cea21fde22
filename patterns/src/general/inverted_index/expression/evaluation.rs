//! What an expression gives, chunk by chunk.

use std::ops::RangeInclusive;

use keyloom::{Order, Reader, Result};

use super::BitmapExpr;
use super::leaf::Span;
use super::node::Node;
use crate::explain::Explain;
use crate::general::inverted_index::{ChunkIds, Chunks, Words};

/// The chunks of an expression that have ids, in order.
///
/// Holds one chunk per operand that is itself computed, however many chunks there are; asks for no memory from one
/// chunk to the next.
#[derive(Debug)]
pub(crate) struct Evaluation<'r, R: Reader> {
    node: Node<'r, R>,
    span: Span,
    /// Where to go on; `None` at the end, or when reading failed.
    next: Option<u64>,
    /// The chunk that the evaluation is at.
    ids: ChunkIds,
}

impl<'r, R: Reader> Evaluation<'r, R> {
    /// Of all ids.
    pub(crate) fn all(expr: &BitmapExpr, reader: &'r R, order: Order) -> Self {
        Self::new(expr, reader, &(0..=u64::MAX), order)
    }

    /// The chunks that have some of `ids`; they may have others too.
    pub(crate) fn new(
        expr: &BitmapExpr,
        reader: &'r R,
        ids: &RangeInclusive<u64>,
        order: Order,
    ) -> Self {
        let span = Span::of(ids, order);
        Self {
            node: Node::new(expr, reader, span),
            span,
            next: Some(span.start()),
            ids: ChunkIds::with_room(),
        }
    }

    /// Leaves out what lies before a chunk.
    pub(crate) fn skip_to(&mut self, chunk: u64) {
        let to = self.span.turned(chunk);
        self.next = self.next.map(|next| next.max(to));
    }

    /// How many ids are left.
    pub(crate) fn count(&mut self) -> Result<u64> {
        let mut count = 0;
        while let Some(at) = self.candidate()? {
            count += u64::from(self.node.count(at, &mut self.ids)?);
            self.next = self.span.behind(at);
        }
        Ok(count)
    }

    /// The next position where there may be ids. Until it is told where to go on behind it, nothing else comes.
    #[inline]
    fn candidate(&mut self) -> Result<Option<u64>> {
        match self.next.take() {
            Some(next) => self.node.seek(next),
            None => Ok(None),
        }
    }

    /// The next chunk that has ids, and these.
    pub(crate) fn next_ids(&mut self) -> Result<Option<(u64, &ChunkIds)>> {
        while let Some(at) = self.candidate()? {
            self.node.load(at, &mut self.ids)?;
            self.next = self.span.behind(at);
            if !self.ids.is_empty() {
                return Ok(Some((self.span.turned(at), &self.ids)));
            }
        }
        Ok(None)
    }

    pub(crate) fn explain(&self) -> Explain {
        let mut sum = Explain::default();
        self.node.explain(&mut sum);
        sum
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
