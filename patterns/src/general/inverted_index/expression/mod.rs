//! Which ids satisfy a Boolean expression of bitmaps?

use std::ops::{RangeBounds, RangeInclusive};
use std::sync::Arc;

use keyloom::{Order, Reader, Result, Subspace};

use super::bitmap::{Bitmap, id_range};
use crate::explain::Explain;

mod evaluation;
mod held;
pub(crate) mod leaf;
mod node;
mod tree;

pub(crate) use evaluation::Evaluation;
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
        match id_range(&ids) {
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
        Evaluation::all(self, reader, Order::Ascending).count()
    }

    /// As [`count`](BitmapExpr::count), and what was read for it.
    pub fn explain(&self, reader: &impl Reader) -> Result<(u64, Explain)> {
        let mut chunks = Evaluation::all(self, reader, Order::Ascending);
        let count = chunks.count()?;
        Ok((count, Explain { keys_returned: count, ..chunks.explain() }))
    }
}

impl From<&BitmapExpr> for BitmapExpr {
    fn from(expr: &BitmapExpr) -> Self {
        expr.clone()
    }
}

impl From<&Bitmap> for BitmapExpr {
    fn from(bitmap: &Bitmap) -> Self {
        Self::stored(bitmap.space())
    }
}

impl From<Bitmap> for BitmapExpr {
    fn from(bitmap: Bitmap) -> Self {
        Self::from(&bitmap)
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
