//! Which ids satisfy a Boolean expression of bitmaps?

use std::ops::{Bound, RangeBounds, RangeInclusive};
use std::sync::Arc;

use keyloom::{Order, Reader, Result, Subspace};

use crate::explain::Explain;

mod chunks;
mod held;
pub(crate) mod leaf;
mod node;
mod tree;

pub(crate) use chunks::Chunks;
pub(crate) use held::Held;
use tree::Tree;

/// A Boolean expression of bitmaps: stored ones, ranges of ids, and bitmaps in memory.
#[derive(Clone, Debug)]
pub struct BitmapExpr(Arc<Tree>);

impl BitmapExpr {
    fn tree(&self) -> &Tree {
        &self.0
    }

    /// The bitmap in a subspace.
    pub(crate) fn stored(space: &Subspace) -> Self {
        Self(Arc::new(Tree::Stored(space.clone())))
    }

    /// No ids.
    pub fn none() -> Self {
        Self(Arc::new(Tree::Any(Vec::new())))
    }

    /// The ids of a range; all of them: `..`.
    pub fn range(ids: impl RangeBounds<u64>) -> Self {
        match inclusive(&ids) {
            Some(ids) => Self::ids_between(ids),
            None => Self::none(),
        }
    }

    fn ids_between(ids: RangeInclusive<u64>) -> Self {
        Self(Arc::new(Tree::Range(ids)))
    }

    /// The ids of `universe` that this expression does not have.
    #[must_use]
    pub fn complement(&self, universe: impl RangeBounds<u64>) -> Self {
        Self::range(universe) - self
    }

    /// How many ids there are.
    pub fn count(&self, reader: &impl Reader) -> Result<u64> {
        Chunks::all(self, reader, Order::Ascending).count()
    }

    /// As [`count`](BitmapExpr::count), and what was read for it.
    pub fn explain(&self, reader: &impl Reader) -> Result<(u64, Explain)> {
        let mut chunks = Chunks::all(self, reader, Order::Ascending);
        let count = chunks.count()?;
        Ok((count, Explain { keys_returned: count, ..chunks.explain() }))
    }
}

/// The first and the last id of a range; `None` where there is none.
fn inclusive(ids: &impl RangeBounds<u64>) -> Option<RangeInclusive<u64>> {
    let first = match ids.start_bound() {
        Bound::Included(first) => *first,
        Bound::Excluded(before) => before.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let last = match ids.end_bound() {
        Bound::Included(last) => *last,
        Bound::Excluded(behind) => behind.checked_sub(1)?,
        Bound::Unbounded => u64::MAX,
    };
    (first <= last).then_some(first..=last)
}

impl From<&BitmapExpr> for BitmapExpr {
    fn from(expr: &BitmapExpr) -> Self {
        expr.clone()
    }
}

impl From<&roaring::RoaringBitmap> for BitmapExpr {
    fn from(bitmap: &roaring::RoaringBitmap) -> Self {
        Self(Arc::new(Tree::Held(Arc::new(Held::of(bitmap.iter().map(u64::from))))))
    }
}

impl From<roaring::RoaringBitmap> for BitmapExpr {
    fn from(bitmap: roaring::RoaringBitmap) -> Self {
        Self::from(&bitmap)
    }
}

impl From<&roaring::RoaringTreemap> for BitmapExpr {
    fn from(bitmap: &roaring::RoaringTreemap) -> Self {
        Self(Arc::new(Tree::Held(Arc::new(Held::of(bitmap.iter())))))
    }
}

impl From<roaring::RoaringTreemap> for BitmapExpr {
    fn from(bitmap: roaring::RoaringTreemap) -> Self {
        Self::from(&bitmap)
    }
}
