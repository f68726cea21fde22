//! Laws of updates.

use keyloom::value::{Codec, Postcard};
use keyloom::{DynWriter, Fault, Faulty, Result, Store, Writer};
use keyloom_kit::derived::{RecordChange, SortedWrites};

use super::field::{Change, Dump, Field, RECORDS, Random, difference, dump_all};
use super::{Fidelity, Outcome, Subject, ensure};
use crate::derived::Maintained;

pub(super) fn answers<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    histories(subject, store, seed, 0)
}

pub(super) fn batches<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    histories(subject, store, seed, 8)
}

/// Compares the answers after each transaction of a random history.
fn histories<T: Subject>(subject: &T, store: &impl Store, seed: u64, most: u32) -> Outcome {
    let (mut field, mut random) = (Field::new(subject, store)?, Random(seed));
    field.answers(&store.snapshot()?, "without records")?;
    for n in 0..100 {
        let changes = random.changes::<T>(most);
        field.commit(store, &changes)?;
        field.answers(&store.snapshot()?, &format!("after transaction {n}, {changes:?}"))?;
    }
    if T::FIDELITY != Fidelity::Growing {
        let all: Vec<_> = (0..RECORDS).map(|n| (n, None)).collect();
        let at_once = if most == 0 { 1 } else { all.len() };
        all.chunks(at_once).try_for_each(|some| field.commit(store, some))?;
        field.answers(&store.snapshot()?, "after deletion of all records")?;
    }
    Ok(())
}

/// New, changed, removed and unchanged records.
fn changes<T: Subject>() -> [Change; 6] {
    let of = |version| if T::FIDELITY == Fidelity::Growing { Some(0) } else { version };
    [
        (0, of(Some(3))),
        (1, of(Some(5))),
        (2, of(None)),
        (3, Some(0)),
        (6, Some(0)),
        (7, of(Some(2))),
    ]
}

/// The result of an update must not depend on whether the changed records are already written to
/// the table.
pub(super) fn records<T: Subject>(subject: &T, store: &impl Store, _: u64) -> Outcome {
    let unwritten = updated(subject, store, |_, _| Ok(()))?;
    let written = updated(subject, store, |field, txn| {
        for (n, version) in changes::<T>() {
            let (key, value) = field.record(n, version.unwrap_or(0))?;
            match version {
                Some(_) => txn.put(&key, &value)?,
                None => txn.delete(&key)?,
            }
        }
        Ok(())
    })?;
    let absent = updated(subject, store, |field, txn| {
        txn.delete_range(field.records.space().self_and_children())
    })?;
    for (state, own) in [("written", written), ("deleted", absent)] {
        let differs = difference(&unwritten, &own);
        ensure!(differs.is_empty(), "the result depends on whether records are {state}: {differs}");
    }
    Ok(())
}

/// The derived data after an update. `prepare` runs before the update, in the same transaction.
fn updated<T: Subject>(
    subject: &T,
    store: &impl Store,
    prepare: impl FnOnce(&Field<'_, T>, &mut DynWriter<'_>) -> Result<()>,
) -> Result<Dump> {
    let field = Field::filled(subject, store, 6)?;
    let mut txn = store.begin()?;
    prepare(&field, &mut DynWriter::new(&mut txn))?;
    let records = changes::<T>().map(|(n, version)| {
        let (key, new) = field.subject.record(n, version.unwrap_or(0));
        let stored_key = field.records.space().pack(&key);
        let old = field.model.get(&key);
        (key, stored_key, old, version.map(|_| new))
    });
    let changes: Vec<_> = records
        .iter()
        .map(|(key, stored_key, old, new)| RecordChange {
            key,
            stored_key,
            old: *old,
            new: new.as_ref(),
        })
        .collect();
    let mut writes = SortedWrites::default();
    let derived = field.derived.at(&txn)?.derived();
    derived.update(&mut DynWriter::new(&mut txn), &changes, &mut writes)?;
    writes.apply(&mut txn)?;
    field.own(&txn)
}

