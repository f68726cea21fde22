//! Columns of values.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | the form: `11` if no id has more than one value, `12` if some have |
//! | 1 | the bit width of a code |
//! | 1 | the bit width of the end of a list; 0 if there are no lists |
//! | 1 | the bit width of the end of a value |
//! | 2 | the number of ids up to the last that has a value |
//! | 4 | the number of distinct values |
//! | | the end of each value |
//! | | the values, packed as in keys, in ascending order |
//! | | with lists: the end of each id's list |
//! | | with lists: codes, the numbers of values among the distinct ones; else for each id its code plus 1, or 0 for none |
//!
//! Each block has its own dictionary. One dictionary for the whole field would make blocks smaller,
//! but every transaction with a new value would read and write that dictionary. A report would have
//! to look up the values of the codes that it finds. Values no longer in use would have to be
//! garbage-collected, and the stored bytes would depend on the order of inserts.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use keyloom::{KeyBuf, Result};
use keyloom_kit::Fnv;

use super::bits::{self, Bits, width_of};
use super::{BLOCK_IDS, LISTS, SINGLE, damaged, merge, refuse};

/// The maximum width, in bits, of a code, of the end of a list, and of the end of a value.
// The number of values is stored in 32 bits, so a wider code means that the column is damaged.
const MOST_BITS: u8 = 32;

/// The values of a block of ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'c> {
    ids: u16,
    dictionary: Dictionary<'c>,
    /// The end of each id's list among the codes, if there are lists.
    ends: Option<Bits<'c>>,
    codes: Bits<'c>,
}

/// The distinct values of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dictionary<'c> {
    /// The encoded dictionary: the ends, then the values.
    raw: &'c [u8],
    len: u32,
    ends: Bits<'c>,
    values: &'c [u8],
}

/// The first byte of a value in a dictionary, and the byte after its last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    from: u32,
    to: u32,
}

/// The codes of the values of one id, ascending if the column is valid.
#[derive(Clone, Debug)]
pub(crate) struct Codes<'c> {
    codes: Bits<'c>,
    at: usize,
    end: usize,
    /// Whether each code is stored plus one, so that 0 means no value.
    is_single: bool,
}

impl Iterator for Codes<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.at >= self.end {
            return None;
        }
        let code = self.codes.get(self.at) as u32;
        self.at += 1;
        if self.is_single { code.checked_sub(1) } else { Some(code) }
    }
}

impl<'c> Dictionary<'c> {
    /// The number of values.
    pub(crate) fn len(self) -> usize {
        self.len as usize
    }

    /// The encoded bytes. Two dictionaries with the same number of values have the same bytes if
    /// and only if they have the same values.
    pub(crate) fn raw(self) -> &'c [u8] {
        self.raw
    }

    /// The packed value of a code.
    ///
    /// # Errors
    /// [`Error::Value`](keyloom::Error::Value) if no value has this code.
    pub(crate) fn value(self, code: u32) -> Result<&'c [u8]> {
        self.value_at(self.span(code))
    }

    /// Where the value of a code is; empty if no value has this code.
    #[inline]
    pub(crate) fn span(self, code: u32) -> Span {
        if code >= self.len {
            return Span::default();
        }
        let from = code.checked_sub(1).map_or(0, |before| self.ends.get(before as usize));
        Span { from: from as u32, to: self.ends.get(code as usize) as u32 }
    }

    /// The packed value at a span.
    ///
    /// # Errors
    /// [`Error::Value`](keyloom::Error::Value) if there is none.
    pub(crate) fn value_at(self, span: Span) -> Result<&'c [u8]> {
        let value = self.values.get(span.from as usize..span.to as usize);
        let value = value.filter(|value| !value.is_empty());
        value.ok_or_else(|| damaged("a code has no value"))
    }

    /// The value at a span as an integer, if the value has 1 to 15 bytes. The last byte of the
    /// integer is the length of the value.
    #[inline]
    pub(crate) fn short(self, span: Span) -> Option<u128> {
        let length = span.to.checked_sub(span.from).filter(|length| (1..16).contains(length))?;
        let rest =
            self.values.get(span.from as usize..).filter(|rest| rest.len() >= length as usize);
        let word = match rest?.first_chunk() {
            Some(chunk) => u128::from_le_bytes(*chunk),
            None => rest?.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte)),
        };
        let mask = u128::MAX >> (u128::BITS - 8 * length);
        Some(word & mask | u128::from(length) << 120)
    }

    /// All values, or an error if they are not in order.
    fn all(self) -> Result<Vec<&'c [u8]>> {
        let values: Vec<&[u8]> =
            (0..self.len).map(|code| self.value(code)).collect::<Result<_>>()?;
        match values.is_sorted_by(|a, b| a < b) {
            true => Ok(values),
            false => Err(damaged("the values are not in order")),
        }
    }
}

