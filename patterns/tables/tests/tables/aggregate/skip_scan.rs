//! Skip scans: their results, and the numbers of their ranges and steps.

use std::collections::BTreeMap;
use std::ops::Deref;

use keyloom::key::Subspace;
use keyloom::{Entry, KeyRange, Memory, Metered, Order, Reader, Result, Store, Writer};
use keyloom_tables::{AnyParts, Explain, Grouping, Scan, Select, in_order, within};
use proptest::collection::vec;
use proptest::prelude::*;

use keyloom_testing::laws::{clear, long_property};

type Key = (String, u8, u16);

fn space() -> Subspace {
    Subspace::new("keys")
}

fn fill(store: &impl Store, keys: &[Key]) {
    clear(store);
    let space = space();
    store
        .transact(|txn| {
            // Neighbouring keys on both sides, which no scan may read.
            txn.put(&Subspace::new("key").pack(&("a", 1, 1)), b"")?;
            txn.put(&Subspace::new("keys\0").pack(&("a", 1, 1)), b"")?;
            keys.iter().try_for_each(|key| txn.put(&space.pack(key), b"value"))
        })
        .unwrap();
}

/// Groups of few or of many entries, mixed.
fn keys() -> impl Strategy<Value = Vec<Key>> {
    let word = prop::sample::select(vec!["", "a", "a\0", "a\0\u{FF}", "ab", "b"]);
    let run = (word, 0..4u8, 0..900u16, prop_oneof![1..4u16, 1..60u16]);
    let entries = |(word, part, from, len): (&str, u8, u16, u16)| {
        let word = word.to_owned();
        (from..from + len).map(move |n| (word.clone(), part, n)).collect::<Vec<_>>()
    };
    vec(run.prop_map(entries), 0..24).prop_map(|runs| {
        let mut keys = runs.concat();
        keys.sort();
        keys.dedup();
        keys
    })
}

fn decode<B: Deref<Target = [u8]>>(entry: Result<Entry<B>>) -> Key {
    let (key, value) = entry.unwrap();
    assert_eq!(&*value, b"value");
    space().unpack(&key).unwrap()
}

/// The group of a key in packed form, so that groups of any number of elements have one type.
fn group(key: &Key, elements: usize) -> Vec<u8> {
    let packed = space().pack(key);
    space().leading(&packed, elements).unwrap().to_vec()
}

/// Checks every scan over the keys in the selection.
fn scans_are_right(
    metered: &Metered<impl Store>,
    keys: &[Key],
    select: &dyn Fn() -> KeyRange<'static>,
    elements: usize,
    order: Order,
) {
    struct Range<'s>(&'s dyn Fn() -> KeyRange<'static>);
    impl Select for Range<'_> {
        fn key_range(&self, _: &Subspace) -> KeyRange<'static> {
            (self.0)()
        }
    }
    let snapshot = metered.snapshot().unwrap();
    let by = Grouping::new(&space(), elements);
    let selected: Vec<&Key> =
        keys.iter().filter(|key| select().contains(&space().pack(*key))).collect();
    let mut groups = BTreeMap::<Vec<u8>, Vec<Key>>::new();
    for key in &selected {
        groups.entry(group(key, elements)).or_default().push((*key).clone());
    }
    let ordered = |mut all: Vec<Key>| {
        if order == Order::Descending {
            all.reverse();
        }
        all
    };
    // The costs that a scan explains are those of the store.
    let told = |before: keyloom::Cost, explain: Explain, returned: usize| {
        let cost = metered.cost();
        let cost = [cost.ranges - before.ranges, cost.keys_read - before.keys_read];
        assert_eq!(cost, [explain.ranges, explain.keys_scanned]);
        assert_eq!(explain.keys_returned, returned as u64);
    };
    let firsts = ordered(groups.values().map(|group| group[0].clone()).collect());
    let before = metered.cost();
    let mut scan = by.first_of_each(&snapshot, in_order(Range(select), order)).unwrap();
    assert_eq!(scan.by_ref().map(decode).collect::<Vec<_>>(), firsts);
    told(before, scan.explain(), groups.len());

    let lasts = ordered(groups.values().map(|group| group[group.len() - 1].clone()).collect());
    let before = metered.cost();
    let mut scan = by.last_of_each(&snapshot, in_order(Range(select), order)).unwrap();
    assert_eq!(scan.by_ref().map(decode).collect::<Vec<_>>(), lasts);
    told(before, scan.explain(), groups.len());

    if elements == 1 {
        let words: Vec<String> = firsts.iter().map(|key| key.0.clone()).collect();
        let values = by.values::<_, String, _>(&snapshot, in_order(Range(select), order)).unwrap();
        assert_eq!(values.map(Result::unwrap).collect::<Vec<_>>(), words);
        for part in 0..5u8 {
            let found = selected.iter().filter(|key| key.1 == part).map(|key| (*key).clone());
            let found = ordered(found.collect());
            let before = metered.cost();
            let mut scan = by.in_each(&snapshot, in_order(Range(select), order), part).unwrap();
            assert_eq!(scan.by_ref().map(decode).collect::<Vec<_>>(), found);
            told(before, scan.explain(), found.len());
        }
    }
}

