//! Laws of repairs that run concurrently with other transactions.

use std::ops::ControlFlow;

use keyloom::{Cost, Faulty, Metered, Result, Store};
use keyloom_kit::{RepairOptions, RepairPosition};

use super::damage::Damage;
use super::field::{Change, Field, RECORDS};
use super::{Fidelity, Outcome, Subject, ensure};

/// Damages the data for the repairs: removes entries, replaces values by junk, and puts and deletes
/// records without their derived data. A growing kind only loses entries.
fn damage<T: Subject>(field: &mut Field<'_, T>, store: &impl Store) -> Result<()> {
    let own = field.own(&store.snapshot()?)?;
    let records = match T::FIDELITY {
        Fidelity::Growing => &[][..],
        _ => &[Damage::Put(RECORDS), Damage::Deleted(1), Damage::Deleted(6)],
    };
    let of_entries = own.into_keys().enumerate().filter_map(|(n, key)| match n % 3 {
        0 => Some(Damage::Removed(key)),
        1 if T::FIDELITY != Fidelity::Growing => Some(Damage::Changed(key, b"junk".to_vec())),
        _ => None,
    });
    let all: Vec<_> = of_entries.chain(records.iter().cloned()).collect();
    all.iter().try_for_each(|damage| damage.strike(field, store))
}

/// Runs one transaction of a repair after `position`. Sets `position` to `None` after the last
/// transaction.
fn step<T: Subject>(
    field: &Field<'_, T>,
    store: &impl Store,
    position: &mut Option<Option<RepairPosition>>,
) -> Result<()> {
    let Some(resume) = position.take() else { return Ok(()) };
    let options = RepairOptions { batch: 2, resume };
    let done = field.derived.repair_with(store, &options, |_| ControlFlow::Break(()))?;
    *position = (!done.finished).then_some(Some(done.position));
    Ok(())
}

pub(super) fn repairers<T: Subject>(subject: &T, store: &impl Store, _: u64) -> Outcome {
    for (writes, interleaved) in [(false, false), (false, true), (true, true)] {
        let mut field = Field::filled(subject, store, RECORDS)?;
        damage(&mut field, store)?;
        let mut turns = changes::<T>().into_iter().filter(|_| writes);
        let (mut first, mut second) = (Some(None), Some(None));
        // Run the repairs one after the other, or interleaved.
        while first.is_some() || second.is_some() {
            step(&field, store, &mut first)?;
            if interleaved || first.is_none() {
                step(&field, store, &mut second)?;
            }
            if let Some(change) = turns.next() {
                // Damaged data may refuse a change. In that case nothing is written.
                let _ = field.commit(store, &[change]);
            }
        }
        let how = format!("after two repairs, in turns: {interleaved}, beside writers: {writes}");
        field.intact(store, &how)?;
    }
    // Run one repair in a single call, with a change after each of its transactions. Such a repair
    // may have read data before a writer changes the data.
    let mut field = Field::filled(subject, store, RECORDS)?;
    damage(&mut field, store)?;
    let (repaired, mut turns) = (field.derived.clone(), changes::<T>().into_iter());
    let options = RepairOptions { batch: 2, resume: None };
    repaired.repair_with(store, &options, |_| {
        let _ = turns.next().map(|change| field.commit(store, &[change]));
        ControlFlow::Continue(())
    })?;
    field.intact(store, "after a repair beside writers")
}

/// The number of operations after which a transaction or a snapshot expires: enough for one step of
/// any kind.
const SHORT: u64 = 120;

pub(super) fn short<T: Subject, S: Store + Clone>(subject: &T, store: &S, _: u64) -> Outcome {
    let mut field = Field::filled(subject, store, 20 * RECORDS)?;
    damage(&mut field, store)?;
    let short = Faulty::new(store.clone());
    short.expire_after(SHORT);
    field.derived.repair(&short)?;
    field.intact(store, "after a repair in short transactions")
}

/// Changes of records at both ends of the table.
fn changes<T: Subject>() -> Vec<Change> {
    match T::FIDELITY {
        Fidelity::Growing => vec![(RECORDS + 1, Some(0)), (RECORDS + 2, Some(0))],
        _ => vec![
            (0, Some(3)),
            (RECORDS - 1, Some(5)),
            (4, None),
            (RECORDS + 1, Some(1)),
            (3, Some(7)),
            (RECORDS - 2, None),
        ],
    }
}

/// The largest number of keys written by one transaction of a build, and by one transaction of a
/// repair.
fn most_written<T: Subject, S: Store>(
    subject: &T,
    store: &Metered<S>,
    records: u32,
) -> Result<[u64; 2]> {
    let mut field = Field::filled(subject, store, records)?;
    store.transact(|txn| field.derived.disable(txn))?;
    let mut build = Most::default();
    field.derived.build_with(store, 4, |_| build.note(store.cost()))?;
    let own: Vec<_> = field.own(&store.snapshot()?)?.into_keys().map(Damage::Removed).collect();
    own.iter().try_for_each(|damage| damage.strike(&mut field, store))?;
    let mut repair = Most { before: store.cost(), written: 0 };
    let options = RepairOptions { batch: 4, resume: None };
    field.derived.repair_with(store, &options, |_| repair.note(store.cost()))?;
    Ok([build.written, repair.written])
}

#[derive(Default)]
struct Most {
    before: Cost,
    written: u64,
}

impl Most {
    fn note(&mut self, now: Cost) -> ControlFlow<()> {
        // Skip the first commit of a build: `before` is not set yet.
        if self.before != Cost::default() {
            self.written = self.written.max(now.keys_written - self.before.keys_written);
        }
        self.before = now;
        ControlFlow::Continue(())
    }
}

pub(super) fn bounded<T: Subject, S: Store + Clone>(subject: &T, store: &S, _: u64) -> Outcome {
    let store = &Metered::new(store.clone());
    let (few, many) = (most_written(subject, store, 16)?, most_written(subject, store, 120)?);
    for ((work, few), many) in ["build", "repair"].into_iter().zip(few).zip(many) {
        if T::FIDELITY == Fidelity::Growing && work == "repair" {
            continue;
        }
        ensure!(
            many <= 2 * few + 8,
            "keys written by one transaction of a {work} in batches of 4: {few} of 16 records, {many} of 120"
        );
    }
    Ok(())
}
