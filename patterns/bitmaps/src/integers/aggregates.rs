//! Sums, extremes, ranks and counts of integers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use keyloom::{Error, Order, Reader, Result};

use super::BitSliced;
use super::by_value::ByValue;
use crate::bitmap::id_at;
use crate::expression::Held;
use crate::expression::leaf::Span;
use crate::slices::{SliceWalk, Slices};
use crate::{BitmapExpr, Chunks, Evaluation, Words};

/// The number of parts into which a pass for percentiles divides the remaining range. More parts
/// mean fewer passes, but more work per slice: a pass that settles two bits takes three
/// comparisons, a pass that settles four bits takes fifteen.
const PARTS: i128 = 4;

/// Up to this many pairs of a chunk and a value in it are kept in memory for percentiles: 32 KiB.
/// With more, percentiles are found by counting, in several passes.
// Gathering takes some 0.15 µs per pair. The passes take 3 ms for 200,000 ids with 30 bits, as long
// as gathering 16,000 pairs. The pairs gathered before the limit is reached are discarded, so the
// limit is lower than that.
const GATHERED: usize = 1 << 11;

/// After this many values of a chunk, the number of all its values is estimated from the share of
/// its ids that have these values. If the estimate exceeds the limit, gathering ends. Without this
/// estimate, percentiles by several passes took a tenth longer.
const PROBE: usize = 128;

impl BitSliced {
    /// Returns how many ids of `filter` have a value; without a filter, how many ids have a value.
    /// Costs one range over the slices, and the cost of the filter.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] with the key if stored bytes are not a chunk.
    pub fn count(&self, reader: &impl Reader, filter: Option<&BitmapExpr>) -> Result<u64> {
        Ok(self.count_and_sum(reader, filter)?.0)
    }

    /// Returns the sum of the values, which cannot overflow. Costs the same as
    /// [`count`](BitSliced::count).
    ///
    /// # Errors
    /// The errors of [`count`](BitSliced::count).
    pub fn sum(&self, reader: &impl Reader, filter: Option<&BitmapExpr>) -> Result<i128> {
        Ok(self.count_and_sum(reader, filter)?.1)
    }

    /// Returns the sum divided by the count, or `None` if there are no values. Costs the same as
    /// [`count`](BitSliced::count).
    ///
    /// # Errors
    /// The errors of [`count`](BitSliced::count).
    pub fn average(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
    ) -> Result<Option<f64>> {
        let (count, sum) = self.count_and_sum(reader, filter)?;
        Ok((count > 0).then(|| sum as f64 / count as f64))
    }

    /// Returns count and sum in one pass.
    ///
    /// # Errors
    /// The errors of [`count`](BitSliced::count).
    pub fn count_and_sum(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
    ) -> Result<(u64, i128)> {
        let (mut count, mut sum, mut negative) = (0, 0, Words::new());
        self.for_each_chunk(reader, filter, |_, slices, ids| {
            count += u64::from(ids.count());
            negative.clone_from(ids);
            slices.keep_negative(&mut negative);
            let has_negative = !negative.is_empty();
            for (bit, slice) in slices.bits().iter().enumerate() {
                let Some(slice) = slice else { continue };
                let mut times = i128::from(slice.and_count_words(ids));
                if has_negative {
                    times -= 2 * i128::from(slice.and_count_words(&negative));
                }
                sum += times << bit;
            }
        })?;
        Ok((count, sum))
    }

    /// Returns the smallest value, or `None` if there are none. Costs the same as
    /// [`count`](BitSliced::count).
    ///
    /// # Errors
    /// The errors of [`count`](BitSliced::count).
    pub fn min(&self, reader: &impl Reader, filter: Option<&BitmapExpr>) -> Result<Option<i64>> {
        self.first_value(reader, filter, Order::Ascending, i64::min)
    }

