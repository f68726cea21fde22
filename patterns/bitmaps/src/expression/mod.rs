//! Bitmap expressions: Boolean queries over bitmaps.
//!
//! A [`BitmapExpr`] is a tree that does not refer to a store. Its leaves are stored bitmaps,
//! comparisons of stored [integers](super::integers), ranges of ids, and bitmaps in memory.
//! Expressions are combined with `&`, `|`, `-` and `^`, and read like a [`Bitmap`].
//!
//! ```
//! use keyloom::{Memory, Result, Store, Subspace};
//! use keyloom_tables::descending;
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
//! let ids = audience.ids(&snapshot, descending(..))?.collect::<Result<Vec<u64>>>()?;
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
//! * An AND advances to the first chunk that all operands have. Each operand is advanced to the
//!   furthest position of the others: by a few steps, or if that is too far, by a new range that
//!   begins there. So a sparse operand makes the others as cheap as itself. Subtracted operands
//!   (`-`) are read only where ids remain to subtract from.
//! * In a chunk that all operands have, the operand with the fewest ids is evaluated first and
//!   comparisons last; an empty result ends the evaluation of that chunk.
//! * An OR or an XOR visits the chunks that some operand has.
//! * When counting, the full chunks of a range of ids, or of a complement in a range, are not
//!   visited one by one: consecutive full chunks are counted together.
//! * The ids shared by two containers are counted directly on the stored bytes; this gives the
//!   counts of their AND, AND NOT, OR and XOR. In other cases the ids of the chunk are computed. Up
//!   to 1,024 ids are kept as a list, and each id is looked up in the next operand; more ids are
//!   kept as plain words of 4 KiB. An expression of n operands keeps about 8 + log<sub>2</sub> n
//!   such buffers, allocated once per query; operands that need more buffers are computed first. So
//!   memory does not grow with the number of chunks, and nothing is allocated per chunk.
//! * Evaluation does not recurse, so an expression may have any depth. Combining expressions takes
//!   constant time, and the time of an evaluation is linear in the number of operands. So a fold
//!   over 100,000 terms costs the same as one [`any_of`](BitmapExpr::any_of).
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | constructing an expression | nothing is read |
//! | [`count`](BitmapExpr::count), [`to_roaring`](BitmapExpr::to_roaring), [`to_treemap`](BitmapExpr::to_treemap), [`hold`](BitmapExpr::hold) | 1 range per stored operand over the visited chunks, and 1 for each gap of more than a few chunks |
//! | [`rank`](BitmapExpr::rank), [`select`](BitmapExpr::select), [`first`](BitmapExpr::first), [`last`](BitmapExpr::last), [`ids`](BitmapExpr::ids), [`page`](BitmapExpr::page) | the same, over the chunks up to the answer |
//! | [`contains`](BitmapExpr::contains) | the same, in one chunk |
//! | [`store_in`](BitmapExpr::store_in) | as `count`, 1 range deleted, 1 key written per chunk |
//! | an operand in memory or a range of ids | nothing |
//!
//! # When not to use it
//!
//! * For an OR of thousands of bitmaps: the query walks each of them. Maintain their union as a
//!   bitmap.
//! * For a single id and few bitmaps: [`Bitmap::contains`] is one get.

use std::ops::{RangeBounds, RangeInclusive};
use std::sync::Arc;

use keyloom::{Result, Subspace};

use super::bitmap::{Bitmap, Chunks, id_range};
use super::comparison::Comparison;

mod cursor;
mod evaluation;
mod held;
pub(crate) mod leaf;
mod machine;
pub(crate) mod op;
mod owner;
mod plan;
mod read;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod tree;
mod walks;
mod within_chunk;

pub use cursor::IdCursor;
pub(crate) use evaluation::Evaluation;
pub(crate) use held::Held;
pub(crate) use owner::IdOwner;
use tree::Tree;
pub(crate) use within_chunk::{ChunkExpr, ChunkMachine, Leaf};

/// A Boolean expression of stored bitmaps, comparisons of integers, ranges of ids, and bitmaps in
/// memory.
///
/// Cheap to clone. Create expressions with [`From`] for bitmaps, with the methods of
/// [`BitSliced`](super::BitSliced), and with the methods here. Combine them with the operators `&`,
/// `|`, `^`, and `-` for AND NOT. See the [module](self).
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
    owner: IdOwner,
}

impl BitmapExpr {
    fn new(tree: Tree) -> Self {
        let owners = tree.operands().map(|operand| &operand.owner);
        let owner = owners.fold(IdOwner::Unknown, |owner, other| owner.joined(other));
        Self { tree: Arc::new(tree), owner }
    }

    fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Adds an owner of the ids. If the expression already has another owner, its owner becomes
    /// [`IdOwner::Mixed`].
    pub(crate) fn owned_by(self, owner: &IdOwner) -> Self {
        let owner = self.owner.joined(owner);
        Self { owner, ..self }
    }

    /// Refuses an expression that combines ids of two owners.
    pub(crate) fn check_owner(&self) -> Result<()> {
        self.owner.check()
    }

    /// Whether the ids may later be reassigned to other records.
    fn has_reused_ids(&self) -> bool {
        matches!(self.owner, IdOwner::Index(_) | IdOwner::Mixed(_))
    }

    /// The bitmap in a subspace.
    pub(crate) fn stored(space: &Subspace) -> Self {
        Self::new(Tree::Stored(space.clone()))
    }

    /// The ids of the records whose integer is in a range.
    pub(crate) fn compared(comparison: Comparison) -> Self {
        Self::new(Tree::Compared(comparison))
    }

    /// The ids of some chunks, kept in memory in their stored form.
    pub(crate) fn held(chunks: &mut impl Chunks) -> Result<Self> {
        Ok(Self::of_held(Held::of_chunks(chunks)?))
    }

    pub(crate) fn of_held(held: Held) -> Self {
        Self::new(Tree::Held(Arc::new(held)))
    }

    /// The given ids, kept in memory. The ids must ascend.
    pub(crate) fn of_sorted(ids: impl IntoIterator<Item = u64>) -> Self {
        Self::of_held(Held::of(ids))
    }

    /// No ids.
    pub fn none() -> Self {
        Self::new(Tree::Any(Vec::new()))
    }

    /// The ids of a range; `..` means all ids. Reads nothing.
    pub fn range(ids: impl RangeBounds<u64>) -> Self {
        match id_range((ids.start_bound(), ids.end_bound())) {
            Some(ids) => Self::ids_between(ids),
            None => Self::none(),
        }
    }

    fn ids_between(ids: RangeInclusive<u64>) -> Self {
        Self::new(Tree::Range(ids))
    }

    /// The ids of `universe` that are not in this expression.
    ///
    /// Counting the complement costs the same as counting this expression, whatever the universe,
    /// alone or as an operand of another expression. Reading the ids of the complement visits all
    /// chunks of the universe. So do not read the ids of a complement in `..`, a universe of all
    /// 2<sup>64</sup> ids. Methods that would keep these ids ([`hold`](BitmapExpr::hold),
    /// [`to_treemap`](BitmapExpr::to_treemap), [`store_in`](BitmapExpr::store_in)) refuse more than
    /// 2<sup>32</sup> consecutive ids. If the universe is all records of an index, use
    /// `index.all() - expr`; see [`all`](super::InvertedIndex::all).
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
