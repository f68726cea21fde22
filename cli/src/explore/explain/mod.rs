//! What a query reads: its ranges, the keys that it reads of them, and the records that it fetches.

mod lanes;
mod queries;
mod trace;

use keyloom::{Order, Store};
use serde_json::{Value, json};

use super::params::{Params, id};
use super::places;
use super::site::Site;
use crate::catalog::Catalog;
use crate::failure::{Failure, Result};
use crate::shown;

use lanes::Lanes;
use queries::Ran;
use trace::{Read, Traced};

/// The keys that a query may read. The view reads some more: the schemas, and both ends of each
/// part that it draws.
pub const MOST_KEYS: usize = 64;

/// The reads of a query: entries of an index or a table by their first parts, points in a box, or
/// the documents with a term.
pub fn explain(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let part = catalog.require(&params.name)?;
    let traced = Traced::new(site.store.snapshot()?, MOST_KEYS);
    let table = catalog.table_of(part).filter(|table| table.name != part.name);
    let needed = || table.ok_or_else(|| Failure::new("the index has no table"));
    let ran = match part.kind.as_str() {
        places::KIND => queries::places(&traced, part, needed()?, params)?,
        "text index" => queries::term(&traced, part, needed()?, params)?,
        // Only an index has entries that lead to records.
        _ => queries::scan(&traced, part, table.filter(|_| part.is_index()), params)?,
    };
    let stopped = if traced.is_spent() { Some("keys") } else { ran.stopped };
    let (reads, snapshot) = traced.end();
    let mut lanes = Lanes::new(&catalog, &ran.returned);
    reads.iter().enumerate().for_each(|(step, read)| lanes.add(step + 1, read));
    Ok(json!({
        "name": id(part), "kind": part.kind, "parts": params.parts, "total": total(&reads, &ran),
        "library": ran.library, "stopped": stopped,
        "steps": reads.iter().map(|read| step(&catalog, read, &ran)).collect::<Vec<_>>(),
        "lanes": lanes.shown(&snapshot)?,
    }))
}

/// The counts of all reads, as `Cost` has them.
fn total(reads: &[Read], ran: &Ran) -> Value {
    let ranges = reads.iter().filter(|read| matches!(read, Read::Range { .. })).count();
    let gets: usize = reads.iter().map(|read| read.gets().len()).sum();
    let found = reads.iter().flat_map(|read| read.gets()).filter(|(_, exists)| *exists).count();
    let scanned: usize = reads.iter().map(|read| read.scanned().len()).sum();
    json!({
        "ranges": ranges, "gets": gets, "scanned": scanned, "fetched": found,
        "keys_read": scanned + found, "results": ran.results,
    })
}

/// A read, as a row of the table of steps.
fn step(catalog: &Catalog, read: &Read, ran: &Ran) -> Value {
    let (first, count) = match read {
        Read::Range { start, keys, .. } => (lanes::bytes_of(start), keys.len()),
        Read::Gets(keys) => (keys.first().map(|(key, _)| &key[..]).unwrap_or_default(), keys.len()),
    };
    let mut lanes = vec![lanes::lane_of(catalog, first).0];
    for (key, _) in read.gets() {
        lanes.push(lanes::lane_of(catalog, key).0);
    }
    lanes.dedup();
    let lane = lanes.join("; ");
    match read {
        Read::Range { start, end, order, keys } => json!({
            "what": "range", "lane": lane, "from": lanes::start(start), "to": lanes::end(end),
            "descending": *order == Order::Descending, "keys_read": count,
            "returned": keys.iter().filter(|key| ran.returned.contains(*key)).count(),
        }),
        Read::Gets(keys) => json!({
            "what": "gets", "lane": lane, "asked": count,
            "from": shown::key(first), "to": keys.last().map(|(key, _)| shown::key(key)),
            "keys_read": keys.iter().filter(|(_, exists)| *exists).count(),
        }),
    }
}
