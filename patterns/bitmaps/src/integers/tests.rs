//! Percentiles in one pass and in several passes, compared with sorted values.

use keyloom::{Memory, Metered, Store, Subspace};

use super::BitSliced;
use crate::{BitmapExpr, CHUNK_IDS};

#[test]
fn percentiles_are_equal_by_one_pass_and_by_several() {
    let of = BitSliced::new(&Subspace::new("integers"));
    let store = Metered::new(Memory::new());
    let mut random = fastrand::Rng::with_seed(7);
    let value = |random: &mut fastrand::Rng| match random.u8(..4) {
        0 => random.i64(..),
        _ => random.i64(-9..9),
    };
    let values: Vec<(u64, i64)> =
        (0..600).map(|n| (n * CHUNK_IDS / 200 + n % 3, value(&mut random))).collect();
    store.transact(|txn| of.set_many(txn, values.iter().copied())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let percents = [0.0, 12.5, 50.0, 95.0, 100.0];
    let some = BitmapExpr::range(CHUNK_IDS / 2..2 * CHUNK_IDS);
    for filter in [None, Some(&some)] {
        let passes = |id: &u64| filter.is_none() || (CHUNK_IDS / 2..2 * CHUNK_IDS).contains(id);
        let mut sorted: Vec<i64> =
            values.iter().filter(|(id, _)| passes(id)).map(|(_, value)| *value).collect();
        sorted.sort_unstable();
        let rank = |percent: &f64| (percent * sorted.len() as f64 / 100.0).ceil() as usize;
        let expected = percents.iter().map(|percent| sorted[rank(percent).max(1) - 1]);
        let expected: Option<Vec<i64>> = Some(expected.collect());
        for (limit, least_ranges) in [(usize::MAX, 1), (100, 20), (0, 20)] {
            let (found, cost) = store
                .measure(|_| of.percentiles_within(&snapshot, filter, &percents, limit).unwrap());
            assert_eq!(found, expected, "at most {limit} pairs");
            assert!(cost.ranges >= least_ranges && (limit < 600 || cost.ranges == 1), "{cost:?}");
        }
    }
    let none = BitmapExpr::none();
    for limit in [0, 9] {
        let found = of.percentiles_within(&snapshot, Some(&none), &percents, limit).unwrap();
        assert_eq!(found, None);
    }
}
