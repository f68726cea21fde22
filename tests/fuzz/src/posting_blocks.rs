//! Posting blocks: any bytes decode to the postings that the format defines, or are recognized as
//! invalid. Postings that are encoded again decode to the same postings.

use keyloom::{Memory, Order, Reader, Store, Subspace};
use keyloom_tables::Table;
use keyloom_text::fuzz::{Posting, recode};
use keyloom_text::{Analyzer, Detail, TextIndex};

const DETAILS: [Detail; 2] = [Detail::Frequencies, Detail::Positions];

/// The input consists of the detail, the last id, the length of separate occurrences (if any), the
/// occurrences, and the block.
pub(crate) fn posting_blocks(data: &[u8]) {
    let Some((head, rest)) = data.split_first_chunk::<6>() else { return };
    let [detail, last @ .., size] = *head;
    let (detail, last) = (DETAILS[usize::from(detail % 2)], u32::from_be_bytes(last));
    let (occurrences, block) = rest.split_at(rest.len().min(size.into()));
    let occurrences = (size > 0).then_some(occurrences);
    let expected = decode(block, occurrences, last, detail);
    let Some(recoded) = recode(block, occurrences, last, detail) else {
        assert_eq!(expected, None);
        return;
    };
    assert_eq!(Some(&recoded.postings), expected.as_ref());
    let again = recode(&recoded.block, recoded.occurrences.as_deref(), last, detail);
    assert_eq!(again.as_ref(), Some(&recoded));
    let by_hand = decode(&recoded.block, recoded.occurrences.as_deref(), last, detail);
    assert_eq!(by_hand, expected);
}

/// Bytes that are consumed from the beginning.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, many: u64) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(many.try_into().ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn varint(&mut self) -> Option<u32> {
        let mut integer = 0_u64;
        for n in 0..5 {
            let byte = self.byte()?;
            integer += u64::from(byte % 128) << (7 * n);
            if byte < 128 {
                return integer.try_into().ok();
            }
        }
        None
    }

    /// Decodes integers of `width` bits each, bit by bit.
    fn column(&mut self, width: u8, many: u64) -> Option<Vec<u32>> {
        if width > 32 {
            return None;
        }
        let bytes = self.take((many * u64::from(width)).div_ceil(8))?;
        let bit = |at: u64| u32::from(bytes[at as usize / 8] >> (at % 8) & 1);
        let one = |n: u64| (0..u64::from(width)).map(|b| bit(n * u64::from(width) + b) << b).sum();
        Some((0..many).map(one).collect())
    }
}

/// The postings of stored bytes, decoded naively from the tables of the format.
fn decode(block: &[u8], beside: Option<&[u8]>, last: u32, detail: Detail) -> Option<Vec<Posting>> {
    let mut block = Bytes(block);
    let (flags, level) = (block.byte()?, block.byte()?);
    let count = u64::from(block.byte()?) + 1;
    let widths = block.take(3)?;
    let ids = 1_u64.checked_shl(level.into()).filter(|_| level <= 32)?;
    let first = (u64::from(last) + 1).checked_sub(ids).filter(|first| first % ids == 0)?;
    if !matches!(flags, 0x10 | 0x11) || count > 128 {
        return None;
    }
    let min_len = block.varint()?;
    let bounds = block.byte()?;
    if bounds > 8 || (bounds == 0) != (count == 1) {
        return None;
    }
    for _ in 0..2 * bounds {
        block.varint()?;
    }
    let gaps = block.column(widths[0], count)?;
    let freqs = block.column(widths[1], count)?;
    let lens = block.column(widths[2], count)?;
    let mut postings: Vec<Posting> = vec![];
    let mut next = first;
    for n in 0..count as usize {
        let doc = next + u64::from(gaps[n]);
        next = doc + 1;
        let doc = u32::try_from(doc).ok().filter(|doc| *doc <= last)?;
        let (freq, len) = (freqs[n].saturating_add(1), lens[n].saturating_add(min_len));
        postings.push((doc, freq, len, vec![]));
    }
    let stored = match (flags, block.0, beside) {
        (0x10, [], beside) => beside,
        (0x11, inside @ [_, ..], None) => Some(inside),
        _ => return None,
    };
    match (detail, stored) {
        (Detail::Frequencies, None) => Some(postings),
        (Detail::Positions, Some(stored)) => {
            positions(Bytes(stored), &mut postings)?;
            Some(postings)
        }
        _ => None,
    }
}

fn positions(mut stored: Bytes<'_>, postings: &mut [Posting]) -> Option<()> {
    let total = postings.iter().map(|posting| u64::from(posting.1)).sum();
    let width = stored.byte()?;
    // A column of width 0 can have any number of integers, so the number is limited.
    if total > 128 && width == 0 {
        return None;
    }
    let gaps = stored.column(width, total)?;
    if !stored.0.is_empty() {
        return None;
    }
    let mut gaps = gaps.into_iter();
    for (_, freq, _, into) in postings {
        let mut position = 0_u32;
        for gap in gaps.by_ref().take(*freq as usize) {
            position = position.wrapping_add(gap);
            into.push(position);
        }
    }
    Some(())
}

/// Blocks of an index, with few and with many postings, for each detail.
pub fn stored_blocks() -> Vec<Vec<u8>> {
    let mut index = TextIndex::with_keys_as_ids(&Subspace::new("index"));
    for (name, detail) in ["frequencies", "positions"].into_iter().zip(DETAILS) {
        let add = |_: &u32, text: &String, add: &mut dyn FnMut(&str)| add(text);
        index = index.field_with(name, detail, Analyzer::simple(), add);
    }
    let (store, table) = (Memory::new(), Table::<u32, String>::new(&Subspace::new("texts")));
    let table = table.with(&index);
    let text = |id: u32| match id % 7 {
        0 => "few rabbits few".to_owned(),
        n => format!("a {}hole of many words", "a many ".repeat(n as usize)),
    };
    let texts = (0..30).chain(1_000..1_003).map(|id| (id, text(id)));
    store.transact(|txn| table.put_many(txn, texts.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut seeds = vec![];
    for entry in snapshot.range(index.space().range_of(&(2,)), Order::Ascending).unwrap() {
        let (key, block) = entry.unwrap();
        let (_, field, term, last) = index.space().unpack::<(u8, u32, &str, u32)>(key).unwrap();
        let beside = snapshot.get(&index.space().pack(&(3, field, term, last))).unwrap();
        let beside = beside.unwrap_or_default();
        if !["a", "few", "hole"].contains(&term) || beside.len() > 255 {
            continue;
        }
        let head = [&[field as u8][..], &last.to_be_bytes(), &[beside.len() as u8]].concat();
        seeds.push([&head[..], beside, block].concat());
    }
    seeds
}
