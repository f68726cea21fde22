//! A table beside its indexes: the entries of a record, and the records of entries.

use keyloom::key::{Element, elements, pack};
use keyloom::{AnySnapshot, Order, Reader, Store};
use serde_json::{Value, json};

use super::browse::{beside, existing, row};
use super::params::{Params, id};
use super::places;
use super::site::Site;
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Result};
use crate::indexed::{Entry, Joined, record_keys};
use crate::selection::Selection;
use crate::shown;
use crate::value::scalars;

/// The entries of an index that are listed with their records.
const PAGE: usize = 40;
/// The entries of an index that are compared with a record one by one.
const COMPARED: usize = 12;
/// The keys that are read to find the entries of a record.
const MOST_KEYS: usize = 80;
/// The parts of an entry that are searched for by the values of a record.
const MOST_PARTS: usize = 4;

/// What belongs to an entry: the index entries of a record, or the record of an index entry.
pub fn related(site: &Site, params: &Params) -> Result<Value> {
    let key = params.key()?;
    let (catalog, _) = Catalog::with_faults(&site.store);
    let snapshot = site.store.snapshot()?;
    let value = existing(&snapshot, &key)?;
    let Some(part) = catalog.part_of(&key) else { return Ok(json!({})) };
    match catalog.table_of(part) {
        // The entries of points have the layout of an index.
        Some(table) if part.is_index() || part.kind == places::KIND => {
            let is_behind = catalog.is_behind(&snapshot, part)?;
            let joined = Joined::read(&snapshot, &part.space, table, &[(&key, &value)])?;
            Ok(json!({"record": joined.iter().map(|one| beside(&catalog, one, is_behind)).next()}))
        }
        _ if part.kind == "table" => {
            let mut search = Search::new(&snapshot, part, &key, &value);
            let indexes = catalog.parts.iter().filter(|one| {
                one.is_index() && one.schema == part.schema && one.table == part.table
            });
            let found = indexes.map(|index| search.entries(&catalog, index));
            Ok(json!({"indexes": found.collect::<Result<Vec<Value>>>()?}))
        }
        _ => Ok(json!({})),
    }
}

/// A page of an index, each entry with its record.
pub fn joined(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let index = catalog.require(&params.name)?;
    let table = catalog.table_of(index).filter(|_| index.is_index());
    let table = table.ok_or_else(|| Failure::new(format!("{:?} is not an index", params.name)))?;
    let mut range = Selection::within(index, None)?.range;
    if let Some(after) = params.after()? {
        range = range.resume(Order::Ascending, &after).into_owned();
    }
    let snapshot = site.store.snapshot()?;
    let page = snapshot.page(range, Order::Ascending, PAGE)?;
    let is_behind = catalog.is_behind(&snapshot, index)?;
    let entries: Vec<Entry<'_>> =
        page.entries.iter().map(|(key, value)| (&**key, &**value)).collect();
    let joined = Joined::read(&snapshot, &index.space, table, &entries)?;
    let rows = entries.iter().zip(&joined).map(|((key, value), one)| {
        json!({"entry": row(&catalog, key, value), "record": beside(&catalog, one, is_behind)})
    });
    Ok(json!({
        "index": id(index), "table": id(table), "rows": rows.collect::<Vec<_>>(),
        "next": page.last.as_ref().map(|last| shown::hex(last)),
    }))
}

/// The search for the index entries of a record. Only the program can derive the entries, but their
/// parts are mostly values of the record, and an entry found in this way leads to the record.
struct Search<'s> {
    snapshot: &'s AnySnapshot<'s>,
    table: &'s Part,
    record: &'s [u8],
    /// The record's key as one element, packed, as entries have it.
    packed: Option<Vec<u8>>,
    values: Vec<Vec<u8>>,
    left: usize,
}

impl<'s> Search<'s> {
    fn new(snapshot: &'s AnySnapshot<'s>, table: &'s Part, record: &'s [u8], value: &[u8]) -> Self {
        let key = record.get(table.space.prefix().len()..).unwrap_or_default();
        let packed = elements(key).ok().map(|all| match &all[..] {
            [one] => pack(one).to_vec(),
            _ => pack(&Element::Tuple(all)).to_vec(),
        });
        let values = scalars(value, table).iter().map(|one| pack(one).to_vec()).collect();
        Self { snapshot, table, record, packed, values, left: MOST_KEYS }
    }

    /// The entries of the record in one index.
    fn entries(&mut self, catalog: &Catalog, index: &Part) -> Result<Value> {
        let range = index.space.self_and_children();
        let page = self.snapshot.page(range, Order::Ascending, COMPARED.min(self.left.max(1)))?;
        self.left = self.left.saturating_sub(page.entries.len() + 1);
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (key, value) in &page.entries {
            self.add(index, key, value, &mut found);
        }
        let is_complete = page.last.is_none();
        if !is_complete {
            self.below(index, index.space.prefix(), 0, &mut found)?;
        }
        let rows: Vec<Value> = found.iter().map(|(key, value)| row(catalog, key, value)).collect();
        Ok(json!({
            "index": id(index), "kind": index.kind, "state": index.state, "entries": rows,
            "complete": is_complete,
        }))
    }

    /// Searches for entries that continue `prefix` with values of the record.
    fn below(
        &mut self,
        index: &Part,
        prefix: &[u8],
        depth: usize,
        found: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result {
        if depth == MOST_PARTS {
            return Ok(());
        }
        for at in 0..self.values.len() {
            let Some(value) = self.values.get(at) else { break };
            let longer = [prefix, value].concat();
            if !self.first(index, &longer, found)? {
                continue;
            }
            // The entry of this record among others with the same parts.
            if let Some(packed) = &self.packed {
                let whole = [&longer[..], packed].concat();
                self.first(index, &whole, found)?;
            }
            self.below(index, &longer, depth + 1, found)?;
        }
        Ok(())
    }

    /// Whether an entry begins with `prefix`. If the first such entry leads to the record, adds it
    /// to `found`.
    fn first(
        &mut self,
        index: &Part,
        prefix: &[u8],
        found: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        let range = keyloom::KeyRange::self_and_children(prefix);
        let Some((key, value)) = self.snapshot.first(range)? else { return Ok(false) };
        self.add(index, &key, &value, found);
        Ok(true)
    }

    fn add(&self, index: &Part, key: &[u8], value: &[u8], found: &mut Vec<(Vec<u8>, Vec<u8>)>) {
        let is_own = record_keys(&index.space, self.table, (key, value))
            .iter()
            .any(|key| key[..] == *self.record);
        if is_own && found.iter().all(|(known, _)| known != key) {
            found.push((key.to_vec(), value.to_vec()));
        }
    }
}
