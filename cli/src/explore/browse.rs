//! Entries in the order of their keys, and one entry in full.

use keyloom::{AnySnapshot, Order, Reader, Store};
use serde_json::{Value, json};

use super::params::{Params, id};
use super::site::Site;
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Result};
use crate::indexed::Joined;
use crate::scan::object;
use crate::selection::Selection;
use crate::shown::{self, hex};
use crate::value::{As, Format};

/// The entries of a page.
const PAGE: usize = 50;
/// The characters of a value that are shown for one entry.
const MOST_SHOWN: usize = 4_096;

/// A page of entries.
pub fn browse(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let select = Some(params.select.trim()).filter(|select| !select.is_empty());
    let selection = Selection::prefix(select, &catalog)?;
    let order = if params.reverse == "yes" { Order::Descending } else { Order::Ascending };
    let after = params.after()?;
    let range = match &after {
        Some(after) => selection.range.clone().resume(order, after).into_owned(),
        None => selection.range.clone(),
    };
    let snapshot = site.store.snapshot()?;
    // A pattern may match few keys, so the page limits the keys that are read, not those shown.
    let page = snapshot.page(range, order, PAGE)?;
    let selected = page.entries.iter().filter(|(key, _)| selection.has(key));
    let entries: Vec<Value> = selected.map(|(key, value)| row(&catalog, key, value)).collect();
    Ok(json!({
        "entries": entries, "keys_read": page.entries.len(),
        "next": page.last.map(|last| hex(&last)),
    }))
}

/// An entry of a list, with the beginning of its value.
pub fn row(catalog: &Catalog, key: &[u8], value: &[u8]) -> Value {
    of_part(catalog.part_of(key), key, value, None)
}

/// The record beside an entry, with its state: `found`, `orphaned`, `pending` if the queue of a
/// deferred index may still remove the entry, or `not an entry`.
pub fn beside(catalog: &Catalog, joined: &Joined<'_, '_>, is_behind: bool) -> Value {
    match joined {
        Joined::NoEntry { .. } => json!({"state": "not an entry"}),
        Joined::Dangling { record, .. } => {
            let state = if is_behind { "pending" } else { "orphaned" };
            json!({"state": state, "key": shown::key(record)})
        }
        Joined::Record { record, value, .. } => {
            let mut row = row(catalog, record, value);
            if let Value::Object(fields) = &mut row {
                fields.insert("state".into(), json!("found"));
            }
            row
        }
    }
}

/// An entry with its part. Without a limit, the value is cut as in a listing.
fn of_part(part: Option<&Part>, key: &[u8], value: &[u8], most: Option<usize>) -> Value {
    let format = Format { wanted: As::Auto, full: false };
    let shown = match most {
        Some(_) => format.show_at_most(most, value, part),
        None => format.show(value, part),
    };
    let mut object = object(key, value, part, &shown);
    if let (Value::Object(fields), Some(part)) = (&mut object, part) {
        fields.insert("part".into(), json!(id(part)));
        fields.insert("kind".into(), json!(part.kind));
    }
    object
}

/// One entry.
pub fn entry(site: &Site, params: &Params) -> Result<Value> {
    let key = params.key()?;
    let (catalog, _) = Catalog::with_faults(&site.store);
    let snapshot = site.store.snapshot()?;
    let value = existing(&snapshot, &key)?;
    let mut object = of_part(catalog.part_of(&key), &key, &value, Some(MOST_SHOWN));
    let beginning = value.get(..MOST_SHOWN / 2).unwrap_or(&value);
    let value_hex = hex(beginning);
    if let Value::Object(fields) = &mut object {
        fields.insert("key_bytes".into(), json!(key.len()));
        fields.insert("value_hex".into(), json!(value_hex));
        fields.insert("value_hex_bytes".into(), json!(beginning.len()));
    }
    Ok(object)
}

/// The value of a key that must exist.
pub fn existing(snapshot: &AnySnapshot<'_>, key: &[u8]) -> Result<Vec<u8>> {
    let value = snapshot.get(key)?;
    let value = value.ok_or_else(|| Failure::new("there is no such key, or not any more"))?;
    Ok(value.to_vec())
}