    /// Returns the largest value, or `None` if there are none. Costs the same as
    /// [`count`](BitSliced::count).
    ///
    /// # Errors
    /// The errors of [`count`](BitSliced::count).
    pub fn max(&self, reader: &impl Reader, filter: Option<&BitmapExpr>) -> Result<Option<i64>> {
        self.first_value(reader, filter, Order::Descending, i64::max)
    }

    fn first_value(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
        order: Order,
        better: impl Fn(i64, i64) -> i64,
    ) -> Result<Option<i64>> {
        let (mut best, mut by_value) = (None, ByValue::default());
        self.for_each_chunk(reader, filter, |_, slices, ids| {
            let _ = by_value.visit(slices, ids, order, &mut |value, _| {
                best = Some(best.map_or(value, |best| better(best, value)));
                ControlFlow::Break(())
            });
        })?;
        Ok(best)
    }

    /// Returns the `k` ids with the largest values, with these values, in descending order; ids
    /// with equal values are ascending. Costs the same as [`count`](BitSliced::count), and memory
    /// for `k` ids.
    ///
    /// # Errors
    /// The errors of [`count`](BitSliced::count).
    pub fn top(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
        k: usize,
    ) -> Result<Vec<(u64, i64)>> {
        self.ranked(reader, filter, Order::Descending, k)
    }

