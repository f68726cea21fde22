//! Aligned ranges of document ids.

use std::fmt;

/// The level of the range that contains all ids: there are 2<sup>32</sup> of them.
pub(crate) const TOP: u8 = 32;

/// The 2<sup>level</sup> ids that begin at a multiple of 2<sup>level</sup>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdRange {
    first: u32,
    level: u8,
}

impl IdRange {
    /// All ids.
    pub(crate) const ALL: Self = Self { first: 0, level: TOP };

    /// The range of a level that contains an id.
    pub(crate) fn of(id: u32, level: u8) -> Self {
        let level = level.min(TOP);
        Self { first: id & !span(level), level }
    }

    /// The range of a level that ends with the id `last`, if there is one.
    pub(crate) fn ending_at(last: u32, level: u8) -> Option<Self> {
        (level <= TOP).then(|| Self::of(last, level)).filter(|range| range.last() == last)
    }

    /// The largest range that contains `id`, but neither `before` nor `after`: the last id of the
    /// range before it, and the first id of the range after it.
    pub(crate) fn between(before: Option<u32>, id: u32, after: Option<u32>) -> Self {
        let is_free = |range: &Self| {
            before.is_none_or(|before| before < range.first)
                && after.is_none_or(|after| after > range.last())
        };
        let wider = |range: &Self| range.parent().filter(is_free);
        std::iter::successors(Some(Self::of(id, 0)), wider).last().unwrap_or(Self::ALL)
    }

    pub(crate) fn first(self) -> u32 {
        self.first
    }

    pub(crate) fn last(self) -> u32 {
        self.first | span(self.level)
    }

    pub(crate) fn level(self) -> u8 {
        self.level
    }

    pub(crate) fn contains(self, id: u32) -> bool {
        self.first <= id && id <= self.last()
    }

    /// The range of the next level; `None` for all ids.
    pub(crate) fn parent(self) -> Option<Self> {
        (self.level < TOP).then(|| Self::of(self.first, self.level + 1))
    }

    /// The other half of the parent.
    pub(crate) fn sibling(self) -> Option<Self> {
        self.parent().map(|_| Self { first: self.first ^ (1 << self.level), level: self.level })
    }

    /// The two halves; `None` for a single id.
    pub(crate) fn halves(self) -> Option<[Self; 2]> {
        let level = self.level.checked_sub(1)?;
        let low = Self { first: self.first, level };
        Some([low, Self { first: self.first | 1 << level, level }])
    }
}

impl fmt::Display for IdRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.first, self.last())
    }
}

/// The difference between the last and the first id of a range.
fn span(level: u8) -> u32 {
    u32::MAX.checked_shr(u32::from(TOP - level)).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_have_halves_parents_and_siblings() {
        let range = IdRange::of(13, 2);
        assert_eq!((range.first(), range.last(), range.level()), (12, 15, 2));
        assert_eq!(range.parent(), Some(IdRange::of(8, 3)));
        assert_eq!(range.sibling(), Some(IdRange::of(8, 2)));
        assert_eq!(range.halves(), Some([IdRange::of(12, 1), IdRange::of(14, 1)]));
        assert_eq!((IdRange::ALL.first(), IdRange::ALL.last()), (0, u32::MAX));
        assert_eq!((IdRange::ALL.parent(), IdRange::ALL.sibling()), (None, None));
        assert_eq!(IdRange::of(7, 0).halves(), None);
        assert_eq!(IdRange::ending_at(15, 2), Some(range));
        assert_eq!((IdRange::ending_at(14, 2), IdRange::ending_at(15, 33)), (None, None));
    }

    proptest! {
        #[test]
        fn largest_ranges_leave_out_both_neighbours(
            ids in prop::collection::btree_set(0..400_u32, 3)
        ) {
            let [before, id, after] = ids.into_iter().collect::<Vec<_>>()[..] else { return Ok(()) };
            for (before, after) in [(Some(before), Some(after)), (None, Some(after)), (None, None)] {
                let range = IdRange::between(before, id, after);
                let has_neighbour = |range: IdRange| {
                    [before, after].iter().flatten().any(|id| range.contains(*id))
                };
                prop_assert!(range.contains(id) && !has_neighbour(range));
                prop_assert!(range.parent().is_none_or(has_neighbour));
            }
        }
    }
}
