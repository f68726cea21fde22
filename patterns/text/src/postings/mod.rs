//! Posting lists: for a term of a field, the documents that contain it.
//!
//! The list is cut into *blocks* of aligned ranges of document ids. A range of 2<sup>level</sup>
//! ids is a block if it has at most 128 postings and its parent, the range of twice its size, has
//! more. So the blocks follow from the postings alone, whatever the order in which documents were
//! written: an index that was rebuilt has the bytes of one that was maintained. A change of one
//! document changes its block, and rarely splits or merges one.
//!
//! ```text
//!  level 10   0 ─────────────────────────────────────────── 1023    300 postings: too many
//!  level 9    0 ───────────────── 511   512 ─────────────── 1023    90 and 210
//!             └ block: 90 postings ┘
//!  level 8                              512 ── 767  768 ─── 1023    120 and 90
//!                                       └ block ─┘  └ block ───┘
//! ```
//!
//! A block is stored under the *last* id of its range. So one ascending read from (term, id)
//! returns the block that contains an id, or the next one.
//!
//! # The bytes of a block
//!
//! | bytes | content |
//! |---|---|
//! | 1 | high four bits: the version, 1; bit 0: the occurrences follow in this value |
//! | 1 | level of the range |
//! | 1 | number of postings, less one |
//! | 3 | widths in bits of gaps, frequencies and lengths |
//! | varint | smallest length of a field |
//! | 1 | number of bounds; 0 in a block of one posting |
//! | 2 varints each | bounds: a frequency, and a length less the smallest one |
//! | packed | gaps: the first id less the first one of the range, then each id less its predecessor, less one |
//! | packed | frequencies, less one |
//! | packed | lengths of the field in positions with a token, less the smallest one |
//!
//! The *bounds* are the pairs of frequency and length that no other posting exceeds: more frequent
//! in a field that is not longer. A score of BM25 grows with the frequency and falls with the
//! length, so the best score of a block is that of one of its bounds, whatever the average length
//! is by then. If there are more than eight, the last ones are replaced by the pair of their
//! greatest frequency and smallest length.
//!
//! The *occurrences* of all postings follow in the block. If they have more than 1,000 bytes, they
//! are stored under a key of their own.
//!
//! | bytes | content |
//! |---|---|
//! | 1, or 3 | width in bits of the position gaps; with offsets also of the start gaps and the lengths in bytes |
//! | packed | for each posting its first position, then each position less its predecessor |
//! | packed | the same of the start offsets |
//! | packed | the lengths of the tokens in bytes |
//!
//! # Summaries
//!
//! A list with more than 16 blocks has *summaries*, so that a search skips blocks without reading
//! them. A range of ids is a summary if it has at most 16 blocks and its parent has more. If there
//! are more than 16 summaries, they have summaries in turn: the next *layer*. It is stored like a
//! block, under the layer and the last id of the range.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | high four bits: the version, 1 |
//! | 1 | level of the range |
//! | 1 | number of units: blocks, or summaries of the layer below |
//! | for each unit: | |
//! | varint | last id, less the one of the unit before, less one |
//! | 1 | number of bounds |
//! | 2 varints each | bounds of all of its postings: a frequency and a length |

mod bits;
mod block;
mod bounds;
mod encode;
mod list;
mod occurrences;
mod range;
mod summary;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
mod varint;

pub(crate) use block::{Block, Layout};
pub(crate) use encode::{Encoded, encode};
pub(crate) use list::{Posting, Postings, PostingsSlice};
pub(crate) use occurrences::Occurrences;
pub(crate) use range::IdRange;
pub(crate) use summary::{
    Bounds, SUMMARY_UNITS, Unit, decode_summary, divide_units, each_unit, encode_summary,
    merged_bounds,
};

/// The largest number of postings of a block.
// As in Lucene 9: four groups of 32 integers, whose places fit into a byte. Larger blocks read more
// for one posting, and a change rewrites more; smaller ones need more keys.
pub(crate) const BLOCK_POSTINGS: usize = 128;

/// What an index stores about each occurrence of a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detail {
    /// Only how often the term occurs in the field: for ranking without phrases.
    Frequencies,
    /// Also the positions, for phrases and proximity. The default.
    #[default]
    Positions,
    /// Also the first and the last byte in the text, for highlighting without a second analysis.
    Offsets,
}

/// One occurrence of a term in a field of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Occurrence {
    /// The number of the token.
    pub(crate) position: u32,
    /// The offset of its first byte.
    pub(crate) start: u32,
    /// The offset after its last byte.
    pub(crate) end: u32,
}

/// Stored bytes that are not a block, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// The format of a newer program.
    #[error("the format {0} of a posting block is newer than this program")]
    Newer(u32),
    /// A broken rule of the format.
    #[error("the bytes are not a part of a posting list: {0}; repair the index")]
    Broken(&'static str),
}

impl From<Malformed> for keyloom::Error {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Newer(found) => {
                Self::NewerFormat { what: "a posting block".to_owned(), found, supported: VERSION }
            }
            Malformed::Broken(_) => Self::other(malformed),
        }
    }
}

/// The version of the format.
const VERSION: u32 = 1;

/// The flag of a block that is followed by its occurrences.
const HAS_OCCURRENCES: u8 = 1;

/// The largest number of bytes of occurrences that follow in the block itself. A key of their own
/// costs a change another page, and a phrase another read; a search without a phrase does not get
/// slower by bytes that it skips. With these, a block of common words fits into a page of LMDB.
// With 100,000 documents on LMDB, compared with a key of its own for each block: a phrase of a
// common and a middle word reads 852 keys instead of 1,620, a change of a document takes 20 ms
// instead of 26.
const INLINE_BYTES: usize = 1_000;
