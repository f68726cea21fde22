//! Bit-sliced integers: comparisons and aggregates over a value per id.
//!
//! [`BitSliced`] stores an `i64` for each of some ids, as one bitmap per bit of the value. The
//! first of these bitmaps has the ids whose value is odd, the second has the ids whose value has
//! the next bit, and so on. A comparison with a constant is then a few ANDs and ORs of these
//! bitmaps, 64 ids at a time. A sum counts, for each bit, the ids of a filter that have the bit,
//! and multiplies the count by the weight of the bit.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_bitmaps::BitSliced;
//! let costs = BitSliced::new(&Subspace::new("costs"));
//! let store = Memory::new();
//! store.transact(|txn| costs.set_many(txn, [(1, 250), (2, -30), (3, 0), (40_000, 1_000)]))?;
//! let snapshot = store.snapshot()?;
//! let dear = costs.gt(200);
//! assert_eq!(dear.count(&snapshot)?, 2);
//! assert_eq!(costs.sum(&snapshot, Some(&dear))?, 1_250);
//! assert_eq!(costs.min(&snapshot, None)?, Some(-30));
//! assert_eq!(costs.top(&snapshot, None, 2)?, [(40_000, 1_000), (1, 250)]);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, chunk, 0 | a [container](super#containers): the ids that have a value |
//! | subspace, chunk, 1 | the ids whose value is negative |
//! | subspace, chunk, 2 + n | the ids whose magnitude has bit n; the magnitude of [`i64::MIN`] takes all 64 bits |
//!
//! The slices of a chunk are adjacent, so that one range serves a comparison or an aggregate. A
//! slice without ids is not stored: values with a magnitude below 1,000 take at most 12 slices.
//! Values are stored as sign and magnitude: in two's complement a small negative number would have
//! nearly all bits set.
//!
//! # Invariants
//!
//! * An id in any slice of its chunk is also in slice 0.
//! * An id in slice 1 is also in a later slice: there is no negative zero.
//!
//! [`BitSliced::check`] reports violations.
//!
//! # Cost
//!
//! s: the number of slices in a chunk.
//!
//! | operation | gets | ranges | keys read | keys written |
//! |---|---|---|---|---|
//! | [`get`](BitSliced::get) | 0 | 1 | s | 0 |
//! | [`set`](BitSliced::set), [`remove`](BitSliced::remove) | changed slices | 1 | s, and the changed ones | changed slices |
//! | [`get_many`](BitSliced::get_many), [`set_many`](BitSliced::set_many), [`remove_many`](BitSliced::remove_many) | the same, once per chunk | 1, and 1 for each gap of more than a few skipped entries | s per chunk | the same, once per chunk |
//! | a comparison, an aggregate | 0 | 1 | s per chunk; with a filter or in an AND, only for its chunks | 0 |
//! | [`percentiles`](BitSliced::percentiles) | 0 | 1; for more than 2,048 distinct values 2 more, and 1 for every two bits of the difference of the extremes | s per chunk and range | 0 |
//! | [`clear`](BitSliced::clear) | 0 | 0 | 0 | 1 range |
//!
//! Memory: a few chunks of 4 KiB, and the slices of one chunk at a time. LMDB and the in-memory
//! store lend these slices; other stores copy them.
//!
//! # When not to use it
//!
//! * To look up single values: reading the record takes one get, reading its integer takes a range
//!   over all slices of the chunk.
//! * For few distinct values that are only compared for equality: with a [`Bitmap`](super::Bitmap)
//!   per value, each comparison reads a single bitmap.
//! * For values that change often: each change rewrites one container per changed bit.
//!
//! # Source
//!
//! P. O'Neil and D. Quass, *Improved query performance with variant indexes*, SIGMOD 1997.

mod aggregates;
mod by_value;
mod check;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds, RangeInclusive};

use keyloom::{Order, Reader, Result, Subspace, Writer};
use keyloom_kit::derived::SortedWrites;

pub(crate) use aggregates::{nearest_rank, turned};

use super::bitmap::{Change, place_of};
use super::comparison::Comparison;
use super::expression::IdOwner;
use super::expression::leaf::Span;
use super::slices::{EXISTS, LOWEST, SIGN, SLICES, SliceWalk};
use super::{BitmapExpr, ChunkChanges};

/// An integer for each of some ids, as bit slices; see the [module](self).
///
/// The values are in the store; this value only refers to them. Ids are any 64-bit numbers, values
/// any `i64`.
///
/// Aggregates take a filter, an expression that selects the ids; without a filter, they cover all
/// ids with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitSliced {
    space: Subspace,
    /// The owner of the ids: what maps the ids to records.
    owner: IdOwner,
}

