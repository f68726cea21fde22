//! Laws of checks and repairs.

use std::ops::ControlFlow;

use keyloom::{Result, Store, Writer, pack};

use super::field::{Dump, Field, difference, dump, dump_all, restore};
use super::{Fidelity, Outcome, Subject, ensure};
use crate::inconsistency::Inconsistency;
use crate::progress::RepairOptions;

pub(super) fn quiet<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    for seed in seed..seed + 8 {
        Field::with_history(subject, store, seed)?.quiet(&store.snapshot()?, "after a history")?;
    }
    Ok(())
}

/// One change of the store by something else than the table.
#[derive(Clone, Debug)]
pub(super) enum Damage {
    /// A key without its value.
    Removed(Vec<u8>),
    /// A key with another value.
    Changed(Vec<u8>, Vec<u8>),
    /// A key that no record makes.
    Foreign(Vec<u8>),
    /// Version 3 of a record in the place of version 0.
    Replaced(u32),
    /// A record that was put without its derived data.
    Put(u32),
    /// A record that was deleted without its derived data.
    Deleted(u32),
}

impl Damage {
    /// Damages of each sort, at some of the keys.
    pub(super) fn all<T: Subject>(field: &Field<'_, T>, own: &Dump) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for (key, value) in own.iter().step_by(own.len().div_ceil(8).max(1)) {
            let mut flipped = value.clone();
            flipped.first_mut().into_iter().for_each(|byte| *byte ^= 0x11);
            let longer = [&**value, &[0xA5]].concat();
            all.push(Self::Removed(key.clone()));
            // A sketch ends where it says, and a growing kind need not compare bytes.
            if T::FIDELITY != Fidelity::Growing {
                all.push(Self::Changed(key.clone(), longer));
            }
            all.extend((!value.is_empty()).then_some(Self::Changed(key.clone(), flipped)));
            all.push(Self::Foreign([&**key, &pack("foreign")].concat()));
        }
        if T::FIDELITY != Fidelity::Growing {
            // Only those whose derived data differ are damage.
            let wanted = field.subject.model(&field.model);
            for damage in [Self::Replaced(1), Self::Replaced(2), Self::Put(9), Self::Deleted(3)] {
                if field.subject.model(&damage.noted(field)) != wanted {
                    all.push(damage);
                }
            }
        }
        Ok(all)
    }

    /// The records after the damage.
    fn noted<T: Subject>(
        &self,
        field: &Field<'_, T>,
    ) -> std::collections::BTreeMap<T::Key, T::Value> {
        let mut records = field.model.clone();
        let (n, version) = match self {
            Self::Replaced(n) => (*n, Some(3)),
            Self::Put(n) => (*n, Some(0)),
            Self::Deleted(n) => (*n, None),
            _ => return records,
        };
        let (key, value) = field.subject.record(n, version.unwrap_or(0));
        match version {
            Some(_) => records.insert(key, value),
            None => records.remove(&key),
        };
        records
    }

    /// Damages the store, and the model's records.
    pub(super) fn strike<T: Subject>(
        &self,
        field: &mut Field<'_, T>,
        store: &impl Store,
    ) -> Result<()> {
        store.transact(|txn| match self {
            Self::Removed(key) => txn.delete(key),
            Self::Changed(key, value) => txn.put(key, value),
            Self::Foreign(key) => txn.put(key, b"foreign"),
            Self::Replaced(n) => {
                let (key, value) = field.record(*n, 3)?;
                txn.put(&key, &value)
            }
            Self::Put(n) => {
                let (key, value) = field.record(*n, 0)?;
                txn.put(&key, &value)
            }
            Self::Deleted(n) => txn.delete(&field.record(*n, 0)?.0),
        })?;
        field.model = self.noted(field);
        Ok(())
    }
}

/// A damage, and the result of a check and a repair.
struct Case {
    damage: Damage,
    found: Vec<Inconsistency>,
    repaired: Result<()>,
    intact: Outcome,
    /// Differences of the other keys between before and after the repair.
    others: String,
}

/// Repairs in small batches.
fn repair<T: Subject>(field: &Field<'_, T>, store: &impl Store) -> Result<()> {
    let options = RepairOptions { batch: 3, resume: None };
    field.derived.repair_with(store, &options, |_| ControlFlow::Continue(())).map(drop)
}

/// Inflicts one damage after the other on the same data.
fn each_damage<T: Subject>(
    subject: &T,
    store: &impl Store,
    judge: impl Fn(Case) -> Outcome,
) -> Outcome {
    let mut field = Field::filled(subject, store, 8)?;
    let (whole, model) = (dump_all(store)?, field.model.clone());
    let own = field.own(&store.snapshot()?)?;
    ensure!(!own.is_empty(), "version 0 of records 0 to 7 has no derived data");
    for damage in Damage::all(&field, &own)? {
        restore(store, &whole)?;
        field.model.clone_from(&model);
        damage.strike(&mut field, store)?;
        let found = field.derived.check(&store.snapshot()?)?;
        let before = field.others(&store.snapshot()?)?;
        let repaired = repair(&field, store);
        let others = difference(&before, &field.others(&store.snapshot()?)?);
        let intact = field.intact(store, &format!("after {damage:?} and repair"));
        judge(Case { damage, found, repaired, intact, others })?;
    }
    Ok(())
}

pub(super) fn found<T: Subject>(subject: &T, store: &impl Store, _: u64) -> Outcome {
    each_damage(subject, store, |case| {
        ensure!(!case.found.is_empty(), "{:?} is not reported", case.damage);
        Ok(())
    })
}

pub(super) fn fixed<T: Subject>(subject: &T, store: &impl Store, _: u64) -> Outcome {
    each_damage(subject, store, |case| {
        case.repaired?;
        case.intact
    })
}

pub(super) fn untouched<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    each_damage(subject, store, |case| {
        ensure!(case.others.is_empty(), "{:?}: other keys differ: {}", case.damage, case.others);
        Ok(())
    })?;
    let field = Field::with_history(subject, store, seed)?;
    let snapshot = store.snapshot()?;
    let (own, others) =
        (dump(&snapshot, field.space.self_and_children())?, field.others(&snapshot)?);
    drop(snapshot);
    repair(&field, store)?;
    let snapshot = store.snapshot()?;
    let differs = difference(&others, &field.others(&snapshot)?);
    ensure!(differs.is_empty(), "a repair of intact data writes other keys: {differs}");
    // A growing kind is rebuilt in another order, which its bytes show.
    if T::FIDELITY != Fidelity::Growing {
        let differs = difference(&own, &dump(&snapshot, field.space.self_and_children())?);
        ensure!(differs.is_empty(), "a repair of intact data writes: {differs}");
    }
    Ok(())
}
