//! Puts in key order: at the end of the store, where the engine needs no search, and side by side
//! in the middle.

use std::cell::Cell;
use std::collections::BTreeMap;

use keyloom::{KeyRange, Order, Reader, Store, Writer};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::tempdir;

use crate::quick;

/// The number of leaf pages of a store with these `numbers`, put in one transaction.
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
    // 35 entries of 114 bytes per page with appends, or half as many with ordinary page splits.
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

/// Ascending runs of keys, each from a random start.
fn runs() -> impl Strategy<Value = Vec<(u16, u16)>> {
    prop::collection::vec((0..2_000_u16, 1..60_u16), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_put_at_the_end_and_elsewhere_is_there_once(runs in runs()) {
        let puts: Vec<(u16, u16)> = runs
            .iter()
            .zip(0..)
            .flat_map(|(&(from, length), run)| (from..from + length).map(move |n| (n, run)))
            .collect();
        let puts = puts.iter().map(|(n, run)| (n.to_be_bytes().to_vec(), run.to_be_bytes().to_vec()));
        let puts: Vec<_> = puts.collect();
        let expected: Vec<_> = puts.iter().cloned().collect::<BTreeMap<_, _>>().into_iter().collect();
        for in_order in [false, true] {
            let directory = tempdir().unwrap();
            let store = quick().open(directory.path()).unwrap();
            store
                .transact(|txn| match in_order {
                    false => puts.iter().try_for_each(|(key, value)| txn.put(key, value)),
                    true => txn.put_sorted(&borrowed(&puts)),
                })
                .unwrap();
            let snapshot = store.snapshot().unwrap();
            let there = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
            let there = there.map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec()));
            prop_assert_eq!(there.collect::<Vec<_>>(), expected.clone());
        }
    }
}

/// Entries like those of an index: most are small, some nearly fill a page, some are larger.
fn load(count: u32) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bytes = |n: u32| match n % 50 {
        0 => 4_080,
        1..10 => 100 + n as usize * 37 % 1_900,
        _ => n as usize * 7 % 60,
    };
    (0..count).map(|n| (format!("load {n:08}").into_bytes(), vec![n as u8; bytes(n)])).collect()
}

