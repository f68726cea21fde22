//! The next code inside a box, and the last one before: BIGMIN and LITMAX.
//!
//! Tropf and Herzog go through the bits one by one with a table of cases. All of it can be had from
//! whole words. Masked to the bits of one dimension, codes compare as the coordinates do; and the
//! highest bit in which two of them differ is where one leaves the other. So the search takes a few
//! operations per dimension, and is the same for any number of dimensions.

use super::morton::Morton;

/// The bits of each dimension, of the last one first.
fn lanes<M: Morton<N>, const N: usize>() -> impl Iterator<Item = M> {
    (0..N).map(|dimension| M::LANE << dimension)
}

pub(super) fn is_inside<M: Morton<N>, const N: usize>(code: M, low: M, high: M) -> bool {
    let between = |lane| (low & lane..=high & lane).contains(&(code & lane));
    code <= M::LAST && lanes::<M, N>().all(between)
}

pub(super) fn next_inside<M: Morton<N>, const N: usize>(code: M, low: M, high: M) -> Option<M> {
    first_from(code.successor()?, low, high)
}

/// The curve read backwards is the curve with all bits turned over, and so is the box.
pub(super) fn last_inside<M: Morton<N>, const N: usize>(code: M, low: M, high: M) -> Option<M> {
    let turned = |code: M| M::LAST ^ code;
    first_from(turned(code.predecessor()?.min(M::LAST)), turned(high), turned(low)).map(turned)
}

/// The first code inside the box that is not before `from`.
///
/// A code behind `from` has its bits down to some 0 of `from`, has a 1 there, and anything below.
/// The lower this *step* is, the sooner the code comes; and below it, it takes the least that the
/// box allows.
fn first_from<M: Morton<N>, const N: usize>(from: M, low: M, high: M) -> Option<M> {
    let is_box = low.is_inside(low, high) && high <= M::LAST;
    if !is_box || from > M::LAST {
        return None;
    }
    let mut outside = M::ZERO;
    let mut room = M::ZERO;
    for lane in lanes::<M, N>() {
        let (at, least, most) = (from & lane, low & lane, high & lane);
        if at < least {
            outside |= at ^ least;
        } else if at > most {
            outside |= at ^ most;
        }
        if at < most {
            // The zeros that can become ones without passing `high`: those from the first
            // difference on.
            room |= (at ^ most).up_to_highest_bit() & lane & !from;
        }
    }
    if outside == M::ZERO {
        return Some(from);
    }
    // With this bit the cells that begin as `from` does are all outside.
    let left = outside.up_to_highest_bit();
    let leaving = left ^ (left >> 1);
    let is_below_the_box = from & leaving == M::ZERO;
    let step = if is_below_the_box { leaving } else { (room & !left).lowest_bit() };
    if step == M::ZERO {
        return None;
    }
    let corner = (from & !step.up_to_highest_bit()) | step;
    Some(lanes::<M, N>().fold(M::ZERO, |code, lane| code | (corner & lane).max(low & lane)))
}
