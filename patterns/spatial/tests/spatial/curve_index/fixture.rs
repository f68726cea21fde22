//! A table of numbers, and the queries of the tests.

use std::ops::Bound;

use keyloom::{Store, Subspace};
use keyloom_spatial::CurveIndex;
use keyloom_spatial::curve::{Dimension, Morton};
use keyloom_tables::{BatchSize, Maintained, Table};
use proptest::array::uniform;
use proptest::prelude::*;

use super::super::keys::key;

#[derive(Clone)]
pub struct Numbers<const N: usize> {
    pub table: Table<u32, Vec<f64>>,
    pub index: CurveIndex<u32, Vec<f64>, N>,
}

impl<const N: usize> Numbers<N>
where
    u64: Morton<N, Coordinate = u32>,
{
    pub fn new() -> Self {
        Self::between(-8.0, 8.0)
    }

    /// An index whose dimensions all have this range. Records without numbers have no entry.
    pub fn between(from: f64, to: f64) -> Self {
        let space = Subspace::new("test");
        let dimensions = [Dimension::new(from..=to).unwrap(); N];
        let numbers = |_: &u32, numbers: &Vec<f64>| Ok(numbers.first_chunk().copied());
        let index = CurveIndex::new(&space.child("by_numbers"), dimensions, numbers);
        Self { table: Table::new(&space.child("numbers")).with(&index), index }
    }

    pub fn put(&self, store: &impl Store, all: &[[f64; N]]) {
        let records: Vec<_> =
            (0..).map(key).zip(all.iter().map(|numbers| numbers.to_vec())).collect();
        BatchSize::new(1_000)
            .transact_all(store, &records, |txn, some| self.table.put_many(txn, some))
            .unwrap();
    }

    pub fn faults(&self, store: &impl Store) -> Vec<String> {
        let found = self.index.check(&store.snapshot().unwrap(), &self.table).unwrap();
        found.iter().map(ToString::to_string).collect()
    }
}

/// Numbers inside and outside the range of the dimension, and next to the borders of cells.
pub fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -8.0..8.0_f64,
        2 => (-9..10_i32).prop_map(f64::from),
        1 => (-9..10_i32).prop_map(|whole| f64::from(whole).next_up()),
        1 => (-9..10_i32).prop_map(|whole| f64::from(whole).next_down()),
        1 => prop::sample::select(vec![
            -0.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
        ]),
    ]
}

pub fn numbers<const N: usize>() -> impl Strategy<Value = [f64; N]> {
    uniform(number())
}

pub type Range = (Bound<f64>, Bound<f64>);

pub fn ranges<const N: usize>() -> impl Strategy<Value = [Range; N]> {
    let bound = || {
        prop_oneof![
            4 => number().prop_map(Bound::Included),
            2 => number().prop_map(Bound::Excluded),
            1 => Just(Bound::Unbounded),
        ]
    };
    // Mostly with the start before the end.
    let range =
        (bound(), bound(), prop::bool::weighted(0.9)).prop_map(|(from, to, in_order)| {
            match (from, to) {
                (
                    Bound::Included(a) | Bound::Excluded(a),
                    Bound::Included(b) | Bound::Excluded(b),
                ) if in_order && a > b => (to, from),
                _ => (from, to),
            }
        });
    uniform(range)
}
