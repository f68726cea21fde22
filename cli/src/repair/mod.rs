//! `keyloom repair`: repairs derived data, as far as records alone determine it.

mod entries;
mod mirror;

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::address::{Access, open};
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped, note};
use crate::position::Position;
use crate::shown;
use crate::style::{Role, paint};
use crate::work::Work;

/// Repairs what `check` has found, as far as that is possible without the program.
///
/// Removes entries of indexes, places and paths whose record does not exist. Writes and removes
/// incoming edges and links, so that they equal their records.
///
/// Each fault is checked again in the transaction that repairs it. Only the program that derives
/// entries can add missing ones. Status 1 if faults stay.
#[derive(Debug, Args)]
pub struct Repair {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The derived data to repair, such as people.by_town
    #[arg(required = true)]
    pub names: Vec<String>,
    /// Allows this command to change the store
    #[arg(long)]
    pub write: bool,
    /// Keeps the position in this file, and resumes at it
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
}

/// What a repair has done.
pub struct Repairs<'o> {
    out: &'o mut Output,
    written: u64,
    removed: u64,
    /// The number of entries that an earlier run has changed.
    before: u64,
    /// The number of keys that belong to no entry. They are not removed.
    unread: u64,
    /// Whether dangling entries stay, since their index has pending changes.
    is_behind: bool,
}

impl Repairs<'_> {
    fn changed(&self) -> u64 {
        self.before + self.written + self.removed
    }

    fn removed(&mut self, part: &Part, key: &[u8], record: &[u8]) -> Result {
        self.removed += 1;
        self.print(part, ("removed", "there is no record"), key, record)
    }

    fn written(&mut self, part: &Part, key: &[u8], record: &[u8]) -> Result {
        self.written += 1;
        self.print(part, ("written", "it follows from the record"), key, record)
    }

    fn print(
        &mut self,
        part: &Part,
        (what, why): (&str, &str),
        key: &[u8],
        record: &[u8],
    ) -> Result {
        let Part { schema, name, .. } = part;
        let [key, record] = [key, record].map(shown::key);
        self.out.either(
            || json!({"schema": schema, "name": name, what: key, "record": record}),
            || {
                let name = paint(Role::Name, &name.escape_debug().to_string());
                format!("{what} {key} of {name}: {why} {record}")
            },
        )
    }

    fn report(&self, entries: u64) {
        let [entries, removed, written, unread] =
            [entries, self.removed, self.written, self.unread].map(grouped);
        let written = if self.written > 0 { format!(", {written} written") } else { String::new() };
        note(&format!("{entries} entries read, {removed} removed{written}"));
        if self.is_behind {
            note(
                "entries of an index with pending changes stay; repeat the command after its program has applied them",
            );
        }
        if self.unread > 0 {
            let by_program = "the program that writes them has a repair";
            note(&format!("not entries of an index, so they stay: {unread}; {by_program}"));
        }
    }
}

impl Repair {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, if self.write { Access::Write } else { Access::Read })?;
        let catalog = Catalog::read(&store);
        let parts = catalog.named_or_all(&self.names)?;
        parts.iter().try_for_each(|part| refuse_unless_repairable(&catalog, part))?;
        if !self.write {
            return Err(Failure::new(
                "this changes the store; list the faults with `keyloom check`, and repeat the command with --write",
            ));
        }
        let position = Position::open(self.resume.as_deref(), "repair", &self.address, &parts)?;
        let mut work = Work::new(&store, &catalog, "read", position);
        let before = work.counted();
        let mut done = Repairs { out, written: 0, removed: 0, before, unread: 0, is_behind: false };
        let repaired = work.each(parts, |work, part| match part.kind.as_str() {
            "incoming edges" | "reversed pairs" => mirror::repair(work, part, &mut done),
            _ => entries::repair(work, part, &mut done),
        });
        repaired.map_err(|failure| {
            let why = match failure {
                Failure::Closed => {
                    "the reader closed the pipe; the repair is incomplete".to_owned()
                }
                other => other.to_string(),
            };
            let [removed, written] = [done.removed, done.written].map(grouped);
            Failure::new(format!("{why}; {removed} entries were removed, {written} written"))
        })?;
        done.report(work.progress.entries());
        work.end()?;
        let is_all = !done.is_behind && done.unread == 0;
        Ok(if is_all { Outcome::Fine } else { Outcome::Different })
    }
}

/// Returns an error with the reason if this command cannot repair the part.
fn refuse_unless_repairable(catalog: &Catalog, part: &Part) -> Result {
    let refused = |why: String| {
        Err(Failure::new(format!(
            "{:?} cannot be repaired without its program: {why}; the program that writes them has a repair",
            part.name
        )))
    };
    let is_known = matches!(part.kind.as_str(), "incoming edges" | "reversed pairs")
        || part.entries().is_some();
    if !is_known {
        return refused(format!("its entries are of the kind {}", part.kind));
    }
    if catalog.table_of(part).is_none() {
        return refused("its table is unknown".into());
    }
    if part.state != "readable" {
        return refused(format!("its state is {}", part.state));
    }
    Ok(())
}