impl BitSliced {
    /// Creates integers in `space`. **Nothing else may be in `space`.**
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), owner: IdOwner::Unknown }
    }

    /// Sets the owner of the ids: what maps the ids to records.
    pub(super) fn owned_by(self, owner: &IdOwner) -> Self {
        Self { owner: owner.clone(), ..self }
    }

    /// The subspace of the integers.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// Returns the value of an id. Costs one range over the slices of one chunk.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) with the key if stored bytes are
    /// not a chunk.
    pub fn get(&self, reader: &impl Reader, id: u64) -> Result<Option<i64>> {
        Ok(self.get_many(reader, &[id])?.pop().flatten())
    }

    /// Returns the values of many ids, in the order of the ids. Costs one walk over the slices of
    /// the chunks of these ids.
    ///
    /// # Errors
    /// The errors of [`get`](BitSliced::get).
    pub fn get_many(&self, reader: &impl Reader, ids: &[u64]) -> Result<Vec<Option<i64>>> {
        let mut values = vec![None; ids.len()];
        let mut wanted: Vec<(u64, &mut Option<i64>)> =
            ids.iter().copied().zip(&mut values).collect();
        wanted.sort_unstable_by_key(|(id, _)| *id);
        let (Some((first, _)), Some((last, _))) = (wanted.first(), wanted.last()) else {
            return Ok(values);
        };
        let span = Span::of(&(*first..=*last), Order::Ascending);
        let mut walk = SliceWalk::new(reader, &self.space, span);
        for of_chunk in wanted.chunk_by_mut(|a, b| place_of(a.0).0 == place_of(b.0).0) {
            let Some(chunk) = of_chunk.first().map(|(id, _)| place_of(*id).0) else { continue };
            if walk.seek(chunk)? == Some(chunk) {
                let offsets: Vec<u16> = of_chunk.iter().map(|(id, _)| place_of(*id).1).collect();
                let found = walk.slices(chunk)?.values(&offsets);
                of_chunk.iter_mut().zip(found).for_each(|((_, value), found)| **value = found);
            }
        }
        Ok(values)
    }

    /// Sets the value of an id, and returns the previous value.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::BitSliced;
    /// let scores = BitSliced::new(&Subspace::new("scores"));
    /// let store = Memory::new();
    /// assert_eq!(store.transact(|txn| scores.set(txn, 7, 100))?, None);
    /// assert_eq!(store.transact(|txn| scores.set(txn, 7, -5))?, Some(100));
    /// assert_eq!(scores.get(&store.snapshot()?, 7)?, Some(-5));
    /// assert_eq!(store.transact(|txn| scores.remove(txn, 7))?, Some(-5));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`get`](BitSliced::get); any error of a write.
    pub fn set(&self, txn: &mut impl Writer, id: u64, value: i64) -> Result<Option<i64>> {
        txn.guarded(|txn| {
            let before = self.get(&*txn, id)?;
            self.change(txn, [(id, before, Some(value))])?;
            Ok(before)
        })
    }

    /// Removes the value of an id, and returns it.
    ///
    /// # Errors
    /// The errors of [`set`](BitSliced::set).
    pub fn remove(&self, txn: &mut impl Writer, id: u64) -> Result<Option<i64>> {
        txn.guarded(|txn| {
            let before = self.get(&*txn, id)?;
            self.change(txn, [(id, before, None)])?;
            Ok(before)
        })
    }

    /// Sets the values of many ids, in any order; if an id occurs twice, its last value is stored.
    /// Reads the old values in one walk, and then all slices to change in one round trip. Writes
    /// each changed slice of a chunk once.
    ///
    /// # Errors
    /// The errors of [`set`](BitSliced::set).
    pub fn set_many(
        &self,
        txn: &mut impl Writer,
        values: impl IntoIterator<Item = (u64, i64)>,
    ) -> Result<()> {
        txn.guarded(|txn| {
            self.change_many(txn, values.into_iter().map(|(id, value)| (id, Some(value))))
        })
    }

    /// Removes the values of many ids, like [`set_many`](BitSliced::set_many).
    ///
    /// # Errors
    /// The errors of [`set`](BitSliced::set).
    pub fn remove_many(
        &self,
        txn: &mut impl Writer,
        ids: impl IntoIterator<Item = u64>,
    ) -> Result<()> {
        txn.guarded(|txn| self.change_many(txn, ids.into_iter().map(|id| (id, None))))
    }

    fn change_many(
        &self,
        txn: &mut impl Writer,
        changes: impl IntoIterator<Item = (u64, Option<i64>)>,
    ) -> Result<()> {
        let last: BTreeMap<u64, Option<i64>> = changes.into_iter().collect();
        let ids: Vec<u64> = last.keys().copied().collect();
        let before = self.get_many(&*txn, &ids)?;
        let changes = last.into_iter().zip(before);
        self.change(txn, changes.map(|((id, value), before)| (id, before, value)))
    }

    fn change(
        &self,
        txn: &mut impl Writer,
        changes: impl IntoIterator<Item = (u64, Option<i64>, Option<i64>)>,
    ) -> Result<()> {
        let (mut of_slices, mut writes) = (ChunkChanges::new(), SortedWrites::default());
        let mut of_chunk: Vec<Vec<Change>> = vec![Vec::new(); SLICES];
        let mut changes = changes.into_iter().peekable();
        while let Some((id, before, value)) = changes.next() {
            let (chunk, offset) = place_of(id);
            for (slice, is_set) in differences(before, value) {
                if let Some(of_slice) = of_chunk.get_mut(usize::from(slice)) {
                    of_slice.push((offset, is_set));
                }
            }
            if changes.peek().is_none_or(|next| place_of(next.0).0 != chunk) {
                self.collect_chunk(chunk, &mut of_chunk, &mut of_slices);
            }
        }
        of_slices.apply(&*txn, &mut writes)?;
        writes.apply(txn)
    }

    /// Collects the changes of each slice of a chunk, and removes them from `of_chunk`.
    fn collect_chunk(&self, chunk: u64, of_chunk: &mut [Vec<Change>], changes: &mut ChunkChanges) {
        for (slice, some) in (EXISTS..).zip(of_chunk).filter(|(_, some)| !some.is_empty()) {
            changes.of_chunk(self.space.pack(&(chunk, slice))).append(some);
        }
    }

    /// Collects the changes of slices for a changed value of an id.
    pub(crate) fn collect(
        &self,
        id: u64,
        before: Option<i64>,
        value: Option<i64>,
        changes: &mut ChunkChanges,
    ) {
        let (chunk, offset) = place_of(id);
        for (slice, is_set) in differences(before, value) {
            changes.change(self.space.pack(&(chunk, slice)), offset, is_set);
        }
    }

    /// The slices that contain an id with this value.
    pub(crate) fn slices_of(value: i64) -> impl Iterator<Item = u8> {
        differences(None, Some(value)).map(|(slice, _)| slice)
    }

    /// Removes all values.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn clear(&self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| txn.delete_range(self.space.range()))
    }

    /// The ids with a value.
    pub fn has(&self) -> BitmapExpr {
        self.between(..)
    }

    /// The ids whose value is `value`.
    pub fn eq(&self, value: i64) -> BitmapExpr {
        self.between(value..=value)
    }

    /// The ids whose value is less than `value`.
    pub fn lt(&self, value: i64) -> BitmapExpr {
        self.between(..value)
    }

    /// The ids whose value is `value` or less.
    pub fn le(&self, value: i64) -> BitmapExpr {
        self.between(..=value)
    }

    /// The ids whose value is greater than `value`.
    pub fn gt(&self, value: i64) -> BitmapExpr {
        self.between((Bound::Excluded(value), Bound::Unbounded))
    }

    /// The ids whose value is `value` or greater.
    pub fn ge(&self, value: i64) -> BitmapExpr {
        self.between(value..)
    }

    /// The ids whose value is in a range.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::BitSliced;
    /// let ages = BitSliced::new(&Subspace::new("ages"));
    /// let store = Memory::new();
    /// store.transact(|txn| ages.set_many(txn, (0..100).map(|id| (id, id as i64))))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(ages.between(18..65).count(&snapshot)?, 47);
    /// assert_eq!((ages.lt(18) | ages.eq(99)).count(&snapshot)?, 19);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn between(&self, values: impl RangeBounds<i64>) -> BitmapExpr {
        match inclusive(&values) {
            Some(values) => {
                let comparison = Comparison { space: self.space.clone(), values };
                BitmapExpr::compared(comparison).owned_by(&self.owner)
            }
            None => BitmapExpr::none(),
        }
    }
}

