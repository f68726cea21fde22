//! Containers and words, compared with sets of ids.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{CHUNK_IDS, Container, Words};

type Set = BTreeSet<u16>;

const END: u16 = CHUNK_IDS as u16;

/// Few ids, many ids, runs, full and empty blocks, and the first and last ids.
fn ids() -> impl Strategy<Value = Set> {
    let few = prop::collection::btree_set(0..END, 0..140);
    let many = (1_u16..40, any::<u64>()).prop_map(|(step, seed)| {
        let mut state = seed | 1;
        (0..END)
            .filter(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % u64::from(step) == 0
            })
            .collect::<Set>()
    });
    let runs = prop::collection::vec((0..END, 0_u16..3_000), 0..40).prop_map(|runs| {
        runs.into_iter()
            .flat_map(|(at, length)| at..at.saturating_add(length).min(END))
            .collect::<Set>()
    });
    let borders = prop::collection::btree_set(
        prop::sample::select(vec![
            0,
            1,
            63,
            64,
            255,
            256,
            257,
            END - 257,
            END - 256,
            END - 64,
            END - 2,
            END - 1,
        ]),
        0..12,
    );
    // Blocks with any number of ids, including bitmaps.
    let blocks = prop::collection::vec((0..END / 256, 1_u16..90), 20..100).prop_map(|blocks| {
        let ids = blocks.into_iter().flat_map(|(block, step)| {
            (0..256).step_by(step.into()).map(move |id| block * 256 + (id + step) % 256)
        });
        ids.collect::<Set>()
    });
    prop_oneof![few, many, runs, blocks, borders, Just((0..END).collect::<Set>())]
}

fn words_of(set: &Set) -> Words {
    let mut words = Words::new();
    set.iter().for_each(|id| assert!(words.insert(*id)));
    words
}

