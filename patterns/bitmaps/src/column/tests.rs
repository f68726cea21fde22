//! Columns, compared with maps.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{KeyBuf, Result};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;

use super::*;

type Lists = BTreeMap<u16, Vec<KeyBuf>>;
type Numbers = BTreeMap<u16, Option<i64>>;

fn place() -> impl Strategy<Value = u16> {
    prop_oneof![0..4_u16, 0..BLOCK_IDS as u16, Just(BLOCK_IDS as u16 - 1)]
}

/// Values with common prefixes; their number is between one and the number of ids.
fn values() -> impl Strategy<Value = Vec<KeyBuf>> {
    let value = prop_oneof![
        vec(0..3_u8, 1..4),
        Just(vec![7; 100]),
        any::<u16>().prop_map(|n| n.to_be_bytes().to_vec())
    ];
    let values = prop_oneof![1 => Just(0..1), 3 => Just(1..2), 1 => Just(0..9)];
    values.prop_flat_map(move |many| btree_set(value.clone(), many)).prop_map(|values| {
        let packed = values.iter().map(|value| KeyBuf::from_slice(value));
        packed.collect()
    })
}

fn lists() -> impl Strategy<Value = Lists> {
    btree_map(place(), values(), 0..120)
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let number = prop_oneof![Just(5), -9..9_i64, Just(i64::MIN), Just(i64::MAX), any::<i64>()];
    btree_map(place(), prop::option::weighted(0.8, number), 0..60)
}

fn of_lists(old: &[u8], lists: &Lists) -> Result<Vec<u8>> {
    let changes: Vec<(u16, &[KeyBuf])> = lists.iter().map(|(at, list)| (*at, &list[..])).collect();
    let (mut out, old) = (Vec::new(), (!old.is_empty()).then(|| Values::parse(old)).transpose()?);
    Values::rewrite(old, &changes, &mut out)?;
    Ok(out)
}

fn of_numbers(old: &[u8], numbers: &Numbers) -> Result<Vec<u8>> {
    let changes: Vec<(u16, Option<i64>)> = numbers.iter().map(|(at, to)| (*at, *to)).collect();
    let (mut out, old) = (Vec::new(), (!old.is_empty()).then(|| Integers::parse(old)).transpose()?);
    Integers::rewrite(old, &changes, &mut out);
    Ok(out)
}

/// Decodes the values of each place in a column.
fn read_lists(bytes: &[u8]) -> Result<Lists> {
    let Some(column) = (!bytes.is_empty()).then(|| Values::parse(bytes)).transpose()? else {
        return Ok(Lists::new());
    };
    let mut lists = Lists::new();
    for place in 0..BLOCK_IDS as u16 + 9 {
        let values = column.codes(place).map(|code| column.dictionary().value(code));
        let values =
            values.map(|value| value.map(KeyBuf::from_slice)).collect::<Result<Vec<_>>>()?;
        if !values.is_empty() {
            lists.insert(place, values);
        }
    }
    assert!(column.places().eq(lists.keys().copied()));
    Ok(lists)
}

fn read_numbers(bytes: &[u8]) -> Result<Numbers> {
    let Some(column) = (!bytes.is_empty()).then(|| Integers::parse(bytes)).transpose()? else {
        return Ok(Numbers::new());
    };
    let there = (0..BLOCK_IDS as u16 + 9).filter_map(|place| Some((place, column.get(place)?)));
    let numbers: Numbers = there.map(|(place, number)| (place, Some(number))).collect();
    assert!(column.places().eq(numbers.keys().copied()));
    Ok(numbers)
}