/// The slices that contain an id with this value, one bit each.
fn slices_of(value: Option<i64>) -> u128 {
    value.map_or(0, |value| {
        1 << EXISTS | u128::from(value < 0) << SIGN | u128::from(value.unsigned_abs()) << LOWEST
    })
}

/// The slices that an id enters or leaves when its value changes, and whether it enters.
fn differences(before: Option<i64>, value: Option<i64>) -> impl Iterator<Item = (u8, bool)> {
    let (before, now) = (slices_of(before), slices_of(value));
    let mut left = before ^ now;
    std::iter::from_fn(move || {
        let slice = (left != 0).then(|| left.trailing_zeros() as u8)?;
        left &= left - 1;
        Some((slice, now >> slice & 1 == 1))
    })
}

/// The values between two bounds; `None` if there are none.
fn inclusive(values: &impl RangeBounds<i64>) -> Option<RangeInclusive<i64>> {
    let low = match values.start_bound() {
        Bound::Included(low) => *low,
        Bound::Excluded(before) => before.checked_add(1)?,
        Bound::Unbounded => i64::MIN,
    };
    let high = match values.end_bound() {
        Bound::Included(high) => *high,
        Bound::Excluded(behind) => behind.checked_sub(1)?,
        Bound::Unbounded => i64::MAX,
    };
    (low <= high).then_some(low..=high)
}
