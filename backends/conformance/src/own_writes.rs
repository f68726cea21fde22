//! A transaction sees its own writes, in every kind of read.

use super::compare::{
    Model, agree, agree_on_gets, agree_on_many, agree_within, blob, lies_between, many_keys,
    many_writes, plant,
};
use super::{Blob, Outcome};
use keyloom::{KeyRange, Reader, Store, Transaction, Writer};
use std::ops::Bound::{Excluded, Included};

const KEYS: [&[u8]; 6] = [b"a", b"aa", b"b", b"c", b"d", b"\xFF"];

/// Begins a transaction and applies `writes` one by one to it and to the model. Compares both after
/// each write, and once more after the commit.
macro_rules! compare_after_each {
    ($store:ident, $txn:ident, $model:ident: $($what:literal => $write:expr $(, $change:expr)?;)+) => {{
        let mut $model = plant($store, &KEYS)?;
        let mut $txn = $store.begin()?;
        agree("at the beginning", &$txn, &$model)?;
        $(
            $write?;
            $($change;)?
            agree(concat!("after ", $what), &$txn, &$model)?;
            agree_on_gets(concat!("after ", $what), &$txn, &$model, &KEYS)?;
            let part = KeyRange::new(Excluded(b"a"), Included(b"c\xFF"));
            let is_inside = |key: &[u8]| lies_between(key, Excluded(b"a"), Included(b"c\xFF"));
            agree_within(concat!("behind a, after ", $what), &$txn, &$model, &part, is_inside)?;
        )+
        $txn.commit()?;
        agree("after the commit", &$store.snapshot()?, &$model)
    }};
}

fn insert(model: &mut Model, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
    model.insert(blob(key), blob(value));
}

fn remove_between(model: &mut Model, start: &[u8], end: &[u8]) {
    model.retain(|key: &Blob, _| !(start <= &key[..] && &key[..] < end));
}

pub(super) fn a_transaction_sees_its_own_puts<S: Store>(store: &S) -> Outcome {
    compare_after_each! { store, txn, model:
        "a put between keys" => txn.put(b"ab", b"new"), insert(&mut model, b"ab", b"new");
        "a put before all keys" => txn.put(b"\x00", b"first"), insert(&mut model, b"\x00", b"first");
        "a put behind all keys" => txn.put(b"\xFF\xFF", b"last"), insert(&mut model, b"\xFF\xFF", b"last");
        "a put of another value" => txn.put(b"b", b"changed"), insert(&mut model, b"b", b"changed");
        "a put of an empty value" => txn.put(b"c", b""), insert(&mut model, b"c", b"");
    }
}

pub(super) fn a_transaction_sees_its_own_deletes<S: Store>(store: &S) -> Outcome {
    compare_after_each! { store, txn, model:
        "a delete" => txn.delete(b"b"), drop(model.remove(&b"b"[..]));
        "a delete of the first key" => txn.delete(b"a"), drop(model.remove(&b"a"[..]));
        "a delete of the last key" => txn.delete(b"\xFF"), drop(model.remove(&b"\xFF"[..]));
        "a delete of an absent key" => txn.delete(b"x");
        "a put of a deleted key" => txn.put(b"b", b"again"), insert(&mut model, b"b", b"again");
        "a put" => txn.put(b"ab", b"new"), insert(&mut model, b"ab", b"new");
        "a delete of what this transaction put" => txn.delete(b"ab"), drop(model.remove(&b"ab"[..]));
    }
}

pub(super) fn a_transaction_sees_its_own_range_deletes<S: Store>(store: &S) -> Outcome {
    compare_after_each! { store, txn, model:
        "a put" => txn.put(b"ab", b"new"), insert(&mut model, b"ab", b"new");
        "a range delete" => txn.delete_range(KeyRange::half_open(b"aa", b"c")),
            remove_between(&mut model, b"aa", b"c");
        "a put into the deleted range" => txn.put(b"b", b"again"), insert(&mut model, b"b", b"again");
        "a range delete of nothing" => txn.delete_range(KeyRange::half_open(b"x", b"y"));
        "a delete of everything" => txn.delete_range(KeyRange::all()), model.clear();
        "a put into nothing" => txn.put(b"b", b"alone"), insert(&mut model, b"b", b"alone");
    }
}

pub(super) fn a_transaction_sees_its_own_counters<S: Store>(store: &S) -> Outcome {
    let bytes = i64::to_le_bytes;
    compare_after_each! { store, txn, model:
        "an add" => txn.add(b"n", 3), insert(&mut model, b"n", bytes(3));
        "another add" => txn.add(b"n", -5), insert(&mut model, b"n", bytes(-2));
        "a min" => txn.min(b"n", 40), insert(&mut model, b"n", bytes(40));
        "a max" => txn.max(b"n", 41), insert(&mut model, b"n", bytes(41));
        "a put of a counter" => txn.put(b"n", &bytes(100)), insert(&mut model, b"n", bytes(100));
        "an add to what was put" => txn.add(b"n", 1), insert(&mut model, b"n", bytes(101));
        "a delete" => txn.delete(b"n"), drop(model.remove(&b"n"[..]));
        "an add to what was deleted" => txn.add(b"n", 7), insert(&mut model, b"n", bytes(7));
    }
}

