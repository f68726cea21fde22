//! The ordinary tests, counted: behind a promise that needs no campaign stands a test program.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::{Campaign, Context, Control, Failure, Tally, promises};

/// Test programs of the workspace.
pub struct Tests;

/// What a promise calls them, and what follows `cargo test`.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("keys", &["--package", "keyloom", "--lib", "key::"]),
    ("keys beside another crate", &["--package", "keyloom-compare", "--tests"]),
    ("ranges", &["--test", "ranges"]),
    ("allocations", &["--test", "allocations"]),
    ("pitfalls of LMDB", &["--test", "lmdb"]),
    ("patterns", &["--test", "composite_key_index"]),
    ("the book", &["--package", "keyloom-book"]),
];

impl Campaign for Tests {
    fn name(&self) -> &'static str {
        "tests"
    }

    fn about(&self) -> &'static str {
        "the ordinary tests behind the promises that need no campaign"
    }

    fn unit(&self) -> &'static str {
        "tests"
    }

    fn counts(&self) -> (u64, u64) {
        (1, 1)
    }

    fn run(&self, _: &Context) -> Result<Tally> {
        let mut tally = Tally::default();
        for (name, arguments) in PROGRAMS {
            match passed(arguments)? {
                Some(count) => {
                    tally.count += count;
                    tally.add(name, count);
                }
                None => tally.failures.push(Failure {
                    what: format!("`cargo test {}` fails", arguments.join(" ")),
                    sequence: Vec::new(),
                }),
            }
        }
        Ok(tally)
    }

    fn controls(&self, _: &Context) -> Result<Vec<Control>> {
        let caught = passed(&["--test", "a_program_that_is_not_there"])?.is_none();
        Ok(vec![Control { name: "a test program that is not there".into(), caught }])
    }
}

/// How many tests passed, if all did.
fn passed(arguments: &[&str]) -> Result<Option<u64>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .arg("test")
        .args(arguments)
        .current_dir(promises::root())
        .stderr(Stdio::null())
        .output()
        .context("starting cargo")?;
    let told = String::from_utf8_lossy(&output.stdout);
    // `test result: ok. 11 passed; 0 failed; …`, once for each program.
    let count = told
        .lines()
        .filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next())
        .map(|count| count.parse::<u64>())
        .sum::<Result<u64, _>>()?;
    Ok((output.status.success() && count > 0).then_some(count))
}