pub fn every_scan_finds_what_a_filter_over_all_keys_finds(store: &(impl Store + Clone)) {
    let metered = Metered::new(store.clone());
    long_property(keys(), |keys| {
        fill(store, &keys);
        let all = || space().self_and_children();
        let of_a = || space().child("a").self_and_children();
        let between =
            || Select::<AnyParts>::key_range(&within(("a", 1u8, 5u16)..=("ab", 2, 40)), &space());
        let selects: [&dyn Fn() -> KeyRange<'static>; 3] = [&all, &of_a, &between];
        for select in selects {
            for elements in 0..=3 {
                for order in [Order::Ascending, Order::Descending] {
                    scans_are_right(&metered, &keys, select, elements, order);
                }
            }
        }
    });
}

pub fn a_hundred_groups_cost_a_hundred_ranges_whatever_they_hold(store: &(impl Store + Clone)) {
    for of_each in [50u32, 1_000] {
        clear(store);
        let space = space();
        store
            .transact(|txn| {
                (0..100u32).try_for_each(|group| {
                    (0..of_each).try_for_each(|n| txn.put(&space.pack(&(group, n)), b""))
                })
            })
            .unwrap();
        let metered = Metered::new(store.clone());
        let snapshot = metered.snapshot().unwrap();
        let by = Grouping::new(&space, 1);
        for order in [Order::Ascending, Order::Descending] {
            let (found, cost) = metered.measure(|_| {
                by.values::<_, u32, _>(&snapshot, in_order(.., order)).unwrap().count()
            });
            // The first range, 99 skips, and one range that finds the end.
            assert_eq!((found, cost.ranges), (100, 101));
            assert!(cost.keys_read <= 400, "{cost}");
            let (found, cost) = metered
                .measure(|_| by.first_of_each(&snapshot, in_order(.., order)).unwrap().count());
            let most = if order == Order::Ascending { 101 } else { 201 };
            assert_eq!((found, cost.ranges), (100, most));
            assert!(cost.keys_read <= 500, "{cost}");
            let (found, cost) = metered
                .measure(|_| by.in_each(&snapshot, in_order(.., order), 7u32).unwrap().count());
            assert_eq!(found, 100);
            assert!(cost.ranges <= 202 && cost.keys_read <= 900, "{cost}");
        }
    }
}

#[test]
fn groups_of_few_entries_are_stepped_over() {
    let store = Metered::new(Memory::new());
    let space = space();
    store
        .transact(|txn| (0..1_000u32).try_for_each(|n| txn.put(&space.pack(&(n / 3, n)), b"")))
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let by = Grouping::new(&space, 1);
    let (found, cost) = store.measure(|_| by.values::<_, u32, _>(&snapshot, ..).unwrap().count());
    assert_eq!((found, cost.ranges, cost.keys_read), (334, 1, 1_000));
}

#[test]
fn long_groups_are_skipped_by_seeks_and_short_ones_by_steps() {
    let store = Metered::new(Memory::new());
    let space = space();
    let long = (0..50u32).flat_map(|group| (0..100u32).map(move |n| (group, n)));
    let short = (50..1_050u32).flat_map(|group| (0..3u32).map(move |n| (group, n)));
    store
        .transact(|txn| {
            long.clone().chain(short.clone()).try_for_each(|k| txn.put(&space.pack(&k), b""))
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let by = Grouping::new(&space, 1);
    let (found, cost) = store.measure(|_| by.values::<_, u32, _>(&snapshot, ..).unwrap().count());
    assert_eq!(found, 1_050);
    assert!(cost.ranges <= 60, "{cost}: eight short ones were sought before it was noticed");
    assert!(cost.keys_read <= 3_000 + 300, "{cost}");
}

/// A reader whose ranges fetch pages, like those of a remote store.
struct Paged<'r, R>(&'r R);

impl<R: Reader> Reader for Paged<'_, R> {
    type Bytes<'b>
        = R::Bytes<'b>
    where
        Self: 'b;
    type Entries<'b>
        = R::Entries<'b>
    where
        Self: 'b;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        self.0.get(key)
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        self.0.range(range, order)
    }

    fn prefetched(&self) -> usize {
        1_024
    }
}

#[test]
fn fetched_page_is_used_up_before_the_next_range_begins() {
    let store = Memory::new();
    let space = space();
    let by = Grouping::new(&space, 1);
    // Of short groups all pages of one range are read, which grow; long groups are sought.
    for (of_each, seeks) in [(100u32, 1), (2_000, 21)] {
        clear(&store);
        let groups = if of_each == 100 { 100u32 } else { 20 };
        store
            .transact(|txn| {
                (0..groups).try_for_each(|group| {
                    (0..of_each).try_for_each(|n| txn.put(&space.pack(&(group, n)), b""))
                })
            })
            .unwrap();
        let snapshot = store.snapshot().unwrap();
        let paged = Paged(&snapshot);
        let mut scan = by.values::<_, u32, _>(&paged, ..).unwrap();
        assert_eq!(scan.by_ref().count(), groups as usize);
        assert_eq!(scan.explain().ranges, seeks, "{}", scan.explain());
    }
}

#[test]
fn a_key_that_belongs_to_no_group_is_named_and_ends_the_scan() {
    let store = Memory::new();
    let space = space();
    store
        .transact(|txn| {
            txn.put(&space.pack(&("a", 1)), b"")?;
            txn.put(&space.pack(&("b",)), b"")?;
            txn.put(&space.pack(&("c", 1)), b"")
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let by = Grouping::new(&space, 2);
    let mut scan = by.first_of_each(&snapshot, ..).unwrap();
    assert!(scan.next().unwrap().is_ok());
    let error = scan.next().unwrap().unwrap_err();
    assert!(error.to_string().contains(r#"("keys", "b")"#), "{error}");
    assert!(scan.next().is_none());
    let mut scan = by.last_of_each(&snapshot, ..).unwrap();
    assert!(scan.next().unwrap().is_ok());
    assert!(scan.next().unwrap().is_err() && scan.next().is_none());
    let mut scan = by.in_each(&snapshot, .., 1).unwrap();
    assert!(scan.next().unwrap().is_err() && scan.next().is_none());
}
