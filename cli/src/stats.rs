//! `keyloom stats`: the sizes of a store.

use clap::Args;
use keyloom::{AnyStore, KeyRange, Order, Reader, Result as StoreResult, Store};
use serde_json::{Value, json};

use crate::address::{Access, open, shown as shown_address};
use crate::catalog::Catalog;
use crate::failure::{Outcome, Result};
use crate::output::{Output, grouped};
use crate::shown;

/// Counts entries and bytes. Reads the whole store.
#[derive(Debug, Args)]
pub struct Stats {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
}

#[derive(Debug, Default)]
struct Counts {
    entries: u64,
    key_bytes: u64,
    value_bytes: u64,
    longest_key: usize,
    longest_value: usize,
    tuples: u64,
}

impl Stats {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let snapshot = store.snapshot()?;
        let counts = count(&snapshot)?;
        let key = |entry: Option<_>| entry.map(|key: Vec<u8>| shown::key(&key));
        let first = key(snapshot.first(KeyRange::all())?.map(|(key, _)| key.to_vec()));
        let last = key(snapshot.last(KeyRange::all())?.map(|(key, _)| key.to_vec()));
        let parts = Catalog::read(&store).parts;
        let tables = parts.iter().filter(|part| part.kind == "table").count();
        let mut rows = vec![
            ("store", json!(shown_address(&self.address))),
            ("entries", json!(counts.entries)),
            ("key_bytes", json!(counts.key_bytes)),
            ("value_bytes", json!(counts.value_bytes)),
            ("longest_key_bytes", json!(counts.longest_key)),
            ("longest_value_bytes", json!(counts.longest_value)),
            ("keys_that_are_tuples", json!(counts.tuples)),
            ("first_key", json!(first)),
            ("last_key", json!(last)),
            ("tables", json!(tables)),
            ("derived_data", json!(parts.len() - tables)),
        ];
        rows.extend(of_engine(&store)?);
        print(out, rows)?;
        Ok(Outcome::Fine)
    }
}

fn count(snapshot: &impl Reader) -> StoreResult<Counts> {
    let mut counts = Counts::default();
    for entry in snapshot.range(KeyRange::all(), Order::Ascending)? {
        let (key, value) = entry?;
        counts.entries += 1;
        counts.key_bytes += key.len() as u64;
        counts.value_bytes += value.len() as u64;
        counts.longest_key = counts.longest_key.max(key.len());
        counts.longest_value = counts.longest_value.max(value.len());
        counts.tuples += u64::from(keyloom::key::elements(&key).is_ok());
    }
    Ok(counts)
}

fn of_engine(store: &AnyStore) -> StoreResult<Vec<(&'static str, Value)>> {
    let AnyStore::Lmdb(lmdb) = store else { return Ok(Vec::new()) };
    let found = lmdb.statistics()?;
    Ok(vec![
        ("file_bytes", json!(found.file_bytes)),
        ("page_bytes", json!(found.page_bytes)),
        ("tree_depth", json!(found.depth)),
        ("branch_pages", json!(found.branch_pages)),
        ("leaf_pages", json!(found.leaf_pages)),
        ("overflow_pages", json!(found.overflow_pages)),
        ("last_transaction", json!(found.last_transaction)),
    ])
}

fn print(out: &mut Output, rows: Vec<(&'static str, Value)>) -> Result {
    if out.json {
        let object = rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        return out.either(|| Value::Object(object), String::new);
    }
    let text = |value: &Value| match value {
        Value::Number(number) => number.as_u64().map_or(String::new(), grouped),
        Value::String(text) => text.clone(),
        _ => "none".into(),
    };
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter().try_for_each(|(name, value)| {
        out.line(&format!("{:width$}  {}", name.replace('_', " "), text(value)))
    })
}
