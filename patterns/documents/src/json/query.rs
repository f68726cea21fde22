//! Index queries.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::{Bound, RangeBounds};

use keyloom::key::pack;
use keyloom::value::Json;
use keyloom::{Error, KeyBuf, KeyRange, List, Order, Reader, Result, Subspace};
use keyloom_kit::parts::AnyParts;
use keyloom_kit::{Continuation, Page, RecordKey, Select, UnreadableEntry, get_many};
use keyloom_tables::index::IndexQuery;
use keyloom_tables::table::record;
use serde_json::Value;

use super::definition::Definition;
use super::order::{ALL_KINDS, JsonKey, kinds_of, shared_beginning};
use super::path_index::{DocumentIndex, PathIndex};
use super::{JsonError, JsonPath, MAX_DEPTH, is_deeper};

/// The limit of the growing batches of a page: it reads at least 1, then 2, 4, … entries together,
/// up to this number. If the page needs more documents than this number, more entries are read
/// together.
// A higher limit needs more memory, and wastes reads once the page is full. A lower one adds round
// trips where many entries belong to few documents.
const BATCH: usize = 1_024;

/// The number of document keys that a page remembers.
// A key has at most 511 bytes, so the keys take at most about 5 MB.
const MOST_SEEN: usize = 10_000;

/// A query of the index entries.
pub(super) type Entries<'c, K> = IndexQuery<'c, K, Value, AnyParts, &'c DocumentIndex<K>>;

/// A query of an index of a [collection](super::Collection): values for its first paths, and then
/// optionally a range for the next path. Nothing is read until [`page`](JsonQuery::page) is called.
pub struct JsonQuery<'c, K: RecordKey> {
    index: &'c PathIndex<K>,
    equal: Vec<Value>,
    range: Option<(Bound<Value>, Bound<Value>)>,
    order: Order,
    pub(super) limit: usize,
    pub(super) after: Option<Continuation>,
}

impl<K: RecordKey> Clone for JsonQuery<'_, K> {
    fn clone(&self) -> Self {
        let Self { index, equal, range, order, limit, after } = self;
        let (equal, range, after) = (equal.clone(), range.clone(), after.clone());
        Self { index, equal, range, order: *order, limit: *limit, after }
    }
}

impl<K: RecordKey> fmt::Debug for JsonQuery<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonQuery")
            .field("index", &self.index.definition.text())
            .field("equal", &self.equal)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

impl<'c, K: RecordKey> JsonQuery<'c, K> {
    pub(super) fn new(index: &'c PathIndex<K>) -> Self {
        let (equal, order) = (Vec::new(), Order::Ascending);
        Self { index, equal, range: None, order, limit: 100, after: None }
    }

    /// The value at the next path equals `value`. `1` and `1.0` are equal.
    #[must_use]
    pub fn equal(mut self, value: impl Into<Value>) -> Self {
        self.equal.push(value.into());
        self
    }

    /// The value at the next path is in this range. If a bound is missing, the range contains only
    /// values of the type of the other bound: `json!(5)..` contains only numbers. `..` contains all
    /// values.
    #[must_use]
    pub fn range(mut self, range: impl RangeBounds<Value>) -> Self {
        self.range = Some((range.start_bound().cloned(), range.end_bound().cloned()));
        self
    }

    /// Sets the order of the results: by the values at the paths, and then by key. Ascending by
    /// default.
    #[must_use]
    pub fn order(self, order: Order) -> Self {
        Self { order, ..self }
    }

