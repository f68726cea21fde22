//! Which ids satisfy a Boolean expression of bitmaps?

use std::ops::{RangeBounds, RangeInclusive};
use std::sync::Arc;

use keyloom::{Result, Subspace};

use super::bitmap::{Bitmap, Chunks, id_range};
use super::integers::Comparison;

mod evaluation;
mod held;
pub(crate) mod leaf;
mod node;
mod read;
mod tree;
mod within_chunk;

pub(crate) use evaluation::Evaluation;
pub(crate) use held::Held;
pub use read::ExprIds;
use tree::Tree;
pub(crate) use within_chunk::{ChunkExpr, Leaf};

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

    /// The ids whose integers are in a range.
    pub(crate) fn compared(comparison: Comparison) -> Self {
        Self(Arc::new(Tree::Compared(comparison)))
    }

    /// The ids of some chunks, held in memory as the store would have them.
    pub(crate) fn held(chunks: &mut impl Chunks) -> Result<Self> {
        Ok(Self(Arc::new(Tree::Held(Arc::new(Held::of_chunks(chunks)?)))))
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
