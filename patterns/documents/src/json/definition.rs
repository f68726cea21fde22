//! The definition of an index: the entries that it has for a document.

use keyloom::key::display;
use keyloom::{Error, KeyBuf, List, Pack, Result, pack};
use keyloom_kit::parts::AnyParts;
use keyloom_tables::IndexEntries;
use serde_json::Value;
use smallvec::{SmallVec, smallvec};

use super::order::JsonKey;
use super::{JsonError, JsonPath};

/// The greatest number of entries of a document in an index, in addition to one for each value. So
/// the limit applies to products only: a list of any length has one entry for each element.
// Two lists of 100 values each fit. With a higher limit, one put could write more entries than fit
// in a transaction; a lower limit refuses ordinary lists.
const MAX_COMBINATIONS: usize = 10_000;

/// The number of bytes that the parts of an entry may take. The prefix of the index and the key of
/// the document share the rest of the 511 bytes of a key.
const ENTRY_BYTES: usize = 400;

/// The number of bytes of a part in addition to the beginning of a long string: the rest of the
/// short form, the kind, and the terminators.
const PART_BYTES: usize = 41;

/// The values of a document at one path. Most documents have one, which takes no allocation.
type Keys<'v> = SmallVec<[JsonKey<'v>; 1]>;

/// The values of one entry, one for each path.
pub(super) type Combination<'v> = SmallVec<[JsonKey<'v>; 2]>;

/// The paths of an index.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    /// The path of the elements, if the index is nested: combinations are taken within each
    /// element.
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

    /// The paths as text. This text is part of the name of the index.
    pub(super) fn text(&self) -> String {
        let paths: Vec<String> = self.paths.iter().map(ToString::to_string).collect();
        match &self.each {
            Some(each) => format!("{each}: {}", paths.join(", ")),
            None => paths.join(", "),
        }
    }

    /// Whether the index is on the same elements as `other` and begins with its paths.
    pub(super) fn begins_with(&self, other: &Self) -> bool {
        self.each == other.each && self.paths.starts_with(&other.paths)
    }

    /// The greatest number of bytes of a long string's beginning that an entry holds.
    pub(super) fn longest_beginning(&self) -> usize {
        // A beginning as long as the key permits was rejected: two strings of 300 bytes and the key
        // of the document would not fit in one entry.
        (ENTRY_BYTES / self.paths.len()).saturating_sub(PART_BYTES).clamp(4, 192)
    }

    /// The packed parts of the entry for these values.
    pub(super) fn entry<'v>(&self, values: impl IntoIterator<Item = JsonKey<'v>>) -> KeyBuf {
        let most = self.longest_beginning();
        let short = |key| match key {
            JsonKey::Value(value) => JsonKey::Short(value, most),
            other => other,
        };
        pack(&List(values.into_iter().map(short).collect::<Combination<'v>>()))
    }

    /// The values of each entry of a document.
    pub(super) fn combinations<'v>(&self, document: &'v Value) -> Vec<Combination<'v>> {
        let elements = self.elements(document).into_iter();
        elements.flat_map(|element| combinations(&self.values(element))).collect()
    }

    fn elements<'v>(&self, document: &'v Value) -> SmallVec<[&'v Value; 1]> {
        match &self.each {
            Some(each) => each.each_value(document),
            None => smallvec![document],
        }
    }

    /// The values of an element at each path.
    fn values<'v>(&self, element: &'v Value) -> SmallVec<[Keys<'v>; 1]> {
        let values = |(n, path): (usize, &JsonPath)| {
            let values: SmallVec<[&Value; 1]> = path.each_value(element);
            if values.is_empty() && n > 0 {
                return smallvec![JsonKey::Absent];
            }
            values.into_iter().map(JsonKey::Value).collect()
        };
        self.paths.iter().enumerate().map(values).collect()
    }

    pub(super) fn entries(
        &self,
        key: &impl Pack,
        document: &Value,
    ) -> Result<IndexEntries<AnyParts>> {
        let (mut parts, mut counted) = (SmallVec::<[KeyBuf; 1]>::new(), 0_usize);
        for element in self.elements(document) {
            let values = self.values(element);
            let numbers = || values.iter().map(SmallVec::len);
            let all = numbers().fold(1, usize::saturating_mul);
            let longest = numbers().max().unwrap_or_default();
            counted = counted.saturating_add(all.saturating_sub(longest));
            if counted > MAX_COMBINATIONS {
                return Err(self.too_many(key));
            }
            parts.extend(combinations(&values).into_iter().map(|values| self.entry(values)));
        }
        Ok(IndexEntries::packed(parts))
    }

    #[cold]
    fn too_many(&self, key: &impl Pack) -> Error {
        let remedy = match self.each {
            None => "use a nested index, or an index for each path",
            Some(_) => "use an index for each path, or store the elements as documents",
        };
        let (key, paths) = (display(&pack(key)).to_string(), self.text());
        JsonError::TooManyEntries { key, paths, limit: MAX_COMBINATIONS, remedy }.into()
    }
}

/// All combinations of one key from each list.
fn combinations<'v>(keys: &[Keys<'v>]) -> SmallVec<[Combination<'v>; 1]> {
    let mut all: SmallVec<[Combination<'v>; 1]> = smallvec![Combination::new()];
    for keys in keys {
        let with_each = |parts: &Combination<'v>| {
            let with = |key: &JsonKey<'v>| parts.iter().chain([key]).copied().collect();
            keys.iter().map(with).collect::<SmallVec<[Combination<'v>; 1]>>()
        };
        all = all.iter().flat_map(with_each).collect();
    }
    all
}
