//! Covers: the runs of a curve that a region occupies.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::area::CellRelation;
use super::curve::Morton;

/// A region in the space of a Z-order curve of `N` dimensions.
pub(super) trait Region<const N: usize> {
    /// The relation of the region to a block, given by its lowest and highest coordinates.
    fn relation(&self, low: [u32; N], high: [u32; N]) -> CellRelation;

    /// The size of a block in any unit. The largest blocks are divided first.
    fn size(&self, low: [u32; N], high: [u32; N]) -> f64;

    /// The corners of a box that contains the region.
    fn hull(&self) -> ([u32; N], [u32; N]);
}

/// A box on the curve that contains a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hull {
    pub(super) low: u64,
    pub(super) high: u64,
    /// Finds the first code after `code` that is in the box. A function pointer, which hides the
    /// number of dimensions.
    next: fn(code: u64, low: u64, high: u64) -> Option<u64>,
    has: fn(code: u64, low: u64, high: u64) -> bool,
}

impl Hull {
    /// The hull of a region that may have any code.
    const EVERYTHING: Self =
        Self { low: 0, high: u64::MAX, next: |_, _, _| None, has: |_, _, _| true };

    pub(super) fn of<const N: usize>(region: &impl Region<N>) -> Self
    where
        u64: Morton<N, Coordinate = u32>,
    {
        let (low, high) = region.hull();
        Self {
            low: u64::encode(low),
            high: u64::encode(high),
            next: <u64 as Morton<N>>::next_inside,
            has: <u64 as Morton<N>>::is_inside,
        }
    }

    /// The first code in the box that is not before `code`.
    pub(super) fn first_from(&self, code: u64) -> Option<u64> {
        match (self.has)(code, self.low, self.high) {
            true => Some(code),
            false => (self.next)(code, self.low, self.high),
        }
    }
}

/// An interval of the curve from one code to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Whether the whole run is inside the region.
    pub(super) is_inside: bool,
}

/// The runs of a curve that a region occupies, sorted and disjoint, and the ranges in which they
/// are read. A range may contain gaps.
#[derive(Clone, Debug)]
pub(super) struct Cover {
    pub(super) runs: Vec<Run>,
    /// For each range, the index after its last run.
    pub(super) ranges: Vec<usize>,
    pub(super) hull: Hull,
}

/// The number of blocks per range of the budget. Blocks that are adjacent on the curve are merged.
/// If the budget is still exceeded, ranges are joined over the smallest gaps.
// More blocks fit the region better, and take longer to compute.
pub(super) const BLOCKS_PER_RANGE: usize = 4;

impl Cover {
    /// The empty cover.
    pub(super) fn none() -> Self {
        Self::of_runs(Vec::new(), 0)
    }

    /// The cover of `region` in at most `budget` ranges.
    ///
    /// Repeatedly halves the largest block that is across the border, until there are enough
    /// blocks. Each block is the smallest one around its part of the hull. Without this, a circle
    /// of 1 km took 40 halvings to reach blocks of its size.
    pub(super) fn of<const N: usize>(region: &impl Region<N>, budget: usize) -> Self
    where
        u64: Morton<N, Coordinate = u32>,
    {
        let most = budget.saturating_mul(BLOCKS_PER_RANGE);
        let mut runs = Vec::new();
        let mut across = BinaryHeap::new();
        let hull = region.hull();
        add(region, &hull, Block::whole(), &mut across, &mut runs);
        while runs.len() + across.len() < most
            && let Some(Sized { block, .. }) = across.pop()
        {
            match block.halves() {
                Some(halves) => {
                    for half in halves {
                        add(region, &hull, half, &mut across, &mut runs);
                    }
                }
                None => runs.push(block.run(false)),
            }
        }
        runs.extend(across.into_iter().map(|sized| sized.block.run(false)));
        Self { hull: Hull::of(region), ..Self::of_runs(runs, budget) }
    }

    /// The cover of disjoint runs in at most `budget` ranges.
    pub(super) fn of_runs(mut runs: Vec<Run>, budget: usize) -> Self {
        runs.sort_unstable_by_key(|run| run.first);
        runs.dedup_by(|next, run| run.take_in(next));
        let ranges = ranges(&runs, budget);
        Self { runs, ranges, hull: Hull::EVERYTHING }
    }

    /// The same cover, without the part before `code` if a code is given.
    pub(super) fn from(mut self, code: Option<u64>) -> Self {
        if let Some(code) = code {
            self.skip_to(code);
        }
        self
    }

