//! Fields and their values for a record.

use std::sync::Arc;

use keyloom::{KeyBuf, Pack};
use smallvec::SmallVec;

use super::for_reports::FieldKind;
use keyloom_tables::index::pack_one;

/// The values of a field for a record: the result of the function of a
/// [field](super::InvertedIndex::field).
///
/// Each is packed as one element of a key; a null is not a value.
///
/// ```
/// use keyloom_bitmaps::{FieldValues, one};
/// let country = one("FR");
/// let tags: FieldValues = ["rust", "lmdb"].iter().collect();
/// assert_eq!(one(None::<u32>), FieldValues::none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldValues(SmallVec<[KeyBuf; 1]>);

/// One value, or none for `None`.
pub fn one<P: Pack>(value: P) -> FieldValues {
    FieldValues::from_iter([value])
}

impl FieldValues {
    /// No value: the record is among those without a value in the field.
    pub fn none() -> Self {
        Self::default()
    }

    /// The packed values, sorted and without duplicates.
    pub(super) fn packed(&self) -> &[KeyBuf] {
        &self.0
    }
}

/// At most one value of a field for a record: the result of the function of a
/// [field with one value](super::InvertedIndex::single_value).
///
/// ```
/// use keyloom_bitmaps::{SingleValue, single};
/// assert_eq!(single(None::<u32>), SingleValue::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SingleValue(pub(super) FieldValues);

/// One value, or none for `None`.
pub fn single<P: Pack>(value: P) -> SingleValue {
    SingleValue(one(value))
}

impl<P: Pack> FromIterator<P> for FieldValues {
    /// Collects many values, such as the tags of a text.
    fn from_iter<I: IntoIterator<Item = P>>(values: I) -> Self {
        let mut values: SmallVec<[KeyBuf; 1]> = values
            .into_iter()
            .map(|value| pack_one(&value))
            .filter(|value| *value != null())
            .collect();
        if values.len() > 1 {
            values.sort_unstable();
            values.dedup();
        }
        Self(values)
    }
}

/// The value that stands for no value.
pub(crate) fn null() -> KeyBuf {
    pack_one(&None::<u8>)
}

type Values<K, V> = dyn Fn(&K, &V) -> FieldValues + Send + Sync;
type Integer<K, V> = dyn Fn(&K, &V) -> Option<i64> + Send + Sync;

/// The function of a field.
pub(super) enum Function<K, V> {
    Values(Arc<Values<K, V>>),
    Integer(Arc<Integer<K, V>>),
}

impl<K, V> Clone for Function<K, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Values(function) => Self::Values(Arc::clone(function)),
            Self::Integer(function) => Self::Integer(Arc::clone(function)),
        }
    }
}

/// The values of one field for one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Values(FieldValues),
    Integer(Option<i64>),
}

impl Held {
    pub(super) fn kind(&self) -> FieldKind {
        match self {
            Self::Values(_) => FieldKind::Values,
            Self::Integer(_) => FieldKind::Integers,
        }
    }

    /// Whether there is any value.
    pub(super) fn is_something(&self) -> bool {
        match self {
            Self::Values(values) => !values.packed().is_empty(),
            Self::Integer(integer) => integer.is_some(),
        }
    }
}

impl<K, V> Function<K, V> {
    pub(super) fn kind(&self) -> FieldKind {
        match self {
            Self::Values(_) => FieldKind::Values,
            Self::Integer(_) => FieldKind::Integers,
        }
    }

    pub(super) fn held(&self, key: &K, value: &V) -> Held {
        match self {
            Self::Values(function) => Held::Values(function(key, value)),
            Self::Integer(function) => Held::Integer(function(key, value)),
        }
    }
}
