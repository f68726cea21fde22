//! `keyloom plan`: which work is left in the schemas of a store?

use std::fmt;

use clap::Args;
use keyloom::{AnySnapshot, AnyStore, Reader, Store, Subspace};
use keyloom_tables::Schema;
use keyloom_tables::schema::{DerivedInfo, State, TableInfo, dropped_tables, schema_names};
use serde_json::json;

use crate::address::{Access, open};
use crate::failure::{Outcome, Result};
use crate::ls::size_cells;
use crate::measure::{EXACT, Size, measure};
use crate::output::{Output, note};

/// Lists the work that is left in the schemas: builds, changes to apply, records of earlier
/// versions, drops.
///
/// The program that declares a table does most of this work, since only it has the functions that
/// compute indexes and upgrade records. `keyloom migrate` does the rest. What a new version of a
/// program would change in this store is a plan of that program (Schema::dry_run). Status 1 if work
/// is left.
#[derive(Debug, Args)]
pub struct Plan {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// Counts all entries, however many there are
    #[arg(long)]
    pub exact: bool,
}

/// A kind of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// A build has begun, and has not ended.
    FinishBuild,
    /// Derived data is neither maintained nor readable.
    BuildOrDrop,
    /// Changes wait for deferred data.
    Drain,
    /// The table may hold records of these versions besides the newest one.
    Migrate(Vec<u8>),
    /// The table was dropped, and some of its keys are left.
    FinishDrop,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FinishBuild => f.write_str("finish the build"),
            Self::BuildOrDrop => f.write_str("build, or drop"),
            Self::Drain => f.write_str("apply queued changes"),
            Self::FinishDrop => f.write_str("finish the drop"),
            Self::Migrate(earlier) => {
                let versions = earlier.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
                write!(f, "rewrite records of versions {versions}")
            }
        }
    }
}

impl Work {
    /// The name in JSON.
    fn name(&self) -> &'static str {
        match self {
            Self::FinishBuild => "build",
            Self::BuildOrDrop => "build or drop",
            Self::Drain => "drain",
            Self::Migrate(_) => "migrate",
            Self::FinishDrop => "drop",
        }
    }

    /// What does the work.
    fn by(&self) -> &'static str {
        match self {
            Self::FinishBuild | Self::Migrate(_) => "its program: Schema::apply",
            Self::BuildOrDrop => "its program, or keyloom migrate --drop",
            Self::Drain => "its program: Attached::drain",
            Self::FinishDrop => "keyloom migrate",
        }
    }
}

/// Work on a table or on derived data.
#[derive(Clone, Debug)]
pub struct Step {
    /// The schema.
    pub schema: String,
    /// The name: `people`, or `people.by_town`.
    pub name: String,
    /// The work.
    pub work: Work,
    /// The entries that the work visits.
    spaces: Vec<Subspace>,
}

impl Plan {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let snapshot = store.snapshot()?;
        let steps = steps(&store, &snapshot)?;
        let exact = if self.exact { u64::MAX } else { EXACT };
        let mut rows = Vec::new();
        for step in &steps {
            let size = step.size(&snapshot, exact)?;
            if out.json {
                out.either(|| step.object(size), String::new)?;
            }
            rows.push(step.cells(size));
        }
        if steps.is_empty() {
            note("no work is left in the schemas");
            return Ok(Outcome::Fine);
        }
        if !out.json {
            out.table(&["SCHEMA", "NAME", "WORK", "ENTRIES", "BY"], &rows, &[3])?;
        }
        Ok(Outcome::Different)
    }
}

impl Step {
    fn size(&self, snapshot: &AnySnapshot<'_>, exact: u64) -> Result<Size> {
        let mut size = Size::default();
        for space in &self.spaces {
            size = size.plus(measure(snapshot, &space.self_and_children(), exact)?);
        }
        Ok(size)
    }

    fn cells(&self, size: Size) -> Vec<String> {
        let shown = |text: &str| text.escape_debug().to_string();
        let [entries, ..] = size_cells(size, size);
        let Self { schema, name, work, .. } = self;
        vec![shown(schema), shown(name), work.to_string(), entries, work.by().into()]
    }

    fn object(&self, size: Size) -> serde_json::Value {
        let Self { schema, name, work, .. } = self;
        let versions = match work {
            Work::Migrate(earlier) => Some(earlier),
            _ => None,
        };
        json!({
            "schema": schema, "name": name, "work": work.name(), "by": work.by(),
            "entries": size.entries, "error_percent": size.error, "versions": versions,
        })
    }
}

/// The work that is left in all schemas.
pub fn steps(store: &AnyStore, snapshot: &AnySnapshot<'_>) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for schema in schema_names(snapshot)? {
        for table in Schema::open(store, &schema)?.tables()? {
            of_table(snapshot, &schema, table, &mut steps)?;
        }
    }
    for (schema, table) in dropped_tables(snapshot)? {
        let derived = table.derived.iter().flat_map(spaces);
        let spaces = derived.chain([table.space.clone()]).collect();
        steps.push(Step { schema, name: table.name, work: Work::FinishDrop, spaces });
    }
    Ok(steps)
}

fn of_table(
    snapshot: &AnySnapshot<'_>,
    schema: &str,
    table: TableInfo,
    steps: &mut Vec<Step>,
) -> Result {
    let records = [table.space.clone()];
    let mut add = |name: String, work: Work, spaces: &[Subspace]| {
        steps.push(Step { schema: schema.into(), name, work, spaces: spaces.into() });
    };
    for one in &table.derived {
        let name = format!("{}.{}", table.name, one.name);
        match one.state {
            State::Building => add(name.clone(), Work::FinishBuild, &records),
            State::Disabled => add(name.clone(), Work::BuildOrDrop, &records),
            State::Readable => {}
        }
        if let Some(queue) = &one.queue
            && snapshot.first(queue.self_and_children())?.is_some()
        {
            add(name, Work::Drain, std::slice::from_ref(queue));
        }
    }
    if let Some((earlier, _)) = table.definition.earlier_versions() {
        add(table.name, Work::Migrate(earlier), &records);
    }
    Ok(())
}

/// The subspaces of derived data.
fn spaces(one: &DerivedInfo) -> impl Iterator<Item = Subspace> + use<> {
    [one.space.clone()].into_iter().chain(one.queue.clone())
}
