//! What a query is about: the same words for every range, page and count.

use std::ops::{Bound, RangeBounds};

use keyloom::{KeyRange, Pack, Subspace};

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
/// `P` are the parts that it selects from: those of an index in their [types](crate::parts), so that a selection
/// of another type does not compile, or [`AnyParts`], where any value can be given.
///
/// ```
/// use keyloom::{Memory, Order, Store, Subspace};
/// use keyloom_patterns::{Index, Table, entry, within};
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

/// What begins with the elements of `prefix`, the last of which, a string or bytes, is itself only a
/// beginning: `("FR", "Par")` finds Paris and Parthenay. A last element of another kind is taken whole.
pub fn starting_with<Q: Pack>(prefix: Q) -> StartingWith<Q> {
    StartingWith(prefix)
}

impl<Q> StartingWith<Q> {
    pub(crate) fn prefix(&self) -> &Q {
        &self.0
    }
}

impl<Q: Pack> StartingWith<Q> {
    /// The keys of `space` that are selected, whatever their types are.
    pub(crate) fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
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

/// What lies in `range`, in the order of the keys: where an element is a [`Desc`](keyloom::Desc), the
/// larger value comes first.
///
/// The bounds may have fewer elements than the keys. What continues a bound belongs to it:
/// `..=("FR", "11")` ends with the last city of that region, `..("FR", "11")` before its first. A start
/// that is left out is written as a pair of bounds:
///
/// ```
/// use keyloom_patterns::within;
/// use std::ops::Bound::{Excluded, Unbounded};
/// let behind_france = within::<&str>((Excluded("FR"), Unbounded));
/// ```
pub fn within<Q: Pack + Clone>(range: impl RangeBounds<Q>) -> Within<Q> {
    Within { start: range.start_bound().cloned(), end: range.end_bound().cloned() }
}

impl<Q> Within<Q> {
    pub(crate) fn bounds(&self) -> (Bound<&Q>, Bound<&Q>) {
        (self.start.as_ref(), self.end.as_ref())
    }
}

impl<Q: Pack> Within<Q> {
    /// The keys of `space` that are selected, whatever their types are.
    pub(crate) fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        key_range_between(space, self.start.as_ref(), self.end.as_ref())
    }
}

/// What a generic key selects by another type that is packed alike.
pub(crate) struct Untyped<S>(pub(crate) S);

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
