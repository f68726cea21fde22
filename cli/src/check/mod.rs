//! `keyloom check`: faults that can be found without the program that wrote the store.

mod bitmaps;
mod entries;
mod mirror;
mod text;
mod tree;

use std::path::PathBuf;

use clap::Args;
use keyloom::key::elements;
use keyloom::{AnyStore, KeyRange, Reader, Store, Subspace};
use serde_json::json;

use crate::address::{Access, open};
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped, note};
use crate::position::Position;
use crate::shown::{self, printable};
use crate::style::{Role, paint};
use crate::tree::without;
use crate::value;
use crate::work::Work;

/// Finds what is wrong in tables and in the data derived from them.
///
/// Records must decode, and entries of indexes, places and paths must lead to records. Trees,
/// incoming edges and links are checked completely. Of bitmaps and texts, the structure is checked.
/// Only the program that derives entries can check whether entries are missing and whether totals
/// are right.
#[derive(Debug, Args)]
pub struct Check {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The tables and derived data to check [default: all]
    pub names: Vec<String>,
    /// The most faults to show
    #[arg(long, short = 'n', default_value_t = 100)]
    pub limit: usize,
    /// Keeps the position in this file, and resumes at it
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
}

/// What a check has found.
pub struct Findings<'o> {
    out: &'o mut Output,
    limit: u64,
    faults: u64,
}

impl Findings<'_> {
    /// Reports a fault.
    fn add(&mut self, part: &Part, key: &[u8], fault: &str) -> Result {
        self.faults += 1;
        if self.faults > self.limit {
            return Ok(());
        }
        let key = shown::key(key);
        let text = || {
            let name = paint(Role::Name, &part.name.escape_debug().to_string());
            format!("{name} {key}: {}", paint(Role::Fault, &printable(fault)))
        };
        let object =
            || json!({"schema": part.schema, "name": part.name, "key": key, "fault": fault});
        self.out.either(object, text)?;
        // The saved position may count this fault before a kill, so the fault must be printed
        // first.
        self.out.flush()
    }
}

impl Check {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let parts = catalog.named_or_all(&self.names)?;
        let is_refused =
            |part: &&&Part| !self.names.is_empty() && matches!(Way::of(part), Way::None);
        if let Some(part) = parts.iter().find(is_refused) {
            return Err(Failure::new(format!(
                "{:?} is of the kind {}, which only its program can check: it calls `check` of the handle",
                part.name, part.kind
            )));
        }
        let position = Position::open(self.resume.as_deref(), "check", &self.address, &parts)?;
        let mut work = Work::new(&store, &catalog, "checked", position);
        let limit = self.limit.try_into().unwrap_or(u64::MAX);
        let mut findings = Findings { out, limit, faults: work.counted() };
        let mut left: Vec<_> = parts.iter().filter_map(|part| unchecked(part)).collect();
        left.dedup();
        if self.names.is_empty() && has_others(&store, &catalog)? {
            left.push("keys outside of the schemas".into());
        }
        match work.each(parts, |work, part| visit(work, part, &mut findings)) {
            // Only faults are printed, so there is one, even if the rest is not read.
            Err(Failure::Closed) => return Ok(Outcome::Different),
            checked => checked?,
        }
        report(&findings, work.progress.entries(), &left);
        work.end()?;
        Ok(if findings.faults == 0 { Outcome::Fine } else { Outcome::Different })
    }
}

/// Whether the store has keys that no schema lists.
fn has_others(store: &AnyStore, catalog: &Catalog) -> Result<bool> {
    let mut known: Vec<_> = catalog.parts.iter().map(|part| part.space.clone()).collect();
    known.push(Subspace::new("keyloom"));
    let snapshot = store.snapshot()?;
    for rest in without(KeyRange::all(), &known) {
        if snapshot.first(rest)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How a part is checked without its program.
enum Way {
    Records,
    Tree,
    Mirror,
    Bitmaps,
    Texts,
    /// As the entries in this subspace, which lead to records.
    Entries(Subspace),
    /// Not at all: only functions of the program decide what is right.
    None,
}

impl Way {
    fn of(part: &Part) -> Self {
        match part.kind.as_str() {
            "table" => Self::Records,
            "tree" => Self::Tree,
            "incoming edges" | "reversed pairs" => Self::Mirror,
            "inverted index" => Self::Bitmaps,
            "text index" => Self::Texts,
            _ => part.entries().map_or(Self::None, Self::Entries),
        }
    }
}

/// Checks a part as far as its kind allows without the program.
fn visit(work: &mut Work<'_>, part: &Part, findings: &mut Findings<'_>) -> Result {
    match Way::of(part) {
        Way::Records => records(work, part, findings),
        _ if part.state != "readable" => Ok(()),
        Way::Tree => tree::check(work, part, findings),
        Way::Mirror => mirror::check(work, part, findings),
        Way::Bitmaps => bitmaps::check(work, part, &part.space, 0, findings),
        Way::Texts => text::check(work, part, findings),
        Way::Entries(space) => entries::check(work, part, &space, findings),
        Way::None => Ok(()),
    }
}

/// The name of the part and its kind, codec or state, if some of the part stays unchecked.
fn unchecked(part: &Part) -> Option<String> {
    let name = part.name.escape_debug();
    match Way::of(part) {
        Way::Records => {
            let codec = part.codec.as_ref().filter(|_| !value::is_checked(part))?;
            Some(format!("records of {name} ({codec})"))
        }
        Way::None => Some(format!("{name} ({})", part.kind)),
        _ if part.state != "readable" => Some(format!("{name} ({})", part.state)),
        _ => None,
    }
}

fn report(findings: &Findings<'_>, entries: u64, left: &[String]) {
    let Findings { faults, limit, .. } = findings;
    let shown = if faults > limit { format!(", {limit} of them shown") } else { String::new() };
    let s = if *faults == 1 { "" } else { "s" };
    note(&format!("{} entries checked, {} fault{s}{shown}", grouped(entries), grouped(*faults)));
    if !left.is_empty() {
        let left = left.join(", ");
        note(&format!("not checked: {left}; the program that writes them has a check"));
    }
}

fn records(work: &mut Work<'_>, part: &Part, findings: &mut Findings<'_>) -> Result {
    work.pages(0, &KeyRange::prefix(part.space.prefix()), |_, entries| {
        for (key, value) in entries {
            if elements(key).is_err() {
                findings.add(part, key, "the key is not a tuple")?;
            }
            if let Some(fault) = value::fault(value, part) {
                findings.add(part, key, &fault)?;
            }
        }
        Ok(findings.faults)
    })
}
