//! What a query is about: the same words for every range, page and count.

use std::ops::{Bound, RangeBounds};

use keyloom::key::{Element, elements};
use keyloom::{KeyBuf, KeyRange, Pack, Subspace, pack};

use crate::index::pack_one;
use crate::parts::{AnyParts, PrefixOf};

/// Which keys of a subspace a query is about.
///
/// | given | what it selects |
/// |---|---|
/// | `"FR"`, `("FR", "11")` | what begins with these elements |
/// | `()` | everything |
/// | [`starting_with`]`(("FR", "Par"))` | what begins with these elements, the last of which is the beginning of a string |
/// | [`within`]`(18..30)`, `(..=30)`, `(18..)` | what lies between, by its leading elements |
///
/// `P` are the parts that it selects from: those of an index in their [types](crate::parts), so
/// that a selection of another type does not compile, or [`AnyParts`], where any value can be
/// given.
///
/// ```
/// use keyloom::{Memory, Order, Store, Subspace};
/// use keyloom_tables::{Index, Table, entry, within};
/// let by_age = Index::new(&Subspace::new("by_age"), |_id, age: &u8| entry(age));
/// let people = Table::<u32, u8>::new(&Subspace::new("people")).with(&by_age);
/// let store = Memory::new();
/// store.transact(|txn| (1..=60).try_for_each(|id| people.put(txn, &id, &(id as u8))))?;
/// let snapshot = store.snapshot()?;
/// assert_eq!(by_age.count(&snapshot, 18)?, 1);
/// assert_eq!(by_age.count(&snapshot, within(18..30))?, 12);
/// assert_eq!(by_age.count(&snapshot, within(18..=30))?, 13);
/// assert_eq!(people.count(&snapshot, within(51..))?, 10);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "mismatched parts: `{Self}` does not select from `{P}`",
    label = "the parts are `{P}`",
    note = "give leading parts in their types: one alone, several in a tuple, `()` for all"
)]
pub trait Select<P = AnyParts> {
    /// The keys of `space` that are selected.
    fn key_range(&self, space: &Subspace) -> KeyRange<'static>;
}

impl<P, Q: PrefixOf<P>> Select<P> for Q {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        space.child(self).self_and_children()
    }
}

/// Selects by the beginning of a string; see [`starting_with`].
#[derive(Clone, Copy, Debug)]
pub struct StartingWith<Q>(Q);

/// What begins with the elements of `prefix`, the last of which, a string or bytes, is itself only
/// a beginning: `("FR", "Par")` finds Paris and Parthenay. A last element of another kind is taken
/// whole.
pub fn starting_with<Q: Pack>(prefix: Q) -> StartingWith<Q> {
    StartingWith(prefix)
}

impl<Q: Pack> StartingWith<Q> {
    /// The keys of `space` that are selected, whatever their types are.
    #[doc(hidden)]
    pub fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        space.string_prefix(&self.0)
    }
}

impl<P, Q: PrefixOf<P>> Select<P> for StartingWith<Q> {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        self.key_range(space)
    }
}

/// Selects what lies between two keys; see [`within`].
#[derive(Clone, Copy, Debug)]
pub struct Within<Q> {
    start: Bound<Q>,
    end: Bound<Q>,
}

/// What lies in `range`, in the order of the keys: where an element is a [`Desc`](keyloom::Desc),
/// the larger value comes first.
///
/// The bounds may have fewer elements than the keys. What continues a bound belongs to it:
/// `..=("FR", "11")` ends with the last city of that region, `..("FR", "11")` before its first. A
/// start that is left out is written as a pair of bounds:
///
/// ```
/// use keyloom_tables::within;
/// use std::ops::Bound::{Excluded, Unbounded};
/// let behind_france = within::<&str>((Excluded("FR"), Unbounded));
/// ```
pub fn within<Q: Pack + Clone>(range: impl RangeBounds<Q>) -> Within<Q> {
    Within { start: range.start_bound().cloned(), end: range.end_bound().cloned() }
}

