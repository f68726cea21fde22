//! A block of postings: the layout is that of keyloom-text, in its module `postings`.

const VERSION: u8 = 1;

/// The documents of the block under the id `last`, each with the frequency of the term.
pub fn postings(bytes: &[u8], last: u32) -> Option<Vec<(u32, u32)>> {
    let ([flags, level, count, gaps, frequencies, _], mut rest) = bytes.split_first_chunk::<6>()?;
    if flags >> 4 != VERSION || *level > 32 || *gaps > 32 || *frequencies > 32 {
        return None;
    }
    varint(&mut rest)?;
    let (bounds, mut rest) = rest.split_first()?;
    for _ in 0..2 * usize::from(*bounds) {
        varint(&mut rest)?;
    }
    let count = usize::from(*count) + 1;
    let (of_gaps, rest) = rest.split_at_checked((count * usize::from(*gaps)).div_ceil(8))?;
    let (of_frequencies, _) =
        rest.split_at_checked((count * usize::from(*frequencies)).div_ceil(8))?;
    let first = last & !u32::MAX.checked_shr(32 - u32::from(*level)).unwrap_or(0);
    let mut next = u64::from(first);
    let posting = |at| {
        let document = next + u64::from(number(of_gaps, *gaps, at));
        next = document + 1;
        let document = u32::try_from(document).ok().filter(|document| *document <= last)?;
        Some((document, number(of_frequencies, *frequencies, at).saturating_add(1)))
    };
    (0..count).map(posting).collect()
}

/// Skips a varint, which has seven bits per byte, the lowest bits first.
fn varint(bytes: &mut &[u8]) -> Option<()> {
    let length = bytes.iter().take(5).position(|byte| *byte < 0x80)? + 1;
    *bytes = bytes.get(length..)?;
    Some(())
}

/// The integer at `at` among integers of `width` bits, the lowest bit first.
fn number(bytes: &[u8], width: u8, at: usize) -> u32 {
    let bit = |n: usize| bytes.get(n / 8).map_or(0, |byte| u32::from(byte >> (n % 8) & 1));
    let first = at * usize::from(width);
    (0..usize::from(width)).fold(0, |number, n| number | bit(first + n) << n)
}
