//! Reads of an expression.

use std::iter::FusedIterator;

use keyloom::{Order, Reader, Result, Subspace, Writer};
use keyloom_kit::{Continuation, Explain, Fnv, OrderedRange, Page, descending};
use roaring::{RoaringBitmap, RoaringTreemap};

use super::evaluation::Stretch;
use super::{BitmapExpr, Evaluation, Held};
use crate::bitmap::{Bitmap, IdWalk, id_at, id_range, page, to_roaring, to_treemap};
use crate::{CHUNK_IDS, InvertedIndexError, Words};

impl BitmapExpr {
    /// Returns the number of ids, at most [`u64::MAX`]. Costs at least one range for each stored
    /// operand. An operand that is advanced over many chunks begins another range; see the
    /// [module](super). The shared ids of two bitmaps are counted on their stored bytes. Full
    /// chunks of a [range](BitmapExpr::range) or a [complement](BitmapExpr::complement) are counted
    /// together.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::{Bitmap, BitmapExpr};
    /// let (free, large) =
    ///     (Bitmap::new(&Subspace::new("free")), Bitmap::new(&Subspace::new("large")));
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     free.insert_many(txn, [2, 3, 5])?;
    ///     large.insert_many(txn, [3, 5, 8])
    /// })?;
    /// let both = BitmapExpr::from(&free) & &large;
    /// assert_eq!(both.count(&store.snapshot()?)?, 2);
    /// assert_eq!(both.complement(..10).count(&store.snapshot()?)?, 8);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) with the key if stored bytes are
    /// not a chunk.
    pub fn count(&self, reader: &impl Reader) -> Result<u64> {
        Ok(self.explain(reader)?.0)
    }

    /// Like [`count`](BitmapExpr::count), but also returns the reads: the ranges of the stored
    /// operands, and the visited chunks. `keys_returned` is the count.
    ///
    /// # Errors
    /// The errors of [`count`](BitmapExpr::count).
    pub fn explain(&self, reader: &impl Reader) -> Result<(u64, Explain)> {
        let mut evaluation = Evaluation::all(self, reader, Order::Ascending)?;
        let count = u64::try_from(evaluation.count()?).unwrap_or(u64::MAX);
        Ok((count, Explain { keys_returned: count, ..evaluation.explain() }))
    }

    /// Returns how many ids are less than `id`. Costs at least one range for each stored operand.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_bitmaps::BitmapExpr;
    /// use roaring::RoaringBitmap;
    /// let primes = BitmapExpr::from(RoaringBitmap::from([2, 3, 5, 7]));
    /// let snapshot = Memory::new();
    /// let snapshot = snapshot.snapshot()?;
    /// assert_eq!(primes.rank(&snapshot, 5)?, 2);
    /// assert_eq!(primes.select(&snapshot, 2)?, Some(5));
    /// assert_eq!(primes.select(&snapshot, 4)?, None);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`count`](BitmapExpr::count).
    pub fn rank(&self, reader: &impl Reader, id: u64) -> Result<u64> {
        match id_range((..id).bounds()) {
            Some(below) => {
                let cut = self & Self::range(below.clone());
                let mut evaluation = Evaluation::new(&cut, reader, &below, Order::Ascending)?;
                Ok(u64::try_from(evaluation.count()?).unwrap_or(u64::MAX))
            }
            None => Ok(0),
        }
    }