fn bytes_of(set: &Set) -> Vec<u8> {
    let mut bytes = Vec::new();
    words_of(set).encode(&mut bytes);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_container_has_the_ids_it_was_made_of(set in ids(), probes in prop::collection::vec(0..END, 20)) {
        let bytes = bytes_of(&set);
        if set.is_empty() {
            prop_assert!(bytes.is_empty());
            return Ok(());
        }
        let container = Container::parse(&bytes).unwrap();
        container.verify().unwrap();
        prop_assert_eq!(container.len() as usize, set.len());
        prop_assert!(container.words().iter().eq(set.iter().copied()));
        prop_assert!(container.words().iter().rev().eq(set.iter().rev().copied()));
        for probe in probes.into_iter().chain(set.iter().copied().take(50)) {
            prop_assert_eq!(container.contains(probe), set.contains(&probe));
            let words = container.words();
            prop_assert_eq!(words.contains(probe), set.contains(&probe));
            prop_assert_eq!(words.rank(probe) as usize, set.range(..probe).count());
            prop_assert_eq!(words.first_from(probe), set.range(probe..).next().copied());
            prop_assert_eq!(words.last_to(probe), set.range(..=probe).next_back().copied());
            prop_assert_eq!(words.select(probe.into()), set.iter().nth(probe.into()).copied());
        }
    }

    #[test]
    fn the_form_is_the_smallest_but_for_large_ones(set in ids()) {
        let runs = set.iter().filter(|id| **id == 0 || !set.contains(&(*id - 1))).count();
        let mut blocks = [0_usize; 127];
        set.iter().for_each(|id| blocks[usize::from(id / 256)] += 1);
        let blocks = 130 + blocks.iter().map(|ids| ids.min(&32)).sum::<usize>();
        let smallest = (1 + 2 * set.len()).min(1 + 4 * runs).min(blocks);
        let expected = if set.is_empty() { 0 } else if smallest > 1_900 { 4_080 } else { smallest };
        prop_assert_eq!(bytes_of(&set).len(), expected);
    }

    #[test]
    fn the_algebra_is_that_of_sets(a in ids(), b in ids(), range in (0..END, 0..END)) {
        let b_bytes = bytes_of(&b);
        let (a_words, b_words) = (words_of(&a), words_of(&b));
        type Op = (fn(&mut Words, Container<'_>), fn(&mut Words, &Words), fn(&Set, &Set) -> Set);
        let ops: [Op; 4] = [
            (Words::or, Words::or_words, |a, b| a | b),
            (Words::and, Words::and_words, |a, b| a & b),
            (Words::and_not, Words::and_not_words, |a, b| a - b),
            (Words::xor, Words::xor_words, |a, b| a ^ b),
        ];
        for (with_container, with_words, with_sets) in ops {
            let expected = with_sets(&a, &b);
            let mut words = a_words.clone();
            with_words(&mut words, &b_words);
            prop_assert!(words.iter().eq(expected.iter().copied()));
            prop_assert_eq!(words.count() as usize, expected.len());
            prop_assert_eq!(words.is_empty(), expected.is_empty());
            if let Ok(container) = Container::parse(&b_bytes) {
                let mut words = a_words.clone();
                with_container(&mut words, container);
                prop_assert!(words.iter().eq(expected.iter().copied()));
            }
        }
        let both = (&a & &b).len();
        prop_assert_eq!(a_words.and_count(&b_words) as usize, both);
        let a_bytes = bytes_of(&a);
        if let (Ok(one), Ok(other)) = (Container::parse(&a_bytes), Container::parse(&b_bytes)) {
            prop_assert_eq!(one.and_count(other) as usize, both);
            prop_assert_eq!(other.and_count_words(&a_words) as usize, both);
        }
        let (first, last) = (range.0.min(range.1), range.0.max(range.1));
        let mut words = a_words.clone();
        words.keep(first..=last);
        prop_assert!(words.iter().eq(a.range(first..=last).copied()));
        let mut words = a_words.clone();
        words.insert_range(first..=last);
        let whole: Set = (first..=last).collect();
        prop_assert!(words.iter().eq((&a | &whole).iter().copied()));
        for id in [first, last] {
            prop_assert_eq!(words.remove(id), true);
            prop_assert_eq!(words.remove(id), false);
            prop_assert_eq!(words.insert(id), true);
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_harmless(
        set in ids(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        length in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = bytes_of(&set);
        if bytes.is_empty() {
            prop_assert!(Container::parse(&bytes).is_err());
            return Ok(());
        }
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        if let Ok(container) = Container::parse(&bytes) {
            // For any result, ids stay in range and no operation hangs.
            let words = container.words();
            words.iter().for_each(|id| assert!(id < END));
            container.and_count(container);
            container.contains(END - 1);
            if container.verify().is_ok() {
                let mut again = Vec::new();
                words.encode(&mut again);
                prop_assert_eq!(Container::parse(&again).unwrap().len(), container.len());
                prop_assert!(words.iter().all(|id| container.contains(id)));
            }
        }
    }
}

#[test]
fn every_form_is_met() {
    let form = |set: Set| bytes_of(&set).first().copied();
    assert_eq!(form([7].into()), Some(0x11));
    assert_eq!(form((0..END).collect()), Some(0x12));
    assert_eq!(form((0..END).step_by(64).collect()), Some(0x13));
    assert_eq!(form((0..END).step_by(10).collect()), Some(0x14));
}

#[test]
fn the_bytes_are_as_documented() {
    assert_eq!(bytes_of(&[0x0102, 0x0304].into()), [0x11, 0x02, 0x01, 0x04, 0x03]);
    assert_eq!(bytes_of(&(5..=300).collect()), [0x12, 5, 0, 0x2C, 1]);
    let dense: Set = (0..END).step_by(2).collect();
    let bytes = bytes_of(&dense);
    assert_eq!(bytes.len(), 4_080);
    assert_eq!(bytes[..16], [0x14, 0, 0x80, 0x3F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert!(bytes[16..].iter().all(|byte| *byte == 0b0101_0101));
    // 140 single ids, and one block with 64 of them.
    let blocks: Set = (0..127).map(|n| n * 256 + 3).chain((0..128).step_by(2)).collect();
    let bytes = bytes_of(&blocks);
    assert_eq!(bytes[..3], [0x13, 191, 0]);
    assert_eq!(bytes[3], 32);
    assert!(bytes[4..130].iter().all(|size| *size == 1));
    assert_eq!(bytes[130], 0b0101_1101);
    assert!(bytes[162..].iter().all(|id| *id == 3));
}

#[test]
fn a_newer_format_and_other_bytes_are_distinguished() {
    let why = |bytes: &[u8]| Container::parse(bytes).err().map(|error| error.to_string()).unwrap();
    assert!(why(&[0x21, 0, 0]).contains("upgrade the program"), "{}", why(&[0x21, 0, 0]));
    for bytes in
        [&[][..], &[0x11], &[0x01, 0, 0], &[0x15, 0, 0], &[0x12, 9, 0, 8, 0], &[0x11, 0, 0xFF]]
    {
        assert!(why(bytes).contains("not a chunk of a bitmap"), "{bytes:?}");
    }
    let unordered = [0x11, 2, 0, 1, 0];
    assert!(Container::parse(&unordered).unwrap().verify().is_err());
}
