//! What the search for the next code needs of the numbers that codes are.

use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, BitOrAssign, BitXor, Not, Shl, Shr};

/// A number of 64 or 128 bits. Outside of this crate it can be used, and not implemented.
pub trait Word:
    Copy
    + Ord
    + Debug
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitOrAssign
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shl<usize, Output = Self>
    + Shr<usize, Output = Self>
{
    /// No bit.
    const ZERO: Self;
    /// The highest bit and all bits below it; none when there is no bit.
    fn up_to_highest_bit(self) -> Self;
    /// The lowest bit alone; none when there is no bit.
    fn lowest_bit(self) -> Self;
    /// The next number.
    fn successor(self) -> Option<Self>;
    /// The number before.
    fn predecessor(self) -> Option<Self>;
}

macro_rules! word {
    ($($number:ty)*) => {
        $(impl Word for $number {
            const ZERO: Self = 0;

            fn up_to_highest_bit(self) -> Self {
                Self::MAX.checked_shr(self.leading_zeros()).unwrap_or(0)
            }

            fn lowest_bit(self) -> Self {
                self & self.wrapping_neg()
            }

            fn successor(self) -> Option<Self> {
                self.checked_add(1)
            }

            fn predecessor(self) -> Option<Self> {
                self.checked_sub(1)
            }
        })*
    };
}

word!(u64 u128);
