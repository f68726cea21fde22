//! Reports on a field of integers: sums, extremes, percentiles, ranks, and ids in order.

use keyloom::{Error, Order, Reader, Result, pack, unpack};
use keyloom_kit::{Continuation, Explain, Fnv, Page, RecordKey};

use super::Report;
use super::plan::{Known, Way};
use super::rows::ValueSum;
use super::walk::Columns;
use super::window::Audience;
use crate::column::{Integers, id_in_block};
use crate::integers::{nearest_rank, turned};
use crate::{BitSliced, BitmapExpr};

/// The assumed number of passes for percentiles: the real number is 1 for few distinct values, and
/// 18 for many values of 30 bits.
const PASSES: u64 = 4;

/// The maximum number of percentiles that are selected one by one; for more, all integers are
/// sorted.
// On average, a selection visits each integer two or three times, and a sort of a million integers
// visits each about 20 times. So a sort costs no more than eight selections.
const SELECTED: usize = 8;

/// The maximum number of ids in the first 4,096 chunks of a larger audience whose integers are
/// gathered.
// Gathered integers take 16 bytes each: 2 MB for every 133 million ids of the universe.
const GATHERED: u64 = 1 << 17;

/// The integers of an audience.
enum Source<'i> {
    /// The integers from the forward index, each with its id, by ascending id.
    Gathered(Vec<(u64, i64)>),
    /// The slices of the integers, with the audience as the filter.
    Sliced(&'i BitSliced, BitmapExpr),
}

