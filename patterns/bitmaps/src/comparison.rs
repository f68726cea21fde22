//! Comparisons of integers with constants: the ids whose value is in a range.

use std::ops::RangeInclusive;

use keyloom::{Reader, Result, Subspace};
use keyloom_kit::{Explain, Fnv};

use crate::expression::leaf::Span;
use crate::expression::op::Op;
use crate::slices::SliceWalk;
use crate::{ChunkIds, Words};

/// The ids whose value is in a range.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(super) space: Subspace,
    pub(super) values: RangeInclusive<i64>,
}

impl Comparison {
    /// The subspace of the integers.
    pub(crate) fn space(&self) -> &Subspace {
        &self.space
    }

    /// The range; it is not empty.
    pub(crate) fn values(&self) -> &RangeInclusive<i64> {
        &self.values
    }

    /// Hashes everything that identifies the comparison.
    pub(crate) fn hash(&self, hash: &mut Fnv) {
        hash.add(&(self.space.prefix().len() as u64).to_be_bytes());
        hash.add(self.space.prefix());
        hash.add(&self.values.start().to_be_bytes());
        hash.add(&self.values.end().to_be_bytes());
    }

    pub(crate) fn walk<'r, R: Reader>(&self, reader: &'r R, span: Span) -> ComparisonWalk<'r, R> {
        ComparisonWalk {
            slices: SliceWalk::new(reader, &self.space, span),
            values: self.values.clone(),
            scratch: None,
            own: ChunkIds::default(),
        }
    }
}

/// A walk over the chunks that may contain ids with a value in the range.
#[derive(Debug)]
pub(crate) struct ComparisonWalk<'r, R: Reader> {
    slices: SliceWalk<'r, R>,
    values: RangeInclusive<i64>,
    /// A buffer, allocated when first needed, and kept.
    scratch: Option<Box<Words>>,
    /// The ids of a chunk, to be combined with others.
    own: ChunkIds,
}

impl<R: Reader> ComparisonWalk<'_, R> {
    pub(crate) fn seek(&mut self, to: u64) -> Result<Option<u64>> {
        self.slices.seek(to)
    }

    /// Combines ids with the ids in range of the chunk at the position `at`, which was returned by
    /// [`ComparisonWalk::seek`].
    pub(crate) fn combine(&mut self, at: u64, op: Op, ids: &mut ChunkIds) -> Result<()> {
        let slices = self.slices.slices(at)?;
        let scratch = self.scratch.get_or_insert_with(|| Box::new(Words::new()));
        if op == Op::Set {
            slices.between(&self.values, ids.as_words(), scratch);
        } else {
            slices.between(&self.values, self.own.as_words(), scratch);
            op.apply_ids(ids, &mut self.own);
        }
        Ok(())
    }

    pub(crate) fn explain(&self) -> Explain {
        self.slices.explain()
    }
}
