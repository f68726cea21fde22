//! The queries that are explained. Each runs as a program or a command runs it.

use std::collections::BTreeSet;

use keyloom::key::{Element, elements, pack};
use keyloom::{Order, Reader};
use keyloom_kit::Scan;
use keyloom_spatial::PointIndex;
use keyloom_text::Query;

use super::super::params::{Params, hex};
use super::trace::Traced;
use crate::catalog::Part;
use crate::failure::{Failure, Result};
use crate::indexed::{keys_of, record_keys};
use crate::points::{Group, bounding_box};
use crate::selection::Selection;
use crate::texts::{self, Searched};

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

/// The key in the table of the record whose key is this packed element. If the element is a tuple,
/// the table stores its elements.
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
    let has_dense_ids = texts::has_dense_ids(reader.untraced(), index)?;
    let searched = Searched { index, group: &group, field, has_dense_ids };
    let query = Query::term(searched.name(), &params.term);
    let page = searched.page(reader, query, MOST_RESULTS, None).map_err(Failure::from);
    let found = unless_spent(reader, page)?.map_or(Vec::new(), |(found, _)| found);
    let keys: Vec<_> = found.iter().map(|one| [table.space.prefix(), &one.key].concat()).collect();
    let mut ran = Ran { results: keys.len(), ..Ran::default() };
    ran.stopped = (keys.len() == MOST_RESULTS).then_some("results");
    // Each block that was read has documents of the term, so all its keys count as returned.
    ran.returned = reader.scanned().into_iter().collect();
    fetch(reader, &keys)?;
    Ok(ran)
}
