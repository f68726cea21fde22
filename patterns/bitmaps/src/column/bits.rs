//! Packed integers of a fixed bit width.

/// The maximum width of a number that starts at any bit of a byte and is read with one eight-byte
/// load. Wider numbers take 64 bits.
const MOST_UNALIGNED: u32 = 56;

/// Numbers of the same width, packed without gaps, lowest bit first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits<'c> {
    bytes: &'c [u8],
    width: u32,
    mask: u64,
}

/// The bit width for numbers up to `largest`.
pub(super) fn width_of(largest: u64) -> u32 {
    match u64::BITS - largest.leading_zeros() {
        width if width > MOST_UNALIGNED => u64::BITS,
        width => width,
    }
}

impl<'c> Bits<'c> {
    /// Takes `count` numbers from the beginning of `bytes`; `None` if there are too few bytes.
    pub(super) fn take(bytes: &mut &'c [u8], count: usize, width: u8) -> Option<Self> {
        let width = u32::from(width);
        if width > MOST_UNALIGNED && width != u64::BITS {
            return None;
        }
        let (mine, rest) = bytes.split_at_checked(bytes_of(count, width)?)?;
        *bytes = rest;
        let mask = u64::MAX.checked_shr(u64::BITS - width).unwrap_or(0);
        Some(Self { bytes: mine, width, mask })
    }

    /// The number at index `n`; 0 after the last number.
    #[inline]
    pub(super) fn get(self, n: usize) -> u64 {
        let bit = n * self.width as usize;
        let rest = self.bytes.get(bit / 8..).unwrap_or_default();
        let word = match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => near_the_end(rest),
        };
        word >> (bit % 8) & self.mask
    }
}

/// Loads a little-endian number from fewer than eight bytes.
fn near_the_end(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The length in bytes of `count` numbers.
fn bytes_of(count: usize, width: u32) -> Option<usize> {
    Some(count.checked_mul(width as usize)?.div_ceil(8))
}

/// Appends numbers.
pub(super) fn append(numbers: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let (mut word, mut bits) = (0_u128, 0);
    for number in numbers {
        word |= u128::from(number) << bits;
        bits += width;
        if bits >= u64::BITS {
            out.extend_from_slice(&(word as u64).to_le_bytes());
            word >>= u64::BITS;
            bits -= u64::BITS;
        }
    }
    let rest = word.to_le_bytes();
    out.extend_from_slice(rest.get(..bits.div_ceil(8) as usize).unwrap_or_default());
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_of_any_width_come_back(
            (width, numbers) in (0..=64_u32).prop_flat_map(|width| {
                let largest = u64::MAX.checked_shr(64 - width).unwrap_or(0);
                (Just(width_of(largest)), vec(0..=largest, 0..50))
            })
        ) {
            let mut out = b"before".to_vec();
            append(numbers.iter().copied(), width, &mut out);
            let mut bytes = &out[6..];
            let bits = Bits::take(&mut bytes, numbers.len(), width as u8).unwrap();
            prop_assert!(bytes.is_empty());
            for (n, number) in numbers.iter().enumerate() {
                prop_assert_eq!(bits.get(n), *number);
            }
            bits.get(numbers.len() + 1_000);
            let more = Bits::take(&mut &out[6..], numbers.len() + 8, width as u8);
            prop_assert_eq!(more.is_none(), width > 0);
        }
    }
}
