//! `keyloom migrate`: the work of a plan that needs no program.

use std::ops::ControlFlow;

use clap::Args;
use keyloom::{AnyStore, Store};
use keyloom_tables::Schema;
use keyloom_tables::schema::OWNER;
use serde_json::json;

use crate::address::{Access, open};
use crate::batches::most_entries;
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Outcome, Result};
use crate::measure::{EXACT, measure};
use crate::output::{Output, grouped, note};
use crate::plan::{Work, steps};
use crate::progress::Progress;
use crate::style::{Role, paint};
use crate::write::asked;

/// Completes drops of tables that were stopped, and drops the named tables and derived data.
///
/// Runs in bounded transactions beside programs; if it is stopped, the next run resumes. A program
/// that uses dropped data gets an error, and at its next start declares it again, without records.
/// Status 1 if work is left that only programs can do.
#[derive(Debug, Args)]
pub struct Migrate {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// Drops a table with its derived data, such as people, or derived data, such as people.by_town
    #[arg(long, value_name = "NAME")]
    pub drop: Vec<String>,
    /// Does not ask before it drops the data of --drop
    #[arg(long)]
    pub yes: bool,
    /// Allows this command to change the store
    #[arg(long)]
    pub write: bool,
}

impl Migrate {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, if self.write { Access::Write } else { Access::Read })?;
        let catalog = Catalog::complete(&store)?;
        // All names are checked before the first key is removed.
        let named = self.named(&catalog)?;
        if !self.write {
            return Err(would_change(&store, &catalog, &named)?);
        }
        if !named.is_empty() && !self.yes {
            let entries = named.iter().map(|part| entries_of(&store, &catalog, part));
            let entries = entries.sum::<Result<u64>>()?;
            if !asked(entries)? {
                return Err(Failure::new("nothing was removed"));
            }
        }
        finish_drops(&store, out)?;
        for part in named {
            drop_part(&store, part, out)?;
        }
        let left = steps(&store, &store.snapshot()?)?;
        for step in &left {
            note(&format!("left for its program: {} {}: {}", step.schema, step.name, step.work));
        }
        Ok(if left.is_empty() { Outcome::Fine } else { Outcome::Different })
    }
}

impl Migrate {
    /// What to drop, each once. Derived data is dropped with its table.
    fn named<'c>(&self, catalog: &'c Catalog) -> Result<Vec<&'c Part>> {
        let named = self.drop.iter().map(|name| droppable(catalog, name));
        let mut named = named.collect::<Result<Vec<_>>>()?;
        named.sort_by_key(|part| (&part.schema, &part.name));
        named.dedup_by_key(|part| (&part.schema, &part.name));
        let tables: Vec<_> = named.iter().filter(|part| part.kind == "table").copied().collect();
        let is_of = |part: &Part, table: &Part| {
            part.schema == table.schema && part.table == table.name && part.name != table.name
        };
        named.retain(|part| !tables.iter().any(|table| is_of(part, table)));
        Ok(named)
    }
}

fn droppable<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c Part> {
    let part = catalog.require(name)?;
    let is_declared = part.kind == "table" || derived_name(part).is_some();
    if !is_declared || part.name.ends_with(" (queue)") {
        let why = "is a queue of changes, which is dropped with its data";
        return Err(Failure::new(format!("{name:?} {why}")));
    }
    if part.kind == OWNER {
        let why = "determines the records of its table; drop the table";
        return Err(Failure::new(format!("{name:?} {why}")));
    }
    Ok(part)
}

/// The number of entries of a part. For a table, includes the entries of its derived data.
fn entries_of(store: &AnyStore, catalog: &Catalog, part: &Part) -> Result<u64> {
    let snapshot = store.snapshot()?;
    let is_of = |one: &&Part| {
        let is_same = one.schema == part.schema && one.table == part.table;
        is_same && (part.kind == "table" || one.name == part.name)
    };
    let of = catalog.parts.iter().filter(is_of);
    of.map(|one| Ok(measure(&snapshot, &one.space.self_and_children(), EXACT)?.entries)).sum()
}

/// What the command would do with --write.
fn would_change(store: &AnyStore, catalog: &Catalog, named: &[&Part]) -> Result<Failure> {
    let snapshot = store.snapshot()?;
    let mut drops = Vec::new();
    for step in steps(store, &snapshot)?.iter().filter(|step| step.work == Work::FinishDrop) {
        drops.push(format!("completes the drop of {}", step.name));
    }
    for part in named {
        let entries = grouped(entries_of(store, catalog, part)?);
        drops.push(format!("drops {} with {entries} entries", part.name));
    }
    Ok(match drops.is_empty() {
        true => Failure::new("there is no drop to complete; name what to drop with --drop"),
        false => {
            Failure::new(format!("this {}; repeat the command with --write", drops.join(", ")))
        }
    })
}

/// The name of derived data within its table.
fn derived_name(part: &Part) -> Option<&str> {
    part.name.strip_prefix(&*part.table)?.strip_prefix('.')
}

/// Completes all drops of tables that were stopped.
fn finish_drops(store: &AnyStore, out: &mut Output) -> Result {
    let dropped = steps(store, &store.snapshot()?)?;
    let dropped: Vec<_> = dropped.iter().filter(|step| step.work == Work::FinishDrop).collect();
    for (place, step) in dropped.iter().enumerate() {
        // One call completes the drops of a schema.
        if dropped.get(..place).is_some_and(|all| all.iter().any(|of| of.schema == step.schema)) {
            continue;
        }
        let names = dropped.iter().filter(|of| of.schema == step.schema).map(|of| &*of.name);
        let names = names.collect::<Vec<_>>().join(", ");
        let schema = Schema::open(store, &step.schema)?;
        removing(store, out, &step.schema, &names, |batch, progress| {
            schema.finish_drops_with(batch, progress)
        })?;
    }
    Ok(())
}

fn drop_part(store: &AnyStore, part: &Part, out: &mut Output) -> Result {
    let schema = Schema::open(store, &part.schema)?;
    removing(store, out, &part.schema, &part.name, |batch, progress| match derived_name(part) {
        None => schema.drop_table_with(&part.table, batch, progress),
        Some(name) => schema.drop_derived_with(&part.table, name, batch, progress),
    })
}

type OnProgress<'p> = &'p mut dyn FnMut(&keyloom_tables::Progress) -> ControlFlow<()>;

/// Removes keys with a progress line, and prints their number.
fn removing(
    store: &AnyStore,
    out: &mut Output,
    schema: &str,
    name: &str,
    remove: impl FnOnce(usize, OnProgress<'_>) -> keyloom::Result<keyloom_tables::Progress>,
) -> Result {
    let (mut shown, mut before) = (Progress::new("removed"), 0);
    let done = remove(most_entries(&store.limits()), &mut |done| {
        shown.add((done.removed - before) as usize, 0);
        before = done.removed;
        ControlFlow::Continue(())
    })?;
    shown.finish();
    let removed = done.removed;
    let object = || json!({"schema": schema, "name": name, "removed": removed});
    out.either(object, || {
        let shown = paint(Role::Name, &name.escape_debug().to_string());
        format!("{shown}: {} keys removed", grouped(removed))
    })
}
