//! Estimates, divisions of ranges, and reads on several threads.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use keyloom::{Error, Faulty, KeyRange, Memory, Order, Reader, Result, Store, Writer, pack};
use keyloom_kit::{in_parallel, sample, split};
use proptest::collection::{btree_set, vec};
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::{prop_assert, prop_assert_eq, proptest};

fn filled(keys: impl IntoIterator<Item = Vec<u8>>) -> Memory {
    let store = Memory::new();
    let keys: BTreeSet<_> = keys.into_iter().collect();
    store.transact(|txn| keys.iter().try_for_each(|key| txn.put(key, key))).unwrap();
    store
}

fn keys(reader: &impl Reader, range: KeyRange<'_>) -> Result<Vec<Vec<u8>>> {
    reader.range(range, Order::Ascending)?.map(|entry| Ok(entry?.0.to_vec())).collect()
}

/// Keys that are prefixes and extensions of each other.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![proptest::sample::select(vec![0, 1, b'a', 0xFE, 0xFF]), any::<u8>()];
    prop_oneof![vec(byte, 1..6), vec(proptest::sample::select(vec![0, 0xFF]), 1..20)]
}

proptest! {
    #[test]
    fn parts_join_to_the_whole_range(
        found in btree_set(key(), 0..200),
        (from, to) in (key(), key()),
        parts in 1..20_usize,
    ) {
        let store = filled(found);
        let snapshot = store.snapshot().unwrap();
        for range in [KeyRange::all(), KeyRange::half_open(&from, &to), KeyRange::prefix(&from)] {
            let whole = keys(&snapshot, range.clone()).unwrap();
            let divided = split(&snapshot, &range, parts).unwrap();
            prop_assert!((1..=parts).contains(&divided.len()));
            let each = divided.iter().map(|part| keys(&snapshot, part.clone()).unwrap());
            prop_assert_eq!(&each.collect::<Vec<_>>().concat(), &whole);
            for threads in [0, 1, 2, 5] {
                let each = in_parallel(&store, range.clone(), threads, |snapshot, part| {
                    keys(snapshot, part)
                });
                prop_assert_eq!(&each.unwrap().concat(), &whole);
            }
        }
    }
}

/// The shapes of key spaces that a division must balance: ids, random bytes, decimal text, and a
/// few groups with most of the entries.
fn shapes() -> [(&'static str, Vec<Vec<u8>>); 4] {
    const ENTRIES: u64 = 50_000;
    let mut random = fastrand::Rng::with_seed(1);
    let mut bytes = || random.u128(..).to_be_bytes().to_vec();
    [
        ("ids", (0..ENTRIES).map(|n| pack(&n).to_vec()).collect()),
        ("random", (0..ENTRIES).map(|_| bytes()).collect()),
        ("text", (0..ENTRIES).map(|n| format!("user:{n}:name").into_bytes()).collect()),
        (
            "skewed",
            (0..ENTRIES)
                .map(|n| pack(&(if n % 10 == 0 { n % 1_000 } else { 7 }, n)).to_vec())
                .collect(),
        ),
    ]
}

#[test]
fn parts_have_similar_numbers_of_entries() {
    for (shape, keys) in shapes() {
        let all = keys.len() as u64;
        let store = filled(keys);
        let snapshot = store.snapshot().unwrap();
        for parts in [2, 8, 16] {
            let divided = split(&snapshot, &KeyRange::all(), parts).unwrap();
            let count = |part: &KeyRange<'_>| snapshot.count(part.clone()).unwrap();
            let most = divided.iter().map(count).max().unwrap();
            assert!(
                2 * most <= 5 * all / parts as u64,
                "{shape}: {most} of {all} in {parts} parts"
            );
        }
    }
}

#[test]
fn the_cost_of_a_division_does_not_grow_with_the_range() {
    let eight_times =
        ("eight times as many ids", (0..400_000_u64).map(|n| pack(&n).to_vec()).collect());
    for (shape, keys) in shapes().into_iter().chain([eight_times]) {
        let store = keyloom::Metered::new(filled(keys));
        let (_, cost) = store.measure(|store| {
            split(&store.snapshot().unwrap(), &KeyRange::all(), 16).map(drop).unwrap();
        });
        assert!(cost.ranges < 20_000 && cost.keys_read < 80_000, "{shape}: {cost:?}");
    }
}

#[test]
fn estimates_are_within_their_error() {
    for (shape, keys) in shapes() {
        let all = keys.len() as f64;
        let store = filled(keys);
        let found = sample(&store.snapshot().unwrap(), &KeyRange::all()).unwrap();
        let off = (found.entries - all).abs();
        // Four standard errors: a deviation with a probability of 1 in 15,000.
        assert!(off <= 4.0 * found.error + 0.01 * all, "{shape}: {found:?}");
        assert!(found.error < all / 4.0, "{shape}: {found:?}");
    }
}

#[test]
fn a_small_range_is_estimated_exactly() {
    let store = filled((0..100_u8).map(|n| vec![b'a', n]));
    let snapshot = store.snapshot().unwrap();
    let found = sample(&snapshot, &KeyRange::all()).unwrap();
    assert_eq!((found.entries, found.bytes, found.error), (100.0, 400.0, 0.0));
    assert_eq!(sample(&snapshot, &KeyRange::single(b"none")).unwrap().entries, 0.0);
}

/// Sums all accounts on several threads while another thread moves amounts between accounts.
fn sums_while_amounts_move(store: &Memory, sum: impl Fn() -> i64) -> bool {
    const ACCOUNTS: u64 = 10_000;
    store.transact(|txn| (0..ACCOUNTS).try_for_each(|n| txn.add(&pack(&n), 100))).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = fastrand::Rng::with_seed(2);
            while !is_over.load(Relaxed) {
                let [from, to] = [0; 2].map(|_: u8| pack(&random.u64(..ACCOUNTS)));
                let moved = store.transact(|txn| {
                    txn.add(&from, -5)?;
                    txn.add(&to, 5)
                });
                moved.unwrap();
            }
        });
        let is_right = (0..15).all(|_| sum() == 100 * ACCOUNTS.cast_signed());
        is_over.store(true, Relaxed);
        is_right
    })
}

