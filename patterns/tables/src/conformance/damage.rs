//! Laws of checks and repairs.

use std::ops::ControlFlow;

use keyloom::{Faulty, KeyBuf, Result, Store, Writer, pack};
use keyloom_kit::{Inconsistency, RepairOptions, Rule};

use super::field::{Dump, Field, Random, difference, dump, dump_all, restore};
use super::{Fidelity, Outcome, Subject, ensure};
use crate::check_in_steps;

pub(super) fn quiet<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    for seed in seed..seed + 8 {
        Field::with_history(subject, store, seed)?.quiet(&store.snapshot()?, "after a history")?;
    }
    Ok(())
}

/// A change of the store that bypasses the table.
#[derive(Clone, Debug)]
pub(super) enum Damage {
    /// A key that is removed.
    Removed(Vec<u8>),
    /// A key whose value is changed.
    Changed(Vec<u8>, Vec<u8>),
    /// A key that belongs to no record, and its value.
    Foreign(Vec<u8>, Vec<u8>),
    /// Version 3 of a record replaces version 0, without an update of the derived data.
    Replaced(u32),
    /// A record that is put without its derived data.
    Put(u32),
    /// A record that is deleted without its derived data.
    Deleted(u32),
}

impl Damage {
    /// One or more examples of each kind of damage, at some of the keys.
    pub(super) fn all<T: Subject>(
        field: &Field<'_, T>,
        own: &Dump,
        seed: u64,
    ) -> Result<Vec<Self>> {
        let (mut all, mut random) = (Vec::new(), Random(seed));
        for (key, value) in own.iter().step_by(own.len().div_ceil(8).max(1)) {
            all.push(Self::Removed(key.clone()));
            let values = other_values::<T>(value, &mut random).into_iter();
            all.extend(values.map(|value| Self::Changed(key.clone(), value)));
            let foreign = [&**key, &pack("foreign")].concat();
            all.push(Self::Foreign(foreign.clone(), b"foreign".to_vec()));
            // A growing kind may keep data of records that no longer exist.
            if T::FIDELITY != Fidelity::Growing {
                all.push(Self::Foreign(foreign, value.clone()));
            }
        }
        // A change of a record is damage only if it changes the derived data.
        let wanted = field.subject.model(&field.model);
        let of_records = [Self::Put(9), Self::Replaced(1), Self::Replaced(2), Self::Deleted(3)];
        // A growing kind keeps the old data of changed records.
        let those = if T::FIDELITY == Fidelity::Growing { 1 } else { of_records.len() };
        for damage in of_records.into_iter().take(those) {
            if field.subject.model(&damage.noted(field)) != wanted {
                all.push(damage);
            }
        }
        Ok(all)
    }

