//! The reads in the order of the keys: one lane for each part of the store that a query reads.

use std::collections::BTreeSet;
use std::ops::Bound;

use keyloom::key::{Element, elements};
use keyloom::{KeyRange, Reader, Subspace};
use serde_json::{Value, json};

use super::trace::Read;
use crate::catalog::Catalog;
use crate::explore::params::id;
use crate::failure::Result;
use crate::shown;

/// The subspaces of a text index, by their number.
const OF_TEXTS: [&str; 6] =
    ["ids of records", "documents of terms", "postings", "occurrences", "totals", "summaries"];

/// The name of the part with this key, and its keys. In a text index, those of its subspace.
pub fn lane_of(catalog: &Catalog, key: &[u8]) -> (String, Option<Subspace>) {
    let Some(part) = catalog.part_of(key) else { return ("no schema".into(), None) };
    let number = || {
        let rest = elements(key.get(part.space.prefix().len()..)?).ok()?;
        let Some(Element::Int(number)) = rest.first() else { return None };
        let name = OF_TEXTS.get(usize::try_from(*number).ok()?)?;
        Some((format!("{}: {name}", id(part)), Some(part.space.child(number))))
    };
    let of_texts = if part.kind == "text index" { number() } else { None };
    of_texts.unwrap_or_else(|| (id(part), Some(part.space.clone())))
}

/// The bytes of a bound.
pub fn bytes_of(bound: &Bound<Vec<u8>>) -> &[u8] {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    }
}

/// The first key of a range in words.
pub fn start(bound: &Bound<Vec<u8>>) -> String {
    match bound {
        Bound::Unbounded => "the first key".into(),
        Bound::Included(key) => of_children(key).map_or_else(
            || format!("from {}", shown::key(key)),
            |(parent, _)| format!("after {}", shown::key(parent)),
        ),
        Bound::Excluded(key) => format!("after {}", shown::key(key)),
    }
}

/// The last key of a range in words.
pub fn end(bound: &Bound<Vec<u8>>) -> String {
    match bound {
        Bound::Unbounded => "the last key".into(),
        Bound::Included(key) => format!("through {}", shown::key(key)),
        Bound::Excluded(key) => of_children(key).map_or_else(
            || format!("before {}", shown::key(key)),
            |(parent, _)| format!("through the last of {}", shown::key(parent)),
        ),
    }
}

/// The key whose children a range covers. The bounds of such a range are the key with the byte `00`
/// or `FF` appended.
fn of_children(bound: &[u8]) -> Option<(&[u8], u8)> {
    let (last, parent) = bound.split_last()?;
    let is_bound = matches!(last, 0x00 | 0xFF) && !parent.is_empty();
    (is_bound && elements(parent).is_ok()).then_some((parent, *last))
}

/// A read within a lane.
struct Span {
    step: usize,
    is_range: bool,
    /// Where the read is drawn if it has no keys.
    start: Vec<u8>,
    /// In ascending order, each with its mark: `returned`, `read` or `missing`.
    keys: Vec<(Vec<u8>, &'static str)>,
}

impl Span {
    fn first(&self) -> &[u8] {
        self.keys.first().map_or(&self.start, |(key, _)| key)
    }

    fn shown(&self) -> Value {
        let keys = self.keys.iter().map(
            |(key, mark)| json!({"key": shown::key(key), "key_hex": shown::hex(key), "mark": mark}),
        );
        json!({"step": self.step, "is_range": self.is_range, "keys": keys.collect::<Vec<_>>()})
    }
}

struct Lane {
    name: String,
    space: Option<Subspace>,
    spans: Vec<Span>,
}

/// The lanes of a query, in the order in which it reads them.
pub struct Lanes<'c> {
    catalog: &'c Catalog,
    returned: &'c BTreeSet<Vec<u8>>,
    lanes: Vec<Lane>,
}

impl<'c> Lanes<'c> {
    /// No lanes.
    pub fn new(catalog: &'c Catalog, returned: &'c BTreeSet<Vec<u8>>) -> Self {
        Self { catalog, returned, lanes: Vec::new() }
    }

    /// Adds a read.
    pub fn add(&mut self, step: usize, read: &Read) {
        match read {
            Read::Range { start, keys, .. } => {
                let mark = |key: &Vec<u8>| match self.returned.contains(key) {
                    true => (key.clone(), "returned"),
                    false => (key.clone(), "read"),
                };
                let mut keys: Vec<_> = keys.iter().map(mark).collect();
                keys.sort();
                self.put(Span { step, is_range: true, start: bytes_of(start).to_vec(), keys });
            }
            Read::Gets(keys) => {
                for (key, exists) in keys {
                    let mark = if *exists { "returned" } else { "missing" };
                    let keys = vec![(key.clone(), mark)];
                    self.put(Span { step, is_range: false, start: key.clone(), keys });
                }
            }
        }
    }

    fn put(&mut self, span: Span) {
        let (name, space) = lane_of(self.catalog, span.first());
        match self.lanes.iter_mut().find(|lane| lane.name == name) {
            Some(lane) => lane.spans.push(span),
            None => self.lanes.push(Lane { name, space, spans: vec![span] }),
        }
    }

    /// The lanes, each with the first and the last key of its part, which costs two keys.
    pub fn shown(mut self, reader: &impl Reader) -> Result<Vec<Value>> {
        self.lanes.iter_mut().map(|lane| lane.shown(reader)).collect()
    }
}

impl Lane {
    fn shown(&mut self, reader: &impl Reader) -> Result<Value> {
        self.spans.sort_by(|a, b| (a.first(), a.step).cmp(&(b.first(), b.step)));
        let all = self.space.as_ref().map_or(KeyRange::all(), Subspace::self_and_children);
        let key = |found: Option<(_, _)>| found.map(|(key, _)| key);
        let (first, last) = (key(reader.first(all.clone())?), key(reader.last(all)?));
        let is_first =
            self.spans.first().is_some_and(|span| first.as_deref() == Some(span.first()));
        let greatest =
            self.spans.iter().filter_map(|span| span.keys.last()).map(|(key, _)| key).max();
        let is_last = greatest.is_some_and(|key| last.as_deref() == Some(key));
        Ok(json!({
            "name": self.name, "first": first.map(|key| shown::key(&key)),
            "last": last.map(|key| shown::key(&key)),
            "has_before": !is_first, "has_after": !is_last,
            "spans": self.spans.iter().map(Span::shown).collect::<Vec<_>>(),
        }))
    }
}
