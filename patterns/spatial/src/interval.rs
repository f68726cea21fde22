//! An interval in one dimension of a grid.

use super::area::CellRelation;

/// The cells of one dimension that contain some interval of values. Cells grow with values, so all
/// values of a cell between the first and the last cell are in the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    /// The first and the last cell that may contain values. The interval is empty if the first is
    /// after the last.
    pub(super) first: u32,
    pub(super) last: u32,
    /// Whether all values of the first cell, or of the last cell, are in the interval.
    pub(super) has_all_of_first: bool,
    pub(super) has_all_of_last: bool,
}

impl Interval {
    /// The interval of all cells up to `last`.
    pub(super) fn all(last: u32) -> Self {
        Self { first: 0, last, has_all_of_first: true, has_all_of_last: true }
    }

    /// The relation to a block of cells.
    pub(super) fn relation(&self, low: u32, high: u32) -> CellRelation {
        if self.first > self.last || high < self.first || low > self.last {
            return CellRelation::Outside;
        }
        let begins_inside = low > self.first || low == self.first && self.has_all_of_first;
        let ends_inside = high < self.last || high == self.last && self.has_all_of_last;
        if begins_inside && ends_inside { CellRelation::Inside } else { CellRelation::Across }
    }

    /// The number of cells of a block that are in the interval.
    pub(super) fn overlap(&self, low: u32, high: u32) -> u32 {
        let (first, last) = (low.max(self.first), high.min(self.last));
        last.checked_sub(first).map_or(0, |cells| cells.saturating_add(1))
    }
}

/// The relation of a region to a block, from the relations in each dimension.
pub(super) fn all_of(relations: impl IntoIterator<Item = CellRelation>) -> CellRelation {
    relations.into_iter().fold(CellRelation::Inside, |all, one| match (all, one) {
        (CellRelation::Outside, _) | (_, CellRelation::Outside) => CellRelation::Outside,
        (CellRelation::Inside, CellRelation::Inside) => CellRelation::Inside,
        _ => CellRelation::Across,
    })
}
