//! What a report says of each value.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use keyloom::{Error, Result, Unpack, unpack};

use super::plan::ReportExplain;
use keyloom_tables::kit::ShortKeys;

/// An audience broken down by the values of a field: what the reports return.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakdown<P, M = u64> {
    /// Each value that the audience has, in order, with how many ids have it, or what else was
    /// asked for.
    pub rows: Vec<(P, M)>,
    /// Which way the report took, and what it read.
    pub explain: ReportExplain,
}

impl<P, M: Ord> Breakdown<P, M> {
    /// The `n` rows that have most, the first of them first; among equals the smaller value.
    ///
    /// ```
    /// # use keyloom_bitmaps::{Breakdown, ReportExplain, ReportWay};
    /// # let explain = ReportExplain { way: ReportWay::Walk, ids: 0, containers: 0, intersect_ns: 0, walk_ns: 0, read: Default::default() };
    /// let breakdown = Breakdown { rows: vec![("chess", 2_u64), ("music", 9), ("news", 2)], explain };
    /// assert_eq!(breakdown.top(2), [&("music", 9), &("chess", 2)]);
    /// ```
    pub fn top(&self, n: usize) -> Vec<&(P, M)> {
        let mut rows: Vec<_> = self.rows.iter().enumerate().collect();
        let larger_first =
            |a: &(usize, &(P, M)), b: &(usize, &(P, M))| b.1.1.cmp(&a.1.1).then(a.0.cmp(&b.0));
        if n < rows.len() {
            rows.select_nth_unstable_by(n, larger_first);
            rows.truncate(n);
        }
        rows.sort_unstable_by(larger_first);
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

/// How many integers there are and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueSum {
    /// Their sum; cannot overflow.
    pub sum: i128,
    /// How many ids have one.
    pub count: u64,
}

impl ValueSum {
    /// Their mean, `None` of none.
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

/// Rows by their packed values.
pub(super) type Rows<M> = Vec<(Box<[u8]>, M)>;

/// Rows in the making, by their packed values.
pub(super) type Gathered<M> = HashMap<Box<[u8]>, M, BuildHasherDefault<ShortKeys>>;

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

/// The rows in order, their values unpacked.
pub(super) fn in_order<P: for<'k> Unpack<'k>, M>(mut rows: Rows<M>) -> Result<Vec<(P, M)>> {
    rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let unpacked = rows.into_iter().map(|(value, row)| {
        let value = unpack::<P>(&value).map_err(|error| Error::from(error).at(&value))?;
        Ok((value, row))
    });
    unpacked.collect()
}
