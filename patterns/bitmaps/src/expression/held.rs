//! Bitmaps in memory, as operands and as results.

use std::ops::Range;
use std::sync::Arc;

use keyloom::{Order, Result};

use super::leaf::Span;
use crate::bitmap::place_of;
use crate::{Chunks, Words};

/// A bitmap in memory: the same containers as in the store, concatenated.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    bytes: Vec<u8>,
    /// Each chunk, and the end of its container.
    chunks: Vec<(u64, usize)>,
}

impl Held {
    /// Creates a bitmap of ids in ascending order.
    pub(super) fn of(ids: impl IntoIterator<Item = u64>) -> Self {
        let (mut held, mut words, mut at) = (Self::default(), Words::new(), None);
        for (chunk, offset) in ids.into_iter().map(place_of) {
            if at.is_some_and(|at| at != chunk) {
                held.push(at, &words);
                words.clear();
            }
            at = Some(chunk);
            words.insert(offset);
        }
        held.push(at, &words);
        held
    }

    /// Appends the next chunk.
    pub(crate) fn push(&mut self, chunk: Option<u64>, words: &Words) {
        let Some(chunk) = chunk else { return };
        words.encode(&mut self.bytes);
        self.chunks.push((chunk, self.bytes.len()));
    }

    /// Creates a bitmap of chunks in ascending order.
    pub(super) fn of_chunks(chunks: &mut impl Chunks) -> Result<Self> {
        let (mut held, mut words) = (Self::default(), Words::new());
        while let Some(chunk) = chunks.next_chunk(&mut words)? {
            held.push(Some(chunk), &words);
        }
        Ok(held)
    }

    /// The chunks and their containers.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        (0..self.chunks.len()).filter_map(|n| Some((self.chunks.get(n)?.0, self.container(n)?)))
    }

    /// The container of a chunk.
    pub(super) fn container_of(&self, chunk: u64) -> Option<&[u8]> {
        let n = self.chunks.binary_search_by_key(&chunk, |(chunk, _)| *chunk).ok()?;
        self.container(n)
    }

    fn container(&self, n: usize) -> Option<&[u8]> {
        let start = n.checked_sub(1).and_then(|before| self.chunks.get(before));
        self.bytes.get(start.map_or(0, |chunk| chunk.1)..self.chunks.get(n)?.1)
    }
}

/// A walk over the chunks of a bitmap in memory.
#[derive(Debug)]
pub(super) struct HeldWalk {
    held: Arc<Held>,
    span: Span,
    /// The current and the remaining chunks.
    rest: Range<usize>,
}

impl HeldWalk {
    pub(super) fn new(held: &Arc<Held>, span: Span) -> Self {
        let start = held.chunks.partition_point(|(chunk, _)| *chunk < span.first());
        let end = held.chunks.partition_point(|(chunk, _)| *chunk <= span.last());
        Self { held: Arc::clone(held), span, rest: start..end.max(start) }
    }

    /// The index of the current chunk.
    fn number(&self) -> Option<usize> {
        match self.span.order() {
            Order::Ascending => self.rest.clone().next(),
            Order::Descending => self.rest.clone().next_back(),
        }
    }

    fn position(&self) -> Option<u64> {
        let (chunk, _) = self.held.chunks.get(self.number()?)?;
        Some(self.span.turned(*chunk))
    }

    pub(super) fn seek(&mut self, to: u64) -> Option<u64> {
        if self.position()? < to {
            let (wanted, Range { start, end }) = (self.span.turned(to), self.rest.clone());
            let rest = self.held.chunks.get(start..end).unwrap_or_default();
            match self.span.order() {
                Order::Ascending => {
                    self.rest.start += rest.partition_point(|(chunk, _)| *chunk < wanted);
                }
                Order::Descending => {
                    self.rest.end = start + rest.partition_point(|(chunk, _)| *chunk <= wanted);
                }
            }
        }
        self.position()
    }

    pub(super) fn value(&self) -> &[u8] {
        self.number().and_then(|n| self.held.container(n)).unwrap_or_default()
    }
}
