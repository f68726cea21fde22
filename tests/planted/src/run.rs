//! Runs the test programs, with a bug and without.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::areas;
use crate::tree::{self, Planted};

/// The messages of cargo, one JSON object per line.
pub fn messages(output: &[u8]) -> impl Iterator<Item = Value> {
    output.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// The packages whose tests may catch a bug.
const PACKAGES: [&str; 11] = [
    "keyloom",
    "keyloom-bitmaps",
    "keyloom-list-append",
    "keyloom-on-servers",
    "keyloom-patterns",
    "keyloom-graph",
    "keyloom-kit",
    "keyloom-spatial",
    "keyloom-tables",
    "keyloom-text",
    "keyloom-trees",
];

/// A test program, as cargo built it.
#[derive(Clone, Debug)]
struct Program {
    name: String,
    path: PathBuf,
    /// The directory in which cargo would run it.
    directory: PathBuf,
    /// Its run time without a bug.
    sound: Duration,
}

/// All test programs of the copy.
pub struct Suite {
    programs: Vec<Program>,
    scratch: PathBuf,
}

/// The outcome of a bug.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Caught(String),
    Survived,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Passed,
    Failed,
    TimedOut,
}

impl Suite {
    /// Builds the test programs, all or those in `chosen`. They are slightly optimized, because
    /// they run hundreds of times.
    pub fn build(tree: &Path, features: &str, chosen: &[String]) -> Result<Self> {
        let mut cargo = tree::cargo(tree);
        cargo.env("CARGO_PROFILE_TEST_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        cargo.env("CARGO_PROFILE_TEST_DEBUG", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
        cargo.args([
            "test",
            "--locked",
            "--no-run",
            "--message-format=json",
            "--features",
            features,
        ]);
        cargo.args(PACKAGES.iter().flat_map(|name| ["-p", name])).arg("--lib");
        match chosen {
            [] => cargo.arg("--tests"),
            _ => cargo.args(chosen.iter().flat_map(|name| ["--test", name])),
        };
        let output = cargo.stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "the copy does not build");
        let mut programs = BTreeMap::new();
        for message in messages(&output.stdout) {
            let (Some(path), true) =
                (message["executable"].as_str(), message["profile"]["test"] == true)
            else {
                continue;
            };
            let name = message["target"]["name"].as_str().unwrap_or_default().to_owned();
            let manifest = Path::new(message["manifest_path"].as_str().unwrap_or_default());
            let directory = manifest.parent().unwrap_or(tree).to_owned();
            let program =
                Program { name: name.clone(), path: path.into(), directory, sound: Duration::MAX };
            programs.insert(name, program);
        }
        ensure!(!programs.is_empty(), "cargo has built no test program");
        // A database server of another user must have access to it.
        let scratch = std::env::temp_dir().join("keyloom-planted");
        Ok(Self { programs: programs.into_values().collect(), scratch })
    }

    /// Runs each program once without a bug; all must pass.
    pub fn run_sound(mut self, jobs: usize) -> Result<Self> {
        const LONGEST: Duration = Duration::from_secs(1_200);
        let scratch = &self.scratch;
        let ran = in_parallel(&self.programs, jobs, |program| {
            let began = Instant::now();
            let ended = program.run(0, LONGEST, scratch);
            println!("{:30} {:6.1} s without a bug", program.name, began.elapsed().as_secs_f64());
            (ended, began.elapsed())
        });
        let mut failed = Vec::new();
        for (program, (ended, took)) in self.programs.iter_mut().zip(ran) {
            program.sound = took;
            if ended? != Ended::Passed {
                failed.push(program.name.clone());
            }
        }
        // A program that fails without a bug cannot show that a bug is caught.
        failed.iter().for_each(|name| println!("{name} fails without a bug, and is left out"));
        self.programs.retain(|program| !failed.contains(&program.name));
        ensure!(!self.programs.is_empty(), "no test program passes without a bug");
        Ok(self)
    }

    /// Runs the programs with each bug until one fails.
    pub fn hunt(&self, bugs: &[Planted], jobs: usize) -> Result<Vec<Outcome>> {
        let done = AtomicUsize::new(0);
        in_parallel(bugs, jobs, |bug| {
            let outcome = self.hunt_one(bug)?;
            let done = done.fetch_add(1, Relaxed) + 1;
            match &outcome {
                Outcome::Caught(by) => println!("{done:4} caught by {by}: {bug}"),
                Outcome::Survived => println!("{done:4} SURVIVED: {bug}"),
            }
            Ok(outcome)
        })
        .into_iter()
        .collect()
    }

    fn hunt_one(&self, bug: &Planted) -> Result<Outcome> {
        let mut programs: Vec<&Program> = self.programs.iter().collect();
        programs.sort_by_key(|program| (areas::rank(&bug.path, &program.name), program.sound));
        for program in programs {
            let patience = program.sound * 5 + Duration::from_secs(30);
            match program.run(bug.number, patience, &self.scratch)? {
                Ended::Passed => {}
                Ended::Failed => return Ok(Outcome::Caught(program.name.clone())),
                Ended::TimedOut => return Ok(Outcome::Caught(format!("{} (time)", program.name))),
            }
        }
        Ok(Outcome::Survived)
    }
}

impl Program {
    fn run(&self, bug: u32, patience: Duration, scratch: &Path) -> Result<Ended> {
        let directory = scratch.join(format!("{}-{bug}", self.name));
        fs::create_dir_all(&directory)?;
        let mut command = Command::new(&self.path);
        command.current_dir(&self.directory).env("KEYLOOM_PLANTED", bug.to_string());
        command.env("CARGO_MANIFEST_DIR", &self.directory).env("TMPDIR", &directory);
        command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("RUST_BACKTRACE", "0");
        command.args(["--test-threads", "1"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let has_failed = failures_of(child.stdout.take());
        let began = Instant::now();
        let ended = loop {
            let early = match child.try_wait()? {
                Some(status) if status.success() => break Ended::Passed,
                Some(_) => break Ended::Failed,
                None if has_failed.load(Relaxed) => Ended::Failed,
                None if began.elapsed() > patience => Ended::TimedOut,
                None => {
                    thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            child.kill()?;
            child.wait()?;
            break early;
        };
        let _ = fs::remove_dir_all(&directory);
        Ok(ended)
    }
}

/// Sets the flag as soon as the output of the program reports a failed test, so that the other
/// tests need not run.
fn failures_of(output: Option<ChildStdout>) -> Arc<AtomicBool> {
    let has_failed = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&has_failed);
    thread::spawn(move || {
        let lines = output.into_iter().flat_map(|output| BufReader::new(output).lines());
        for line in lines.map_while(Result::ok) {
            if line.ends_with("... FAILED") {
                flag.store(true, Relaxed);
            }
        }
    });
    has_failed
}

/// Runs `work` for each item, `jobs` at a time. Returns the results in the order of the items.
fn in_parallel<I: Sync, T: Send>(
    items: &[I],
    jobs: usize,
    work: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let result = work(item);
                    results
                        .lock()
                        .unwrap_or_else(|poisoned| poisoned.into_inner())
                        .insert(index, result);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    results.into_values().collect()
}
