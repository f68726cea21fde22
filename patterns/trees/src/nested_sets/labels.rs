//! Labels: the numbers that order the nodes, and the gaps between them.

use crate::NodeId;

/// A position in the total order. A node has a label at its start and one at its end.
pub(super) type Label = u128;

/// The first label of more than 64 bits; the first format had no such labels.
pub(super) const WIDE: Label = 1 << 64;

/// The labels from `first` to `last`, inclusive.
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

    /// The number of labels after the first.
    pub(super) fn width(self) -> u128 {
        self.last - self.first
    }
}

/// The label space: 16 to the power of `levels` labels.
///
/// Windows are aligned: a window of level n has 16ⁿ labels and is inside a window of the next
/// level. After a window is relabelled, at most 2ⁿ of its labels are in use, and half of the window
/// is free between the two nodes where the insert that caused the relabelling goes. Each sixteenth
/// of the other half is filled to at most about a quarter of its capacity. The whole space holds
/// 2³² labels in use, for 2³¹ nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LabelSpace {
    pub(super) levels: u32,
}

impl LabelSpace {
    /// All 128-bit numbers.
    pub(super) const WHOLE: Self = Self { levels: 32 };

    /// The greatest label. No node gets this label or the first label, 0.
    pub(super) fn end(self) -> Label {
        self.window(0, self.levels).last
    }

    /// The window of a level that contains a label.
    pub(super) fn window(self, around: Label, level: u32) -> Span {
        let inside = Label::MAX.checked_shr(Label::BITS - 4 * level).unwrap_or(0);
        Span { first: around & !inside, last: around | inside }
    }

    /// The number of labels of a window at this level that may be in use after relabelling.
    pub(super) fn capacity(level: u32) -> u64 {
        1 << level
    }
}

/// `n / parts` of `width`, rounded down.
pub(super) fn share(width: u128, n: u64, parts: u64) -> u128 {
    let (n, parts) = (u128::from(n), u128::from(parts.max(1)));
    n * (width / parts) + n * (width % parts) / parts
}

/// `count` labels strictly between two others, evenly spaced.
pub(super) fn spread(lo: Label, hi: Label, count: u64) -> impl Iterator<Item = Label> {
    let width = hi - lo;
    (1..=count).map(move |n| lo + share(width, n, count + 1))
}

/// The neighbours of an insertion point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The start of the parent is before the point, and a sibling is after it.
    Front,
    /// A sibling is before the point, and the end of the parent is after it.
    Back,
    /// There are siblings on both sides of the point, or on neither side.
    Inside,
}

/// An insertion point: between two adjacent labels, both in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) parent: Option<NodeId>,
    pub(super) lo: Label,
    pub(super) hi: Label,
    pub(super) side: Side,
}

impl Gap {
    /// Returns labels for `count` places, or `None` if the gap is narrower than `count` squared.
    ///
    /// Between two siblings, the labels are spread over the whole gap. At an end of the parent,
    /// more nodes are likely to follow. There, each node takes 3b/4 bits of a gap of b bits, which
    /// leaves room for its descendants. So 2 to the power of b/4 nodes can follow.
    pub(super) fn labels(&self, count: u64) -> Option<Vec<Label>> {
        if !self.has_room(count) {
            return None;
        }
        let width = self.hi - self.lo;
        let least = Self::least_width(count);
        // With a quarter of the bits, a million appends write two keys each. Labels of 64 bits were
        // used up after 164,553 appends, and each later append relabelled a window: a million
        // appends wrote 22.1 million keys.
        let shift = (width.ilog2() / 4).max(2);
        // A product that saturates is harmless: the next line limits it to half of the gap.
        let step = (width >> shift).saturating_mul(u128::from(count)) / 2;
        let taken = step.min(width / 2).max(least);
        let (lo, hi) = match self.side {
            Side::Inside => (self.lo, self.hi),
            Side::Back => (self.lo, self.lo + taken),
            Side::Front => (self.hi - taken, self.hi),
        };
        Some(spread(lo, hi, count).collect())
    }

    /// Whether [`labels`](Self::labels) returns labels for that many places.
    pub(super) fn has_room(&self, count: u64) -> bool {
        self.hi - self.lo >= Self::least_width(count)
    }

    fn least_width(count: u64) -> u128 {
        (u128::from(count) * u128::from(count)).max(2)
    }

    /// Labels for a window with `before` labels in use before the gap and `behind` after it, and
    /// the new gap between them. Half of the window goes to the gap. So the next nodes at this
    /// place have as much room as all other nodes of the window together. The window is relabelled
    /// again only after about as many inserts as it holds nodes.
    pub(super) fn relabelled(&self, window: Span, before: u64, behind: u64) -> Relabelled {
        let lo = window.first.saturating_sub(1);
        let sides = (window.last - lo) / 2;
        let left = share(sides, before, before + behind);
        let right = share(sides, behind, before + behind);
        let labels_before: Vec<Label> = spread(lo, lo + left, before).collect();
        let labels_behind: Vec<Label> = spread(window.last - right, window.last, behind).collect();
        let gap = Gap {
            parent: self.parent,
            lo: labels_before.last().copied().unwrap_or(lo),
            hi: labels_behind.first().copied().unwrap_or(window.last),
            side: self.side,
        };
        Relabelled { before: labels_before, gap, behind: labels_behind }
    }
}

/// The labels of a window after relabelling.
pub(super) struct Relabelled {
    pub(super) before: Vec<Label>,
    pub(super) gap: Gap,
    pub(super) behind: Vec<Label>,
}

