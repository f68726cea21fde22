//! Derived data: what was maintained step by step is what is built at once.

use anyhow::Result;
use keyloom::{Lmdb, Memory, Store, Writer, lmdb::Durability};
use keyloom_bent::{Bent, Flaw};

use crate::campaign::again;
use crate::shrink::shrink;
use crate::workloads::OF_THE_MODEL;
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
        let flaws = [(Flaw::None, ""), (Flaw::LostWrite, "?"), (Flaw::ForgottenDelete, "?")];
        let mut controls = Control::each(&flaws, |flaw| {
            attack(&context.quietly(16), &mut || vec![Box::new(Bent::new(flaw))])
        })?;
        for mix in context.mix.each() {
            controls.push(check_is_awake(&mix, context.seed)?);
        }
        Ok(controls)
    }
}

/// A control for a workload: damage to what its patterns derive is found by their own `check`, without the
/// model; any other damage by the model at least. Some keys in turn are deleted, or get another value.
fn check_is_awake(mix: &Mix, seed: u64) -> Result<Control> {
    /// Long enough that there is something in every part.
    const LENGTH: u64 = 60;
    const HISTORIES: u64 = 4;
    const KEYS: usize = 24;
    let (mut derived, mut unseen) = (0, Vec::new());
    for number in 0..HISTORIES {
        let (store, mut oracle) = (Memory::new(), mix.oracle());
        let seed = seed.wrapping_add(number);
        let mut rng = fastrand::Rng::with_seed(seed);
        for number in 0..LENGTH {
            let transaction = Mix::nth(seed, number);
            oracle.imitate(transaction);
            store.transact(|txn| mix.perform(transaction, number, txn))?;
        }
        let mut keys = mix.keys(&store.snapshot()?)?;
        rng.shuffle(&mut keys);
        for (key, value, is_derived) in keys.into_iter().take(KEYS) {
            let mut txn = store.begin()?;
            let is_changed = !value.is_empty() && rng.bool();
            if is_changed {
                let mut changed = value;
                let at = rng.usize(..changed.len());
                changed[at] ^= 1 << rng.u8(..8);
                txn.put(&key, &changed)?;
            } else {
                txn.delete(&key)?;
            }
            derived += usize::from(is_derived);
            // What cannot be read is found too.
            let found = oracle.findings(&mut txn).unwrap_or_else(|error| vec![error.to_string()]);
            if !found.iter().any(|what| !is_derived || !what.contains(OF_THE_MODEL)) {
                let done = if is_changed { "changed" } else { "deleted" };
                unseen.push(format!("{} {done}", keyloom::key::display(&key)));
            }
        }
    }
    let name = format!("the check of {}", mix.names().concat());
    let told = format!("{derived} derived keys damaged, not noticed: {}", unseen.join(", "));
    Ok(Control::new(name, unseen.is_empty().then_some(()).ok_or(told)))
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
                if let Some(first) = target.judge(mix, &history).first() {
                    let fails = |history: &[u64]| !target.judge(mix, history).is_empty();
                    let shortest = shrink(&history, fails);
                    let sequence = shortest.iter().map(|seed| mix.describe(*seed)).collect();
                    // What is told is of what is shown.
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
