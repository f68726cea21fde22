//! A numeric dimension, divided into cells.

use std::fmt;
use std::ops::RangeInclusive;

use keyloom::{Error, Result};

/// A range of numbers that is mapped to a coordinate of a curve: it is divided into 2^bits cells of
/// equal width.
///
/// Any ordered number is possible: a price, a rating, a longitude, a temperature. An integer up to
/// 2^53 and a time in milliseconds since 1970 are exact as `f64`.
///
/// * *Monotone*: if x ≤ y, the cell of x is not after the cell of y. So the values of a box are in
///   the cells between the cells of its corners.
/// * *Nested*: the number of a cell without its last bit is the number of the enclosing cell, which
///   is twice as large.
/// * *Clamped*: a value outside the range is in the first or the last cell.
///
/// Each cell includes its lower end and excludes its upper end; the last cell includes both ends.
/// The ends are exact up to the rounding of `f64`. A value may share a cell with a box without
/// being inside the box, so queries compare the value itself, which is stored beside the key. The
/// range is part of the stored format.
///
/// ```
/// use keyloom_spatial::curve::{Dimension, Morton};
/// let price = Dimension::new(0.0..=1_000.0)?;
/// let rating = Dimension::new(1.0..=5.0)?;
/// assert_eq!(price.quantize(250.0, 2)?, 1);
/// assert_eq!(price.quantize(1e9, 2)?, 3);
///
/// let cell = |euro, stars| -> keyloom::Result<[u64; 2]> {
///     Ok([price.quantize(euro, 64)?, rating.quantize(stars, 64)?])
/// };
/// let code: u128 = Morton::encode(cell(19.9, 4.5)?);
/// let (low, high) = (Morton::encode(cell(10.0, 4.0)?), Morton::encode(cell(20.0, 5.0)?));
/// assert!(Morton::<2>::is_inside(code, low, high));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dimension {
    start: f64,
    width: f64,
    /// 1, or 1/2 if the width of the range exceeds the largest `f64`.
    scale: f64,
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, width, scale } = self;
        write!(f, "from {:?} of width {width:?}", start + 0.0)?;
        if *scale == 1.0 { Ok(()) } else { write!(f, ", times {scale}") }
    }
}

impl Dimension {
    /// The dimension of the numbers in `range`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if an end of the range is not finite, or if its start is not
    /// below its end.
    pub fn new(range: RangeInclusive<f64>) -> Result<Self> {
        let (start, end) = (*range.start(), *range.end());
        let refused = |why| {
            let value = format!("{start:?}..={end:?}");
            Err(Error::InvalidArgument { what: "the range of a dimension", value, why })
        };
        if !start.is_finite() || !end.is_finite() {
            return refused("both ends are finite numbers; values beyond them count as the ends");
        }
        if start >= end {
            return refused("its start is below its end");
        }
        let scale = if (end - start).is_finite() { 1.0 } else { 0.5 };
        Ok(Self { start: start * scale, width: end * scale - start * scale, scale })
    }

    /// The bits that define the range. Equal bits mean equal cells.
    pub(in super::super) fn bits_of_range(&self) -> [u64; 3] {
        [self.start, self.width, self.scale].map(|number| (number + 0.0).to_bits())
    }

    /// The cell of a value among 2^`bits` cells, counted from 0.
    ///
    /// A value has 53 significant bits, and so has the result. So with more than 53 bits, not every
    /// cell has values.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for NaN, and for a number of bits other than 1 to 64.
    pub fn quantize(&self, value: f64, bits: u32) -> Result<u64> {
        if !(1..=64).contains(&bits) {
            return Err(Error::InvalidArgument {
                what: "the number of bits of a coordinate",
                value: bits.to_string(),
                why: "a coordinate has 1 to 64 bits",
            });
        }
        if value.is_nan() {
            return Err(Error::InvalidArgument {
                what: "the value in a dimension",
                value: value.to_string(),
                why: "it has no place in the order of numbers; leave it out of the index",
            });
        }
        // Each step is monotone, even when rounded. Scaling by a power of two is exact.
        let share = (value * self.scale - self.start) / self.width;
        let cell = share * 2_f64.powi(bits as i32);
        // The cast truncates the fraction and saturates.
        Ok((cell as u64).min(u64::MAX >> (64 - bits)))
    }
}