    /// Returns the id that has exactly `n` smaller ids, or `None` if there are at most `n` ids.
    /// Costs at least one range for each stored operand, up to that id.
    ///
    /// # Errors
    /// The errors of [`count`](BitmapExpr::count).
    pub fn select(&self, reader: &impl Reader, n: u64) -> Result<Option<u64>> {
        let mut evaluation = Evaluation::all(self, reader, Order::Ascending)?;
        let (mut words, mut left) = (Words::new(), n);
        while let Some(stretch) = evaluation.next_stretch()? {
            let (chunk, ids) = match stretch {
                Stretch::Full { first, chunks } => {
                    let ids = u128::from(chunks) * u128::from(CHUNK_IDS);
                    match u64::try_from(ids).ok().and_then(|ids| left.checked_sub(ids)) {
                        Some(less) => left = less,
                        None => {
                            return Ok(id_at(first, 0).and_then(|first| first.checked_add(left)));
                        }
                    }
                    continue;
                }
                Stretch::Chunk(at) => evaluation.load(at)?,
            };
            match left.checked_sub(ids.len().into()) {
                Some(less) => left = less,
                None => {
                    ids.write_to(&mut words);
                    return Ok(words.select(left as u32).and_then(|at| id_at(chunk, at)));
                }
            }
        }
        Ok(None)
    }

    /// Returns whether `id` is one of the ids. Costs one range for each stored operand, over one
    /// chunk.
    ///
    /// # Errors
    /// The errors of [`count`](BitmapExpr::count).
    pub fn contains(&self, reader: &impl Reader, id: u64) -> Result<bool> {
        Ok(self.ids(reader, id..=id)?.next().transpose()?.is_some())
    }

    /// Returns the smallest id.
    ///
    /// # Errors
    /// The errors of [`count`](BitmapExpr::count).
    pub fn first(&self, reader: &impl Reader) -> Result<Option<u64>> {
        self.ids(reader, ..)?.next().transpose()
    }

    /// Returns the largest id.
    ///
    /// # Errors
    /// The errors of [`count`](BitmapExpr::count).
    pub fn last(&self, reader: &impl Reader) -> Result<Option<u64>> {
        self.ids(reader, descending(..))?.next().transpose()
    }

