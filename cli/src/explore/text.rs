//! The terms of a text index, and the documents of a term. Terms are shown as they are stored:
//! only the program knows the analyzer that makes terms of a text.

use keyloom::key::{Element, List, elements, pack};
use keyloom::{AnySnapshot, KeyRange, Order, Reader, Store, Subspace};
use serde_json::{Value, json};

use super::browse::row;
use super::params::{Params, hex, id};
use super::site::Site;
use crate::block;
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Result};
use crate::shown;
use crate::texts::{self, Field, KIND, count};

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
    let (fields, has_more_fields) = texts::fields(&snapshot, index, MOST_COUNTERS)?;
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
        "fields": fields.iter().map(of_field).collect::<Vec<_>>(), "more_fields": has_more_fields,
        "field": shown::key(&field), "field_hex": shown::hex(&field),
        "terms": terms, "more_terms": has_more_terms, "documents": documents,
    }))
}

/// A field for the page.
fn of_field(field: &Field) -> Value {
    json!({
        "name": shown::key(&field.packed), "hex": shown::hex(&field.packed),
        "documents": field.documents, "tokens": field.tokens,
    })
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
        if !texts::has_dense_ids(self.snapshot, self.index)? {
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
