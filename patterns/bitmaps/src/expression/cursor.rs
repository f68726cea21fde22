//! The ids of an expression by seeks.

use keyloom::{Order, Reader, Result};

use super::BitmapExpr;
use super::evaluation::Evaluation;
use crate::bitmap::{id_at, place_of};

/// A cursor over the ids of an expression, in ascending order. It keeps the ids of one chunk in
/// memory.
#[derive(Debug)]
pub struct IdCursor<'r, R: Reader> {
    /// `None` once the cursor has ended or failed.
    chunks: Option<Evaluation<'r, R>>,
    chunk: u64,
    offsets: Vec<u16>,
    at: usize,
}

impl BitmapExpr {
    /// A cursor over the ids. Costs at least one range for each stored operand, over the chunks
    /// that it visits.
    ///
    /// # Errors
    /// The errors of [`count`](BitmapExpr::count).
    pub fn cursor<'r, R: Reader>(&self, reader: &'r R) -> Result<IdCursor<'r, R>> {
        let chunks = Some(Evaluation::all(self, reader, Order::Ascending)?);
        Ok(IdCursor { chunks, chunk: 0, offsets: Vec::new(), at: 0 })
    }

    /// All ids that fit into an `I`, in ascending order; `None` if there are more than `most` ids.
    /// Reads like [`ids`](BitmapExpr::ids), but takes less time for chunks of few ids.
    ///
    /// # Errors
    /// The errors of [`count`](BitmapExpr::count).
    pub fn to_vec<I: TryFrom<u64>>(
        &self,
        reader: &impl Reader,
        most: usize,
    ) -> Result<Option<Vec<I>>> {
        // The iterator of `ids` keeps a chunk as plain words, so a chunk of few ids costs as much
        // as a chunk of many. For groups of ten records, each in a different chunk, this took most
        // of the time of a collapsed search for a rare word.
        let mut chunks = Evaluation::all(self, reader, Order::Ascending)?;
        let (mut all, mut left) = (Vec::new(), most);
        while let Some((chunk, ids)) = chunks.next_ids()? {
            let many = ids.len() as usize;
            let Some(less) = left.checked_sub(many) else { return Ok(None) };
            left = less;
            all.reserve(many);
            let first = id_at(chunk, 0).unwrap_or(u64::MAX);
            ids.iter().for_each(|offset| {
                let id = first.checked_add(offset.into()).and_then(|id| I::try_from(id).ok());
                all.extend(id);
            });
        }
        Ok(Some(all))
    }
}

impl<R: Reader> IdCursor<'_, R> {
    /// Advances to the first id at or after `target`, and returns this id. Targets must ascend.
    ///
    /// # Errors
    /// The errors of [`BitmapExpr::count`]; after an error the cursor has ended.
    pub fn seek(&mut self, target: u64) -> Result<Option<u64>> {
        let (chunk, offset) = place_of(target);
        loop {
            if chunk <= self.chunk {
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
            ids.iter().for_each(|offset| self.offsets.push(offset));
            self.chunks = Some(chunks);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use keyloom::{Memory, Store, Subspace};
    use proptest::prelude::*;

    use crate::{Bitmap, BitmapExpr};

    proptest! {
        #[test]
        fn seeks_find_the_first_id_that_is_not_before(
            ids in prop::collection::btree_set(0..200_000_u64, 0..200),
            kept in 0..200_000_u64,
            targets in prop::collection::btree_set(0..210_000_u64, 1..60),
        ) {
            let (store, bitmap) = (Memory::new(), Bitmap::new(&Subspace::new("ids")));
            store.transact(|txn| bitmap.insert_many(txn, ids.iter().copied())).unwrap();
            let expr = BitmapExpr::from(&bitmap) & BitmapExpr::range(kept..);
            let wanted: BTreeSet<u64> = ids.range(kept..).copied().collect();
            let snapshot = store.snapshot().unwrap();
            let mut cursor = expr.cursor(&snapshot).unwrap();
            for target in targets {
                let first = wanted.range(target..).next().copied();
                prop_assert_eq!(cursor.seek(target).unwrap(), first);
            }
            let wanted: Vec<u64> = wanted.into_iter().collect();
            let less = wanted.len().checked_sub(1);
            prop_assert_eq!(less.and_then(|most| expr.to_vec::<u64>(&snapshot, most).unwrap()), None);
            prop_assert_eq!(expr.to_vec(&snapshot, wanted.len()).unwrap(), Some(wanted));
        }
    }
}
