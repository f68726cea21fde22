//! Plants bugs in a copy of keyloom and counts which of them the tests catch.
//!
//! ```sh
//! cargo run -p keyloom-planted -- --count 150 --seed 1
//! ```
//!
//! The bugs are drawn by a seed from all comparisons, conditions, sums, ranges and statements of
//! the chosen areas, as many from each area. All of them are built at once; the environment
//! (`KEYLOOM_PLANTED`) says which one a process has. Then the test programs of `cargo test` run
//! once without a bug, and for each bug until one of them fails. Doc tests and campaigns take no
//! part, so the count is a lower bound of what CI catches.
//!
//! A change that is no bug, since every answer and every documented cost stays, is listed in
//! `no_bugs.txt` with the reason, and not drawn.

// A JSON value answers an unknown name with null.
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
    /// How many bugs.
    #[arg(long, default_value_t = 150)]
    count: usize,
    /// What they are drawn with.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many test programs run at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only these areas: lmdb, memory, remote, store, derived, patterns.
    #[arg(long, value_delimiter = ',')]
    areas: Vec<String>,
    /// Only the bugs of these lines: src/lmdb/gate.rs:74
    #[arg(long, value_delimiter = ',')]
    at: Vec<String>,
    /// The copy, which is kept for the next run.
    #[arg(long, default_value = "target/planted")]
    copy: PathBuf,
    /// Features to build and test with. Servers must run where their features are on.
    #[arg(long, default_value = "")]
    features: String,
    /// Only these test programs, beside those of `src`: postgres,etcd
    #[arg(long, value_delimiter = ',')]
    tests: Vec<String>,
    /// Prints the bugs and runs nothing.
    #[arg(long)]
    list: bool,
    /// Writes what was found to this file.
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
    // A run that catches nothing has a broken switch.
    ensure!(caught > 0, "no bug was caught: the switch does not work");
    Ok(())
}
