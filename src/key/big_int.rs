//! Integers that are too large for the types of Rust.

use std::cmp::Ordering;
use std::fmt;

/// An integer of any size that a key can contain: up to 255 bytes of magnitude.
///
/// The integer is stored in its shortest form, so equal integers are equal values.
///
/// ```
/// use keyloom::key::{BigInt, Element, pack, unpack};
/// let big = BigInt::new(false, &[1; 20]).unwrap();
/// let key = pack(&Element::BigInt(big.clone()));
/// assert_eq!(key[..3], [0x1D, 20, 1]);
/// assert_eq!(unpack::<Element>(&key)?, Element::BigInt(big));
/// # Ok::<(), keyloom::key::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BigInt {
    negative: bool,
    magnitude: Vec<u8>,
}

impl BigInt {
    /// Creates an integer from a sign and a big-endian magnitude. Leading zeros are dropped.
    /// Returns `None` if more than 255 bytes remain.
    pub fn new(negative: bool, magnitude: &[u8]) -> Option<Self> {
        let zeros = magnitude.iter().take_while(|&&byte| byte == 0).count();
        let magnitude = magnitude.get(zeros..).unwrap_or_default().to_vec();
        let negative = negative && !magnitude.is_empty();
        (magnitude.len() <= usize::from(u8::MAX)).then_some(Self { negative, magnitude })
    }

    /// Whether the integer is below zero.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The absolute value, big-endian, without leading zeros; empty for zero.
    pub fn magnitude(&self) -> &[u8] {
        &self.magnitude
    }

    /// The same integer as an `i128`, if it fits.
    pub fn to_i128(&self) -> Option<i128> {
        if self.magnitude.len() > size_of::<u128>() {
            return None;
        }
        let magnitude = self.magnitude.iter().fold(0, |value, &byte| value << 8 | u128::from(byte));
        signed(self.negative, magnitude)
    }
}

/// The `i128` with this sign and magnitude, if the value fits.
pub(super) fn signed(negative: bool, magnitude: u128) -> Option<i128> {
    match negative {
        true => 0_i128.checked_sub_unsigned(magnitude),
        false => i128::try_from(magnitude).ok(),
    }
}

impl From<i128> for BigInt {
    fn from(value: i128) -> Self {
        let bytes = value.unsigned_abs().to_be_bytes();
        let zeros = value.unsigned_abs().leading_zeros() as usize / 8;
        Self { negative: value < 0, magnitude: bytes.get(zeros..).unwrap_or_default().to_vec() }
    }
}

impl Ord for BigInt {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_magnitude = |a: &Self, b: &Self| {
            a.magnitude.len().cmp(&b.magnitude.len()).then_with(|| a.magnitude.cmp(&b.magnitude))
        };
        match (self.negative, other.negative) {
            (true, true) => by_magnitude(other, self),
            (false, false) => by_magnitude(self, other),
            (negative, _) => {
                if negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }
}

impl PartialOrd for BigInt {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for BigInt {
    /// Shows the integer in decimal if it fits in an `i128`, otherwise in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(value) = self.to_i128() {
            return write!(f, "{value}");
        }
        f.write_str(if self.negative { "-0x" } else { "0x" })?;
        self.magnitude.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
