//! Finds NULs in short strings, eight bytes at a time.
//!
//! Strings in keys are short: for a dozen bytes, calling `memchr` or `memcpy` costs more than the
//! work itself. Longer strings use those functions.

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns a word whose lowest set bit is the high bit of the lowest zero byte. Returns zero if no
/// byte is zero.
#[inline]
const fn nuls(word: u64) -> u64 {
    word.wrapping_sub(LOW) & !word & HIGH
}

/// Copies `from` to `to`, which has the same length. Returns whether `from` is free of NULs.
#[inline]
pub(super) fn copy_unless_nul(from: &[u8], to: &mut [u8]) -> bool {
    // The last word overlaps the previous one, so that no single bytes remain.
    if let (Some(last), Some(to_last)) = (from.last_chunk::<8>(), to.last_chunk_mut::<8>()) {
        *to_last = *last;
        let mut found = nuls(u64::from_le_bytes(*last));
        for (word, to) in from.as_chunks::<8>().0.iter().zip(to.as_chunks_mut::<8>().0) {
            *to = *word;
            found |= nuls(u64::from_le_bytes(*word));
        }
        return found == 0;
    }
    if let (Some(first), Some(last)) = (from.first_chunk::<4>(), from.last_chunk::<4>()) {
        if let Some(to) = to.first_chunk_mut() {
            *to = *first;
        }
        if let Some(to) = to.last_chunk_mut() {
            *to = *last;
        }
        let both =
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last));
        return nuls(both) == 0;
    }
    let mut free = true;
    for (byte, to) in from.iter().zip(to) {
        *to = *byte;
        free &= *byte != 0;
    }
    free
}

/// The position of the first NUL.
#[inline]
pub(super) fn find_nul(text: &[u8]) -> Option<usize> {
    // With fewer words, short strings pay for the call of `memchr`. With more words, the search of
    // long strings is slower than `memchr`.
    const WORDS: usize = 4;
    let (words, tail) = text.as_chunks::<8>();
    for (i, word) in words.iter().take(WORDS).enumerate() {
        let found = nuls(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(8 * i + found.trailing_zeros() as usize / 8);
        }
    }
    if words.len() > WORDS {
        return memchr::memchr(0, text);
    }
    tail.iter().position(|&byte| byte == 0).map(|at| at + 8 * words.len())
}
