//! Plants bugs in a copy of keyloom and counts which of them the tests catch.
//!
//! ```sh
//! cargo run -p keyloom-planted -- --count 150 --seed 1
//! ```
//!
//! A seed selects the bugs from all comparisons, conditions, sums, ranges and statements of the
//! chosen areas, equally many from each area. All bugs are built at once; the environment variable
//! `KEYLOOM_PLANTED` selects the bug of a process. Then the test programs of `cargo test` run once
//! without a bug, and for each bug until one of them fails. Doc tests and campaigns do not run, so
//! the count is a lower bound of what CI catches.
//!
//! A change is not a bug if all results and documented costs stay the same. Such changes are listed
//! in `no_bugs.txt` with the reason, and not selected.

// Indexing a JSON value with an unknown name returns null.
#![allow(clippy::indexing_slicing)]

mod areas;
mod run;
mod sites;
mod tree;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde::Serialize;

use run::{Outcome, Suite};
use tree::Tree;

/// Plants bugs in a copy of keyloom and counts which of them the tests catch.
#[derive(Parser)]
struct Options {
    /// The number of bugs
    #[arg(long, default_value_t = 150)]
    count: usize,
    /// The seed of the selection
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of concurrent test programs
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only these areas: lmdb, memory, remote, store, derived, patterns
    #[arg(long, value_delimiter = ',')]
    areas: Vec<String>,
    /// Only the bugs on these lines: src/lmdb/gate.rs:74
    #[arg(long, value_delimiter = ',')]
    at: Vec<String>,
    /// The directory of the copy, which is kept for the next run
    #[arg(long, default_value = "target/planted")]
    copy: PathBuf,
    /// Features to build and test with. Features with servers need running servers
    #[arg(long, default_value = "")]
    features: String,
    /// Only these test programs, in addition to those of `src`: postgres,etcd
    #[arg(long, value_delimiter = ',')]
    tests: Vec<String>,
    /// Print the bugs and run nothing
    #[arg(long)]
    list: bool,
    /// Write the results to this file
    #[arg(long)]
    result: Option<PathBuf>,
}

#[derive(Serialize)]
struct Found {
    seed: u64,
    planted: usize,
    caught: usize,
    survivors: Vec<String>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let mut tree = Tree::copy(&options.copy)?;
    let bugs =
        tree.plant(options.count, options.seed, &options.areas, &options.at, &options.features)?;
    if options.list {
        bugs.iter().for_each(|bug| println!("{bug}"));
        return Ok(());
    }
    let suite = Suite::build(tree.path(), &options.features, &options.tests)?;
    let sound = suite.run_sound(options.jobs)?;
    let outcomes = sound.hunt(&bugs, options.jobs)?;

    let survivors: Vec<String> = bugs
        .iter()
        .zip(&outcomes)
        .filter(|(_, outcome)| matches!(outcome, Outcome::Survived))
        .map(|(bug, _)| bug.to_string())
        .collect();
    let (planted, caught) = (bugs.len(), bugs.len() - survivors.len());
    println!("\nsurvivors:");
    survivors.iter().for_each(|bug| println!("{bug}"));
    println!(
        "planted: of {planted} bugs {caught} were caught, {:.1} %",
        100.0 * caught as f64 / planted as f64
    );
    if let Some(path) = &options.result {
        let found = Found { seed: options.seed, planted, caught, survivors };
        let text = serde_json::to_string_pretty(&found)?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    // If no bug is caught, the switch is broken.
    ensure!(caught > 0, "no bug was caught: the switch does not work");
    Ok(())
}
