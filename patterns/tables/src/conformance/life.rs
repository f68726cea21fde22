//! Checks what must hold after builds, drains and drops.

use std::ops::ControlFlow;

use keyloom::{KeyRange, Store, Writer, pack};

use super::field::{Change, Field, RECORDS, Random, difference, dump_all, neighbours};
use super::{Fidelity, Outcome, Subject, ensure};
use crate::schema::{Maintained, Schema};

pub(super) fn build<T: Subject>(subject: &T, store: &impl Store, _: u64) -> Outcome {
    for batch in [1, 2, 5] {
        let mut field = Field::filled(subject, store, RECORDS)?;
        if T::FIDELITY != Fidelity::Growing {
            field.commit(store, &[(4, Some(1)), (5, Some(3))])?;
        }
        store.transact(|txn| field.derived.disable(txn))?;
        let mut turns = changes::<T>(batch).into_iter();
        let builder = field.derived.clone();
        let mut failed = Ok(());
        builder.build_with(store, batch, |_| match turns.next() {
            Some(change) if failed.is_ok() => {
                failed = field.commit(store, &[change]);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        })?;
        failed?;
        field.intact(store, &format!("after a build beside writers in batches of {batch}"))?;
    }
    Ok(())
}

/// Changes of records that a build has visited and of records that it has not visited. One change
/// follows each transaction of the build.
fn changes<T: Subject>(batch: usize) -> Vec<Change> {
    let of = |version| if T::FIDELITY == Fidelity::Growing { Some(0) } else { version };
    let near = u32::try_from(batch).unwrap_or(0) % RECORDS;
    vec![
        (0, of(Some(1))),
        (RECORDS - 1, of(Some(2))),
        (0, of(None)),
        (near, of(Some(3))),
        (RECORDS, Some(0)),
        (near + 1, of(None)),
        (0, of(Some(4))),
        (RECORDS - 2, of(None)),
        (0, of(Some(4))),
    ]
}

pub(super) fn deferred<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    if !Field::new(subject, store)?.derived.pattern().can_be_deferred() {
        return Ok(());
    }
    let mut random = Random(seed);
    for batch in [1, 5, 100] {
        let mut field = Field::deferred(subject, store)?;
        let drain = |field: &Field<'_, T>| -> Outcome {
            field.derived.drain_with(store, batch, |_| ControlFlow::Continue(()))?;
            field.answers(&store.snapshot()?, &format!("after a drain in batches of {batch}"))
        };
        for _ in 0..4 {
            // Most records change more than once between two drains.
            for _ in 0..6 {
                field.commit(store, &random.changes::<T>(8))?;
            }
            drain(&field)?;
        }
        // All records change before each drain.
        let last = if T::FIDELITY == Fidelity::Growing { 0 } else { 4 };
        for version in 0..=last {
            let all: Vec<_> = (0..RECORDS).map(|n| (n, Some(version))).collect();
            field.commit(store, &all)?;
            drain(&field)?;
        }
        field.intact(store, &format!("after drains in batches of {batch}"))?;
    }
    Ok(())
}

pub(super) fn drop_data<T: Subject>(subject: &T, store: &impl Store, _: u64) -> Outcome {
    let mut field = Field::filled(subject, store, 8)?;
    store.transact(|txn| field.derived.disable(txn))?;
    let before = field.own(&store.snapshot()?)?;
    field.commit(store, &[(0, Some(3)), (1, None), (8, Some(0))])?;
    let differs = difference(&before, &field.own(&store.snapshot()?)?);
    ensure!(differs.is_empty(), "a put writes disabled data: {differs}");
    field.derived.drop_with(store, 2, |_| ControlFlow::Continue(()))?;
    let dropped = dump_all(store)?;

    // Write the same records without the derived data.
    store.transact(|txn| txn.delete_range(KeyRange::all()))?;
    let records = Schema::open(store, "conformance")?.table("records")?;
    store.transact(|txn| {
        records.put_many(txn, field.model.clone())?;
        neighbours(&field.space).iter().try_for_each(|key| txn.put(key, b"neighbour"))
    })?;
    let mut wanted = dump_all(store)?;
    // Ids are never reused.
    let next_id = pack(&("keyloom", "next id")).to_vec();
    wanted.extend(dropped.get(&next_id).map(|id| (next_id, id.clone())));
    let differs = difference(&dropped, &wanted);
    ensure!(differs.is_empty(), "the drop left or removed keys: {differs}");
    Ok(())
}
