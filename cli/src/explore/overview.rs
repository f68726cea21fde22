//! What a store holds, and how large its parts are.

use keyloom::key::elements;
use keyloom::{AnySnapshot, KeyRange, Reader, Store, Subspace};
use serde_json::{Value, json};

use super::params::{Params, hex, id};
use super::site::Site;
use crate::catalog::{Catalog, Part};
use crate::failure::Result;
use crate::locks::sets;
use crate::measure::measure;
use crate::queues::queues;
use crate::shown;
use crate::tree::group_of;

/// The number of keys that an overview reads for the groups of other keys, besides one key for each
/// part of a schema.
const MOST_GROUPS: usize = 60;
/// The entries that a size counts before it estimates the rest. A table of a million entries then
/// takes some 0.1 s, and a page has tens of tables.
const COUNTED: u64 = 10_000;

/// Tables, derived data, and groups of other keys. Sizes are read one by one, by [`size`].
pub fn overview(site: &Site) -> Result<Value> {
    let (catalog, faults) = Catalog::with_faults(&site.store);
    let snapshot = site.store.snapshot()?;
    let (others, has_more) = others(&snapshot, &catalog)?;
    let parts: Vec<Value> = catalog.parts.iter().map(part).collect();
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let locks: Vec<_> =
        sets(&catalog).map(|set| format!("{}/{}", set.requests.schema, set.name)).collect();
    let queues: Vec<_> =
        queues(&catalog).map(|(jobs, name)| format!("{}/{name}", jobs.schema)).collect();
    Ok(json!({
        "address": site.address, "is_remote": site.store.round_trips().is_some(), "parts": parts, "others": others, "more_others": has_more,
        "faults": faults, "locks": locks, "queues": queues,
    }))
}

/// A part of a schema.
fn part(part: &Part) -> Value {
    json!({
        "id": id(part), "schema": part.schema, "name": part.name, "table": part.table,
        "kind": part.kind, "state": part.state, "codec": part.codec, "options": part.options,
        "is_index": part.is_index(), "prefix": shown::key(part.space.prefix()),
        "prefix_hex": shown::hex(part.space.prefix()),
    })
}

/// The keys that no schema names, by their first element, and whether there are more groups.
fn others(snapshot: &AnySnapshot<'_>, catalog: &Catalog) -> Result<(Vec<Value>, bool)> {
    let schemas = Subspace::new("keyloom");
    let (mut found, mut rest) = (Vec::new(), KeyRange::all());
    for _ in 0..MOST_GROUPS + catalog.parts.len() {
        let Some((key, _)) = snapshot.first(rest.clone())? else { return Ok((found, false)) };
        let skipped = match catalog.part_of(&key) {
            Some(part) => part.space.self_and_children(),
            None => {
                let (name, prefix, range) = group_of(&key, 1);
                let is_schemas = prefix == schemas.prefix();
                found.push(json!({
                    "prefix": name, "prefix_hex": shown::hex(&prefix), "is_schemas": is_schemas,
                }));
                range
            }
        };
        rest = after(rest, &skipped, &key);
    }
    Ok((found, true))
}

/// The keys of `rest` after `skipped`, which contains `key`.
fn after(rest: KeyRange<'static>, skipped: &KeyRange<'_>, key: &[u8]) -> KeyRange<'static> {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let start = match skipped.normalized().map(|(_, end)| end) {
        Some(Excluded(end)) => Included(end),
        Some(Included(end)) => Excluded(end),
        Some(Unbounded) => Excluded(&[0xFF; keyloom::MAX_KEY_BYTES][..]),
        None => Excluded(key),
    };
    rest.intersect(KeyRange::new(start, Unbounded).into_owned())
}

/// The size of the keys with a prefix. Reads thousands of keys if there are many, so the page reads
/// sizes only after it is shown, and from a server only if the user wishes.
// An estimate from 75 keys was tried: it showed 12 million cities where there are 135,233.
pub fn size(site: &Site, params: &Params) -> Result<Value> {
    let range = beginning_with(&hex("prefix", &params.prefix)?);
    let snapshot = site.store.snapshot()?;
    let size = measure(&snapshot, &range, COUNTED)?;
    Ok(json!({"entries": size.entries, "bytes": size.bytes, "error_percent": size.error}))
}

/// The keys with the elements of a prefix, or with its bytes if it is not a tuple.
fn beginning_with(prefix: &[u8]) -> KeyRange<'static> {
    match elements(prefix).is_ok() {
        true => KeyRange::self_and_children(prefix).into_owned(),
        false => KeyRange::prefix(prefix).into_owned(),
    }
}
