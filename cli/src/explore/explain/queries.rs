//! The queries that are explained. Each runs as a program or a command runs it.

use std::collections::BTreeSet;

use keyloom::key::{Element, List, elements, pack};
use keyloom::{KeyBuf, Order, Reader};
use keyloom_kit::{RecordKey, Scan};
use keyloom_spatial::PointIndex;
use keyloom_text::analysis::Analyzer;
use keyloom_text::{Query, TextIndex};

use super::super::api::{Params, hex};
use super::trace::Traced;
use crate::catalog::Part;
use crate::failure::{Failure, Result};
use crate::indexed::{keys_of, record_keys};
use crate::points::{Group, bounding_box};
use crate::selection::Selection;

/// The results of a query: as many as `keyloom query` lists.
pub const MOST_RESULTS: usize = 20;

/// What a query returned.
#[derive(Default)]
pub struct Ran {
    /// The keys that the query returned, of those that it read.
    pub returned: BTreeSet<Vec<u8>>,
    /// The number of results.
    pub results: usize,
    /// The counts of the library, for a query that has them.
    pub library: Option<String>,
    /// Whether the query ended at its limit of results or of keys.
    pub stopped: Option<&'static str>,
}

/// The result of a read, or `None` if the query would read more keys than the limit.
fn unless_spent<R, T>(reader: &Traced<R>, read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(_) if reader.is_spent() => Ok(None),
        other => other.map(Some),
    }
}

/// The parts of any group, or of a record key in a list of ids.
type AnyParts = List<Vec<Element>>;

/// Entries in the order of their keys, as `keyloom query` reads an index and `keyloom scan` a
/// table.
pub fn scan<R: Reader>(
    reader: &Traced<R>,
    part: &Part,
    table: Option<&Part>,
    params: &Params,
) -> Result<Ran> {
    let parts = Some(params.parts.trim()).filter(|parts| !parts.is_empty());
    let selection = Selection::within(part, parts)?;
    let order = if params.reverse == "yes" { Order::Descending } else { Order::Ascending };
    let read = entries(reader, &selection, order, MOST_RESULTS).map_err(Failure::from);
    let read = unless_spent(reader, read)?;
    let has_more = read.as_ref().is_some_and(|(_, has_more)| *has_more);
    let mut ran = Ran { stopped: has_more.then_some("results"), ..Ran::default() };
    if let Some(((found, _), table)) = read.zip(table) {
        let keys =
            found.iter().flat_map(|(key, value)| record_keys(&part.space, table, (key, value)));
        fetch(reader, &keys.collect::<Vec<_>>())?;
    }
    let selected = reader.scanned().into_iter().filter(|key| selection.has(key));
    ran.returned = selected.take(MOST_RESULTS).collect();
    ran.results = ran.returned.len();
    Ok(ran)
}