    /// Sets the greatest number of documents of a page: 100 by default, and at least 1.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit: limit.max(1), ..self }
    }

    /// Continues after the page that returned `after`; from the beginning with `None`.
    #[must_use]
    pub fn after(self, after: impl Into<Option<Continuation>>) -> Self {
        Self { after: after.into(), ..self }
    }

    /// The documents in the order of the index, each once, and a continuation for the next page.
    ///
    /// # Errors
    /// [`JsonError::TooManyConditions`]; [`JsonError::TooDeep`] for a value of the query; the
    /// errors of [`IndexQuery::page`](keyloom_tables::IndexQuery::page), such as for an index that
    /// is not built; an [`UnreadableEntry`](keyloom_tables::UnreadableEntry) if the first document
    /// does not decode.
    pub fn page(&self, reader: &impl Reader) -> Result<Page<(K, Value)>> {
        let selected = self.selected()?;
        let range = selected.key_range(&self.index.index.space());
        let query = self.entries_of(selected.clone());
        let (mut items, mut next) = (Vec::new(), self.after.clone());
        let (mut seen, mut batch) = (HashSet::new(), 1);
        loop {
            let number = batch.max(self.limit - items.len());
            let page = match query.clone().limit(number).after(next.as_ref()).page(reader) {
                Err(error) if next != self.after && is_unreadable(&error) => {
                    return Ok(Page { items, next });
                }
                page => page?,
            };
            let found = page.items.iter().map(|found| (found.record_key(), found.entry_key()));
            let found: Vec<(Result<K>, &[u8])> = found.collect();
            let mut documents = self.documents(reader, &found, &seen)?;
            let behind = |entry: &[u8]| Continuation::behind(entry, &range, self.order);
            let mut last = None;
            for (key, entry) in found {
                match self.document(key, (entry, &range), &selected, &mut documents, &mut seen) {
                    Ok(new) => items.extend(new),
                    Err(_) if last.is_some() || next != self.after => {
                        return Ok(Page { items, next: last.map(behind).or(next) });
                    }
                    Err(error) => return Err(self.unreadable(reader, &query, error)),
                }
                last = Some(entry);
                if items.len() == self.limit {
                    break;
                }
            }
            let is_whole = page.items.last().map(|last| last.entry_key()) == last;
            next = if is_whole { page.next } else { last.map(behind) };
            if next.is_none() || items.len() == self.limit {
                return Ok(Page { items, next });
            }
            batch = (batch * 2).min(BATCH);
        }
    }

    /// The entries of the query, if every entry is a result. Otherwise `None`: the documents must
    /// be compared with the conditions.
    pub(super) fn exact_entries(&self) -> Result<Option<Entries<'c, K>>> {
        let selected = self.selected()?;
        Ok((!selected.is_wide).then(|| self.entries_of(selected)))
    }

    /// The paths of the index.
    pub(super) fn index_name(&self) -> String {
        self.index.definition.text()
    }

    fn entries_of(&self, selected: Selected) -> Entries<'c, K> {
        self.index.index.query().select(selected).order(self.order)
    }

    /// Whether no document has several entries in the index.
    pub(super) fn has_one_entry_each(&self) -> bool {
        let Definition { each, paths } = &self.index.definition;
        each.is_none() && !paths.iter().any(JsonPath::has_elements)
    }

    /// The documents of the entries, by their keys in the store, except for the documents that are
    /// in `seen`. Each document is read once.
    fn documents(
        &self,
        reader: &impl Reader,
        found: &[(Result<K>, &[u8])],
        seen: &HashSet<KeyBuf>,
    ) -> Result<HashMap<KeyBuf, Result<Fetched>>> {
        let space = self.index.index.table().space();
        let keys = found.iter().filter_map(|(key, _)| key.as_ref().ok());
        let keys: BTreeSet<KeyBuf> = keys.map(|key| space.pack(key)).collect();
        let keys: Vec<KeyBuf> = keys.into_iter().filter(|key| !seen.contains(key)).collect();
        let stored = get_many(reader, &keys)?.into_iter();
        let decoded = |key: &KeyBuf, bytes: &[u8]| {
            let found = record::<_, K, Value, Json>(space, (&**key, bytes));
            found.map(|(_, document)| Fetched { document, first: None })
        };
        let documents: Vec<Option<Result<Fetched>>> =
            stored.zip(&keys).map(|(bytes, key)| Some(decoded(key, &bytes?))).collect();
        let documents = keys.into_iter().zip(documents);
        Ok(documents.filter_map(|(key, document)| Some((key, document?))).collect())
    }

    /// The document of an entry, if this is the first entry of the document that matches the query.
    /// The only entry of a document is, unless the query is wider than its conditions. A check
    /// finds an entry that contradicts its document.
    ///
    /// Entries are visited in order. So a document is removed from `documents` at its first
    /// matching entry, and its later entries return `None`.
    fn document(
        &self,
        key: Result<K>,
        (entry, range): (&[u8], &KeyRange<'_>),
        selected: &Selected,
        documents: &mut HashMap<KeyBuf, Result<Fetched>>,
        seen: &mut HashSet<KeyBuf>,
    ) -> Result<Option<(K, Value)>> {
        let key = key?;
        let packed = self.index.index.table().space().pack(&key);
        let Some(fetched) = documents.remove(&packed) else { return Ok(None) };
        let Fetched { document, first } = fetched?;
        let is_only = !selected.is_wide && self.has_one_entry_each();
        let mut is_first = is_only;
        if !is_only {
            let first = first.unwrap_or_else(|| self.first(range, selected, &document));
            is_first = first.as_ref().is_some_and(|first| entry.starts_with(first));
            let is_before = |first: &Vec<u8>| match self.order {
                Order::Ascending => entry < &first[..],
                Order::Descending => entry > &first[..],
            };
            if !is_first && first.as_ref().is_some_and(is_before) {
                // This entry is in the range but does not match, and a matching entry of the
                // document follows.
                documents.insert(packed, Ok(Fetched { document, first: Some(first) }));
                return Ok(None);
            }
        }
        // If `seen` is cleared, documents are read again. Later entries are still not the first, so
        // no document is returned twice.
        if seen.len() >= MOST_SEEN {
            seen.clear();
        }
        seen.insert(packed);
        Ok(is_first.then_some((key, document)))
    }

    /// The parts of the first entry of a document that matches the query, with the prefix of the
    /// index. In the entry, the key of the document follows the parts. Encoded parts are never a
    /// prefix of other parts.
    fn first(
        &self,
        range: &KeyRange<'_>,
        selected: &Selected,
        document: &Value,
    ) -> Option<Vec<u8>> {
        let (space, definition) = (self.index.index.space(), &self.index.definition);
        let exact = between(&selected.exact, &[]);
        let answers = definition.combinations(document).into_iter().filter_map(|values| {
            if !exact.contains(&pack(&List(&values[..]))) {
                return None;
            }
            let key = [space.prefix(), &definition.entry(values)[..]].concat();
            range.contains(&key).then_some(key)
        });
        match self.order {
            Order::Ascending => answers.min(),
            Order::Descending => answers.max(),
        }
    }

    /// The error of the first entry of this page, with a continuation after that entry.
    fn unreadable(&self, reader: &impl Reader, query: &Entries<'_, K>, error: Error) -> Error {
        let first = query.clone().limit(1).after(self.after.as_ref()).records(reader);
        first.err().unwrap_or(error)
    }

    fn selected(&self) -> Result<Selected> {
        let Self { index, equal, range, .. } = self;
        let (conditions, paths) =
            (equal.len() + usize::from(range.is_some()), index.definition.paths.len());
        if conditions > paths {
            let index = index.definition.text();
            return Err(JsonError::TooManyConditions { index, conditions, paths }.into());
        }
        let bounds = range.iter().flat_map(|(start, end)| [start, end]);
        let bounds = bounds.filter_map(|bound| match bound {
            Bound::Included(value) | Bound::Excluded(value) => Some(value),
            Bound::Unbounded => None,
        });
        if equal.iter().chain(bounds).any(|value| is_deeper(value, MAX_DEPTH)) {
            let what = "a value of the query".to_owned();
            return Err(JsonError::TooDeep { what, limit: MAX_DEPTH }.into());
        }
        let definition = &index.definition;
        // `held` is the key as entries store it, `whole` the key of the complete values. Keys of
        // the two kinds are never compared with each other.
        let held = |last: JsonKey<'_>| definition.entry(followed(equal, Some(last)));
        let whole = |last: JsonKey<'_>| pack(&List(followed(equal, Some(last))));
        let Some((start, end)) = range else {
            let (entries, exact) =
                (definition.entry(followed(equal, None)), pack(&List(followed(equal, None))));
            return Ok(Selected { entries: only(entries), exact: only(exact), is_wide: false });
        };
        let kinds = kinds_of_bound(start).or(kinds_of_bound(end)).unwrap_or(ALL_KINDS);
        let [first, after] = kinds.map(JsonKey::Kind);
        let bounds = |key: &dyn Fn(JsonKey<'_>) -> KeyBuf| {
            let from = match start {
                Bound::Unbounded => Bound::Included(key(first)),
                bound => bound.as_ref().map(|value| key(JsonKey::Value(value))),
            };
            let to = match end {
                Bound::Unbounded => Bound::Excluded(key(after)),
                bound => bound.as_ref().map(|value| key(JsonKey::Value(value))),
            };
            (from, to)
        };
        let beginning = |text: &str| {
            let mut key = held(JsonKey::Value(&Value::from(text)));
            // Remove the terminators of the string and of the part.
            key.truncate(key.len() - 2);
            key
        };
        let (mut from, mut to) = bounds(&held);
        let (near_start, near_end) = (self.near(start), self.near(end));
        let is_wide = near_start.is_some() || near_end.is_some();
        match near_start {
            None => {}
            Some(Near::Beginning(text)) => from = Bound::Included(beginning(text)),
            Some(Near::Kind([first, _])) => from = Bound::Included(held(JsonKey::Kind(first))),
        }
        match near_end {
            None => {}
            Some(Near::Beginning(text)) => {
                to = Bound::Excluded(joined(&beginning(text), &[0xFF]));
            }
            Some(Near::Kind([_, after])) => to = Bound::Excluded(held(JsonKey::Kind(after))),
        }
        Ok(Selected { entries: (from, to), exact: bounds(&whole), is_wide })
    }

    /// The entries near a bound that are ordered by a hash; `None` if there can be no such entries.
    fn near<'b>(&self, bound: &'b Bound<Value>) -> Option<Near<'b>> {
        match bound {
            Bound::Included(Value::String(text)) | Bound::Excluded(Value::String(text)) => {
                let shared = shared_beginning(text, self.index.definition.longest_beginning());
                shared.map(Near::Beginning)
            }
            Bound::Included(value) | Bound::Excluded(value) => {
                let is_near = value.is_array() || value.is_object();
                is_near.then(|| Near::Kind(kinds_of(value)))
            }
            Bound::Unbounded => None,
        }
    }
}

