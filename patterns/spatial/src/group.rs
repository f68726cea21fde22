//! Groups: the leading parts of the entries of a spatial index.

use std::fmt;
use std::marker::PhantomData;

use keyloom::key::{display, pack_into};
use keyloom::{KeyBuf, Pack, pack};
use keyloom_tables::index::IndexEntries;
use keyloom_tables::parts::{AnyParts, KeyShape, Parts};

/// The group of a place in a spatial index, such as a tenant, or a tenant and a category: the
/// leading parts of its entry. `G` is the [type](keyloom_tables::parts) of these parts.
///
/// The function of an index returns one group, or several in a collection for a record in each of
/// them; see [`PointIndex::grouped`](super::PointIndex::grouped),
/// [`ExtentIndex::grouped`](super::ExtentIndex::grouped),
/// [`SpaceTimeIndex::grouped`](super::SpaceTimeIndex::grouped) and
/// [`CurveIndex::grouped`](super::CurveIndex::grouped).
pub struct Group<G> {
    /// Packed.
    parts: KeyBuf,
    of: PhantomData<fn() -> G>,
}

impl Group<()> {
    /// The group with these leading parts: one value, or several in a tuple.
    ///
    /// ```
    /// use keyloom_spatial::Group;
    /// let category_of_tenant = Group::of(("acme", 7_u32));
    /// ```
    pub fn of<Q: Parts>(parts: Q) -> Group<Q::Owned> {
        Group { parts: pack(&parts), of: PhantomData }
    }
}

impl<G> Group<G> {
    /// The entry of this group with these parts after the leading ones.
    fn entry(self, parts: &impl Pack) -> IndexEntries<AnyParts> {
        let mut key = self.parts;
        pack_into(parts, &mut key);
        IndexEntries::packed([key])
    }
}

/// The entries of a place, one in each group, with these parts after the leading ones.
pub(super) fn entries<G>(
    groups: impl IntoIterator<Item = Group<G>>,
    parts: &impl Pack,
) -> IndexEntries<AnyParts> {
    groups.into_iter().map(|group| group.entry(parts)).collect()
}

/// The group alone.
impl<G> IntoIterator for Group<G> {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

impl<G> Clone for Group<G> {
    fn clone(&self) -> Self {
        Self { parts: self.parts.clone(), of: PhantomData }
    }
}

impl<G> PartialEq for Group<G> {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl<G> Eq for Group<G> {}

impl<G> fmt::Debug for Group<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group{}", display(&self.parts))
    }
}

/// The types of the leading parts, for the definition in a schema; empty if there are none.
pub(super) fn shape<G: KeyShape>() -> String {
    let shape = G::key_shape();
    // The definitions of indexes without leading parts have never had a shape.
    if shape == <()>::key_shape() { String::new() } else { shape }
}
