//! The stored positions of a block.

use std::cmp::Ordering;

use super::bits::{bytes_of, get, pack, unpack, width_of};
use super::{BLOCK_POSTINGS, Malformed, PostingsSlice};

/// The positions of the postings of a block, not yet decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occurrences<'b> {
    positions: (&'b [u8], u8),
}

/// Appends the positions of some postings.
pub(super) fn encode(postings: &PostingsSlice<'_>, out: &mut Vec<u8>) {
    let gaps = postings.iter().flat_map(|posting| {
        let mut before = 0;
        posting.positions.iter().map(move |position| {
            let gap = position.wrapping_sub(before);
            before = *position;
            gap
        })
    });
    let gaps: Vec<u32> = gaps.collect();
    let width = width_for(&gaps);
    out.push(width);
    pack(gaps.into_iter(), width, out);
}

/// The width of a column: at least one bit per integer if there are many, so that a short value
/// cannot represent a long list.
fn width_for(column: &[u32]) -> u8 {
    let width = width_of(column.iter().copied().max().unwrap_or(0));
    if column.len() > BLOCK_POSTINGS { width.max(1) } else { width }
}

impl<'b> Occurrences<'b> {
    /// Parses the positions of the postings of a block. Their number is `total`.
    pub(crate) fn parse(bytes: &'b [u8], total: u64) -> Result<Self, Malformed> {
        let total =
            usize::try_from(total).map_err(|_| Malformed::Broken("too many occurrences"))?;
        let (width, bytes) =
            bytes.split_first().ok_or(Malformed::Broken("too few bytes of occurrences"))?;
        if *width > 32 || *width == 0 && total > BLOCK_POSTINGS {
            return Err(Malformed::Broken("a width of occurrences"));
        }
        match bytes.len().cmp(&bytes_of(total, *width)) {
            Ordering::Equal => Ok(Self { positions: (bytes, *width) }),
            Ordering::Less => Err(Malformed::Broken("too few bytes of occurrences")),
            Ordering::Greater => Err(Malformed::Broken("bytes after the occurrences")),
        }
    }

    /// Appends the positions of the `freq` occurrences of a posting. `before` is the number of
    /// occurrences of earlier postings.
    pub(crate) fn positions(&self, before: usize, freq: u32, out: &mut Vec<u32>) {
        let (bytes, width) = self.positions;
        let gaps = (before..before.saturating_add(freq as usize)).map(|n| get(bytes, width, n));
        out.extend(gaps.scan(0_u32, |position, gap| {
            *position = position.wrapping_add(gap);
            Some(*position)
        }));
    }

    /// All positions of postings with the frequencies `freqs`.
    pub(super) fn all(&self, freqs: &[u32]) -> Vec<u32> {
        let (bytes, width) = self.positions;
        let mut gaps = vec![0; freqs.iter().map(|freq| *freq as usize).sum()];
        unpack(bytes, width, &mut gaps);
        sums(gaps, freqs)
    }
}

/// Converts gaps to values: the prefix sums within each posting.
fn sums(mut gaps: Vec<u32>, freqs: &[u32]) -> Vec<u32> {
    let mut rest = gaps.as_mut_slice();
    for freq in freqs {
        let Some((mine, others)) = rest.split_at_mut_checked(*freq as usize) else { break };
        mine.iter_mut().fold(0, |sum: u32, gap| {
            *gap = gap.wrapping_add(sum);
            *gap
        });
        rest = others;
    }
    gaps
}
