//! The keys that a pattern selects: one range of the store, and a filter.

use keyloom::key::{Element, List, elements, pack};
use keyloom::{KeyBuf, KeyRange};

use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Result};
use crate::tuple::{Item, Pattern};

/// The selected keys.
#[derive(Debug)]
pub struct Selection {
    /// All selected keys are in this range.
    pub range: KeyRange<'static>,
    /// The number of leading elements that are the same in all keys.
    pub fixed: usize,
    items: Vec<Item>,
}

impl Selection {
    /// All keys.
    pub fn all() -> Self {
        Self { range: KeyRange::all(), fixed: 0, items: Vec::new() }
    }

    /// The keys with the prefix `text`: a pattern, or the name of data in the catalogue.
    pub fn prefix(text: Option<&str>, catalog: &Catalog) -> Result<Self> {
        let Some(text) = text else { return Ok(Self::all()) };
        if let Some(part) = catalog.named(text) {
            let fixed = elements(part.space.prefix()).map_or(0, |all| all.len());
            let range = part.space.self_and_children();
            return Ok(Self { range, fixed, items: Vec::new() });
        }
        match Pattern::parse(text) {
            Ok(Pattern::Raw(bytes)) => {
                let range = KeyRange::prefix(&bytes).into_owned();
                Ok(Self { range, fixed: 0, items: Vec::new() })
            }
            Ok(Pattern::Tuple(items)) => Ok(Self::of_items(items)),
            Err(error) => Err(catalog.ambiguity(text).unwrap_or_else(|| {
                Failure::new(format!(
                    "the prefix {text:?} is neither a tuple nor the name of a table or index: {error}{}",
                    catalog.similar(text)
                ))
            })),
        }
    }

    /// The keys of `part` whose next elements match `text`, or all keys of `part` if there is no
    /// text.
    pub fn within(part: &Part, text: Option<&str>) -> Result<Self> {
        let items = match text.map(Pattern::parse) {
            None => Vec::new(),
            Some(Ok(Pattern::Tuple(items))) => items,
            Some(Ok(Pattern::Raw(_))) => {
                return Err(Failure::new("the parts of an index are a tuple, not bytes"));
            }
            Some(Err(error)) => {
                let parts = text.unwrap_or_default();
                return Err(Failure::new(format!(
                    "the parts {parts} are not a tuple: {error}; a string has quotes, as in '(\"London\",)'"
                )));
            }
        };
        let prefix = elements(part.space.prefix()).unwrap_or_default();
        Ok(Self::of_items(prefix.into_iter().map(Item::Exact).chain(items).collect()))
    }

    fn of_items(items: Vec<Item>) -> Self {
        let exact = |item: &Item| match item {
            Item::Exact(element) => Some(element.clone()),
            _ => None,
        };
        let fixed: Vec<Element> = items.iter().map_while(exact).collect();
        let base = pack(&List(fixed.as_slice()));
        let range = match items.get(fixed.len()) {
            None if fixed.is_empty() => KeyRange::all(),
            None => KeyRange::self_and_children(&base).into_owned(),
            Some(Item::Range(start, end)) => between(&base, start.as_ref(), end.as_ref()),
            Some(_) => KeyRange::children(&base),
        };
        // The range itself already covers the first element that is not exact.
        let filtered = if items.len() > fixed.len() + 1 { items } else { Vec::new() };
        Self { range, fixed: fixed.len(), items: filtered }
    }

    /// Whether the selection contains the key. The key must be in the selection's range.
    pub fn has(&self, key: &[u8]) -> bool {
        if self.items.is_empty() {
            return true;
        }
        let Ok(found) = elements(key) else { return false };
        let fits = |(item, element): (&Item, &Element)| match item {
            Item::Exact(exact) => exact == element,
            Item::Any => true,
            Item::Range(start, end) => {
                start.as_ref().is_none_or(|start| element >= start)
                    && end.as_ref().is_none_or(|end| element < end)
            }
        };
        found.len() >= self.items.len() && self.items.iter().zip(&found).all(fits)
    }
}

fn between(base: &[u8], start: Option<&Element>, end: Option<&Element>) -> KeyRange<'static> {
    let at = |element: &Element| [base, &pack(element)].concat();
    let mut range = KeyRange::children(base);
    if let Some(start) = start {
        range = range.intersect(KeyRange::starting_at(&at(start)).into_owned());
    }
    if let Some(end) = end {
        range = range.intersect(KeyRange::half_open(&[], &at(end)).into_owned());
    }
    range
}

/// The bytes of one key.
pub fn one_key(text: &str) -> Result<KeyBuf> {
    let refused = |why: String| Failure::new(format!("the key {text} is not usable: {why}"));
    match Pattern::parse(text).map_err(|error| refused(error.to_string()))? {
        Pattern::Raw(bytes) => Ok(KeyBuf::from_slice(&bytes)),
        Pattern::Tuple(items) => {
            let exact = |item| match item {
                Item::Exact(element) => Some(element),
                _ => None,
            };
            let all: Option<Vec<Element>> = items.into_iter().map(exact).collect();
            let all = all.ok_or_else(|| refused("a key has neither _ nor ranges".into()))?;
            Ok(pack(&List(all.as_slice())))
        }
    }
}

/// The element that a text denotes in the language of keys; otherwise, the text as a string.
#[cfg(feature = "explore")]
pub fn element_or_text(text: &str) -> Element {
    let parsed = one_key(text).ok().and_then(|key| elements(&key).ok());
    match parsed {
        None => Element::Str(text.to_owned()),
        // Several elements are one nested tuple within a key.
        Some(all) => match <[Element; 1]>::try_from(all) {
            Ok([one]) => one,
            Err(all) => Element::Tuple(all),
        },
    }
}
