//! The range algebra, compared with its definitions, key by key.
//!
//! The universe is every byte string of up to four bytes over an alphabet of critical bytes: the
//! smallest and the largest, their neighbours, and an ordinary one.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use keyloom::{KeyRange, MAX_KEY_BYTES, Order, prefix_end, successor};
use proptest::prelude::*;

const ALPHABET: [u8; 5] = [0x00, 0x01, 0x61, 0xFE, 0xFF];

/// All strings of up to `max` bytes over the alphabet, including the empty one, in order.
fn strings(max: usize) -> Vec<Vec<u8>> {
    let mut all = vec![vec![]];
    let mut from = 0;
    for _ in 0..max {
        let until = all.len();
        for i in from..until {
            all.extend(ALPHABET.map(|byte| [&all[i][..], &[byte]].concat()));
        }
        from = until;
    }
    all.sort();
    all
}

/// All keys that a store may contain.
fn keys() -> Vec<Vec<u8>> {
    strings(4).split_off(1)
}

/// Checks that the range contains exactly these keys, by `contains` and by its normalized bounds.
fn assert_holds(range: &KeyRange<'_>, keys: &[Vec<u8>], holds: impl Fn(&[u8]) -> bool, what: &str) {
    for key in keys {
        assert_eq!(range.contains(key), holds(key), "{what}: {key:02X?} in {range:02X?}");
    }
}

/// The keys that a backend finds with the normalized bounds.
fn selected<'s>(range: &KeyRange<'_>, store: &'s BTreeSet<Vec<u8>>) -> Vec<&'s Vec<u8>> {
    match range.normalized() {
        Some(bounds) => store.range::<[u8], _>(bounds).collect(),
        None => vec![],
    }
}

fn assert_normalized(range: &KeyRange<'_>, store: &BTreeSet<Vec<u8>>) {
    let expected: Vec<_> = store.iter().filter(|key| range.contains(key)).collect();
    assert_eq!(selected(range, store), expected, "{range:02X?}");
    for bound in range.normalized().into_iter().flat_map(|(start, end)| [start, end]) {
        if let Included(bytes) | Excluded(bytes) = bound {
            assert!((1..=MAX_KEY_BYTES).contains(&bytes.len()), "{range:02X?}");
        }
    }
}

/// All kinds of bounds at `bytes`.
fn bounds(bytes: &[u8]) -> [Bound<&[u8]>; 3] {
    [Included(bytes), Excluded(bytes), Unbounded]
}

fn within(key: &[u8], start: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    (match start {
        Included(start) => start <= key,
        Excluded(start) => start < key,
        Unbounded => true,
    }) && match end {
        Included(end) => key <= end,
        Excluded(end) => key < end,
        Unbounded => true,
    }
}

#[test]
fn each_range_of_one_argument_holds_what_it_says() {
    let keys = keys();
    for a in &strings(3) {
        let a = &a[..];
        let continues = |key: &[u8], least: usize| {
            key.strip_prefix(a)
                .is_some_and(|rest| rest.len() >= least && rest.first() != Some(&0xFF))
        };
        assert_holds(&KeyRange::single(a), &keys, |key| key == a, "single");
        assert_holds(&KeyRange::starting_at(a), &keys, |key| key >= a, "starting_at");
        assert_holds(&KeyRange::prefix(a), &keys, |key| key.starts_with(a), "prefix");
        assert_holds(&KeyRange::children(a), &keys, |key| continues(key, 1), "children");
        assert_holds(
            &KeyRange::self_and_children(a),
            &keys,
            |key| continues(key, 0),
            "self_and_children",
        );
        let packed = [a, &[0x00]].concat();
        assert_holds(
            &KeyRange::string_prefix(&packed),
            &keys,
            |key| key.starts_with(a),
            "string_prefix",
        );
        assert_holds(&KeyRange::through(a), &keys, |key| key <= a || continues(key, 0), "through");
        assert_holds(&KeyRange::behind(a), &keys, |key| key > a && !continues(key, 0), "behind");
        for (order, up_to, rest) in [
            (Order::Ascending, (|key, a| key <= a) as fn(&[u8], &[u8]) -> bool, "up_to"),
            (Order::Descending, |key, a| key >= a, "down_to"),
        ] {
            assert_holds(&KeyRange::all().up_to(order, a), &keys, |key| up_to(key, a), rest);
            let left = KeyRange::all().resume(order, a);
            assert_holds(&left, &keys, |key| !up_to(key, a), "resume is the rest of it");
        }
        let [upper, lower] = [KeyRange::prefix(a).and_before(), KeyRange::prefix(a).and_behind()];
        assert_holds(&upper, &keys, |key| key < a || key.starts_with(a), "and_before");
        assert_holds(&lower, &keys, |key| key >= a, "and_behind");
        assert_holds(&KeyRange::all().after(a), &keys, |key| key > a, "after");
        assert_holds(&KeyRange::all().before(a), &keys, |key| key < a, "before");
    }
    assert_holds(&KeyRange::all(), &keys, |_| true, "all");
}

