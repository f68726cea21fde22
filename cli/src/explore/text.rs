//! The terms of a text index, and the documents of a term. Terms are shown as they are stored:
//! only the program knows the analyzer that makes terms of a text.

use keyloom::key::{Element, List, elements, pack};
use keyloom::{AnySnapshot, KeyRange, Order, Reader, Store, Subspace};
use serde_json::{Value, json};

use super::api::{Params, hex, id};
use super::browse::row;
use super::server::Site;
use crate::block;
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Result};
use crate::shown;

/// The kind of a text index, as the schema stores it.
const KIND: &str = "text index";
/// The counters of fields that are read: documents and tokens of each.
const MOST_COUNTERS: usize = 12;
const MOST_TERMS: usize = 30;
/// The documents of a term that are shown. Each costs one key or two.
const MOST_DOCUMENTS: usize = 20;

/// The terms with a prefix, and the first documents of the term that equals it.
pub fn text(site: &Site, params: &Params) -> Result<Value> {
    let (catalog, _) = Catalog::with_faults(&site.store);
    let index = catalog.require(&params.name)?;
    let table = catalog.table_of(index).filter(|_| index.kind == KIND);
    let table =
        table.ok_or_else(|| Failure::new(format!("{:?} is not a text index", params.name)))?;
    let snapshot = site.store.snapshot()?;
    let view = View { snapshot: &snapshot, catalog: &catalog, index, table };
    let (fields, has_more_fields) = view.fields()?;
    let field = match (params.group.is_empty(), fields.first()) {
        (false, _) => hex("group", &params.group)?,
        (true, Some(field)) => field.packed.clone(),
        (true, None) => Vec::new(),
    };
    let (terms, has_more_terms) = view.terms(&field, &params.term)?;
    let documents =
        if params.term.is_empty() { None } else { view.documents(&field, &params.term)? };
    Ok(json!({
        "name": id(index), "table": id(table), "options": index.options, "term": params.term,
        "fields": fields.iter().map(Field::shown).collect::<Vec<_>>(), "more_fields": has_more_fields,
        "field": shown::key(&field), "field_hex": shown::hex(&field),
        "terms": terms, "more_terms": has_more_terms, "documents": documents,
    }))
}

/// A field of the index, or of one of its groups.
struct Field {
    /// The packed parts of the group, and the number of the field.
    packed: Vec<u8>,
    documents: i64,
    tokens: i64,
}

impl Field {
    fn shown(&self) -> Value {
        json!({
            "name": shown::key(&self.packed), "hex": shown::hex(&self.packed),
            "documents": self.documents, "tokens": self.tokens,
        })
    }
}

/// A counter of the index. A store keeps counters as integers of 8 bytes, little-endian.
fn count(value: &[u8]) -> i64 {
    value.try_into().map_or(0, i64::from_le_bytes)
}

/// A text index in a snapshot.
struct View<'v> {
    snapshot: &'v AnySnapshot<'v>,
    catalog: &'v Catalog,
    index: &'v Part,
    table: &'v Part,
}

impl View<'_> {
    /// The subspace with this number within the index, or within one of its fields.
    fn space(&self, number: u8, field: &[u8]) -> Subspace {
        let space = self.index.space.child(&number);
        Subspace::from_bytes(&[space.prefix(), field].concat())
    }

    /// The fields with their statistics, and whether there are more.
    fn fields(&self) -> Result<(Vec<Field>, bool)> {
        let space = self.space(4, &[]);
        let page =
            self.snapshot.page(space.self_and_children(), Order::Ascending, MOST_COUNTERS)?;
        let mut fields: Vec<Field> = Vec::new();
        for (key, value) in &page.entries {
            let parts = key.strip_prefix(space.prefix()).and_then(|rest| elements(rest).ok());
            let Some((Element::Int(which), field)) = parts.as_deref().and_then(<[_]>::split_last)
            else {
                continue;
            };
            let packed = pack(&List(field)).to_vec();
            match (which, fields.last_mut().filter(|last| last.packed == packed)) {
                (0, _) => fields.push(Field { packed, documents: count(value), tokens: 0 }),
                (_, Some(last)) => last.tokens = count(value),
                (_, None) => {}
            }
        }
        Ok((fields, page.last.is_some()))
    }

    /// The terms with a prefix and their numbers of documents, and whether there are more.
    fn terms(&self, field: &[u8], prefix: &str) -> Result<(Vec<Value>, bool)> {
        let space = self.space(1, field);
        let packed = space.pack(prefix);
        let page =
            self.snapshot.page(KeyRange::string_prefix(&packed), Order::Ascending, MOST_TERMS)?;
        let terms = page.entries.iter().filter_map(|(key, value)| {
            match elements(key.strip_prefix(space.prefix())?).ok()?.as_slice() {
                [Element::Str(term)] => Some(json!({
                    "term": term, "shown": term.escape_debug().to_string(), "documents": count(value),
                })),
                _ => None,
            }
        });
        Ok((terms.collect(), page.last.is_some()))
    }

    /// The first documents with a term, each with its record. `None` if no document has it.
    fn documents(&self, field: &[u8], term: &str) -> Result<Option<Value>> {
        let list = self.space(2, field).child(term);
        let Some((key, value)) = self.snapshot.first(KeyRange::children(list.prefix()))? else {
            return Ok(None);
        };
        let last = key.strip_prefix(list.prefix()).and_then(|id| keyloom::key::unpack(id).ok());
        let postings = last.and_then(|last: u32| block::postings(&value, last));
        let postings =
            postings.ok_or_else(|| Failure::new("the postings of the term are not readable"))?;
        let first: Vec<_> = postings.iter().take(MOST_DOCUMENTS).collect();
        let ids: Vec<u32> = first.iter().map(|(document, _)| *document).collect();
        let keys = self.record_keys(&ids)?;
        let existing: Vec<&[u8]> = keys.iter().flatten().map(Vec::as_slice).collect();
        let mut values = self.snapshot.get_many(&existing)?.into_iter();
        let rows = first.iter().zip(&keys).map(|((document, frequency), key)| {
            let value = key.as_ref().and_then(|_| values.next().flatten());
            let record = key.as_ref().zip(value).map(|(key, value)| row(self.catalog, key, &value));
            json!({"id": document, "frequency": frequency, "record": record})
        });
        Ok(Some(rows.collect()))
    }

    /// The keys of the records with these ids.
    fn record_keys(&self, ids: &[u32]) -> Result<Vec<Option<Vec<u8>>>> {
        let dense = self.index.space.child(&0).child("ids");
        if self.snapshot.get(&dense.pack("next"))?.is_none() {
            return Ok(ids.iter().map(|id| Some(self.table.space.pack(id).to_vec())).collect());
        }
        let keys: Vec<_> = ids.iter().map(|id| dense.pack(&("key", id))).collect();
        let found = self.snapshot.get_many(&keys)?;
        Ok(found.iter().map(|packed| self.record_key(packed.as_deref()?)).collect())
    }

    fn record_key(&self, packed: &[u8]) -> Option<Vec<u8>> {
        let own = match elements(packed).ok()?.as_slice() {
            // The table has the elements of a composite key.
            [Element::Tuple(parts)] => pack(&List(&parts[..])).to_vec(),
            _ => packed.to_vec(),
        };
        Some([self.table.space.prefix(), &own].concat())
    }
}
