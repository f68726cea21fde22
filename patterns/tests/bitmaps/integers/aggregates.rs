//! Aggregates, compared with those of a list of values.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use keyloom::Store;
use keyloom_bitmaps::{BitmapExpr, CHUNK_IDS};
use proptest::collection::vec;
use proptest::prelude::*;
use roaring::RoaringTreemap;

use super::values::{Values, integers, store_values, value, values};
use crate::bitmaps::sets::{Set, ids, set};
use keyloom_testing::laws::very_long_property;

/// Values that repeat, and as many distinct values as ids.
fn any_values() -> impl Strategy<Value = Values> {
    let all_different = (ids(), any::<i64>()).prop_map(|(ids, factor)| {
        ids.into_iter().map(|id| (id, (id as i64).wrapping_mul(factor))).collect()
    });
    prop_oneof![3 => values(), 1 => all_different]
}

pub fn aggregates_are_those_of_a_list_of_values(store: &impl Store) {
    let percents = vec(prop_oneof![0.0..=100.0, Just(0.0), Just(50.0), Just(100.0)], 0..3);
    very_long_property((any_values(), prop::option::of(set()), 0..30_usize, percents), |case| {
        let (values, filter, k, percents) = case;
        store_values(store, &values);
        let passes = |id: &u64| filter.as_ref().is_none_or(|filter| filter.contains(id));
        let taken: Vec<(u64, i64)> =
            values.iter().map(|(id, value)| (*id, *value)).filter(|(id, _)| passes(id)).collect();
        let expr = filter.as_ref().map(in_memory);
        let found = Found::of(store, expr.as_ref(), k, &percents);
        assert_eq!(found, Found::expected(taken, k, &percents));
    });
}

fn in_memory(set: &Set) -> BitmapExpr {
    BitmapExpr::from(set.iter().collect::<RoaringTreemap>())
}

#[derive(Debug, PartialEq)]
struct Found {
    count: u64,
    sum: i128,
    average: Option<f64>,
    ends: (Option<i64>, Option<i64>),
    top: Vec<(u64, i64)>,
    counts: BTreeMap<i64, u64>,
    percentiles: Option<Vec<i64>>,
}

impl Found {
    fn of(store: &impl Store, filter: Option<&BitmapExpr>, k: usize, percents: &[f64]) -> Self {
        let (snapshot, of) = (store.snapshot().unwrap(), integers());
        Self {
            count: of.count(&snapshot, filter).unwrap(),
            sum: of.sum(&snapshot, filter).unwrap(),
            average: of.average(&snapshot, filter).unwrap(),
            ends: (of.min(&snapshot, filter).unwrap(), of.max(&snapshot, filter).unwrap()),
            top: of.top(&snapshot, filter, k).unwrap(),
            counts: of.counts_by_value(&snapshot, filter).unwrap(),
            percentiles: of.percentiles(&snapshot, filter, percents).unwrap(),
        }
    }

    fn expected(mut taken: Vec<(u64, i64)>, k: usize, percents: &[f64]) -> Self {
        let mut counts = BTreeMap::new();
        taken.iter().for_each(|(_, value)| *counts.entry(*value).or_default() += 1);
        let mut values: Vec<i64> = taken.iter().map(|(_, value)| *value).collect();
        values.sort_unstable();
        let sum = values.iter().map(|value| i128::from(*value)).sum::<i128>();
        taken.sort_by_key(|(id, value)| (Reverse(*value), *id));
        taken.truncate(k);
        let rank = |percent: f64| ((percent * values.len() as f64 / 100.0).ceil() as usize).max(1);
        let percentiles = percents.iter().filter_map(|percent| values.get(rank(*percent) - 1));
        Self {
            count: values.len() as u64,
            sum,
            average: (!values.is_empty()).then(|| sum as f64 / values.len() as f64),
            ends: (values.first().copied(), values.last().copied()),
            top: taken,
            counts,
            percentiles: (!values.is_empty()).then(|| percentiles.copied().collect()),
        }
    }
}

pub fn whole_percents_are_ranks_without_rounding(store: &impl Store) {
    for count in [100, 250, 1_000] {
        // The value at a rank is the rank itself.
        store_values(store, &(1..=count).map(|n| (n, n as i64)).collect());
        let percents: Vec<f64> = (0..=100).map(f64::from).collect();
        let ranks = (0..=100).map(|percent| (percent * count).div_ceil(100).max(1) as i64);
        let snapshot = store.snapshot().unwrap();
        let found = integers().percentiles(&snapshot, None, &percents).unwrap();
        assert_eq!(found, Some(ranks.collect()));
    }
}

pub fn sums_of_extremes_are_exact(store: &impl Store) {
    for extreme in [i64::MIN, i64::MAX] {
        let values: Values = (0..3 * CHUNK_IDS).step_by(113).map(|id| (id, extreme)).collect();
        store_values(store, &values);
        let snapshot = store.snapshot().unwrap();
        let count = values.len() as u64;
        let expected = i128::from(extreme) * i128::from(count);
        assert_eq!(integers().count_and_sum(&snapshot, None).unwrap(), (count, expected));
        assert_eq!(integers().average(&snapshot, None).unwrap(), Some(extreme as f64));
        let percentiles = integers().percentiles(&snapshot, None, &[1.0, 99.0]).unwrap();
        assert_eq!(percentiles, Some(vec![extreme; 2]));
        assert_eq!(integers().top(&snapshot, None, 2).unwrap(), [(0, extreme), (113, extreme)]);
        assert_eq!(integers().eq(extreme).count(&snapshot).unwrap(), count);
    }
    // Extreme values that cancel each other; their sum is one.
    store_values(store, &[(1, i64::MIN), (CHUNK_IDS, i64::MAX), (2, 2)].into());
    let snapshot = store.snapshot().unwrap();
    assert_eq!(integers().sum(&snapshot, None).unwrap(), 1);
    let median = integers().percentiles(&snapshot, None, &[33.3, 50.0, 66.7]).unwrap();
    assert_eq!(median, Some(vec![i64::MIN, 2, i64::MAX]));
    proptest!(ProptestConfig { failure_persistence: None, cases: 4, ..ProptestConfig::default() }, |(a in value())| {
        assert_eq!(integers().gt(i64::MAX).count(&snapshot).unwrap(), 0);
        assert_eq!(integers().lt(i64::MIN).count(&snapshot).unwrap(), 0);
        let both = integers().le(a) & integers().gt(a);
        assert_eq!(both.count(&snapshot).unwrap(), 0);
    });
}
