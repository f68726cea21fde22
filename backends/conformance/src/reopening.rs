//! Committed data is there after the store was opened again.

use super::compare::{Model, agree, awkward_keys, blob, found, plant, same, same_list, walk};
use super::{Blob, Fixture, Outcome};
use keyloom::{KeyRange, Order, Reader, Store, VersionstampedKey, Writer};

/// Writes keys, changes some of them, and drops a transaction with uncommitted writes. Returns the
/// committed entries.
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

fn number(n: i64) -> Blob {
    blob(n.to_le_bytes())
}

/// The fixture opened again. `None` if its data does not outlive the store.
fn reopened<F: Fixture>(fixture: F) -> Outcome<Option<F>> {
    let opened = fixture.reopen();
    opened.or_else(|error| found(format!("the store does not open again: {error}")))
}

pub(super) fn what_was_committed_is_there_after_opening_again<F: Fixture>(fixture: F) -> Outcome {
    let model = prepare(fixture.store())?;
    let mut fixture = fixture;
    for time in ["first", "second"] {
        let Some(opened) = reopened(fixture)? else { return Ok(()) };
        fixture = opened;
        let snapshot = fixture.store().snapshot()?;
        agree(&format!("opened for the {time} time"), &snapshot, &model)?;
    }
    Ok(())
}

/// Commits, counters and versionstamps continue after the store was opened again.
pub(super) fn a_store_that_was_opened_again_continues<F: Fixture>(fixture: F) -> Outcome {
    let stamped = VersionstampedKey { prefix: b"log", suffix: b"", clock: b"clock" };
    let mut fixture = fixture;
    for round in 1..=3_u8 {
        let store = fixture.store();
        // Two commits per round, numbered across all rounds.
        for commit in [2 * round - 1, 2 * round] {
            store.transact(|txn| {
                txn.add(b"n", 1)?;
                txn.put_versionstamped(&stamped, &[commit])
            })?;
        }
        let snapshot = store.snapshot()?;
        same("a counter", &snapshot.counter(b"n")?, &(2 * i64::from(round)))?;
        let stamps = walk(&snapshot, KeyRange::prefix(b"log"), Order::Ascending)?;
        let commits: Vec<Blob> = stamps.into_iter().map(|(_, commit)| commit).collect();
        let right: Vec<Blob> = (1..=2 * round).map(|commit| blob([commit])).collect();
        same_list("the commits in the order of their versionstamps", &commits, &right)?;
        drop(snapshot);
        let Some(opened) = reopened(fixture)? else { return Ok(()) };
        fixture = opened;
    }
    Ok(())
}
