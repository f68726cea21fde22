//! Which entries a document has in an index.

use keyloom::key::display;
use keyloom::{KeyBuf, List, Pack, Result, pack};
use keyloom_tables::{AnyParts, IndexEntries};
use serde_json::Value;

use super::order::JsonKey;
use super::{JsonError, JsonPath};

/// The greatest number of entries of a document in an index of several paths.
const MAX_COMBINATIONS: usize = 10_000;

/// The paths of an index.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    /// The path of the elements, if combinations are taken within each.
    pub(super) each: Option<JsonPath>,
    pub(super) paths: Vec<JsonPath>,
}

impl Definition {
    pub(super) fn new<'p>(
        each: Option<&str>,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self> {
        let each = each.map(str::parse).transpose()?;
        let paths: Vec<JsonPath> = paths.into_iter().map(str::parse).collect::<Result<_>>()?;
        if paths.is_empty() {
            return Err(JsonError::BadPath {
                path: String::new(),
                at: 0,
                why: "an index has one path at least",
            }
            .into());
        }
        Ok(Self { each, paths })
    }

    /// The paths as text: a part of the name of the index.
    pub(super) fn text(&self) -> String {
        let paths: Vec<String> = self.paths.iter().map(ToString::to_string).collect();
        match &self.each {
            Some(each) => format!("{each}: {}", paths.join(", ")),
            None => paths.join(", "),
        }
    }

    /// Whether the index is one of these elements and begins with these paths.
    pub(super) fn begins_with(&self, other: &Self) -> bool {
        self.each == other.each && self.paths.starts_with(&other.paths)
    }

    /// The packed parts of the entries of a document.
    pub(super) fn parts(&self, key: &impl Pack, document: &Value) -> Result<Vec<KeyBuf>> {
        let elements = match &self.each {
            Some(each) => each.values(document),
            None => vec![document],
        };
        let mut all = Vec::new();
        for element in elements {
            all.extend(self.combinations(key, element)?);
        }
        Ok(all)
    }

    fn combinations<'v>(&self, key: &impl Pack, element: &'v Value) -> Result<Vec<KeyBuf>> {
        let mut all: Vec<Vec<JsonKey<'v>>> = vec![Vec::new()];
        for (n, path) in self.paths.iter().enumerate() {
            let values = path.values(element).into_iter().map(JsonKey::Value);
            let mut keys: Vec<JsonKey<'v>> = values.collect();
            if keys.is_empty() && n > 0 {
                keys.push(JsonKey::Absent);
            }
            if all.len().saturating_mul(keys.len()) > MAX_COMBINATIONS {
                let (key, paths) = (display(&pack(key)).to_string(), self.text());
                return Err(
                    JsonError::TooManyEntries { key, paths, limit: MAX_COMBINATIONS }.into()
                );
            }
            let with_each = |parts: &Vec<JsonKey<'v>>| {
                let parts = parts.clone();
                let keys = keys.iter().cloned();
                keys.map(move |key| [&parts[..], &[key]].concat()).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with_each).collect();
        }
        Ok(all.into_iter().map(|parts| pack(&List(parts))).collect())
    }

    pub(super) fn entries(
        &self,
        key: &impl Pack,
        document: &Value,
    ) -> Result<IndexEntries<AnyParts>> {
        self.parts(key, document).map(IndexEntries::packed)
    }
}
