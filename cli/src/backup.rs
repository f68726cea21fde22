//! `keyloom backup`: a copy of a store, by the store's own backup.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use keyloom::lmdb::Compaction;
use keyloom::{AnyStore, KeyRange, Lmdb, Order, Reader, Store};
use serde_json::json;

use crate::address::{Access, open};
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped};
use crate::progress::Progress;
use crate::verify;

/// Copies the current state of an LMDB store to a new directory, while other programs write.
///
/// The copy is verified: all its pages, and its number of entries. A backup that is interrupted
/// while it copies leaves no file data.mdb, but may leave a file data.mdb.partial.*, which can be
/// deleted. One that is interrupted while it verifies leaves a copy that `keyloom verify` checks.
#[derive(Debug, Args)]
pub struct Backup {
    /// The store: lmdb:DIRECTORY
    pub address: String,
    /// The directory of the copy, which must not contain a store
    pub directory: PathBuf,
    /// Leaves out free pages, so the copy is smaller, but takes longer
    #[arg(long)]
    pub compact: bool,
}

impl Backup {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let AnyStore::Lmdb(store) = open(&self.address, Access::Read)? else {
            return Err(Failure::new(
                "only LMDB has a backup of its own; use `keyloom copy`, or `keyloom export` for a file",
            ));
        };
        let first = store.statistics()?.last_transaction;
        let before = store.statistics()?;
        let compaction = if self.compact { Compaction::On } else { Compaction::Off };
        store.backup(&self.directory, compaction)?;
        let after = store.statistics()?;
        // If no program has written meanwhile, the number of entries of the copy is known. The
        // engine reads the entries and the transaction of one call from different states, so the
        // transaction is that of an earlier call.
        let is_same = first == after.last_transaction && before.entries == after.entries;
        let expected = is_same.then_some(before.entries);
        let (entries, bytes) = self.verified(expected, out)?;
        let directory = self.directory.display().to_string();
        out.either(
            || json!({"backup": directory, "entries": entries, "bytes": bytes, "compact": self.compact}),
            || {
                let (entries, bytes) = (grouped(entries), grouped(bytes));
                let directory = directory.escape_debug();
                format!("{directory} holds {entries} entries in {bytes} bytes; the file is sound")
            },
        )?;
        Ok(Outcome::Fine)
    }

    /// Checks the copy, and returns its entries and its bytes.
    fn verified(&self, expected: Option<u64>, out: &mut Output) -> Result<(u64, u64)> {
        let file = self.directory.join("data.mdb");
        let report = verify::pages(&file).map_err(|error| faulty(&file, &error.to_string()))?;
        if !report.is_sound() {
            verify::list(out, &report.faults)?;
            return Err(faulty(&file, &format!("it has {} faults", grouped(report.fault_count))));
        }
        let entries = count(&self.directory)?;
        match expected.filter(|expected| *expected != entries) {
            None => Ok((entries, report.file_bytes)),
            Some(expected) => {
                let [expected, entries] = [expected, entries].map(grouped);
                Err(faulty(&file, &format!("it has {entries} entries, the store {expected}")))
            }
        }
    }
}

/// Counts the entries of the copy, through the engine.
fn count(directory: &Path) -> Result<u64> {
    let copy = Lmdb::options().read_only(true).assume_no_writer(true).open(directory)?;
    let mut progress = Progress::new("read");
    for entry in copy.snapshot()?.range(KeyRange::all(), Order::Ascending)? {
        let (key, value) = entry?;
        progress.add(1, key.len() + value.len());
    }
    progress.finish();
    Ok(progress.entries())
}

/// Renames the file, so that no program uses it, and returns the error.
fn faulty(file: &Path, why: &str) -> Failure {
    let renamed = file.with_file_name("data.mdb.faulty");
    let place = match fs::rename(file, &renamed) {
        Ok(()) => renamed.display().to_string(),
        Err(_) => file.display().to_string(),
    };
    let place = place.escape_debug();
    Failure::new(format!(
        "the copy {place} is not usable: {why}; stop the programs that write, and run `keyloom verify` on the store"
    ))
}