pub(super) fn a_transaction_sees_only_the_last_of_its_writes_to_a_key<S: Store>(
    store: &S,
) -> Outcome {
    compare_after_each! { store, txn, model:
        "three puts" => (1..=3_u8).try_for_each(|n| txn.put(b"b", &[n])), insert(&mut model, b"b", [3]);
        "put and delete" => txn.put(b"c", b"x").and_then(|()| txn.delete(b"c")), drop(model.remove(&b"c"[..]));
        "delete and put" => txn.delete(b"d").and_then(|()| txn.put(b"d", b"y")), insert(&mut model, b"d", b"y");
    }
}

pub(super) fn a_transaction_sees_its_own_writes_to_prefetched_keys<S: Store>(store: &S) -> Outcome {
    let range_of_one = [KeyRange::single(b"c"), KeyRange::single(b"x")];
    compare_after_each! { store, txn, model:
        "a prefetch" => txn.prefetch(&[b"a", b"b", b"b", b"d", b"x"]);
        "a put over it" => txn.put(b"b", b"new"), insert(&mut model, b"b", b"new");
        "a put of an absent key" => txn.put(b"x", b"new"), insert(&mut model, b"x", b"new");
        "a delete" => txn.delete(b"d"), drop(model.remove(&b"d"[..]));
        "a prefetch of its own writes" => txn.prefetch(&[b"b", b"d", b"x"]);
        "a range delete" => txn.delete_range(KeyRange::half_open(b"a", b"aa")),
            remove_between(&mut model, b"a", b"aa");
        "ranges of one key" => txn.range_many(&range_of_one, 1).map(drop);
        "a put over one of them" => txn.put(b"c", b"new"), insert(&mut model, b"c", b"new");
        "a delete of the other" => txn.delete(b"x"), drop(model.remove(&b"x"[..]));
    }
}

pub(super) fn a_transaction_sees_its_own_sorted_puts<S: Store>(store: &S) -> Outcome {
    // Enough keys that a store may handle them as a batch, some between stored keys and some equal
    // to stored keys.
    let some = |from: u8| {
        let keys = (0..30_u8).map(move |n| ([b'c', from, n], vec![n; 10 * usize::from(n)]));
        keys.collect::<Vec<_>>()
    };
    let (first, second) = ([some(1), some(2), some(3)].concat(), [some(2), some(4)].concat());
    fn entries(of: &[([u8; 3], Vec<u8>)]) -> Vec<(&[u8], &[u8])> {
        of.iter().map(|(key, value)| (&key[..], &value[..])).collect()
    }
    let backwards: Vec<(&[u8], &[u8])> = vec![(b"e", b"1"), (b"da", b"2"), (b"e", b"3")];
    compare_after_each! { store, txn, model:
        "no entries" => txn.put_sorted(&[]);
        "entries between others" => txn.put_sorted(&entries(&first)),
            first.iter().for_each(|(key, value)| insert(&mut model, key, value));
        "entries that do not ascend" => txn.put_sorted(&backwards),
            backwards.iter().for_each(|(key, value)| insert(&mut model, key, value));
        "entries of which some are there" => txn.put_sorted(&entries(&second)),
            second.iter().for_each(|(key, value)| insert(&mut model, key, value));
    }
}

pub(super) fn a_transaction_sees_all_of_many_writes<S: Store>(store: &S) -> Outcome {
    let writes = many_writes(store);
    let keys = many_keys(writes);
    // Every second write is to a stored key, and every fifth write is a delete.
    let stored: Vec<_> = keys.iter().step_by(2).collect();
    let mut model = plant(store, &stored)?;
    let mut txn = store.begin()?;
    for (n, key) in keys.iter().enumerate() {
        match n % 5 {
            4 => {
                txn.delete(key)?;
                model.remove(&key[..]);
            }
            _ => {
                txn.put(key, b"own")?;
                insert(&mut model, key, b"own");
            }
        }
    }
    agree_on_many("in the transaction", &txn, &model)
}

pub(super) fn a_snapshot_read_sees_what_a_read_sees<S: Store>(store: &S) -> Outcome {
    let mut model = plant(store, &KEYS)?;
    let mut txn = store.begin()?;
    txn.put(b"ab", b"new")?;
    txn.delete(b"b")?;
    txn.delete_range(KeyRange::half_open(b"c", b"d"))?;
    insert(&mut model, b"ab", b"new");
    model.remove(&b"b"[..]);
    remove_between(&mut model, b"c", b"d");
    let mut outcome = Ok(());
    txn.snapshot_read(|txn| {
        outcome = agree("in a snapshot read", txn, &model)
            .and_then(|()| agree_on_gets("in a snapshot read", txn, &model, &KEYS));
        Ok(())
    })?;
    outcome?;
    agree("after a snapshot read", &txn, &model)?;
    txn.commit()?;
    agree("after the commit", &store.snapshot()?, &model)
}
