//! Renames files and directories in several processes at once, with each strategy of the book's
//! chapter on locks. Each strategy does the same random work on the same file system.
//!
//! ```text
//! cargo run --release -p keyloom-examples --bin rename_race
//! cargo run --release -p keyloom-examples --bin rename_race -- --help
//! ```

mod strategy;
mod world;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use keyloom::Lmdb;
use keyloom::lmdb::Durability;
use keyloom_patterns::locking::Session;
use lexopt::prelude::*;

use strategy::{Attempt, Strategy, attempt};
use world::World;

type Done<T = ()> = Result<T, Box<dyn Error>>;

const HELP: &str = "\
Renames files and directories concurrently, with several strategies.

Usage: rename_race [--processes N] [--seconds S] [--think-us MICROSECONDS]

The time to think is between the decision and the rename: 200 microseconds by default.
";

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    renamed: u64,
    repeated: u64,
    refused: u64,
}

struct Options {
    processes: u32,
    seconds: f64,
    think_us: u64,
    worker: Option<(Strategy, PathBuf, u64)>,
}

fn main() -> ExitCode {
    let done = options().and_then(|options| match options {
        None => Ok(true),
        Some(Options {
            worker: Some((strategy, ref store, seed)), ref seconds, think_us, ..
        }) => work(strategy, store, seed, *seconds, Duration::from_micros(think_us)).map(|()| true),
        Some(options) => race(&options),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("rename_race: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Done<Option<Options>> {
    let mut options = Options { processes: 4, seconds: 2.0, think_us: 200, worker: None };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(None);
            }
            Long("processes") => options.processes = arguments.value()?.parse()?,
            Long("seconds") => options.seconds = arguments.value()?.parse()?,
            Long("think-us") => options.think_us = arguments.value()?.parse()?,
            // Runs as a child process of a race; the arguments are the strategy, the store and the
            // seed.
            Long("worker") => {
                let name = arguments.value()?.string()?;
                let strategy = Strategy::named(&name).ok_or("no such strategy")?;
                let store = PathBuf::from(arguments.value()?);
                options.worker = Some((strategy, store, arguments.value()?.parse()?));
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(Some(options))
}

fn open(path: &Path) -> keyloom::Result<World> {
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    World::open(options.open(path)?)
}

/// A child process: renames until its time is up, and prints its counts.
fn work(strategy: Strategy, store: &Path, seed: u64, seconds: f64, think: Duration) -> Done {
    fastrand::seed(seed);
    let world = open(store)?;
    let session = Session::begin(&world.store, &world.locks, &format!("process {seed}"))?;
    let (began, mut counts) = (Instant::now(), Counts::default());
    while began.elapsed().as_secs_f64() < seconds {
        match attempt(strategy, &world, &session, think)? {
            Attempt::Renamed => counts.renamed += 1,
            Attempt::Repeated => counts.repeated += 1,
            Attempt::Refused => counts.refused += 1,
        }
    }
    session.end()?;
    println!("{} {} {}", counts.renamed, counts.repeated, counts.refused);
    Ok(())
}

/// Runs all strategies. Returns whether each kept its promise.
fn race(options: &Options) -> Done<bool> {
    let Options { processes, seconds, think_us, .. } = options;
    println!("{processes} processes on LMDB, {seconds} s each, {think_us} µs to think\n");
    println!("{:<16}{:>10}{:>11}{:>10}{:>9}", "", "renames/s", "repeated", "refused", "check");
    let mut is_right = true;
    for (strategy, name) in Strategy::ALL {
        let directory = tempfile::tempdir()?;
        let store = directory.path().join("store");
        let world = open(&store)?;
        world.fill()?;
        let counts = run_processes(name, &store, options)?;
        let faults = world.faults()?;
        let check = if faults.is_empty() { "clean" } else { "FAULTS" };
        let rate = counts.renamed as f64 / seconds;
        let Counts { repeated, refused, .. } = counts;
        let bar = "█".repeat((rate / 250.0).round().min(60.0) as usize);
        println!("{name:<16}{rate:>10.0}{repeated:>11}{refused:>10}{check:>9}  {bar}");
        faults.iter().take(5).for_each(|fault| println!("    {fault}"));
        // Without protection some decisions must be out of date. With protection, none may be.
        let as_promised = (refused > 0) == (strategy == Strategy::Nothing);
        is_right &= faults.is_empty() && as_promised && counts.renamed > 0;
    }
    if !is_right {
        println!("\nA strategy did not keep its promise, or the control was not caught.");
    }
    Ok(is_right)
}

fn run_processes(name: &str, store: &Path, options: &Options) -> Done<Counts> {
    let program = std::env::current_exe()?;
    let start = |seed: u32| {
        Command::new(&program)
            .args(["--seconds", &options.seconds.to_string()])
            .args(["--think-us", &options.think_us.to_string()])
            .args(["--worker", name].map(std::ffi::OsStr::new))
            .arg(store)
            .arg(seed.to_string())
            .stdout(Stdio::piped())
            .spawn()
    };
    let children: Vec<Child> = (1..=options.processes).map(start).collect::<Result<_, _>>()?;
    let mut all = Counts::default();
    for child in children {
        let output = child.wait_with_output()?;
        let text = String::from_utf8(output.stdout)?;
        let mut numbers = text.split_whitespace().map(str::parse::<u64>);
        let mut next = || numbers.next().ok_or("a process printed no counts");
        all.renamed += next()??;
        all.repeated += next()??;
        all.refused += next()??;
    }
    Ok(all)
}
