//! Keys are in unsigned lexicographic order.

use super::Outcome;
use super::compare::{BOTH_ORDERS, awkward_keys, blob, plant, same, walk};
use keyloom::{KeyRange, Order, Reader, Store};

fn keys_in_order<R: Reader>(reader: &R, order: Order) -> Outcome<Vec<super::Blob>> {
    Ok(walk(reader, KeyRange::all(), order)?.into_iter().map(|(key, _)| key).collect())
}

pub(super) fn keys_come_in_the_order_of_unsigned_bytes<S: Store>(store: &S) -> Outcome {
    let keys = [&b"\x01"[..], b"\x7F", b"\x80", b"\x80\x7F", b"\x80\x80", b"\xFF", b"\xFF\x01"];
    plant(store, &keys)?;
    let mut expected: Vec<_> = keys.iter().map(blob).collect();
    for order in BOTH_ORDERS {
        same(&format!("{order:?}"), &keys_in_order(&store.snapshot()?, order)?, &expected)?;
        same(&format!("{order:?}"), &keys_in_order(&store.begin()?, order)?, &expected)?;
        expected.reverse();
    }
    Ok(())
}

pub(super) fn a_key_comes_before_the_keys_that_continue_it<S: Store>(store: &S) -> Outcome {
    let keys = [&b"a"[..], b"a\x00", b"a\x00\x00", b"a\x01", b"aa", b"aaa", b"ab", b"b"];
    plant(store, &keys)?;
    let expected: Vec<_> = keys.iter().map(blob).collect();
    same("ascending", &keys_in_order(&store.snapshot()?, Order::Ascending)?, &expected)
}

pub(super) fn the_order_of_writing_does_not_matter<S: Store>(store: &S) -> Outcome {
    let mut expected = awkward_keys();
    let (front, back) = expected.split_at(expected.len() / 2);
    let shuffled: Vec<_> = back.iter().rev().zip(front).flat_map(|(a, b)| [a, b]).collect();
    plant(store, &shuffled)?;
    expected.sort();
    same("ascending", &keys_in_order(&store.snapshot()?, Order::Ascending)?, &expected)
}
