//! The table of promises, written from result files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::record::Record;
use crate::{campaigns, workloads};

/// A promise, and the campaigns that attack it.
struct Promise {
    /// The text of the promise.
    promise: &'static str,
    /// The names of the result files that support it.
    records: &'static [&'static str],
    /// The part of CI that supports it, if no result file does.
    in_ci: &'static str,
}

/// A promise with campaigns.
const fn promise(promise: &'static str, records: &'static [&'static str]) -> Promise {
    Promise { promise, records, in_ci: "not run" }
}

const PROMISES: &[Promise] = &[
    promise("memory, LMDB and the wrappers keep the same laws", &["conformance"]),
    promise("memory = LMDB = `BTreeMap`, whatever is asked of them", &["differential"]),
    promise(
        "committed transactions are serializable in memory and on LMDB, in an order that agrees with the clock",
        &["isolation"],
    ),
    promise(
        "what was acknowledged survives a program that is killed; nothing is half there, in every workload",
        &["kill"],
    ),
    promise(
        "what was acknowledged (`Durability::Full`) survives a power cut; nothing is half there, in every workload",
        &["power"],
    ),
    promise(
        "an operation that fails leaves nothing half done, in every workload; answers are right or errors",
        &["faults"],
    ),
    promise(
        "a system call that fails is an error with a name; nothing is half done, in every workload, and the \
         program goes on",
        &["syscalls"],
    ),
    promise(
        "a full disk is an error with a remedy; nothing is lost, in every workload",
        &["disk-full"],
    ),
    promise(
        "readers that are killed neither make an LMDB file grow nor keep its writer out",
        &["dead-readers"],
    ),
    promise(
        "a backup is whole or not there: with several at once, and after a power cut",
        &["backups"],
    ),
    promise("no store is read without reader slots while a program writes it", &["read-only"]),
    promise("derived data, in every workload: rebuilt = maintained = the model", &["rebuild"]),
    promise("what `Lmdb::verify` calls sound is read without a crash or a lost entry", &["damage"]),
    Promise {
        promise: "no bytes make decoding panic",
        records: &["hostile-bytes"],
        in_ci: "the targets without a fuzzer: `cargo test -p keyloom-fuzz`",
    },
    Promise {
        promise: "the tests of keys and ranges notice any change of that code",
        records: &["mutation"],
        in_ci: "what the change touches",
    },
    Promise {
        promise: "AddressSanitizer, Valgrind and Miri see no bad access in keyloom's Rust code",
        records: &["memory-safety", "miri"],
        in_ci: "Miri, where the toolchain has it",
    },
    Promise {
        promise: "PostgreSQL and etcd keep the laws and are serializable (PostgreSQL but for conflicts that it \
                  forgets); what they acknowledged is there, once, though servers are killed and answers lost",
        records: &["servers", "isolation-on-servers"],
        in_ci: "the tests on servers",
    },
    Promise {
        promise: "keys are FoundationDB's bit for bit, ±(2^64 - 1) as its Java binding writes them; no bound \
                  loses a key; gets and scans allocate nothing in memory, once per range on LMDB; the README and \
                  the book run",
        records: &["tests"],
        in_ci: "`cargo test`",
    },
];

/// The commands for result files that no campaign writes.
const SCRIPTS: [(&str, &str); 5] = [
    ("hostile-bytes", "tests/fuzz/run.sh"),
    ("mutation", "tests/mutants.sh"),
    ("memory-safety", "tests/memory.sh"),
    ("miri", "tests/miri.sh"),
    ("isolation-on-servers", "tests/servers/with.sh cargo campaign-on-servers isolation"),
];

/// The directories of the result files: those of the form in CI, and those of the last full run.
pub const FORMS: [&str; 2] = ["ci", "release"];

const BEGIN: &str = "<!-- Written by `cargo campaign promises` from tests/campaigns/results. -->";
const END: &str = "<!-- End of what is written. -->";
/// Markers in the chapter.
const BEGIN_WORKLOADS: &str = "<!-- Written by `cargo campaign promises`: the workloads. -->";

/// The file with the table and the list of workloads.
pub const CHAPTER: &str = "book/src/reliability.md";

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The expected contents of [`CHAPTER`]: the file with the table of the current result files.
///
/// # Errors
/// If a file cannot be read, a result file is invalid, or the chapter has no place for the table.
pub fn updated() -> Result<String> {
    let results = root().join("tests/campaigns/results");
    let [ci, release] = FORMS.map(|form| Record::load_all(&results.join(form)));
    let text = std::fs::read_to_string(root().join(CHAPTER)).context(CHAPTER)?;
    let text = replaced(&text, BEGIN, &table(&ci?, &release?)?).context(CHAPTER)?;
    let names = workloads::all()?.0.into_iter().map(|workload| format!("`{}`", workload.name()));
    let names = names.collect::<Vec<_>>().join(", ");
    replaced(&text, BEGIN_WORKLOADS, &format!("{names}\n")).context(CHAPTER)
}

/// The text with the part between a line and the end marker replaced.
fn replaced(text: &str, begin: &str, with: &str) -> Result<String> {
    let (before, rest) = text.split_once(begin).with_context(|| format!("no line {begin}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("no line {END}"))?;
    Ok(format!("{before}{begin}\n\n{with}\n{END}{after}"))
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
    let mut table =
        String::from("| promise | shown by | in CI | before a release |\n|---|---|---|---|\n");
    for Promise { promise, records, in_ci } in PROMISES {
        let shown_by = records.iter().map(|name| {
            let record = ci.get(*name).or_else(|| release.get(*name));
            format!("`{}`", record.map_or_else(|| command(name), |record| plain(&record.command)))
        });
        let shown_by = shown_by.collect::<Vec<_>>().join(", ");
        // A campaign without a result file is also listed.
        let cell = |form: &Records, otherwise: &str| {
            let reported: Result<Vec<String>> =
                records.iter().filter_map(|name| form.get(*name)).map(outcome).collect();
            reported.map(|reported| {
                if reported.is_empty() { otherwise.to_owned() } else { reported.join("; ") }
            })
        };
        let (in_ci, before) = (cell(ci, in_ci)?, cell(release, "not run")?);
        writeln!(table, "| {promise} | {shown_by} | {in_ci} | {before} |")?;
    }
    Ok(table)
}

/// The command that writes a result file.
fn command(name: &str) -> String {
    let script = SCRIPTS.iter().find(|(record, _)| *record == name);
    script.map_or_else(|| format!("cargo campaign {name}"), |(_, script)| (*script).into())
}

/// The command without options that a run has chosen itself.
fn plain(command: &str) -> String {
    command.split(" --").next().unwrap_or(command).to_owned()
}

/// `2,000 kills, 0 failures; 13 of 13 controls held (2026-11-21, 1b4e87c)`.
fn outcome(record: &Record) -> Result<String> {
    let Record { count, unit, failures, controls, details, date, commit, .. } = record;
    let mut reported = format!("{} {unit}, {} failures", grouped(*count), grouped(*failures));
    if record.campaign == "mutation" {
        let of = |what: &str| details.get(what).copied().unwrap_or_default();
        let missed = if *failures == 0 {
            "none was missed".into()
        } else {
            format!("{failures} were missed")
        };
        reported = format!(
            "of {} changes that compile {missed} ({} by time-out; {} kinds that change nothing are left out, \
             `.cargo/mutants.toml`)",
            grouped(count - of("unviable")),
            of("timeouts"),
            left_out()?,
        );
    }
    reported += &absent(record)?;
    if !controls.is_empty() {
        let held = controls.values().filter(|held| **held).count();
        write!(reported, "; {held} of {} controls held", controls.len())?;
    }
    let commit = if commit.is_empty() { String::new() } else { format!(", {commit}") };
    write!(reported, " ({date}{commit})")?;
    Ok(reported)
}

/// The workloads that did not take part, if the campaign uses workloads.
fn absent(record: &Record) -> Result<String> {
    let all = campaigns::all();
    let campaign = all.iter().find(|campaign| campaign.facts().name == record.campaign);
    if campaign.is_none_or(|campaign| campaign.facts().beneath_workloads) {
        return Ok(String::new());
    }
    if record.workloads.is_empty() {
        return Ok(", workloads not noted".into());
    }
    let names = workloads::all()?.0.into_iter().map(|workload| workload.name());
    let absent: Vec<_> =
        names.filter(|name| !record.workloads.iter().any(|there| there == name)).collect();
    let without = || format!(", without {}", absent.join(", "));
    Ok(if absent.is_empty() { String::new() } else { without() })
}

/// The number of kinds of changes that are not made, because they have no effect.
fn left_out() -> Result<usize> {
    let text = std::fs::read_to_string(root().join(".cargo/mutants.toml"))?;
    let (_, kinds) = text.split_once("exclude_re").context("nothing is left out")?;
    Ok(kinds.lines().filter(|line| line.trim().starts_with('\'')).count())
}

/// Formats `1234567` as `1,234,567`.
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

/// Writes the table into the chapter.
///
/// # Errors
/// The errors of [`updated`]; also if the chapter cannot be written.
pub fn write() -> Result<()> {
    std::fs::write(root().join(CHAPTER), updated()?).context(CHAPTER)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::record::Record;

    #[test]
    fn the_table_of_promises_is_that_of_the_result_files() {
        let written = std::fs::read_to_string(root().join(CHAPTER)).unwrap();
        assert!(written == updated().unwrap(), "run `cargo campaign promises`");
    }

    #[test]
    fn old_result_file_without_commit_and_workloads_is_read() {
        let text = r#"{"campaign": "kill", "command": "cargo campaign kill", "date": "2026-11-21", "seed": 7,
            "count": 1, "unit": "kills", "failures": 0, "seconds": 1, "controls": {"one": true}}"#;
        let record: Record = serde_json::from_str(text).unwrap();
        assert!(record.is_sound() && record.commit.is_empty() && record.workloads.is_empty());
    }
}
