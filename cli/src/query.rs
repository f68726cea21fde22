//! `keyloom query`: records in the order of an index.

use clap::Args;
use keyloom::{Order, Reader, Store};
use serde_json::json;

use crate::address::{Access, open};
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Outcome, Result};
use crate::indexed::Joined;
use crate::output::{Output, note};
use crate::selection::Selection;
use crate::shown;
use crate::style::{Role, paint};
use crate::value::{As, Format};

/// Lists the records that an index leads to, in its order.
#[derive(Debug, Args)]
pub struct Query {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The name of the index, such as people.by_town
    pub index: String,
    /// The first parts of the entries: a tuple such as ("London", _) or (2026..,)
    pub parts: Option<String>,
    /// The most records to list
    #[arg(long, short = 'n', default_value_t = 20)]
    pub limit: usize,
    /// Begins with the last entry
    #[arg(long)]
    pub reverse: bool,
    /// The form of the records
    #[arg(long = "as", value_enum, default_value_t)]
    pub wanted: As,
    /// Shows long records in full
    #[arg(long)]
    pub full: bool,
}

impl Query {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let index = catalog.require(&self.index)?;
        let table = catalog.table_of(index).filter(|_| index.is_index()).ok_or_else(|| {
            let of_table = |part: &&Part| part.is_index() && part.table == index.name;
            let indexes: Vec<_> = catalog
                .parts
                .iter()
                .filter(of_table)
                .map(|part| format!("{:?}", part.name))
                .collect();
            let indexes = match indexes.is_empty() {
                true => String::new(),
                false => format!("; its indexes are {}", indexes.join(", ")),
            };
            Failure::new(format!("{:?} is not an index but: {}{indexes}", self.index, index.kind))
        })?;
        let selection = Selection::within(index, self.parts.as_deref())?;
        let order = if self.reverse { Order::Descending } else { Order::Ascending };
        let format = Format { wanted: self.wanted, full: self.full };
        let snapshot = store.snapshot()?;
        let (entries, has_more) = entries(&snapshot, &selection, order, self.limit)?;
        let entries: Vec<_> = entries.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        for joined in Joined::read(&snapshot, &index.space, table, &entries)? {
            match joined {
                Joined::Record { key, record, value } => {
                    let shown = format.show(&value, Some(table));
                    let record = shown::key(&record);
                    let text = || format!("{} = {}", paint(Role::Name, &record), shown.text);
                    let object = || {
                        json!({
                            "entry": shown::key(key), "key": record, "value": shown.text,
                            "form": shown.form, "bytes": value.len(), "cut": shown.is_cut,
                        })
                    };
                    out.either(object, text)?;
                }
                Joined::NoEntry { key } | Joined::Dangling { key, .. } => {
                    note(&format!("{} leads to no record; see `keyloom check`", shown::key(key)));
                }
            }
        }
        if entries.is_empty() {
            note(
                "there is no such entry; `keyloom scan` of the index shows the types of its parts",
            );
        }
        if has_more {
            note(&format!("there are more than {} records; -n lists more", self.limit));
        }
        Ok(Outcome::Fine)
    }
}

/// Keys and values.
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// The first entries of a selection, and whether there are more.
pub fn entries(
    reader: &impl Reader,
    selection: &Selection,
    order: Order,
    limit: usize,
) -> keyloom::Result<(Entries, bool)> {
    let mut found = Vec::new();
    for entry in reader.range(selection.range.clone(), order)? {
        let (key, value) = entry?;
        if !selection.has(&key) {
            continue;
        }
        if found.len() == limit {
            return Ok((found, true));
        }
        found.push((key.to_vec(), value.to_vec()));
    }
    Ok((found, false))
}
