//! `keyloom verify`: the pages of an LMDB file, without the engine.

use std::path::{Path, PathBuf};

use clap::Args;
use keyloom::lmdb::file::{Fault, FileError, FileReport, TreeRecord, read_meta, verify};
use serde_json::json;

use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped, note};
use crate::progress::Progress;
use crate::shown::printable;
use crate::style::{Role, paint};

/// Checks every page of an LMDB file: trees, counts and the list of free pages.
///
/// The file is read without the engine, so a file that does not open can be checked too. Stop the
/// programs that write to the store, or check a backup.
#[derive(Debug, Args)]
pub struct Verify {
    /// The store: lmdb:DIRECTORY, a directory with data.mdb, or the file itself
    pub address: String,
}

impl Verify {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let file = file_of(&self.address)?;
        let before = read_meta(&file).ok().map(|meta| meta.transaction_id);
        let report = match pages(&file) {
            Ok(report) => report,
            Err(FileError::NoSoundMeta { first, second }) => return no_meta(out, &[first, second]),
            Err(error) => return Err(Failure::new(error.to_string())),
        };
        let after = read_meta(&file).ok().map(|meta| meta.transaction_id);
        // A commit reuses pages of older states, which the walk then takes for damaged.
        if !report.is_sound() && before != after {
            return Err(Failure::new(
                "another program has written to the file meanwhile, so the faults found may not be real; stop that program, or verify a copy made with `keyloom backup`",
            ));
        }
        print(&report, out)?;
        Ok(if report.is_sound() { Outcome::Fine } else { Outcome::Different })
    }
}

/// Walks the pages of `file`, with progress.
pub fn pages(file: &Path) -> std::result::Result<FileReport, FileError> {
    let mut progress = Progress::of_pages("verified");
    let report = verify(file, |done, total| progress.set(done, total))?;
    progress.finish();
    Ok(report)
}

fn file_of(address: &str) -> Result<PathBuf> {
    let path = match address.split_once(':') {
        Some(("lmdb", path)) => path,
        Some(("memory" | "redb" | "fjall" | "postgres" | "postgresql" | "etcd", _)) => {
            return Err(Failure::new(
                "only files of LMDB can be verified; `keyloom check` reads records and index entries of every store",
            ));
        }
        _ => address,
    };
    let path = Path::new(path);
    Ok(if path.is_dir() { path.join("data.mdb") } else { path.to_path_buf() })
}

/// Prints the faults of a file without a sound meta page, from which no walk can start.
fn no_meta(out: &mut Output, faults: &[Fault]) -> Result<Outcome> {
    list(out, faults)?;
    if out.json {
        out.either(|| json!({"sound": false, "faults": faults.len()}), String::new)?;
    }
    note("neither meta page is sound, so no other page was checked; restore a backup");
    Ok(Outcome::Different)
}

/// Prints the faults.
pub fn list(out: &mut Output, faults: &[Fault]) -> Result {
    faults.iter().try_for_each(|fault| {
        let text = paint(Role::Fault, &printable(&fault.to_string()));
        let detail = &fault.detail;
        let object =
            || json!({"page": fault.page, "rule": fault.rule.to_string(), "fault": detail});
        out.either(object, || text.clone())
    })
}

fn print(report: &FileReport, out: &mut Output) -> Result {
    databases(&report.databases, out)?;
    list(out, &report.faults)?;
    if out.json {
        let object = json!({
            "sound": report.is_sound(), "faults": report.fault_count,
            "file_bytes": report.file_bytes, "free_pages": report.free_pages,
            "transaction": report.meta.transaction_id,
        });
        out.either(|| object, String::new)?;
    }
    let used = report.branch_pages + report.leaf_pages + report.overflow_pages;
    let [bytes, used, free] = [report.file_bytes, used, report.free_pages].map(grouped);
    note(&format!("{bytes} bytes, {used} pages in use, {free} free"));
    note(&match report.fault_count {
        0 => "the file is sound".into(),
        faults => {
            let shown = match report.faults.len() as u64 {
                shown if shown < faults => format!(", {shown} of them shown"),
                _ => String::new(),
            };
            let faults = grouped(faults);
            format!(
                "{faults} faults{shown}; restore a backup, or export the readable entries with `keyloom export`"
            )
        }
    });
    Ok(())
}

fn databases(all: &[(String, TreeRecord)], out: &mut Output) -> Result {
    if out.json {
        let object = |(name, one): &(String, TreeRecord)| {
            json!({
                "database": name, "entries": one.entries, "depth": one.depth,
                "branch_pages": one.branch_pages, "leaf_pages": one.leaf_pages,
                "overflow_pages": one.overflow_pages,
            })
        };
        return all.iter().try_for_each(|one| out.either(|| object(one), String::new));
    }
    let row = |(name, one): &(String, TreeRecord)| {
        let pages = [one.branch_pages, one.leaf_pages, one.overflow_pages];
        let mut row = vec![format!("{name:?}"), grouped(one.entries)];
        row.push(one.depth.to_string());
        row.extend(pages.map(grouped));
        row
    };
    let head = ["DATABASE", "ENTRIES", "DEPTH", "BRANCH PAGES", "LEAF PAGES", "OVERFLOW PAGES"];
    out.table(&head, &all.iter().map(row).collect::<Vec<_>>(), &[1, 2, 3, 4, 5])
}
