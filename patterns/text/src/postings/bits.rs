//! Integers of up to 32 bits, packed with a fixed width and without gaps, lowest bit first.

/// The number of integers that are unpacked together. For any width, they fill whole words of four
/// bytes.
const GROUP: usize = 32;

/// The width in bits of the largest integer.
pub(super) fn width_of(largest: u32) -> u8 {
    (u32::BITS - largest.leading_zeros()) as u8
}

/// The length in bytes of `count` integers.
pub(super) fn bytes_of(count: usize, width: u8) -> usize {
    count.saturating_mul(width.into()).div_ceil(8)
}

/// Appends integers that have at most `width` bits.
pub(super) fn pack(integers: impl Iterator<Item = u32>, width: u8, out: &mut Vec<u8>) {
    let (mut word, mut bits) = (0_u64, 0_u32);
    for integer in integers {
        word |= u64::from(integer) << bits;
        bits += u32::from(width);
        while bits >= 8 {
            out.push(word as u8);
            word >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(word as u8);
    }
}

/// Reads the integer at index `n`; 0 after the end.
#[inline]
pub(super) fn get(bytes: &[u8], width: u8, n: usize) -> u32 {
    let bit = n * usize::from(width);
    let rest = bytes.get(bit / 8..).unwrap_or_default();
    let word = match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    (word >> (bit % 8)) as u32 & mask(width)
}

fn mask(width: u8) -> u32 {
    u32::MAX.checked_shr(u32::BITS - u32::from(width)).unwrap_or(0)
}

/// Fills `out` with unpacked integers, and with zeros after the end of `bytes`.
#[inline]
pub(super) fn unpack(bytes: &[u8], width: u8, out: &mut [u32]) {
    macro_rules! dispatch {
        ($($width:literal)*) => {
            match width {
                $($width => unpack_groups::<$width>(bytes, out),)*
                _ => out.fill(0),
            }
        };
    }
    dispatch!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
}

fn unpack_groups<const WIDTH: usize>(bytes: &[u8], out: &mut [u32]) {
    let mut groups = bytes.chunks(WIDTH * 4);
    for out in out.chunks_mut(GROUP) {
        let words = words::<WIDTH>(groups.next().unwrap_or_default());
        let integers = unpack_group::<WIDTH>(&words);
        match out.first_chunk_mut() {
            Some(all) => *all = integers,
            None => out.iter_mut().zip(integers).for_each(|(out, integer)| *out = integer),
        }
    }
}

/// Reads the words of a group; the last group may be shorter.
#[inline]
fn words<const WIDTH: usize>(group: &[u8]) -> [u32; WIDTH] {
    let mut words = [0; WIDTH];
    if group.len() == WIDTH * 4 {
        // A loop over whole words compiles to a copy.
        for (to, word) in words.iter_mut().zip(group.chunks_exact(4)) {
            *to = word.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        }
        return words;
    }
    let chunks = group.chunks_exact(4);
    let rest = chunks.remainder().iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let whole = chunks.map(|chunk| chunk.first_chunk().map_or(0, |word| u32::from_le_bytes(*word)));
    for (to, word) in words.iter_mut().zip(whole.chain([rest])) {
        *to = word;
    }
    words
}

/// All widths and positions are constants, so the loop compiles to straight-line code without
/// bounds checks.
#[inline]
fn unpack_group<const WIDTH: usize>(words: &[u32; WIDTH]) -> [u32; GROUP] {
    let mut out = [0; GROUP];
    for (n, out) in out.iter_mut().enumerate() {
        let (at, shift) = (n * WIDTH / 32, n * WIDTH % 32);
        let word = |at: usize| words.get(at).copied().unwrap_or(0);
        let low = word(at) >> shift;
        let is_split = shift + WIDTH > 32;
        let integer = if is_split { low | word(at + 1) << (32 - shift) } else { low };
        *out = integer & mask(WIDTH as u8);
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_integers_are_read_back(
            width in 0..=32_u8,
            integers in vec(any::<u32>(), 0..300)
        ) {
            let integers: Vec<u32> = integers.iter().map(|n| n & mask(width)).collect();
            let mut bytes = Vec::new();
            pack(integers.iter().copied(), width, &mut bytes);
            prop_assert_eq!(bytes.len(), bytes_of(integers.len(), width));
            let mut out = vec![7; integers.len()];
            unpack(&bytes, width, &mut out);
            prop_assert_eq!(&out, &integers);
            for (n, integer) in integers.iter().enumerate() {
                prop_assert_eq!(get(&bytes, width, n), *integer);
            }
        }
    }

    #[test]
    fn bytes_that_are_missing_count_as_zeros() {
        let mut out = [7; 40];
        unpack(&[0xFF], 5, &mut out);
        assert_eq!(out.get(..3).unwrap(), [31, 7, 0]);
        assert_eq!(get(&[0xFF], 5, 1), 7);
        assert_eq!(get(&[], 32, 9), 0);
    }
}
