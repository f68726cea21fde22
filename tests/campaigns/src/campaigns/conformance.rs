//! The laws of a store: the public suite, on every store and on every wrapper.

use std::path::Path;

use anyhow::Result;
use keyloom::{BoxedError, Faulty, Lmdb, Memory, Metered, Store, lmdb::Durability};
use keyloom_conformance::{Fixture, Suite, Violation, With, checks};
use keyloom_mutant_stores::{Flaw, Mutant};
use keyloom_redb::Redb;
use tempfile::TempDir;

use crate::{Campaign, Context, Control, Facts, Failure, Tally};

/// [`keyloom_conformance`] in memory, on LMDB, and through the wrappers of stores.
pub struct Conformance;

/// The total number of operations in the random histories of a store.
const OPERATIONS: usize = 5_000;

impl Campaign for Conformance {
    fn facts(&self) -> Facts {
        let all = (TARGETS.len() * checks::<Memory>().len()) as u64;
        // Each round has different random histories.
        Facts {
            name: "conformance",
            about: "the laws of a store, on each store and through each wrapper",
            unit: "checks",
            counts: (all, 100 * all),
            beneath_workloads: true,
            ..Facts::default()
        }
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        let mut tally = Tally::default();
        for round in 0.. {
            if !context.continues(tally.count) || !tally.failures.is_empty() {
                break;
            }
            // The seed also determines the store, so the seed suffices to reproduce the round.
            let seed = context.seed.wrapping_add(round);
            let (name, target) = &TARGETS[(seed % TARGETS.len() as u64) as usize];
            let seen = target(&Suite::new().operations(OPERATIONS).seed(seed), context.scratch());
            tally.count += checks::<Memory>().len() as u64;
            tally.add("random operations", OPERATIONS as u64);
            tally.add("stores", 1);
            // A violation names its check. For a random history, it contains the shortest failing
            // one.
            tally.failures.extend(failures(seen).map(|what| Failure {
                what: format!("{name}: {what}"),
                again: context.again(seed, 1),
                ..Failure::default()
            }));
        }
        Ok(tally)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let suite = Suite::new().seed(context.seed);
        let sound = failures(suite.run(|| Ok(Mutant::new(Flaw::None)))).next();
        let mut controls = vec![Control::new("None", sound.map_or(Ok(()), Err))];
        // Without random histories: the named checks must find the flaw.
        let suite = suite.operations(0);
        for flaw in Flaw::ALL {
            let Some((law, check)) = flaw.breaks() else { continue };
            let suite = suite.clone().only(check);
            let seen = suite.run(|| Ok(Mutant::new(*flaw))).unwrap_or_default();
            let is_of = |violation: &Violation| (violation.law, violation.check) == (law, check);
            let held = seen.iter().any(is_of).then_some(());
            let instead = || format!("{check} finds nothing");
            controls.push(Control::new(format!("{flaw:?}"), held.ok_or_else(instead)));
        }
        Ok(controls)
    }
}

type Seen = Result<Vec<Violation>, BoxedError>;

/// A function that creates the store again for each check, in a directory in which it may create
/// others.
type Target = fn(&Suite, &Path) -> Seen;

const TARGETS: [(&str, Target); 10] = [
    ("memory", |suite, _| suite.run(|| Ok(Memory::new()))),
    ("memory, metered", |suite, _| suite.run(|| Ok(Metered::new(Memory::new())))),
    ("memory, faulty", |suite, _| suite.run(|| Ok(Faulty::new(Memory::new())))),
    ("optimistic memory", |suite, _| suite.run(|| Ok(optimistic()))),
    ("optimistic memory, metered", |suite, _| suite.run(|| Ok(Metered::new(optimistic())))),
    ("optimistic memory, faulty", |suite, _| suite.run(|| Ok(Faulty::new(optimistic())))),
    ("LMDB", |suite, within| on_lmdb(suite, within, |lmdb| lmdb)),
    ("LMDB, metered", |suite, within| on_lmdb(suite, within, Metered::new)),
    ("LMDB, faulty", |suite, within| on_lmdb(suite, within, Faulty::new)),
    ("redb", on_redb),
];

fn optimistic() -> Memory {
    Memory::builder().optimistic(true).build()
}

fn on_lmdb<S: Store>(suite: &Suite, within: &Path, wrap: impl Fn(Lmdb) -> S) -> Seen
where
    With<S, TempDir>: Fixture<Store = S>,
{
    suite.run(|| {
        let directory = tempfile::tempdir_in(within)?;
        // No crash happens here, so no commit needs a sync.
        let options = Lmdb::options().durability(Durability::MayLoseStore);
        Ok(With(wrap(options.open(directory.path())?), directory))
    })
}

fn on_redb(suite: &Suite, within: &Path) -> Seen {
    suite.run(|| {
        let directory = tempfile::tempdir_in(within)?;
        let options = Redb::options().durability(keyloom_redb::Durability::MayLoseCommits);
        Ok(With(options.open(directory.path().join("store"))?, directory))
    })
}

fn failures(seen: Seen) -> impl Iterator<Item = String> {
    let reported = match seen {
        Ok(violations) => violations.iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!("the store cannot be made: {error}")],
    };
    reported.into_iter()
}
