//! Stores and an ordered map must return the same results for all operations.
//!
//! The short form of this campaign is `cargo test --test differential`.
//! [`keyloom_conformance::operations`] documents the operations and comparisons, the keys of
//! critical bytes, and the snapshots that stay open across commits.

use std::path::Path;

use anyhow::{Result, bail};
use keyloom::{KeyRange, Lmdb, Memory, Store, Writer, lmdb::Durability};
use keyloom_conformance::{Finding, Operation, operations, replay};
use keyloom_mutant_stores::{Flaw, MutantStore};
use keyloom_redb::Redb;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::shrink::shrink;
use crate::{Campaign, Context, Control, Facts, Failure, Tally};

/// Random histories in memory, in memory with concurrent transactions, on LMDB and on redb.
pub struct Differential;

/// Long enough that snapshots outlive many commits.
const HISTORY_LENGTH: usize = 250;

impl Campaign for Differential {
    fn facts(&self) -> Facts {
        Facts {
            name: "differential",
            about: "random operations: memory, optimistic memory, LMDB, redb and an ordered map answer alike",
            unit: "operations",
            counts: (50_000, 10_000_000),
            beneath_workloads: true,
            ..Facts::default()
        }
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        // No crash happens here, so no commit needs a sync.
        let options = Lmdb::options().durability(Durability::MayLoseStore);
        let lmdb = options.open(context.directory("differential")?)?;
        let redb = redb(&context.directory("differential-redb")?)?;
        attack(context, |history| {
            on("memory", replay(&Memory::new(), history))?;
            let optimistic = Memory::builder().optimistic(true).build();
            on("optimistic memory", replay(&optimistic, history))?;
            // All histories use one file, so that freed pages are reused.
            lmdb.transact(|txn| txn.delete_range(KeyRange::all()))
                .map_err(|error| format!("LMDB is not emptied: {error}"))?;
            on("LMDB", replay(&lmdb, history))?;
            redb.transact(|txn| txn.delete_range(KeyRange::all()))
                .map_err(|error| format!("redb is not emptied: {error}"))?;
            on("redb", replay(&redb, history))
        })
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let context = context.quietly(10_000);
        let flaws = [
            (Flaw::None, ""),
            (Flaw::InclusiveEnd, "should be|pages do not come to an end"),
            (Flaw::MovingSnapshot, "Kept|kept"),
            (Flaw::DeleteRangeKeepsFirst, "should be"),
        ];
        let mut controls = Control::each(&context, &flaws, |context, flaw| {
            attack(context, |history| on("it", replay(&MutantStore::new(flaw), history)))
        })?;
        // The remains of one history are not in the model of the next one.
        let redb = redb(&context.directory("differential-redb-control")?)?;
        let tally = attack(&context, |history| on("redb", replay(&redb, history)))?;
        controls.push(Control::of("redb is not emptied", &tally, "should be|redb:"));
        Ok(controls)
    }
}

fn redb(directory: &Path) -> keyloom::Result<Redb> {
    Redb::options()
        .durability(keyloom_redb::Durability::MayLoseCommits)
        .open(directory.join("store"))
}

fn on(store: &str, outcome: Result<(), Finding>) -> Result<(), String> {
    outcome.map_err(|finding| format!("{store}: {finding}"))
}

/// Generates histories until one fails.
fn attack(context: &Context, judge: impl Fn(&[Operation]) -> Result<(), String>) -> Result<Tally> {
    let histories = operations(HISTORY_LENGTH);
    let mut tally = Tally::default();
    let mut number = 0;
    while context.continues(tally.count) && tally.failures.is_empty() {
        // Each history has its own seed.
        let seed = context.seed.wrapping_add(number);
        number += 1;
        let mut runner = TestRunner::new_with_rng(Config::default(), generator(seed));
        let history = match histories.new_tree(&mut runner) {
            Ok(history) => history.current(),
            Err(why) => bail!("no history can be made up: {why}"),
        };
        if judge(&history).is_err() {
            let again = context.again(seed, 1);
            tally.failures.push(Failure { again, ..shortest(&history, &judge) });
        }
        tally.count += history.len() as u64;
        tally.add("histories", 1);
        let kept = history.iter().filter(|operation| matches!(operation, Operation::Keep));
        tally.add("snapshots kept", kept.count() as u64);
    }
    Ok(tally)
}

fn shortest(history: &[Operation], judge: impl Fn(&[Operation]) -> Result<(), String>) -> Failure {
    // proptest is not used here: it had not finished after 5,000 tries.
    let shortest = shrink(history, |history| judge(history).is_err());
    let what = judge(&shortest).err().unwrap_or_default();
    let sequence = shortest.iter().map(|operation| format!("{operation:?}")).collect();
    Failure { what, sequence, ..Failure::default() }
}

/// The source of randomness for proptest.
fn generator(seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}
