//! The rows of a report.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use keyloom::{Error, Result, Subspace, Unpack, unpack};
use keyloom_kit::{Explain, Fnv};

use crate::InvertedIndexError;

/// An audience broken down by the values of a field; the result of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakdown<P, M = u64> {
    /// Each value in the audience, in order, with its number of ids or the requested aggregate.
    pub rows: Vec<(P, M)>,
    /// The number of ids of the audience.
    pub ids: u64,
    /// Whether the report walked the forward index. If false, the report intersected the audience
    /// with the containers of the inverted index.
    pub walked: bool,
    /// What was read to compute the audience and this report.
    pub explain: Explain,
}

impl<P, M: Ord> Breakdown<P, M> {
    /// The `n` rows with the largest results, in descending order; rows with equal results are
    /// ordered by value.
    ///
    /// ```
    /// # use keyloom_bitmaps::Breakdown;
    /// let rows = vec![("chess", 2_u64), ("music", 9), ("news", 2)];
    /// let breakdown = Breakdown { rows, ids: 11, walked: true, explain: Default::default() };
    /// assert_eq!(breakdown.top(2), [&("music", 9), &("chess", 2)]);
    /// ```
    pub fn top(&self, n: usize) -> Vec<&(P, M)> {
        let mut rows: Vec<_> = self.rows.iter().enumerate().collect();
        keep_first(&mut rows, n, |a, b| b.1.1.cmp(&a.1.1).then(a.0.cmp(&b.0)));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

/// Keeps the first `n` rows in an order, in this order.
fn keep_first<T>(rows: &mut Vec<T>, n: usize, order: impl Fn(&T, &T) -> Ordering) {
    if n < rows.len() {
        rows.select_nth_unstable_by(n, &order);
        rows.truncate(n);
    }
    rows.sort_unstable_by(order);
}

/// The number of integers, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueSum {
    /// The sum; it cannot overflow.
    pub sum: i128,
    /// The number of ids that have an integer.
    pub count: u64,
}

impl ValueSum {
    /// The mean; `None` if there are no integers.
    ///
    /// ```
    /// use keyloom_bitmaps::ValueSum;
    /// assert_eq!(ValueSum { sum: 7, count: 2 }.mean(), Some(3.5));
    /// assert_eq!(ValueSum::default().mean(), None);
    /// ```
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    pub(super) fn add(&mut self, integer: i64) {
        self.count += 1;
        self.sum += i128::from(integer);
    }
}

/// The maximum number of groups of a report.
pub(super) struct Limit<'r> {
    pub(super) index: &'r Subspace,
    pub(super) fields: Vec<String>,
    pub(super) groups: usize,
}

impl Limit<'_> {
    /// Refuses more groups than the limit.
    pub(super) fn check(&self, groups: usize) -> Result<()> {
        if groups <= self.groups {
            return Ok(());
        }
        let (index, fields) = (self.index.named(), self.fields.clone());
        Err(InvertedIndexError::TooManyGroups { index, fields, limit: self.groups }.into())
    }
}

/// Rows with their packed values.
pub(super) type Rows<M> = Vec<(Box<[u8]>, M)>;

/// Rows under construction, by packed value.
pub(super) type Gathered<M> = HashMap<Box<[u8]>, M, BuildHasherDefault<Fnv>>;

/// Changes the row of a value.
pub(super) fn change<M: Default>(
    gathered: &mut Gathered<M>,
    value: &[u8],
    change: impl FnOnce(&mut M),
) {
    match gathered.get_mut(value) {
        Some(row) => change(row),
        None => change(gathered.entry(value.into()).or_default()),
    }
}

/// Sorts the rows and unpacks their values.
pub(super) fn sorted<P: for<'k> Unpack<'k>, M>(mut rows: Rows<M>) -> Result<Vec<(P, M)>> {
    rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    unpacked(rows)
}

/// Keeps the `n` rows with the largest results, in descending order, and unpacks their values.
pub(super) fn largest<P: for<'k> Unpack<'k>, M: Ord>(
    mut rows: Rows<M>,
    n: usize,
) -> Result<Vec<(P, M)>> {
    keep_first(&mut rows, n, |a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    unpacked(rows)
}

fn unpacked<P: for<'k> Unpack<'k>, M>(rows: Rows<M>) -> Result<Vec<(P, M)>> {
    let unpacked = rows.into_iter().map(|(value, row)| {
        let value = unpack::<P>(&value).map_err(|error| Error::from(error).at(&value))?;
        Ok((value, row))
    });
    unpacked.collect()
}