    /// The first `k` ids in the order of their values, with these values; ids with equal values are
    /// ascending.
    pub(crate) fn ranked(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
        order: Order,
        k: usize,
    ) -> Result<Vec<(u64, i64)>> {
        let mut best = BTreeSet::new();
        let mut by_value = ByValue::default();
        let mut scratch = [Words::new(), Words::new()];
        self.for_each_chunk(reader, filter, |chunk, slices, ids| {
            if let Some((last, _)) = best.last().filter(|_| best.len() >= k) {
                keep_before(slices, turned(*last, order), order, ids, &mut scratch);
            }
            let mut wanted = k;
            let _ = by_value.visit(slices, ids, order, &mut |value, group| {
                group.for_each(|offset| {
                    if wanted > 0 {
                        wanted -= 1;
                        best.insert((
                            turned(value, order),
                            id_at(chunk, offset).unwrap_or(u64::MAX),
                        ));
                    }
                });
                if wanted == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            while best.len() > k {
                best.pop_last();
            }
        })?;
        Ok(best.into_iter().map(|(value, id)| (id, turned(value, order))).collect())
    }

    /// Returns how many ids have each value. Costs the same as [`count`](BitSliced::count), and
    /// memory for each distinct value.
    ///
    /// # Errors
    /// The errors of [`count`](BitSliced::count).
    pub fn counts_by_value(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
    ) -> Result<BTreeMap<i64, u64>> {
        let (mut counts, mut by_value) = (BTreeMap::new(), ByValue::default());
        self.for_each_chunk(reader, filter, |_, slices, ids| {
            let _ = by_value.visit(slices, ids, Order::Ascending, &mut |value, group| {
                *counts.entry(value).or_default() += group.count();
                ControlFlow::Continue(())
            });
        })?;
        Ok(counts)
    }

    /// Returns the percentiles `percents`, from 0 to 100, by nearest rank: the smallest value such
    /// that at least this percentage of the values does not exceed it. So each result is an
    /// existing value; 0 returns the smallest and 100 the largest. Returns `None` if there are no
    /// values.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::BitSliced;
    /// let ages = BitSliced::new(&Subspace::new("ages"));
    /// let store = Memory::new();
    /// store.transact(|txn| ages.set_many(txn, (1..=10).map(|id| (id, id as i64 * 10))))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(ages.percentiles(&snapshot, None, &[50.0, 95.0])?, Some(vec![50, 100]));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// If the audience has at most 2,048 distinct values, counted per chunk, this costs one pass
    /// like that of [`count`](BitSliced::count), whatever the number of percentiles, and up to 32
    /// KiB of memory. With more values, this costs two further passes, and one for every two bits
    /// of the difference between the smallest and the largest value. The ids of the filter are then
    /// kept in memory, as compact as in the store.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a number outside 0 to 100; otherwise the errors of
    /// [`count`](BitSliced::count).
    pub fn percentiles(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
        percents: &[f64],
    ) -> Result<Option<Vec<i64>>> {
        self.percentiles_within(reader, filter, percents, GATHERED)
    }

    /// Like [`percentiles`](BitSliced::percentiles), with at most `limit` pairs of a chunk and a
    /// value in memory.
    pub(super) fn percentiles_within(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
        percents: &[f64],
        limit: usize,
    ) -> Result<Option<Vec<i64>>> {
        // Further passes read the filter. Keep only its ids with a value: the filter itself may be
        // unbounded.
        let (mut count, mut held) = (0, Held::default());
        let (mut gathered, mut by_value) = (Some(Vec::new()), ByValue::default());
        self.for_each_chunk(reader, filter, |chunk, slices, ids| {
            count += u64::from(ids.count());
            if filter.is_some() {
                held.push(Some(chunk), ids);
            }
            let Some(pairs) = &mut gathered else { return };
            let (of_chunk, before, mut seen) = (ids.count() as usize, pairs.len(), 0);
            let visited = by_value.visit(slices, ids, Order::Ascending, &mut |value, group| {
                let values = pairs.len() - before;
                let most = (limit - before).saturating_mul(seen);
                let are_many = values == PROBE && values * of_chunk > most;
                if pairs.len() == limit || are_many {
                    return ControlFlow::Break(());
                }
                seen += group.count() as usize;
                pairs.push((value, group.count()));
                ControlFlow::Continue(())
            });
            if visited.is_break() {
                gathered = None;
            }
        })?;
        let ranks = percents.iter().map(|percent| nearest_rank(*percent, count));
        let ranks = ranks.collect::<Result<Vec<u64>>>()?;
        match gathered {
            _ if count == 0 => Ok(None),
            Some(pairs) => Ok(Some(values_of_ranks(pairs, &ranks))),
            None => {
                let held = filter.map(|_| BitmapExpr::of_held(held));
                self.search_ranks(reader, held.as_ref(), ranks)
            }
        }
    }

    /// Finds the values of ranks by counting the values up to some bounds, in several passes.
    fn search_ranks(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
        ranks: Vec<u64>,
    ) -> Result<Option<Vec<i64>>> {
        let (Some(min), Some(max)) = (self.min(reader, filter)?, self.max(reader, filter)?) else {
            return Ok(None);
        };
        let mut searches: Vec<Search> =
            ranks.into_iter().map(|rank| Search { rank, low: min, high: max }).collect();
        loop {
            let mut bounds: Vec<i64> = searches.iter().flat_map(Search::bounds).collect();
            if bounds.is_empty() {
                return Ok(Some(searches.iter().map(|search| search.low).collect()));
            }
            bounds.sort_unstable();
            bounds.dedup();
            let counts = self.counts_up_to(reader, filter, &bounds)?;
            for (bound, count) in bounds.iter().zip(&counts) {
                searches.iter_mut().for_each(|search| search.narrow(*bound, *count));
            }
        }
    }

    /// Counts the values that do not exceed each of `bounds`.
    fn counts_up_to(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
        bounds: &[i64],
    ) -> Result<Vec<u64>> {
        let mut counts = vec![0; bounds.len()];
        let [mut found, mut scratch] = [Words::new(), Words::new()];
        self.for_each_chunk(reader, filter, |_, slices, ids| {
            for (count, bound) in counts.iter_mut().zip(bounds) {
                slices.between(&(i64::MIN..=*bound), &mut found, &mut scratch);
                *count += u64::from(found.and_count(ids));
            }
        })?;
        Ok(counts)
    }

    /// Calls `visit` with each chunk in which ids of the filter have values, and with these ids.
    fn for_each_chunk(
        &self,
        reader: &impl Reader,
        filter: Option<&BitmapExpr>,
        mut visit: impl FnMut(u64, &Slices<'_>, &mut Words),
    ) -> Result<()> {
        let filter = filter.cloned().unwrap_or_else(|| BitmapExpr::range(..)).owned_by(&self.owner);
        let mut ids = Words::new();
        let mut filter = Evaluation::all(&filter, reader, Order::Ascending)?;
        let span = Span::of(&(0..=u64::MAX), Order::Ascending);
        let mut values = SliceWalk::new(reader, self.space(), span);
        while let Some(chunk) = filter.next_chunk(&mut ids)? {
            match values.seek(chunk)? {
                Some(at) if at == chunk => {
                    let slices = values.slices(at)?;
                    slices.keep_existing(&mut ids);
                    if !ids.is_empty() {
                        visit(chunk, &slices, &mut ids);
                    }
                }
                Some(at) => filter.skip_to(at),
                None => break,
            }
        }
        Ok(())
    }
}

/// Maps a value so that the ascending order of the mapped values is `order`. Mapping a mapped value
/// returns the original value.
pub(crate) fn turned(value: i64, order: Order) -> i64 {
    match order {
        Order::Ascending => value,
        // The complement reverses the order, and is defined for every integer.
        Order::Descending => !value,
    }
}

/// Keeps the ids whose value is before `last` in this order.
fn keep_before(
    slices: &Slices<'_>,
    last: i64,
    order: Order,
    ids: &mut Words,
    [found, scratch]: &mut [Words; 2],
) {
    let wanted = match order {
        Order::Ascending => last.checked_sub(1).map(|to| i64::MIN..=to),
        Order::Descending => last.checked_add(1).map(|from| from..=i64::MAX),
    };
    match wanted {
        Some(wanted) => {
            slices.between(&wanted, found, scratch);
            ids.and_words(found);
        }
        None => ids.clear(),
    }
}

/// The values at some ranks, counted from 1. `pairs` are the values with their frequencies.
fn values_of_ranks(mut pairs: Vec<(i64, u64)>, ranks: &[u64]) -> Vec<i64> {
    pairs.sort_unstable();
    let mut up_to = 0;
    for (_, count) in &mut pairs {
        up_to += *count;
        *count = up_to;
    }
    let value = |rank: &u64| {
        let at = pairs.partition_point(|(_, up_to)| up_to < rank);
        pairs.get(at).map(|(value, _)| *value)
    };
    ranks.iter().filter_map(value).collect()
}

/// The rank of a percentile, counted from 1.
pub(crate) fn nearest_rank(percent: f64, count: u64) -> Result<u64> {
    match (0.0..=100.0).contains(&percent) {
        true => Ok(((percent * count as f64 / 100.0).ceil() as u64).clamp(1, count.max(1))),
        false => Err(Error::InvalidArgument {
            what: "the percentile",
            value: percent.to_string(),
            why: "a percentile is between 0 and 100",
        }),
    }
}

/// A search for the value of a rank: the smallest value that at least `rank` values do not exceed.
#[derive(Debug)]
struct Search {
    rank: u64,
    /// The lower and the upper bound of the value, both inclusive.
    low: i64,
    high: i64,
}

impl Search {
    /// The bounds to count up to, which divide the remaining range into [`PARTS`]. Empty if the
    /// value is found.
    fn bounds(&self) -> impl Iterator<Item = i64> + use<> {
        let (low, width) = (self.low, i128::from(self.high) - i128::from(self.low));
        let parts = PARTS.min(width + 1);
        (1..parts).map(move |part| (i128::from(low) + (width + 1) * part / parts - 1) as i64)
    }

    /// Narrows the range: `count` values do not exceed `bound`.
    fn narrow(&mut self, bound: i64, count: u64) {
        if count >= self.rank {
            self.high = self.high.min(bound);
        } else if bound >= self.low {
            self.low = bound.saturating_add(1);
        }
    }
}
