//! Complements without a universe, and ranges too long for any store.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use keyloom::{Error, Memory, Store, Subspace};
use keyloom_bitmaps::{BitSliced, Bitmap, BitmapExpr, CHUNK_IDS};
use proptest::collection::vec;
use proptest::prelude::*;

use super::trees::bitmap;
use crate::bitmaps::sets::{Set, put, set};
use keyloom_testing::laws::{clear, long_property};

#[derive(Clone, Debug)]
enum Endless {
    Stored(usize),
    Range(RangeInclusive<u64>),
    Two(char, Box<[Endless; 2]>),
}

/// Ranges of any length.
fn range() -> impl Strategy<Value = RangeInclusive<u64>> {
    let end = prop_oneof![
        3 => prop::sample::select(vec![0, u64::MAX, u64::MAX - 1, CHUNK_IDS - 1, CHUNK_IDS]),
        2 => 0..9 * CHUNK_IDS,
        1 => any::<u64>(),
    ];
    (end.clone(), end).prop_map(|(a, b)| a.min(b)..=a.max(b))
}

fn endless() -> impl Strategy<Value = Endless> {
    let leaf = prop_oneof![
        2 => (0..3_usize).prop_map(Endless::Stored),
        1 => range().prop_map(Endless::Range),
        1 => Just(Endless::Range(0..=u64::MAX)),
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        let operator = prop::sample::select(vec!['&', '|', '-', '^']);
        (operator, [inner.clone(), inner].prop_map(Box::new))
            .prop_map(|(operator, two)| Endless::Two(operator, two))
    })
}

impl Endless {
    fn expr(&self) -> BitmapExpr {
        match self {
            Self::Stored(n) => bitmap(*n).into(),
            Self::Range(ids) => BitmapExpr::range(ids.clone()),
            Self::Two(operator, two) => {
                let [a, b] = [two[0].expr(), two[1].expr()];
                match operator {
                    '&' => a & b,
                    '|' => a | b,
                    '-' => a - b,
                    _ => a ^ b,
                }
            }
        }
    }

    fn has(&self, sets: &[BTreeSet<u64>], id: u64) -> bool {
        match self {
            Self::Stored(n) => sets[*n].contains(&id),
            Self::Range(ids) => ids.contains(&id),
            Self::Two(operator, two) => {
                let [a, b] = [two[0].has(sets, id), two[1].has(sets, id)];
                match operator {
                    '&' => a && b,
                    '|' => a || b,
                    '-' => a && !b,
                    _ => a != b,
                }
            }
        }
    }

    /// The ids at which membership may change.
    fn edges(&self, edges: &mut BTreeSet<u64>) {
        match self {
            Self::Stored(_) => {}
            Self::Range(ids) => edges.extend([*ids.start(), ids.end().saturating_add(1)]),
            Self::Two(_, two) => two.iter().for_each(|one| one.edges(edges)),
        }
    }

    /// The ids as ranges.
    fn ranges(&self, sets: &[BTreeSet<u64>]) -> Vec<RangeInclusive<u64>> {
        let mut edges = BTreeSet::from([0]);
        self.edges(&mut edges);
        let ids = sets.iter().flatten();
        edges.extend(ids.flat_map(|id| [*id, id.saturating_add(1)]));
        let edges: Vec<u64> = edges.into_iter().collect();
        // For a range that ends at the last id, `saturating_add` returns this id.
        let ends = edges[1..].iter().map(|next| next - 1).chain([u64::MAX]);
        let ranges = edges.iter().copied().zip(ends).map(|(first, last)| first..=last);
        ranges.filter(|range| self.has(sets, *range.start())).collect()
    }
}

