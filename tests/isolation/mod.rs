//! The isolation campaign: many transactions on the same few lists, and a checker that looks for
//! anything that no serial order of them explains.
//!
//! It is generic over the store, and each backend's tests include this module by its path. It needs
//! `keyloom`, `keyloom-bent`, `fastrand` and `petgraph`.
//!
//! ```ignore
//! #[path = "../isolation/mod.rs"]
//! mod isolation;
//!
//! isolation::campaign(&store, isolation::transactions(20_000), 8).assert_clean();
//! isolation::weakened::is_caught(store, Weakness::WriteSkew, 4_000, 8);
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`history`] | what the writers did and saw |
//! | [`workload`], [`steps`], [`keys`] | the writers |
//! | [`checker`] | the checks, of [`versions`] and of [`cycles`] in the [`graph`] |
//! | [`anomaly`] | what is found, by name |
//! | [`report`] | the counts of a campaign |
//! | [`weakened`] | the campaign on a store that it must catch |
// As at the top of every test, which those that include this may not need themselves.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
// Each test uses the part that it needs: the checker's own tests no workload, the tests of a server
// no hand-written history.
#![allow(dead_code, unused_imports)]

pub mod anomaly;
pub mod checker;
pub mod cycles;
pub mod digest;
pub mod graph;
pub mod history;
pub mod keys;
pub mod report;
pub mod steps;
pub mod versions;
pub mod weakened;
pub mod workload;

use std::time::{Duration, Instant};

use keyloom::{Result, Store};

pub use anomaly::Name;
pub use report::Report;
pub use workload::Plan;

/// How many transactions are checked at once. More are done in rounds, so that memory stays small.
const ROUND: usize = 25_000;

/// How many transactions a campaign runs: `default`, or what the environment asks for.
pub fn transactions(default: usize) -> usize {
    let asked = std::env::var("KEYLOOM_ISOLATION_TRANSACTIONS").ok();
    asked.map_or(default, |number| number.replace('_', "").parse().unwrap())
}

/// Runs transactions of `writers` threads on a store and checks what they saw.
///
/// Prints the counts. Panics where the store reports an error that no new attempt mends.
pub fn campaign<S: Store>(store: &S, transactions: usize, writers: usize) -> Report {
    let plan = Plan {
        transactions,
        writers,
        seed: fastrand::u64(..),
        patience: Duration::from_secs(60),
        prefix: format!("isolation {:016x} ", fastrand::u64(..)).into_bytes(),
    };
    let report = campaign_of(store, &plan).unwrap_or_else(|error| panic!("{plan:?}: {error}"));
    println!("{}: {report}", std::any::type_name::<S>());
    report
}

/// Runs a campaign as planned.
///
/// # Errors
/// The first error of the store that neither a new attempt nor patience mends.
pub fn campaign_of<S: Store>(store: &S, plan: &Plan) -> Result<Report> {
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
        let anomalies = checker::check(&history);
        report.add(&history, anomalies, ran, started.elapsed() - ran);
    }
    Ok(report)
}
