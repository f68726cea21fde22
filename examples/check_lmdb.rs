//! Checks the data file of an LMDB store without the engine, which could crash on a damaged file:
//! `cargo run --release -p keyloom-examples --bin check_lmdb -- STORE`.
//!
//! Prints the pages and entries of each database and every fault, and fails if there is one. No
//! other process may write to the store meanwhile.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use keyloom::lmdb::file::{FileReport, verify};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [path] = arguments.as_slice() else {
        eprintln!("check_lmdb: give the directory of a store, or its data.mdb");
        return ExitCode::FAILURE;
    };
    let checked = check(Path::new(path));
    match checked.and_then(|report| print(&report, std::io::stdout()).map(|()| report)) {
        Ok(report) if report.is_sound() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("check_lmdb: {}: {error}", Path::new(path).display());
            ExitCode::FAILURE
        }
    }
}

fn check(path: &Path) -> Result<FileReport, std::io::Error> {
    let file = if path.is_dir() { path.join("data.mdb") } else { path.into() };
    let report = verify(file, |done, total| eprint!("\r{done} of {total} pages"))
        .map_err(std::io::Error::other);
    eprintln!();
    report
}

fn print(report: &FileReport, mut to: impl Write) -> Result<(), std::io::Error> {
    writeln!(to, "{} bytes, {} free pages", report.file_bytes, report.free_pages)?;
    for (name, found) in &report.databases {
        writeln!(
            to,
            "{name:?}: {} entries, depth {}, pages: {} branch, {} leaf, {} overflow",
            found.entries, found.depth, found.branch_pages, found.leaf_pages, found.overflow_pages
        )?;
    }
    for fault in &report.faults {
        writeln!(to, "{fault}")?;
    }
    match report.fault_count {
        0 => writeln!(to, "sound"),
        faults => writeln!(to, "{faults} faults; restore a backup, or export what can be read"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use keyloom::{Lmdb, Store, Writer};

    use super::*;

    #[test]
    fn a_damaged_page_is_printed_with_its_number() {
        let directory = tempfile::tempdir().unwrap();
        let store = Lmdb::open(directory.path()).unwrap();
        store
            .transact(|txn| (0..5_000_u32).try_for_each(|n| txn.put(&n.to_be_bytes(), b"value")))
            .unwrap();
        drop(store);
        let report = check(directory.path()).unwrap();
        let mut printed = Vec::new();
        print(&report, &mut printed).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        assert!(printed.contains(": 5000 entries"), "{printed}");
        assert!(printed.ends_with("sound\n"), "{printed}");

        let file = directory.path().join("data.mdb");
        let mut bytes = std::fs::read(&file).unwrap();
        let page = report.meta.page_bytes as usize;
        bytes[5 * page..6 * page].fill(0xFF);
        std::fs::write(&file, bytes).unwrap();
        let report = check(&file).unwrap();
        let mut printed = Vec::new();
        print(&report, &mut printed).unwrap();
        let printed = String::from_utf8(printed).unwrap();
        assert!(printed.contains("page 5: "), "{printed}");
        assert!(!report.is_sound());
    }
}
