//! Groups the ids of a chunk by value.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use keyloom::Order;
use smallvec::SmallVec;

use crate::Words;
use crate::slices::{Slices, signed};

/// Up to this many ids are read one by one, which costs less than splitting them further by bits.
const FEW: u32 = 64;

/// The ids with the same value.
pub(super) enum Group<'g> {
    Many(&'g Words),
    /// The magnitude and the offset of each id.
    Few(&'g [(u64, u16)]),
}

impl Group<'_> {
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::Many(ids) => ids.count().into(),
            Self::Few(ids) => ids.len() as u64,
        }
    }

    /// Calls `visit` with each offset, in ascending order.
    pub(super) fn for_each(&self, visit: impl FnMut(u16)) {
        match self {
            Self::Many(ids) => ids.iter().for_each(visit),
            Self::Few(ids) => ids.iter().map(|(_, offset)| *offset).for_each(visit),
        }
    }
}

/// Buffers for splitting ids: one chunk per bit, allocated when first needed, and kept.
#[derive(Debug, Default)]
pub(super) struct ByValue {
    halves: Vec<Words>,
}

impl ByValue {
    /// Calls `visit` with each value that some of `ids` have, in `order`, until `visit` breaks. All
    /// of the ids must have a value.
    pub(super) fn visit(
        &mut self,
        slices: &Slices<'_>,
        ids: &Words,
        order: Order,
        visit: &mut impl FnMut(i64, Group<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let bits = slices.bits().len();
        if self.halves.len() <= bits {
            self.halves.resize(bits + 1, Words::new());
        }
        let Some((alike, halves)) = self.halves.split_first_mut() else {
            return ControlFlow::Continue(());
        };
        for is_negative in [order == Order::Ascending, order == Order::Descending] {
            alike.clone_from(ids);
            match is_negative {
                true => slices.keep_negative(alike),
                false => slices.drop_negative(alike),
            }
            // Negative numbers are ordered by descending magnitude.
            let ascending = (order == Order::Ascending) != is_negative;
            let mut visit = |magnitude, ids: Group<'_>| visit(signed(magnitude, is_negative), ids);
            part(slices, alike, ascending, (bits, 0), halves, &mut visit)?;
        }
        ControlFlow::Continue(())
    }
}

/// Splits ids by their lowest `bits` bits; `higher` holds the bits above.
fn part(
    slices: &Slices<'_>,
    ids: &Words,
    ascending: bool,
    (bits, higher): (usize, u64),
    halves: &mut [Words],
    visit: &mut impl FnMut(u64, Group<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match (ids.count(), bits.checked_sub(1)) {
        (0, _) => ControlFlow::Continue(()),
        (_, None) => visit(higher, Group::Many(ids)),
        (1..=FEW, _) => look_up(slices, ids, ascending, visit),
        (_, Some(bit)) => {
            let slice = slices.bits().get(bit).copied().flatten();
            let (Some(slice), Some((half, halves))) = (slice, halves.split_first_mut()) else {
                return part(slices, ids, ascending, (bit, higher), halves, visit);
            };
            for is_set in [!ascending, ascending] {
                half.clone_from(ids);
                match is_set {
                    true => half.and(slice),
                    false => half.and_not(slice),
                }
                let higher = higher | u64::from(is_set) << bit;
                part(slices, half, ascending, (bit, higher), halves, visit)?;
            }
            ControlFlow::Continue(())
        }
    }
}

fn look_up(
    slices: &Slices<'_>,
    ids: &Words,
    ascending: bool,
    visit: &mut impl FnMut(u64, Group<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let pairs = ids.iter().map(|offset| (slices.magnitude(offset), offset));
    let mut pairs: SmallVec<[(u64, u16); FEW as usize]> = pairs.collect();
    match ascending {
        true => pairs.sort_unstable(),
        false => pairs.sort_unstable_by_key(|(magnitude, offset)| (Reverse(*magnitude), *offset)),
    }
    for group in pairs.chunk_by(|a, b| a.0 == b.0) {
        if let Some((magnitude, _)) = group.first() {
            visit(*magnitude, Group::Few(group))?;
        }
    }
    ControlFlow::Continue(())
}
