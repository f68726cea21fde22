//! Which ids satisfy a Boolean expression of bitmaps?
//!
//! A [`BitmapExpr`] is a tree that holds no store. Its leaves are stored bitmaps, comparisons of
//! stored [integers](super::integers), ranges of ids, and bitmaps in memory; it is combined with
//! `&`, `|`, `-` and `^`, and read like a [`Bitmap`].
//!
//! ```
//! use keyloom::{Memory, Order, Result, Store, Subspace};
//! use keyloom_bitmaps::{BitSliced, Bitmap, BitmapExpr};
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
//! An expression is evaluated one chunk at a time, in either order. Each leaf is a walk over its
//! chunks.
//!
//! * An AND goes on to the first chunk that all operands have: each is sought where the furthest of
//!   the others is, by a few steps or, where that is further, by a range that begins there. So a
//!   sparse operand makes the others as cheap as itself. What is taken away (`-`) is sought only
//!   where something is left to take from.
//! * In a chunk that all have, the operand with the fewest ids comes first, comparisons last, and
//!   what is empty ends it.
//! * An OR or a XOR visits the chunks that some operand has.
//! * A range of ids, and a complement in one, is not gone through where it is counted: chunks in a
//!   row that have all of their ids are counted together.
//! * What two containers share is counted as they lie in the store, and with it the count of their
//!   AND, AND NOT, OR and XOR. Else a chunk is computed as a list while it has 1,024 ids or less,
//!   of which each is looked up in the next operand, and in plain words of 4 KiB when it has more.
//!   An expression of n operands holds about 8 + log<sub>2</sub> n such chunks, which are made once
//!   per query: what needs more is computed before what it is combined with. So memory does not
//!   grow with the chunks, and nothing is allocated from one to the next.
//! * Nothing recurses, so an expression may have any number of levels. To make a level takes the
//!   same time whatever is below it, and to evaluate one takes time for each operand: a fold over
//!   100,000 terms is as good as one [`any_of`](BitmapExpr::any_of).
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
//! | an operand in memory or a range of ids | nothing |
//!
//! # When not to use it
//!
//! * Where each query is an OR of thousands of bitmaps: each is a walk of its own. Keep their union
//!   as a bitmap.
//! * For a single id, where the bitmaps are few: [`Bitmap::contains`] is one get.

use std::ops::{RangeBounds, RangeInclusive};
use std::sync::Arc;

use keyloom::{Result, Subspace};

use super::bitmap::{Bitmap, Chunks, id_range};
use super::integers::Comparison;

mod evaluation;
mod held;
pub(crate) mod leaf;
pub(crate) mod machine;
mod plan;
mod read;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod tree;
mod walks;
mod within_chunk;

pub(crate) use evaluation::Evaluation;
pub(crate) use held::Held;
use tree::Tree;
pub(crate) use within_chunk::{ChunkExpr, ChunkMachine, Leaf};

/// A Boolean expression of bitmaps: stored ones, comparisons of integers, ranges of ids, and
/// bitmaps in memory.
///
/// Cheap to clone. Made from bitmaps by [`From`], by [`BitSliced`](super::BitSliced) and by the
/// methods here, and combined by operators: `&`, `|`, `^`, and `-` for AND NOT. See the
/// [module](self).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_bitmaps::{Bitmap, BitmapExpr};
/// let (free, large) = (Bitmap::new(&Subspace::new("free")), Bitmap::new(&Subspace::new("large")));
/// let small_or_taken = BitmapExpr::range(..400) - (BitmapExpr::from(free) & large);
/// assert_eq!(small_or_taken.count(&Memory::new().snapshot()?)?, 400);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone)]
pub struct BitmapExpr {
    tree: Arc<Tree>,
    /// Whether ids of it may be given to other records later.
    has_reused_ids: bool,
}

impl BitmapExpr {
    fn new(tree: Tree) -> Self {
        let has_reused_ids = tree.operands().any(|operand| operand.has_reused_ids);
        Self { tree: Arc::new(tree), has_reused_ids }
    }

    fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The same, of ids that may be given to other records later if `has_reused_ids`.
    pub(crate) fn of_reused_ids(self, has_reused_ids: bool) -> Self {
        Self { has_reused_ids: self.has_reused_ids || has_reused_ids, ..self }
    }

    /// The bitmap in a subspace.
    pub(crate) fn stored(space: &Subspace) -> Self {
        Self::new(Tree::Stored(space.clone()))
    }

    /// The ids whose integers are in a range.
    pub(crate) fn compared(comparison: Comparison) -> Self {
        Self::new(Tree::Compared(comparison))
    }

    /// The ids of some chunks, held in memory as the store would have them.
    pub(crate) fn held(chunks: &mut impl Chunks) -> Result<Self> {
        Ok(Self::of_held(Held::of_chunks(chunks)?))
    }

    pub(crate) fn of_held(held: Held) -> Self {
        Self::new(Tree::Held(Arc::new(held)))
    }

    /// No ids.
    pub fn none() -> Self {
        Self::new(Tree::Any(Vec::new()))
    }

    /// The ids of a range; all of them: `..`. Nothing is read for it.
    pub fn range(ids: impl RangeBounds<u64>) -> Self {
        match id_range(&ids) {
            Some(ids) => Self::ids_between(ids),
            None => Self::none(),
        }
    }

    fn ids_between(ids: RangeInclusive<u64>) -> Self {
        Self::new(Tree::Range(ids))
    }

    /// The ids of `universe` that this expression does not have.
    ///
    /// To count it costs what this expression costs, whatever the universe, alone and as an operand
    /// of another expression. To read its ids goes through all chunks of the universe, so do not
    /// read those of `..`, which are all 2<sup>64</sup> ids: what would keep them
    /// ([`hold`](BitmapExpr::hold), [`to_treemap`](BitmapExpr::to_treemap),
    /// [`store_in`](BitmapExpr::store_in)) refuses more than 2<sup>32</sup> ids in a row. A
    /// universe of records is [`all`](super::InvertedIndex::all): take the expression from it,
    /// `index.all() - expr`.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_bitmaps::BitmapExpr;
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
        Self::of_held(Held::of(bitmap.iter().map(u64::from)))
    }
}

impl From<roaring::RoaringBitmap> for BitmapExpr {
    fn from(bitmap: roaring::RoaringBitmap) -> Self {
        Self::from(&bitmap)
    }
}

impl From<&roaring::RoaringTreemap> for BitmapExpr {
    fn from(bitmap: &roaring::RoaringTreemap) -> Self {
        Self::of_held(Held::of(bitmap.iter()))
    }
}

impl From<roaring::RoaringTreemap> for BitmapExpr {
    fn from(bitmap: roaring::RoaringTreemap) -> Self {
        Self::from(&bitmap)
    }
}