    /// Returns the ids in `range`, in the order of `range`. Costs at least one range for each
    /// stored operand over the chunks of `range`, as far as the iterator is consumed.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store};
    /// use keyloom_tables::descending;
    /// use keyloom_bitmaps::BitmapExpr;
    /// use roaring::RoaringBitmap;
    /// let even = BitmapExpr::from(RoaringBitmap::from_iter((0..100).step_by(2)));
    /// let store = Memory::new();
    /// let snapshot = store.snapshot()?;
    /// let ids = even.complement(..100).ids(&snapshot, descending(90..))?;
    /// assert_eq!(ids.collect::<Result<Vec<u64>>>()?, [99, 97, 95, 93, 91]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`count`](BitmapExpr::count), from this call or from the iterator, which ends
    /// after an error.
    pub fn ids<'r, R: Reader, B: OrderedRange<u64>>(
        &self,
        reader: &'r R,
        range: B,
    ) -> Result<impl FusedIterator<Item = Result<u64>> + 'r + use<'r, R, B>> {
        let order = range.order();
        let Some(range) = id_range(range.bounds()) else { return Ok(IdWalk::empty()) };
        let chunks = Evaluation::new(self, reader, &range, order)?;
        Ok(IdWalk::new(chunks, range, order))
    }

    /// Returns a page of the [`ids`](BitmapExpr::ids) in `range` after the continuation `after`: at
    /// most `limit` ids. A limit of 0 counts as 1.
    ///
    /// A continuation is valid for this expression, including the contents of its bitmaps in
    /// memory. The contents of its stored bitmaps may change between two pages.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_bitmaps::BitmapExpr;
    /// use roaring::RoaringBitmap;
    /// let primes = BitmapExpr::from(RoaringBitmap::from([2, 3, 5, 7, 11]));
    /// let store = Memory::new();
    /// let snapshot = store.snapshot()?;
    /// let one = primes.page(&snapshot, .., 3, None)?;
    /// assert_eq!(one.items, [2, 3, 5]);
    /// let two = primes.page(&snapshot, .., 3, one.next.as_ref())?;
    /// assert_eq!((two.items, two.next), (vec![7, 11], None));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for a continuation of another
    /// query; otherwise the errors of [`count`](BitmapExpr::count).
    pub fn page(
        &self,
        reader: &impl Reader,
        range: impl OrderedRange<u64>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<u64>> {
        let query = Subspace::new(&("bitmap expression", self.fingerprint()));
        page(&query, &range, limit, after, |rest| self.ids(reader, rest))
    }

    /// A hash of the expression and of the contents of its bitmaps in memory, for continuations of
    /// queries that use the expression as a filter.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::new();
        self.hash(&mut hash);
        hash.finish()
    }

    /// Returns the ids as a `RoaringBitmap`; all ids must fit into 32 bits. Costs at least one
    /// range for each stored operand.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) with the first id that does not
    /// fit, or for more than 2<sup>32</sup> consecutive ids; otherwise the errors of
    /// [`count`](BitmapExpr::count).
    pub fn to_roaring(&self, reader: &impl Reader) -> Result<RoaringBitmap> {
        to_roaring(&mut Evaluation::to_keep(self, reader)?)
    }

    /// Returns the ids as a `RoaringTreemap`. Costs at least one range for each stored operand.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for more than 2<sup>32</sup>
    /// consecutive ids; otherwise the errors of [`count`](BitmapExpr::count).
    pub fn to_treemap(&self, reader: &impl Reader) -> Result<RoaringTreemap> {
        to_treemap(&mut Evaluation::to_keep(self, reader)?)
    }

    /// Returns an expression of the current ids, kept in memory. The result is as compact as a
    /// stored bitmap, and as an operand of many other expressions it is faster than this
    /// expression.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::{Bitmap, BitmapExpr};
    /// let members = Bitmap::new(&Subspace::new("members"));
    /// let store = Memory::new();
    /// store.transact(|txn| members.insert_many(txn, [2, 3]))?;
    /// let then = BitmapExpr::from(&members).hold(&store.snapshot()?)?;
    /// store.transact(|txn| members.insert(txn, 5))?;
    /// let new = BitmapExpr::from(&members) - &then;
    /// assert_eq!(new.first(&store.snapshot()?)?, Some(5));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for more than 2<sup>32</sup>
    /// consecutive ids; otherwise the errors of [`count`](BitmapExpr::count).
    pub fn hold(&self, reader: &impl Reader) -> Result<Self> {
        let held = Held::of_chunks(&mut Evaluation::to_keep(self, reader)?)?;
        Ok(Self::of_held(held).owned_by(&self.owner))
    }

    /// Replaces the contents of a stored bitmap with the ids of this expression, and returns their
    /// number. The bitmap may itself be an operand. Costs at least one range for each stored
    /// operand, and writes like [`Bitmap::replace`]. The chunks are kept in memory until they are
    /// written.
    ///
    /// # Errors
    /// [`InvertedIndexError::IdsAreReused`] for an expression of an
    /// [`InvertedIndex`](super::super::InvertedIndex) that assigns ids: after a record is deleted,
    /// its id is reassigned, and the bitmap would contain the other record. (Changes of records do
    /// not update the bitmap either.) [`Error::InvalidArgument`](keyloom::Error::InvalidArgument)
    /// for more than 2<sup>32</sup> consecutive ids. [`Error::At`](keyloom::Error::At) with an
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for an id beyond the universe of
    /// the bitmap. Otherwise the errors of [`count`](BitmapExpr::count). On an error, nothing is
    /// written, unless the store fails during the write.
    pub fn store_in(&self, txn: &mut impl Writer, bitmap: &Bitmap) -> Result<u64> {
        txn.guarded(|txn| {
            if self.has_reused_ids() {
                return Err(InvertedIndexError::IdsAreReused.into());
            }
            let mut chunks = Evaluation::to_keep(self, &*txn)?;
            let (writes, count) = bitmap.collect(&mut chunks)?;
            drop(chunks);
            bitmap.replace_with(txn, writes)?;
            Ok(count)
        })
    }
}
