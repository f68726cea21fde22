//! The table of promises, written from result files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::record::Record;

/// A promise, and what attacks it.
struct Promise {
    /// What is promised.
    promise: &'static str,
    /// The names of the result files that stand behind it.
    records: &'static [&'static str],
}

const PROMISES: &[Promise] = &[
    Promise {
        promise: "memory, LMDB and the wrappers keep the same laws",
        records: &["conformance"],
    },
    Promise {
        promise: "memory = LMDB = `BTreeMap`, whatever is asked of them",
        records: &["differential"],
    },
    Promise {
        promise: "committed transactions are serializable in memory and on LMDB, in an order that agrees with the clock",
        records: &["isolation"],
    },
    Promise {
        promise: "what was acknowledged survives a program that is killed; nothing is half there",
        records: &["kill"],
    },
    Promise {
        promise: "what was acknowledged (`Durability::Full`) survives a power cut; nothing is half there",
        records: &["power"],
    },
    Promise {
        promise: "an operation that fails leaves nothing half done, in every pattern; answers are right or errors",
        records: &["faults"],
    },
    Promise {
        promise: "a system call that fails is an error with a name; nothing is half done, and the program goes on",
        records: &["syscalls"],
    },
    Promise {
        promise: "a full disk is an error with a remedy; nothing is lost",
        records: &["disk-full"],
    },
    Promise { promise: "derived data: rebuilt = maintained = the model", records: &["rebuild"] },
    Promise {
        promise: "what `Lmdb::verify` calls sound is read without a crash or a lost entry",
        records: &["damage"],
    },
    Promise { promise: "no bytes make decoding panic", records: &["hostile-bytes"] },
    Promise {
        promise: "the tests of keys and ranges notice any change of that code",
        records: &["mutation"],
    },
    Promise {
        promise: "AddressSanitizer and Valgrind see no bad access in keyloom's Rust code",
        records: &["memory-safety"],
    },
    Promise {
        promise: "PostgreSQL and etcd keep the laws; what they acknowledged is there, once, though servers are killed and answers lost",
        records: &["servers"],
    },
    Promise {
        promise: "keys are FoundationDB's bit for bit; no bound loses a key; reads allocate nothing; the README and the book run",
        records: &["tests"],
    },
];

/// Where the result files are kept: of the form in CI, and of the last full run.
pub const FORMS: [&str; 2] = ["ci", "release"];

const BEGIN: &str = "<!-- Written by `cargo campaign promises` from tests/campaigns/results. -->";
const END: &str = "<!-- End of what is written. -->";

/// The files that hold the table.
pub const FILES: [&str; 2] = ["README.md", "book/src/reliability.md"];

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a file should hold: itself, with the table of today's result files.
///
/// # Errors
/// A file that cannot be read, result files that are none, or a file without a place for the table.
pub fn updated(file: &Path) -> Result<String> {
    let results = root().join("tests/campaigns/results");
    let [ci, release] = FORMS.map(|form| Record::load_all(&results.join(form)));
    let text =
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let (before, rest) = text
        .split_once(BEGIN)
        .with_context(|| format!("{} has no line {BEGIN}", file.display()))?;
    let (_, after) =
        rest.split_once(END).with_context(|| format!("{} has no line {END}", file.display()))?;
    let table = table(&ci?, &release?)?;
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}

type Records = BTreeMap<String, Record>;

fn table(ci: &Records, release: &Records) -> Result<String> {
    let promised = || PROMISES.iter().flat_map(|promise| promise.records);
    for name in ci.keys().chain(release.keys()) {
        ensure!(
            promised().any(|promised| promised == name),
            "{name}.json stands behind no promise"
        );
    }
    let mut table = String::from(
        "| promise | shown by | in CI | before a release | controls |\n|---|---|---|---|---|\n",
    );
    let is_shown = |promise: &&Promise| {
        promise.records.iter().any(|name| ci.contains_key(*name) || release.contains_key(*name))
    };
    // A promise that nothing was counted for is not made.
    for promise in PROMISES.iter().filter(is_shown) {
        let shown_by = promise.records.iter().map(|name| {
            let record = ci.get(*name).or_else(|| release.get(*name));
            record.map_or_else(
                || format!("`{name}`"),
                |record| format!("`{}`", plain(&record.command)),
            )
        });
        let cell = |records: &Records, tell: &dyn Fn(&Record) -> String| {
            let told = promise.records.iter().filter_map(|name| records.get(*name).map(tell));
            let told: Vec<String> = told.collect();
            if told.is_empty() { "–".into() } else { told.join("; ") }
        };
        writeln!(
            table,
            "| {} | {} | {} | {} | {} |",
            promise.promise,
            shown_by.collect::<Vec<_>>().join(", "),
            cell(ci, &outcome),
            cell(release, &|record| format!("{} ({})", outcome(record), record.date)),
            if cell(ci, &controls) == "–" {
                cell(release, &controls)
            } else {
                cell(ci, &controls)
            },
        )?;
    }
    Ok(table)
}

/// The command without what a run has chosen for itself.
fn plain(command: &str) -> &str {
    command.split(" --").next().unwrap_or(command)
}

/// `2,000 kills, 0 failures`.
fn outcome(record: &Record) -> String {
    format!("{} {}, {} failures", grouped(record.count), record.unit, grouped(record.failures))
}

/// `13 of 13`.
fn controls(record: &Record) -> String {
    let all = record.controls.len();
    let held = record.controls.values().filter(|held| **held).count();
    if all == 0 { "–".into() } else { format!("{held} of {all}") }
}

/// `1234567` as `1,234,567`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Writes the table into every file that holds it.
///
/// # Errors
/// As [`updated`], or a file that cannot be written.
pub fn write() -> Result<()> {
    for file in FILES.map(|file| root().join(file)) {
        let text = updated(&file)?;
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}
