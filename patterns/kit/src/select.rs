//! Selections: which keys a range, page or count reads.

use std::ops::{Bound, RangeBounds};

use keyloom::key::{Element, elements};
use keyloom::{KeyBuf, KeyRange, Order, Pack, Subspace, pack};

use crate::parts::{AnyParts, PrefixOf};
use crate::{InOrder, pack_one};

/// A selection of the keys of a subspace that a query reads.
///
/// | given | selected keys |
/// |---|---|
/// | `"FR"`, `("FR", "11")` | keys that begin with these elements |
/// | `..`, `()` | all |
/// | [`starting_with`]`(("FR", "Par"))` | keys that begin with these elements, where the last one is a prefix of a string |
/// | [`within`]`(18..30)`, `(..=30)`, `(18..)` | keys in the range, compared by their leading elements |
/// | [`descending`](crate::descending)`(7)`, of any of these | the same keys, read in descending order |
///
/// `P` is the type of the parts of an index or of a record key. If it is the [type](crate::parts)
/// of the parts of an index, a selection of another type does not compile. If it is [`AnyParts`],
/// any value is accepted.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
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
    note = "give leading parts in their types: one alone, several in a tuple, `..` for all, `within(18..30)` for a range"
)]
pub trait Select<P = AnyParts> {
    /// The selected keys of `space`.
    fn key_range(&self, space: &Subspace) -> KeyRange<'static>;

    /// The order in which a scan or a page reads the selected keys.
    fn order(&self) -> Order {
        Order::Ascending
    }
}

impl<P, S: Select<P>> Select<P> for InOrder<S> {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        self.of.key_range(space)
    }

    fn order(&self) -> Order {
        self.order
    }
}

impl<P, Q: PrefixOf<P>> Select<P> for Q {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        space.child(self).self_and_children()
    }
}

/// Selects by a prefix of a string; see [`starting_with`].
#[derive(Clone, Copy, Debug)]
pub struct StartingWith<Q>(Q);

/// Selects the keys that begin with the elements of `prefix`. If the last element of `prefix` is a
/// string or bytes, it matches every string or bytes that begin with it: `("FR", "Par")` finds
/// Paris and Parthenay. A last element of another type must match completely.
pub fn starting_with<Q: Pack>(prefix: Q) -> StartingWith<Q> {
    StartingWith(prefix)
}

impl<Q: Pack> StartingWith<Q> {
    /// The selected keys of `space`, whatever their types are.
    pub fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        space.string_prefix(&self.0)
    }
}

impl<P, Q: PrefixOf<P>> Select<P> for StartingWith<Q> {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        self.key_range(space)
    }
}

/// Selects the keys between two bounds; see [`within`].
#[derive(Clone, Copy, Debug)]
pub struct Within<Q> {
    start: Bound<Q>,
    end: Bound<Q>,
}

/// Selects the keys in `range`, in the order of the keys: if an element is a
/// [`Desc`](keyloom::Desc), the larger value comes first.
///
/// The bounds may have fewer elements than the keys. A bound includes or excludes all keys that
/// begin with it: `..=("FR", "11")` ends with the last city of region 11, and `..("FR", "11")` ends
/// before the first city of that region. An excluded start is written as a pair of bounds:
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
    /// The selected keys of `space`, whatever their types are.
    pub fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        key_range_between(space, self.start.as_ref(), self.end.as_ref())
    }
}

/// Uses a selection for keys of another type that has the same packed form.
pub fn untyped<P>(selection: impl Select) -> impl Select<P> {
    Untyped(selection)
}

struct Untyped<S>(S);

impl<P, S: Select> Select<P> for Untyped<S> {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        self.0.key_range(space)
    }

    fn order(&self) -> Order {
        self.0.order()
    }
}

/// The keys of `space` between two bounds. A bound also includes or excludes the keys that begin
/// with it.
pub fn key_range_between<Q: Pack>(
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

/// The values of a field that a query selects.
///
/// A value is one element of a key, so a tuple is one value. A tuple can also be selected by its
/// leading elements.
///
/// | given | selected values |
/// |---|---|
/// | `"Oslo"`, `5` | this value |
/// | `(2020,)`, `(2020, 6)` | the tuples that begin with these elements |
/// | `..`, `()` | all |
/// | [`starting_with`]`("Par")`, `(("FR", "Par"))` | the strings with this prefix; the tuples that begin with these elements, where the last one is a prefix of a string |
/// | [`within`]`(18..30)`, `(..=(2020, 6))` | the values in the range that have the type of the bounds |
/// | [`descending`](crate::descending)`(5)`, of any of these | the same values, read in descending order |
///
/// A selection whose type differs from the type of the values is an error. Examples are a number
/// for a field of strings, `(2020, 6)` for a field of numbers, and `((2020, 6),)` for a field of
/// tuples of numbers. A field should hold values of one type. If a field holds values of two types,
/// queries of both types are valid.
pub trait SelectValues {
    /// The selected values.
    fn selected(&self) -> SelectedValues;

    /// The order in which a scan reads the values.
    fn order(&self) -> Order {
        Order::Ascending
    }
}

impl<S: SelectValues> SelectValues for InOrder<S> {
    fn selected(&self) -> SelectedValues {
        self.of.selected()
    }

    fn order(&self) -> Order {
        self.order
    }
}

/// The values selected by a [`SelectValues`].
#[derive(Clone, Debug)]
pub enum SelectedValues {
    /// All values.
    All,
    /// The values that begin with these elements, packed as one element.
    Beginning(KeyBuf),
    /// The values that begin with these elements, where the last one is a prefix of a string.
    StringBeginning(KeyBuf),
    /// The values between two bounds, each packed as one element.
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
