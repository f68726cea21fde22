//! A range contains the keys between its bounds, in both directions, for any bounds.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::compare::{
    BOTH_ORDERS, MANY, Model, agree_on_many, agree_within, awkward_keys, blob, expected,
    lies_between, many_keys, owned, padded, pages, plant, same, same_list, walk,
};
use super::values::longest_value;
use super::{Blob, Outcome};
use keyloom::{KeyRange, Order, Reader, Store, Writer};

/// Bounds for [`awkward_keys`]: keys, byte strings between keys, and invalid keys.
fn awkward_bounds() -> Vec<Blob> {
    let short: [&[u8]; 13] = [
        b"",
        b"\x00",
        b"\x00\x01",
        b"a",
        b"a\x00",
        b"a\x01",
        b"a\xFF",
        b"a\xFF\xFF",
        b"b",
        b"\x80",
        b"\xFE",
        b"\xFF",
        b"\xFF\xFF",
    ];
    let long = [
        padded(b"a", 0x00, 511),
        padded(b"a", 0x00, 512),
        padded(b"a", 0xFF, 511),
        padded(b"a", 0xFF, 512),
        padded(b"a", 0xFF, 600),
        padded(b"", 0xFF, 511),
        padded(b"", 0xFF, 600),
    ];
    short.iter().map(blob).chain(long).collect()
}

fn every_pair<R: Reader>(reader: &R, model: &Model) -> Outcome {
    let bytes = awkward_bounds();
    let bounds: Vec<Bound<&[u8]>> = bytes
        .iter()
        .flat_map(|bytes| [Included(&bytes[..]), Excluded(&bytes[..])])
        .chain([Unbounded])
        .collect();
    for &start in &bounds {
        for &end in &bounds {
            for order in BOTH_ORDERS {
                let right = expected(model, |key| lies_between(key, start, end), order);
                let seen = walk(reader, KeyRange::new(start, end), order)?;
                if seen != right {
                    let (start, end) = (start.map(Blob::from), end.map(Blob::from));
                    same(&format!("{start:?} to {end:?}, {order:?}"), &seen, &right)?;
                }
            }
        }
    }
    Ok(())
}

pub(super) fn every_pair_of_bounds_holds_what_lies_between_in_a_snapshot<S: Store>(
    store: &S,
) -> Outcome {
    let model = plant(store, &awkward_keys())?;
    every_pair(&store.snapshot()?, &model)
}

pub(super) fn every_pair_of_bounds_holds_what_lies_between_in_a_transaction<S: Store>(
    store: &S,
) -> Outcome {
    let model = plant(store, &awkward_keys())?;
    every_pair(&store.begin()?, &model)
}

pub(super) fn a_prefix_holds_the_keys_that_continue_it_with_ff<S: Store>(store: &S) -> Outcome {
    let model = plant(store, &awkward_keys())?;
    let snapshot = store.snapshot()?;
    let long = padded(b"a", 0xFF, 511);
    let prefixes: [&[u8]; 9] =
        [b"", b"\x00", b"a", b"a\xFF", b"a\xFF\xFF", b"\xFE", b"\xFF", b"\xFF\xFF", &long];
    for prefix in prefixes {
        let what = format!("prefix {:?}", blob(prefix));
        let range = KeyRange::prefix(prefix);
        agree_within(&what, &snapshot, &model, &range, |key| key.starts_with(prefix))?;
    }
    Ok(())
}

