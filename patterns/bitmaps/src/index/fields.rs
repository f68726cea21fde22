//! Fields and their values for a record.

use std::marker::PhantomData;
use std::sync::Arc;

use keyloom::KeyBuf;
use keyloom_kit::pack_one;
use keyloom_kit::parts::{AnyParts, KeyShape, Parts};
use smallvec::SmallVec;

/// The values of a field for a record: the result of the function of a
/// [field](super::InvertedIndex::field).
///
/// Each value is packed as one element of a key. A null is not a value.
///
/// ```
/// use keyloom_bitmaps::{FieldValues, one};
/// let country = one("FR");
/// let tags: FieldValues<String> = ["rust", "lmdb"].iter().collect();
/// assert_eq!(one(None::<u32>), FieldValues::none());
/// ```
///
/// `P` is the [type](keyloom_tables::parts) of the values. A schema stores this type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldValues<P> {
    values: PackedValues,
    of: PhantomData<fn() -> P>,
}

/// The packed values of a field, sorted and without duplicates.
pub(super) type PackedValues = SmallVec<[KeyBuf; 1]>;

/// One value, or none for `None`.
pub fn one<Q: Parts>(value: Q) -> FieldValues<Q::Owned> {
    FieldValues::from_iter([value])
}

/// Many values, such as the tags of a text.
///
/// ```
/// use keyloom_bitmaps::{FieldValues, many};
/// let tags = vec!["rust".to_owned(), "lmdb".to_owned()];
/// let values: FieldValues<String> = many(&tags);
/// assert_eq!(values, tags.iter().collect());
/// ```
pub fn many<Q: Parts>(values: impl IntoIterator<Item = Q>) -> FieldValues<Q::Owned> {
    values.into_iter().collect()
}

impl<P> Default for FieldValues<P> {
    fn default() -> Self {
        Self::none()
    }
}

impl<P> FieldValues<P> {
    /// No value: [`absent`](super::InvertedIndex::absent) then selects the record.
    pub fn none() -> Self {
        Self { values: PackedValues::new(), of: PhantomData }
    }

    /// Returns the same values without their static type, for a field that holds several types.
    ///
    /// ```
    /// use keyloom::Subspace;
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::new(&Subspace::new("index")).field("parity", |_: &u32, n: &i64| {
    ///     if n % 2 == 0 { one("even").untyped() } else { one(*n).untyped() }
    /// });
    /// # let _ = index;
    /// ```
    #[must_use]
    pub fn untyped(self) -> FieldValues<AnyParts> {
        FieldValues { values: self.values, of: PhantomData }
    }

    pub(super) fn into_packed(self) -> PackedValues {
        self.values
    }
}

/// The name of the type of the values. `None` is no value, so an optional type counts as the type
/// inside it.
pub(super) fn name_of_values<P: KeyShape>() -> String {
    let name = P::key_shape();
    let inside = name.strip_prefix("Option<").and_then(|name| name.strip_suffix('>'));
    inside.map_or_else(|| name.clone(), str::to_owned)
}

/// At most one value of a field for a record: the result of the function of a
/// [field with one value](super::InvertedIndex::single_value).
///
/// ```
/// use keyloom_bitmaps::{SingleValue, single};
/// assert_eq!(single(None::<u32>), SingleValue::default());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleValue<P>(pub(super) FieldValues<P>);

impl<P> Default for SingleValue<P> {
    fn default() -> Self {
        Self(FieldValues::none())
    }
}

/// One value, or none for `None`.
pub fn single<Q: Parts>(value: Q) -> SingleValue<Q::Owned> {
    SingleValue(one(value))
}

impl<Q: Parts> FromIterator<Q> for FieldValues<Q::Owned> {
    /// Collects many values, such as the tags of a text.
    fn from_iter<I: IntoIterator<Item = Q>>(values: I) -> Self {
        let mut values: PackedValues = values
            .into_iter()
            .map(|value| pack_one(&value))
            .filter(|value| *value != null())
            .collect();
        if values.len() > 1 {
            values.sort_unstable();
            values.dedup();
        }
        Self { values, of: PhantomData }
    }
}

/// The value that stands for no value.
pub(crate) fn null() -> KeyBuf {
    pack_one(&None::<u8>)
}

type Values<K, V> = dyn Fn(&K, &V) -> PackedValues + Send + Sync;
type Integer<K, V> = dyn Fn(&K, &V) -> Option<i64> + Send + Sync;

/// The kind of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Values,
    Integers,
}

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
    Values(PackedValues),
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
            Self::Values(values) => !values.is_empty(),
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
