//! `get_many` and `range_many` return results in the requested order.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::compare::{
    FirstPage, MANY, Model, awkward_keys, blob, first_page, found, lies_between, many_keys, padded,
    plant, range_many, same, same_list,
};
use super::{Blob, Outcome};
use keyloom::{KeyRange, Reader, Store, Writer};

fn many<R: Reader>(reader: &R, keys: &[&[u8]]) -> Outcome<Vec<Option<Blob>>> {
    let values = reader.get_many(keys)?;
    Ok(values.into_iter().map(|value| value.map(|value| blob(&*value))).collect())
}

pub(super) fn get_many_answers_in_the_order_asked_with_absent_and_repeated_keys<S: Store>(
    store: &S,
) -> Outcome {
    plant(store, &[b"a", b"b", b"c"])?;
    let keys: [&[u8]; 8] = [b"c", b"a", b"x", b"b", b"a", b"x", b"c", b"aa"];
    let value = |value: &str| Some(blob(value));
    let expected =
        [value("vc"), value("va"), None, value("vb"), value("va"), None, value("vc"), None];
    same("in a snapshot", &many(&store.snapshot()?, &keys)?, &expected.to_vec())?;

    let mut txn = store.begin()?;
    same("in a transaction", &many(&txn, &keys)?, &expected.to_vec())?;
    txn.put(b"x", b"new")?;
    txn.delete(b"a")?;
    let expected =
        [value("vc"), None, value("new"), value("vb"), None, value("new"), value("vc"), None];
    same("after writes of its own", &many(&txn, &keys)?, &expected.to_vec())
}

pub(super) fn get_many_of_no_keys_is_empty<S: Store>(store: &S) -> Outcome {
    plant(store, &[b"a"])?;
    same("no keys", &many(&store.snapshot()?, &[])?, &Vec::new())
}

