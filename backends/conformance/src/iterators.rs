//! An iterator that has ended stays ended, and does not affect other iterators.

use super::Outcome;
use super::compare::{BOTH_ORDERS, expected, found, get, owned, plant, same, same_list};
use keyloom::{KeyRange, Order, Reader, Store, Writer};

const KEYS: [&[u8]; 6] = [b"a", b"aa", b"b", b"c", b"d", b"e"];

fn stays_ended<R: Reader>(reader: &R) -> Outcome {
    type Named = (&'static str, fn() -> KeyRange<'static>);
    let ranges: [Named; 6] = [
        ("everything", KeyRange::all),
        ("up to c", || KeyRange::half_open(b"", b"c")),
        ("b to d", || KeyRange::half_open(b"b", b"d")),
        ("an empty range", || KeyRange::half_open(b"d", b"b")),
        ("between keys", || KeyRange::half_open(b"ca", b"cb")),
        ("behind the last key", || KeyRange::starting_at(b"f")),
    ];
    for (what, range) in ranges {
        for order in BOTH_ORDERS {
            let mut entries = reader.range(range(), order)?;
            for entry in entries.by_ref().take(KEYS.len()) {
                entry?;
            }
            for _ in 0..4 {
                if let Some(entry) = entries.next() {
                    let (key, _) = owned(entry?);
                    return found(format!("{what}, {order:?}: {key:?} came after the end"));
                }
            }
        }
    }
    Ok(())
}

pub(super) fn an_iterator_that_ended_stays_ended<S: Store>(store: &S) -> Outcome {
    stays_ended(&store.snapshot()?)?;
    plant(store, &KEYS)?;
    stays_ended(&store.snapshot()?)?;
    let mut txn = store.begin()?;
    stays_ended(&txn)?;
    txn.put(b"c", b"changed")?;
    stays_ended(&txn)
}

fn side_by_side<R: Reader>(reader: &R, model: &super::compare::Model) -> Outcome {
    let up = || reader.range(KeyRange::all(), Order::Ascending);
    let down = || reader.range(KeyRange::all(), Order::Descending);
    let (mut one, mut two, mut three) = (up()?, down()?, up()?);
    let mut seen = [Vec::new(), Vec::new(), Vec::new()];
    let [first, second, third] = &mut seen;
    // The third iterator advances at half the speed, so that all three are at different keys.
    for step in 0..2 * KEYS.len() {
        first.extend(one.next().transpose()?.map(owned));
        second.extend(two.next().transpose()?.map(owned));
        if step % 2 == 0 {
            third.extend(three.next().transpose()?.map(owned));
        }
        // An iterator that is dropped before its end.
        down()?.next().transpose()?;
    }
    let rising = expected(model, |_| true, Order::Ascending);
    let falling = expected(model, |_| true, Order::Descending);
    same("three at once", &seen, &[rising.clone(), falling, rising])
}

pub(super) fn iterators_side_by_side_do_not_disturb_each_other<S: Store>(store: &S) -> Outcome {
    let mut model = plant(store, &KEYS)?;
    side_by_side(&store.snapshot()?, &model)?;
    let mut txn = store.begin()?;
    txn.delete(b"aa")?;
    model.remove(&b"aa"[..]);
    side_by_side(&txn, &model)
}

fn reading_between<R: Reader>(reader: &R, model: &super::compare::Model) -> Outcome {
    for order in BOTH_ORDERS {
        let mut seen = Vec::new();
        for entry in reader.range(KeyRange::all(), order)? {
            let (key, value) = owned(entry?);
            same(
                "get of the key that the iterator is at",
                &get(reader, &key)?,
                &Some(value.clone()),
            )?;
            get(reader, b"absent")?;
            reader.first(KeyRange::all())?;
            reader.last(KeyRange::all())?;
            seen.push((key, value));
        }
        same_list(&format!("{order:?}"), &seen, &expected(model, |_| true, order))?;
    }
    Ok(())
}

pub(super) fn reading_keys_does_not_disturb_an_iterator<S: Store>(store: &S) -> Outcome {
    let model = plant(store, &KEYS)?;
    reading_between(&store.snapshot()?, &model)?;
    reading_between(&store.begin()?, &model)
}
