//! One page of a tree, parsed into entries that are known to be inside the page.

use super::{Fault, FileRule};

/// The bytes before the offsets of a page, and before the value in an overflow run.
pub(super) const HEADER_BYTES: usize = 16;
const ENTRY_HEADER_BYTES: usize = 8;

const BRANCH: u16 = 1;
const LEAF: u16 = 2;
const OVERFLOW: u16 = 4;

const IN_OVERFLOW_RUN: u16 = 1;
const IS_TREE: u16 = 2;
const HAS_SEVERAL_VALUES: u16 = 4;

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The rule that a page breaks, and the details.
type Broken = (FileRule, String);

/// The kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Branch,
    Leaf,
}

/// A branch or leaf page whose header, offsets and entries were checked.
#[derive(Debug)]
pub(super) struct Page<'p> {
    bytes: &'p [u8],
    kind: Kind,
    offsets: &'p [u8],
}

/// An entry of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'p> {
    pub(super) key: &'p [u8],
    pub(super) points_to: Target<'p>,
}

/// The part of an entry after its key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target<'p> {
    /// In a branch: the page with the keys from this entry's key on.
    Child(u64),
    /// In a leaf: the value.
    Value(&'p [u8]),
    /// In a leaf: the first page of the run that contains a value of this length.
    OverflowRun { page: u64, value_bytes: u32 },
    /// In a leaf: the record of a tree.
    Tree(&'p [u8]),
}

impl<'p> Page<'p> {
    /// Checks all rules for the page that require no other page. `spans` is scratch space.
    pub(super) fn check(
        bytes: &'p [u8],
        number: u64,
        kind: Kind,
        spans: &mut Vec<(usize, usize)>,
    ) -> Result<Self, Fault> {
        let page = Self::with_header(bytes, number, kind);
        let checked = page.and_then(|page| page.check_packing(spans).map(|()| page));
        checked.map_err(|(rule, detail)| Fault::new(number, rule, detail))
    }

    fn with_header(bytes: &'p [u8], number: u64, kind: Kind) -> Result<Self, Broken> {
        let flags = match kind {
            Kind::Branch => BRANCH,
            Kind::Leaf => LEAF,
        };
        check_header(bytes, number, flags)?;
        let lower = usize::from(u16_at(bytes, 12).unwrap_or_default());
        let upper = usize::from(u16_at(bytes, 14).unwrap_or_default());
        let offsets = bytes.get(HEADER_BYTES..lower).filter(|offsets| offsets.len() % 2 == 0);
        match offsets {
            Some(offsets) if lower <= upper && upper <= bytes.len() => {
                Ok(Self { bytes, kind, offsets })
            }
            _ => Err((FileRule::FreeSpace, format!("{lower}..{upper} of {} bytes", bytes.len()))),
        }
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.offsets.len() / 2
    }

    /// The entries in key order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'p>> + use<'p> {
        // Every entry was parsed when the page was checked, so none is skipped here.
        let Self { bytes, kind, offsets } = *self;
        let entry = move |offset: &[u8; 2]| {
            entry_at(bytes, usize::from(u16::from_le_bytes(*offset)), kind).ok()
        };
        offsets.as_chunks().0.iter().filter_map(entry).map(|(entry, _)| entry)
    }

    /// The engine closes the gap when it removes or resizes an entry. So the entries, each padded
    /// to an even length, fill the page from the free space to the end of the page.
    fn check_packing(&self, spans: &mut Vec<(usize, usize)>) -> Result<(), Broken> {
        spans.clear();
        for (at, offset) in self.offsets.as_chunks().0.iter().enumerate() {
            let start = usize::from(u16::from_le_bytes(*offset));
            let (_, end) = entry_at(self.bytes, start, self.kind)
                .map_err(|(rule, detail)| (rule, format!("entry {at} at {start}: {detail}")))?;
            spans.push((start, end));
        }
        spans.sort_unstable();
        let mut free_until = usize::from(u16_at(self.bytes, 14).unwrap_or_default());
        for &(start, end) in &*spans {
            if start != free_until {
                let detail = format!("an entry starts at {start} instead of {free_until}");
                return Err((FileRule::Packing, detail));
            }
            free_until = end;
        }
        if free_until != self.bytes.len() {
            let detail = format!("the entries end at {free_until}, not with the page");
            return Err((FileRule::Packing, detail));
        }
        Ok(())
    }
}