type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// Compares the results of `reader` for `bounds`, with limits from 0 to more than the number of
/// entries.
fn same_pages<R: Reader>(what: &str, reader: &R, model: &Model, bounds: &[Bounds<'_>]) -> Outcome {
    let ranges: Vec<KeyRange<'_>> =
        bounds.iter().map(|(start, end)| KeyRange::new(*start, *end)).collect();
    for limit in [0, 1, 2, 3, 7, model.len().saturating_sub(1), model.len(), 100] {
        let pages = bounds
            .iter()
            .map(|(start, end)| first_page(model, |key| lies_between(key, *start, *end), limit));
        let what = format!("{what}, at most {limit} entries");
        same(&what, &range_many(reader, &ranges, limit)?, &pages.collect())?;
    }
    Ok(())
}

pub(super) fn range_many_returns_the_page_of_each_range_in_the_order_asked<S: Store>(
    store: &S,
) -> Outcome {
    let model = plant(store, &awkward_keys())?;
    let long = padded(b"a", 0xFF, 600);
    let bounds: [Bounds<'_>; 14] = [
        // Later ranges before earlier ones, and a repeated range.
        (Included(b"b"), Excluded(b"c")),
        (Included(b"a"), Excluded(b"b")),
        (Included(b"b"), Excluded(b"c")),
        // Ranges that overlap or touch other ranges.
        (Unbounded, Unbounded),
        (Excluded(b"a"), Included(b"a\xFF")),
        (Excluded(b"a\xFF"), Excluded(b"b")),
        (Unbounded, Included(b"a")),
        (Excluded(b"\x80"), Unbounded),
        // Ranges without entries: absent keys, an end before its start, an empty end.
        (Included(b"x"), Excluded(b"y")),
        (Included(b"b"), Excluded(b"a")),
        (Included(b"b"), Excluded(b"b")),
        (Unbounded, Excluded(b"")),
        // Bounds that are not keys.
        (Included(b""), Included(&long)),
        (Included(&long), Unbounded),
    ];
    same_pages("in a snapshot", &store.snapshot()?, &model, &bounds)?;
    same_pages("in a transaction", &store.begin()?, &model, &bounds)?;
    for bounds in &bounds {
        let alone = [*bounds];
        same_pages(&format!("only {bounds:?}"), &store.snapshot()?, &model, &alone)?;
    }
    Ok(())
}

pub(super) fn range_many_sees_the_writes_of_its_transaction<S: Store>(store: &S) -> Outcome {
    let keys: Vec<[u8; 2]> = (0..60_u8).map(|n| [b'a' + n / 10, b'0' + n % 10]).collect();
    let mut model = plant(store, &keys)?;
    let mut txn = store.begin()?;
    // The first key of `a`, the first keys of `b`, every second key of `c`, all keys of `d`.
    let deleted = ["a0", "b0", "b1", "b2", "b3", "c1", "c3", "c5", "c7", "c9"];
    for key in deleted {
        txn.delete(key.as_bytes())?;
        model.remove(key.as_bytes());
    }
    txn.delete_range(KeyRange::prefix(b"d"))?;
    txn.delete_range(KeyRange::half_open(b"e2", b"e8"))?;
    model.retain(|key, _| {
        !key.starts_with(b"d") && !lies_between(key, Included(b"e2"), Excluded(b"e8"))
    });
    // New keys before, between and after the others, an existing key, and a key in a deleted range.
    for key in ["a", "a00", "a99", "b2", "d5", "e5", "f3", "g1", "g2"] {
        txn.put(key.as_bytes(), b"own")?;
        model.insert(blob(key), blob("own"));
    }
    let prefixes = [b"g", b"f", b"e", b"d", b"c", b"b", b"a", b"h", b"d"];
    let ends = prefixes.map(|[letter]| [letter + 1]);
    let mut bounds: Vec<Bounds<'_>> = prefixes
        .iter()
        .zip(&ends)
        .map(|(start, end)| (Included(&start[..]), Excluded(&end[..])))
        .collect();
    bounds.extend([(Unbounded, Unbounded), (Excluded(&b"b9"[..]), Included(&b"d5"[..]))]);
    same_pages("after writes of its own", &txn, &model, &bounds)
}

/// More keys than a remote store puts into one request, from the last key to the first.
pub(super) fn get_many_of_many_keys_returns_as_many_values<S: Store>(store: &S) -> Outcome {
    let keys = many_keys(MANY);
    let stored: Vec<_> = keys.iter().filter(|key| key[3] % 7 == 0).collect();
    let model = plant(store, &stored)?;
    let asked: Vec<&[u8]> = keys.iter().rev().map(|key| &key[..]).collect();
    let right: Vec<_> = asked.iter().map(|key| model.get(*key).cloned()).collect();
    same_list("in a snapshot", &many(&store.snapshot()?, &asked)?, &right)
}

/// More ranges than a remote store puts into one request.
pub(super) fn range_many_of_many_ranges_returns_as_many_pages<S: Store>(store: &S) -> Outcome {
    const RANGES: u32 = 12_000;
    let key = |n: u32| n.to_be_bytes();
    let keys: Vec<[u8; 4]> = (0..RANGES).filter(|n| n % 7 == 0).map(key).collect();
    plant(store, &keys)?;
    // From the last range to the first. Each range covers three possible keys, and every seventh
    // possible key exists.
    let bounds: Vec<([u8; 4], [u8; 4])> = (0..RANGES).rev().map(|n| (key(n), key(n + 3))).collect();
    let ranges: Vec<KeyRange<'_>> =
        bounds.iter().map(|(start, end)| KeyRange::half_open(start, end)).collect();
    let inside = |n: u32| (n..(n + 3).min(RANGES)).find(|n| n % 7 == 0);
    let right: Vec<Option<Blob>> =
        (0..RANGES).rev().map(|n| inside(n).map(|n| blob(key(n)))).collect();
    let snapshot = store.snapshot()?;
    let pages = range_many(&snapshot, &ranges, 2)?;
    let key_of = |(mut entries, last): FirstPage| match (entries.pop(), entries.is_empty(), last) {
        (one, true, None) => Ok(one.map(|(key, _)| key)),
        _ => found("a page has several entries, or more behind it"),
    };
    let seen = pages.into_iter().map(key_of).collect::<Outcome<Vec<_>>>()?;
    same_list("the key of each page", &seen, &right)
}

pub(super) fn range_many_of_no_ranges_is_empty<S: Store>(store: &S) -> Outcome {
    plant(store, &[b"a"])?;
    same("no ranges", &range_many(&store.snapshot()?, &[], 5)?, &Vec::new())?;
    same("in a transaction", &range_many(&store.begin()?, &[], 5)?, &Vec::new())
}
