//! `keyloom check`: faults that can be found without the program that wrote the store.

use clap::Args;
use keyloom::key::elements;
use keyloom::{AnyStore, KeyRange};
use serde_json::json;

use crate::address::{Access, open};
use crate::catalog::{Catalog, Part};
use crate::failure::{Outcome, Result};
use crate::indexed::Joined;
use crate::output::{Output, grouped, note};
use crate::pages::pages;
use crate::progress::Progress;
use crate::shown::{self, printable};
use crate::style::{Role, paint};
use crate::value;

/// Finds records that do not decode, and index entries whose record does not exist.
///
/// Missing entries, and data of other kinds, can be checked only by the program that derives them.
#[derive(Debug, Args)]
pub struct Check {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The tables and indexes to check [default: all]
    pub names: Vec<String>,
    /// The most faults to show
    #[arg(long, default_value_t = 100)]
    pub limit: usize,
}

/// What a check has found.
struct Findings<'o> {
    out: &'o mut Output,
    limit: usize,
    faults: usize,
}

impl Findings<'_> {
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
        self.out.either(object, text)
    }
}

impl Check {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let named: Vec<&Part> =
            self.names.iter().map(|name| catalog.require(name)).collect::<Result<_>>()?;
        let parts = if named.is_empty() { catalog.parts.iter().collect() } else { named };
        let mut findings = Findings { out, limit: self.limit, faults: 0 };
        let mut progress = Progress::new("checked");
        let mut left = Vec::new();
        for part in parts {
            if part.kind == "table" {
                records(&store, part, &mut findings, &mut progress)?;
                if let Some(codec) = part.codec.as_ref().filter(|_| !value::is_checked(part)) {
                    left.push(format!("records of {} ({codec})", part.name.escape_debug()));
                }
            } else if part.is_index() && part.state == "readable" {
                entries(&store, &catalog, part, &mut findings, &mut progress)?;
            } else {
                left.push(format!("{} ({})", part.name.escape_debug(), part.kind));
            }
        }
        progress.finish();
        report(&findings, progress.entries(), &left);
        Ok(if findings.faults == 0 { Outcome::Fine } else { Outcome::Different })
    }
}

fn report(findings: &Findings<'_>, entries: u64, left: &[String]) {
    let Findings { faults, limit, .. } = findings;
    let shown = if faults > limit { format!(", {limit} of them shown") } else { String::new() };
    note(&format!("{} entries checked, {faults} faults{shown}", grouped(entries)));
    if !left.is_empty() {
        let left = left.join(", ");
        note(&format!("not checked: {left}; the program that writes them has a check"));
    }
}

fn records(
    store: &AnyStore,
    part: &Part,
    findings: &mut Findings<'_>,
    progress: &mut Progress,
) -> Result {
    pages(store, &KeyRange::prefix(part.space.prefix()), |_, entries| {
        for (key, value) in entries {
            progress.add(1, key.len() + value.len());
            if elements(key).is_err() {
                findings.add(part, key, "the key is not a tuple")?;
            }
            if let Some(fault) = value::fault(value, part) {
                findings.add(part, key, &fault)?;
            }
        }
        Ok(())
    })
}

fn entries(
    store: &AnyStore,
    catalog: &Catalog,
    part: &Part,
    findings: &mut Findings<'_>,
    progress: &mut Progress,
) -> Result {
    let Some(table) = catalog.table_of(part) else { return Ok(()) };
    pages(store, &KeyRange::prefix(part.space.prefix()), |snapshot, entries| {
        let is_behind = catalog.is_behind(snapshot, part)?;
        for joined in Joined::read(snapshot, part, table, entries)? {
            match joined {
                Joined::NoEntry { key } => {
                    findings.add(part, key, "it is not an entry of an index")?
                }
                Joined::Dangling { key, record } if !is_behind => {
                    let fault =
                        format!("the entry dangles: there is no record {}", shown::key(&record));
                    findings.add(part, key, &fault)?;
                }
                Joined::Dangling { .. } | Joined::Record { .. } => {}
            }
        }
        let bytes = entries.iter().map(|(key, value)| key.len() + value.len()).sum();
        progress.add(entries.len(), bytes);
        Ok(())
    })
}
