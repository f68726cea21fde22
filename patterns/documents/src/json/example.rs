//! Query by example.

use std::cmp::Reverse;

use keyloom::{List, Reader, Result, pack};
#[cfg(doc)]
use keyloom_kit::UnreadableEntry;
use keyloom_kit::{Continuation, RecordKey};
use keyloom_tables::schema::State;
use serde_json::Value;

use super::collection::Collection;
use super::find::{BATCH, Pages};
use super::order::JsonKey;
use super::path_index::PathIndex;
use super::query::JsonQuery;
use super::{JsonError, JsonPath, MAX_DEPTH, is_deeper};

/// Whether a document matches an example. An object matches if each field of the example matches.
/// An array matches if each element of the example matches some element. Other values match if they
/// are equal.
fn contains(document: &Value, example: &Value) -> bool {
    match (document, example) {
        (Value::Object(document), Value::Object(example)) => example
            .iter()
            .all(|(name, inner)| document.get(name).is_some_and(|value| contains(value, inner))),
        (Value::Array(document), Value::Array(example)) => {
            example.iter().all(|inner| document.iter().any(|value| contains(value, inner)))
        }
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => false,
        _ => {
            pack(&List(vec![JsonKey::Value(document)]))
                == pack(&List(vec![JsonKey::Value(example)]))
        }
    }
}

/// The values of an example that are neither objects nor arrays, with their paths.
fn flattened<'v>(example: &'v Value, path: &JsonPath, all: &mut Vec<(JsonPath, &'v Value)>) {
    match example {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| flattened(value, &path.field(name), all));
        }
        Value::Array(values) => values.iter().for_each(|value| flattened(value, &path.each(), all)),
        value => all.push((path.clone(), value)),
    }
}

impl<K: RecordKey> PathIndex<K> {
    /// A query of the index by its leading paths at which the example has a value, and the number
    /// of these paths.
    fn query_like(&self, values: &[(JsonPath, &Value)]) -> (usize, JsonQuery<'_, K>) {
        let mut query = JsonQuery::new(self);
        let mut many = 0;
        // Values from different elements of the example may match different elements of a document.
        // An entry of a nested index holds the values of one element, so only its first path is
        // used.
        let usable = if self.definition.each.is_some() { 1 } else { usize::MAX };
        for path in self.definition.paths.iter().take(usable) {
            let path = self.definition.each.as_ref().map_or(path.clone(), |each| path.below(each));
            let Some((_, value)) = values.iter().find(|(other, _)| *other == path) else { break };
            query = query.equal((*value).clone());
            many += 1;
        }
        (many, query)
    }
}

impl<K: RecordKey> Collection<K> {
    /// The documents that match an example, in the order of an index or of the keys.
    ///
    /// An object matches if each field of the example matches. An array matches if each element of
    /// the example matches some element. Other values match if they are equal.
    ///
    /// Uses the [built](Collection::build) index with the most leading paths at which the example
    /// has values. If there is no such index, all documents are read.
    ///
    /// # Errors
    /// [`JsonError::TooDeep`]; the errors of [`JsonQuery::page`], which the iterator also returns.
    /// After an [`UnreadableEntry`] the iterator continues with the next document.
    pub fn find_like<'r, R: Reader>(
        &'r self,
        reader: &'r R,
        example: &'r Value,
    ) -> Result<impl Iterator<Item = Result<(K, Value)>> + 'r> {
        if is_deeper(example, MAX_DEPTH) {
            let what = "the example".to_owned();
            return Err(JsonError::TooDeep { what, limit: MAX_DEPTH }.into());
        }
        let query = self.readable_for(reader, example)?.map(|query| query.limit(BATCH));
        let page = move |after: Option<Continuation>| match &query {
            Some(query) => query.clone().after(after).page(reader),
            None => self.table.page(reader, .., BATCH, after.as_ref()),
        };
        let is_like = |found: &Result<(K, Value)>| match found {
            Ok((_, document)) => contains(document, example),
            Err(_) => true,
        };
        Ok(Pages::new(page).filter(is_like))
    }

    /// The paths of the index that [`find_like`](Collection::find_like) uses for an example if all
    /// indexes are built; `None` if it reads all documents, or refuses the example.
    pub fn index_for(&self, example: &Value) -> Option<String> {
        if is_deeper(example, MAX_DEPTH) {
            return None;
        }
        let best = self.usable_for(example).into_iter().next();
        best.map(|(index, _)| index.definition.text())
    }

    /// The query of the best index that is built.
    fn readable_for(
        &self,
        reader: &impl Reader,
        example: &Value,
    ) -> Result<Option<JsonQuery<'_, K>>> {
        for (index, query) in self.usable_for(example) {
            if index.index.state(reader)? == State::Readable {
                return Ok(Some(query));
            }
        }
        Ok(None)
    }

    /// The indexes with leading paths in the example, those with the most first.
    fn usable_for(&self, example: &Value) -> Vec<(&PathIndex<K>, JsonQuery<'_, K>)> {
        let mut values = Vec::new();
        flattened(example, &JsonPath::root(), &mut values);
        let queries = self.indexes.iter().map(|index| (index, index.query_like(&values)));
        let mut queries: Vec<_> = queries.filter(|(_, (many, _))| *many > 0).collect();
        queries.sort_by_key(|(_, (many, _))| Reverse(*many));
        queries.into_iter().map(|(index, (_, query))| (index, query)).collect()
    }
}