impl Relabelled {
    /// `count` labels in the gap.
    pub(super) fn new_labels(&self, count: u64) -> Vec<Label> {
        let Gap { lo, hi, .. } = self.gap;
        self.gap.labels(count).unwrap_or_else(|| spread(lo, hi, count).collect())
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
        assert_eq!(space.window(7, 1), Span { first: 0, last: 15 });
        assert_eq!(space.window(17, 1), Span { first: 16, last: 31 });
        assert_eq!(space.window(7, 16), Span { first: 0, last: WIDE - 1 });
        assert_eq!(space.window(u128::MAX, 31).first, 15 << 124);
        assert_eq!(space.window(7, 32), Span { first: 0, last: u128::MAX });
        assert_eq!(space.end(), u128::MAX);
        assert_eq!(LabelSpace { levels: 3 }.end(), 4_095);
    }

    #[test]
    fn the_whole_space_takes_two_to_the_power_of_31_nodes() {
        let labels = LabelSpace::capacity(32);
        assert_eq!(labels, 2 << 31);
        // Labels spread over the space are distinct: the distances between neighbours differ by at
        // most one.
        let some: Vec<Label> = spread(0, u128::MAX, labels).take(1_000).collect();
        assert!(some.windows(2).all(|pair| pair[1] - pair[0] >= (1 << 96) - (1 << 65)));
        assert!(share(u128::MAX, labels, labels + 1) < u128::MAX);
        assert_eq!(share(u128::MAX, labels, labels), u128::MAX);
    }

    /// Appends nodes to a gap until the gap is full or `most` nodes have been appended.
    fn appended(gap: &Gap, nodes_each: u64, most: u64) -> u64 {
        let (mut gap, mut appended) = (*gap, 0);
        while appended < most {
            let Some(labels) = gap.labels(2 * nodes_each) else { break };
            match gap.side {
                Side::Front => gap.hi = labels[0],
                _ => gap.lo = labels[labels.len() - 1],
            }
            appended += nodes_each;
        }
        appended
    }

    /// The gap at an end of a node whose interval has `bits` bits.
    fn end_of(bits: u32, side: Side) -> Gap {
        Gap { parent: None, lo: WIDE, hi: WIDE + (1 << bits), side }
    }

    #[test]
    fn a_gap_of_n_bits_takes_two_to_the_power_of_a_quarter_of_them() {
        let millions = if cfg!(debug_assertions) { 1 } else { 11 };
        for side in [Side::Back, Side::Front] {
            // The roots, the children of a root, and their children.
            assert_eq!(appended(&end_of(127, side), 1, 1_000_000), 1_000_000);
            let most = millions * 1_000_000;
            assert_eq!(appended(&end_of(95, side), 1, most), most);
            assert!(appended(&end_of(72, side), 1, 1_000_000) > 600_000);
            for (bits, least) in [(71, 1 << 17), (54, 1 << 13), (40, 1 << 10)] {
                let nodes = appended(&end_of(bits, side), 1, u64::MAX);
                assert!(nodes > least, "{nodes} in a gap of {bits} bits");
            }
        }
    }

    #[test]
    fn loads_take_room_for_what_they_load() {
        let loads = if cfg!(debug_assertions) { 2_000 } else { 20_000 };
        for bits in [95, 126] {
            let most = 200 * loads;
            assert_eq!(appended(&end_of(bits, Side::Back), 200, most), most);
        }
    }

    proptest! {
        #[test]
        fn a_gap_gives_labels_that_stand_in_order_between_its_ends(
            lo in any::<u128>(), width in any::<u128>(), shifts in [0..128_u32, 0..128], nodes in 1..200_u64, side in 0..3,
        ) {
            let side = [Side::Front, Side::Back, Side::Inside][side as usize];
            let lo = lo >> shifts[0];
            let width = (width >> shifts[1]).min(u128::MAX - lo).max(1);
            let lo = lo.min(u128::MAX - width);
            let gap = Gap { parent: None, lo, hi: lo + width, side };
            match gap.labels(2 * nodes) {
                None => prop_assert!(width < u128::from(4 * nodes * nodes)),
                Some(labels) => {
                    prop_assert_eq!(labels.len() as u64, 2 * nodes);
                    prop_assert!(labels[0] > gap.lo && labels[labels.len() - 1] < gap.hi);
                    prop_assert!(labels.is_sorted_by(|a, b| a < b));
                }
            }
        }

        #[test]
        fn relabelling_of_a_window_gives_each_node_its_own_label(
            around in any::<u128>(), shift in 0..128_u32, level in 2..=14_u32, parts in [0..100_u64, 0..100], side in 0..3,
        ) {
            let window = LabelSpace::WHOLE.window(around >> shift, level);
            let side = [Side::Front, Side::Back, Side::Inside][side as usize];
            let gap = Gap { parent: None, lo: window.first, hi: window.last, side };
            // Use as many labels as the window may hold.
            let used = LabelSpace::capacity(level) - 2;
            let before = used * parts[0] / (parts[0] + parts[1]).max(1);
            let new = gap.relabelled(window, before, used - before);
            let labels: Vec<Label> = new.before.iter().chain(&new.new_labels(2)).chain(&new.behind).copied().collect();
            prop_assert_eq!((new.before.len() as u64, labels.len() as u64), (before, used + 2));
            prop_assert!(labels.is_sorted_by(|a, b| a < b));
            prop_assert!(labels[0] >= window.first.max(1) && labels[labels.len() - 1] < window.last);
            // Half of the window is at the gap, and no sixteenth of it is nearly full.
            for part in 0..16 {
                let first = window.first + part * (window.width() / 16 + 1);
                let part = LabelSpace::WHOLE.window(first, level - 1);
                let inside = labels.iter().filter(|label| part.contains(**label)).count() as u64;
                prop_assert!(inside <= LabelSpace::capacity(level - 1) / 4 + 3, "{inside} of {used}");
            }
        }
    }
}
