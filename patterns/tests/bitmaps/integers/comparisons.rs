//! Comparisons as expressions, compared with a filter over a map.

use std::ops::Bound::{Excluded, Unbounded};

use keyloom::{Order, Result, Store};
use keyloom_bitmaps::BitmapExpr;
use keyloom_tables::in_order;
use proptest::prelude::*;

use super::values::{Values, integers, store_values, value, values};
use keyloom_testing::laws::very_long_property;

/// An expression, and a predicate for its values.
type Case = (BitmapExpr, Box<dyn Fn(i64) -> bool>);

fn cases(a: i64, b: i64) -> Vec<Case> {
    let of = integers();
    vec![
        (of.eq(a), Box::new(move |value| value == a)),
        (of.lt(a), Box::new(move |value| value < a)),
        (of.le(a), Box::new(move |value| value <= a)),
        (of.gt(a), Box::new(move |value| value > a)),
        (of.ge(a), Box::new(move |value| value >= a)),
        (of.between(a..=b), Box::new(move |value| a <= value && value <= b)),
        (of.between(a..b), Box::new(move |value| a <= value && value < b)),
        (of.between((Excluded(a), Excluded(b))), Box::new(move |value| a < value && value < b)),
        (of.between((Excluded(b), Unbounded)), Box::new(move |value| value > b)),
        (of.has(), Box::new(|_| true)),
        (of.has() - of.eq(b), Box::new(move |value| value != b)),
        (of.lt(a) ^ of.ge(a), Box::new(|_| true)),
    ]
}

pub fn every_comparison_is_what_a_filter_over_a_map_finds(store: &impl Store) {
    very_long_property(
        (values(), value(), value(), any::<prop::sample::Index>()),
        |(values, a, b, at)| {
            store_values(store, &values);
            // One operand is also a stored value.
            let there = values.values().nth(at.index(values.len().max(1))).copied();
            for (a, b) in [(b, a), (there.unwrap_or(a), b)] {
                for (expr, takes) in cases(a, b) {
                    compare(store, &expr, &values, takes);
                }
            }
        },
    );
}

fn compare(store: &impl Store, expr: &BitmapExpr, values: &Values, takes: impl Fn(i64) -> bool) {
    let snapshot = store.snapshot().unwrap();
    let expected = values.iter().filter(|(_, value)| takes(**value)).map(|(id, _)| *id);
    let expected: Vec<u64> = expected.collect();
    let ids =
        |order| expr.ids(&snapshot, in_order(.., order)).unwrap().collect::<Result<Vec<u64>>>();
    assert_eq!(ids(Order::Ascending).unwrap(), expected);
    assert!(ids(Order::Descending).unwrap().iter().eq(expected.iter().rev()));
    assert_eq!(expr.count(&snapshot).unwrap(), expected.len() as u64);
}
