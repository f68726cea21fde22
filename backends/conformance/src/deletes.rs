//! A deletion removes exactly its keys.

use std::ops::Bound::{self, Excluded, Included, Unbounded};

use super::compare::{
    MANY, Model, agree, agree_on_gets, awkward_keys, lies_between, many_keys, padded, plant,
};
use super::{Blob, Outcome};
use keyloom::{KeyRange, Store, Transaction, Writer};

pub(super) fn a_deleted_key_is_gone_and_its_neighbours_stay<S: Store>(store: &S) -> Outcome {
    let keys = awkward_keys();
    let mut model = plant(store, &keys)?;
    // From the middle outwards, so that the keys at both ends are deleted last.
    let (front, back) = keys.split_at(keys.len() / 2);
    for key in back.iter().zip(front.iter().rev()).flat_map(|(a, b)| [a, b]) {
        store.transact(|txn| txn.delete(key))?;
        model.remove(key);
        agree(&format!("after delete of {key:?}"), &store.snapshot()?, &model)?;
        agree_on_gets(&format!("after delete of {key:?}"), &store.snapshot()?, &model, &keys)?;
    }
    Ok(())
}

pub(super) fn deleting_an_absent_key_is_not_an_error<S: Store>(store: &S) -> Outcome {
    store.transact(|txn| txn.delete(b"a"))?;
    agree("in an empty store", &store.snapshot()?, &Model::new())?;
    let model = plant(store, &[b"a", b"c"])?;
    for absent in [&b"\x00"[..], b"b", b"a\x00", b"d", &[0xFF; 511]] {
        store.transact(|txn| txn.delete(absent))?;
    }
    agree("with neighbours", &store.snapshot()?, &model)
}

fn delete_and_compare<S: Store>(store: &S, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Outcome {
    let mut model = plant(store, &awkward_keys())?;
    store.transact(|txn| txn.delete_range(KeyRange::new(start, end)))?;
    model.retain(|key, _| !lies_between(key, start, end));
    let what = format!("{:?} to {:?}", start.map(Blob::from), end.map(Blob::from));
    agree(&what, &store.snapshot()?, &model)
}

pub(super) fn a_deleted_range_is_gone_and_its_neighbours_stay<S: Store>(store: &S) -> Outcome {
    let (long, longer) = (padded(b"a", 0xFF, 511), padded(b"a", 0xFF, 600));
    let bounds: [Bound<&[u8]>; 15] = [
        Unbounded,
        Included(b""),
        Excluded(b""),
        Included(b"\x00"),
        Included(b"a"),
        Excluded(b"a"),
        Excluded(b"a\x00"),
        Included(b"a\xFF"),
        Excluded(b"a\xFF"),
        Excluded(&long),
        Included(&longer),
        Included(b"b"),
        Excluded(b"b"),
        Excluded(b"\xFF"),
        Included(b"\xFF\xFF"),
    ];
    for start in bounds {
        for end in bounds {
            delete_and_compare(store, start, end)?;
        }
    }
    Ok(())
}

pub(super) fn deleting_a_range_that_holds_nothing_changes_nothing<S: Store>(store: &S) -> Outcome {
    store.transact(|txn| txn.delete_range(KeyRange::all()))?;
    agree("in an empty store", &store.snapshot()?, &Model::new())?;
    let model = plant(store, &[b"a", b"c", b"e"])?;
    let ranges = [
        ("between two keys", KeyRange::half_open(b"b", b"c")),
        ("start behind end", KeyRange::half_open(b"e", b"a")),
        ("equal bounds", KeyRange::half_open(b"c", b"c")),
        ("excluded neighbours", KeyRange::new(Excluded(b"a"), Excluded(b"c"))),
        ("up to the empty key", KeyRange::new(Unbounded, Included(b""))),
        ("behind every key", KeyRange::starting_at(b"f")),
    ];
    for (what, range) in ranges {
        store.transact(|txn| txn.delete_range(range.clone()))?;
        agree(what, &store.snapshot()?, &model)?;
    }
    Ok(())
}

pub(super) fn everything_can_be_deleted_and_written_again<S: Store>(store: &S) -> Outcome {
    let keys: Vec<[u8; 2]> = (0..1_000_u16).map(u16::to_be_bytes).collect();
    for _ in 0..3 {
        let model = plant(store, &keys)?;
        agree("written", &store.snapshot()?, &model)?;
        store.transact(|txn| txn.delete_range(KeyRange::all()))?;
        agree("deleted", &store.snapshot()?, &Model::new())?;
    }
    Ok(())
}

pub(super) fn a_deleted_range_of_many_keys_is_gone_and_its_neighbours_stay<S: Store>(
    store: &S,
) -> Outcome {
    let mut model = plant(store, &many_keys(MANY))?;
    let (start, end) = (5_u32.to_be_bytes(), (MANY - 5).to_be_bytes());
    let mut txn = store.begin()?;
    txn.delete_range(KeyRange::half_open(&start, &end))?;
    model.retain(|key, _| !lies_between(key, Included(&start), Excluded(&end)));
    agree("in the transaction", &txn, &model)?;
    txn.commit()?;
    agree("after the commit", &store.snapshot()?, &model)
}
