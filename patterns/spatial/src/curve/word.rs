//! The operations on codes that the search for the next code needs.

use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, BitOrAssign, BitXor, Not, Shl, Shr};

/// A number of 64 or 128 bits. Other crates can use the trait but not implement it.
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
    /// Zero.
    const ZERO: Self;
    /// The highest set bit and all bits below it; zero for zero.
    fn up_to_highest_bit(self) -> Self;
    /// The lowest set bit; zero for zero.
    fn lowest_bit(self) -> Self;
    /// The next number; `None` after the greatest number.
    fn successor(self) -> Option<Self>;
    /// The previous number; `None` before zero.
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
