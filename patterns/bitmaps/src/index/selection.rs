//! The selected values of a field in a query.

use std::ops::Bound;

use keyloom::key::{Element, display, elements};
use keyloom::{Error, KeyBuf, KeyRange, Reader, Result, Subspace};

use super::fields::null;
use super::{Field, InvertedIndexError};
pub use keyloom_tables::{SelectValues, SelectedValues};

/// The range of the selected containers in `space`.
fn key_range(selected: &SelectedValues, space: &Subspace) -> KeyRange<'static> {
    let key =
        |value: &KeyBuf| -> KeyBuf { space.prefix().iter().chain(open(value)).copied().collect() };
    match selected {
        SelectedValues::All => space.self_and_children(),
        SelectedValues::Beginning(value) => KeyRange::self_and_children(&key(value)).into_owned(),
        SelectedValues::StringBeginning(value) => KeyRange::string_prefix(&key(value)).into_owned(),
        SelectedValues::Between(start, end) => {
            let from = match start {
                Bound::Included(value) => KeyRange::starting_at(&key(value)).into_owned(),
                Bound::Excluded(value) => KeyRange::behind(&key(value)),
                Bound::Unbounded => KeyRange::all(),
            };
            let to = match end {
                Bound::Included(value) => KeyRange::through(&key(value)),
                Bound::Excluded(value) => KeyRange::all().before(&key(value)).into_owned(),
                Bound::Unbounded => KeyRange::all(),
            };
            let of_type = asked(selected).and_then(|asked| asked.first().copied());
            let of_type = of_type.map_or_else(KeyRange::all, |code| of_type_codes(space, code));
            space.self_and_children().intersect(of_type).intersect(from).intersect(to)
        }
    }
}

/// A selected value, to compare its type with the stored values; a null bound has no type.
fn asked(selected: &SelectedValues) -> Option<&KeyBuf> {
    match selected {
        SelectedValues::All => None,
        SelectedValues::Beginning(value) | SelectedValues::StringBeginning(value) => Some(value),
        SelectedValues::Between(start, end) => {
            [start, end].into_iter().filter_map(bounding).find(|value| **value != null())
        }
    }
}

fn bounding(bound: &Bound<KeyBuf>) -> Option<&KeyBuf> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value),
        Bound::Unbounded => None,
    }
}

/// Removes the terminator of a nested tuple, so that the bytes are a prefix of longer tuples.
/// Returns other elements unchanged.
fn open(value: &[u8]) -> &[u8] {
    const NESTED: u8 = 0x05;
    match value {
        [NESTED, .., 0] => value.get(..value.len() - 1).unwrap_or_default(),
        _ => value,
    }
}

/// The keys whose element has the type of this type code. Integers and Booleans have several codes.
fn of_type_codes(space: &Subspace, code: u8) -> KeyRange<'static> {
    let (first, last) = match code {
        0x0B..=0x1D => (0x0B, 0x1D),
        0x26 | 0x27 => (0x26, 0x27),
        code => (code, code),
    };
    let key = |code: u8| -> KeyBuf { space.prefix().iter().copied().chain([code]).collect() };
    // A type code is only the first byte of an element. The next byte may be 0xFF, which is never
    // the first byte after a whole element.
    let through = KeyRange::prefix(&key(last)).and_before().into_owned();
    KeyRange::starting_at(&key(first)).into_owned().intersect(through)
}

/// Whether two elements are of the same type. For tuples, whether the first elements that differ
/// are of the same type.
fn are_alike(a: &Element, b: &Element) -> bool {
    use Element::{BigInt, Bool, Bytes, Desc, F32, F64, Int, Null, Str, Tuple, Uuid, Versionstamp};
    match (a, b) {
        (Tuple(a), Tuple(b)) => {
            a.iter().zip(b).find(|(a, b)| a != b).is_none_or(|(a, b)| are_alike(a, b))
        }
        // A null is a missing optional element, which has no type of its own.
        (Null, _) | (_, Null) => true,
        (Desc(a), Desc(b)) => are_alike(a, b),
        (Int(_) | BigInt(_), Int(_) | BigInt(_))
        | (Bytes(_), Bytes(_))
        | (Str(_), Str(_))
        | (F32(_), F32(_))
        | (F64(_), F64(_))
        | (Bool(_), Bool(_))
        | (Uuid(_), Uuid(_))
        | (Versionstamp(_), Versionstamp(_)) => true,
        _ => false,
    }
}

