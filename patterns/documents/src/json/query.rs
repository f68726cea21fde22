//! Queries by an index.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use keyloom::key::pack;
use keyloom::{KeyBuf, KeyRange, List, Order, Reader, Result, Subspace};
use keyloom_tables::table::RecordKey;
use keyloom_tables::{Continuation, Page, Select};
use serde_json::Value;

use super::collection::PathIndex;
use super::order::{ALL_KINDS, JsonKey, kinds_of};
use super::{JsonError, MAX_DEPTH, is_deeper};

/// A query by an index of a [collection](super::Collection): values at its first paths, and then a
/// range of values. Nothing is read until [`page`](JsonQuery::page) is called.
pub struct JsonQuery<'c, K: RecordKey> {
    index: &'c PathIndex<K>,
    equal: Vec<Value>,
    range: Option<(Bound<Value>, Bound<Value>)>,
    order: Order,
    limit: usize,
    after: Option<Continuation>,
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

    /// The value at the next path is this one. `1` and `1.0` are equal.
    #[must_use]
    pub fn equal(mut self, value: impl Into<Value>) -> Self {
        self.equal.push(value.into());
        self
    }

    /// The value at the next path is in this range. If a bound is missing, the range has the values
    /// of the type of the other one: `json!(5)..` has numbers only. `..` has all values.
    #[must_use]
    pub fn range(mut self, range: impl RangeBounds<Value>) -> Self {
        self.range = Some((range.start_bound().cloned(), range.end_bound().cloned()));
        self
    }

    /// Sets the order of the results: by the values at the paths, and then by key. It is ascending
    /// by default.
    #[must_use]
    pub fn order(self, order: Order) -> Self {
        Self { order, ..self }
    }

    /// Sets the greatest number of documents of a page: 100 by default.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Continues after the page that returned `after`; from the beginning with `None`.
    #[must_use]
    pub fn after(self, after: impl Into<Option<Continuation>>) -> Self {
        Self { after: after.into(), ..self }
    }

    /// The documents in the order of the index, each once, and a continuation for the next page.
    ///
    /// # Errors
    /// [`JsonError::TooManyConditions`]; [`JsonError::TooDeep`] for a value of the query; those of
    /// [`IndexQuery::page`](keyloom_tables::IndexQuery::page), such as for an index that is not
    /// built; if a document does not decode, an error with its key.
    pub fn page(&self, reader: &impl Reader) -> Result<Page<(K, Value)>> {
        let selected = self.selected()?;
        let (mut items, mut next) = (Vec::new(), self.after.clone());
        while items.len() < self.limit {
            let query = self.index.index.query().select(selected.clone()).order(self.order);
            let page = query.limit(self.limit - items.len()).after(next.as_ref()).page(reader)?;
            let found = page.items.iter().map(|found| Ok((found.record_key()?, found.entry_key())));
            let found: Vec<(K, &[u8])> = found.collect::<Result<_>>()?;
            let keys = found.iter().map(|(key, _)| key);
            let documents = self.index.index.table().get_many(reader, keys)?;
            for ((key, entry), document) in found.into_iter().zip(documents) {
                if let Some(document) = document
                    && self.is_first(&selected, &key, entry, &document)?
                {
                    items.push((key, document));
                }
            }
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        Ok(Page { items, next })
    }

    /// Whether an entry is the first one of its document in this query.
    fn is_first(
        &self,
        selected: &Selected,
        key: &K,
        entry: &[u8],
        document: &Value,
    ) -> Result<bool> {
        let space = self.index.index.space();
        let range = selected.key_range(&space);
        let parts = self.index.definition.parts(key, document)?.into_iter();
        let keys = parts.map(|parts| [space.prefix(), &parts[..]].concat());
        let inside = keys.filter(|key| range.contains(key));
        let first = match self.order {
            Order::Ascending => inside.min(),
            Order::Descending => inside.max(),
        };
        // The key of the record follows the parts, which are no prefix of other parts.
        Ok(first.is_some_and(|first| entry.starts_with(&first)))
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
            let key = "of a query".to_owned();
            return Err(JsonError::TooDeep { key, limit: MAX_DEPTH }.into());
        }
        let with = |last: JsonKey<'_>| packed(equal, Some(last));
        let Some((start, end)) = range else {
            let all = packed(equal, None);
            return Ok(Selected { start: Bound::Included(all.clone()), end: Bound::Included(all) });
        };
        let bound = |bound: &Bound<Value>| match bound {
            Bound::Included(value) => Some(Bound::Included(with(JsonKey::Value(value)))),
            Bound::Excluded(value) => Some(Bound::Excluded(with(JsonKey::Value(value)))),
            Bound::Unbounded => None,
        };
        let value = |bound: &Bound<Value>| match bound {
            Bound::Included(value) | Bound::Excluded(value) => Some(kinds_of(value)),
            Bound::Unbounded => None,
        };
        let [first, last] = value(start).or(value(end)).unwrap_or(ALL_KINDS);
        let start = bound(start).unwrap_or_else(|| Bound::Included(with(JsonKey::Kind(first))));
        let end = bound(end).unwrap_or_else(|| Bound::Excluded(with(JsonKey::Kind(last))));
        Ok(Selected { start, end })
    }
}

/// The parts of these values and of another one.
fn packed(equal: &[Value], last: Option<JsonKey<'_>>) -> KeyBuf {
    let parts = equal.iter().map(JsonKey::Value).chain(last);
    pack(&List(parts.collect::<Vec<_>>()))
}

/// A range of packed parts.
#[derive(Clone, Debug)]
struct Selected {
    start: Bound<KeyBuf>,
    end: Bound<KeyBuf>,
}

impl Select for Selected {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        let key = |parts: &KeyBuf| [space.prefix(), &parts[..]].concat();
        let from = match &self.start {
            Bound::Included(parts) => KeyRange::starting_at(&key(parts)).into_owned(),
            Bound::Excluded(parts) => KeyRange::behind(&key(parts)),
            Bound::Unbounded => KeyRange::all(),
        };
        let to = match &self.end {
            Bound::Included(parts) => KeyRange::through(&key(parts)),
            Bound::Excluded(parts) => KeyRange::all().before(&key(parts)).into_owned(),
            Bound::Unbounded => KeyRange::all(),
        };
        space.self_and_children().intersect(from).intersect(to)
    }
}
