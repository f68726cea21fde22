//! Conditions on documents.

use std::ops::{Bound, RangeBounds};

use keyloom::{KeyBuf, List, Result, pack};
use serde_json::Value;

use super::order::{ALL_KINDS, JsonKey, kinds_of};
use super::{JsonError, JsonPath, MAX_DEPTH, is_deeper};

/// A condition on a document, for [`Collection::find_where`](super::Collection::find_where).
///
/// A condition at a path with several values holds if it holds for one of them, as in MongoDB. So
/// two conditions at `items[].sku` and `items[].count` may hold for different items. For one item
/// that meets both, use [`element`](Condition::element).
///
/// ```
/// use keyloom_documents::json::Condition;
/// use serde_json::json;
/// let in_the_north = Condition::one_of("city", ["Oslo", "Bergen"])?;
/// let large = Condition::range("total", json!(100)..)?;
/// let open = Condition::missing("paid_at")?;
/// let condition = in_the_north & (large | open);
/// assert!(condition.matches(&json!({ "city": "Oslo", "total": 250 })));
/// assert!(!condition.matches(&json!({ "city": "Oslo", "total": 9, "paid_at": 3 })));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Condition(pub(super) Kind);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// The condition holds for one of the values at the path.
    Element(JsonPath, Box<Condition>),
    At(Test),
}

/// A condition on the values at a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test {
    pub(super) path: JsonPath,
    pub(super) is: Is,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Is {
    /// One of these values, which are sorted and distinct.
    OneOf(Vec<Value>),
    Within((Bound<Value>, Bound<Value>)),
    /// There is a value; it may be null.
    Present,
}

impl Condition {
    /// A value at `path` equals `value`. `1` and `1.0` are equal. NaN and infinite floats convert
    /// to null.
    ///
    /// # Errors
    /// [`JsonError::BadPath`]; [`JsonError::TooDeep`] for a value that no document can hold.
    pub fn equal(path: &str, value: impl Into<Value>) -> Result<Self> {
        Self::one_of(path, [value])
    }

    /// A value at `path` is one of these. An index looks up each of up to 100 values; more values
    /// are read as one range from the least to the greatest.
    ///
    /// # Errors
    /// The errors of [`equal`](Condition::equal).
    pub fn one_of<V: Into<Value>>(path: &str, values: impl IntoIterator<Item = V>) -> Result<Self> {
        let mut values: Vec<Value> = values.into_iter().map(Into::into).collect();
        values.iter().try_for_each(refuse_deep)?;
        values.sort_by_cached_key(packed);
        values.dedup_by(|a, b| packed(a) == packed(b));
        Self::at(path, Is::OneOf(values))
    }

    /// A value at `path` is in this range. As in [`JsonQuery::range`](super::JsonQuery::range), a
    /// range with one bound contains only values of the type of this bound.
    ///
    /// # Errors
    /// The errors of [`equal`](Condition::equal).
    pub fn range(path: &str, range: impl RangeBounds<Value>) -> Result<Self> {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        for bound in [&bounds.0, &bounds.1] {
            if let Bound::Included(value) | Bound::Excluded(value) = bound {
                refuse_deep(value)?;
            }
        }
        Self::at(path, Is::Within(bounds))
    }

    /// There is a value at `path`; it may be null.
    ///
    /// # Errors
    /// [`JsonError::BadPath`].
    pub fn present(path: &str) -> Result<Self> {
        Self::at(path, Is::Present)
    }

    /// There is no value at `path`. No index finds such documents: combine this condition with one
    /// that an index supports.
    ///
    /// # Errors
    /// [`JsonError::BadPath`].
    pub fn missing(path: &str) -> Result<Self> {
        Ok(!Self::present(path)?)
    }

    /// All of these conditions hold; an empty list always holds.
    pub fn all_of(conditions: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Vec::new();
        for condition in conditions {
            match condition.0 {
                Kind::All(more) => all.extend(more),
                one => all.push(Self(one)),
            }
        }
        Self(Kind::All(all))
    }

    /// At least one of these conditions holds; an empty list never holds.
    pub fn any_of(conditions: impl IntoIterator<Item = Self>) -> Self {
        let mut any = Vec::new();
        for condition in conditions {
            match condition.0 {
                Kind::Any(more) => any.extend(more),
                one => any.push(Self(one)),
            }
        }
        Self(Kind::Any(any))
    }

