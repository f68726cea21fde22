//! The stored bytes of a column: what a field holds for the ids of one block.
//!
//! A column is read where it lies: nothing is copied and nothing allocated, and any id is found without looking at the
//! others. Parsing looks at the structure only, so that what follows cannot leave the bytes. Whoever writes a column
//! anew goes through all of it, and refuses one that is not in order.

mod bits;
mod integers;
mod values;

use keyloom::{Error, Result};

pub(crate) use integers::Integers;
pub(crate) use values::Values;

/// How many ids a block of the direct index has; a divisor of those of a chunk.
pub(crate) const BLOCK_IDS: u64 = 1_016;

/// The high four bits of the first byte: the version of the format.
const FORMAT: u8 = 1;
/// At most one value for each id.
const SINGLE: u8 = 0x11;
/// A list of values for each id.
const LISTS: u8 = 0x12;
/// At most one integer for each id.
const INTEGERS: u8 = 0x13;

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
    Error::Value { codec: "a column of the direct index", action: "decode", source: why.into() }
}

/// What stands in front of some bytes that do not parse.
#[cold]
fn refuse(bytes: &[u8], why: &'static str) -> Error {
    match bytes.first() {
        Some(first) if first >> 4 > FORMAT => Error::NewerFormat {
            what: "the direct index".into(),
            found: (first >> 4).into(),
            supported: FORMAT.into(),
        },
        _ => damaged(why),
    }
}

/// The ids of a column that is being written, with what they had and what they are to have.
///
/// Visits every place up to the last that is either of a column of `ids` ids or changed. `changes` come in ascending
/// order of their places.
fn merge<'c, T>(
    ids: u16,
    changes: &'c [(u16, T)],
    mut visit: impl FnMut(u16, Option<&'c T>) -> Result<()>,
) -> Result<()> {
    let behind = changes.last().map_or(0, |(place, _)| place.saturating_add(1));
    let mut changes = changes.iter().peekable();
    (0..ids.max(behind)).try_for_each(|place| {
        let change = changes.next_if(|(changed, _)| *changed == place);
        visit(place, change.map(|(_, to)| to))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
