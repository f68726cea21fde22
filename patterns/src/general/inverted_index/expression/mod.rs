//! Which ids satisfy a Boolean expression of bitmaps?
//!
//! A [`BitmapExpr`] is a tree that holds no store. Its leaves are stored bitmaps, comparisons of stored
//! [integers](super::integers), ranges of ids, and bitmaps in memory; it is combined with `&`, `|`, `-` and `^`, and
//! read like a [`Bitmap`].
//!
//! ```
//! use keyloom::{Memory, Order, Result, Store, Subspace};
//! use keyloom_patterns::general::inverted_index::{BitSliced, Bitmap, BitmapExpr};
//! let space = Subspace::new("users");
//! let (oslo, member) = (Bitmap::new(&space.child("Oslo")), Bitmap::new(&space.child("member")));
//! let ages = BitSliced::new(&space.child("age"));
//! let store = Memory::new();
//! store.transact(|txn| {
//!     oslo.insert_many(txn, [1, 2, 3, 70_000])?;
//!     member.insert_many(txn, [2, 3, 4, 70_000])?;
//!     ages.set_many(txn, [(1, 30), (2, 17), (3, 40), (70_000, 61)])
//! })?;
//! let snapshot = store.snapshot()?;
//! let audience = BitmapExpr::from(&oslo) & &member & ages.ge(18);
//! assert_eq!(audience.count(&snapshot)?, 2);
//! let ids = audience.ids(&snapshot, .., Order::Descending)?.collect::<Result<Vec<u64>>>()?;
//! assert_eq!(ids, [70_000, 3]);
//! assert_eq!((audience ^ &oslo).count(&snapshot)?, 2);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Evaluation
//!
//! An expression is evaluated one chunk at a time, in either order. Each leaf is a walk over its chunks.
//!
//! * An AND goes on to the first chunk that all operands have: each is sought where the furthest of the others is,
//!   by a few steps or, where that is further, by a range that begins there. So a sparse operand makes the others
//!   as cheap as itself. What is taken away (`-`) is sought only where something is left to take from.
//! * In a chunk that all have, the operand with the fewest ids comes first, comparisons last, and what is empty ends
//!   it.
//! * An OR or a XOR visits the chunks that some operand has.
//! * What two containers share is counted as they lie in the store, and with it the count of their AND, AND NOT, OR and XOR.
//!   Else a chunk is computed as a list while it has 1,024 ids or less, of which each is looked up in the next operand, and
//!   in plain words of 4 KiB when it has more: one for each level of the tree, which are made once per query. So memory
//!   does not grow with the chunks, and nothing is allocated from one to the next.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | to make an expression | nothing is read |
//! | [`count`](BitmapExpr::count), [`to_roaring`](BitmapExpr::to_roaring), [`to_treemap`](BitmapExpr::to_treemap), [`hold`](BitmapExpr::hold) | 1 range per stored operand over the chunks visited, and 1 for each time that more than a few chunks are left out |
//! | [`rank`](BitmapExpr::rank), [`select`](BitmapExpr::select), [`first`](BitmapExpr::first), [`last`](BitmapExpr::last), [`ids`](BitmapExpr::ids), [`page`](BitmapExpr::page) | the same, over the chunks up to where the answer is |
//! | [`contains`](BitmapExpr::contains) | the same, in one chunk |
//! | [`store_in`](BitmapExpr::store_in) | as `count`, 1 range deleted, 1 key written per chunk |
//! | an operand in memory or a range of ids | nothing; the range of all ids less an expression is counted by what it lacks |
//!
//! # When not to use it
//!
//! * Where each query is an OR of thousands of bitmaps: each is a walk of its own. Keep their union as a bitmap.
//! * For a single id, where the bitmaps are few: [`Bitmap::contains`] is one get.

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

/// A Boolean expression of bitmaps: stored ones, comparisons of integers, ranges of ids, and bitmaps in memory.
///
/// Cheap to clone. Made from bitmaps by [`From`], by [`BitSliced`](super::BitSliced) and by the methods here, and
/// combined by operators: `&`, `|`, `^`, and `-` for AND NOT. See the [module](self).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_patterns::general::inverted_index::{Bitmap, BitmapExpr};
/// let (free, large) = (Bitmap::new(&Subspace::new("free")), Bitmap::new(&Subspace::new("large")));
/// let small_or_taken = BitmapExpr::range(..400) - (BitmapExpr::from(free) & large);
/// assert_eq!(small_or_taken.count(&Memory::new().snapshot()?)?, 400);
/// # Ok::<(), keyloom::Error>(())
/// ```
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

    /// The ids of a range; all of them: `..`. Nothing is read for it.
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
    ///
    /// To count it costs what this expression costs, whatever the universe. To read its ids goes through all chunks of
    /// the universe, so do not read those of `..`.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_patterns::general::inverted_index::BitmapExpr;
    /// use roaring::RoaringBitmap;
    /// let taken = BitmapExpr::from(RoaringBitmap::from([3, 4, 500]));
    /// let snapshot = Memory::new();
    /// assert_eq!(taken.complement(..400).count(&snapshot.snapshot()?)?, 398);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
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
