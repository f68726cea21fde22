//! The Hilbert curve in two dimensions.

use keyloom::{Error, Result};

use super::morton::Morton;

/// The Hilbert curve through a grid of 2^`order` by 2^`order` cells; see the [module](super).
///
/// It begins in the cell `[0, 0]`, goes first along coordinate 1 when the order is odd and along
/// coordinate 0 when it is even, and ends in the cell `[2^order - 1, 0]`. The curve of a lower order tells
/// the same of larger cells: without its last two bits, an index is that of the cell of twice the size.
///
/// ```
/// use keyloom_patterns::general::dimensionality_reduction::curve::Hilbert;
/// let curve = Hilbert::new(2)?;
/// let cells = (0..16).map(|index| curve.decode(index)).collect::<Vec<_>>();
/// assert_eq!(cells[..6], [[0, 0], [1, 0], [1, 1], [0, 1], [0, 2], [0, 3]]);
/// assert_eq!(curve.encode([0, 3]), 5);
/// assert_eq!(Hilbert::new(1)?.encode([0, 3].map(|coordinate| coordinate >> 1)), 5 >> 2);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hilbert {
    order: u32,
}

impl Hilbert {
    /// The curve of the given order, 1 to 32: the bits of a coordinate. The order is part of the format of
    /// what is kept under its indexes.
    ///
    /// # Errors
    /// [`Error::BadOption`] for any other order.
    pub fn new(order: u32) -> Result<Self> {
        match order {
            1..=32 => Ok(Self { order }),
            _ => Err(Error::BadOption {
                what: "the order of a Hilbert curve",
                value: order.to_string(),
                why: "a curve has an order of 1 to 32, the bits of each coordinate",
            }),
        }
    }

    /// The order: the bits of a coordinate.
    pub fn order(&self) -> u32 {
        self.order
    }

    /// The index of a cell, of twice the order in bits. Bits of a coordinate above the order are ignored.
    ///
    /// Cost: a few operations per bit of a coordinate, without a branch.
    pub fn encode(&self, coordinates: [u32; 2]) -> u64 {
        let [x, y] = coordinates.map(|coordinate| coordinate & self.coordinate_bits());
        // Of the two bits of a digit the lower one is the same in each of the four positions of the curve.
        let lower = x ^ y;
        let mut upper = 0;
        let (mut is_swapped, mut is_turned) = (0, 0);
        for level in (0..self.order).rev() {
            let low = lower >> level & 1;
            let high = (x >> level & 1) ^ (low & is_swapped) ^ is_turned;
            upper = upper << 1 | high;
            is_swapped ^= 1 ^ high ^ low;
            is_turned ^= high & low;
        }
        Morton::encode([upper, lower])
    }

    /// The cell of an index: the inverse of [`encode`](Self::encode). Bits above twice the order are
    /// ignored.
    ///
    /// Cost: a fixed number of operations on whole words: the digits tell all positions at once.
    pub fn decode(&self, index: u64) -> [u32; 2] {
        let bits = self.coordinate_bits();
        let [upper, lower] = Morton::<2>::decode(index).map(|half| half & bits);
        let is_swapped = parity_above(!(upper ^ lower) & bits);
        let is_turned = parity_above(upper & lower);
        let x = upper ^ (lower & is_swapped) ^ is_turned;
        [x & bits, (x ^ lower) & bits]
    }

    fn coordinate_bits(&self) -> u32 {
        u32::MAX >> (32 - self.order)
    }
}

/// Each bit: whether the number of ones above it is odd.
fn parity_above(word: u32) -> u32 {
    let word = word ^ word >> 1;
    let word = word ^ word >> 2;
    let word = word ^ word >> 4;
    let word = word ^ word >> 8;
    let word = word ^ word >> 16;
    word >> 1
}
