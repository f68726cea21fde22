//! The stored bytes of a column: what a field holds for the ids of one block.
//!
//! A column is read where it lies: nothing is copied and nothing allocated, and any id is found
//! without looking at the others. Parsing looks at the structure only, so that what follows cannot
//! leave the bytes. Whoever writes a column again goes through all of it, and refuses one that is
//! not in order.

mod bits;
mod integers;
mod values;

use keyloom::Error;

pub(crate) use integers::Integers;
pub(crate) use values::Values;

use crate::CHUNK_IDS;

/// How many ids a block of the forward index has; a divisor of those of a chunk.
pub(crate) const BLOCK_IDS: u64 = 1_016;

/// The high four bits of the first byte: the version of the format.
const FORMAT: u8 = 1;
/// At most one value for each id.
const SINGLE: u8 = 0x11;
/// A list of values for each id.
const LISTS: u8 = 0x12;
/// At most one integer for each id.
const INTEGERS: u8 = 0x13;

/// How many blocks a chunk has.
pub(crate) const BLOCKS_PER_CHUNK: u64 = CHUNK_IDS / BLOCK_IDS;

/// The place in its block of an id at an offset of a chunk.
pub(crate) fn place_in_block(offset: u16) -> u16 {
    offset % BLOCK_IDS as u16
}

/// Offsets of a chunk, in order, by the blocks that they are in.
pub(crate) fn blocks_of(chunk: u64, offsets: &[u16]) -> impl Iterator<Item = (u64, &[u16])> {
    let in_chunk = |offset: &u16| u64::from(*offset) / BLOCK_IDS;
    let of_each = offsets.chunk_by(move |a, b| in_chunk(a) == in_chunk(b));
    of_each.filter_map(move |same| {
        let block = chunk.checked_mul(BLOCKS_PER_CHUNK)?.checked_add(in_chunk(same.first()?))?;
        Some((block, same))
    })
}

/// The block of an id, and the place in it.
pub(crate) fn block_of(id: u64) -> (u64, u16) {
    (id / BLOCK_IDS, (id % BLOCK_IDS) as u16)
}

/// The id at a place of a block, if there is such an id.
pub(crate) fn id_in_block(block: u64, place: u16) -> Option<u64> {
    block.checked_mul(BLOCK_IDS)?.checked_add(place.into())
}

#[cold]
fn damaged(why: &'static str) -> Error {
    Error::Value { codec: "a column of the forward index", action: "decode", source: why.into() }
}

/// What stands in front of some bytes that do not parse.
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

/// The ids of a column that is being written, with what they had and what they are to have.
///
/// Every place up to the last that is either of a column of `ids` ids or changed. `changes` come in
/// ascending order of their places.
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
