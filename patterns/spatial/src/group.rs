//! The index entries of a place, one in each of its groups.

use keyloom::Pack;
use keyloom::key::pack_into;
use keyloom_kit::parts::AnyParts;
use keyloom_tables::index::IndexEntries;

pub use keyloom_tables::parts::Group;
pub(super) use keyloom_tables::parts::shape_of_group as shape;

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