    /// One of the values at `elements` satisfies the condition, whose paths are relative to the
    /// value. This is `$elemMatch` in MongoDB, where the path has no `[]`. Here `items[]` are the
    /// elements of the array, and `items` is the array itself. A [nested
    /// index](super::Collection::with_nested) on these elements is used with the conditions on all
    /// of its paths. Any other index is used with the full paths, such as `items[].sku`.
    ///
    /// ```
    /// use keyloom_documents::json::Condition;
    /// use serde_json::json;
    /// let cups = Condition::equal("sku", "cup")? & Condition::range("count", json!(3)..)?;
    /// let many_cups = Condition::element("items[]", cups)?;
    /// let items = json!([{ "sku": "cup", "count": 1 }, { "sku": "tea", "count": 3 }]);
    /// assert!(!many_cups.matches(&json!({ "items": items })), "no item meets both");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`JsonError::BadPath`].
    pub fn element(elements: &str, condition: Self) -> Result<Self> {
        Ok(Self::of_element(elements.parse()?, condition))
    }

    /// Moves alternatives and inner element conditions out of the condition, so that an index can
    /// be used for each of them.
    fn of_element(elements: JsonPath, condition: Self) -> Self {
        match condition.0 {
            Kind::Any(any) => {
                let each = any.into_iter().map(|one| Self::of_element(elements.clone(), one));
                Self::any_of(each)
            }
            Kind::Element(below, one) => Self::of_element(below.below(&elements), *one),
            one => Self(Kind::Element(elements, Box::new(Self(one)))),
        }
    }

    fn at(path: &str, is: Is) -> Result<Self> {
        Ok(Self(Kind::At(Test { path: path.parse()?, is })))
    }

    /// Whether a document satisfies the condition.
    pub fn matches(&self, document: &Value) -> bool {
        match &self.0 {
            Kind::All(all) => all.iter().all(|one| one.matches(document)),
            Kind::Any(any) => any.iter().any(|one| one.matches(document)),
            Kind::Not(one) => !one.matches(document),
            Kind::Element(path, one) => {
                path.values(document).into_iter().any(|value| one.matches(value))
            }
            Kind::At(test) => test.matches(document),
        }
    }

    /// The conditions that must all hold.
    pub(super) fn conjuncts(&self) -> Vec<&Self> {
        match &self.0 {
            Kind::All(all) => all.iter().collect(),
            _ => vec![self],
        }
    }
}

/// Both conditions hold.
impl std::ops::BitAnd for Condition {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self::all_of([self, other])
    }
}

/// At least one of the conditions holds.
impl std::ops::BitOr for Condition {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self::any_of([self, other])
    }
}

/// The condition does not hold.
impl std::ops::Not for Condition {
    type Output = Self;

    fn not(self) -> Self {
        match self.0 {
            Kind::Not(one) => *one,
            one => Self(Kind::Not(Box::new(Self(one)))),
        }
    }
}

impl Test {
    pub(super) fn matches(&self, document: &Value) -> bool {
        let values = self.path.values(document);
        match &self.is {
            Is::Present => !values.is_empty(),
            // The values are sorted, so the binary search packs only a few of them.
            Is::OneOf(all) => values.iter().any(|value| {
                let value = packed(value);
                all.binary_search_by(|one| packed(one).cmp(&value)).is_ok()
            }),
            Is::Within(range) => {
                let range = packed_range(range);
                values.iter().any(|value| range.contains(&packed(value)))
            }
        }
    }
}

pub(super) fn packed(value: &Value) -> KeyBuf {
    packed_key(JsonKey::Value(value))
}

fn packed_key(key: JsonKey<'_>) -> KeyBuf {
    pack(&List(vec![key]))
}

/// The range of the packed values. If a bound is missing, the range ends where the type of the
/// other bound ends.
fn packed_range((start, end): &(Bound<Value>, Bound<Value>)) -> (Bound<KeyBuf>, Bound<KeyBuf>) {
    let kinds = |bound: &Bound<Value>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(kinds_of(value)),
        Bound::Unbounded => None,
    };
    let [first, after] = kinds(start).or(kinds(end)).unwrap_or(ALL_KINDS).map(JsonKey::Kind);
    let or = |bound: &Bound<Value>, missing: Bound<KeyBuf>| match bound {
        Bound::Unbounded => missing,
        bound => bound.as_ref().map(packed),
    };
    (or(start, Bound::Included(packed_key(first))), or(end, Bound::Excluded(packed_key(after))))
}

fn refuse_deep(value: &Value) -> Result<()> {
    if is_deeper(value, MAX_DEPTH) {
        let what = "a value of the condition".to_owned();
        return Err(JsonError::TooDeep { what, limit: MAX_DEPTH }.into());
    }
    Ok(())
}