impl<'c> Values<'c> {
    /// Parses a column.
    ///
    /// # Errors
    /// [`Error::Value`](keyloom::Error::Value) if the bytes are not a column of values,
    /// [`Error::NewerFormat`](keyloom::Error::NewerFormat) for a newer format. The caller adds the
    /// key.
    pub(crate) fn parse(bytes: &'c [u8]) -> Result<Self> {
        parse(bytes).ok_or_else(|| refuse(bytes, "they are not a column of values"))
    }

    pub(crate) fn dictionary(&self) -> Dictionary<'c> {
        self.dictionary
    }

    /// The codes of the values of the id at a place.
    #[inline]
    pub(crate) fn codes(&self, place: u16) -> Codes<'c> {
        let place = usize::from(place);
        let (at, end) = match self.ends {
            _ if place >= usize::from(self.ids) => (0, 0),
            None => (place, place + 1),
            Some(ends) => {
                let from = place.checked_sub(1).map_or(0, |before| ends.get(before));
                // No list is longer than the dictionary. The limit matters for damaged ends, which
                // may be far apart.
                let to = ends.get(place).min(from + u64::from(self.dictionary.len));
                (from as usize, to as usize)
            }
        };
        Codes { codes: self.codes, at, end, is_single: self.ends.is_none() }
    }

    /// Appends the codes of the ids at some different places, and the end of each one's codes.
    ///
    /// # Errors
    /// [`Error::Value`](keyloom::Error::Value) if lists overlap, so that there would be more codes
    /// than the column has.
    pub(crate) fn codes_of(
        &self,
        places: &[u16],
        out: &mut Vec<u32>,
        ends: &mut Vec<usize>,
    ) -> Result<()> {
        let most = match self.ends {
            None => self.ids.into(),
            Some(ends) => ends.get(usize::from(self.ids) - 1) as usize,
        };
        for place in places {
            let codes = self.codes(*place);
            if codes.end.saturating_sub(codes.at) > most.saturating_sub(out.len()) {
                return Err(damaged("the ends of the lists are not in order"));
            }
            match codes.is_single {
                true => out.extend(codes),
                // Faster than the iterator, whose length is not known in advance.
                false => out.extend((codes.at..codes.end).map(|at| codes.codes.get(at) as u32)),
            }
            ends.push(out.len());
        }
        Ok(())
    }

    fn has_lists_in_order(self) -> bool {
        let Some(ends) = self.ends else { return true };
        let ends = (0..usize::from(self.ids)).map(|place| ends.get(place));
        let mut start = 0;
        ends.into_iter().all(|end| {
            let before = std::mem::replace(&mut start, end);
            end.checked_sub(before).is_some_and(|length| length <= u64::from(self.dictionary.len))
        })
    }

    /// The places with values.
    pub(crate) fn places(self) -> impl Iterator<Item = u16> {
        (0..self.ids).filter(move |place| self.codes(*place).next().is_some())
    }

    /// Appends the column with the changes applied; appends nothing if no id has a value. `changes`
    /// contains each changed place once, in order, with all of its new values in order.
    ///
    /// # Errors
    /// [`Error::Value`](keyloom::Error::Value) if the old column is out of order: rewriting it
    /// would hide the damage.
    pub(crate) fn rewrite(
        old: Option<Self>,
        changes: &[(u16, &[KeyBuf])],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mut draft = Draft::new(old)?;
        for (place, change) in merge(old.map_or(0, |old| old.ids), changes) {
            match (change, old) {
                (Some(values), _) => draft.add(values),
                (None, Some(old)) => draft.keep(&old, place)?,
                (None, None) => draft.end(),
            }
        }
        draft.append(out);
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Option<Values<'_>> {
    let ([form, code_bits, list_bits, value_bits, a, b], rest) = bytes.split_first_chunk()?;
    let (len, mut rest) = rest.split_first_chunk()?;
    let (ids, len) = (u16::from_le_bytes([*a, *b]), u32::from_le_bytes(*len));
    let is_narrow = [code_bits, list_bits, value_bits].into_iter().all(|bits| *bits <= MOST_BITS);
    if !is_narrow || ids == 0 || u64::from(ids) > BLOCK_IDS {
        return None;
    }
    let (raw, last) = (rest, len.checked_sub(1)?);
    let value_ends = Bits::take(&mut rest, len as usize, *value_bits)?;
    let bytes_of_values = value_ends.get(last as usize);
    // No value is empty, so there are at most as many values as bytes.
    let (values, mut rest) = rest
        .split_at_checked(bytes_of_values as usize)
        .filter(|(values, _)| values.len() >= len as usize)?;
    let raw = raw.get(..raw.len() - rest.len())?;
    let dictionary = Dictionary { raw, len, ends: value_ends, values };
    let (ends, codes) = match *form {
        SINGLE if *list_bits == 0 => (None, ids.into()),
        LISTS => {
            let ends = Bits::take(&mut rest, ids.into(), *list_bits)?;
            (Some(ends), ends.get(usize::from(ids) - 1) as usize)
        }
        _ => return None,
    };
    let codes = Bits::take(&mut rest, codes, *code_bits)?;
    rest.is_empty().then_some(Values { ids, dictionary, ends, codes })
}