    /// Removes the part before a code.
    pub(super) fn skip_to(&mut self, code: u64) {
        let skipped = self.runs.partition_point(|run| run.last < code);
        self.runs.drain(..skipped);
        self.ranges.retain(|end| *end > skipped);
        self.ranges.iter_mut().for_each(|end| *end -= skipped);
        if let Some(first) = self.runs.first_mut() {
            first.first = first.first.max(code);
        }
    }
}

/// Adds the part of a block that is in the hull of the region.
fn add<const N: usize>(
    region: &impl Region<N>,
    hull: &([u32; N], [u32; N]),
    block: Block<N>,
    across: &mut BinaryHeap<Sized<N>>,
    runs: &mut Vec<Run>,
) where
    u64: Morton<N, Coordinate = u32>,
{
    let Some(block) = block.around(hull) else { return };
    let (low, high) = block.corners();
    match region.relation(low, high) {
        CellRelation::Outside => {}
        CellRelation::Inside => runs.push(block.run(true)),
        CellRelation::Across => across.push(Sized { size: region.size(low, high), block }),
    }
}

/// The ends of at most `budget` ranges. The gaps within the ranges are as small as possible.
fn ranges(runs: &[Run], budget: usize) -> Vec<usize> {
    let gap = |at: &usize| match runs.get(at.wrapping_sub(1)..=*at) {
        Some([before, behind]) => behind.first - before.last - 1,
        _ => 0,
    };
    // Adjacent runs stay in one range; one of them is inside the region, the other across its
    // border.
    let mut ends: Vec<usize> = (1..runs.len()).filter(|at| gap(at) > 0).collect();
    let kept = budget.saturating_sub(1);
    if ends.len() > kept {
        ends.sort_unstable_by_key(|at| std::cmp::Reverse(gap(at)));
        ends.truncate(kept);
        ends.sort_unstable();
    }
    if !runs.is_empty() {
        ends.push(runs.len());
    }
    ends
}

impl Run {
    /// Merges the next run into this one if they are adjacent and both inside or both across.
    fn take_in(&mut self, next: &Self) -> bool {
        let is_one =
            self.is_inside == next.is_inside && self.last.checked_add(1) == Some(next.first);
        if is_one {
            self.last = next.last;
        }
        is_one
    }
}

/// All codes that begin with the same bits: a box in space.
#[derive(Clone, Copy, Debug)]
struct Block<const N: usize> {
    /// The first code.
    first: u64,
    /// The number of shared bits.
    bits: u32,
}

impl<const N: usize> Block<N>
where
    u64: Morton<N, Coordinate = u32>,
{
    /// The number of bits of a whole code.
    const CODE_BITS: u32 = <u64 as Morton<N>>::BITS * N as u32;

    fn whole() -> Self {
        Self { first: 0, bits: 0 }
    }

    fn last(&self) -> u64 {
        let free = Self::CODE_BITS - self.bits;
        self.first | u64::MAX.checked_shr(u64::BITS - free).unwrap_or(0)
    }

    fn run(&self, is_inside: bool) -> Run {
        Run { first: self.first, last: self.last(), is_inside }
    }

    fn corners(&self) -> ([u32; N], [u32; N]) {
        (self.first.decode(), self.last().decode())
    }

    /// The smallest block around the part of a box that is in this block, if there is one. The
    /// codes of a box are between those of its lowest and its highest corner.
    fn around(&self, (low, high): &([u32; N], [u32; N])) -> Option<Self> {
        let ((mut from, mut to), mut is_empty) = (self.corners(), false);
        let sides = from.iter_mut().zip(&mut to).zip(low.iter().zip(high));
        sides.for_each(|((from, to), (low, high))| {
            (*from, *to) = (*low.max(from), *high.min(to));
            is_empty |= *from > *to;
        });
        let (first, last) = (u64::encode(from), u64::encode(to));
        let free = u64::BITS - (first ^ last).leading_zeros();
        let first = first & u64::MAX.checked_shl(free).unwrap_or(0);
        (!is_empty).then_some(Self { first, bits: Self::CODE_BITS - free })
    }

    fn halves(&self) -> Option<[Self; 2]> {
        let bits = self.bits + 1;
        let bit = Self::CODE_BITS.checked_sub(bits)?;
        Some([Self { bits, ..*self }, Self { bits, first: self.first | 1 << bit }])
    }
}

/// A block, ordered by its size.
struct Sized<const N: usize> {
    size: f64,
    block: Block<N>,
}

impl<const N: usize> Ord for Sized<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.size.total_cmp(&other.size)
    }
}

impl<const N: usize> PartialOrd for Sized<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> PartialEq for Sized<N> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<const N: usize> Eq for Sized<N> {}