    /// The damaged key of the derived data, and the rules under which a check may report it.
    fn faults(&self) -> Option<(&[u8], &'static [Rule])> {
        match self {
            Self::Removed(key) => Some((key, &[Rule::Missing])),
            Self::Changed(key, _) => Some((key, &[Rule::Wrong, Rule::Foreign, Rule::Dangling])),
            Self::Foreign(key, _) => Some((key, &[Rule::Foreign, Rule::Dangling])),
            _ => None,
        }
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

    /// Applies the damage to the store, and to the records of the model.
    pub(super) fn strike<T: Subject>(
        &self,
        field: &mut Field<'_, T>,
        store: &impl Store,
    ) -> Result<()> {
        store.transact(|txn| match self {
            Self::Removed(key) => txn.delete(key),
            Self::Changed(key, value) | Self::Foreign(key, value) => txn.put(key, value),
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

/// Other values: with flipped bits, extended, truncated and replaced.
fn other_values<T: Subject>(value: &[u8], random: &mut Random) -> Vec<Vec<u8>> {
    let mut below = |end: usize| random.below(u32::try_from(end).unwrap_or(u32::MAX));
    let flipped = |at: u32, mask: u32| {
        let bytes =
            value.iter().zip(0..).map(|(byte, n)| byte ^ if n == at { mask as u8 } else { 0 });
        bytes.collect::<Vec<u8>>()
    };
    let mut others = vec![flipped(0, 0x11)];
    // A sketch ignores bytes after its end, and a growing kind need not compare bytes.
    if T::FIDELITY != Fidelity::Growing {
        others.push(flipped(1, 1));
        others.push(flipped(below(value.len()), 1 + below(255)));
        others.push([value, &[0xA5]].concat());
        others.push(value.get(..below(value.len()) as usize).unwrap_or_default().to_vec());
        others.push(b"junk".to_vec());
    }
    others.retain(|other| other != value);
    others
}

/// Repairs in small batches.
fn repair<T: Subject>(field: &Field<'_, T>, store: &impl Store) -> Result<()> {
    let options = RepairOptions { batch: 3, resume: None };
    field.derived.repair_with(store, &options, |_| ControlFlow::Continue(())).map(drop)
}

/// Applies each damage to a copy of the same data, and calls `judge` with the result.
fn each_damage<T: Subject, S: Store>(
    subject: &T,
    store: &S,
    seed: u64,
    judge: impl Fn(&Damage, &Field<'_, T>, &S) -> Outcome,
) -> Outcome {
    let mut field = Field::filled(subject, store, 8)?;
    let (whole, model) = (dump_all(store)?, field.model.clone());
    let own = field.own(&store.snapshot()?)?;
    ensure!(!own.is_empty(), "version 0 of records 0 to 7 has no derived data");
    for damage in Damage::all(&field, &own, seed)? {
        restore(store, &whole)?;
        field.model.clone_from(&model);
        damage.strike(&mut field, store)?;
        judge(&damage, &field, store)?;
    }
    Ok(())
}

pub(super) fn found<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    each_damage(subject, store, seed, |damage, field, store| {
        let found = field.derived.check(&store.snapshot()?)?;
        ensure!(!found.is_empty(), "{damage:?} is not reported");
        let Some((key, rules)) = damage.faults() else { return Ok(()) };
        let is_it = |fault: &Inconsistency| fault.key[..] == *key && rules.contains(&fault.rule);
        ensure!(found.iter().any(is_it), "{damage:?} is reported as {found:?}");
        Ok(())
    })
}

/// The number of reads after which a snapshot expires.
const SHORT: u64 = 6;

pub(super) fn in_steps<T: Subject, S: Store + Clone>(subject: &T, store: &S, seed: u64) -> Outcome {
    each_damage(subject, store, seed, |damage, field, store| {
        let in_one = keys_and_rules(field.derived.check(&store.snapshot()?)?);
        let short = Faulty::new(store.clone());
        short.expire_after(SHORT);
        let in_steps = check_in_steps(&short, |reader| field.derived.check(reader))?;
        let in_steps = keys_and_rules(in_steps);
        ensure!(in_steps == in_one, "{damage:?}: in steps {in_steps:?}, in one {in_one:?}");
        Ok(())
    })
}

fn keys_and_rules(faults: Vec<Inconsistency>) -> Vec<(KeyBuf, Rule)> {
    let mut all: Vec<_> = faults.into_iter().map(|fault| (fault.key, fault.rule)).collect();
    all.sort();
    all
}

pub(super) fn fixed<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    each_damage(subject, store, seed, |damage, field, store| {
        repair(field, store)?;
        field.intact(store, &format!("after {damage:?} and repair"))
    })
}

pub(super) fn untouched<T: Subject>(subject: &T, store: &impl Store, seed: u64) -> Outcome {
    each_damage(subject, store, seed, |damage, field, store| {
        let before = field.others(&store.snapshot()?)?;
        // Ignore errors of the repair: another law covers them.
        let _ = repair(field, store);
        let others = difference(&before, &field.others(&store.snapshot()?)?);
        ensure!(others.is_empty(), "{damage:?}: other keys differ: {others}");
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
    // A rebuild adds the records to a growing kind in another order, so the bytes may differ.
    if T::FIDELITY != Fidelity::Growing {
        let differs = difference(&own, &dump(&snapshot, field.space.self_and_children())?);
        ensure!(differs.is_empty(), "a repair of intact data writes: {differs}");
    }
    Ok(())
}
