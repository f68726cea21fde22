//! The stored bytes of a column: the values of a field for the ids of one block.
//!
//! A column is read in place, without copies or allocations, and the values of an id are found
//! without reading the values of other ids. Parsing checks only the structure, so that later reads
//! stay within the bytes. Rewriting a column reads all of it, and fails if the old column is out of
//! order.

mod bits;
mod integers;
mod values;

use keyloom::Error;

pub(crate) use integers::Integers;
pub(crate) use values::{Dictionary, Span, Values};

use crate::CHUNK_IDS;

/// The number of ids in a block of the forward index; it divides the number of ids in a chunk.
pub(crate) const BLOCK_IDS: u64 = 1_016;

/// The high four bits of the first byte: the version of the format.
const FORMAT: u8 = 1;
/// At most one value for each id.
const SINGLE: u8 = 0x11;
/// A list of values for each id.
const LISTS: u8 = 0x12;
/// At most one integer for each id.
const INTEGERS: u8 = 0x13;

/// The number of blocks in a chunk.
pub(crate) const BLOCKS_PER_CHUNK: u64 = CHUNK_IDS / BLOCK_IDS;

/// The place, within its block, of an id at an offset of a chunk.
pub(crate) fn place_in_block(offset: u16) -> u16 {
    offset % BLOCK_IDS as u16
}

/// Groups ascending offsets of a chunk by block.
pub(crate) fn blocks_of(chunk: u64, offsets: &[u16]) -> impl Iterator<Item = (u64, &[u16])> {
    let in_chunk = |offset: &u16| u64::from(*offset) / BLOCK_IDS;
    let of_each = offsets.chunk_by(move |a, b| in_chunk(a) == in_chunk(b));
    of_each.filter_map(move |same| {
        let block = chunk.checked_mul(BLOCKS_PER_CHUNK)?.checked_add(in_chunk(same.first()?))?;
        Some((block, same))
    })
}

/// The block of an id, and its place in the block.
pub(crate) fn block_of(id: u64) -> (u64, u16) {
    (id / BLOCK_IDS, (id % BLOCK_IDS) as u16)
}

/// The id at a place of a block, unless it overflows.
pub(crate) fn id_in_block(block: u64, place: u16) -> Option<u64> {
    block.checked_mul(BLOCK_IDS)?.checked_add(place.into())
}

#[cold]
fn damaged(why: &'static str) -> Error {
    Error::Value { codec: "a column of the forward index", action: "decode", source: why.into() }
}

/// The error for bytes that do not parse.
#[cold]
fn refuse(bytes: &[u8], why: &'static str) -> Error {
    match bytes.first() {
        Some(first) if first >> 4 > FORMAT => Error::NewerFormat {
            what: "the forward index".into(),
            found: (first >> 4).into(),
            supported: FORMAT.into(),
        },
        _ => damaged(why),
    }
}

/// Merges the places of a column with changes, for a rewrite.
///
/// Yields every place of the old column (`0..ids`), and continues up to the last place in `changes`
/// if that is greater. Each place comes with its change, if there is one. `changes` must be
/// ascending by place.
fn merge<T>(ids: u16, changes: &[(u16, T)]) -> impl Iterator<Item = (u16, Option<&T>)> {
    let behind = changes.last().map_or(0, |(place, _)| place.saturating_add(1));
    let mut changes = changes.iter().peekable();
    (0..ids.max(behind)).map(move |place| {
        let change = changes.next_if(|(changed, _)| *changed == place);
        (place, change.map(|(_, to)| to))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