impl<K: RecordKey, V> Report<'_, K, V> {
    /// Returns the sum of a field of integers over the ids of the audience, and how many of these
    /// ids have an integer.
    ///
    /// ```
    /// use keyloom::{Memory, Order, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, ValueSum, one};
    /// let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .field("shop", |_id: &u32, (shop, _): &(String, i64)| one(shop))
    ///     .integers("cents", |_, (_, cents)| Some(*cents));
    /// let sales = Table::<u32, (String, i64)>::new(&Subspace::new("sales")).with(&index);
    /// let store = Memory::new();
    /// let four = [("a", 250), ("b", 90), ("a", -50), ("a", 30)];
    /// let four = four.map(|(shop, cents)| (shop.to_owned(), cents));
    /// store.transact(|txn| sales.put_many(txn, (0..).zip(four.clone())))?;
    /// let snapshot = store.snapshot()?;
    /// let report = index.report(index.term("shop", "a")?);
    /// assert_eq!(report.sum(&snapshot, "cents")?, ValueSum { sum: 230, count: 3 });
    /// assert_eq!(report.min_max(&snapshot, "cents")?, Some((-50, 250)));
    /// assert_eq!(report.percentiles(&snapshot, "cents", &[50.0])?, Some(vec![30]));
    /// assert_eq!(report.rank(&snapshot, "cents", 250)?, 2);
    /// let page = report.ranked(&snapshot, "cents", Order::Descending, 2, None)?;
    /// assert_eq!(page.items, [(0, 250), (3, 30)]);
    /// let rest = report.ranked(&snapshot, "cents", Order::Descending, 2, page.next.as_ref())?;
    /// assert_eq!((rest.items, rest.next), (vec![(2, -50)], None));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvertedIndexError::UnknownField`](crate::InvertedIndexError::UnknownField);
    /// [`InvertedIndexError::OtherKind`](crate::InvertedIndexError::OtherKind) for a field of
    /// values; [`Error::At`] with the key if stored bytes are damaged; any error of the store.
    pub fn sum(&self, reader: &impl Reader, integers: &str) -> Result<ValueSum> {
        match self.integers(reader, integers, 1)? {
            Source::Gathered(integers) => {
                let mut sum = ValueSum::default();
                integers.iter().for_each(|(_, integer)| sum.add(*integer));
                Ok(sum)
            }
            Source::Sliced(slices, audience) => {
                let (count, sum) = slices.count_and_sum(reader, Some(&audience))?;
                Ok(ValueSum { sum, count })
            }
        }
    }

    /// Returns the smallest and the largest integer of the audience; `None` if there are none.
    ///
    /// # Errors
    /// The errors of [`sum`](Report::sum).
    pub fn min_max(&self, reader: &impl Reader, integers: &str) -> Result<Option<(i64, i64)>> {
        match self.integers(reader, integers, 2)? {
            Source::Gathered(integers) => {
                let integers = || integers.iter().map(|(_, integer)| *integer);
                Ok(integers().min().zip(integers().max()))
            }
            Source::Sliced(slices, audience) => {
                let smallest = slices.min(reader, Some(&audience))?;
                Ok(smallest.zip(slices.max(reader, Some(&audience))?))
            }
        }
    }

    /// Returns percentiles of the integers of the audience, by nearest rank, like
    /// [`BitSliced::percentiles`]; `None` if there are no integers.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a number outside 0 to 100; otherwise the errors of
    /// [`sum`](Report::sum).
    pub fn percentiles(
        &self,
        reader: &impl Reader,
        integers: &str,
        percents: &[f64],
    ) -> Result<Option<Vec<i64>>> {
        match self.integers(reader, integers, PASSES)? {
            Source::Gathered(integers) => {
                let count = integers.len() as u64;
                let ranks = percents.iter().map(|percent| nearest_rank(*percent, count));
                let ranks = ranks.collect::<Result<Vec<u64>>>()?;
                let integers = integers.into_iter().map(|(_, integer)| integer).collect();
                Ok((count > 0).then(|| values_of_ranks(integers, &ranks)))
            }
            Source::Sliced(slices, audience) => {
                slices.percentiles(reader, Some(&audience), percents)
            }
        }
    }

    /// Returns how many ids of the audience have a smaller integer than `value`.
    ///
    /// # Errors
    /// The errors of [`sum`](Report::sum).
    pub fn rank(&self, reader: &impl Reader, integers: &str, value: i64) -> Result<u64> {
        match self.integers(reader, integers, 1)? {
            Source::Gathered(integers) => {
                Ok(integers.iter().filter(|(_, integer)| *integer < value).count() as u64)
            }
            Source::Sliced(slices, audience) => (audience & slices.lt(value)).count(reader),
        }
    }

    /// Returns a page of the ids of the audience with their integers, in the order of the integers;
    /// ids with equal integers are ascending. Ids without an integer are left out. The page has at
    /// most `limit` rows; a limit of 0 counts as 1. It begins after the continuation `after`, the
    /// [`next`](Page::next) of the previous page. The last row of the previous page need not exist
    /// any more.
    ///
    /// Every page costs as much as the first: all integers of the audience are compared.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a continuation of another audience, field or order;
    /// [`Error::NewerFormat`] for a continuation of a newer program; otherwise the errors of
    /// [`sum`](Report::sum).
    pub fn ranked(
        &self,
        reader: &impl Reader,
        integers: &str,
        order: Order,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<(u64, i64)>> {
        // A continuation refers to the last row of its page, so a page has at least one row.
        let limit = limit.max(1);
        let query = self.hash_of_ranking(integers, order)?;
        let after = after.map(|after| last_row(after, query)).transpose()?;
        // One more row shows whether there is a next page.
        let most = limit.saturating_add(1);
        let mut items = self.ranked_after(reader, integers, order, after, most)?;
        let more = items.len() > limit;
        items.truncate(limit);
        let last = items.last().filter(|_| more);
        let next = last.map(|row| Continuation::at(query, &pack(row)));
        Ok(Page { items, next })
    }

    /// A hash of the audience, the field and the order. The choice of the index is not hashed,
    /// because it does not change the rows.
    fn hash_of_ranking(&self, integers: &str, order: Order) -> Result<u64> {
        let field = self.index.integers_of(integers)?.space().prefix();
        let is_descending = order == Order::Descending;
        let audience = self.audience.fingerprint();
        let mut hash = Fnv::new();
        hash.add(&pack(&("ranked integers", field, is_descending, audience)));
        Ok(hash.finish())
    }

    /// The first `k` rows after a row.
    fn ranked_after(
        &self,
        reader: &impl Reader,
        integers: &str,
        order: Order,
        after: Option<(u64, i64)>,
        k: usize,
    ) -> Result<Vec<(u64, i64)>> {
        match self.integers(reader, integers, 1)? {
            Source::Gathered(mut integers) => {
                let position = |(id, integer): (u64, i64)| (turned(integer, order), id);
                if let Some(after) = after {
                    integers.retain(|row| position(*row) > position(after));
                }
                if k < integers.len() {
                    integers.select_nth_unstable_by_key(k, |row| position(*row));
                    integers.truncate(k);
                }
                integers.sort_unstable_by_key(|row| position(*row));
                Ok(integers)
            }
            Source::Sliced(slices, mut audience) => {
                if let Some((id, integer)) = after {
                    let beyond = match order {
                        Order::Ascending => slices.gt(integer),
                        Order::Descending => slices.lt(integer),
                    };
                    let behind = id.checked_add(1).map(|from| BitmapExpr::range(from..));
                    let same = slices.eq(integer) & behind.unwrap_or_else(BitmapExpr::none);
                    audience = audience & (beyond | same);
                }
                slices.ranked(reader, Some(&audience), order, k)
            }
        }
    }

    /// Evaluates the audience, and chooses the index: `passes` over the slices, or one walk.
    fn integers(&self, reader: &impl Reader, name: &str, passes: u64) -> Result<Source<'_>> {
        let slices = self.index.integers_of(name)?;
        let column = self.index.columns_of_field(name)?;
        let mut audience = Audience::open(&self.audience, reader)?;
        let Some(first) = audience.next_window()? else { return Ok(Source::Gathered(Vec::new())) };
        let known = Known::of(Some(&first));
        // The costs of both ways grow with the number of windows, so the first one decides.
        let is_small = audience.is_finished() || first.ids <= GATHERED;
        let cheaper = match is_small && known.prefers_integers(passes) {
            true => Way::Walk,
            false => Way::Intersect,
        };
        if self.way.unwrap_or(cheaper) == Way::Intersect {
            let audience = match audience.is_finished() {
                true => BitmapExpr::held(&mut first.chunks())?,
                false => self.audience.clone(),
            };
            return Ok(Source::Sliced(slices, audience));
        }
        let (mut gathered, mut window) = (Vec::with_capacity(first.ids as usize), Some(first));
        let mut columns = Columns { reader, fields: &[column], explain: Explain::default() };
        while let Some(some) = window {
            columns.visit(&some, |block| {
                let Some(integers) = block.column(0, Integers::parse)? else { return Ok(()) };
                gathered.extend(block.places.iter().filter_map(|place| {
                    Some((id_in_block(block.number, *place)?, integers.get(*place)?))
                }));
                Ok(())
            })?;
            window = audience.next_window()?;
        }
        Ok(Source::Gathered(gathered))
    }
}

/// The last row of the previous page.
fn last_row(after: &Continuation, query: u64) -> Result<(u64, i64)> {
    unpack(after.position(query)?).map_err(|_| Error::InvalidArgument {
        what: "the continuation",
        value: String::new(),
        why: "it is damaged; begin the query again",
    })
}

/// The integers at ranks, which are counted from 1 and do not exceed the number of integers.
fn values_of_ranks(mut integers: Vec<i64>, ranks: &[u64]) -> Vec<i64> {
    if ranks.len() > SELECTED {
        integers.sort_unstable();
    }
    let value = |rank: &u64| {
        let at = (*rank as usize).checked_sub(1).filter(|at| *at < integers.len())?;
        match ranks.len() > SELECTED {
            true => integers.get(at).copied(),
            false => Some(*integers.select_nth_unstable(at).1),
        }
    };
    ranks.iter().filter_map(value).collect()
}