impl<Q: Pack> Within<Q> {
    /// The keys of `space` that are selected, whatever their types are.
    #[doc(hidden)]
    pub fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        key_range_between(space, self.start.as_ref(), self.end.as_ref())
    }
}

/// What a generic key selects by another type that is packed alike.
pub struct Untyped<S>(pub S);

impl<P, S: Select> Select<P> for Untyped<S> {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        self.0.key_range(space)
    }
}

/// The keys of `space` between two bounds, each with what continues it.
pub(crate) fn key_range_between<Q: Pack>(
    space: &Subspace,
    start: Bound<&Q>,
    end: Bound<&Q>,
) -> KeyRange<'static> {
    let from = match start {
        Bound::Included(key) => KeyRange::starting_at(&space.pack(key)).into_owned(),
        Bound::Excluded(key) => KeyRange::behind(&space.pack(key)),
        Bound::Unbounded => KeyRange::all(),
    };
    let to = match end {
        Bound::Included(key) => KeyRange::through(&space.pack(key)),
        Bound::Excluded(key) => KeyRange::all().before(&space.pack(key)).into_owned(),
        Bound::Unbounded => KeyRange::all(),
    };
    space.self_and_children().intersect(from).intersect(to)
}

impl<P, Q: PrefixOf<P>> Select<P> for Within<Q> {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        self.key_range(space)
    }
}

/// Which values of a field a query selects.
///
/// A value is one element of a key, so a tuple is one value. A tuple is
/// selected by its leading elements too.
///
/// | given | selected values |
/// |---|---|
/// | `"Oslo"`, `5` | this one |
/// | `(2020,)`, `(2020, 6)` | the tuples that begin with these elements |
/// | `()` | all |
/// | [`starting_with`]`("Par")`, `(("FR", "Par"))` | the strings that begin so; the tuples that begin with these elements, the last of which is the beginning of a string |
/// | [`within`]`(18..30)`, `(..=(2020, 6))` | the values between, of the type of the bounds |
///
/// A selection of another type than the values of the field is an error: a number where the field
/// has strings, `(2020, 6)` where it has numbers, `((2020, 6),)` where it has tuples of numbers. A
/// field should hold values of one type. A field with values of two types can be asked for either,
/// once it has values of both.
pub trait SelectValues {
    /// The selected values.
    fn selected(&self) -> SelectedValues;
}

/// What [`SelectValues`] selects.
#[derive(Clone, Debug)]
pub enum SelectedValues {
    /// All values.
    All,
    /// The values that begin with these elements, packed as one.
    Beginning(KeyBuf),
    /// The same, where the last element is only the beginning of a string.
    StringBeginning(KeyBuf),
    /// The values between two, each packed as one element.
    Between(Bound<KeyBuf>, Bound<KeyBuf>),
}

impl<P: Pack> SelectValues for P {
    fn selected(&self) -> SelectedValues {
        match pack(self).is_empty() {
            true => SelectedValues::All,
            false => SelectedValues::Beginning(pack_one(self)),
        }
    }
}

impl<P: Pack> SelectValues for StartingWith<P> {
    fn selected(&self) -> SelectedValues {
        let elements = elements(&pack(&self.0)).unwrap_or_default();
        match elements.last() {
            None => SelectedValues::All,
            Some(Element::Str(_) | Element::Bytes(_)) => {
                SelectedValues::StringBeginning(pack_one(&self.0))
            }
            Some(_) => SelectedValues::Beginning(pack_one(&self.0)),
        }
    }
}

impl<P: Pack> SelectValues for Within<P> {
    fn selected(&self) -> SelectedValues {
        match (&self.start, &self.end) {
            (Bound::Unbounded, Bound::Unbounded) => SelectedValues::All,
            (start, end) => {
                SelectedValues::Between(start.as_ref().map(pack_one), end.as_ref().map(pack_one))
            }
        }
    }
}
