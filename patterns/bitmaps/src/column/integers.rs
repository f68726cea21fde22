//! Columns of integers.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | `13`, the form |
//! | 1 | the bit width of an integer |
//! | 1 | 1 if some of the ids have no integer, else 0 |
//! | 2 | the number of ids up to the last that has an integer |
//! | 8 | the smallest of the integers |
//! | | if some ids have none: a bit for each id, 1 if it has one |
//! | | for each id the difference of its integer from the smallest; 0 if it has none |

use keyloom::Result;

use super::bits::{self, Bits, width_of};
use super::{BLOCK_IDS, INTEGERS, merge, refuse};

/// The integers of a block of ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integers<'c> {
    ids: u16,
    least: i64,
    /// The ids that have an integer; `None` if every id has one.
    present: Option<Bits<'c>>,
    above: Bits<'c>,
}

impl<'c> Integers<'c> {
    /// Parses a column.
    ///
    /// # Errors
    /// [`Error::Value`](keyloom::Error::Value) if the bytes are not a column of integers,
    /// [`Error::NewerFormat`](keyloom::Error::NewerFormat) for a newer format. The caller adds the
    /// key.
    pub(crate) fn parse(bytes: &'c [u8]) -> Result<Self> {
        parse(bytes).ok_or_else(|| refuse(bytes, "they are not a column of integers"))
    }

    /// The integer of the id at a place.
    #[inline]
    pub(crate) fn get(&self, place: u16) -> Option<i64> {
        let at = usize::from(place);
        let is_there = place < self.ids && self.present.is_none_or(|present| present.get(at) == 1);
        is_there.then(|| self.least.wrapping_add_unsigned(self.above.get(at)))
    }

    /// The places with an integer.
    pub(crate) fn places(self) -> impl Iterator<Item = u16> {
        (0..self.ids).filter(move |place| self.get(*place).is_some())
    }

    /// Appends the column with the changes applied; appends nothing if no id has an integer. Unlike
    /// [`Values::rewrite`](super::Values::rewrite), this cannot fail, because a column of integers
    /// contains nothing that must be sorted.
    pub(crate) fn rewrite(old: Option<Self>, changes: &[(u16, Option<i64>)], out: &mut Vec<u8>) {
        let mut integers = Vec::with_capacity(BLOCK_IDS as usize);
        for (place, change) in merge(old.map_or(0, |old| old.ids), changes) {
            let before = || old.and_then(|old| old.get(place));
            integers.push(change.map_or_else(before, |to| *to));
        }
        integers.truncate(integers.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
        append(&integers, out);
    }
}

fn parse(bytes: &[u8]) -> Option<Integers<'_>> {
    let ([form, width, has_absent, a, b], rest) = bytes.split_first_chunk()?;
    let (least, mut rest) = rest.split_first_chunk()?;
    let ids = u16::from_le_bytes([*a, *b]);
    if *form != INTEGERS || *has_absent > 1 || ids == 0 || u64::from(ids) > BLOCK_IDS {
        return None;
    }
    let present = match has_absent {
        1 => Some(Bits::take(&mut rest, ids.into(), 1)?),
        _ => None,
    };
    let above = Bits::take(&mut rest, ids.into(), *width)?;
    let least = i64::from_le_bytes(*least);
    rest.is_empty().then_some(Integers { ids, least, present, above })
}

fn append(integers: &[Option<i64>], out: &mut Vec<u8>) {
    let there = || integers.iter().flatten();
    let (Some(least), Some(most)) = (there().min(), there().max()) else { return };
    let above = |integer: i64| integer.wrapping_sub(*least) as u64;
    let (width, has_absent) = (width_of(above(*most)), integers.iter().any(Option::is_none));
    out.extend_from_slice(&[INTEGERS, width as u8, u8::from(has_absent)]);
    out.extend_from_slice(&(integers.len() as u16).to_le_bytes());
    out.extend_from_slice(&least.to_le_bytes());
    if has_absent {
        bits::append(integers.iter().map(|integer| u64::from(integer.is_some())), 1, out);
    }
    bits::append(integers.iter().map(|integer| integer.map_or(0, above)), width, out);
}