/// A document, and its first matching entry once that is computed. The document is visited at each
/// of its entries.
struct Fetched {
    document: Value,
    #[allow(clippy::option_option, reason = "the inner one says that there is no answer")]
    first: Option<Option<Vec<u8>>>,
}

/// Entries that are ordered by a hash.
enum Near<'b> {
    /// The entries of strings with this beginning.
    Beginning(&'b str),
    /// The entries of all arrays, or of all objects: from the first kind to the second, exclusive.
    Kind([u8; 2]),
}

/// The bounds of the type of a bound's value.
fn kinds_of_bound(bound: &Bound<Value>) -> Option<[u8; 2]> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(kinds_of(value)),
        Bound::Unbounded => None,
    }
}

fn is_unreadable(error: &Error) -> bool {
    error.downcast_ref::<UnreadableEntry>().is_some()
}

type Bounds = (Bound<KeyBuf>, Bound<KeyBuf>);

/// The bounds of all keys that begin with `key`.
fn only(key: KeyBuf) -> Bounds {
    (Bound::Included(key.clone()), Bound::Included(key))
}

/// Ranges of packed parts.
#[derive(Clone, Debug)]
struct Selected {
    /// The entries to visit.
    entries: Bounds,
    /// The matching entries, as if entries stored all values whole.
    exact: Bounds,
    /// Whether `entries` contains entries that do not match.
    is_wide: bool,
}

impl Select for Selected {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        space.self_and_children().intersect(between(&self.entries, space.prefix())).into_owned()
    }
}

/// The keys between two packed tuples after a prefix.
fn between((start, end): &Bounds, prefix: &[u8]) -> KeyRange<'static> {
    let from = match start {
        Bound::Included(parts) => KeyRange::starting_at(&joined(prefix, parts)).into_owned(),
        Bound::Excluded(parts) => KeyRange::behind(&joined(prefix, parts)),
        Bound::Unbounded => KeyRange::all(),
    };
    let to = match end {
        Bound::Included(parts) => KeyRange::through(&joined(prefix, parts)),
        Bound::Excluded(parts) => KeyRange::all().before(&joined(prefix, parts)).into_owned(),
        Bound::Unbounded => KeyRange::all(),
    };
    from.intersect(to)
}

/// The values of `equal`, followed by `last`.
fn followed<'v>(equal: &'v [Value], last: Option<JsonKey<'v>>) -> Vec<JsonKey<'v>> {
    equal.iter().map(JsonKey::Value).chain(last).collect()
}

fn joined(prefix: &[u8], rest: &[u8]) -> KeyBuf {
    prefix.iter().chain(rest).copied().collect()
}
