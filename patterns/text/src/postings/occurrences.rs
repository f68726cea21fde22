//! The stored occurrences of a block.

use super::bits::{bytes_of, get, pack, unpack, width_of};
use super::{BLOCK_POSTINGS, Detail, Malformed, Occurrence, PostingsSlice};

/// The occurrences of the postings of a block, not yet decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occurrences<'b> {
    positions: (&'b [u8], u8),
    /// Start offsets and lengths of tokens, if they are stored.
    offsets: Option<[(&'b [u8], u8); 2]>,
}

/// Appends the occurrences of some postings.
pub(super) fn encode(postings: &PostingsSlice<'_>, detail: Detail, out: &mut Vec<u8>) {
    let all = postings.occurrences;
    let gaps = |value: fn(&Occurrence) -> u32| {
        let each = postings.iter().flat_map(move |posting| {
            let mut before = 0;
            posting.occurrences.iter().map(move |occurrence| {
                let gap = value(occurrence).wrapping_sub(before);
                before = value(occurrence);
                gap
            })
        });
        each.collect::<Vec<u32>>()
    };
    let mut columns = vec![gaps(|occurrence| occurrence.position)];
    if detail == Detail::Offsets {
        columns.push(gaps(|occurrence| occurrence.start));
        columns.push(all.iter().map(|one| one.end.wrapping_sub(one.start)).collect());
    }
    let widths: Vec<u8> = columns.iter().map(|column| width_for(column)).collect();
    out.extend_from_slice(&widths);
    for (column, width) in columns.into_iter().zip(widths) {
        pack(column.into_iter(), width, out);
    }
}

/// The width of a column: at least one bit per integer if there are many, so that a short value
/// cannot represent a long list.
fn width_for(column: &[u32]) -> u8 {
    let width = width_of(column.iter().copied().max().unwrap_or(0));
    if column.len() > BLOCK_POSTINGS { width.max(1) } else { width }
}

impl<'b> Occurrences<'b> {
    /// Parses the occurrences of the postings of a block. Their number is `total`.
    pub(crate) fn parse(
        mut bytes: &'b [u8],
        total: u64,
        detail: Detail,
    ) -> Result<Self, Malformed> {
        let columns = if detail == Detail::Offsets { 3 } else { 1 };
        let total =
            usize::try_from(total).map_err(|_| Malformed::Broken("too many occurrences"))?;
        let widths = take(&mut bytes, columns)?;
        let mut column = |n: usize| {
            let width = widths.get(n).copied().unwrap_or(0);
            if width > 32 || width == 0 && total > BLOCK_POSTINGS {
                return Err(Malformed::Broken("a width of occurrences"));
            }
            Ok((take(&mut bytes, bytes_of(total, width))?, width))
        };
        let positions = column(0)?;
        let offsets = match detail {
            Detail::Offsets => Some([column(1)?, column(2)?]),
            Detail::Frequencies | Detail::Positions => None,
        };
        match bytes {
            [] => Ok(Self { positions, offsets }),
            _ => Err(Malformed::Broken("bytes after the occurrences")),
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

    /// All occurrences of postings with the frequencies `freqs`.
    pub(super) fn all(&self, freqs: &[u32]) -> Vec<Occurrence> {
        let total = freqs.iter().map(|freq| *freq as usize).sum();
        let column = |(bytes, width): (&[u8], u8)| {
            let mut column = vec![0; total];
            unpack(bytes, width, &mut column);
            column
        };
        let positions = sums(column(self.positions), freqs);
        let [starts, lengths] = match self.offsets {
            Some([starts, lengths]) => [sums(column(starts), freqs), column(lengths)],
            None => [vec![0; total], vec![0; total]],
        };
        let each = positions.into_iter().zip(starts).zip(lengths);
        let each = each.map(|((position, start), length)| Occurrence {
            position,
            start,
            end: start.wrapping_add(length),
        });
        each.collect()
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

fn take<'b>(bytes: &mut &'b [u8], many: usize) -> Result<&'b [u8], Malformed> {
    let (taken, rest) =
        bytes.split_at_checked(many).ok_or(Malformed::Broken("too few bytes of occurrences"))?;
    *bytes = rest;
    Ok(taken)
}
