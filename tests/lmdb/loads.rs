//! Puts at the end of the store, which the engine takes without a search.

use std::collections::BTreeMap;

use keyloom::{KeyRange, Order, Reader, Store, Writer};
use proptest::prelude::*;
use tempfile::tempdir;

use crate::quick;

/// Leaf pages of a store that `numbers` were put into, in one transaction.
fn leaf_pages(numbers: impl Iterator<Item = u32>) -> u64 {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    let numbers: Vec<u32> = numbers.collect();
    store
        .transact(|txn| numbers.iter().try_for_each(|n| txn.put(&n.to_be_bytes(), &[7; 100])))
        .unwrap();
    let statistics = store.statistics().unwrap();
    assert_eq!(statistics.entries as usize, numbers.len());
    statistics.leaf_pages
}

#[test]
fn pages_are_full_after_puts_in_order() {
    let ascending = leaf_pages(0..20_000);
    let descending = leaf_pages((0..20_000).rev());
    // 35 entries of 114 bytes in a page, or half of them, as the engine splits a page elsewhere.
    assert!(ascending <= 20_000 / 35 + 2, "{ascending}");
    assert!(descending >= 20_000 / 35 * 3 / 2, "{descending}");
}

#[test]
fn some_puts_elsewhere_do_not_end_it() {
    let ascending = leaf_pages(10..20_010);
    let mixed =
        leaf_pages((10..20_010).flat_map(|n| [n].into_iter().chain((n == 5_000).then_some(3))));
    assert!(mixed <= ascending + 12, "{mixed}, without {ascending}");
}

/// Runs of keys that ascend, each from anywhere.
fn runs() -> impl Strategy<Value = Vec<(u16, u16)>> {
    prop::collection::vec((0..2_000_u16, 1..60_u16), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_put_at_the_end_and_elsewhere_is_there_once(runs in runs()) {
        let directory = tempdir().unwrap();
        let store = quick().open(directory.path()).unwrap();
        let mut model = BTreeMap::new();
        let puts: Vec<(u16, u16)> = runs
            .iter()
            .zip(0..)
            .flat_map(|(&(from, length), run)| (from..from + length).map(move |n| (n, run)))
            .collect();
        store
            .transact(|txn| {
                puts.iter().try_for_each(|(n, run)| txn.put(&n.to_be_bytes(), &run.to_be_bytes()))
            })
            .unwrap();
        model.extend(puts);
        let snapshot = store.snapshot().unwrap();
        let there = snapshot.range(KeyRange::all(), Order::Ascending).unwrap().map(Result::unwrap);
        let there: Vec<_> = there.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        let expected = model.into_iter().map(|(n, run): (u16, u16)| {
            (n.to_be_bytes().to_vec(), run.to_be_bytes().to_vec())
        });
        prop_assert_eq!(there, expected.collect::<Vec<_>>());
    }
}
