//! `keyloom scan`: entries in the order of their keys.

use std::ops::Bound;

use clap::Args;
use keyloom::{Order, Reader, Store};
use serde_json::{Value, json};

use crate::address::{Access, open};
use crate::catalog::{Catalog, Part};
use crate::failure::{Outcome, Result};
use crate::output::{Output, note};
use crate::selection::{Selection, one_key};
use crate::shown;
use crate::style::{Role, paint};
use crate::value::{As, Format, Shown};

/// Lists entries in the order of their keys.
#[derive(Debug, Args)]
pub struct Scan {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The keys to list: a tuple such as ("orders", 7, _, 2026..), or the name of a table
    pub prefix: Option<String>,
    /// The most entries to list
    #[arg(long, short = 'n')]
    pub limit: Option<usize>,
    /// Begins with the last key
    #[arg(long)]
    pub reverse: bool,
    /// Begins after this key
    #[arg(long, value_name = "KEY")]
    pub after: Option<String>,
    /// The form of the values
    #[arg(long = "as", value_enum, default_value_t)]
    pub wanted: As,
    /// Shows long values in full
    #[arg(long)]
    pub full: bool,
}

impl Scan {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let selection = Selection::prefix(self.prefix.as_deref(), &catalog)?;
        let order = if self.reverse { Order::Descending } else { Order::Ascending };
        let after = self.after.as_deref().map(one_key).transpose()?;
        let mut range = selection.range.clone();
        if let Some(after) = &after {
            range = range.resume(order, after).into_owned();
        }
        let format = Format { wanted: self.wanted, full: self.full };
        let mut left = self.limit.unwrap_or(usize::MAX);
        let snapshot = store.snapshot()?;
        let mut is_empty = true;
        for entry in snapshot.range(range, order)? {
            if left == 0 {
                break;
            }
            let (key, value) = entry?;
            if selection.has(&key) {
                left -= 1;
                is_empty = false;
                print(out, &key, &value, catalog.part_of(&key), format)?;
            }
        }
        if is_empty && left > 0 {
            note("there is no such entry");
            let start = selection.range.normalized().map(|(start, _)| start);
            if let Some(Bound::Included(key) | Bound::Excluded(key)) = start {
                catalog.hint(key).iter().for_each(|hint| note(hint));
            }
        }
        Ok(Outcome::Fine)
    }
}

fn print(
    out: &mut Output,
    key: &[u8],
    value: &[u8],
    part: Option<&Part>,
    format: Format,
) -> Result {
    let shown = format.show(value, part);
    let text = || format!("{} = {}", paint(Role::Name, &shown::key(key)), shown.text);
    out.either(|| object(key, value, part, &shown), text)
}

/// An entry as JSON.
pub fn object(key: &[u8], value: &[u8], part: Option<&Part>, shown: &Shown) -> Value {
    json!({
        "key": shown::key(key), "key_hex": shown::hex(key), "name": part.map(|part| &part.name),
        "value": shown.text, "form": shown.form, "bytes": value.len(), "cut": shown.is_cut,
    })
}
