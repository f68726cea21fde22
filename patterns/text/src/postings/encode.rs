//! The bytes of a block.

use super::bits::{pack, width_of};
use super::{Bounds, Detail, HAS_OCCURRENCES, INLINE_BYTES, IdRange, PostingsSlice, VERSION};
use super::{bounds, occurrences, varint};

/// An encoded block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Encoded {
    pub(crate) block: Vec<u8>,
    /// The occurrences to store in a separate key; empty if there are none.
    pub(crate) occurrences: Vec<u8>,
    /// The pairs of frequency and length that bound the scores of all postings.
    pub(crate) bounds: Bounds,
}

/// Encodes the postings of a range. There must be 1 to 128 postings.
pub(crate) fn encode(range: IdRange, postings: &PostingsSlice<'_>, detail: Detail) -> Encoded {
    let mut separate = Vec::new();
    if detail != Detail::Frequencies {
        occurrences::encode(postings, &mut separate);
    }
    let is_inline = !separate.is_empty() && separate.len() <= INLINE_BYTES;
    let mut out = Vec::with_capacity(64);
    out.push((VERSION << 4) as u8 | if is_inline { HAS_OCCURRENCES } else { 0 });
    out.push(range.level());
    out.push(postings.len().saturating_sub(1) as u8);
    let gaps = gaps(range, postings.docs);
    let freqs: Vec<u32> = postings.freqs.iter().map(|freq| freq.saturating_sub(1)).collect();
    let min_len = postings.lens.iter().copied().min().unwrap_or(0);
    let lens: Vec<u32> = postings.lens.iter().map(|len| len - min_len).collect();
    let columns = [gaps, freqs, lens];
    let widths = columns.each_ref().map(|all| width_of(all.iter().copied().max().unwrap_or(0)));
    out.extend_from_slice(&widths);
    varint::write(min_len, &mut out);
    let bounds = bounds::of(postings.freqs, postings.lens);
    // The bounds of a single posting are equal to its columns, so they are not stored.
    bounds::write(if postings.len() == 1 { &[] } else { &bounds }, min_len, &mut out);
    for (column, width) in columns.into_iter().zip(widths) {
        pack(column.into_iter(), width, &mut out);
    }
    if is_inline {
        out.append(&mut separate);
    }
    Encoded { block: out, occurrences: separate, bounds }
}

fn gaps(range: IdRange, docs: &[u32]) -> Vec<u32> {
    let mut next = range.first();
    let gap = |doc: &u32| {
        let gap = doc.wrapping_sub(next);
        next = doc.wrapping_add(1);
        gap
    };
    docs.iter().map(gap).collect()
}
