//! `get_many` answers in the order of the keys.

use super::compare::{blob, plant, same};
use super::{Blob, Outcome};
use crate::{Reader, Store, Writer};

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
