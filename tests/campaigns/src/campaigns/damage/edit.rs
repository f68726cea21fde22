//! Changes of a file outside of the engine.

use std::fmt;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

const PAGE_BYTES: usize = 4096;

/// One change. Positions after a truncation have no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Edit {
    /// Inverts one bit.
    Flip { at: usize, bit: u8 },
    /// Overwrites two bytes with a number.
    Set { at: usize, number: u16 },
    /// Overwrites bytes with other bytes.
    Noise { at: usize, bytes: Vec<u8> },
    /// Overwrites a page with zeros.
    Zero { page: usize },
    /// Swaps two pages, optionally with corrected page numbers in their headers.
    Swap { one: usize, other: usize, is_numbered: bool },
    /// Copies a page over another one.
    Double { page: usize, over: usize, is_numbered: bool },
    /// Restores a page from an earlier copy of the file.
    Old { page: usize },
    /// Truncates the file.
    Cut { bytes: usize },
}

/// One to four changes of a file with `file_bytes` bytes.
pub(super) fn some(rng: &mut Rng, file_bytes: usize) -> Vec<Edit> {
    let count = if rng.bool() { 1 } else { rng.usize(2..=4) };
    (0..count).map(|_| one(rng, file_bytes)).collect()
}

fn one(rng: &mut Rng, file_bytes: usize) -> Edit {
    let pages = file_bytes / PAGE_BYTES;
    let page = rng.usize(..pages);
    let other = rng.usize(..pages);
    match rng.u8(..20) {
        0..8 => Edit::Flip { at: place(rng, page), bit: rng.u8(..8) },
        8..11 => Edit::Set { at: place(rng, page) & !1, number: number(rng) },
        11 => {
            let bytes = (0..rng.usize(1..600)).map(|_| rng.u8(..)).collect();
            Edit::Noise { at: place(rng, page), bytes }
        }
        12..14 => Edit::Zero { page },
        14..16 => Edit::Swap { one: page, other, is_numbered: rng.bool() },
        16 => Edit::Double { page, over: other, is_numbered: rng.bool() },
        17..19 => Edit::Old { page },
        _ => Edit::Cut { bytes: rng.usize(..file_bytes) },
    }
}

/// A position in a page. Positions with metadata are more likely: its header and its first offsets,
/// the fields of a meta page, and the end of the page, where entries are.
fn place(rng: &mut Rng, page: usize) -> usize {
    let within = match rng.u8(..8) {
        0..2 => rng.usize(..16),
        2 => rng.usize(16..64),
        3 => rng.usize(..152),
        4 => rng.usize(PAGE_BYTES - 256..PAGE_BYTES),
        _ => rng.usize(..PAGE_BYTES),
    };
    page * PAGE_BYTES + within
}

fn number(rng: &mut Rng) -> u16 {
    match rng.u8(..4) {
        0 => rng.u16(..8),
        1 => u16::MAX - rng.u16(..4),
        2 => rng.u16(4_080..4_112),
        _ => rng.u16(..),
    }
}

impl Edit {
    /// Applies the change to a file, given an earlier copy.
    pub(super) fn apply(&self, file: &mut Vec<u8>, earlier: &[u8]) {
        match self {
            Self::Flip { at, bit } => {
                file.get_mut(*at).into_iter().for_each(|byte| *byte ^= 1 << bit)
            }
            Self::Set { at, number } => overwrite(file, *at, &number.to_le_bytes()),
            Self::Noise { at, bytes } => overwrite(file, *at, bytes),
            Self::Zero { page } => overwrite(file, page * PAGE_BYTES, &[0; PAGE_BYTES]),
            Self::Old { page } => overwrite(file, page * PAGE_BYTES, of(earlier, *page)),
            Self::Cut { bytes } => file.truncate(*bytes),
            Self::Swap { one, other, is_numbered } => {
                let (first, second) = (of(file, *one).to_vec(), of(file, *other).to_vec());
                put(file, *one, &second, *is_numbered);
                put(file, *other, &first, *is_numbered);
            }
            Self::Double { page, over, is_numbered } => {
                let bytes = of(file, *page).to_vec();
                put(file, *over, &bytes, *is_numbered);
            }
        }
    }
}

fn of(file: &[u8], page: usize) -> &[u8] {
    file.get(page * PAGE_BYTES..(page + 1) * PAGE_BYTES).unwrap_or_default()
}

fn put(file: &mut [u8], page: usize, bytes: &[u8], is_numbered: bool) {
    overwrite(file, page * PAGE_BYTES, bytes);
    if is_numbered {
        overwrite(file, page * PAGE_BYTES, &(page as u64).to_le_bytes());
    }
}

fn overwrite(file: &mut [u8], at: usize, bytes: &[u8]) {
    let there = file.get_mut(at..).unwrap_or_default();
    there.iter_mut().zip(bytes).for_each(|(there, byte)| *there = *byte);
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flip { at, bit } => {
                write!(f, "page {} byte {}: bit {bit} flips", at / PAGE_BYTES, at % PAGE_BYTES)
            }
            Self::Set { at, number } => {
                write!(f, "page {} byte {}: becomes {number}", at / PAGE_BYTES, at % PAGE_BYTES)
            }
            other => write!(f, "{other:?}"),
        }
    }
}
