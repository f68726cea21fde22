//! What was committed is there after the store was opened again.

use super::compare::{Model, agree, awkward_keys, blob, ensure, found, plant, same};
use super::{Fixture, Outcome};
use crate::{BoxedError, KeyRange, Reader, Store, VersionstampedKey, Writer};

/// Plants keys and changes some of them. Leaves a transaction behind that did not commit.
fn prepare<S: Store>(store: &S) -> Outcome<Model> {
    let mut model = plant(store, &awkward_keys())?;
    let large = vec![7; store.limits().max_value_bytes.min(100_000)];
    store.transact(|txn| {
        txn.put(b"large", &large)?;
        txn.put(b"empty", b"")?;
        txn.add(b"n", -5)?;
        txn.delete(b"a")?;
        txn.delete_range(KeyRange::half_open(b"a\xFF", b"b"))
    })?;
    model.retain(|key, _| &key[..] != b"a" && !(b"a\xFF"[..] <= key[..] && key[..] < b"b"[..]));
    let own = [(blob("large"), blob(&large)), (blob("empty"), blob("")), (blob("n"), number(-5))];
    model.extend(own);
    let mut dropped = store.begin()?;
    dropped.put(b"dropped", b"")?;
    dropped.delete(b"b")?;
    Ok(model)
}

fn number(n: i64) -> super::Blob {
    blob(n.to_le_bytes())
}

pub(super) fn what_was_committed_is_there_after_opening_again<F: Fixture>(
    fixture: F,
) -> Result<Outcome, BoxedError> {
    let model = match prepare(fixture.store()) {
        Ok(model) => model,
        Err(finding) => return Ok(Err(finding)),
    };
    let mut fixture = fixture;
    for time in ["first", "second"] {
        let opened = match fixture.reopen() {
            Ok(Some(opened)) => opened,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(found(format!("the store does not open again: {error}"))),
        };
        fixture = opened;
        let compare = |store: &F::Store| -> Outcome {
            agree(&format!("opened for the {time} time"), &store.snapshot()?, &model)
        };
        if let Err(finding) = compare(fixture.store()) {
            return Ok(Err(finding));
        }
    }
    Ok(Ok(()))
}

fn stamp<S: Store>(store: &S) -> Outcome {
    let key = VersionstampedKey { prefix: b"log", suffix: b"", clock: b"clock" };
    Ok(store.transact(|txn| txn.put_versionstamped(&key, b""))?)
}

/// Commits, counters and versionstamps go on where they were.
pub(super) fn a_store_that_was_opened_again_goes_on<F: Fixture>(
    fixture: F,
) -> Result<Outcome, BoxedError> {
    let mut fixture = fixture;
    for round in 1..=3 {
        let step = |store: &F::Store| -> Outcome {
            store.transact(|txn| txn.add(b"n", 1))?;
            stamp(store)?;
            let snapshot = store.snapshot()?;
            same("a counter", &snapshot.counter(b"n")?, &round)?;
            let stamps = snapshot.count(KeyRange::prefix(b"log"))?;
            ensure(
                stamps == round.unsigned_abs(),
                &format!("{stamps} keys of {round} commits have versionstamps of their own"),
            )
        };
        if let Err(finding) = step(fixture.store()) {
            return Ok(Err(finding));
        }
        let opened = match fixture.reopen() {
            Ok(Some(opened)) => opened,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(found(format!("the store does not open again: {error}"))),
        };
        fixture = opened;
    }
    Ok(Ok(()))
}