pub fn endless_expressions_are_counted(store: &impl Store) {
    let strategy = (vec(set(), 3), vec(endless(), 8), vec(any::<u64>(), 4));
    long_property(strategy, |(sets, exprs, numbers): (Vec<Set>, Vec<Endless>, Vec<u64>)| {
        clear(store);
        sets.iter().enumerate().for_each(|(n, set)| put(store, &bitmap(n), set));
        let snapshot = store.snapshot().unwrap();
        for tree in &exprs {
            let (expr, ranges) = (tree.expr(), tree.ranges(&sets));
            let length = |range: &RangeInclusive<u64>| u128::from(range.end() - range.start()) + 1;
            let count: u128 = ranges.iter().map(length).sum();
            let shown = u64::try_from(count).unwrap_or(u64::MAX);
            assert_eq!(expr.count(&snapshot).unwrap(), shown, "{expr:?}");
            for number in &numbers {
                let below = ranges.iter().filter(|range| range.start() < number);
                let rank =
                    below.map(|range| length(&(*range.start()..=(*range.end()).min(number - 1))));
                assert_eq!(
                    u128::from(expr.rank(&snapshot, *number).unwrap()),
                    rank.sum(),
                    "{expr:?}"
                );
                let n = if count == 0 { *number } else { (u128::from(*number) % count) as u64 };
                let mut left = u128::from(n);
                let found = ranges.iter().find_map(|range| {
                    let is_here = left < length(range);
                    let id = is_here.then(|| range.start() + left as u64);
                    left = left.saturating_sub(length(range));
                    id
                });
                assert_eq!(expr.select(&snapshot, n).unwrap(), found, "{n}: {expr:?}");
                assert_eq!(expr.contains(&snapshot, *number).unwrap(), tree.has(&sets, *number));
            }
            let first = ranges.first().map(|range| *range.start());
            let last = ranges.last().map(|range| *range.end());
            assert_eq!(expr.first(&snapshot).unwrap(), first, "{expr:?}");
            assert_eq!(expr.last(&snapshot).unwrap(), last, "{expr:?}");
        }
    });
}

pub fn a_complement_costs_what_its_expression_costs(store: &impl Store) {
    clear(store);
    let (a, b) = (bitmap(0), bitmap(1));
    store.transact(|txn| a.insert_many(txn, (0..9).map(|n| n * CHUNK_IDS))).unwrap();
    store.transact(|txn| b.insert_many(txn, [5, CHUNK_IDS, 1 << 60])).unwrap();
    let snapshot = store.snapshot().unwrap();
    let expr = BitmapExpr::from(&a);
    let (count, explain) = expr.complement(..).explain(&snapshot).unwrap();
    assert_eq!((count, explain.keys_scanned), (u64::MAX - 8, 9));
    let (count, explain) = (expr.complement(..) | &b).explain(&snapshot).unwrap();
    assert_eq!((count, explain.keys_scanned), (u64::MAX - 7, 12));
    let (count, explain) = (expr.complement(..1 << 62) ^ &b).explain(&snapshot).unwrap();
    // One of the three ids of `b` is in `a`, and two are in the complement.
    assert_eq!((count, explain.keys_scanned), ((1 << 62) - 9 + 1 - 2, 12));
}

pub fn percentiles_with_a_complement_end(store: &impl Store) {
    clear(store);
    let (values, some) = (BitSliced::new(&Subspace::new("values")), bitmap(0));
    store.transact(|txn| values.set_many(txn, (0..100).map(|id| (id * 997, id as i64)))).unwrap();
    store.transact(|txn| some.insert_many(txn, (0..50).map(|id| id * 997))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let others = BitmapExpr::from(&some).complement(..);
    let found = values.percentiles(&snapshot, Some(&others), &[0.0, 50.0, 100.0]).unwrap();
    assert_eq!(found, Some(vec![50, 74, 99]));
    let either = &others | BitmapExpr::range(0..=997);
    let found = values.percentiles(&snapshot, Some(&either), &[0.0, 100.0]).unwrap();
    assert_eq!(found, Some(vec![0, 99]));
    assert_eq!(values.sum(&snapshot, Some(&others)).unwrap(), (50..100).sum());
    assert_eq!(values.top(&snapshot, Some(&others), 1).unwrap(), [(99 * 997, 99)]);
}

#[test]
fn more_ids_than_can_be_kept_are_refused() {
    let store = Memory::new();
    let some = bitmap(0);
    store.transact(|txn| some.insert_many(txn, [3, 1 << 40])).unwrap();
    let refused = |error: Error| {
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        assert!(error.to_string().contains("universe"), "{error}");
    };
    let into = Bitmap::new(&Subspace::new("into"));
    for expr in [BitmapExpr::from(&some).complement(..), BitmapExpr::range(5..) | &some] {
        let snapshot = store.snapshot().unwrap();
        refused(expr.hold(&snapshot).unwrap_err());
        refused(expr.to_treemap(&snapshot).unwrap_err());
        refused(store.transact(|txn| expr.store_in(txn, &into)).unwrap_err());
        refused(expr.to_roaring(&snapshot).unwrap_err());
        let ids = expr.ids(&snapshot, ..).unwrap().take(3);
        assert_eq!(ids.map(Result::unwrap).max(), expr.select(&snapshot, 2).unwrap());
    }
    let snapshot = store.snapshot().unwrap();
    let all = BitmapExpr::from(&some).complement(..1 << 17);
    assert_eq!(all.to_treemap(&snapshot).unwrap().len(), (1 << 17) - 1);
}
