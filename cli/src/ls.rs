//! `keyloom ls`: what does a store hold?

use clap::Args;
use keyloom::{AnySnapshot, Store};
use serde_json::{Value, json};

use crate::address::{Access, open};
use crate::catalog::{Catalog, Part};
use crate::failure::{Outcome, Result};
use crate::measure::{EXACT, Size, measure};
use crate::output::{Output, grouped};
use crate::selection::Selection;
use crate::shown;
use crate::tree::{Group, Options, groups};

/// Lists tables, indexes and other data with their sizes.
#[derive(Debug, Args)]
pub struct Ls {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// Lists the keys with this prefix by their next element: a tuple, or the name of a table
    pub prefix: Option<String>,
    /// The number of elements of keys to list by
    #[arg(long, default_value_t = 1)]
    pub depth: usize,
    /// The most groups of a level
    #[arg(long, short = 'n', default_value_t = 100)]
    pub limit: usize,
    /// Counts all entries, however many there are
    #[arg(long)]
    pub exact: bool,
}

/// A row of a listing.
pub struct Row<'c> {
    /// The keys.
    pub group: Group,
    /// The part of a schema that the keys belong to.
    pub part: Option<&'c Part>,
}

impl Row<'_> {
    /// The total size of all groups. Only groups of level 0 are added up, since they contain the
    /// deeper groups.
    pub fn total<'g>(groups: impl Iterator<Item = &'g Group>) -> Size {
        let top = groups.filter(|group| group.level == 0);
        top.fold(Size::default(), |sum, group| sum.plus(group.size))
    }
}

impl Ls {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let selection = Selection::prefix(self.prefix.as_deref(), &catalog)?;
        let snapshot = store.snapshot()?;
        let exact = if self.exact { u64::MAX } else { EXACT };
        let mut rows = Vec::new();
        if self.prefix.is_none() {
            rows = parts(&snapshot, &catalog, exact)?;
        }
        let named = rows.len();
        let options = Options {
            fixed: selection.fixed,
            depth: self.depth,
            most: self.limit,
            exact,
            progress: None,
        };
        let parts = catalog.parts.iter().filter(|_| named > 0);
        let listed: Vec<_> = parts.map(|part| part.space.clone()).collect();
        let all = groups(&snapshot, selection.range, &listed, options)?;
        rows.extend(all.into_iter().map(|group| {
            let part = catalog.part_of(&group.prefix).filter(|_| !group.is_rest);
            Row { group, part }
        }));
        let total = Row::total(rows.iter().map(|row| &row.group));
        print(out, &rows, total, named > 0)?;
        Ok(Outcome::Fine)
    }
}

fn parts<'c>(snapshot: &AnySnapshot<'_>, catalog: &'c Catalog, exact: u64) -> Result<Vec<Row<'c>>> {
    let row = |part: &'c Part| {
        let size = measure(snapshot, &part.space.self_and_children(), exact)?;
        let prefix = part.space.prefix().to_vec();
        let name = shown::key(&prefix);
        Ok(Row { group: Group { name, prefix, level: 0, size, is_rest: false }, part: Some(part) })
    };
    catalog.parts.iter().map(row).collect()
}

/// Prints the rows, with their shares of `total`.
pub fn print(out: &mut Output, rows: &[Row<'_>], total: Size, is_named: bool) -> Result {
    if out.json {
        return rows.iter().try_for_each(|row| out.either(|| object(row, total), String::new));
    }
    let cells = rows.iter().map(|row| cells(row, total, is_named)).collect::<Vec<_>>();
    match is_named {
        true => out.table(
            &["SCHEMA", "NAME", "KIND", "STATE", "SUBSPACE", "ENTRIES", "BYTES", "SHARE"],
            &cells,
            &[5, 6, 7],
        ),
        false => out.table(&["PREFIX", "ENTRIES", "BYTES", "SHARE"], &cells, &[1, 2, 3]),
    }
}

/// The cells of prefix and size.
fn cells(row: &Row<'_>, total: Size, is_named: bool) -> Vec<String> {
    let Group { name, level, size, .. } = &row.group;
    let mut cells = Vec::new();
    if is_named {
        let of = |field: fn(&Part) -> &str| row.part.map_or("", field);
        let shown = |text: &str| text.escape_debug().to_string();
        cells.extend([of(|part| &part.schema), of(|part| &part.name)].map(shown));
        cells.extend([of(|part| &part.kind), of(|part| &part.state)].map(shown));
    }
    cells.push(format!("{}{name}", "  ".repeat(*level)));
    cells.extend(size_cells(*size, total));
    cells
}

/// Entries, bytes and share. Estimates are marked, with twice their standard error.
pub fn size_cells(size: Size, total: Size) -> [String; 3] {
    let entries = grouped(size.entries);
    let share = size.bytes as f64 * 100.0 / total.bytes.max(1) as f64;
    let share = format!("{share:.1} %");
    match size.error {
        None => [entries, grouped(size.bytes), share],
        Some(error) => {
            [format!("about {entries} ±{error} %"), format!("about {}", grouped(size.bytes)), share]
        }
    }
}

fn object(row: &Row<'_>, total: Size) -> Value {
    let Group { name, prefix, level, size, is_rest } = &row.group;
    let mut object = size_object(*size, total);
    let more = json!({
        "prefix": name, "prefix_hex": shown::hex(prefix), "level": level, "rest": is_rest,
        "schema": row.part.map(|part| &part.schema), "name": row.part.map(|part| &part.name),
        "kind": row.part.map(|part| &part.kind), "state": row.part.map(|part| &part.state),
    });
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// The fields of a size.
fn size_object(size: Size, total: Size) -> Value {
    let share = (size.bytes as f64 * 1000.0 / total.bytes.max(1) as f64).round() / 10.0;
    json!({
        "entries": size.entries, "bytes": size.bytes, "share_percent": share,
        "estimated": size.error.is_some(), "error_percent": size.error,
    })
}
