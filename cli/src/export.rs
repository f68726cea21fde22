//! `keyloom export`: entries as lines of JSON.

use std::io::IsTerminal;

use clap::Args;
use keyloom::{Order, Reader, Store};

use crate::address::{Access, open};
use crate::catalog::Catalog;
use crate::digest::Digest;
use crate::failure::{Failure, Outcome, Result};
use crate::ndjson;
use crate::output::{Output, grouped, note};
use crate::progress::Progress;
use crate::selection::Selection;
use crate::value::{As, Format};

/// Prints all entries of one snapshot as lines of JSON, which `keyloom import` reads.
///
/// The last line contains the number of entries and their SHA-256, so that an import finds out
/// whether the file is complete. If the reader of the output ends early, the status is 2.
#[derive(Debug, Args)]
pub struct Export {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The keys to export: a tuple such as ("orders", 7, _, 2026..), or the name of a table
    pub prefix: Option<String>,
    /// Adds each value in readable form, for people; an import ignores it
    #[arg(long)]
    pub decoded: bool,
}

impl Export {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        self.lines(out).map_err(|failure| match failure {
            Failure::Closed => Failure::new("the reader closed the pipe; the export is incomplete"),
            other => other,
        })
    }

    fn lines(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let selection = Selection::prefix(self.prefix.as_deref(), &catalog)?;
        let format = Format { wanted: As::Auto, full: true };
        // On a terminal, the lines of the export show the progress.
        let mut progress = (!std::io::stdout().is_terminal()).then(|| Progress::new("exported"));
        let mut digest = Digest::default();
        let snapshot = store.snapshot()?;
        out.line(&ndjson::first(self.prefix.as_deref()))?;
        for entry in snapshot.range(selection.range.clone(), Order::Ascending)? {
            let (key, value) = entry?;
            if !selection.has(&key) {
                continue;
            }
            let decoded = self.decoded.then(|| format.show(&value, catalog.part_of(&key)));
            out.line(&ndjson::entry(&key, &value, decoded.as_ref()))?;
            digest.add(&key, &value);
            if let Some(progress) = &mut progress {
                progress.add(1, key.len() + value.len());
            }
        }
        out.line(&ndjson::last(&digest))?;
        out.flush()?;
        if let Some(progress) = &progress {
            progress.finish();
        }
        note(&format!("{} entries exported", grouped(digest.entries())));
        Ok(Outcome::Fine)
    }
}
