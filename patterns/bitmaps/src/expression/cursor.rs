//! The ids of an expression by seeks.

use keyloom::{Order, Reader, Result};

use super::BitmapExpr;
use super::evaluation::Evaluation;
use crate::bitmap::{id_at, place_of};

/// A cursor over the ids of an expression, in ascending order. It keeps the ids of one chunk in
/// memory.
#[derive(Debug)]
pub struct IdCursor<'r, R: Reader> {
    /// `None` once it has ended or failed.
    chunks: Option<Evaluation<'r, R>>,
    chunk: u64,
    offsets: Vec<u16>,
    at: usize,
}

impl BitmapExpr {
    /// A cursor over the ids. Costs one range for each stored operand, over the chunks that it
    /// visits.
    ///
    /// # Errors
    /// As [`count`](BitmapExpr::count).
    #[doc(hidden)]
    pub fn cursor<'r, R: Reader>(&self, reader: &'r R) -> Result<IdCursor<'r, R>> {
        let chunks = Some(Evaluation::all(self, reader, Order::Ascending)?);
        Ok(IdCursor { chunks, chunk: 0, offsets: Vec::new(), at: 0 })
    }
}

impl<R: Reader> IdCursor<'_, R> {
    /// Advances to the first id that is not before `target`. Targets must ascend.
    ///
    /// # Errors
    /// As [`BitmapExpr::count`]; after an error the cursor has ended.
    pub fn seek(&mut self, target: u64) -> Result<Option<u64>> {
        let (chunk, offset) = place_of(target);
        loop {
            if chunk < self.chunk || chunk == self.chunk {
                let rest = self.offsets.get(self.at..).unwrap_or_default();
                if chunk == self.chunk {
                    self.at += rest.partition_point(|other| *other < offset);
                }
                if let Some(offset) = self.offsets.get(self.at) {
                    return Ok(id_at(self.chunk, *offset));
                }
            }
            let Some(mut chunks) = self.chunks.take() else {
                self.offsets.clear();
                return Ok(None);
            };
            chunks.skip_to(chunk);
            self.offsets.clear();
            self.at = 0;
            let Some((found, ids)) = chunks.next_ids()? else { return Ok(None) };
            self.chunk = found;
            self.offsets.extend(ids.iter());
            self.chunks = Some(chunks);
        }
    }
}
