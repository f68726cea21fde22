//! The pairs of frequency and length that bound the scores of a block.

use super::varint;

/// The maximum number of bounds of a block.
// Four are too few: with field lengths from 50 to 150, the last of four pairs was so loose that a
// search read most blocks of a common term.
const MOST: usize = 8;

/// The Pareto-optimal pairs (frequent term, short field), the greatest frequency first.
pub(super) fn of(freqs: &[u32], lens: &[u32]) -> Vec<(u32, u32)> {
    best(freqs.iter().copied().zip(lens.iter().copied()).collect())
}

/// The Pareto-optimal pairs among `pairs`, at most [`MOST`].
pub(super) fn best(mut pairs: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    pairs.sort_unstable_by_key(|(freq, len)| (std::cmp::Reverse(*freq), *len));
    let mut shortest = None;
    pairs.retain(|(_, len)| {
        let is_shorter = shortest.is_none_or(|shortest| *len < shortest);
        if is_shorter {
            shortest = Some(*len);
        }
        is_shorter
    });
    if pairs.len() > MOST {
        let shortest = shortest.unwrap_or(0);
        pairs.truncate(MOST);
        if let Some((_, len)) = pairs.last_mut() {
            *len = shortest;
        }
    }
    pairs
}

pub(super) fn write(bounds: &[(u32, u32)], min_len: u32, out: &mut Vec<u8>) {
    out.push(bounds.len() as u8);
    for (freq, len) in bounds {
        varint::write(*freq, out);
        varint::write(len - min_len, out);
    }
}

/// The bounds of a block, as stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'b> {
    bytes: &'b [u8],
    min_len: u32,
}

impl<'b> Stored<'b> {
    /// Reads bounds from the beginning of `bytes`, and advances `bytes`.
    pub(super) fn take(bytes: &mut &'b [u8], min_len: u32) -> Option<Self> {
        let (many, rest) = bytes.split_first()?;
        *bytes = rest;
        if usize::from(*many) > MOST {
            return None;
        }
        for _ in 0..2 * many {
            varint::take(bytes)?;
        }
        let stored = rest.get(..rest.len() - bytes.len())?;
        Some(Self { bytes: stored, min_len })
    }

    /// The bounds in bytes that [`take`](Self::take) has checked before.
    pub(super) fn of(bytes: &'b [u8], min_len: u32) -> Self {
        Self { bytes, min_len }
    }

    pub(super) fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn iter(mut self) -> impl Iterator<Item = (u32, u32)> {
        std::iter::from_fn(move || {
            let pair = (varint::take(&mut self.bytes)?, varint::take(&mut self.bytes)?);
            Some((pair.0, pair.1.saturating_add(self.min_len)))
        })
    }
}