fn sum_of(reader: &impl Reader, part: KeyRange<'_>) -> Result<i64> {
    let mut sum = 0;
    for entry in reader.range(part, Order::Ascending)? {
        sum += i64::from_le_bytes((*entry?.1).try_into().unwrap());
    }
    Ok(sum)
}

#[test]
fn threads_read_one_state_while_others_write() {
    let store = Memory::new();
    assert!(sums_while_amounts_move(&store, || {
        let sums = in_parallel(&store, KeyRange::all(), 3, |snapshot, part| sum_of(snapshot, part));
        sums.unwrap().into_iter().sum()
    }));
    // The control: parts of different states.
    let store = Memory::new();
    assert!(!sums_while_amounts_move(&store, || {
        let parts = split(&store.snapshot().unwrap(), &KeyRange::all(), 16).unwrap();
        let part = |part: KeyRange<'_>| {
            std::thread::sleep(std::time::Duration::from_micros(100));
            sum_of(&store.snapshot().unwrap(), part).unwrap()
        };
        parts.into_iter().map(part).sum()
    }));
}

#[test]
fn an_error_ends_the_work() {
    let store = filled((0..20_000_u32).map(|n| pack(&n).to_vec()));
    let begun = AtomicUsize::new(0);
    let failed = in_parallel(&store, KeyRange::all(), 2, |_, _| {
        begun.fetch_add(1, Relaxed);
        Err::<(), _>(Error::other("no"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "no");
    assert!(begun.load(Relaxed) <= 2, "one for each thread");
}

#[test]
fn a_fault_at_any_operation_is_an_error() {
    let store = Faulty::new(filled((0..3_000_u32).map(|n| pack(&n).to_vec())));
    let (mut failures, mut n) = (0, 0);
    loop {
        store.fail_at(n, keyloom::Fault::Error);
        let counted =
            in_parallel(&store, KeyRange::all(), 2, |snapshot, part| snapshot.count(part));
        store.clear_fault();
        match counted {
            Ok(counts) => {
                assert_eq!(counts.iter().sum::<u64>(), 3_000);
                break;
            }
            Err(_) => failures += 1,
        }
        // Each fault is an operation of the division or of one part.
        n += 1 + n / 10;
    }
    assert!(failures > 10, "{failures}");
}
