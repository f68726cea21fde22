//! Conversions from and to the bitmaps of the crate `roaring`.

use keyloom::{Error, Order, Reader, Result, Writer};
use roaring::{RoaringBitmap, RoaringTreemap};

use super::Bitmap;
use super::ids::{Chunks, id_at};
use crate::Words;

impl Bitmap {
    /// Returns the ids as a `RoaringBitmap`; all ids must fit into 32 bits. Costs one range over
    /// all chunks.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::Bitmap;
    /// use roaring::RoaringBitmap;
    /// let members = Bitmap::new(&Subspace::new("members"));
    /// let store = Memory::new();
    /// store.transact(|txn| members.replace_with_roaring(txn, &RoaringBitmap::from([3, 70_000])))?;
    /// store.transact(|txn| members.insert(txn, 5))?;
    /// assert_eq!(members.to_roaring(&store.snapshot()?)?, RoaringBitmap::from([3, 5, 70_000]));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the first id that does not fit; otherwise the errors of
    /// [`contains`](Bitmap::contains).
    pub fn to_roaring(&self, reader: &impl Reader) -> Result<RoaringBitmap> {
        to_roaring(&mut self.chunks(reader, &(0..=u64::MAX), Order::Ascending)?)
    }

    /// Returns the ids as a `RoaringTreemap`. Costs one range over all chunks.
    ///
    /// # Errors
    /// The errors of [`contains`](Bitmap::contains).
    pub fn to_treemap(&self, reader: &impl Reader) -> Result<RoaringTreemap> {
        to_treemap(&mut self.chunks(reader, &(0..=u64::MAX), Order::Ascending)?)
    }

    /// Like [`replace`](Bitmap::replace), with the ids of a `RoaringBitmap`.
    ///
    /// # Errors
    /// The errors of [`replace`](Bitmap::replace).
    pub fn replace_with_roaring(
        &self,
        txn: &mut impl Writer,
        bitmap: &RoaringBitmap,
    ) -> Result<u64> {
        txn.guarded(|txn| self.replace(txn, bitmap.iter().map(u64::from)))
    }

    /// Like [`replace`](Bitmap::replace), with the ids of a `RoaringTreemap`.
    ///
    /// # Errors
    /// The errors of [`replace`](Bitmap::replace).
    pub fn replace_with_treemap(
        &self,
        txn: &mut impl Writer,
        treemap: &RoaringTreemap,
    ) -> Result<u64> {
        txn.guarded(|txn| self.replace(txn, treemap))
    }
}

/// Collects the ids of `chunks`, which must ascend.
pub(crate) fn to_roaring(chunks: &mut impl Chunks) -> Result<RoaringBitmap> {
    let (mut bitmap, mut words, mut bytes) = (RoaringBitmap::new(), Words::new(), Vec::new());
    while let Some(chunk) = chunks.next_chunk(&mut words)? {
        let first = id_at(chunk, 0).unwrap_or(u64::MAX);
        let room = (1 << u32::BITS) - first.min(1 << u32::BITS);
        if let Some(large) = words.first_from(room.min(u16::MAX.into()) as u16) {
            return Err(Error::InvalidArgument {
                what: "the id",
                value: first.saturating_add(large.into()).to_string(),
                why: "a RoaringBitmap has ids of 32 bits; take a RoaringTreemap",
            });
        }
        bytes.clear();
        words.append_bytes(&mut bytes);
        bytes.truncate(room as usize / 8);
        bitmap |= RoaringBitmap::from_lsb0_bytes(first as u32, &bytes);
    }
    Ok(bitmap)
}

/// Collects the ids of `chunks`, which must ascend.
pub(crate) fn to_treemap(chunks: &mut impl Chunks) -> Result<RoaringTreemap> {
    let (mut treemap, mut words) = (RoaringTreemap::new(), Words::new());
    while let Some(chunk) = chunks.next_chunk(&mut words)? {
        treemap.extend(words.iter().filter_map(|offset| id_at(chunk, offset)));
    }
    Ok(treemap)
}
