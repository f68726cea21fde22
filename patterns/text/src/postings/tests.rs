//! Tests of blocks: decoding inverts encoding. Damaged bytes give an error or other postings, but
//! never a panic.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::list::Posting;
use super::*;

/// A document, the gaps of its positions, and the extra length of its field.
type Drawn = (u32, Vec<u32>, u32);

const DETAILS: [Detail; 2] = [Detail::Frequencies, Detail::Positions];

fn postings(drawn: &[Drawn], detail: Detail) -> Postings {
    let mut all = Postings::default();
    for (doc, gaps, longer) in drawn {
        let mut position = 0;
        let positions = gaps.iter().map(|gap| {
            position += gap;
            position
        });
        let positions: Vec<u32> = positions.collect();
        let freq = gaps.len() as u32;
        let positions = if detail == Detail::Frequencies { &[][..] } else { &positions[..] };
        all.push(Posting { doc: *doc, freq, len: freq + longer, positions });
    }
    all
}

fn drawn(range: IdRange) -> impl Strategy<Value = Vec<Drawn>> {
    let gaps = vec(prop_oneof![8 => 0..40_u32, 1 => 0..100_000_u32], 1..6);
    let length = prop_oneof![4 => 0..50_u32, 1 => 0..1_000_000_u32];
    let of_each = btree_map(range.first()..=range.last(), (gaps, length), 1..=BLOCK_POSTINGS);
    of_each.prop_map(|all| all.into_iter().map(|(doc, (gaps, len))| (doc, gaps, len)).collect())
}

fn block() -> impl Strategy<Value = (IdRange, Detail, Postings)> {
    // A range of level 7 has as many ids as a full block has postings; smaller ranges are never
    // split.
    let range = (any::<u32>(), 7..=32_u8).prop_map(|(id, level)| IdRange::of(id, level));
    (range, prop::sample::select(&DETAILS[..])).prop_flat_map(|(range, detail)| {
        let drawn = drawn(range).prop_map(move |drawn| postings(&drawn, detail));
        (Just(range), Just(detail), drawn)
    })
}

fn separate(encoded: &Encoded) -> Option<&[u8]> {
    (!encoded.occurrences.is_empty()).then_some(&encoded.occurrences)
}

proptest! {
    #[test]
    fn encoded_postings_are_decoded((range, detail, postings) in block()) {
        let encoded = encode(range, &postings.as_slice(), detail);
        let block = Block::parse(&encoded.block, range.last()).unwrap();
        prop_assert_eq!((block.layout.range, block.count()), (range, postings.len()));
        prop_assert_eq!(&block.decode(separate(&encoded), detail).unwrap(), &postings);
        let total: u64 = postings.freqs.iter().map(|freq| u64::from(*freq)).sum();
        prop_assert_eq!(block.total(), total);
    }

    #[test]
    fn bounds_exceed_every_posting_and_are_few((range, detail, postings) in block()) {
        let encoded = encode(range, &postings.as_slice(), detail);
        let block = Block::parse(&encoded.block, range.last()).unwrap();
        let bounds: Vec<_> = block.bounds().collect();
        prop_assert!((1..=8).contains(&bounds.len()));
        for posting in postings.as_slice().iter() {
            let exceeds = |bound: &(u32, u32)| bound.0 >= posting.freq && bound.1 <= posting.len;
            prop_assert!(bounds.iter().any(exceeds));
        }
        // Only the last of eight bounds may combine two postings.
        for bound in bounds.iter().take(7) {
            prop_assert!(postings.as_slice().iter().any(|one| (one.freq, one.len) == *bound));
        }
    }

    #[test]
    fn positions_of_one_posting_are_read_alone((range, _, drawn) in block(), many in 1..6_u32) {
        let mut all = Postings::default();
        for posting in drawn.as_slice().iter() {
            let positions: Vec<u32> =
                (0..posting.freq).map(|n| posting.doc % 70 + n * many).collect();
            all.push(Posting { positions: &positions, ..posting });
        }
        let encoded = encode(range, &all.as_slice(), Detail::Positions);
        let block = Block::parse(&encoded.block, range.last()).unwrap();
        let stored = block.inline().or(separate(&encoded)).unwrap();
        let stored = Occurrences::parse(stored, block.total()).unwrap();
        let mut before = 0;
        for posting in all.as_slice().iter() {
            let mut found = Vec::new();
            stored.positions(before, posting.freq, &mut found);
            prop_assert_eq!(found, posting.positions);
            before += posting.freq as usize;
        }
    }

    #[test]
    fn split_postings_are_the_same((_, _, all) in block(), at in any::<prop::sample::Index>()) {
        let doc = all.docs[at.index(all.len())];
        let (low, high) = all.as_slice().split_after(doc);
        prop_assert!(low.docs.iter().all(|id| *id <= doc) && high.docs.iter().all(|id| *id > doc));
        let mut joined = Postings::default();
        joined.append(&low);
        joined.append(&high);
        prop_assert_eq!(joined, all);
    }

    #[test]
    fn any_bytes_are_an_error_or_postings(
        bytes in vec(any::<u8>(), 0..200),
        other in vec(any::<u8>(), 0..60),
        last in any::<u32>(),
    ) {
        for detail in DETAILS {
            read_all(&bytes, Some(&other), last, detail);
            read_all(&bytes, None, last, detail);
        }
    }
}