/// Keys and values.
type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// The first entries of a selection, and whether there are more.
fn entries(
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

/// Reads records in one round trip.
fn fetch<R: Reader>(reader: &Traced<R>, keys: &[impl AsRef<[u8]>]) -> Result {
    unless_spent(reader, reader.get_many(keys).map(drop).map_err(Failure::from)).map(drop)
}

/// The key of the record whose key is this element, packed: of a tuple, the table has the elements.
fn record_key(table: &Part, packed: &[u8]) -> Option<Vec<u8>> {
    keys_of(table, packed).into_iter().next()
}

/// The points of a group in a box, as a program reads them, and their records.
pub fn places<R: Reader>(
    reader: &Traced<R>,
    index: &Part,
    table: &Part,
    params: &Params,
) -> Result<Ran> {
    let group = match params.group.is_empty() {
        true => Group::default_of(&index.space),
        false => Group::of_bytes(&index.space, hex("group", &params.group)?)?,
    };
    let area = bounding_box(&params.area)?;
    // The entries of a group have the layout of an index without groups.
    let points = PointIndex::<Element, ()>::new(&group.space, |_, ()| Ok(None));
    let mut walk = points.within(area).points(reader)?;
    let (mut ran, mut records) = (Ran::default(), Vec::new());
    while ran.returned.len() < MOST_RESULTS {
        let Some(point) = walk.next() else { break };
        let Some(point) = unless_spent(reader, point.map_err(Failure::from))? else { break };
        records.extend(record_key(table, point.entry().packed_record_key()));
        ran.returned.insert(point.entry().entry_key().to_vec());
    }
    ran.results = ran.returned.len();
    ran.stopped = (ran.results == MOST_RESULTS).then_some("results");
    ran.library = Some(walk.explain().to_string());
    fetch(reader, &records)?;
    Ok(ran)
}

/// The most relevant documents with a term, as a search finds them, and their records.
pub fn term<R: Reader>(
    reader: &Traced<R>,
    index: &Part,
    table: &Part,
    params: &Params,
) -> Result<Ran> {
    if params.term.is_empty() {
        return Err(Failure::new("a search needs a term, as it is stored"));
    }
    let field = match params.group.is_empty() {
        true => pack(&0).to_vec(),
        false => hex("group", &params.group)?,
    };
    let failed = || Failure::new("group holds the parts of a group and the number of a field");
    let mut group = elements(&field).map_err(|_| failed())?;
    let Some(Element::Int(field)) = group.pop() else { return Err(failed()) };
    let field = u8::try_from(field).map_err(|_| failed())?;
    let search = Search { reader, group: &group, field, term: &params.term };
    let keys = match has_dense_ids(reader.untraced(), index)? {
        true => {
            search.keys(TextIndex::<AnyParts, (), AnyParts>::grouped(&index.space, no_group))?
        }
        false => search.keys(TextIndex::<u64, (), AnyParts>::grouped_with_keys_as_ids(
            &index.space,
            no_group,
        ))?,
    };
    let mut ran = Ran { results: keys.len(), ..Ran::default() };
    ran.stopped = (keys.len() == MOST_RESULTS).then_some("results");
    let keys: Vec<_> = keys.iter().map(|key| [table.space.prefix(), key].concat()).collect();
    // Each block has documents of the term.
    ran.returned = reader.scanned().into_iter().collect();
    fetch(reader, &keys)?;
    Ok(ran)
}

/// A program's function gives the group of a record. No record is written here.
fn no_group<K>(_: &K, (): &()) -> keyloom_text::Group<AnyParts> {
    keyloom_text::Group::of(List(Vec::<Element>::new()))
}

/// Whether ids lead to keys of records. Without that, keys of records are ids.
fn has_dense_ids(reader: &impl Reader, index: &Part) -> Result<bool> {
    Ok(reader.get(&index.space.child(&0).child("ids").pack("next"))?.is_some())
}

/// A search for one term.
struct Search<'s, R> {
    reader: &'s Traced<R>,
    /// The leading parts of the group, none in an index without groups.
    group: &'s [Element],
    field: u8,
    term: &'s str,
}

impl<R: Reader> Search<'_, R> {
    /// The packed keys of the best records.
    fn keys<K: RecordKey>(&self, texts: TextIndex<K, (), AnyParts>) -> Result<Vec<KeyBuf>> {
        // A field is known by its number: the program's names and functions are not stored.
        let with_field = |texts: TextIndex<K, (), AnyParts>, number: u8| {
            texts.field(&number.to_string(), Analyzer::keyword(), |_, (), _| {})
        };
        let texts = (0..=self.field).fold(texts, with_field).group(List(self.group));
        let query = Query::term(self.field.to_string(), self.term);
        let found = texts.search(query).limit(MOST_RESULTS).hits(self.reader);
        let found = unless_spent(self.reader, found.map_err(Failure::from))?;
        let hits = found.map_or(Vec::new(), |page| page.items);
        Ok(hits.iter().map(|hit| pack(&hit.key)).collect())
    }
}