/// Reads the header of an overflow run and returns its number of pages.
pub(super) fn run_pages(header: &[u8], number: u64) -> Result<u64, Fault> {
    check_header(header, number, OVERFLOW)
        .map_err(|(rule, detail)| Fault::new(number, rule, detail))?;
    Ok(u32_at(header, 12).unwrap_or_default().into())
}

/// The number of pages of an overflow run for a value.
pub(super) fn pages_for(value_bytes: u32, page_bytes: usize) -> u64 {
    (HEADER_BYTES as u64 + u64::from(value_bytes)).div_ceil(page_bytes as u64)
}

fn check_header(bytes: &[u8], number: u64, flags: u16) -> Result<(), Broken> {
    let found = u64_at(bytes, 0).unwrap_or_default();
    if found != number {
        return Err((FileRule::PageNumber, format!("the header contains {found}")));
    }
    let found = u16_at(bytes, 10).unwrap_or_default();
    if found != flags {
        return Err((FileRule::PageKind, format!("flags {found:#06x} instead of {flags:#06x}")));
    }
    Ok(())
}

/// The entry at an offset, and its end.
fn entry_at(bytes: &[u8], offset: usize, kind: Kind) -> Result<(Entry<'_>, usize), Broken> {
    let outside = || (FileRule::Packing, "it is not inside the page".to_owned());
    let entry = bytes.get(offset..).ok_or_else(outside)?;
    let (header, rest) = entry.split_at_checked(ENTRY_HEADER_BYTES).ok_or_else(outside)?;
    let low = u32_at(header, 0).ok_or_else(outside)?;
    let flags = u16_at(header, 4).ok_or_else(outside)?;
    let key_bytes = usize::from(u16_at(header, 6).ok_or_else(outside)?);
    let (key, rest) = rest.split_at_checked(key_bytes).ok_or_else(outside)?;
    let (points_to, value_bytes) = match kind {
        // A branch has no flags: the field holds the high bits of the page number.
        Kind::Branch => (Target::Child(u64::from(low) | (u64::from(flags) << 32)), 0),
        Kind::Leaf => leaf_target(low, flags, rest)?,
    };
    let length = (ENTRY_HEADER_BYTES + key_bytes + value_bytes).next_multiple_of(2);
    // An entry of odd length is padded by one byte, which must be inside the page as well.
    let end = offset.checked_add(length).filter(|end| *end <= bytes.len()).ok_or_else(outside)?;
    Ok((Entry { key, points_to }, end))
}

/// The part of a leaf entry after its key, and the length of this part in the page.
fn leaf_target(value_bytes: u32, flags: u16, rest: &[u8]) -> Result<(Target<'_>, usize), Broken> {
    let inline = || {
        let value = usize::try_from(value_bytes).ok().and_then(|bytes| rest.get(..bytes));
        value.ok_or_else(|| (FileRule::Packing, "its value is not inside the page".to_owned()))
    };
    match flags {
        0 => inline().map(|value| (Target::Value(value), value.len())),
        IN_OVERFLOW_RUN => match u64_at(rest, 0) {
            Some(page) => Ok((Target::OverflowRun { page, value_bytes }, 8)),
            None => Err((FileRule::Packing, "its page number is not inside the page".to_owned())),
        },
        IS_TREE => inline().map(|record| (Target::Tree(record), record.len())),
        flags if flags & HAS_SEVERAL_VALUES != 0 => {
            Err((FileRule::Unsupported, "a key with several values".to_owned()))
        }
        flags => Err((FileRule::EntryFlags, format!("flags {flags:#06x}"))),
    }
}
