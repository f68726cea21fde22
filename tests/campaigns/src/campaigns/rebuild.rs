//! Derived data: incremental maintenance must give the same result as a build at once.

use anyhow::Result;
use keyloom::{Lmdb, Memory, Store, Writer, lmdb::Durability};
use keyloom_mutant_stores::{Flaw, MutantStore};

use crate::campaign::again;
use crate::shrink::shrink;
use crate::workload::WatchedBy;
use crate::{Campaign, Context, Control, Facts, Failure, Mix, Tally};

/// Random histories of each workload, in memory and on LMDB.
pub struct Rebuild;

/// The maximum number of transactions in a history.
const MOST: u64 = 60;

impl Campaign for Rebuild {
    fn facts(&self) -> Facts {
        Facts {
            name: "rebuild",
            about: "random histories of each workload: maintained equals rebuilt, and the model",
            unit: "histories",
            counts: (256, 100_000),
            ..Facts::default()
        }
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        let directory = context.directory("rebuild")?;
        // No crash happens here, so no commit needs a sync.
        let lmdb = Lmdb::options().durability(Durability::MayLoseStore).open(directory)?;
        let mixes: Vec<Mix> = context.mix.each().collect();
        let mut targets = || -> Targets { vec![Box::new(Memory::new()), Box::new(lmdb.clone())] };
        attack(context, &mixes, &mut targets)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let mixes: Vec<Mix> = context.mix.each().collect();
        let mutant = |flaw, mixes: &[Mix], most| {
            attack(&context.quietly(most), mixes, &mut || vec![Box::new(MutantStore::new(flaw))])
        };
        let mut controls = vec![Control::sound("None", &mutant(Flaw::None, &mixes, 16)?)];
        // Each workload runs alone, because other workloads could hide one that detects nothing. A
        // workload detects a fault by its `check`, by its model, by different bytes, or by a failed
        // operation. A mutant store itself returns no errors.
        const TOLD: &str =
            "are there instead of|not as when built at once|a transaction failed|cannot be read";
        for flaw in [Flaw::LostWrite, Flaw::ForgottenDelete] {
            for mix in &mixes {
                let workload = mix.names().concat();
                // The first failing history ends the control. Rare operations of a workload need
                // some hundred histories.
                let tally = mutant(flaw, std::slice::from_ref(mix), 1_000)?;
                let reported = format!("{TOLD}|{workload}: ");
                controls.push(Control::of(format!("{flaw:?} in {workload}"), &tally, &reported));
            }
        }
        for mix in &mixes {
            controls.push(check_is_awake(mix, context.seed)?);
        }
        Ok(controls)
    }
}

/// A control for a workload. Its patterns' own `check` must find damage to derived data without the
/// model; the model must find damage to records. Some entries in turn are deleted, or get another
/// value.
fn check_is_awake(mix: &Mix, seed: u64) -> Result<Control> {
    /// Long enough that every kind of data occurs.
    const LENGTH: u64 = 60;
    const HISTORIES: u64 = 4;
    const ENTRIES: usize = 30;
    let (mut damaged, mut unseen) = (0, Vec::new());
    for seed in (0..HISTORIES).map(|number| seed.wrapping_add(number)) {
        let (store, mut oracle) = (Memory::new(), mix.oracle());
        let mut rng = fastrand::Rng::with_seed(seed);
        for (number, transaction) in (0..).zip(Mix::history(seed, LENGTH)) {
            oracle.imitate(transaction);
            store.transact(|txn| mix.perform(transaction, number, txn))?;
        }
        let mut entries = oracle.watched(&store.snapshot()?)?;
        entries.retain(|(_, _, watched_by)| *watched_by != WatchedBy::Nobody);
        rng.shuffle(&mut entries);
        for (key, mut value, watched_by) in entries.into_iter().take(ENTRIES) {
            let mut txn = store.begin()?;
            let from = if let WatchedBy::ModelFrom(from) = watched_by { from } else { 0 };
            let is_changed = value.len() > from && rng.bool();
            if is_changed {
                let at = rng.usize(from..value.len());
                value[at] ^= 1 << rng.u8(..8);
                txn.put(&key, &value)?;
            } else {
                txn.delete(&key)?;
            }
            damaged += 1;
            let found = match watched_by {
                // The model would find more than the check, or could not be read.
                WatchedBy::Check => oracle.checked(&mut txn),
                _ => oracle.findings(&mut txn),
            };
            // A read error counts as found, too.
            if found.is_ok_and(|found| found.is_empty()) {
                let done = if is_changed { "changed" } else { "deleted" };
                let key = keyloom::key::display(&key);
                unseen.push(format!("{key} {done}, to be seen by the {watched_by:?}"));
            }
        }
    }
    let name = format!("the check of {}", mix.names().concat());
    let reported = format!("of {damaged} unseen: {}", unseen.join(", "));
    Ok(Control::new(name, (damaged > 0 && unseen.is_empty()).then_some(()).ok_or(reported)))
}

/// A store of any type, with the operations of this campaign.
trait Target {
    /// The faults after the history.
    fn judge(&self, mix: &Mix, history: &[u64]) -> Vec<String>;
}

impl<S: Store> Target for S {
    fn judge(&self, mix: &Mix, history: &[u64]) -> Vec<String> {
        let mut oracle = mix.oracle();
        let done = self.transact(|txn| txn.delete_range(keyloom::KeyRange::all()));
        let outcome = done.and_then(|()| {
            (0..).zip(history).try_for_each(|(number, transaction)| {
                oracle.imitate(*transaction);
                self.transact(|txn| mix.perform(*transaction, number, txn))
            })
        });
        match outcome {
            Ok(()) => oracle.judge(self),
            Err(error) => vec![format!("a transaction failed: {error}")],
        }
    }
}

type Targets = Vec<Box<dyn Target>>;

fn attack(context: &Context, mixes: &[Mix], targets: &mut dyn FnMut() -> Targets) -> Result<Tally> {
    let mut tally = Tally::default();
    while context.continues(tally.count) && tally.failures.is_empty() {
        let seed = context.seed.wrapping_add(tally.count);
        let history = Mix::history(seed, fastrand::Rng::with_seed(seed).u64(1..=MOST));
        for mix in mixes {
            for target in targets() {
                if let Some(first) = target.judge(mix, &history).first() {
                    let fails = |history: &[u64]| !target.judge(mix, history).is_empty();
                    let shortest = shrink(&history, fails);
                    let sequence = shortest.iter().map(|seed| mix.describe(*seed)).collect();
                    // Reports the difference after the shortest history, which is printed.
                    let what = target.judge(mix, &shortest).into_iter().next();
                    let what = what.unwrap_or_else(|| first.clone());
                    let again = again(context.name(), "--count 1", seed, mix.only().as_deref());
                    tally.failures.push(Failure { what, sequence, again });
                }
                tally.add("transactions", history.len() as u64);
            }
        }
        tally.count += 1;
    }
    Ok(tally)
}