/// Reads all parts of a possibly damaged block.
fn read_all(bytes: &[u8], other: Option<&[u8]>, last: u32, detail: Detail) {
    let Ok(block) = Block::parse(bytes, last) else { return };
    assert!(block.bounds().count() <= 8);
    if let Ok(postings) = block.decode(other, detail) {
        assert_eq!(postings.len(), block.count());
        assert!(postings.docs.is_sorted_by(|a, b| a < b));
        assert!(postings.docs.iter().all(|doc| block.layout.range.contains(*doc)));
        let most = 8 * (bytes.len() + other.map_or(0, <[u8]>::len)) + BLOCK_POSTINGS;
        assert!(postings.positions.len() <= most, "memory follows from the bytes");
    }
}

#[test]
fn damage_of_any_bit_never_panics() {
    for detail in DETAILS {
        for many in [1, 2, 9, 128] {
            let range = IdRange::of(4_096, 10);
            let drawn: Vec<Drawn> =
                (0..many).map(|n| (4_096 + n * 7, (0..=n % 5).collect(), n % 13)).collect();
            let encoded = encode(range, &postings(&drawn, detail).as_slice(), detail);
            for bit in 0..encoded.block.len() * 8 {
                let mut bytes = encoded.block.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                read_all(&bytes, separate(&encoded), range.last(), detail);
                read_all(&encoded.block[..bit / 8], separate(&encoded), range.last(), detail);
            }
            for bit in 0..encoded.occurrences.len() * 8 {
                let mut bytes = encoded.occurrences.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                read_all(&encoded.block, Some(&bytes), range.last(), detail);
                read_all(&encoded.block, Some(&bytes[..bit / 8]), range.last(), detail);
            }
        }
    }
}

#[test]
fn blocks_have_the_documented_bytes() {
    let mut all = Postings::default();
    all.push(Posting { doc: 9, freq: 1, len: 20, positions: &[3] });
    all.push(Posting { doc: 12, freq: 2, len: 23, positions: &[0, 6] });
    let encoded = encode(IdRange::of(9, 3), &all.as_slice(), Detail::Positions);
    let expected = [
        [0x11, 3, 1].as_slice(), // version 1 with occurrences; level 3; two postings
        &[2, 1, 2],              // widths of gaps, frequencies and lengths
        &[20],                   // the smallest length
        &[2, 2, 3, 1, 0],        // two bounds: twice in 23 tokens, once in 20
        &[0b10_01],              // gaps: 9 is 1 after 8, 12 is 2 after 10
        &[0b10],                 // frequencies less one
        &[0b11_00],              // lengths less 20
        &[3],                    // width of the position gaps 3, 0 and 6
        &[0b10_000_011, 0b1],
    ];
    assert_eq!(encoded.block, expected.concat());
    assert_eq!(encoded.occurrences, [0; 0]);
}

#[test]
fn newer_formats_are_refused_by_name() {
    let malformed = Block::parse(&[0x20, 0, 0, 0, 0, 0, 1, 0], 7).unwrap_err();
    let error = keyloom::Error::from(malformed);
    assert!(matches!(error, keyloom::Error::NewerFormat { found: 2, supported: 1, .. }));
}
