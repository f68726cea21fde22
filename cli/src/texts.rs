//! Searches of text indexes, without the types of the program. Terms are taken as they are stored:
//! only the program knows the analyzer that makes terms of a text.

use keyloom::key::{Element, List, elements, pack};
use keyloom::{KeyBuf, Order, Reader, Subspace};
use keyloom_kit::{Continuation, RecordKey};
use keyloom_text::analysis::Analyzer;
use keyloom_text::{Query, TextIndex};

use crate::catalog::Part;
use crate::failure::Result;

/// The kind of a text index, as the schema stores it.
pub const KIND: &str = "text index";

/// A field of the index, or of one of its groups.
pub struct Field {
    /// The packed parts of the group, and the number of the field.
    pub packed: Vec<u8>,
    /// The number of documents with the field.
    pub documents: i64,
    /// The number of their tokens.
    pub tokens: i64,
}

/// A counter of the index. A store keeps counters as integers of 8 bytes, little-endian.
pub fn count(value: &[u8]) -> i64 {
    value.try_into().map_or(0, i64::from_le_bytes)
}

/// The fields with their statistics, from at most this many counters, and whether there are more.
/// Each field has two counters.
pub fn fields(
    reader: &impl Reader,
    index: &Part,
    counters: usize,
) -> keyloom::Result<(Vec<Field>, bool)> {
    let space = index.space.child(&4_u8);
    let page = reader.page(space.self_and_children(), Order::Ascending, counters)?;
    let mut fields: Vec<Field> = Vec::new();
    for (key, value) in &page.entries {
        let Some((which, packed)) = counter(&space, key) else { continue };
        match (which, fields.last_mut().filter(|last| last.packed == packed)) {
            (0, _) => fields.push(Field { packed, documents: count(value), tokens: 0 }),
            (_, Some(last)) => last.tokens = count(value),
            (_, None) => {}
        }
    }
    Ok((fields, page.last.is_some()))
}

/// The number of a counter of a field, and the packed parts of the field.
fn counter(space: &Subspace, key: &[u8]) -> Option<(i128, Vec<u8>)> {
    let parts = elements(key.strip_prefix(space.prefix())?).ok()?;
    match parts.split_last()? {
        (Element::Int(which), field) => Some((*which, pack(&List(field)).to_vec())),
        _ => None,
    }
}

/// Whether ids lead to keys of records. Otherwise, the keys of records are the ids.
pub fn has_dense_ids(reader: &impl Reader, index: &Part) -> Result<bool> {
    Ok(reader.get(&index.space.child(&0).child("ids").pack("next"))?.is_some())
}

/// The parts of any group, or of a record key in a list of ids.
type AnyParts = List<Vec<Element>>;

/// A record that a search has found.
pub struct Found {
    /// The key of the record within its table, packed.
    pub key: KeyBuf,
    /// Its score: greater is better.
    pub score: f64,
}

/// A field of a text index that is searched.
pub struct Searched<'s> {
    pub index: &'s Part,
    /// The leading parts of the group, none in an index without groups.
    pub group: &'s [Element],
    /// The number of the field.
    pub field: u8,
    /// See [`has_dense_ids`].
    pub has_dense_ids: bool,
}

impl Searched<'_> {
    /// The name of the field in queries: its number, since the names that the program gives are not
    /// needed.
    pub fn name(&self) -> String {
        self.field.to_string()
    }

    /// A page of the best records.
    pub fn page(
        &self,
        reader: &impl Reader,
        query: Query,
        limit: usize,
        after: Option<Continuation>,
    ) -> keyloom::Result<(Vec<Found>, Option<Continuation>)> {
        let space = &self.index.space;
        if self.has_dense_ids {
            let texts = TextIndex::<AnyParts, (), AnyParts>::grouped(space, no_group);
            return self.page_of(texts, reader, query, limit, after);
        }
        let texts = TextIndex::<u64, (), AnyParts>::grouped_with_keys_as_ids(space, no_group);
        self.page_of(texts, reader, query, limit, after)
    }

    fn page_of<K: RecordKey>(
        &self,
        texts: TextIndex<K, (), AnyParts>,
        reader: &impl Reader,
        query: Query,
        limit: usize,
        after: Option<Continuation>,
    ) -> keyloom::Result<(Vec<Found>, Option<Continuation>)> {
        let with_field = |texts: TextIndex<K, (), AnyParts>, number: u8| {
            texts.field(&number.to_string(), Analyzer::keyword(), |_, (), _| {})
        };
        let texts = (0..=self.field).fold(texts, with_field).group(List(self.group));
        let page = texts.search(query).limit(limit).after(after).hits(reader)?;
        let found = page.items.iter().map(|hit| Found { key: pack(&hit.key), score: hit.score });
        Ok((found.collect(), page.next))
    }
}

/// Stands for the program's function that returns the group of a record. Only writes call this
/// function, and no record is written here.
fn no_group<K>(_: &K, (): &()) -> keyloom_text::Group<AnyParts> {
    keyloom_text::Group::of(List(Vec::<Element>::new()))
}
