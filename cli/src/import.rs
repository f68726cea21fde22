//! `keyloom import`: the lines of an export as entries of a store.

use std::fs::File;
use std::io::{BufRead, BufReader};

use clap::Args;
use serde_json::json;

use crate::address::open;
use crate::batches::Batches;
use crate::failure::{Failure, Outcome, Result};
use crate::indexed::Entry;
use crate::lines::Lines;
use crate::output::{Output, grouped};
use crate::target::{Counts, Target};
use crate::write::Permission;

/// Writes the entries of an export. An import that was interrupted can be repeated.
///
/// Verifies each line before it is written. An entry that the store already holds counts as done.
/// An entry that has another value in the store ends the import, unless --replace is given.
#[derive(Debug, Args)]
pub struct Import {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The output of `keyloom export`; - is the standard input [default: -]
    pub file: Option<String>,
    /// Overwrites entries that have another value
    #[arg(long)]
    pub replace: bool,
    /// Creates the store if it is missing
    #[arg(long)]
    pub create: bool,
    #[command(flatten)]
    permission: Permission,
}

impl Import {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let access = self.permission.access(self.create)?;
        // A file that is not an export creates no store.
        let mut lines = self.lines()?;
        let store = open(&self.address, access)?;
        let mut target = Target::new(&store, self.replace, self.permission.bypass_schema)?;
        let mut batches = Batches::new(&store, "imported", |sorted| target.write(sorted));
        let read = load(&mut lines, &mut batches);
        let written = batches.written();
        drop(batches);
        match read {
            Ok(()) => report(out, &lines.digest().sha256(), written, &target.counts),
            Err(failure) => Err(after(&failure, written)),
        }
    }

    fn lines(&self) -> Result<Lines<Box<dyn BufRead>>> {
        let Some(path) = self.file.as_deref().filter(|path| *path != "-") else {
            return Lines::open("the standard input".into(), Box::new(std::io::stdin().lock()));
        };
        let name = path.escape_debug().to_string();
        let file = File::open(path)
            .map_err(|error| Failure::new(format!("{name} cannot be opened: {error}")))?;
        Lines::open(name, Box::new(BufReader::new(file)))
    }
}

/// Writes all entries. The last batch is written after the last line was verified.
fn load<R: BufRead, W: FnMut(&[Entry<'_>]) -> Result>(
    lines: &mut Lines<R>,
    batches: &mut Batches<Vec<u8>, W>,
) -> Result {
    while let Some((key, value)) = lines.read()? {
        batches.push(key, value)?;
    }
    batches.finish()
}

/// The failure of an import, with the number of entries that were written before it.
fn after(failure: &Failure, written: u64) -> Failure {
    let remedy = match failure {
        Failure::Store(_) => "; repeat the import, which continues",
        _ => "",
    };
    Failure::new(format!("{failure}; {} entries were imported{remedy}", grouped(written)))
}

fn report(out: &mut Output, sha256: &str, entries: u64, counts: &Counts) -> Result<Outcome> {
    let Counts { added, replaced, same } = *counts;
    out.either(
        || json!({"entries": entries, "added": added, "replaced": replaced, "same": same, "sha256": sha256}),
        || {
            let [entries, added, replaced, same] = [entries, added, replaced, same].map(grouped);
            format!(
                "imported {entries} entries: {added} added, {replaced} replaced, {same} were there; SHA-256 {sha256}"
            )
        },
    )?;
    Ok(Outcome::Fine)
}

#[cfg(test)]
mod tests {
    use keyloom::Error;

    use super::*;

    #[test]
    fn only_a_failure_of_the_store_is_worth_a_repetition() {
        let conflict = || Error::Conflict { what: "a key".into() };
        let exhausted = Error::RetriesExhausted { attempts: 9, source: Box::new(conflict()) };
        for (error, repeats) in [(conflict(), true), (exhausted, true), (Error::EmptyKey, false)] {
            let text = after(&error.into(), 1_000).to_string();
            assert!(text.contains("; 1,000 entries were imported"), "{text}");
            assert_eq!(text.contains("repeat the import"), repeats, "{text}");
        }
        assert!(!after(&Failure::new("line 3"), 0).to_string().contains("repeat the import"));
    }
}
