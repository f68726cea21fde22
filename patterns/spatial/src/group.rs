//! The groups of a spatial index, and the index entries of a place, one in each of its groups.

use keyloom::key::pack_into;
use keyloom::{Pack, Subspace};
use keyloom_kit::parts::AnyParts;
use keyloom_tables::index::IndexEntries;

pub use keyloom_tables::parts::Group;
pub(super) use keyloom_tables::parts::shape_of_group as shape;

/// The places of one group of the index `I`: a [`PointIndex`](super::PointIndex), an
/// [`ExtentIndex`](super::ExtentIndex), a [`CurveIndex`](super::CurveIndex) or a
/// [`SpaceTimeIndex`](super::SpaceTimeIndex). Made by the `group` method of the index.
#[derive(Clone, Debug)]
pub struct SpatialGroup<I> {
    pub(super) index: I,
    /// The subspace of the entries of the group.
    pub(super) space: Subspace,
}

impl<I: Clone> SpatialGroup<I> {
    pub(super) fn new(index: &I, space: Subspace) -> Self {
        Self { index: index.clone(), space }
    }
}

/// The index entries of a place, one in each of `groups`. In each key, `parts` follow the parts of
/// the group.
pub(super) fn entries<G>(
    groups: impl IntoIterator<Item = Group<G>>,
    parts: &impl Pack,
) -> IndexEntries<AnyParts> {
    let entry = |group: Group<G>| {
        let mut key = group.into_packed();
        pack_into(parts, &mut key);
        IndexEntries::packed([key])
    };
    groups.into_iter().map(entry).collect()
}
