//! Faults: each operation of a store fails in turn, in every kind of work.
//!
//! A history of a few transactions of a workload is a *trial*. Each transaction fails at its first
//! operation, then at its second, and so on up to its commit: with an error, with a conflict, and
//! with a commit of unknown outcome. After each fault, the store must be as before, or contain the
//! whole transaction if it was committed or retried. The queries of the workloads, work in many
//! transactions and the repair of an index are tested in the same way.

mod careless;
mod long_work;
mod trial;

use std::path::Path;

use anyhow::Result;
use keyloom::{Faulty, Lmdb, Memory, RetryPolicy, Store, lmdb::Durability};
use keyloom_mutant_stores::{Flaw, MutantStore};
use keyloom_redb::Redb;

use self::trial::{Part, Trial};
use crate::campaign::again;
use crate::shrink::shrink;
use crate::{Campaign, Context, Control, Facts, Failure, Mix, Tally};

/// Every fault at every operation, for each workload, in memory, on LMDB and on redb.
pub struct Faults;

/// The maximum number of transactions of a trial.
const MOST: u64 = 8;

impl Campaign for Faults {
    fn facts(&self) -> Facts {
        Facts {
            name: "faults",
            about: "each operation fails in turn: nothing is half done, no answer is wrong",
            unit: "faults",
            counts: (100_000, 2_000_000),
            must_see: &["on memory", "on optimistic memory", "on LMDB", "on redb"],
            ..Facts::default()
        }
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        // No crash happens here, so no commit needs a sync.
        let options =
            Lmdb::options().durability(Durability::MayLoseStore).retry_policy(without_pauses());
        let lmdb = options.open(context.directory("faults")?)?;
        let memory = || Memory::builder().retry_policy(without_pauses());
        let redb = redb(&context.directory("faults-redb")?)?;
        let targets: [&dyn Target; 4] = [
            &Sound { name: "memory", store: Faulty::new(memory().build()), side_by_side: false },
            &Sound {
                name: "optimistic memory",
                store: Faulty::new(memory().optimistic(true).build()),
                side_by_side: true,
            },
            &Sound { name: "LMDB", store: Faulty::new(lmdb), side_by_side: false },
            &Sound { name: "redb", store: Faulty::new(redb), side_by_side: false },
        ];
        attack(context, &targets)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let context = context.quietly(20_000);
        let flaws = [
            (Flaw::None, ""),
            (Flaw::LostWrite, "as it must not be|instead of|not as"),
            (Flaw::CommitHalfDone, "as it must not be|instead of|not as"),
            (Flaw::RollbackKeeps, "as it must not be"),
            (Flaw::ConflictKeeps, "as it must not be"),
        ];
        let mut controls =
            Control::each(&context, &flaws, |context, flaw| attack(context, &[&Broken(flaw)]))?;
        let careless = [
            (Part::Writing, "as it must not be|came to Ok"),
            (Part::Reading, "is a wrong answer"),
            (Part::LongWork, "in a repair"),
        ];
        for (part, expected) in careless {
            let name = format!("errors are not looked at: {part:?}");
            let memory = || {
                attack(
                    &context,
                    &[&Careless { part, name: "memory", store: Faulty::new(Memory::new()) }],
                )
            };
            controls.push(Control::of(&name, &memory()?, expected));
            let redb = redb(&context.directory("faults-redb-control")?)?;
            let on_redb = Careless { part, name: "redb", store: Faulty::new(redb) };
            controls.push(Control::of(
                format!("{name}, on redb"),
                &attack(&context, &[&on_redb])?,
                expected,
            ));
        }
        Ok(controls)
    }
}

fn redb(directory: &Path) -> keyloom::Result<Redb> {
    let options = Redb::options().retry_policy(without_pauses());
    options.durability(keyloom_redb::Durability::MayLoseCommits).open(directory.join("store"))
}

/// Conflicts are injected one at a time, so a back-off would not help.
fn without_pauses() -> RetryPolicy {
    RetryPolicy { first_pause: std::time::Duration::ZERO, ..RetryPolicy::default() }
}

/// A store of any type, and a program that uses it.
trait Target {
    fn name(&self) -> &'static str;

    /// Returns the number of faults, and the violation, if there is one.
    fn trial(&self, mix: &Mix, history: &[u64]) -> (u64, Option<String>);
}

struct Sound<S> {
    name: &'static str,
    store: Faulty<S>,
    side_by_side: bool,
}

impl<S: Store> Target for Sound<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn trial(&self, mix: &Mix, history: &[u64]) -> (u64, Option<String>) {
        run(&self.store, mix, self.side_by_side, None, history)
    }
}

/// A control: a flawed store.
struct Broken(Flaw);

impl Target for Broken {
    fn name(&self) -> &'static str {
        "a broken store"
    }

    fn trial(&self, mix: &Mix, history: &[u64]) -> (u64, Option<String>) {
        run(&Faulty::new(MutantStore::new(self.0)), mix, true, None, history)
    }
}

/// A control: a program that ignores errors.
struct Careless<S> {
    part: Part,
    name: &'static str,
    store: Faulty<S>,
}

impl<S: Store> Target for Careless<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn trial(&self, mix: &Mix, history: &[u64]) -> (u64, Option<String>) {
        run(&self.store, mix, false, Some(self.part), history)
    }
}

fn run<S: Store>(
    faulty: &Faulty<S>,
    mix: &Mix,
    side_by_side: bool,
    careless: Option<Part>,
    history: &[u64],
) -> (u64, Option<String>) {
    let mut trial = Trial { faulty, mix, side_by_side, careless, faults: 0 };
    let wrong = trial.all(history).err();
    (trial.faults, wrong)
}

fn attack(context: &Context, targets: &[&dyn Target]) -> Result<Tally> {
    let mut tally = Tally::default();
    let mixes: Vec<Mix> = context.mix.each().chain([context.mix.clone()]).collect();
    let mut number = 0;
    while context.continues(tally.count) && tally.failures.is_empty() {
        let seed = context.seed.wrapping_add(number);
        number += 1;
        let history = Mix::history(seed, fastrand::Rng::with_seed(seed).u64(1..=MOST));
        for mix in &mixes {
            for target in targets {
                let (faults, wrong) = target.trial(mix, &history);
                tally.count += faults;
                tally.add(&format!("on {}", target.name()), faults);
                tally.add("transactions", history.len() as u64);
                if let Some(what) = wrong {
                    let again = again(context.name(), "--count 1", seed, mix.only().as_deref());
                    let failure = shortest(*target, mix, &history, what);
                    tally.failures.push(Failure { again, ..failure });
                    return Ok(tally);
                }
            }
        }
    }
    Ok(tally)
}

fn shortest(target: &dyn Target, mix: &Mix, history: &[u64], mut what: String) -> Failure {
    let history = shrink(history, |history| match target.trial(mix, history).1 {
        Some(other) => {
            what = other;
            true
        }
        None => false,
    });
    let sequence = history.iter().map(|seed| mix.describe(*seed)).collect();
    Failure { what, sequence, ..Failure::default() }
}