#[test]
fn normalized_bounds_select_what_the_range_contains() {
    let store: BTreeSet<_> = strings(2).into_iter().skip(1).collect();
    let arguments = strings(2);
    for a in &arguments {
        for range in [
            KeyRange::single(a),
            KeyRange::starting_at(a),
            KeyRange::prefix(a),
            KeyRange::children(a),
            KeyRange::self_and_children(a),
            KeyRange::string_prefix(a),
            KeyRange::through(a),
            KeyRange::behind(a),
        ] {
            assert_normalized(&range, &store);
            assert_normalized(&range.into_owned(), &store);
        }
        for b in &arguments {
            for (start, end) in bounds(a).into_iter().flat_map(|s| bounds(b).map(|e| (s, e))) {
                let range = KeyRange::new(start, end);
                assert_normalized(&range, &store);
                for key in &store {
                    assert_eq!(range.contains(key), within(key, start, end));
                }
            }
            assert_normalized(&KeyRange::half_open(a, b), &store);
        }
    }
}

#[test]
fn bounds_around_the_longest_key_select_what_the_range_contains() {
    let lengths = 510..=513;
    let long: Vec<Vec<u8>> = lengths
        .flat_map(|len| {
            ALPHABET.into_iter().flat_map(move |last| {
                [0x00, 0x61, 0xFF].map(|fill| [vec![fill; len - 1], vec![last]].concat())
            })
        })
        .collect();
    let store: BTreeSet<_> =
        long.iter().filter(|key| key.len() <= MAX_KEY_BYTES).cloned().chain(keys()).collect();
    for a in &long {
        for range in [
            KeyRange::single(a),
            KeyRange::starting_at(a),
            KeyRange::prefix(a),
            KeyRange::children(a),
            KeyRange::self_and_children(a),
            KeyRange::string_prefix(a),
            KeyRange::all().after(a),
            KeyRange::all().before(a),
        ] {
            assert_normalized(&range, &store);
        }
    }
    let few: BTreeSet<_> = store.into_iter().filter(|key| key.len() != 4).collect();
    for (a, b) in long.iter().step_by(2).flat_map(|a| long.iter().step_by(3).map(move |b| (a, b))) {
        for (start, end) in bounds(a).into_iter().flat_map(|s| bounds(b).map(|e| (s, e))) {
            assert_normalized(&KeyRange::new(start, end), &few);
        }
    }
}

#[test]
fn nothing_lies_between_a_key_and_its_successor() {
    let keys = keys();
    for key in &strings(3) {
        let next = successor(key);
        assert!(next[..] > key[..]);
        assert!(!keys.iter().any(|other| other > key && other[..] < next[..]));
    }
}

#[test]
fn the_end_of_a_prefix_is_the_smallest_string_after_it() {
    let keys = keys();
    for prefix in &strings(3) {
        let behind = keys.iter().filter(|key| *key > prefix && !key.starts_with(prefix));
        match prefix_end(prefix) {
            Some(end) => {
                assert!(end[..] > prefix[..] && !end.starts_with(prefix));
                assert!(behind.min().is_none_or(|least| least[..] >= end[..]));
            }
            None => assert_eq!(behind.count(), 0),
        }
    }
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    let bytes = proptest::collection::vec(proptest::sample::select(ALPHABET.to_vec()), 0..4);
    prop_oneof![2 => bytes.clone().prop_map(Included), 2 => bytes.prop_map(Excluded), 1 => Just(Unbounded)]
}

fn as_range((start, end): &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> KeyRange<'_> {
    KeyRange::new(start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn an_intersection_holds_what_both_hold(a in (bound(), bound()), b in (bound(), bound())) {
        let both = as_range(&a).intersect(as_range(&b));
        let store: BTreeSet<_> = strings(3).into_iter().skip(1).collect();
        for key in &store {
            let expected = as_range(&a).contains(key) && as_range(&b).contains(key);
            prop_assert_eq!(both.contains(key), expected);
        }
        assert_normalized(&both, &store);
    }

    #[test]
    fn pages_neither_skip_nor_repeat(
        bounds in (bound(), bound()),
        stored in proptest::collection::btree_set(proptest::sample::select(keys()), 0..40),
        page in 1..5_usize,
        descending in any::<bool>(),
    ) {
        let range = as_range(&bounds);
        let mut expected: Vec<_> = stored.iter().filter(|key| range.contains(key)).cloned().collect();
        let order = if descending { Order::Descending } else { Order::Ascending };
        if descending {
            expected.reverse();
        }
        let mut walked: Vec<Vec<u8>> = vec![];
        loop {
            let last = walked.last().cloned();
            let rest = match &last {
                Some(last) => range.clone().resume(order, last),
                None => range.clone(),
            };
            let mut found = selected(&rest, &stored);
            if descending {
                found.reverse();
            }
            // A traversal without progress ends as well.
            if found.is_empty() || walked.len() > expected.len() {
                break;
            }
            walked.extend(found.into_iter().take(page).cloned());
        }
        prop_assert_eq!(walked, expected);
    }
}

/// The control: a common hand-written prefix range, and the keys that it loses.
#[test]
fn the_definitions_catch_a_prefix_that_ends_at_ff() {
    let prefix = [0x61];
    let by_hand = KeyRange::half_open(&prefix, &[0x61, 0xFF]);
    let lost: Vec<_> = keys()
        .into_iter()
        .filter(|key| key.starts_with(&prefix) != by_hand.contains(key))
        .collect();
    assert!(lost.contains(&vec![0x61, 0xFF, 0xFF]), "{lost:02X?}");
    assert!(lost.iter().all(|key| KeyRange::prefix(&prefix).contains(key)));
}
