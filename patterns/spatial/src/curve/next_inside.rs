//! The next code inside a box, and the previous one: BIGMIN and LITMAX.
//!
//! Tropf and Herzog examine the bits one by one with a table of cases. The same result follows from
//! operations on whole words. Masked to the bits of one dimension, codes compare like the
//! coordinates. The highest bit in which two codes differ decides which is greater. So the search
//! takes a few operations per dimension, and is the same for any number of dimensions.

use super::word::Word;

/// The layout of the codes of an `N`-dimensional curve.
#[derive(Clone, Copy)]
pub(super) struct Layout<M, const N: usize> {
    /// The last code of the curve.
    pub(super) last: M,
    /// The mask of the bits of the last dimension.
    pub(super) lane: M,
}

impl<M: Word, const N: usize> Layout<M, N> {
    /// The bits of each dimension, beginning with the last dimension.
    fn lanes(self) -> impl Iterator<Item = M> {
        (0..N).map(move |dimension| self.lane << dimension)
    }

    pub(super) fn is_inside(self, code: M, low: M, high: M) -> bool {
        let between = |lane| (low & lane..=high & lane).contains(&(code & lane));
        code <= self.last && self.lanes().all(between)
    }

    pub(super) fn next_inside(self, code: M, low: M, high: M) -> Option<M> {
        self.first_from(code.successor()?, low, high)
    }

    /// With all bits inverted, the curve runs backwards, and the corners of the box change places.
    pub(super) fn last_inside(self, code: M, low: M, high: M) -> Option<M> {
        let turned = |code: M| self.last ^ code;
        let from = turned(code.predecessor()?.min(self.last));
        self.first_from(from, turned(high), turned(low)).map(turned)
    }

    /// The first code inside the box that is not before `from`.
    ///
    /// A code after `from` keeps the bits of `from` above some 0, has a 1 in the place of this 0,
    /// and has any bits below. This place is the *step*. A lower step gives a smaller code. Below
    /// the step, the code has the smallest bits that the box allows.
    fn first_from(self, from: M, low: M, high: M) -> Option<M> {
        let is_box = self.is_inside(low, low, high) && high <= self.last;
        if !is_box || from > self.last {
            return None;
        }
        let mut outside = M::ZERO;
        let mut room = M::ZERO;
        for lane in self.lanes() {
            let (at, least, most) = (from & lane, low & lane, high & lane);
            if at < least {
                outside |= at ^ least;
            } else if at > most {
                outside |= at ^ most;
            }
            if at < most {
                // The zeros of `from` that can become ones without exceeding `high`: the zeros from
                // the first difference on.
                room |= (at ^ most).up_to_highest_bit() & lane & !from;
            }
        }
        if outside == M::ZERO {
            return Some(from);
        }
        // All cells whose codes agree with `from` down to this bit are outside.
        let left = outside.up_to_highest_bit();
        let leaving = left ^ (left >> 1);
        let is_below_the_box = from & leaving == M::ZERO;
        let step = if is_below_the_box { leaving } else { (room & !left).lowest_bit() };
        if step == M::ZERO {
            return None;
        }
        let corner = (from & !step.up_to_highest_bit()) | step;
        Some(self.lanes().fold(M::ZERO, |code, lane| code | (corner & lane).max(low & lane)))
    }
}
