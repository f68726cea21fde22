//! A dropped transaction changes nothing.

use super::compare::{Model, agree, plant};
use super::{Finding, Outcome};
use keyloom::{KeyRange, Result, Store, Writer};

const KEYS: [&[u8]; 5] = [b"a", b"aa", b"b", b"c", b"d"];

fn write_everything<W: Writer>(txn: &mut W) -> Result<()> {
    txn.put(b"ab", b"new")?;
    txn.put(b"b", b"changed")?;
    txn.delete(b"a")?;
    txn.add(b"n", 1)?;
    txn.delete_range(KeyRange::starting_at(b"c"))
}

pub(super) fn a_dropped_transaction_leaves_nothing_behind<S: Store>(store: &S) -> Outcome {
    let model = plant(store, &KEYS)?;
    let before = store.snapshot()?;
    let mut txn = store.begin()?;
    write_everything(&mut txn)?;
    drop(txn);
    agree("after the drop", &store.snapshot()?, &model)?;
    agree("in a snapshot from before", &before, &model)?;
    agree("in the next transaction", &store.begin()?, &model)
}

pub(super) fn after_a_dropped_transaction_the_next_one_works<S: Store>(store: &S) -> Outcome {
    let mut model = Model::new();
    for round in 0..5_u8 {
        let mut dropped = store.begin()?;
        write_everything(&mut dropped)?;
        drop(dropped);
        store.transact(|txn| txn.put(&[round], b"kept"))?;
        model.insert([round][..].into(), b"kept"[..].into());
        agree(&format!("after round {round}"), &store.snapshot()?, &model)?;
    }
    Ok(())
}

pub(super) fn a_transaction_dropped_by_an_error_leaves_nothing_behind<S: Store>(
    store: &S,
) -> Outcome {
    let model = plant(store, &KEYS)?;
    let failed = store.try_transact(|txn| -> Outcome {
        write_everything(txn)?;
        Err(Finding("meant to fail".into()))
    });
    if failed != Err(Finding("meant to fail".into())) {
        return Err(Finding(format!("the body's error came back as {failed:?}")));
    }
    agree("after the error", &store.snapshot()?, &model)
}
