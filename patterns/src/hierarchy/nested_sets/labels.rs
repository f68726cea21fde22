//! Labels: the numbers that nodes are kept in order by, and where there is room for more of them.

use crate::hierarchy::NodeId;

/// A place in the order of everything: a node has one where it begins and one where it ends.
pub(super) type Label = u64;

/// The labels from `first` to `last`, both of them counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: Label,
    pub(super) last: Label,
}

impl Span {
    pub(super) fn contains(self, label: Label) -> bool {
        (self.first..=self.last).contains(&label)
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// How many labels there are beyond the first.
    pub(super) fn width(self) -> u64 {
        self.last - self.first
    }
}

/// All labels that there are: 4 to the power of `levels`.
///
/// Windows are aligned: one of level n has 4ⁿ labels and lies in one of the next level. Of the 4ⁿ labels a window may hold
/// 2ⁿ when it is labelled anew: so the share that may be in use falls geometrically, and a window that has been filled
/// evenly leaves each quarter of it half empty. The whole space holds 2³² labels: 2³¹ nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LabelSpace {
    pub(super) levels: u32,
}

impl LabelSpace {
    /// All numbers of 64 bits.
    pub(super) const WHOLE: Self = Self { levels: 32 };

    /// The label behind all others, which no node gets; nor does any get the first one, 0.
    pub(super) fn end(self) -> Label {
        self.window(0, self.levels).last
    }

    /// The window of a level in which a label lies.
    pub(super) fn window(self, around: Label, level: u32) -> Span {
        let inside = u64::MAX.checked_shr(64 - 2 * level).unwrap_or(0);
        Span { first: around & !inside, last: around | inside }
    }

    /// How many labels a window of this level may hold when it is labelled anew.
    pub(super) fn capacity(level: u32) -> u64 {
        1 << level
    }
}

/// `count` labels strictly between two others, as far from each other as can be.
pub(super) fn spread(lo: Label, hi: Label, count: u64) -> impl Iterator<Item = Label> {
    let width = u128::from(hi - lo);
    (1..=count).map(move |n| lo + (u128::from(n) * width / (u128::from(count) + 1)) as u64)
}

/// What lies beside the place where nodes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The beginning of the parent, and a sibling behind it.
    Front,
    /// A sibling, and behind it the end of the parent.
    Back,
    /// Siblings on both sides, or on none.
    Inside,
}

/// Where nodes go: between two neighbouring labels, neither of which is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) parent: Option<NodeId>,
    pub(super) lo: Label,
    pub(super) hi: Label,
    pub(super) side: Side,
}

impl Gap {
    /// Labels for `count` places, unless the gap is too small: it should be as wide as a window is that may hold as many.
    ///
    /// Between two siblings all of the gap is used. At an end of the parent more are likely to come, and little of it is
    /// taken: of a gap of b bits about b/4 bits are left for those, and 3b/4 for what goes below each.
    pub(super) fn labels(&self, count: u64) -> Option<Vec<Label>> {
        let width = self.hi - self.lo;
        let least = u128::from(count) * u128::from(count);
        if u128::from(width) < least {
            return None;
        }
        let shift = (width.ilog2() / 4).max(2);
        let step = u128::from(width >> shift) * u128::from(count) / 2;
        let taken = step.min(u128::from(width / 2)).max(least) as u64;
        let (lo, hi) = match self.side {
            Side::Inside => (self.lo, self.hi),
            Side::Back => (self.lo, self.lo + taken),
            Side::Front => (self.hi - taken, self.hi),
        };
        Some(spread(lo, hi, count).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn windows_lie_inside_each_other_up_to_the_whole_space() {
        let space = LabelSpace::WHOLE;
        assert_eq!(space.window(7, 0), Span { first: 7, last: 7 });
        assert_eq!(space.window(7, 1), Span { first: 4, last: 7 });
        assert_eq!(space.window(7, 2), Span { first: 0, last: 15 });
        assert_eq!(space.window(u64::MAX, 31).first, 3 << 62);
        assert_eq!(space.window(7, 32), Span { first: 0, last: u64::MAX });
        assert_eq!(space.end(), u64::MAX);
        assert_eq!(LabelSpace { levels: 3 }.end(), 63);
    }

    #[test]
    fn the_whole_space_takes_two_to_the_power_of_31_nodes() {
        let labels = LabelSpace::capacity(32);
        assert_eq!(labels, 2 << 31);
        // As many labels, spread over the space, differ: neighbours are as far apart here as anywhere, but for one.
        let some: Vec<Label> = spread(0, u64::MAX, labels).take(1_000).collect();
        assert!(some.windows(2).all(|pair| pair[1] - pair[0] >= (1 << 32) - 2));
        let width = u128::from(u64::MAX);
        let last = (u128::from(labels) * width / (u128::from(labels) + 1)) as u64;
        assert!(last < u64::MAX);
    }

    proptest! {
        #[test]
        fn a_gap_gives_labels_that_stand_in_order_between_its_ends(
            lo in any::<u64>(), width in any::<u64>(), shift in 0..64_u32, nodes in 1..200_u64, side in 0..3,
        ) {
            let side = [Side::Front, Side::Back, Side::Inside][side as usize];
            let width = (width >> shift).min(u64::MAX - lo).max(1);
            let lo = lo.min(u64::MAX - width);
            let gap = Gap { parent: None, lo, hi: lo + width, side };
            match gap.labels(2 * nodes) {
                None => prop_assert!(width < 4 * nodes * nodes),
                Some(labels) => {
                    prop_assert_eq!(labels.len() as u64, 2 * nodes);
                    prop_assert!(labels[0] > gap.lo && labels[labels.len() - 1] < gap.hi);
                    prop_assert!(labels.is_sorted_by(|a, b| a < b));
                }
            }
        }

        #[test]
        fn a_window_that_is_labelled_anew_gives_each_node_a_label_of_its_own(around in any::<u64>(), level in 1..=14_u32) {
            let space = LabelSpace::WHOLE;
            let window = space.window(around, level);
            let count = LabelSpace::capacity(level);
            let labels: Vec<Label> = spread(window.first, window.last, count).collect();
            prop_assert!(labels.is_sorted_by(|a, b| a < b));
            prop_assert!(labels[0] > window.first && labels[labels.len() - 1] < window.last);
        }
    }
}
