//! Posting blocks for the fuzz targets. Not part of the public API.

use crate::postings::{Block, Detail, encode};

/// A posting: the id, the frequency, the length of the field, and the positions.
pub type Posting = (u32, u32, u32, Vec<u32>);

/// A block that was decoded, and encoded again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recoded {
    /// The postings.
    pub postings: Vec<Posting>,
    /// The bytes of the block.
    pub block: Vec<u8>,
    /// The bytes of the occurrences of the block, if there are any.
    pub occurrences: Option<Vec<u8>>,
}

/// Decodes the block that is stored under the last id of its range, and encodes it again; `None` if
/// the bytes are not a block.
pub fn recode(
    block: &[u8],
    occurrences: Option<&[u8]>,
    last: u32,
    detail: Detail,
) -> Option<Recoded> {
    let block = Block::parse(block, last).ok()?;
    let postings = block.decode(occurrences, detail).ok()?;
    let encoded = encode(block.layout.range, &postings.as_slice(), detail);
    let all = postings.as_slice();
    let of = |posting: crate::postings::Posting<'_>| {
        (posting.doc, posting.freq, posting.len, posting.positions.to_vec())
    };
    Some(Recoded {
        postings: all.iter().map(of).collect(),
        block: encoded.block,
        occurrences: (!encoded.occurrences.is_empty()).then_some(encoded.occurrences),
    })
}
