//! Derived data: what was maintained step by step is what is built at once.

use anyhow::Result;
use keyloom::{Lmdb, Memory, Store, Writer, lmdb::Durability};
use keyloom_bent::{Bent, Flaw};

use crate::shrink::shrink;
use crate::{Campaign, Context, Control, Failure, Mix, Tally};

/// Random histories of each workload, in memory and on LMDB.
pub struct Rebuild;

/// The most transactions of a history.
const MOST: u64 = 60;

impl Campaign for Rebuild {
    fn name(&self) -> &'static str {
        "rebuild"
    }

    fn about(&self) -> &'static str {
        "random histories of each workload: maintained equals rebuilt, and the model"
    }

    fn unit(&self) -> &'static str {
        "histories"
    }

    fn counts(&self) -> (u64, u64) {
        (256, 100_000)
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        let directory = context.directory("rebuild")?;
        // No crash happens here, so nothing needs to wait for the disk.
        let lmdb = Lmdb::options().durability(Durability::MayLoseStore).open(directory)?;
        attack(context, &mut || vec![Box::new(Memory::new()), Box::new(lmdb.clone())])
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        [Flaw::None, Flaw::LostWrite, Flaw::ForgottenDelete]
            .into_iter()
            .map(|flaw| {
                let tally = attack(&context.quietly(16), &mut || vec![Box::new(Bent::new(flaw))])?;
                let name = format!("{flaw:?}");
                Ok(match flaw {
                    Flaw::None => Control::sound(name, &tally),
                    _ => Control::of(name, &tally),
                })
            })
            .collect()
    }
}

/// A store of any type, as far as this campaign uses it.
trait Target {
    /// What is wrong after the history.
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

fn attack(context: &Context, targets: &mut dyn FnMut() -> Vec<Box<dyn Target>>) -> Result<Tally> {
    let mut tally = Tally::default();
    let mixes: Vec<Mix> = context.mix.each().collect();
    while context.goes_on(tally.count) && tally.failures.is_empty() {
        let seed = context.seed.wrapping_add(tally.count);
        let history = Mix::history(seed, fastrand::Rng::with_seed(seed).u64(1..=MOST));
        for mix in &mixes {
            for target in targets() {
                if let Some(what) = target.judge(mix, &history).first() {
                    let fails = |history: &[u64]| !target.judge(mix, history).is_empty();
                    let shortest = shrink(&history, fails);
                    let sequence = shortest.iter().map(|seed| mix.describe(*seed)).collect();
                    tally.failures.push(Failure { what: what.clone(), sequence });
                }
                tally.add("transactions", history.len() as u64);
            }
        }
        tally.count += 1;
    }
    Ok(tally)
}
