//! The ordinary tests, with their counts: they attack the promises that need no campaign.
//!
//! Not part of `ci`, where `cargo test` runs them all. The controls are among the tests: weakened
//! and broken stores, writers that retry blindly, and counters that must count.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::{Campaign, Context, Control, Facts, Failure, Tally, promises};

/// The names in the table of promises, and the arguments of `cargo test`.
type Programs = &'static [(&'static str, &'static [&'static str])];

/// Test programs of the workspace.
pub struct Tests;

/// Test programs that need servers.
pub struct Servers;

const PROGRAMS: Programs = &[
    ("keys", &["--package", "keyloom", "--lib", "key::"]),
    ("keys beside another crate", &["--package", "keyloom-compare", "--tests"]),
    ("ranges", &["--package", "keyloom", "--test", "ranges"]),
    ("allocations", &["--package", "keyloom-patterns", "--test", "allocations"]),
    ("pitfalls of LMDB", &["--package", "keyloom", "--test", "lmdb"]),
    ("patterns", &["--package", "keyloom-tables", "--test", "tables", "index::"]),
    ("the book", &["--package", "keyloom-book"]),
];

const SERVERS: &str = "--features=postgres,etcd,tls";
const STORES: &str = "--features=keyloom-testing/postgres,keyloom-testing/etcd,keyloom-testing/tls";

/// Test programs for which servers are started.
const ON_SERVERS: Programs = &[
    ("PostgreSQL", &["--package", "keyloom-on-servers", SERVERS, "--test", "postgres"]),
    ("etcd", &["--package", "keyloom-on-servers", SERVERS, "--test", "etcd"]),
    ("killed servers", &["--package", "keyloom-on-servers", SERVERS, "--test", "kills"]),
    ("patterns", &["--package", "keyloom-tables", STORES, "--test", "tables", "index::"]),
];

impl Campaign for Tests {
    fn facts(&self) -> Facts {
        Facts {
            name: "tests",
            about: "the ordinary tests behind the promises that need no campaign",
            unit: "tests",
            counts: (0, 1),
            beneath_workloads: true,
            ..Facts::default()
        }
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        run_all(context, PROGRAMS, &cargo())
    }

    fn controls(&self, _: &Context) -> Result<Vec<Control>> {
        Ok(Vec::new())
    }
}

impl Campaign for Servers {
    fn facts(&self) -> Facts {
        Facts {
            name: "servers",
            about: "the ordinary tests on PostgreSQL and etcd, which are killed and cut off",
            unit: "tests",
            counts: (0, 1),
            beneath_workloads: true,
            ..Facts::default()
        }
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        run_all(context, ON_SERVERS, &cargo_with_servers())
    }

    fn controls(&self, _: &Context) -> Result<Vec<Control>> {
        Ok(Vec::new())
    }
}

/// The beginning of a command whose end is the arguments of a test program.
fn cargo() -> Vec<OsString> {
    vec![std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), "test".into()]
}

fn cargo_with_servers() -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["tests/servers/with.sh".into()];
    words.extend(cargo());
    words
}

fn run_all(context: &Context, programs: Programs, command: &[OsString]) -> Result<Tally> {
    let mut tally = Tally::default();
    for (name, arguments) in programs {
        if context.is_stopped() {
            break;
        }
        match passed(command, arguments)? {
            Ok(count) => {
                tally.count += count;
                tally.add(name, count);
            }
            Err(reported) => {
                let words = command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>();
                tally.failures.push(Failure {
                    what: format!("the tests of {name} fail"),
                    sequence: reported.lines().map(str::to_owned).collect(),
                    again: format!("{} {}", words.join(" "), arguments.join(" ")),
                });
            }
        }
    }
    Ok(tally)
}

/// The number of passed tests, or the output if a test failed.
fn passed(command: &[OsString], arguments: &[&str]) -> Result<Result<u64, String>> {
    let Some((program, first)) = command.split_first() else { bail!("no command") };
    let output = Command::new(program)
        .args(first)
        .args(arguments)
        // A missing server is a failure, not a reason to skip a test.
        .env("KEYLOOM_REQUIRE_SERVERS", "1")
        .current_dir(promises::root())
        .output()
        .context("starting cargo")?;
    let reported = String::from_utf8_lossy(&output.stdout);
    // `test result: ok. 11 passed; 0 failed; …`, once per program.
    let count = reported
        .lines()
        .filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next())
        .map(|count| count.parse::<u64>())
        .sum::<Result<u64, _>>()?;
    if output.status.success() && count > 0 {
        return Ok(Ok(count));
    }
    Ok(Err(format!("{reported}{}", String::from_utf8_lossy(&output.stderr))))
}