proptest! {
    #[test]
    fn a_column_of_values_is_a_map_and_written_again_the_same(first in lists(), then in lists()) {
        let there = |lists: &Lists| -> Lists {
            lists.iter().filter(|(_, list)| !list.is_empty()).map(|(at, l)| (*at, l.clone())).collect()
        };
        let old = of_lists(&[], &first).unwrap();
        prop_assert_eq!(read_lists(&old).unwrap(), there(&first));
        let changed = of_lists(&old, &then).unwrap();
        let mut both = first;
        both.extend(then);
        prop_assert_eq!(read_lists(&changed).unwrap(), there(&both));
        prop_assert_eq!(of_lists(&[], &there(&both)).unwrap(), changed.clone());
        prop_assert_eq!(of_lists(&changed, &Lists::new()).unwrap(), changed.clone());
        if let Some(column) = (!changed.is_empty()).then(|| Values::parse(&changed).unwrap()) {
            let different: BTreeSet<_> = both.values().flatten().collect();
            prop_assert_eq!(column.dictionary().len(), different.len());
        }
    }

    #[test]
    fn a_column_of_integers_is_a_map_and_written_again_the_same(first in numbers(), then in numbers()) {
        let there = |numbers: &Numbers| -> Numbers {
            numbers.iter().filter(|(_, n)| n.is_some()).map(|(at, n)| (*at, *n)).collect()
        };
        let old = of_numbers(&[], &first).unwrap();
        prop_assert_eq!(read_numbers(&old).unwrap(), there(&first));
        let changed = of_numbers(&old, &then).unwrap();
        let mut both = first;
        both.extend(then);
        prop_assert_eq!(read_numbers(&changed).unwrap(), there(&both));
        prop_assert_eq!(of_numbers(&[], &there(&both)).unwrap(), changed.clone());
        prop_assert_eq!(of_numbers(&changed, &Numbers::new()).unwrap(), changed);
    }

    /// Damage never causes a panic or an endless loop. A rewrite of a damaged column is valid or
    /// refused.
    #[test]
    fn damaged_bytes_are_refused_or_read_to_an_end(
        mut lists in lists(), numbers in numbers(), damage in vec((any::<u16>(), any::<u8>()), 0..4),
        cut in 0..40_usize, junk in vec(any::<u8>(), 0..40)
    ) {
        for mut bytes in [of_lists(&[], &lists).unwrap(), of_numbers(&[], &numbers).unwrap(), junk] {
            for (at, to) in &damage {
                // Damage the short header more often: it has the greatest effect.
                let at = usize::from(at % if at % 2 == 0 { 16 } else { 4_000 });
                bytes.get_mut(at).into_iter().for_each(|byte| *byte = *to);
            }
            bytes.truncate(bytes.len() - cut.min(bytes.len()) / 8);
            let _ = (read_lists(&bytes), read_numbers(&bytes));
            lists.remove(&0);
            if let Ok(made) = of_lists(&bytes, &lists) {
                prop_assert_eq!(of_lists(&made, &Lists::new()).unwrap(), made);
            }
            if let Ok(made) = of_numbers(&bytes, &numbers) {
                prop_assert_eq!(of_numbers(&made, &Numbers::new()).unwrap(), made);
            }
        }
    }
}

#[test]
fn what_takes_most_and_least_room() {
    let of = |value: u8| vec![KeyBuf::from_slice(&[0x15, value])];
    let same: Lists = (0..BLOCK_IDS as u16).map(|place| (place, of(7))).collect();
    // A header, the end and the bytes of one value, one bit per id.
    assert_eq!(of_lists(&[], &same).unwrap().len(), 10 + 1 + 2 + 1_016 / 8);
    let two: Lists = [(0, [of(1), of(2)].concat())].into();
    // Two ends of 3 bits, two values, an end of 2 bits, two codes of one bit.
    assert_eq!(of_lists(&[], &two).unwrap().len(), 10 + 1 + 4 + 1 + 1);
    let five: Numbers = (0..BLOCK_IDS as u16).map(|place| (place, Some(-5))).collect();
    assert_eq!(of_numbers(&[], &five).unwrap().len(), 13);
    let wide: Numbers = [(0, Some(i64::MIN)), (1, Some(i64::MAX))].into();
    assert_eq!(of_numbers(&[], &wide).unwrap().len(), 13 + 16);
}

#[test]
fn bytes_of_a_newer_program_and_of_another_kind_are_named() {
    let newer = Values::parse(&[0x21, 0]).unwrap_err().to_string();
    assert_eq!(
        newer,
        "the forward index has format 2, this program reads formats up to 1; upgrade the program"
    );
    let numbers = of_numbers(&[], &[(3, Some(1))].into()).unwrap();
    assert!(Values::parse(&numbers).unwrap_err().to_string().contains("not a column of values"));
    let lists = of_lists(&[], &[(3, vec![KeyBuf::from_slice(b"x")])].into()).unwrap();
    assert!(Integers::parse(&lists).unwrap_err().to_string().contains("not a column of integers"));
}

/// Lists that overlap would have more codes than the column.
#[test]
fn lists_that_overlap_are_refused() {
    // Two values, and the ends 2, 0, 2, 2 of the lists of four ids.
    let header = [super::LISTS, 1, 8, 8, 4, 0, 2, 0, 0, 0];
    let damaged = [&header[..], &[1, 2], b"ab", &[2, 0, 2, 2], &[0b10]].concat();
    let column = Values::parse(&damaged).unwrap();
    let codes_of = |places: &[u16]| {
        let (mut codes, mut ends) = (Vec::new(), Vec::new());
        column.codes_of(places, &mut codes, &mut ends).map(|()| (codes, ends))
    };
    assert_eq!(codes_of(&[0, 1]).unwrap(), (vec![0, 1], vec![2, 2]));
    let error = codes_of(&[0, 1, 2]).unwrap_err();
    assert!(error.to_string().contains("not in order"), "{error}");
}
