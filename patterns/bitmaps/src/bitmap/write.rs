//! Changes of a bitmap.

use std::iter::Peekable;

use keyloom::{Error, Result, Writer};
use keyloom_kit::derived::SortedWrites;

use super::changes::put;
use super::ids::{Chunks, id_at, place_of};
use super::{Bitmap, ChunkChanges};
use crate::Words;

impl Bitmap {
    /// Adds `id`, and returns whether it is new. Costs one get, and writes one key if the id is
    /// new.
    ///
    /// # Errors
    /// [`Error::At`] with an [`Error::InvalidArgument`] for an id beyond the universe;
    /// [`Error::At`] with the key if the stored chunk is damaged; any error of the store.
    pub fn insert(&self, txn: &mut impl Writer, id: u64) -> Result<bool> {
        txn.guarded(|txn| Ok(self.insert_many(txn, [id])? > 0))
    }

    /// Removes `id`, and returns whether it was in the set. Costs one get, and writes one key if
    /// the id was in the set.
    ///
    /// # Errors
    /// The errors of [`insert`](Bitmap::insert).
    pub fn remove(&self, txn: &mut impl Writer, id: u64) -> Result<bool> {
        txn.guarded(|txn| Ok(self.remove_many(txn, [id])? > 0))
    }

    /// Adds ids, in any order, and returns how many are new. Costs one get per chunk of these ids,
    /// all in one round trip, and one key written per changed chunk, in key order.
    ///
    /// Keeps the ids and the changed chunks in memory.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::Bitmap;
    /// let members = Bitmap::new(&Subspace::new("members"));
    /// let store = Memory::new();
    /// assert_eq!(store.transact(|txn| members.insert_many(txn, [9, 4, 9]))?, 2);
    /// assert_eq!(store.transact(|txn| members.remove_many(txn, [4, 5]))?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`insert`](Bitmap::insert). On an error, nothing is written.
    pub fn insert_many(
        &self,
        txn: &mut impl Writer,
        ids: impl IntoIterator<Item = u64>,
    ) -> Result<u64> {
        txn.guarded(|txn| self.change_many(txn, ids, true))
    }

    /// Removes ids, in any order, and returns how many of them were in the set. Costs the same as
    /// [`insert_many`](Bitmap::insert_many).
    ///
    /// # Errors
    /// The errors of [`insert_many`](Bitmap::insert_many).
    pub fn remove_many(
        &self,
        txn: &mut impl Writer,
        ids: impl IntoIterator<Item = u64>,
    ) -> Result<u64> {
        txn.guarded(|txn| self.change_many(txn, ids, false))
    }

    fn change_many(
        &self,
        txn: &mut impl Writer,
        ids: impl IntoIterator<Item = u64>,
        is_set: bool,
    ) -> Result<u64> {
        let mut ids: Vec<u64> = ids.into_iter().collect();
        ids.sort_unstable();
        if let Some(last) = ids.last() {
            self.admit(*last)?;
        }
        let mut changes = ChunkChanges::new();
        for of_chunk in ids.chunk_by(|a, b| place_of(*a).0 == place_of(*b).0) {
            let Some((chunk, _)) = of_chunk.first().copied().map(place_of) else { continue };
            let offsets = of_chunk.iter().map(|id| (place_of(*id).1, is_set));
            changes.of_chunk(self.key(chunk)).extend(offsets);
        }
        let (mut writes, mut changed) = (SortedWrites::default(), 0);
        changes.apply_reporting(txn, &mut writes, |chunk| changed += u64::from(chunk.changed))?;
        writes.apply(txn)?;
        Ok(changed)
    }

    /// Removes all ids. Costs one range deletion.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn clear(&self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| txn.delete_range(self.space.self_and_children()))
    }

    /// Replaces the contents of the set with `ids`, which must be in ascending order, and returns
    /// the number of ids. Use this method for bulk loads.
    ///
    /// Costs one range deletion, and writes one key per chunk of `ids`, in key order. Reads
    /// nothing.
    ///
    /// Keeps the encoded chunks in memory, not the ids.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an id that is not in ascending order; [`Error::At`] with an
    /// [`Error::InvalidArgument`] for an id beyond the universe. In both cases, nothing is written.
    /// Any error of the store.
    pub fn replace(
        &self,
        txn: &mut impl Writer,
        ids: impl IntoIterator<Item = u64>,
    ) -> Result<u64> {
        txn.guarded(|txn| {
            let (writes, count) = self.collect(&mut Sorted(ids.into_iter().peekable()))?;
            self.replace_with(txn, writes)?;
            Ok(count)
        })
    }

    /// Collects the chunks of a set of ids, and returns the number of ids.
    /// [`replace_with`](Bitmap::replace_with) then writes them. Collecting and replacing are
    /// separate steps because the ids may be read from the transaction that receives the writes.
    pub(crate) fn collect(&self, chunks: &mut impl Chunks) -> Result<(SortedWrites, u64)> {
        let (mut writes, mut words, mut count) = (SortedWrites::default(), Words::new(), 0);
        while let Some(chunk) = chunks.next_chunk(&mut words)? {
            let Some(last) = words.last_to(u16::MAX) else { continue };
            self.admit(id_at(chunk, last).unwrap_or(u64::MAX))?;
            put(&mut writes, &self.key(chunk), &words)?;
            count += u64::from(words.count());
        }
        Ok((writes, count))
    }

    /// Replaces the contents of the set with the collected writes.
    pub(crate) fn replace_with(
        &self,
        txn: &mut impl Writer,
        mut writes: SortedWrites,
    ) -> Result<()> {
        self.clear(txn)?;
        writes.apply(txn)
    }
}

/// Chunks of ids in ascending order.
struct Sorted<I: Iterator<Item = u64>>(Peekable<I>);

impl<I: Iterator<Item = u64>> Chunks for Sorted<I> {
    fn next_chunk(&mut self, words: &mut Words) -> Result<Option<u64>> {
        words.clear();
        let Some(mut last) = self.0.next() else { return Ok(None) };
        let (chunk, offset) = place_of(last);
        words.insert(offset);
        while let Some(id) = self.0.peek().copied() {
            if id < last {
                return Err(Error::InvalidArgument {
                    what: "the id",
                    value: id.to_string(),
                    why: "it comes after a larger one; sort the ids, or insert them with insert_many",
                });
            }
            let (of, offset) = place_of(id);
            if of != chunk {
                break;
            }
            words.insert(offset);
            last = id;
            self.0.next();
        }
        Ok(Some(chunk))
    }
}