pub(super) fn deterministic<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    let run = || {
        Field::with_history(subject, store, seed)?;
        dump_all(store)
    };
    let differs = difference(&run()?, &run()?);
    ensure!(differs.is_empty(), "two runs of one history differ: {differs}");
    Ok(())
}

pub(super) fn rebuilt<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    for seed in seed..seed + 8 {
        Field::with_history(subject, store, seed)?.right(store, "after a history")?;
    }
    Ok(())
}

pub(super) fn lost<T: Subject>(subject: &T, store: &impl Store, _: u64) -> Outcome {
    let garbage = [0xFF; 24];
    if T::FIDELITY == Fidelity::Growing || <Postcard as Codec<T::Value>>::decode(&garbage).is_ok() {
        return Ok(());
    }
    for version in [None, Some(3)] {
        let mut field = Field::filled(subject, store, 6)?;
        let (key, _) = field.record(2, 0)?;
        store.transact(|txn| txn.put(&key, &garbage))?;
        let before = dump_all(store)?;
        match field.commit(store, &[(2, version)]) {
            Ok(()) => field.right(store, "after the deletion of an undecodable record")?,
            Err(error) => {
                let differs = difference(&before, &dump_all(store)?);
                ensure!(differs.is_empty(), "refused with {error}, and differs: {differs}");
            }
        }
    }
    Ok(())
}

/// Makes changes of all kinds in one transaction: the first three as a batch, the others one by
/// one.
fn change<T: Subject>(field: &Field<'_, T>, txn: &mut impl Writer) -> Result<()> {
    let changes = changes::<T>();
    let (batch, singles) = changes.split_at(3);
    field.make(txn, batch)?;
    singles.iter().try_for_each(|change| field.make(txn, &[*change]))
}

pub(super) fn faults<T: Subject, S: Store + Clone>(subject: &T, store: &S, _: u64) -> Outcome {
    let faulty = Faulty::new(store.clone());
    let field = Field::filled(subject, store, 6)?;
    faulty.transact(|txn| change(&field, txn))?;
    let operations = faulty.operations();
    let wanted = dump_all(store)?;
    let mut field = Field::filled(subject, store, 6)?;
    let before = dump_all(store)?;
    // The kinds of faults differ only at the commit, which is the last operation.
    let faults = (0..operations).map(|n| (n, Fault::Error));
    let at_commit = [Fault::UnknownAndLost, Fault::UnknownButCommitted];
    let at_commit = at_commit.map(|fault| (operations.saturating_sub(1), fault));
    for (n, fault) in faults.chain(at_commit) {
        faulty.fail_at(n, fault);
        let outcome = faulty.transact(|txn| change(&field, txn));
        faulty.clear_fault();
        let applied = match &outcome {
            Ok(()) => true,
            Err(error) => fault == Fault::UnknownButCommitted && error.maybe_committed(),
        };
        let left = if applied { &wanted } else { &before };
        let differs = difference(&dump_all(store)?, left);
        ensure!(differs.is_empty(), "{fault:?} at operation {n}, result {outcome:?}: {differs}");
        if applied {
            field = Field::filled(subject, store, 6)?;
        }
    }
    Ok(())
}

pub(super) fn conflicts<T: Subject, S: Store + Clone>(subject: &T, store: &S, _: u64) -> Outcome {
    let faulty = Faulty::new(store.clone());
    let field = Field::filled(subject, store, 6)?;
    store.transact(|txn| change(&field, txn))?;
    let wanted = dump_all(store)?;
    for n in 0.. {
        let field = Field::filled(subject, store, 6)?;
        faulty.fail_at(n, Fault::Conflict);
        faulty.transact(|txn| change(&field, txn))?;
        let was_hit = faulty.operations() > n;
        faulty.clear_fault();
        let differs = difference(&dump_all(store)?, &wanted);
        ensure!(differs.is_empty(), "a conflict at operation {n}: {differs}");
        if !was_hit {
            break;
        }
    }
    Ok(())
}
