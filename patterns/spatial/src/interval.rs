//! An interval in one dimension of a grid.

use super::area::Relation;

/// The cells of one dimension that some values are in, when cells grow with values: what is in a
/// cell between the first and the last is between them itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    /// The cells that may hold some, none where the first is behind the last.
    pub(super) first: u32,
    pub(super) last: u32,
    /// Whether all that is in the first or in the last of these cells is taken.
    pub(super) has_all_of_first: bool,
    pub(super) has_all_of_last: bool,
}

impl Interval {
    /// All cells up to the last.
    pub(super) fn all(last: u32) -> Self {
        Self { first: 0, last, has_all_of_first: true, has_all_of_last: true }
    }

    /// How it lies to a block of cells.
    pub(super) fn relation(&self, low: u32, high: u32) -> Relation {
        if self.first > self.last || high < self.first || low > self.last {
            return Relation::Outside;
        }
        let begins_inside = low > self.first || low == self.first && self.has_all_of_first;
        let ends_inside = high < self.last || high == self.last && self.has_all_of_last;
        if begins_inside && ends_inside { Relation::Inside } else { Relation::Across }
    }

    /// How many cells of a block are in it.
    pub(super) fn overlap(&self, low: u32, high: u32) -> u32 {
        let (first, last) = (low.max(self.first), high.min(self.last));
        last.checked_sub(first).map_or(0, |cells| cells.saturating_add(1))
    }
}

/// How what is bounded in several dimensions lies to a block, from how it does in each of them.
pub(super) fn all_of(relations: impl IntoIterator<Item = Relation>) -> Relation {
    relations.into_iter().fold(Relation::Inside, |all, one| match (all, one) {
        (Relation::Outside, _) | (_, Relation::Outside) => Relation::Outside,
        (Relation::Inside, Relation::Inside) => Relation::Inside,
        _ => Relation::Across,
    })
}