fn borrowed(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<(&[u8], &[u8])> {
    entries.iter().map(|(key, value)| (&key[..], &value[..])).collect()
}

/// The number of leaf pages that a load adds to a store with other entries, `behind` of which come
/// after the load.
fn pages_of_load(load: &[(Vec<u8>, Vec<u8>)], behind: u32, in_order: bool) -> u64 {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    let others = |prefix: &'static str, count| (0..count).map(move |n| format!("{prefix}{n:08}"));
    store
        .transact(|txn| {
            let mut others = others("a", 1_000).chain(others("z", behind));
            others.try_for_each(|key| txn.put(key.as_bytes(), &[1; 40]))
        })
        .unwrap();
    let before = store.statistics().unwrap().leaf_pages;
    store
        .transact(|txn| match in_order {
            true => borrowed(load).chunks(5_000).try_for_each(|some| txn.put_sorted(some)),
            false => load.iter().try_for_each(|(key, value)| txn.put(key, value)),
        })
        .unwrap();
    let statistics = store.statistics().unwrap();
    assert_eq!(statistics.entries as usize, 1_000 + behind as usize + load.len());
    statistics.leaf_pages - before
}

#[test]
fn a_load_in_the_middle_fills_pages_as_one_at_the_end_does() {
    let load = load(20_000);
    let at_the_end = pages_of_load(&load, 0, false);
    for behind in [0, 1, 3, 40, 1_000] {
        let pages = pages_of_load(&load, behind, true);
        assert!(pages <= at_the_end + at_the_end / 50 + 3, "{behind}: {pages}, {at_the_end}");
    }
    // The number with single puts, for comparison with the figures above.
    let by_puts = pages_of_load(&load, 1, false);
    assert!(by_puts > at_the_end * 5 / 4, "{by_puts}, {at_the_end}");
}

#[test]
fn load_that_outgrows_the_map_is_retried_and_file_is_sound() {
    let directory = tempdir().unwrap();
    let store = quick().map_bytes(256 << 10).open(directory.path()).unwrap();
    store.transact(|txn| txn.put(b"z", b"")).unwrap();
    let load = load(5_000);
    store.transact(|txn| txn.put_sorted(&borrowed(&load))).unwrap();
    assert_eq!(crate::count(&store), 5_001);
    assert!(store.statistics().unwrap().map_bytes > 256 << 10);
    drop(store);
    assert!(keyloom::Lmdb::verify(directory.path(), |_, _| ()).unwrap().is_sound());
}

#[test]
fn what_no_store_takes_is_refused_before_any_of_a_load_is_put() {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    let mut entries = load(200);
    entries[150].0 = vec![b'm'; 512];
    let mut txn = store.begin().unwrap();
    let error = txn.put_sorted(&borrowed(&entries)).unwrap_err();
    assert!(matches!(error, keyloom::Error::KeyTooLong { .. }), "{error}");
    assert_eq!(txn.count(KeyRange::all()).unwrap(), 0);
}

/// Puts a load into a store with other entries, by `put_sorted` and by single puts, and checks the
/// contents. Returns both numbers of leaf pages.
fn put_both_ways(old: &[(Vec<u8>, Vec<u8>)], loads: &[Vec<(Vec<u8>, Vec<u8>)>]) -> [u64; 2] {
    let entries = || old.iter().chain(loads.iter().flatten()).cloned();
    let expected: Vec<_> = entries().collect::<BTreeMap<_, _>>().into_iter().collect();
    [true, false].map(|in_order| {
        let directory = tempdir().unwrap();
        let store = quick().open(directory.path()).unwrap();
        store.transact(|txn| old.iter().try_for_each(|(key, value)| txn.put(key, value))).unwrap();
        for load in loads {
            store
                .transact(|txn| match in_order {
                    true => txn.put_sorted(&borrowed(load)),
                    false => load.iter().try_for_each(|(key, value)| txn.put(key, value)),
                })
                .unwrap();
        }
        let snapshot = store.snapshot().unwrap();
        let there = snapshot.range(KeyRange::all(), Order::Ascending).unwrap().map(Result::unwrap);
        let there = there.map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert!(there.eq(expected.iter().cloned()), "{in_order}");
        let pages = store.statistics().unwrap().leaf_pages;
        drop(snapshot);
        drop(store);
        assert!(keyloom::Lmdb::verify(directory.path(), |_, _| ()).unwrap().is_sound());
        pages
    })
}

/// The number of leaf pages of the containers of many values. Each transaction writes some chunks
/// of each value.
fn pages_of_values(values: u32, transactions: u32, chunks: u32, bytes: u32) -> u64 {
    let directory = tempdir().unwrap();
    let store = quick().open(directory.path()).unwrap();
    let others = || (0..2_000).map(|n| format!("z{n:08}"));
    store.transact(|txn| others().try_for_each(|key| txn.put(key.as_bytes(), &[1; 40]))).unwrap();
    let entry = |value: u32, chunk: u32| {
        let key = format!("site{value:010}{chunk:06}").into_bytes();
        (key, vec![7; (bytes + (value * 7 + chunk * 13) % 21) as usize])
    };
    for at in 0..transactions {
        let chunks = at * chunks..(at + 1) * chunks;
        let of_value = |value| chunks.clone().map(move |chunk| entry(value, chunk));
        let load: Vec<_> = (0..values).flat_map(of_value).collect();
        let puts = borrowed(&load);
        store
            .transact(|txn| puts.chunks(16_384).try_for_each(|some| txn.put_sorted(some)))
            .unwrap();
    }
    store.statistics().unwrap().leaf_pages
}

/// This is the pattern of an index build over more records than a transaction takes. The book's
/// chapter on indexes gives the figures.
#[test]
fn a_load_in_turns_at_many_places_fills_pages_less_well() {
    for (values, bytes, at_once, in_turns) in [(1_000, 40, 2_595, 4_294), (57, 700, 1_492, 1_806)] {
        let pages = [(1, 128), (4, 32)]
            .map(|(transactions, chunks)| pages_of_values(values, transactions, chunks, bytes));
        let is_about = |pages: u64, told: u64| pages.abs_diff(told) <= told / 50;
        assert!(is_about(pages[0], at_once) && is_about(pages[1], in_turns), "{pages:?}");
    }
}

#[test]
fn load_before_all_entries_fills_pages_like_a_load_at_the_end() {
    let (load, others) =
        (load(5_000), (0..1_000_u32).map(|n| (format!("z{n:08}").into_bytes(), vec![1; 40])));
    let (others, at_the_end) = (others.collect::<Vec<_>>(), pages_of_load(&load, 0, false));
    let [before, _] = put_both_ways(&others, &[]);
    let [in_order, by_puts] = put_both_ways(&others, &[load]);
    assert!(in_order - before <= at_the_end + at_the_end / 50 + 3, "{in_order}, {at_the_end}");
    assert!(by_puts - before > at_the_end * 5 / 4, "{by_puts}, {at_the_end}");
}

#[test]
fn a_load_of_the_longest_keys_is_there_and_nothing_else() {
    let key = |n: u8, bytes: usize| [&vec![b'k'; bytes - 1][..], &[n]].concat();
    let behind = [(b"z".to_vec(), vec![])];
    for bytes in 509..=511 {
        let load: Vec<_> = (0..100).map(|n| (key(n, bytes), vec![n; 370])).collect();
        let [in_order, by_puts] = put_both_ways(&behind, &[load]);
        // Four entries per page, if longer keys separate them from the keys after them.
        let is_full = in_order <= 100 / 4 + 2;
        assert!(is_full || bytes > 509, "{bytes}: {in_order}, {by_puts} by puts");
    }
}

#[test]
fn a_load_right_before_the_next_key_leaves_that_as_it_was() {
    let load = load(1_000);
    let mut next = load[999].0.clone();
    // Its successor, the successor of that, and so on: the temporary separator key must not be an
    // existing key.
    for zeros in 1..=4 {
        next.push(0);
        let [in_order, by_puts] = put_both_ways(
            &[(b"a".to_vec(), vec![]), (next.clone(), vec![7; 300])],
            std::slice::from_ref(&load),
        );
        // Separation needs two possible keys between the load and the next key.
        assert!(in_order < by_puts || zeros < 3, "{zeros}: {in_order}, {by_puts} by puts");
    }
}

/// Keys that are close together, including long ones, with values of every size.
fn entries(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    let key = prop_oneof![
        12 => prop::collection::vec(0..6_u8, 1..10),
        1 => prop::collection::vec(0..2_u8, 509..512),
    ];
    let bytes = prop_oneof![10 => 0..80_usize, 2 => 200..2_100_usize, 1 => 2_100..9_000_usize];
    prop::collection::vec((key, bytes.prop_map(|bytes| vec![5; bytes])), count)
}

#[test]
fn what_is_put_in_order_is_there_and_nothing_else() {
    // Some old entries are between those of the load. At least one is before it and one after it,
    // so that the load is not at the end of the store.
    let old = entries(0..6).prop_map(|mut old| {
        old.extend([(vec![0], vec![1; 40]), (vec![9], vec![2; 40])]);
        old
    });
    let sorted = || {
        entries(300..1_200).prop_map(|mut load| {
            load.sort();
            load.dedup_by(|a, b| a.0 == b.0);
            load
        })
    };
    let others = prop::collection::vec(prop_oneof![sorted(), entries(0..300)], 0..3);
    let loads = (old, sorted(), others).prop_map(|(old, first, mut loads)| {
        loads.insert(0, first);
        (old, loads)
    });
    let (by_puts, in_order) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(24)
    });
    let outcome = runner.run(&loads, |(old, loads)| {
        // Only the first load, which no other load divides.
        let pages = put_both_ways(&old, &loads[..1]);
        if loads.len() > 1 {
            put_both_ways(&old, &loads);
        }
        in_order.set(in_order.get() + pages[0]);
        by_puts.set(by_puts.get() + pages[1]);
        Ok(())
    });
    outcome.unwrap();
    // Otherwise nothing was put side by side.
    let (in_order, by_puts) = (in_order.get(), by_puts.get());
    assert!(in_order < by_puts - by_puts / 20, "{in_order}, {by_puts} by puts");
}
