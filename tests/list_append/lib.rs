//! The isolation campaign: many transactions on the same few lists, and a checker that searches for
//! anomalies that no serial order explains.
//!
//! The crate is generic over the store:
//!
//! ```
//! # use keyloom::Memory;
//! # use keyloom_mutant_stores::Weakness;
//! # use keyloom_list_append::{campaign, weakened};
//! campaign(&Memory::new(), 2_000, 8).assert_clean();
//! weakened::is_caught(Memory::new(), Weakness::LostUpdates, 2_000, 8);
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`history`] | the operations and results of the writers |
//! | [`workload`], `steps`, `keys` | the writers |
//! | [`checker`] | the checks, of `versions` and of `cycles` in the `graph` |
//! | [`anomaly`] | the anomalies, by name |
//! | [`report`] | the counts of a campaign |
//! | [`weakened`] | stores on which the campaign must find an anomaly, and which |
//!
//! Writers may be threads of one process, or of several: see [`Plan::processes`].
// As in every test file.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(missing_docs, reason = "names of the literature, and fields that their names tell")]

pub mod anomaly;
pub mod checker;
mod cycles;
mod digest;
mod elements;
mod graph;
pub mod history;
mod keys;
pub mod report;
mod steps;
mod versions;
pub mod weakened;
pub mod workload;

use std::time::Instant;

use keyloom::{Result, Store};

pub use anomaly::{Anomaly, Name};
pub use report::Report;
pub use workload::Plan;

/// The number of transactions that are checked together. More transactions run in rounds, so that
/// memory stays small.
const ROUND: usize = 25_000;

/// The number of transactions of a campaign: `default`, or a number from the environment.
pub fn transactions(default: usize) -> usize {
    let asked = std::env::var("KEYLOOM_ISOLATION_TRANSACTIONS").ok();
    asked.map_or(default, |number| number.replace('_', "").parse().unwrap())
}

/// Runs transactions of `writers` threads on a store and checks their history.
///
/// Prints the counts. Panics if the store returns an error that a retry does not fix.
pub fn campaign<S: Store>(store: &S, transactions: usize, writers: usize) -> Report {
    campaign_of(store, &Plan::new(transactions, writers))
}

/// [`campaign`] with a plan.
pub fn campaign_of<S: Store>(store: &S, plan: &Plan) -> Report {
    let report = try_campaign(store, plan).unwrap_or_else(|error| panic!("{plan:?}: {error}"));
    println!("{}: {report}", std::any::type_name::<S>());
    report
}

/// Runs a campaign with a plan.
///
/// # Errors
/// The first error of the store that persists after retries.
pub fn try_campaign<S: Store>(store: &S, plan: &Plan) -> Result<Report> {
    let mut report = Report::default();
    let mut left = plan.transactions;
    while left > 0 {
        let transactions = left.min(ROUND);
        left -= transactions;
        let seed = plan.seed.wrapping_add((left * plan.writers) as u64);
        let started = Instant::now();
        let prefix = [&plan.prefix[..], &left.to_be_bytes()].concat();
        let round = Plan { transactions, seed, prefix, ..plan.clone() };
        let history = workload::run(store, &round)?;
        let ran = started.elapsed();
        let anomalies = checker::check_as(&history, plan.snapshots_in_commit_order);
        report.add(&history, anomalies, ran, started.elapsed() - ran);
    }
    Ok(report)
}