pub(super) fn an_excluded_bound_is_outside_and_an_included_one_inside<S: Store>(
    store: &S,
) -> Outcome {
    let model = plant(store, &[b"a", b"b", b"c", b"d"])?;
    type Case = (Bound<&'static [u8]>, Bound<&'static [u8]>, &'static [u8]);
    let cases: [Case; 7] = [
        (Included(b"b"), Included(b"c"), b"bc"),
        (Included(b"b"), Excluded(b"c"), b"b"),
        (Excluded(b"b"), Included(b"c"), b"c"),
        (Excluded(b"b"), Excluded(b"c"), b""),
        (Excluded(b"a"), Unbounded, b"bcd"),
        (Unbounded, Excluded(b"d"), b"abc"),
        (Included(b"b"), Included(b"b"), b"b"),
    ];
    for (start, end, inside) in cases {
        let what = format!("{:?} to {:?}", start.map(Blob::from), end.map(Blob::from));
        let range = KeyRange::new(start, end);
        let is_inside = |key: &[u8]| key.iter().all(|byte| inside.contains(byte));
        agree_within(&what, &store.snapshot()?, &model, &range, is_inside)?;
        agree_within(&what, &store.begin()?, &model, &range, is_inside)?;
    }
    Ok(())
}

pub(super) fn bounds_that_are_no_keys_are_ordinary<S: Store>(store: &S) -> Outcome {
    let model = plant(store, &awkward_keys())?;
    let snapshot = store.snapshot()?;
    let (long, longer) = (padded(b"a", 0x00, 512), padded(b"a", 0xFF, 600));
    let cases: [(&str, (Bound<&[u8]>, Bound<&[u8]>)); 6] = [
        ("from the empty bound", (Included(b""), Unbounded)),
        ("behind the empty bound", (Excluded(b""), Unbounded)),
        ("from 512 bytes", (Included(&long), Unbounded)),
        ("up to 512 bytes", (Unbounded, Included(&long))),
        ("behind 600 bytes", (Excluded(&longer), Unbounded)),
        ("before 600 bytes", (Unbounded, Excluded(&longer))),
    ];
    for (what, (start, end)) in cases {
        let range = KeyRange::new(start, end);
        agree_within(what, &snapshot, &model, &range, |key| lies_between(key, start, end))?;
    }
    Ok(())
}

pub(super) fn ranges_that_can_hold_nothing_are_empty<S: Store>(store: &S) -> Outcome {
    plant(store, &awkward_keys())?;
    let snapshot = store.snapshot()?;
    let ranges = [
        ("start behind end", KeyRange::half_open(b"b", b"a")),
        ("equal bounds, one excluded", KeyRange::half_open(b"a", b"a")),
        ("equal bounds, both excluded", KeyRange::new(Excluded(b"a"), Excluded(b"a"))),
        ("up to the empty key", KeyRange::new(Unbounded, Included(b""))),
        ("before the empty key", KeyRange::new(Unbounded, Excluded(b""))),
        ("between neighbours", KeyRange::new(Excluded(b"a"), Excluded(b"a\x00"))),
    ];
    for (what, range) in ranges {
        agree_within(what, &snapshot, &Model::new(), &range, |_| false)?;
    }
    Ok(())
}

/// A store that fetches ranges in parts begins the next part at the successor of the last key. The
/// successor is the key with a zero byte appended. In this check, the successor of each key is a
/// key too, except for the longest keys.
pub(super) fn a_long_range_holds_the_successor_of_each_key<S: Store>(store: &S) -> Outcome {
    let chain = |first: u8| (0..400).map(move |zeros| [&[first][..], &vec![0; zeros]].concat());
    let keys: Vec<Vec<u8>> = (1..=4).flat_map(chain).collect();
    let model = plant(store, &keys)?;
    for order in BOTH_ORDERS {
        let all = expected(&model, |_| true, order);
        same(
            &format!("{order:?}, in a snapshot"),
            &walk(&store.snapshot()?, KeyRange::all(), order)?,
            &all,
        )?;
        same(
            &format!("{order:?}, in a transaction"),
            &walk(&store.begin()?, KeyRange::all(), order)?,
            &all,
        )?;
    }
    Ok(())
}

pub(super) fn a_range_over_many_keys_leaves_none_out<S: Store>(store: &S) -> Outcome {
    let model = plant(store, &many_keys(MANY))?;
    let snapshot = store.snapshot()?;
    agree_on_many("in a snapshot", &snapshot, &model)?;
    agree_on_many("in a transaction", &store.begin()?, &model)?;
    for (start, end) in [(0, 1), (255, 257), (1_000, 2_000), (100, 100), (5_000, MANY)] {
        let (low, high) = (u32::to_be_bytes(start), u32::to_be_bytes(end));
        let seen = snapshot.count(KeyRange::half_open(&low, &high))?;
        same(&format!("keys from {start} to {end}"), &seen, &u64::from(end - start))?;
    }
    for order in BOTH_ORDERS {
        let paged = pages(&snapshot, &KeyRange::all(), order, 7_000)?;
        same_list(&format!("{order:?}, in pages"), &paged, &expected(&model, |_| true, order))?;
        let end = match order {
            Order::Ascending => snapshot.first(KeyRange::all())?,
            Order::Descending => snapshot.last(KeyRange::all())?,
        };
        let first = expected(&model, |_| true, order).into_iter().next();
        same(&format!("{order:?}, the first entry"), &end.map(owned), &first)?;
    }
    Ok(())
}

/// A store that fetches ranges in parts may limit a part by its bytes.
pub(super) fn a_range_over_large_values_leaves_none_out<S: Store>(store: &S) -> Outcome {
    const ALL_BYTES: usize = 24 << 20;
    let longest = longest_value(store.limits()).min(400_000);
    let mut model = Model::new();
    for n in 0..u32::try_from(ALL_BYTES / longest).unwrap_or(u32::MAX).min(1_000) {
        let value = vec![n as u8; longest];
        store.transact(|txn| txn.put(&n.to_be_bytes(), &value))?;
        model.insert(blob(n.to_be_bytes()), value.into());
    }
    agree_on_many("in a snapshot", &store.snapshot()?, &model)?;
    agree_on_many("in a transaction", &store.begin()?, &model)
}
