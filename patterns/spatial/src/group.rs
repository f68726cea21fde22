//! The entries of a place in its groups.

use keyloom::Pack;
use keyloom::key::pack_into;
use keyloom_kit::parts::AnyParts;
use keyloom_tables::index::IndexEntries;

pub use keyloom_tables::parts::Group;
pub(super) use keyloom_tables::parts::shape_of_group as shape;

/// The entries of a place, one in each group, with these parts after the leading ones.
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