/// A column under construction.
struct Draft<'d> {
    /// The number of values in the old column. They are the first of `values`, in order.
    old: usize,
    /// The values of the old column, followed by new ones.
    values: Vec<&'d [u8]>,
    new: HashMap<&'d [u8], u32, BuildHasherDefault<Fnv>>,
    /// The end of each id's codes.
    ends: Vec<u32>,
    /// Indexes into `values`.
    codes: Vec<u32>,
}

impl<'d> Draft<'d> {
    fn new(old: Option<Values<'d>>) -> Result<Self> {
        if old.is_some_and(|old| !old.has_lists_in_order()) {
            return Err(damaged("the ends of the lists are not in order"));
        }
        let values = old.map_or(Ok(Vec::new()), |old| old.dictionary.all())?;
        let (old, ends) = (values.len(), Vec::with_capacity(BLOCK_IDS as usize));
        Ok(Self { old, values, new: HashMap::default(), ends, codes: Vec::new() })
    }

    fn add(&mut self, values: &'d [KeyBuf]) {
        for value in values {
            let known = self.values.get(..self.old).unwrap_or_default();
            let code = known.binary_search(&&value[..]).map(|code| code as u32);
            let code = code.unwrap_or_else(|_| {
                *self.new.entry(value).or_insert_with(|| {
                    self.values.push(value);
                    self.values.len() as u32 - 1
                })
            });
            self.codes.push(code);
        }
        self.end();
    }

    /// Keeps the codes that an id had.
    fn keep(&mut self, old: &Values<'_>, place: u16) -> Result<()> {
        let from = self.codes.len();
        self.codes.extend(old.codes(place));
        let kept = self.codes.get(from..).unwrap_or_default();
        let is_known = kept.last().is_none_or(|last| (*last as usize) < self.old);
        if !is_known || !kept.is_sorted_by(|a, b| a < b) {
            return Err(damaged("the codes of an id are not in order"));
        }
        self.end();
        Ok(())
    }

    fn end(&mut self) {
        self.ends.push(self.codes.len() as u32);
    }

    /// Removes values that no id has, and sorts the others.
    fn collect_garbage(&mut self) {
        const UNUSED: u32 = u32::MAX;
        let mut codes = vec![UNUSED; self.values.len()];
        for code in &self.codes {
            codes.get_mut(*code as usize).into_iter().for_each(|code| *code = 0);
        }
        let mut used: Vec<u32> =
            (0..codes.len() as u32).filter(|code| codes.get(*code as usize) == Some(&0)).collect();
        // All but a few values are in order, so a stable sort is fast.
        used.sort_by_key(|code| self.values.get(*code as usize));
        for (code, before) in (0..).zip(&used) {
            codes.get_mut(*before as usize).into_iter().for_each(|new| *new = code);
        }
        self.values =
            used.iter().filter_map(|code| self.values.get(*code as usize)).copied().collect();
        for code in &mut self.codes {
            *code = codes.get(*code as usize).copied().unwrap_or(UNUSED);
        }
    }

    fn append(mut self, out: &mut Vec<u8>) {
        let Some(last) = self.codes.len().checked_sub(1) else { return };
        self.collect_garbage();
        let ids = self.ends.partition_point(|end| *end as usize <= last) + 1;
        self.ends.truncate(ids);
        let ends = self.ends.iter().map(|end| u64::from(*end));
        let starts = std::iter::once(0).chain(ends.clone());
        let is_single = ends.clone().zip(starts).all(|(end, start)| end - start <= 1);
        let largest = self.values.len() as u64 - u64::from(!is_single);
        let bytes: usize = self.values.iter().map(|value| value.len()).sum();
        let (code_bits, value_bits) = (width_of(largest), width_of(bytes as u64));
        let list_bits = if is_single { 0 } else { width_of(self.codes.len() as u64) };
        let form = if is_single { SINGLE } else { LISTS };
        out.extend_from_slice(&[form, code_bits as u8, list_bits as u8, value_bits as u8]);
        out.extend_from_slice(&(ids as u16).to_le_bytes());
        out.extend_from_slice(&(self.values.len() as u32).to_le_bytes());
        let mut end = 0;
        let value_ends = self.values.iter().map(|value| {
            end += value.len() as u64;
            end
        });
        bits::append(value_ends, value_bits, out);
        self.values.iter().for_each(|value| out.extend_from_slice(value));
        let codes = self.codes.iter().map(|code| u64::from(*code));
        if is_single {
            let mut codes = codes;
            let starts = std::iter::once(0).chain(ends.clone());
            let of_each = ends.zip(starts).map(|(end, start)| match end > start {
                true => codes.next().map_or(0, |code| code + 1),
                false => 0,
            });
            bits::append(of_each, code_bits, out);
        } else {
            bits::append(ends, list_bits, out);
            bits::append(codes, code_bits, out);
        }
    }
}
