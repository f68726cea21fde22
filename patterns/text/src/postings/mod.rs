//! Posting lists: the documents that contain a term of a field.
//!
//! The list is cut into *blocks* of aligned ranges of document ids. A range of 2<sup>level</sup>
//! ids is a block if it has 1 to 128 postings and its parent, the range of twice its size, has
//! more. So the blocks depend only on the postings, not on the order in which documents were
//! written: a rebuilt index has the same bytes as a maintained one. A change of one document
//! changes its block. Rarely, it also splits or merges blocks.
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
//! returns the block that contains the id, or the next block.
//!
//! # The bytes of a block
//!
//! | bytes | content |
//! |---|---|
//! | 1 | high four bits: the version, 1; bit 0: the occurrences follow in the same value |
//! | 1 | level of the range |
//! | 1 | number of postings, minus 1 |
//! | 3 | widths in bits of gaps, frequencies and lengths |
//! | varint | smallest length of a field |
//! | 1 | number of bounds; 0 in a block of one posting |
//! | 2 varints each | bounds: a frequency, and a length minus the smallest one |
//! | packed | gaps: the first id minus the beginning of the range, then each id minus its predecessor minus 1 |
//! | packed | frequencies, minus 1 |
//! | packed | lengths of the field in positions with a token, minus the smallest one |
//!
//! The *bounds* are the Pareto-optimal pairs of frequency and length: no other posting has a higher
//! frequency in a field that is not longer. A BM25 score increases with the frequency and decreases
//! with the length. So the best score of a block is that of one of its bounds, for any average
//! length at query time. If there are more than eight pairs, the last ones are replaced by the pair
//! of their greatest frequency and smallest length.
//!
//! The *occurrences* of all postings, which are their positions, follow in the block. If they take
//! more than 1,000 bytes, they are stored in a separate key.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | width in bits of the position gaps |
//! | packed | for each posting its first position, then each position minus its predecessor |
//!
//! # Summaries
//!
//! A list with more than 16 blocks has *summaries*, so that a search can skip blocks without
//! reading them. A range of ids is a summary if it has at most 16 blocks and its parent has more.
//! If there are more than 16 summaries, the next *layer* summarizes them in the same way. A summary
//! is stored like a block, under the layer and the last id of the range.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | high four bits: the version, 1 |
//! | 1 | level of the range |
//! | 1 | number of units: blocks, or summaries of the layer below |
//! | for each unit: | |
//! | varint | last id, minus the last id of the previous unit, minus 1 |
//! | 1 | number of bounds |
//! | 2 varints each | bounds of all postings of the unit: a frequency and a length |

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

/// The maximum number of postings of a block.
// The same as in Lucene 9: four groups of 32 integers, and a place in a block fits into a byte.
// With larger blocks, a search reads more per posting, and a change rewrites more. Smaller blocks
// need more keys.
pub(crate) const BLOCK_POSTINGS: usize = 128;

/// The data that an index stores about each occurrence of a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detail {
    /// Only how often the term occurs in the field, for ranking without phrases.
    Frequencies,
    /// Also the positions, for phrases and proximity. The default.
    // Not the offsets in the text: a highlighter must read the text in any case, and the offsets of
    // its words would be in one key per term.
    #[default]
    Positions,
}

/// The reason why stored bytes are not a valid block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// The format of a newer program.
    #[error("the format {0} of a posting block is newer than this program")]
    Newer(u32),
    /// The bytes violate the format.
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

/// The maximum number of bytes of occurrences that are stored in the block itself. A separate key
/// costs another page per change, and another read per phrase. Searches without phrases skip these
/// bytes at no cost. With this limit, a block of common words fits into a page of LMDB.
// Measured with 100,000 documents on LMDB, compared with a separate key for the occurrences of
// every block. A phrase of a common and a less common word reads 852 keys instead of 1,620. A
// change of a document takes 20 ms instead of 26 ms.
const INLINE_BYTES: usize = 1_000;