/// How many leading elements of two tuples are equal.
fn begin_alike(a: &Element, b: &Element) -> usize {
    match (a, b) {
        (Element::Tuple(a), Element::Tuple(b)) => {
            a.iter().zip(b).take_while(|(a, b)| a == b).count()
        }
        _ => 0,
    }
}

/// The element in packed bytes, if they are one element.
fn element(packed: &[u8]) -> Option<Element> {
    elements(packed).ok()?.into_iter().next()
}

impl<K, V> Field<K, V> {
    /// The range of the containers of the selected values, without the null.
    pub(super) fn select(&self, selected: &SelectedValues) -> KeyRange<'static> {
        let nulls = self.space.pack(&None::<u8>);
        key_range(selected, &self.space).intersect(KeyRange::behind(&nulls))
    }

    /// Like [`select`](Field::select), but returns an error if the selection is of another type
    /// than the values. Unless all values are selected, costs one read, and up to two more if that
    /// read finds nothing.
    pub(super) fn select_alike(
        &self,
        reader: &impl Reader,
        selected: &SelectedValues,
        index: &Subspace,
    ) -> Result<KeyRange<'static>> {
        let range = self.select(selected);
        if !matches!(selected, SelectedValues::All) {
            let first = reader.first(range.clone())?;
            self.refuse_others(reader, selected, first.as_ref().map(|entry| &entry.0[..]), index)?;
        }
        Ok(range)
    }

    /// Refuses a selection of another type than the values; `first` is the first selected key. If
    /// there is none, costs up to two reads.
    pub(super) fn refuse_others(
        &self,
        reader: &impl Reader,
        selected: &SelectedValues,
        first: Option<&[u8]>,
        index: &Subspace,
    ) -> Result<()> {
        let Some(asked) = asked(selected) else { return Ok(()) };
        // A stored value with the selected prefix is of the right type.
        if first.is_some() && !matches!(selected, SelectedValues::Between(..)) {
            return Ok(());
        }
        let alike = |key: &[u8]| -> Option<(usize, bool)> {
            let (asked, stored) = element(asked).zip(self.value(key).and_then(element))?;
            Some((begin_alike(&asked, &stored), are_alike(&asked, &stored)))
        };
        if let Some(first) = first {
            return match alike(first) {
                Some((_, false)) => Err(self.other_type(asked, first, index)),
                _ => Ok(()),
            };
        }
        let (all, asked_key) = (self.select(&SelectedValues::All), self.key(asked));
        let behind = all.clone().intersect(KeyRange::starting_at(&asked_key));
        let (behind, before) = (reader.first(behind)?, reader.last(all.before(&asked_key))?);
        let neighbours = [&behind, &before].into_iter().flatten().map(|entry| &entry.0[..]);
        let is_null = asked[..] == null()[..];
        // The neighbour with the most equal leading elements.
        match neighbours.filter_map(|key| Some((alike(key)?, key))).max() {
            Some(((_, is_alike), key)) if !is_alike || is_null => {
                Err(self.other_type(asked, key, index))
            }
            _ => Ok(()),
        }
    }

    /// The first key of the containers of a value; for a tuple also of longer tuples with this
    /// prefix.
    fn key(&self, value: &[u8]) -> KeyBuf {
        self.space.prefix().iter().chain(open(value)).copied().collect()
    }

    /// The packed value in the key of a container.
    fn value<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        self.space.leading(key, 1).ok()?.get(self.space.prefix().len()..)
    }

    #[cold]
    fn other_type(&self, asked: &[u8], stored: &[u8], index: &Subspace) -> Error {
        let holds = display(self.value(stored).unwrap_or_default()).to_string();
        let (index, field) = (index.named(), self.name.to_string());
        InvertedIndexError::OtherType { index, field, asked: display(asked).to_string(), holds }
            .into()
    }
}
